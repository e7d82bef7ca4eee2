// SPDX-License-Identifier: MIT
#include "capture/rules.h"

#include "formats/oplog/syscalls.h"

namespace reprise {
namespace {

// Fields of call_rule number arguments from 1.
raw_u8 number_of(size_t argument) { return static_cast<raw_u8>(argument + 1); }

void add_descriptor(call_rule& rule, raw_u8 number) { (rule.fd == 0 ? rule.fd : rule.fd2) = number; }

void add_extra(call_rule& rule, rule_extra extra, raw_u8 number) {
    if (rule.extra == EXTRA_NONE) {
        rule.extra = extra;
        rule.extra_arg = number;
    } else {
        rule.extra_arg2 = number;  // the second offset of a copy
    }
}

void add_argument(call_rule& rule, const Syscall& call, char letter, raw_u8 number) {
    switch (letter) {
        case 'f':
        case '2':
        case 'd':
        case 'D': add_descriptor(rule, number); break;
        case 'p': rule.path = number; break;
        case 'P': rule.path2 = number; break;
        case 't': rule.string = number; break;
        case 'L': add_extra(rule, EXTRA_LINK, number); break;
        case 'O':
        case 'Q':
        case 'c': add_extra(rule, EXTRA_OFFSETS, number); break;  // of c the first word: flags
        case 'i': add_extra(rule, EXTRA_IOVEC, number); break;
        case 'M':
        case 'V':
            add_extra(rule, letter == 'M' ? EXTRA_MESSAGE : EXTRA_MESSAGES, number);
            rule.extra_arg2 = call.kind == OpKind::receive;
            break;
        case 'S':
            // What fstat returns is what the descriptor's inode says.
            if (call.kind != OpKind::fstat) {
                add_extra(rule, call.kind == OpKind::statx ? EXTRA_STATX : EXTRA_STAT, number);
            }
            break;
        case 'H': add_extra(rule, EXTRA_HOW, number); break;
        case 'X': add_extra(rule, EXTRA_LIST, number); break;
        case 'G': add_extra(rule, EXTRA_CLONE, number); break;
        case '|': add_extra(rule, EXTRA_PAIR, number); break;
        case 'K': add_extra(rule, EXTRA_IOCBS, number); break;
        case 'E': add_extra(rule, EXTRA_EVENTS, number); break;
        case 'I': add_extra(rule, EXTRA_SIGINFO, number); break;
        default: break;  // the argument's value is enough
    }
}

rule_kind kind_of(const Syscall& call, const call_rule& rule) {
    const bool points = rule.path || rule.path2 || rule.string || rule.extra;
    if (!points && !rule.fd2) {
        return rule.fd ? RULE_FD : RULE_PLAIN;
    }
    const bool only_path = rule.path && !rule.path2 && !rule.string && !rule.extra;
    return call.kind == OpKind::open && only_path ? RULE_OPEN : RULE_RICH;
}

raw_u16 flags_of(const Syscall& call) {
    raw_u16 flags = call.wakes ? RULE_WAKES : 0;
    if (call.nr == SYS_close) {
        flags |= RULE_AT_ENTER;
    }
    if (call.action == CallAction::mmap) {
        flags |= RULE_NOT_ANON;
    }
    if (call.action == CallAction::marker) {
        flags |= RULE_IF_MARKER;
    }
    if (call.action == CallAction::wait_child) {
        flags |= RULE_CHILD;
    }
    if (call.action == CallAction::clone_blocks) {
        flags |= RULE_IF_CLONE;
    }
    if (call.action == CallAction::fcntl) {
        flags |= RULE_LOCKS;
    }
    const bool advises = call.makes_op && call.kind == OpKind::madvise;
    if (advises || call.action == CallAction::mmap || call.action == CallAction::mremap ||
        call.action == CallAction::brk) {
        flags |= RULE_POPULATES;
    }
    const bool unmaps = call.makes_op && call.kind == OpKind::munmap;
    if (unmaps || call.action == CallAction::mremap) {
        flags |= RULE_UNMAPS;
    }
    if (call.makes_op && info(call.kind).is(Trait::reads) != info(call.kind).is(Trait::writes)) {
        flags |= info(call.kind).is(Trait::reads) ? RULE_READS : RULE_WRITES;
    }
    return flags;
}

}  // namespace

CallRules call_rules() {
    CallRules rules{};
    for (const Syscall& call : all_syscalls()) {
        if (!call.recorded) {
            continue;
        }
        call_rule& rule = rules.at(call.nr);
        if (call.makes_descriptor) {
            add_descriptor(rule, RULE_RESULT);
        }
        for (size_t i = 0; i < call.arguments.size(); ++i) {
            add_argument(rule, call, call.arguments[i], number_of(i));
        }
        rule.kind = kind_of(call, rule);
        rule.flags = flags_of(call);
        if ((rule.flags & RULE_LOCKS) != 0) {  // of some commands; of the others the kind tells all
            constexpr size_t kLock = 2;
            add_extra(rule, EXTRA_LOCK, number_of(kLock));
        }
    }
    return rules;
}

}  // namespace reprise
