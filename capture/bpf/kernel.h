/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The few kernel types the programs look into, by hand. Only names matter: the loader relocates every access to the
 * layout of the running kernel (CO-RE). */
#ifndef REPRISE_CAPTURE_KERNEL_H
#define REPRISE_CAPTURE_KERNEL_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef int __s32;
typedef unsigned long long __u64;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;
#define offsetof(type, member) __builtin_offsetof(type, member)

#define BPF_MAP_TYPE_HASH 1
#define BPF_MAP_TYPE_ARRAY 2
#define BPF_MAP_TYPE_PERCPU_ARRAY 6
#define BPF_MAP_TYPE_LRU_HASH 9
#define BPF_MAP_TYPE_RINGBUF 27
#define BPF_MAP_TYPE_TASK_STORAGE 29
#define BPF_F_NO_PREALLOC 1
#define BPF_F_MMAPABLE 1024
#define BPF_NOEXIST 1
#define BPF_LOCAL_STORAGE_GET_F_CREATE 1
#define BPF_RB_NO_WAKEUP 1

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct pt_regs {
    unsigned long di, si, dx, cx, r10, r8, r9, ax, orig_ax, sp;
};

struct qstr {
    const unsigned char* name;
};
struct dentry {
    struct qstr d_name;
};
struct path {
    struct dentry* dentry;
};
struct gendisk {
    int major, first_minor;
};
struct super_block {
    __u32 s_dev;
    unsigned long s_magic;
};
struct inode {
    unsigned short i_mode;
    struct super_block* i_sb;
    struct address_space* i_mapping;
    unsigned long i_ino;
    long long i_size;
    unsigned long long i_blocks;
    __u32 i_generation;
};
struct file {
    unsigned int f_mode;
    void* private_data;
    struct inode* f_inode;
    struct address_space* f_mapping;
    unsigned int f_flags;
    struct path f_path;
    long long f_pos;
};
struct fdtable {
    unsigned int max_fds;
    struct file** fd;
    unsigned long* close_on_exec;
};
struct files_struct {
    struct fdtable* fdt;
};
struct list_head {
    struct list_head *next, *prev;
};
struct xarray {
    void* xa_head;
};
struct xa_node {
    unsigned char shift;
    void* slots[64];
};
struct address_space {
    struct inode* host;
    unsigned long flags;
    struct xarray i_pages;
    unsigned long nrpages;
};
struct folio {
    unsigned long flags;
    struct address_space* mapping;
    unsigned long index;
    unsigned int _nr_pages;
};
struct vm_area_struct {
    unsigned long vm_start, vm_end, vm_pgoff, vm_flags;
    struct file* vm_file;
};
typedef struct {
    int counter;
} atomic_t;
struct signal_struct {
    atomic_t live;
    unsigned long maxrss;
};
struct percpu_counter {
    long long count;
};
/* Kinds of pages that a process counts. */
#define MM_FILEPAGES 0
#define MM_ANONPAGES 1
#define MM_SHMEMPAGES 3
struct mm_struct {
    void* pgd;
    unsigned long hiwater_rss;
    struct percpu_counter rss_stat[4];
};
struct kernfs_node {
    __u64 id;
};
struct cgroup;
struct cgroup_subsys_state {
    struct cgroup* cgroup;
    struct cgroup_subsys_state* parent;
};
struct cgroup_root {
    int hierarchy_id;
};
struct cgroup {
    struct cgroup_subsys_state self;
    struct kernfs_node* kn;
    struct cgroup_root* root;
};
struct css_set {
    struct cgroup* dfl_cgrp;
};
struct rq {
    __u64 prev_steal_time_rq;
};
struct cfs_rq {
    struct rq* rq;
};
struct sched_entity {
    struct cfs_rq* cfs_rq;
};
struct pid_namespace;
struct upid {
    int nr;
    struct pid_namespace* ns;
};
struct pid {
    unsigned int level;
    struct upid numbers[1];
};
struct cpumask {
    unsigned long bits[1];
};
struct task_struct {
    unsigned int __state;
    unsigned int flags;
    struct sched_entity se;
    struct css_set* cgroups;
    int exit_code;
    int pid, tgid;
    struct task_struct* real_parent;
    struct mm_struct* mm;
    const struct cpumask* cpus_ptr;
    int nr_cpus_allowed;
    struct files_struct* files;
    struct signal_struct* signal;
    struct pid* thread_pid;
    char comm[16];
    unsigned in_iowait : 1;
    void* bpf_storage;
};
struct linux_binprm {
    const char* filename;
    char buf[256];
};

struct socket {
    short type;
    void* sk;
};
struct socket_alloc {
    struct socket socket;
    struct inode vfs_inode;
};
struct in6_addr {
    unsigned char bytes[16];
};
struct ns_common {
    unsigned int inum;
};
struct net {
    struct ns_common ns;
};
typedef struct {
    struct net* net;
} possible_net_t;
struct sock_common {
    __u32 skc_daddr;     /* the other end, network order */
    __u32 skc_rcv_saddr; /* this end */
    __u16 skc_dport;     /* network order */
    __u16 skc_num;       /* this end's port, host order */
    unsigned short skc_family;
    possible_net_t skc_net;
    struct in6_addr skc_v6_daddr, skc_v6_rcv_saddr;
};
struct sock {
    struct sock_common __sk_common;
    struct socket* sk_socket;
};
struct unix_sock {
    struct sock* peer;
};
struct tcp_sock { /* begins with its sock */
    __u64 bytes_received, bytes_sent;
    __u32 total_retrans;
    __u32 srtt_us; /* eighths */
};

struct io_uring_sqe; /* user ABI: read whole, see uring.h */
struct io_uring {
    unsigned int head, tail;
};
struct io_rings {
    struct io_uring sq, cq;
};
struct io_rsrc_node {
    unsigned long file_ptr;
};
struct io_rsrc_data { /* since 6.13 */
    unsigned int nr;
    struct io_rsrc_node** nodes;
};
struct io_file_table {
    struct io_rsrc_data data;
};
struct io_ring_ctx {
    unsigned int flags;
    unsigned int* sq_array;
    void* sq_sqes;
    unsigned int cached_sq_head, sq_entries, cached_cq_tail;
    struct io_rings* rings;
    struct io_file_table file_table;
};
/* What a request of that kind keeps; each lies where the request itself begins. */
struct io_open {
    __u32 file_slot;
};
struct io_statx {
    void* buffer;
};
struct io_cqe {
    __u64 user_data;
    __s32 res;
    __s32 fd;
};
struct io_kiocb {
    struct file* file;
    __u8 opcode;
    __u64 flags;
    struct io_cqe cqe;
    struct io_ring_ctx* ctx;
};
struct io_uring_cqe {
    __u64 user_data;
    __s32 res;
    __u32 flags;
};

struct request_queue {
    struct gendisk* disk;
};
struct request {
    struct request_queue* q;
    unsigned int cmd_flags;
    unsigned int __data_len;
    unsigned long long __sector;
};

struct seq_file;
struct bpf_iter_meta {
    struct seq_file* seq;
};
struct bpf_iter__task {
    struct bpf_iter_meta* meta;
    struct task_struct* task;
};
struct bpf_iter__task_file {
    struct bpf_iter_meta* meta;
    struct task_struct* task;
    __u32 fd;
    struct file* file;
};
struct bpf_iter__task_vma {
    struct bpf_iter_meta* meta;
    struct task_struct* task;
    struct vm_area_struct* vma;
};

#pragma clang attribute pop

#include <bpf/bpf_helpers.h>
/* after the helpers, which need the types above */
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#endif
