// SPDX-License-Identifier: MIT
#include "capture/rules.h"

#include <sys/syscall.h>

// Younger than the headers of Debian 12.
#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif
#ifndef SYS_futex_wake
#define SYS_futex_wake 454
#endif
#ifndef SYS_futex_wait
#define SYS_futex_wait 455
#endif

namespace reprise {
namespace {

constexpr raw_u8 RESULT = RULE_RESULT;
constexpr raw_u8 PLAIN = RULE_PLAIN;
constexpr raw_u8 FD = RULE_FD;
constexpr raw_u8 OPEN = RULE_OPEN;
constexpr raw_u8 RICH = RULE_RICH;
constexpr raw_u8 WAKES = RULE_WAKES;
constexpr auto A = [](int argument) { return static_cast<raw_u8>(argument + 1); };

}  // namespace

CallRules call_rules() {
    CallRules rules{};
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#define CALL(name, what, ...)               \
    static_assert(SYS_##name < CALL_LIMIT); \
    rules[SYS_##name] = call_rule{.kind = what __VA_OPT__(, ) __VA_ARGS__};
#include "capture/calls.def"
#undef CALL
#pragma GCC diagnostic pop
    return rules;
}

}  // namespace reprise
