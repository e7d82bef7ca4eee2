// SPDX-License-Identifier: MIT
// The bare system call: results as -errno, no errno, no cancellation points, no interceptors; and when it began
// and ended.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <type_traits>

#include "calibrate/clock.h"

namespace reprise::sys {

template <class T>
inline long word([[maybe_unused]] T value) {
    if constexpr (std::is_null_pointer_v<T>) {
        return 0;
    } else if constexpr (std::is_pointer_v<T>) {
        return reinterpret_cast<long>(value);
    } else {
        return static_cast<long>(value);
    }
}

#if defined(__x86_64__)
[[gnu::always_inline]] inline int64_t raw(long number, long a, long b, long c, long d, long e, long f) {
    long result = 0;
    register long r10 asm("r10") = d;
    register long r8 asm("r8") = e;
    register long r9 asm("r9") = f;
    asm volatile("syscall"
                 : "=a"(result)
                 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                 : "rcx", "r11", "memory");
    return result;
}
[[gnu::always_inline]] inline int64_t raw(long number, long a, long b, long c, long d) {
    long result = 0;
    register long r10 asm("r10") = d;
    asm volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10) : "rcx", "r11", "memory");
    return result;
}
[[gnu::always_inline]] inline int64_t raw(long number, long a, long b, long c) {
    long result = 0;
    asm volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return result;
}
#else
inline int64_t raw(long number, long a, long b, long c, long d = 0, long e = 0, long f = 0) {
    const long result = ::syscall(number, a, b, c, d, e, f);
    return result < 0 ? -errno : result;
}
#endif

/// When the calls that an op is made of began and ended, in ticks: what the engine does around them is neither in the
/// recording nor the op's. Costs two clock reads a call, so that it is off unless wanted.
struct CallTicks {
    bool wanted = false;
    uint64_t entered = 0;  // 0: no call yet
    uint64_t left = 0;
    void reset() { entered = left = 0; }
};
/// Of the calling thread.
inline constinit thread_local CallTicks call_ticks;

/// The call's result, or -errno. Not counted as time of the op: something that the job did not call.
template <class... Args>
[[gnu::always_inline]] inline int64_t aside(long number, Args... args) {
    if constexpr (sizeof...(Args) <= 3) {
        long words[3] = {0, 0, 0};
        int n = 0;
        ((words[n++] = word(args)), ...);
        return raw(number, words[0], words[1], words[2]);
    } else if constexpr (sizeof...(Args) == 4) {
        long words[4];
        int n = 0;
        ((words[n++] = word(args)), ...);
        return raw(number, words[0], words[1], words[2], words[3]);
    } else {
        static_assert(sizeof...(Args) <= 6);
        long words[6] = {0, 0, 0, 0, 0, 0};
        int n = 0;
        ((words[n++] = word(args)), ...);
        return raw(number, words[0], words[1], words[2], words[3], words[4], words[5]);
    }
}

/// The call's result, or -errno.
template <class... Args>
[[gnu::always_inline]] inline int64_t call(long number, Args... args) {
    if (!call_ticks.wanted) {
        return aside(number, args...);
    }
    const uint64_t entered = ticks_now();
    const int64_t result = aside(number, args...);
    call_ticks.left = ticks_now();
    if (call_ticks.entered == 0) {
        call_ticks.entered = entered;
    }
    return result;
}

}  // namespace reprise::sys
