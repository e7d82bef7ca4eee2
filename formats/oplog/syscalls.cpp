// SPDX-License-Identifier: MIT
#include "formats/oplog/syscalls.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>

#include <array>
#include <csignal>
#include <unordered_map>
#include <vector>

namespace reprise {
namespace {

constexpr size_t kNumbers = 512;
constexpr std::string_view kMakesDescriptor = "=f";

constexpr bool makes_descriptor(std::string_view letters) { return letters.ends_with(kMakesDescriptor); }
constexpr std::string_view arguments(std::string_view letters) {
    return letters.substr(0, letters.size() - (makes_descriptor(letters) ? kMakesDescriptor.size() : 0));
}

// clang-format off
#define ROW(call, is_op, becomes, letters, what, ...)                                              \
    {.nr = SYS_##call, .name = #call, .makes_op = is_op, .kind = becomes,                           \
     .arguments = arguments(letters), .makes_descriptor = makes_descriptor(letters),                \
     .action = CallAction::what __VA_OPT__(, ) __VA_ARGS__},
// clang-format on
constexpr Syscall kCalls[] = {
#define CALL(call, becomes, letters, what, ...) \
    ROW(call, true, OpKind::becomes, letters, what __VA_OPT__(, ) __VA_ARGS__)
#define NO_OP(call, letters, what, ...) ROW(call, false, OpKind::wait, letters, what __VA_OPT__(, ) __VA_ARGS__)
#include "formats/oplog/syscalls.def"
};

struct Alias {
    std::string_view name;
    uint16_t nr;
    std::string_view letters{};
};
constexpr Alias kAliases[] = {
#define ALIAS(other, call, ...) {#other, SYS_##call __VA_OPT__(, ) __VA_ARGS__},
#include "formats/oplog/syscalls.def"
};

constexpr bool numbers_are_unique() {
    std::array<bool, kNumbers> seen{};
    for (const Syscall& call : kCalls) {
        if (call.nr >= kNumbers || seen[call.nr]) {
            return false;
        }
        seen[call.nr] = true;
    }
    return true;
}
static_assert(numbers_are_unique(), "syscalls.def: one row per call");

// Calls `each` with the op's name and the condition of every word of `also`.
template <class Visit>
void each_of_also(std::string_view also, Visit each) {
    while (!also.empty()) {
        const std::string_view word = also.substr(0, also.find(' '));
        const size_t colon = std::min(word.find(':'), word.size());
        each(word.substr(0, colon), word.substr(colon));
        also.remove_prefix(std::min(word.size() + 1, also.size()));
    }
}

}  // namespace

std::span<const Syscall> all_syscalls() { return kCalls; }

std::span<const Syscall> all_syscall_aliases() {
    static const auto rows = [] {
        std::vector<Syscall> out;
        for (const Alias& alias : kAliases) {
            Syscall& row = out.emplace_back(*find_syscall(alias.nr));
            row.name = alias.name;
            if (!alias.letters.empty()) {
                row.arguments = alias.letters;
            }
        }
        return out;
    }();
    return rows;
}

const Syscall* find_syscall(unsigned nr) {
    static constexpr auto rows = [] {
        std::array<const Syscall*, kNumbers> table{};
        for (const Syscall& row : kCalls) {
            table[row.nr] = &row;
        }
        return table;
    }();
    return nr < kNumbers ? rows[nr] : nullptr;
}

const Syscall* find_syscall(std::string_view name) {
    static const auto rows = [] {
        std::unordered_map<std::string_view, const Syscall*> out;
        for (const auto& table : {all_syscalls(), all_syscall_aliases()}) {
            for (const Syscall& row : table) {
                out.emplace(row.name, &row);
            }
        }
        return out;
    }();
    const auto it = rows.find(name);
    return it == rows.end() ? nullptr : it->second;
}

std::string calls_of(OpKind kind) {
    std::string out;
    const auto add = [&](std::string_view name, std::string_view condition) {
        out.append(out.empty() ? "" : " ").append(name).append(condition);
    };
    for (const Syscall& call : kCalls) {
        if (call.makes_op && call.kind == kind) {
            add(call.name, "");
        }
        each_of_also(call.also, [&](std::string_view op, std::string_view condition) {
            if (op == info(kind).name) {
                add(call.name, condition);
            }
        });
    }
    return out;
}

}  // namespace reprise
