/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* From a descriptor to the open file and its inode. */
#ifndef REPRISE_CAPTURE_FILES_H
#define REPRISE_CAPTURE_FILES_H

#include "sockets.h"

#define ANON_INODE_MAGIC 0x09041934
#define TMPFS_MAGIC 0x01021994
#define OVERLAYFS_MAGIC 0x794c7630
#define S_IFMT 0170000
#define S_IFSOCK 0140000
#define S_IFREG 0100000
#define S_IFBLK 0060000
#define FMODE_CREATED 0x100000
#define AF_UNIX 1
#define AF_INET 2
#define SOCK_STREAM 1
#define O_PATH 010000000
#define O_DIRECT 040000

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

/* The same as a number, to compute with. */
static __always_inline __u64 number_of_file(struct task_struct* task, int fd) {
    if (fd < 0) {
        return 0;
    }
    if (use_cast) {
        struct files_struct* files = task->files;
        struct fdtable* table = files ? files->fdt : 0;
        if (!table || (__u32)fd >= table->max_fds) {
            return 0;
        }
        return CAST((void*)table->fd + (__u64)(__u32)fd * sizeof(void*), io_uring_cqe)->user_data;
    }
    return (__u64)file_of(task, fd);
}

/* What names the other end of a TCP connection: the same for both ends but for the last bit, which tells them apart.
 * Its first bit is set, which no inode number has. 0 while it is not connected. Sockets of IPv6 have an IPv4 address as
 * well: their own where it is mapped, else the same one for all, and the ports tell connections of one host apart.
 * Written without branches: the verifier gets here on many ways. */
static __always_inline __u64 peer_of_connection(struct sock* sock) {
    __u64 here = BPF_CORE_READ(sock, __sk_common.skc_rcv_saddr), there = BPF_CORE_READ(sock, __sk_common.skc_daddr);
    __u64 port_here = BPF_CORE_READ(sock, __sk_common.skc_num);
    __u64 port_there = __builtin_bswap16(BPF_CORE_READ(sock, __sk_common.skc_dport));
    __u64 near = (port_here << 32 | here) * 0x9e3779b97f4a7c15ULL,
          far = (port_there << 32 | there) * 0x9e3779b97f4a7c15ULL;
    __u64 both = ((near ^ far) + (near & far)) * 0xbf58476d1ce4e5b9ULL;
    __u64 connected = (0 - port_there) >> 63; /* 1 where a port is there */
    __u64 which = ((near >> 1) - (far >> 1)) >> 63;
    return (((both | RAW_PEER_CONNECTION) & ~1ULL) | which) * connected;
}

/* Of a Unix socket the inode number of the socket at the other end; of a TCP connection what names that end. Not
 * static, so that the verifier looks at it once and not at each of its calls. */
__noinline __u64 peer_of(__u64 address) {
    struct file* file = (struct file*)address;
    struct socket* socket = (struct socket*)BPF_CORE_READ(file, private_data);
    struct sock* sock = (struct sock*)BPF_CORE_READ(socket, sk);
    if (!sock) {
        return 0;
    }
    __u32 family = BPF_CORE_READ(sock, __sk_common.skc_family);
    if (family == AF_INET || family == AF_INET6) {
        if (BPF_CORE_READ(socket, type) != SOCK_STREAM) {
            return 0;
        }
        const __u64 name = peer_of_connection(sock);
        if (want_network && name) {
            note_connection(sock, socket, name);
        }
        return name;
    }
    if (family != AF_UNIX) {
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

/* Plain loads where there are any: two calls of helpers take 100 ns. */
static __always_inline __u64 name_begin(struct file* file) {
    if (!use_cast) {
        return word_at(BPF_CORE_READ(file, f_path.dentry, d_name.name));
    }
    const struct dentry* dentry = CAST(file, file)->f_path.dentry;
    return dentry ? word_at(dentry->d_name.name) : 0;
}

/* Anonymous inodes and memory files say in the first bytes of their name what they are. */
static __noinline __u32 kind_by_name(struct file* file) {
    const __u64 name = name_begin(file);
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
        struct file* file = CAST((void*)address, file);
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
    out->peer_or_pages = 0;
    out->device = device;
    out->generation = generation;
    out->flags = flags;
    out->mode = mode;
    out->fd = fd;
    out->info = created & FMODE_CREATED ? RAW_FD_CREATED : 0;
    if ((mode & S_IFMT) == S_IFSOCK) {
        out->peer_or_pages = peer_of(*(volatile __u64*)&out->file); /* the address as a number, see fill_cached */
    }
    if (magic == ANON_INODE_MAGIC || magic == TMPFS_MAGIC) {
        out->info |= kind_by_name(address) | (magic == TMPFS_MAGIC ? RAW_FD_TMPFS : 0);
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

/* The inode below that of a file on overlayfs, which has the pages; 0: not found. Since 6.13 a file's private data
 * points to a struct that begins with the file below, before that to the file itself. What is found shows that it is
 * one. */
static __always_inline struct inode* inode_below(struct file* file) {
    struct inode* inode = BPF_CORE_READ(file, f_inode);
    const long long size = BPF_CORE_READ(inode, i_size);
    void* data = BPF_CORE_READ(file, private_data);
    for (int i = 0; i < 2 && data; ++i) {
        struct file* candidate = (struct file*)data;
        struct inode* below = BPF_CORE_READ(candidate, f_inode);
        if (below && below != inode && BPF_CORE_READ(candidate, f_mapping, host) == below &&
            (BPF_CORE_READ(below, i_mode) & S_IFMT) == S_IFREG && BPF_CORE_READ(below, i_size) == size) {
            /* Of an overlay on an overlay the pages are further below. */
            return BPF_CORE_READ(below, i_sb, s_magic) == OVERLAYFS_MAGIC ? 0 : below;
        }
        void* next = 0;
        bpf_probe_read_kernel(&next, sizeof next, data);
        data = next;
    }
    return 0;
}

/* What was told of late, so that it is told once per file and not at every open. */
#define RECENT_BACKINGS 1024
struct backing {
    __u64 inode, below;
    __u32 device, device_below;
};
static struct backing recent_backings[RECENT_BACKINGS];

/* On overlayfs: tells which file below has the pages; returns 1 + how many there are, 0 where it was not found. */
static __always_inline int tell_backing(__u64 inode, __u32 device, __u64 address) {
    struct inode* below = inode_below((struct file*)address);
    struct backing found = {.inode = inode, .device = device};
    int known = 0;
    if (below) {
        found.below = BPF_CORE_READ(below, i_ino);
        found.device_below = BPF_CORE_READ(below, i_sb, s_dev);
        known = BPF_CORE_READ(below, i_mapping, nrpages) + 1;
    }
    struct backing* recent = &recent_backings[(found.inode ^ found.device) & (RECENT_BACKINGS - 1)];
    if (recent->inode == found.inode && recent->device == found.device && recent->below == found.below &&
        recent->device_below == found.device_below) {
        return known;
    }
    struct raw_backing* record = RESERVE(raw_backing);
    if (!record) {
        return known;
    }
    *recent = found;
    fill_head(&record->head, RAW_BACKING, sizeof *record, 0, bpf_ktime_get_ns());
    record->inode = found.inode;
    record->below = found.below;
    record->device = found.device;
    record->device_below = found.device_below;
    SUBMIT(record);
    if (below) {
        struct file_key key = {.inode = found.below, .device = found.device_below};
        const __u8 yes = 1;
        bpf_map_update_elem(&files, &key, &yes, 0);
    }
    return known;
}

/* 1 + the pages of an open regular file that are in the page cache, 0 where that is not known; with LACKS_BLOCKS where
 * these and its blocks are fewer than its size needs: it has holes (or what is compressed). What was written and has no
 * block yet is in memory. Not static, so that the verifier looks at it once and not at each of its calls. */
#define LACKS_BLOCKS (1ULL << 62)
#define FEWEST_HOLE_BYTES (64 << 10)
__noinline __u64 cached_pages(__u64 address, __u64 inode, __u32 device) {
    struct file* file = (struct file*)address;
    __u64 pages = 0, magic = 0, size = 0, blocks = 0;
    __u32 mode = 0, flags = 0;
    if (use_cast) {
        file = CAST((void*)address, file);
        struct inode* of = file->f_inode;
        struct super_block* super = of ? of->i_sb : 0;
        struct address_space* mapping = file->f_mapping;
        flags = file->f_flags;
        mode = of ? of->i_mode : 0;
        magic = super ? super->s_magic : 0;
        pages = mapping ? mapping->nrpages : 0;
        size = of ? of->i_size : 0;
        blocks = of ? of->i_blocks : 0;
    } else {
        flags = BPF_CORE_READ(file, f_flags);
        mode = BPF_CORE_READ(file, f_inode, i_mode);
        magic = BPF_CORE_READ(file, f_inode, i_sb, s_magic);
        pages = BPF_CORE_READ(file, f_mapping, nrpages);
        size = BPF_CORE_READ(file, f_inode, i_size);
        blocks = BPF_CORE_READ(file, f_inode, i_blocks);
    }
    if ((mode & S_IFMT) != S_IFREG || flags & O_PATH) {
        return 0;
    }
    if (magic != OVERLAYFS_MAGIC) {
        const bool lacks = magic != TMPFS_MAGIC && blocks * 512 + pages * page_bytes + FEWEST_HOLE_BYTES <= size;
        return (pages + 1) | (lacks ? LACKS_BLOCKS : 0);
    }
    return want_pagecache ? tell_backing(inode, device, address) : 0;
}

/* How much of a regular file is in the page cache, of a file just opened. On overlayfs the file below has the pages. */
static __always_inline void fill_cached(struct raw_fd* out, struct file* address) {
    if (!address) {
        return;
    }
    /* The address as a number, from the record: the verifier takes no pointer to the kernel's there. No branches, which
     * it would follow one by one. */
    const __u64 told = cached_pages(*(volatile __u64*)&out->file, out->inode, out->device);
    const __s64 found = told & ~LACKS_BLOCKS;
    const __u64 known = (__u64)-found >> 63;
    out->peer_or_pages += found - known;
    out->info |= known * RAW_FD_CACHED | told / LACKS_BLOCKS * RAW_FD_SPARSE;
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
