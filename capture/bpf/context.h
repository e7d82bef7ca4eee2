/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* For analysis, not for replay: page-cache traffic of recorded files, block requests. Records made outside followed
 * tasks have pid, tid and sequence 0. */
#ifndef REPRISE_CAPTURE_CONTEXT_H
#define REPRISE_CAPTURE_CONTEXT_H

#include "tasks.h"

/* `flags` of a folio is a struct of one word since 6.18. */
struct folio_flags {
    unsigned long f;
} __attribute__((preserve_access_index));
struct folio___wrapped {
    struct folio_flags flags;
} __attribute__((preserve_access_index));
struct folio___plain {
    unsigned long flags;
} __attribute__((preserve_access_index));
enum pageflags { PG_head = 6 };

static __always_inline __u32 folio_bytes(struct folio* folio) {
    unsigned long flags = 0;
    bpf_probe_read_kernel(&flags, sizeof flags, folio); /* the first word in all versions */
    if (!(flags >> bpf_core_enum_value(enum pageflags, PG_head) & 1)) {
        return page_bytes;
    }
    const __u32 pages = bpf_core_field_exists(folio->_nr_pages) ? BPF_CORE_READ(folio, _nr_pages) : 1;
    return (pages ? pages : 1) * page_bytes;
}

static __always_inline int record_folio(struct folio* folio, bool evicted) {
    struct task_struct* task = bpf_get_current_task_btf();
    struct task_state* state = state_of(task);
    if (!evicted && !state) {
        return 0;
    }
    struct inode* inode = BPF_CORE_READ(folio, mapping, host);
    struct file_key key = {.inode = BPF_CORE_READ(inode, i_ino), .device = BPF_CORE_READ(inode, i_sb, s_dev)};
    if (!bpf_map_lookup_elem(&files, &key)) {
        if (evicted) {
            return 0;
        }
        const __u8 yes = 1;
        bpf_map_update_elem(&files, &key, &yes, 0);
    }
    const __u32 sequence = state ? state->sequence++ : 0;
    struct raw_page_cache* record = RESERVE(raw_page_cache);
    if (!record) {
        return 0;
    }
    fill_head(&record->head, RAW_PAGE_CACHE, sizeof *record, sequence, bpf_ktime_get_ns());
    if (!state) {
        record->head.pid = 0;
        record->head.tid = 0;
    }
    record->inode = key.inode;
    record->device = key.device;
    record->offset = (__u64)BPF_CORE_READ(folio, index) * page_bytes;
    record->bytes = folio_bytes(folio);
    record->evicted = evicted;
    record->in_nr = state && state->enter ? state->nr : NO_CALL;
    SUBMIT(record);
    return 0;
}

SEC(HOOK "mm_filemap_add_to_page_cache")
int BPF_PROG(cache_add, struct folio* folio) { return record_folio(folio, 0); }

SEC(HOOK "mm_filemap_delete_from_page_cache")
int BPF_PROG(cache_delete, struct folio* folio) { return record_folio(folio, 1); }

struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 16384);
    __type(key, __u64);
    __type(value, struct request_state);
} requests SEC(".maps");

SEC(HOOK "block_rq_issue")
int BPF_PROG(block_issue, struct request* request) {
    struct task_state* state = state_of(bpf_get_current_task_btf());
    struct gendisk* disk = BPF_CORE_READ(request, q, disk);
    const __u64 id = bpf_get_current_pid_tgid();
    struct request_state made = {
        .issued = bpf_ktime_get_ns(),
        .sector = BPF_CORE_READ(request, __sector),
        .bytes = BPF_CORE_READ(request, __data_len),
        .device = (__u32)BPF_CORE_READ(disk, major) << 20 | (__u32)BPF_CORE_READ(disk, first_minor),
        .write = BPF_CORE_READ(request, cmd_flags) & 1,
    };
    if (state) {
        made.pid = id >> 32;
        made.tid = (__u32)id;
    }
    const __u64 key = (__u64)request;
    bpf_map_update_elem(&requests, &key, &made, 0);
    return 0;
}

SEC(HOOK "block_rq_complete")
int BPF_PROG(block_complete, struct request* request) {
    const __u64 key = (__u64)request;
    struct request_state* made = bpf_map_lookup_elem(&requests, &key);
    if (!made) {
        return 0;
    }
    struct raw_block* record = RESERVE(raw_block);
    if (record) {
        fill_head(&record->head, RAW_BLOCK, sizeof *record, 0, bpf_ktime_get_ns());
        record->head.pid = made->pid;
        record->head.tid = made->tid;
        record->issued = made->issued;
        record->sector = made->sector;
        record->bytes = made->bytes;
        record->device = made->device;
        record->write = made->write;
        record->pad = 0;
        SUBMIT(record);
    }
    bpf_map_delete_elem(&requests, &key);
    return 0;
}

#endif
