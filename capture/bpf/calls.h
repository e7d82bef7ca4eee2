/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* System calls: one record each, at its exit. */
#ifndef REPRISE_CAPTURE_CALLS_H
#define REPRISE_CAPTURE_CALLS_H

#include "aio_ring.h"
#include "inside.h"
#include "lists.h"
#include "off.h"
#include "pages.h"
#include "shared_maps.h"
#include "stolen.h"
#include "touches.h"

#define MAP_ANONYMOUS 0x20
#define PR_SET_NAME 15
#define NR_READ 0

struct call_record {
    struct raw_call call;
};
struct call_fd_record {
    struct raw_call call;
    struct raw_part part;
    struct raw_fd fd;
};
struct call_child_record {
    struct raw_call call;
    struct raw_part part;
    __s64 child;
};

struct call_open_record {
    struct raw_call call;
    struct raw_part part;
    struct raw_fd fd;
    struct raw_part path;
    char text[SHORT_PATH];
};

/* F_SETLK, F_SETLKW, F_OFD_SETLK, F_OFD_SETLKW. */
static __always_inline bool is_range_lock(__u32 command) {
    return command == 6 || command == 7 || command == 37 || command == 38;
}

static __always_inline void fill_call(struct raw_call* call, __u32 size, struct task_state* state, struct pt_regs* regs,
                                      __u32 nr, __s64 result, __u64 now) {
    fill_head(&call->head, RAW_CALL, size, state->sequence++, now);
    call->enter = state->enter;
    call->result = result;
    call->nr = nr;
    call->pad = 0;
    call->own_ns = state->own;
    call->args[0] = regs->di;
    call->args[1] = regs->si;
    call->args[2] = regs->dx;
    call->args[3] = regs->r10;
    call->args[4] = regs->r8;
    call->args[5] = regs->r9;
}

static __always_inline void add_extra(struct composer* c, struct pt_regs* regs, const volatile struct call_rule* rule,
                                      __s64 result) {
    const __u32 which = rule->extra_arg - 1;
    const __u64 user = argument(regs, which);
    switch (rule->extra) {
        case EXTRA_IOVEC:
            add_iovec(c, user, argument(regs, which + 1), which);
            add_direct_buffers(c, c->last, user, argument(regs, which + 1), which);
            break;
        case EXTRA_MESSAGE: add_message(c, user, which, rule->extra_arg2); break;
        case EXTRA_MESSAGES: add_messages(c, user, which, rule->extra_arg2, result); break;
        case EXTRA_STAT:
            if (result == 0) {
                add_stat(c, user, which);
            }
            break;
        case EXTRA_STATX:
            if (result == 0) {
                add_statx(c, user, which);
            }
            break;
        case EXTRA_OFFSETS:
            if (user) {
                add_values(c, user, which, 1);
            }
            if (rule->extra_arg2) {
                const __u64 second = argument(regs, rule->extra_arg2 - 1);
                if (second) {
                    add_values(c, second, rule->extra_arg2 - 1, 1);
                }
            }
            break;
        case EXTRA_PAIR:
            if (result == 0) {
                int pair[2] = {-1, -1};
                bpf_probe_read_user(pair, sizeof pair, (void*)user);
                add_fd(c, pair[0], RAW_WHICH_RESULT);
                add_fd(c, pair[1], RAW_WHICH_RESULT2);
            }
            break;
        case EXTRA_IOCBS: add_iocbs(c, user, result); break;
        case EXTRA_EVENTS: add_events(c, user, result); break;
        case EXTRA_SIGINFO:
            if (user && result == 0) {
                int info[8] = {};
                bpf_probe_read_user(info, sizeof info, (void*)user);
                struct raw_part* part = begin_part(c, RAW_PART_VALUES, which, 24, 3);
                if (part) {
                    __s64* out = (__s64*)(part + 1);
                    out[0] = info[4]; /* si_pid */
                    out[1] = info[2]; /* si_code */
                    out[2] = info[6]; /* si_status */
                }
                const __u32 child = who_ended(bpf_get_current_task_btf(), info[4]);
                part = child ? begin_part(c, RAW_PART_VALUES, RAW_WHICH_RESULT, 8, 1) : 0;
                if (part) {
                    *(__s64*)(part + 1) = child;
                }
            }
            break;
        case EXTRA_LOCK:
        case EXTRA_HOW: add_values(c, user, which, 3); break;
        case EXTRA_CLONE: {
            if (!is_clone(regs)) {
                break;
            }
            __s64 source = (__s32)user;
            if ((__u32)regs->si == FICLONERANGE) {
                add_values(c, user, which, 4);
                source = -1;
                bpf_probe_read_user(&source, sizeof source, (void*)user);
            }
            add_fd(c, source, which);
            break;
        }
        case EXTRA_LIST: {
            /* The rest of a list says nothing of the mode. */
            const __u64 most = 4 + 8 * 16, size = argument(regs, which + 1);
            __u64 name[2] = {};
            bpf_probe_read_user(name, sizeof name, (void*)argument(regs, which - 1));
            if (result == 0 && size <= most && name[0] == WORD('s', 'y', 's', 't', 'e', 'm', '.', 'p') &&
                name[1] == WORD('o', 's', 'i', 'x', '_', 'a', 'c', 'l')) {
                add_bytes(c, user, which, size);
            }
            break;
        }
        case EXTRA_LINK: add_bytes(c, user, which, result); break;
        default: break;
    }
}

static __noinline int record_rich(struct pt_regs* regs, struct task_state* state, __u32 nr, __s64 result, __u64 now) {
    const volatile struct call_rule* rule = &rules[nr & (CALL_LIMIT - 1)];
    struct composer c = {};
    if (!compose(&c, sizeof(struct raw_call))) {
        return 0;
    }
    fill_call((struct raw_call*)c.scratch->record, 0, state, regs, nr, result, now);
    if (rule->fd == RULE_RESULT) {
        if (result >= 0) {
            add_fd(&c, result, RAW_WHICH_RESULT);
        }
    } else if (rule->fd) {
        const int fd = argument(regs, rule->fd - 1);
        if (fd >= 0) {
            add_fd(&c, fd, rule->fd - 1);
        }
    }
    if (rule->fd2 == RULE_RESULT) {
        if (result >= 0) {
            add_fd(&c, result, RAW_WHICH_RESULT);
        }
    } else if (rule->fd2) {
        const int fd = argument(regs, rule->fd2 - 1);
        if (fd >= 0) {
            add_fd(&c, fd, rule->fd2 - 1);
        }
    }
    if (rule->path) {
        add_path(&c, argument(regs, rule->path - 1), rule->path - 1);
    }
    if (rule->path2) {
        add_path(&c, argument(regs, rule->path2 - 1), rule->path2 - 1);
    }
    if (rule->string) {
        add_string(&c, argument(regs, rule->string - 1), rule->string - 1);
    }
    if (rule->extra) {
        add_extra(&c, regs, rule, result);
    }
    send(&c);
    return 0;
}

/* An open of a short path; false where it is none of those. */
static __always_inline bool record_open(struct pt_regs* regs, struct task_struct* task, struct task_state* state,
                                        __u32 nr, __s64 result, __u64 now) {
    const volatile struct call_rule* rule = &rules[nr & (CALL_LIMIT - 1)];
    if (rule->fd2 && (int)argument(regs, rule->fd2 - 1) >= 0) {
        return 0;
    }
    struct call_open_record* record = RESERVE(call_open_record);
    if (!record) {
        ++state->sequence;
        return 1;
    }
    const __u32 which = rule->path - 1;
    const long n = bpf_probe_read_user_str(record->text, SHORT_PATH, (void*)argument(regs, which));
    if (n <= 0 || n >= SHORT_PATH) {
        bpf_ringbuf_discard(record, BPF_RB_NO_WAKEUP);
        return 0;
    }
    const __u32 room = (n - 1 + 7) & ~7u;
    fill_call(&record->call, offsetof(struct call_open_record, text) + room, state, regs, nr, result, now);
    struct file* file = result < 0 ? 0 : file_of(task, result);
    fill_part_fd(&record->part, &record->fd, file, result, RAW_WHICH_RESULT);
    fill_cached(&record->fd, file);
    record->path.type = RAW_PART_PATH;
    record->path.size = sizeof record->path + room;
    record->path.which = which;
    record->path.length = n - 1;
    remember_file(&record->fd);
    SUBMIT(record);
    return 1;
}

/* A wait4 inside a PID namespace; false where it is none, or nobody ended. */
static __always_inline bool record_child(struct pt_regs* regs, struct task_struct* task, struct task_state* state,
                                         __u32 nr, __s64 result, __u64 now) {
    const __u32 child = result > 0 ? who_ended(task, result) : 0;
    if (!child) {
        return 0;
    }
    struct call_child_record* record = RESERVE(call_child_record);
    if (!record) {
        ++state->sequence;
        return 1;
    }
    fill_call(&record->call, sizeof *record, state, regs, nr, result, now);
    record->part.type = RAW_PART_VALUES;
    record->part.size = sizeof record->part + sizeof record->child;
    record->part.which = RAW_WHICH_RESULT;
    record->part.length = 1;
    record->child = child;
    SUBMIT(record);
    return 1;
}

SEC(HOOK "sys_enter")
int BPF_PROG(call_enter, struct pt_regs* regs, long id) {
    TYPED(regs, pt_regs);
    const __u32 nr = id;
    if (nr >= CALL_LIMIT || !rules[nr & (CALL_LIMIT - 1)].kind ||
        is_passed_over(regs, rules[nr & (CALL_LIMIT - 1)].flags)) {
        return 0;
    }
    struct task_struct* task = bpf_get_current_task_btf();
    struct task_state* state = state_of(task);
    if (!state || state->compat) {
        return 0;
    }
    settle_touches(state);
    settle_pages(state);
    settle_faults(state);
    settle_stolen(task, state);
    const bool takes = takes_events(nr);
    __u64 looked = 0;
    if (state->aio_context || takes) {
        looked = look_before(state, regs->di, takes);
    }
    state->nr = nr;
    state->fault_enter = 0;
    if (rules[nr & (CALL_LIMIT - 1)].flags & RULE_AT_ENTER) {
        fill_file(&state->at_enter, file_of(task, regs->di), regs->di);
    }
    const __u64 now = bpf_ktime_get_ns();
    if (looked) {
        state->own += now - looked;
    }
    state->enter = now;
    return 0;
}

SEC(HOOK "sys_exit")
int BPF_PROG(call_exit, struct pt_regs* regs, long result) {
    TYPED(regs, pt_regs);
    const __u32 nr = regs->orig_ax;
    if (nr >= CALL_LIMIT) {
        return 0;
    }
    const volatile struct call_rule* rule = &rules[nr & (CALL_LIMIT - 1)];
    const __u32 kind = rule->kind, flags = rule->flags;
    if (!kind || is_passed_over(regs, flags)) {
        return 0;
    }
    struct task_struct* task = bpf_get_current_task_btf();
    struct task_state* state = state_of(task);
    if (!state || !state->enter) {
        return 0;
    }
    settle_touches(state);
    settle_pages(state);
    if (state->off > state->enter) {
        back_on_unseen(task, state);
    }
    const __u64 now = bpf_ktime_get_ns();
    if (flags & RULE_UNMAPS || ((flags & RULE_NOT_ANON) && (regs->r10 & MAP_SHARED) && !(regs->r10 & MAP_ANONYMOUS))) {
        note_mapping(regs, nr, flags, result);
    }
    if ((flags & RULE_IF_CLONE) && result < 0 && is_clone(regs)) {
        /* the program copies by other calls */
    } else if ((flags & RULE_IF_MARKER) && regs->di != PR_SET_NAME &&
               (regs->di != RAW_MARKER_PRCTL || regs->r8 != RAW_MARKER_MAGIC)) {
        /* some other prctl */
    } else if (kind == RULE_RICH || kind == RULE_OPEN || ((flags & RULE_LOCKS) && is_range_lock(regs->si))) {
        if (kind != RULE_OPEN || !record_open(regs, task, state, nr, result, now)) {
            record_rich(regs, state, nr, result, now);
        }
    } else if (kind == RULE_FD && !((flags & RULE_NOT_ANON) && (regs->r10 & MAP_ANONYMOUS))) {
        struct call_fd_record* record = RESERVE(call_fd_record);
        if (!record) {
            ++state->sequence;
        } else {
            fill_call(&record->call, sizeof *record, state, regs, nr, result, now);
            const __u32 which = rule->fd;
            const int fd = which == RULE_RESULT ? (int)result : (int)argument(regs, which - 1);
            if (flags & RULE_AT_ENTER) {
                record->part.type = RAW_PART_FD;
                record->part.size = sizeof record->part + sizeof record->fd;
                record->part.which = which - 1;
                record->part.length = 1;
                record->fd = state->at_enter;
            } else {
                fill_part_fd(&record->part, &record->fd, file_of(task, fd), fd, which - 1);
            }
            SUBMIT(record);
        }
    } else if (!((flags & RULE_CHILD) && record_child(regs, task, state, nr, result, now))) {
        struct call_record* record = RESERVE(call_record);
        if (!record) {
            ++state->sequence;
        } else {
            fill_call(&record->call, sizeof *record, state, regs, nr, result, now);
            SUBMIT(record);
        }
    }
    if (takes_events(nr)) {
        note_aio_ring(state, regs->di, -1);
    } else if (nr == NR_IO_DESTROY) {
        forget_aio_ring(regs->di);
    } else if (nr == NR_IO_SUBMIT && state->aio_context != regs->di) {
        note_aio_ring(state, regs->di, 0);
    }
    state->enter = 0;
    state->left = now;
    state->nr = NO_CALL;
    stolen_from_here(task, state);
    /* Told with the next call, as this one's record is gone. What runs before a call differs little (CallGaps). */
    state->own = bpf_ktime_get_ns() - now;
    if (nr == NR_READ && state->aio_eventfd && state->aio_eventfd - 1 == (__s32)regs->di && result == 8) {
        look_for_taken(state, 1, 0);
    }
    return 0;
}

#endif
