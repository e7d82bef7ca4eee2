/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Which calls are not looked at although their number is. */
#pragma once

#include "common.h"

#define FICLONE 0x40049409
#define FICLONERANGE 0x4020940d
#define TCGETS 0x5401
#define TCGETS2 0x802c542a

static __always_inline bool is_clone(struct pt_regs* regs) {
    return (__u32)regs->si == FICLONE || (__u32)regs->si == FICLONERANGE;
}

/* Of ioctl only what moves data between files, and whether one is a terminal: file systems in user space are asked
 * that, too. Any other is not looked at further. */
static __always_inline bool is_passed_over(struct pt_regs* regs, __u32 flags) {
    return flags & RULE_IF_CLONE && !is_clone(regs) && (__u32)regs->si != TCGETS && (__u32)regs->si != TCGETS2;
}

/* Whether the call that a task is in, or has just left, is recorded. */
static __always_inline bool is_recorded_call(struct pt_regs* regs) {
    const __u64 nr = regs->orig_ax;
    return nr < CALL_LIMIT && rules[nr & (CALL_LIMIT - 1)].kind &&
           !is_passed_over(regs, rules[nr & (CALL_LIMIT - 1)].flags);
}
