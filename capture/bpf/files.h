/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* From a descriptor to the open file and its inode. */
#ifndef REPRISE_CAPTURE_FILES_H
#define REPRISE_CAPTURE_FILES_H

#include "common.h"

#define ANON_INODE_MAGIC 0x09041934
#define TMPFS_MAGIC 0x01021994
#define S_IFMT 0170000
#define S_IFSOCK 0140000
#define S_IFREG 0100000
#define FMODE_CREATED 0x100000
#define AF_UNIX 1

static __always_inline struct file* file_of(struct task_struct* task, int fd) {
    struct file* file = 0;
    if (fd < 0) {
        return 0;
    }
    if (use_cast) {
        struct files_struct* files = task->files;
        if (!files) {
            return 0;
        }
        struct fdtable* table = files->fdt;
        if (!table || (__u32)fd >= table->max_fds) {
            return 0;
        }
        /* The table is an array of pointers; a list_head begins with one. */
        struct list_head* slot = CAST((void*)table->fd + (__u64)(__u32)fd * sizeof(void*), list_head);
        return (struct file*)slot->next;
    }
    struct fdtable* table = BPF_CORE_READ(task, files, fdt);
    if (!table || (__u32)fd >= BPF_CORE_READ(table, max_fds)) {
        return 0;
    }
    bpf_probe_read_kernel(&file, sizeof file, (void*)BPF_CORE_READ(table, fd) + (__u64)(__u32)fd * sizeof(void*));
    return file;
}

/* Inode number of the socket at the other end of a Unix socket. */
static __noinline __u64 peer_inode(struct file* file) {
    struct socket* socket = (struct socket*)BPF_CORE_READ(file, private_data);
    struct sock* sock = (struct sock*)BPF_CORE_READ(socket, sk);
    if (!sock || BPF_CORE_READ(sock, __sk_common.skc_family) != AF_UNIX) {
        return 0;
    }
    struct sock* peer = BPF_CORE_READ((struct unix_sock*)sock, peer);
    if (!peer) {
        return 0;
    }
    struct socket* other = BPF_CORE_READ(peer, sk_socket);
    if (!other) {
        return 0;
    }
    return BPF_CORE_READ((struct socket_alloc*)other, vfs_inode.i_ino);
}

#define WORD(a, b, c, d, e, f, g, h)                                                                            \
    ((__u64)(a) | (__u64)(b) << 8 | (__u64)(c) << 16 | (__u64)(d) << 24 | (__u64)(e) << 32 | (__u64)(f) << 40 | \
     (__u64)(g) << 48 | (__u64)(h) << 56)

/* Anonymous inodes and memory files say in the first bytes of their name what they are. */
static __noinline __u32 kind_by_name(struct file* file) {
    __u64 name = 0;
    bpf_probe_read_kernel(&name, sizeof name, BPF_CORE_READ(file, f_path.dentry, d_name.name));
    if (name == WORD('[', 'e', 'v', 'e', 'n', 't', 'f', 'd')) {
        return RAW_FD_EVENTFD;
    }
    if (name == WORD('[', 'e', 'v', 'e', 'n', 't', 'p', 'o')) {
        return RAW_FD_EPOLL;
    }
    if (name == WORD('[', 'i', 'o', '_', 'u', 'r', 'i', 'n')) {
        return RAW_FD_URING;
    }
    if (name << 16 == WORD('m', 'e', 'm', 'f', 'd', ':', 0, 0) << 16) {
        return RAW_FD_MEMFD;
    }
    return 0;
}

/* Fills every field; a `file` of 0 means that there is none. */
static __always_inline void fill_file(struct raw_fd* out, struct file* address, int fd) {
    __u64 magic = 0, device = 0, position = 0, size = 0, number = 0;
    __u32 flags = 0, mode = 0, generation = 0, created = 0;
    if (address && use_cast) {
        struct file* file = CAST(address, file);
        struct inode* inode = file->f_inode;
        position = file->f_pos;
        flags = file->f_flags;
        created = file->f_mode;
        if (inode) {
            number = inode->i_ino;
            size = inode->i_size;
            mode = inode->i_mode;
            generation = inode->i_generation;
            struct super_block* super = inode->i_sb;
            if (super) {
                device = super->s_dev;
                magic = super->s_magic;
            }
        }
    } else if (address) {
        struct inode* inode = BPF_CORE_READ(address, f_inode);
        position = BPF_CORE_READ(address, f_pos);
        flags = BPF_CORE_READ(address, f_flags);
        created = BPF_CORE_READ(address, f_mode);
        number = BPF_CORE_READ(inode, i_ino);
        size = BPF_CORE_READ(inode, i_size);
        mode = BPF_CORE_READ(inode, i_mode);
        generation = BPF_CORE_READ(inode, i_generation);
        device = BPF_CORE_READ(inode, i_sb, s_dev);
        magic = BPF_CORE_READ(inode, i_sb, s_magic);
    }
    out->file = (__u64)address;
    out->inode = number;
    out->size = size;
    out->position = position;
    out->peer = 0;
    out->device = device;
    out->generation = generation;
    out->flags = flags;
    out->mode = mode;
    out->fd = fd;
    out->info = created & FMODE_CREATED ? RAW_FD_CREATED : 0;
    if ((mode & S_IFMT) == S_IFSOCK) {
        out->peer = peer_inode(address);
    }
    if (magic == ANON_INODE_MAGIC || magic == TMPFS_MAGIC) {
        out->info |= kind_by_name(address);
    }
}

static __always_inline void fill_part_fd(struct raw_part* part, struct raw_fd* out, struct file* file, int fd,
                                         __u32 which) {
    part->type = RAW_PART_FD;
    part->size = sizeof *part + sizeof *out;
    part->which = which;
    part->length = 1;
    fill_file(out, file, fd);
}

/* Files remembered of late, so that the map is asked once per file and not at every open. */
#define RECENT_FILES 4096
static struct file_key recent_files[RECENT_FILES];

/* Remembers a file, so that its evictions are recorded as well. */
static __always_inline void remember_file(const struct raw_fd* fd) {
    if (!want_pagecache || (fd->mode & S_IFMT) != S_IFREG) {
        return;
    }
    struct file_key key = {.inode = fd->inode, .device = fd->device};
    struct file_key* recent = &recent_files[(fd->inode ^ fd->device) & (RECENT_FILES - 1)];
    if (recent->inode == key.inode && recent->device == key.device) {
        return;
    }
    const __u8 yes = 1;
    bpf_map_update_elem(&files, &key, &yes, 0);
    *recent = key;
}

#endif
