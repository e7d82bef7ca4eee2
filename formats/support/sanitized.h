// SPDX-License-Identifier: MIT
// Whether a sanitizer's runtime is in this build: gcc and clang say it differently.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define REPRISE_ASAN 1
#elif defined(__SANITIZE_THREAD__)
#define REPRISE_TSAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define REPRISE_ASAN 1
#elif __has_feature(thread_sanitizer)
#define REPRISE_TSAN 1
#endif
#endif
