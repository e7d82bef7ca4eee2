/* SPDX-License-Identifier: MIT */
/* What the programs of this folder share. A program makes calls below the directory argv[1] and writes one line per
 * call into the file argv[2]: "TID KIND FIELD=VALUE... result=N", with every field the op table gives the kind
 * (README.md). The file is memory, mapped before the first call, so that writing down what was done does nothing that
 * is recorded. With argv[2] "--setup" a program only makes the files that shall be there before. Every call checks its
 * own result: a program that did not do what it says ends with 1. */
#ifndef REPRISE_TESTS_EXPECT_H
#define REPRISE_TESTS_EXPECT_H

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define UNUSED __attribute__((unused))
#define L(x) ((long)(x))
#define KIB 1024L
#define MIB (1024L * 1024L)
#define ANY_FD LONG_MAX /* wanted: a descriptor */

static char* g_text;           /* the lines; zeros after the last one */
static _Atomic size_t* g_used; /* bytes of it, shared by all processes */
static const size_t g_room = 4 << 20;
static char g_root[PATH_MAX];
static const char* g_expect_path;
static char g_buffer[4 << 20] __attribute__((aligned(4096)));

__attribute__((format(printf, 1, 2), noreturn)) UNUSED static void give_up(const char* format, ...) {
    va_list list;
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fputc('\n', stderr);
    _exit(1);
}

static long g_say_for; /* another task that did it; 0: who writes */

/* Writes one line. */
__attribute__((format(printf, 1, 2))) UNUSED static void say(const char* format, ...) {
    char line[16384];
    size_t used = (size_t)snprintf(line, sizeof line, "%ld ", g_say_for ? g_say_for : syscall(SYS_gettid));
    va_list list;
    va_start(list, format);
    used += (size_t)vsnprintf(line + used, sizeof line - used, format, list);
    va_end(list);
    if (used + 1 >= sizeof line) {
        give_up("a line is too long");
    }
    line[used++] = '\n';
    const size_t at = atomic_fetch_add(g_used, used);
    if (at + used >= g_room) {
        give_up("too many lines");
    }
    memcpy(g_text + at, line, used);
}

/* The call itself; its result, or -errno. */
UNUSED static long call6(long nr, long a, long b, long c, long d, long e, long f) {
    const long result = syscall(nr, a, b, c, d, e, f);
    return result == -1 ? -errno : result;
}
#define CALL0(nr) call6(nr, 0, 0, 0, 0, 0, 0)
#define CALL1(nr, a) call6(nr, L(a), 0, 0, 0, 0, 0)
#define CALL2(nr, a, b) call6(nr, L(a), L(b), 0, 0, 0, 0)
#define CALL3(nr, a, b, c) call6(nr, L(a), L(b), L(c), 0, 0, 0)
#define CALL4(nr, a, b, c, d) call6(nr, L(a), L(b), L(c), L(d), 0, 0)
#define CALL5(nr, a, b, c, d, e) call6(nr, L(a), L(b), L(c), L(d), L(e), 0)
#define CALL6(nr, a, b, c, d, e, f) call6(nr, L(a), L(b), L(c), L(d), L(e), L(f))

/* A call that must do what the program says. */
#define WANT(got, want) want_(got, want, __FILE__, __LINE__)
UNUSED static long want_(long got, long want, const char* file, int line) {
    if (want == ANY_FD ? got < 0 : got != want) {
        give_up("%s:%d: the call gave %ld, the test wants %ld", file, line, got, want);
    }
    return got;
}

/* --- names. A file is named by its path below the root; "x#2" means its third generation. */

UNUSED static const char* full(const char* path) {
    static _Thread_local char room[8][PATH_MAX + 300];
    static _Thread_local unsigned next;
    char* const out = room[next++ % 8];
    const char* const mark = strrchr(path, '#');
    const int length = mark ? (int)(mark - path) : (int)strlen(path);
    if (length == 0) {
        snprintf(out, sizeof room[0], "%s", g_root);
    } else {
        snprintf(out, sizeof room[0], "%s/%.*s", g_root, length, path);
    }
    return out;
}

/* --- descriptors: a name for each, which open instance it belongs to, its number */

struct descriptor {
    char name[24], handle[24];
    int fd;
};
static struct descriptor g_descriptors[256];

UNUSED static struct descriptor* slot_(const char* name, int make) {
    struct descriptor* empty = NULL;
    for (size_t i = 0; i < sizeof g_descriptors / sizeof g_descriptors[0]; i++) {
        struct descriptor* const each = &g_descriptors[i];
        if (strcmp(each->name, name) == 0) {
            return each;
        }
        if (empty == NULL && each->name[0] == 0) {
            empty = each;
        }
    }
    if (!make || empty == NULL) {
        give_up("no descriptor '%s'", name);
    }
    snprintf(empty->name, sizeof empty->name, "%s", name);
    return empty;
}

UNUSED static void bind_fd(const char* name, const char* handle, long fd) {
    struct descriptor* const slot = slot_(name, 1);
    snprintf(slot->handle, sizeof slot->handle, "%s", handle);
    slot->fd = (int)fd;
}
UNUSED static int fd_(const char* name) { return slot_(name, 0)->fd; }
UNUSED static const char* handle_(const char* name) { return slot_(name, 0)->handle; }
/* "handle=H fd=N" of a descriptor */
UNUSED static const char* on(const char* name) {
    static _Thread_local char room[4][64];
    static _Thread_local unsigned next;
    char* const out = room[next++ % 4];
    snprintf(out, sizeof room[0], "handle=%s fd=%d", handle_(name), fd_(name));
    return out;
}

/* --- open instances */

UNUSED static void say_open(const char* name, const char* path, long flags, long mode, long result) {
    if (result >= 0) {
        bind_fd(name, name, result);
    }
    say("open file=%s handle=%s flags=%ld mode=%ld result=%ld", path, result >= 0 ? name : "-", flags, mode, result);
}
UNUSED static void do_open(const char* name, const char* path, int flags, int mode, long want) {
    say_open(name, path, flags, mode, WANT(CALL4(SYS_openat, AT_FDCWD, full(path), flags, mode), want));
}
UNUSED static void do_close(const char* name) {
    say("close %s result=%ld", on(name), WANT(CALL1(SYS_close, fd_(name)), 0));
    slot_(name, 0)->name[0] = 0;
}

/* --- data */

UNUSED static void do_read(const char* name, long size, long offset, long want) {
    const long got = WANT(CALL3(SYS_read, fd_(name), g_buffer, size), want);
    say("read %s offset=%ld size=%ld flags=0 result=%ld", on(name), offset, size, got);
}
UNUSED static void do_write(const char* name, long size, long offset, long want) {
    const long got = WANT(CALL3(SYS_write, fd_(name), g_buffer, size), want);
    say("write %s offset=%ld size=%ld flags=0 result=%ld", on(name), offset, size, got);
}
UNUSED static void do_pread(const char* name, long size, long offset, long want) {
    const long got = WANT(CALL4(SYS_pread64, fd_(name), g_buffer, size, offset), want);
    say("pread %s offset=%ld size=%ld flags=0 result=%ld", on(name), offset, size, got);
}
UNUSED static void do_pwrite(const char* name, long size, long offset, long want) {
    const long got = WANT(CALL4(SYS_pwrite64, fd_(name), g_buffer, size, offset), want);
    say("pwrite %s offset=%ld size=%ld flags=0 result=%ld", on(name), offset, size, got);
}
UNUSED static void do_lseek(const char* name, long offset, int whence, long want) {
    const long got = WANT(CALL3(SYS_lseek, fd_(name), offset, whence), want);
    say("lseek %s offset=%ld arg=%d result=%ld", on(name), offset, whence, got);
}

/* --- names and attributes, the common forms */

UNUSED static void do_fstat(const char* name) {
    struct stat st;
    say("fstat %s result=%ld", on(name), WANT(CALL2(SYS_fstat, fd_(name), &st), 0));
}
UNUSED static void do_stat(const char* path, long want) {
    struct stat st;
    say("stat file=%s flags=0 result=%ld", path, WANT(CALL2(SYS_stat, full(path), &st), want));
}
UNUSED static void do_mkdir(const char* path, int mode, long want) {
    say("mkdir file=%s mode=%d result=%ld", path, mode, WANT(CALL2(SYS_mkdir, full(path), mode), want));
}
UNUSED static void do_unlink(const char* path, long want) {
    say("unlink file=%s result=%ld", path, WANT(CALL1(SYS_unlink, full(path)), want));
}
UNUSED static void do_rename(const char* from, const char* to, long want) {
    say("rename file=%s file2=%s flags=0 result=%ld", from, to, WANT(CALL2(SYS_rename, full(from), full(to)), want));
}
UNUSED static void do_ftruncate(const char* name, long size, long want) {
    say("ftruncate %s size=%ld result=%ld", on(name), size, WANT(CALL2(SYS_ftruncate, fd_(name), size), want));
}
UNUSED static void do_fsync(const char* name) {
    say("fsync %s result=%ld", on(name), WANT(CALL1(SYS_fsync, fd_(name)), 0));
}

/* --- before the recording (--setup), and around it */

UNUSED static void make_file(const char* path, long bytes) {
    const int fd = open(full(path), O_CREAT | O_TRUNC | O_WRONLY, 0644);
    for (long i = 0; i < (long)sizeof g_buffer; i++) {
        g_buffer[i] = (char)(i * 7 + i / 4096);
    }
    for (long done = 0; fd >= 0 && done < bytes;) {
        const long most = bytes - done < (long)sizeof g_buffer ? bytes - done : (long)sizeof g_buffer;
        const long n = write(fd, g_buffer, (size_t)most);
        if (n <= 0) {
            give_up("cannot make %s: %s", path, strerror(errno));
        }
        done += n;
    }
    if (fd < 0 || close(fd) != 0) {
        give_up("cannot make %s: %s", path, strerror(errno));
    }
}

UNUSED static void map_expectation(void) {
    const int fd = open(g_expect_path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0 || ftruncate(fd, (off_t)g_room) != 0) {
        give_up("cannot make %s: %s", g_expect_path, strerror(errno));
    }
    g_text = mmap(NULL, g_room, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    g_used = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (g_text == MAP_FAILED || g_used == MAP_FAILED) {
        give_up("cannot map %s: %s", g_expect_path, strerror(errno));
    }
    close(fd);
    *g_used = strnlen(g_text, g_room);
}

static void setup(void);

/* First line of main. `scope`: kinds besides file calls that the program accounts for, all of them, e.g. "pipe send".
 */
UNUSED static void begin(int argc, char** argv, const char* scope) {
    if (argc < 3 || argv[1][0] != '/' || strlen(argv[1]) >= sizeof g_root) {
        give_up("usage: %s /DIRECTORY EXPECT|--setup", argv[0]);
    }
    strcpy(g_root, argv[1]); /* as it is: looking at it would be recorded */
    umask(0);
    if (strcmp(argv[2], "--setup") == 0) {
        setup();
        exit(0);
    }
    g_expect_path = argv[2];
    map_expectation();
    memset(g_buffer, 'x', sizeof g_buffer); /* present, so that no read finds fresh memory */
    if (*g_used == 0) {
        say("root %s", g_root);
        if (scope != NULL) {
            say("scope %s", scope);
        }
    }
}

/* Fork and wait as the kernel knows them, so that libc adds nothing. */
UNUSED static int do_fork(void) { return (int)WANT(CALL0(SYS_fork), ANY_FD); }
UNUSED static void do_wait(int pid) {
    int status = 0;
    if (CALL4(SYS_wait4, pid, &status, 0, 0) != pid || status != 0) {
        give_up("the child failed: status %d", status);
    }
}

#endif
