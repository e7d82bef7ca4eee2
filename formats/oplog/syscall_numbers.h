// SPDX-License-Identifier: MIT
// SYS_* of every call in formats/oplog/syscalls.def, also where the C library's headers are older than the call.
#pragma once

#include <sys/syscall.h>

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif
#ifndef SYS_futex_wake
#define SYS_futex_wake 454
#endif
#ifndef SYS_futex_wait
#define SYS_futex_wait 455
#endif
#ifndef SYS_futex_requeue
#define SYS_futex_requeue 456
#endif

static_assert(SYS_read == 0 && SYS_openat == 257, "recordings hold the call numbers of x86-64");
