/* SPDX-License-Identifier: MIT
 * A file system with planted faults, which passes every request on to a folder: for examples/planted.sh, which must find them.
 *
 *   broken_fuse FOLDER MOUNTPOINT corrupt N     of every N bytes written, one is stored with a bit flipped
 *   broken_fuse FOLDER MOUNTPOINT slow US       every read is answered US microseconds later
 *   broken_fuse FOLDER MOUNTPOINT short         every 100th write of more than a byte stores, and returns, one byte less
 *   broken_fuse FOLDER MOUNTPOINT append        every file that is renamed gets a byte more
 *
 * Stays in the foreground; ends when it is unmounted.
 */
#define FUSE_USE_VERSION 34
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

static int base = -1;
static enum { NONE, CORRUPT, SLOW, SHORT, APPEND } fault;
static unsigned long amount;
static atomic_ulong written, writes;

static const char *below(const char *path) { return path[1] == '\0' ? "." : path + 1; }
static int result(long got) { return got < 0 ? -errno : (int)got; }
static int file_of(const struct fuse_file_info *info) { return (int)info->fh; }

static void *start(struct fuse_conn_info *connection, struct fuse_config *config) {
    (void)connection;
    config->use_ino = 1;
    return NULL;
}
static int get_attributes(const char *path, struct stat *out, struct fuse_file_info *info) {
    return result(info ? fstat(file_of(info), out) : fstatat(base, below(path), out, AT_SYMLINK_NOFOLLOW));
}
static int read_link(const char *path, char *out, size_t size) {
    ssize_t got = readlinkat(base, below(path), out, size - 1);
    if (got < 0) {
        return -errno;
    }
    out[got] = '\0';
    return 0;
}
static int make_directory(const char *path, mode_t mode) { return result(mkdirat(base, below(path), mode)); }
static int remove_name(const char *path) { return result(unlinkat(base, below(path), 0)); }
static int remove_directory(const char *path) { return result(unlinkat(base, below(path), AT_REMOVEDIR)); }
static int make_link(const char *target, const char *path) { return result(symlinkat(target, base, below(path))); }
static int hard_link(const char *from, const char *to) { return result(linkat(base, below(from), base, below(to), 0)); }
static int rename_file(const char *from, const char *to, unsigned flags) {
    int got = result(renameat2(base, below(from), base, below(to), flags));
    bool data = !strstr(to, "/.reprise-"); /* not what reprise itself keeps there */
    int file = got == 0 && data && fault == APPEND ? openat(base, below(to), O_WRONLY | O_APPEND) : -1;
    if (file >= 0) {
        (void)!write(file, "x", 1);
        close(file);
    }
    return got;
}
static int change_mode(const char *path, mode_t mode, struct fuse_file_info *info) {
    return result(info ? fchmod(file_of(info), mode) : fchmodat(base, below(path), mode, 0));
}
static int change_owner(const char *path, uid_t user, gid_t group, struct fuse_file_info *info) {
    (void)info;
    return result(fchownat(base, below(path), user, group, AT_SYMLINK_NOFOLLOW));
}
static int set_times(const char *path, const struct timespec times[2], struct fuse_file_info *info) {
    (void)info;
    return result(utimensat(base, below(path), times, AT_SYMLINK_NOFOLLOW));
}
static int set_size(const char *path, off_t size, struct fuse_file_info *info) {
    int file = info ? file_of(info) : openat(base, below(path), O_WRONLY);
    int got = file < 0 ? -errno : result(ftruncate(file, size));
    if (!info && file >= 0) {
        close(file);
    }
    return got;
}
/* Direct I/O has its own rules for buffers, and appending its own offset: both are the kernel's above. */
static int open_file(const char *path, struct fuse_file_info *info) {
    int file = openat(base, below(path), (info->flags & ~(O_DIRECT | O_APPEND)) | O_CLOEXEC);
    info->fh = (uint64_t)file;
    return file < 0 ? -errno : 0;
}
static int create_file(const char *path, mode_t mode, struct fuse_file_info *info) {
    int file = openat(base, below(path), (info->flags & ~(O_DIRECT | O_APPEND)) | O_CREAT | O_CLOEXEC, mode);
    info->fh = (uint64_t)file;
    return file < 0 ? -errno : 0;
}
static int read_file(const char *path, char *out, size_t size, off_t offset, struct fuse_file_info *info) {
    (void)path;
    if (fault == SLOW) {
        struct timespec delay = {(time_t)(amount / 1000000), (long)(amount % 1000000) * 1000};
        nanosleep(&delay, NULL);
    }
    return result(pread(file_of(info), out, size, offset));
}
static int write_file(const char *path, const char *data, size_t size, off_t offset, struct fuse_file_info *info) {
    (void)path;
    if (fault == SHORT && size > 1 && atomic_fetch_add(&writes, 1) % 100 == 99) {
        --size;
    }
    unsigned long before = atomic_fetch_add(&written, size);
    if (fault != CORRUPT || before / amount == (before + size) / amount) {
        return result(pwrite(file_of(info), data, size, offset));
    }
    char *copy = malloc(size);
    if (!copy) {
        return -ENOMEM;
    }
    memcpy(copy, data, size);
    for (unsigned long next = (before / amount + 1) * amount; next <= before + size; next += amount) {
        unsigned long at = next - before - 1;
        copy[at] = (char)(copy[at] ^ 0x10);
        fprintf(stderr, "corrupted %s %ld\n", path ? path : "?", (long)(offset + (off_t)at));
    }
    int got = result(pwrite(file_of(info), copy, size, offset));
    free(copy);
    return got;
}
static int status(const char *path, struct statvfs *out) {
    (void)path;
    return result(fstatvfs(base, out));
}
static int sync_file(const char *path, int data_only, struct fuse_file_info *info) {
    (void)path;
    return result(data_only ? fdatasync(file_of(info)) : fsync(file_of(info)));
}
static int release_file(const char *path, struct fuse_file_info *info) {
    (void)path;
    close(file_of(info));
    return 0;
}
static int read_directory(const char *path, void *buffer, fuse_fill_dir_t fill, off_t offset, struct fuse_file_info *info,
                          enum fuse_readdir_flags flags) {
    (void)offset, (void)info, (void)flags;
    int file = openat(base, below(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = file < 0 ? NULL : fdopendir(file);
    if (!stream) {
        return -errno;
    }
    for (struct dirent *entry = readdir(stream); entry; entry = readdir(stream)) {
        struct stat about = {.st_ino = entry->d_ino, .st_mode = (mode_t)entry->d_type << 12};
        fill(buffer, entry->d_name, &about, 0, (enum fuse_fill_dir_flags)0);
    }
    closedir(stream);
    return 0;
}
static int allocate(const char *path, int mode, off_t offset, off_t size, struct fuse_file_info *info) {
    (void)path;
    return result(fallocate(file_of(info), mode, offset, size));
}

static const struct fuse_operations operations = {
    .init = start, .getattr = get_attributes, .readlink = read_link, .mkdir = make_directory, .unlink = remove_name,
    .rmdir = remove_directory, .symlink = make_link, .rename = rename_file, .link = hard_link, .chmod = change_mode,
    .chown = change_owner, .truncate = set_size, .open = open_file, .read = read_file, .write = write_file,
    .statfs = status, .fsync = sync_file, .release = release_file, .readdir = read_directory, .create = create_file,
    .utimens = set_times, .fallocate = allocate,
};

int main(int argc, char **argv) {
    static const char *const names[] = {"none", "corrupt", "slow", "short", "append"};
    if (argc < 4 || (base = open(argv[1], O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0) {
        fprintf(stderr, "usage: broken_fuse FOLDER MOUNTPOINT none|corrupt N|slow US|short|append\n");
        return 2;
    }
    for (unsigned i = 0; i < sizeof names / sizeof *names; ++i) {
        fault = strcmp(argv[3], names[i]) == 0 ? i : fault;
    }
    amount = argc > 4 ? strtoul(argv[4], NULL, 10) : 1;
    if (amount == 0) {
        return 2;
    }
    umask(0);
    char *words[] = {argv[0], "-f", "-ofsname=broken", argv[2]};
    return fuse_main(4, words, &operations, NULL);
}
