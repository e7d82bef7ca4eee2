/* SPDX-License-Identifier: MIT */
/* Marks for `reprise capture`: a job says what it is doing. Owns the C side of docs/markers.md; there is no library to
 * link. A mark is one prctl that the kernel refuses and the recorder sees: half a microsecond, and no effect
 * on the job (errno is kept). Names of at most 4095 bytes; "epoch", "step", "batch" and "fetch" have a meaning. */
#ifndef REPRISE_MARKER_H
#define REPRISE_MARKER_H

#include <errno.h>
#include <sys/prctl.h>

#ifdef __cplusplus
extern "C" {
#endif

#define REPRISE_MARKER_PRCTL 0x52505253
#define REPRISE_MARKER_MAGIC 0x6d61726bUL
#define REPRISE_MARKER_INSTANT 0UL
#define REPRISE_MARKER_BEGIN 1UL
#define REPRISE_MARKER_END 2UL

static inline void reprise_marker_emit(const char* name, long number, unsigned long phase) {
    const int kept = errno;
    /* The recorder reads the name while the call stands still, and cannot wait for a page that nobody touched. */
    for (const volatile char* at = name; *at != '\0'; ++at) {
    }
    prctl(REPRISE_MARKER_PRCTL, name, (unsigned long)number, phase, REPRISE_MARKER_MAGIC);
    errno = kept;
}

/* Something happened, once. */
static inline void reprise_mark(const char* name, long number) {
    reprise_marker_emit(name, number, REPRISE_MARKER_INSTANT);
}

/* A span of the calling thread; spans of different names may nest. */
static inline void reprise_begin(const char* name, long number) {
    reprise_marker_emit(name, number, REPRISE_MARKER_BEGIN);
}

static inline void reprise_end(const char* name, long number) { reprise_marker_emit(name, number, REPRISE_MARKER_END); }

#ifdef __cplusplus
}
#endif

#endif
