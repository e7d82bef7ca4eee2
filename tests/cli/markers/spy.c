/* SPDX-License-Identifier: MIT */
/* Preloaded: writes the marks a program makes to $MARKS, as "pid name number phase", and refuses them as the kernel does. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "reprise_marker.h"

int prctl(int option, ...)
{
    unsigned long a[4];
    va_list list;
    va_start(list, option);
    for (int i = 0; i < 4; i++)
        a[i] = va_arg(list, unsigned long);
    va_end(list);
    const char *path = getenv("MARKS");
    if (option == REPRISE_MARKER_PRCTL && a[3] == REPRISE_MARKER_MAGIC && path != NULL) {
        char line[200];
        const int size = snprintf(line, sizeof line, "%d %s %ld %lu\n", (int)getpid(), (const char *)a[0], (long)a[1], a[2]);
        const int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0 || write(fd, line, (size_t)size) != size)
            abort();
        close(fd);
    }
    return (int)syscall(SYS_prctl, option, a[0], a[1], a[2], a[3]);
}
