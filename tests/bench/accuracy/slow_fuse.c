/* SPDX-License-Identifier: MIT
 * A file system that is slow in latency and not in bandwidth: it passes every request on to a folder, and while it is slow each
 * request that a program waits for is answered DELAY later. Requests do not hold each other up: sixty-four wait at a time.
 *
 *   slow_fuse FOLDER MOUNTPOINT DELAY_US     SIGUSR1: slow from now on; SIGUSR2: fast again (as at the start)
 *
 * Stays in the foreground; ends when it is unmounted. The kernel caches names, attributes and pages as of a local disk.
 */
#define FUSE_USE_VERSION 34
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <fuse_lowlevel.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 64, BACKGROUND = 64 /* the kernel's default of 12 would limit read-ahead */ };
static const double KEPT_S = 1e9; /* nobody else changes the folder */

static int base = -1; /* the folder */
static atomic_int slow;
static struct timespec delay;

static const char *below(const char *path) { return path[1] == '\0' ? "." : path + 1; }
static int result(long got) { return got < 0 ? -errno : (int)got; }
static int file_of(const struct fuse_file_info *info) { return (int)info->fh; }

static void *start(struct fuse_conn_info *connection, struct fuse_config *config) {
    connection->want &= ~(unsigned)(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE); /* a request's kind is read from memory */
    connection->want &= ~(unsigned)FUSE_CAP_AUTO_INVAL_DATA; /* a write must not drop the pages that it wrote */
    connection->max_background = BACKGROUND;
    config->use_ino = 1;
    config->nullpath_ok = 1;
    config->kernel_cache = 1;
    config->entry_timeout = config->attr_timeout = config->negative_timeout = KEPT_S;
    return NULL;
}

static int slow_getattr(const char *path, struct stat *out, struct fuse_file_info *info) {
    return result(info ? fstat(file_of(info), out) : fstatat(base, below(path), out, AT_SYMLINK_NOFOLLOW));
}

static int slow_access(const char *path, int mode) { return result(faccessat(base, below(path), mode, 0)); }

static int slow_readlink(const char *path, char *out, size_t size) {
    ssize_t got = readlinkat(base, below(path), out, size - 1);
    if (got < 0) {
        return -errno;
    }
    out[got] = '\0';
    return 0;
}

static int slow_mknod(const char *path, mode_t mode, dev_t device) { return result(mknodat(base, below(path), mode, device)); }
static int slow_mkdir(const char *path, mode_t mode) { return result(mkdirat(base, below(path), mode)); }
static int slow_unlink(const char *path) { return result(unlinkat(base, below(path), 0)); }
static int slow_rmdir(const char *path) { return result(unlinkat(base, below(path), AT_REMOVEDIR)); }
static int slow_symlink(const char *text, const char *path) { return result(symlinkat(text, base, below(path))); }
static int slow_link(const char *from, const char *to) { return result(linkat(base, below(from), base, below(to), 0)); }

static int slow_rename(const char *from, const char *to, unsigned flags) {
    return result(renameat2(base, below(from), base, below(to), flags));
}

static int slow_chmod(const char *path, mode_t mode, struct fuse_file_info *info) {
    return result(info ? fchmod(file_of(info), mode) : fchmodat(base, below(path), mode, 0));
}

static int slow_chown(const char *path, uid_t user, gid_t group, struct fuse_file_info *info) {
    return result(info ? fchown(file_of(info), user, group) : fchownat(base, below(path), user, group, AT_SYMLINK_NOFOLLOW));
}

static int slow_utimens(const char *path, const struct timespec times[2], struct fuse_file_info *info) {
    return result(info ? futimens(file_of(info), times) : utimensat(base, below(path), times, AT_SYMLINK_NOFOLLOW));
}

static int slow_truncate(const char *path, off_t size, struct fuse_file_info *info) {
    if (info) {
        return result(ftruncate(file_of(info), size));
    }
    int fd = openat(base, below(path), O_WRONLY | O_CLOEXEC);
    int found = fd < 0 ? -errno : result(ftruncate(fd, size));
    if (fd >= 0) {
        close(fd);
    }
    return found;
}

/* O_DIRECT and O_APPEND are the kernel's business above; below, buffers are not aligned and offsets are given. */
static int open_below(const char *path, struct fuse_file_info *info, int more, mode_t mode) {
    int fd = openat(base, below(path), (info->flags & ~(O_DIRECT | O_APPEND | O_NOFOLLOW)) | more | O_CLOEXEC, mode);
    if (fd < 0) {
        return -errno;
    }
    info->fh = (uint64_t)fd;
    info->keep_cache = 1;
    return 0;
}

static int slow_open(const char *path, struct fuse_file_info *info) { return open_below(path, info, 0, 0); }
static int slow_create(const char *path, mode_t mode, struct fuse_file_info *info) { return open_below(path, info, O_CREAT, mode); }

static int slow_read(const char *path, char *out, size_t size, off_t at, struct fuse_file_info *info) {
    (void)path;
    return result(pread(file_of(info), out, size, at));
}

static int slow_write(const char *path, const char *from, size_t size, off_t at, struct fuse_file_info *info) {
    (void)path;
    return result(pwrite(file_of(info), from, size, at));
}

static int slow_fsync(const char *path, int data_only, struct fuse_file_info *info) {
    (void)path;
    return result(data_only ? fdatasync(file_of(info)) : fsync(file_of(info)));
}

static int slow_fallocate(const char *path, int mode, off_t at, off_t size, struct fuse_file_info *info) {
    (void)path;
    return result(fallocate(file_of(info), mode, at, size));
}

static off_t slow_lseek(const char *path, off_t at, int from, struct fuse_file_info *info) {
    (void)path;
    off_t found = lseek(file_of(info), at, from);
    return found < 0 ? -errno : found;
}

static int slow_release(const char *path, struct fuse_file_info *info) {
    (void)path;
    close(file_of(info));
    return 0;
}

static int slow_statfs(const char *path, struct statvfs *out) {
    (void)path;
    return result(fstatvfs(base, out));
}

static int slow_opendir(const char *path, struct fuse_file_info *info) {
    int fd = openat(base, below(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    info->fh = (uint64_t)(uintptr_t)folder;
    return folder ? 0 : -errno;
}

static int slow_readdir(const char *path, void *to, fuse_fill_dir_t fill, off_t at, struct fuse_file_info *info,
                        enum fuse_readdir_flags flags) {
    (void)path, (void)at, (void)flags;
    DIR *folder = (DIR *)(uintptr_t)info->fh; /* NOLINT: what opendir put there */
    rewinddir(folder);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        struct stat about = {.st_ino = entry->d_ino, .st_mode = (mode_t)entry->d_type << 12U};
        if (fill(to, entry->d_name, &about, 0, 0) != 0) {
            return -ENOMEM;
        }
    }
    return 0;
}

static int slow_releasedir(const char *path, struct fuse_file_info *info) {
    (void)path;
    return result(closedir((DIR *)(uintptr_t)info->fh)); /* NOLINT: what opendir put there */
}

static const struct fuse_operations OPERATIONS = {
    .init = start, .getattr = slow_getattr, .access = slow_access, .readlink = slow_readlink, .mknod = slow_mknod,
    .mkdir = slow_mkdir, .unlink = slow_unlink, .rmdir = slow_rmdir, .symlink = slow_symlink, .link = slow_link,
    .rename = slow_rename, .chmod = slow_chmod, .chown = slow_chown, .utimens = slow_utimens, .truncate = slow_truncate,
    .open = slow_open, .create = slow_create, .read = slow_read, .write = slow_write, .fsync = slow_fsync,
    .fallocate = slow_fallocate, .lseek = slow_lseek, .release = slow_release, .statfs = slow_statfs, .opendir = slow_opendir,
    .readdir = slow_readdir, .releasedir = slow_releasedir,
};

/* Nobody waits for the answer to these, or there is none. */
static int is_waited_for(uint32_t kind) {
    return kind != FUSE_FORGET && kind != FUSE_BATCH_FORGET && kind != FUSE_RELEASE && kind != FUSE_RELEASEDIR &&
           kind != FUSE_INTERRUPT && kind != FUSE_INIT && kind != FUSE_DESTROY;
}

/* The delay is one for each request, whatever the library makes of it: it is slept here, between receipt and work. */
static void *serve(void *session) {
    struct fuse_buf request = {0};
    prctl(PR_SET_TIMERSLACK, 1UL);
    while (!fuse_session_exited(session)) {
        int got = fuse_session_receive_buf(session, &request);
        if (got == -EINTR) {
            continue;
        }
        if (got <= 0) {
            break;
        }
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        struct fuse_in_header head;
        memcpy(&head, request.mem, sizeof head);
        if (atomic_load(&slow) && is_waited_for(head.opcode)) {
            until.tv_sec += delay.tv_sec;
            until.tv_nsec += delay.tv_nsec;
            if (until.tv_nsec >= 1000000000) {
                until.tv_nsec -= 1000000000;
                ++until.tv_sec;
            }
            while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
            }
        }
        fuse_session_process_buf(session, &request);
    }
    free(request.mem);
    fuse_session_exit(session);
    return NULL;
}

static void switch_to(int signal) { atomic_store(&slow, signal == SIGUSR1); }

int main(int argc, char **argv) {
    long delay_us = argc == 4 ? atol(argv[3]) : 0;
    if (delay_us <= 0) {
        fprintf(stderr, "usage: slow_fuse FOLDER MOUNTPOINT DELAY_US\n");
        return 2;
    }
    delay = (struct timespec){delay_us / 1000000, delay_us % 1000000 * 1000};
    base = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (base < 0) {
        perror(argv[1]);
        return 1;
    }
    umask(0);
    signal(SIGUSR1, switch_to);
    signal(SIGUSR2, switch_to);
    char *words[] = {argv[0], "-o", "allow_other,default_permissions,fsname=slow_fuse", NULL};
    struct fuse_args options = FUSE_ARGS_INIT(3, words);
    struct fuse *made = fuse_new(&options, &OPERATIONS, sizeof OPERATIONS, NULL);
    if (!made || fuse_mount(made, argv[2]) != 0) {
        return 1;
    }
    pthread_t threads[THREADS];
    int count = 0;
    while (count < THREADS && pthread_create(&threads[count], NULL, serve, fuse_get_session(made)) == 0) {
        ++count;
    }
    for (int i = 0; i < count; ++i) {
        pthread_join(threads[i], NULL);
    }
    fuse_unmount(made);
    fuse_destroy(made);
    return count > 0 ? 0 : 1;
}
