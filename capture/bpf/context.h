/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* For analysis, not for replay: block requests. Those made outside followed tasks have pid and tid 0. */
#ifndef REPRISE_CAPTURE_CONTEXT_H
#define REPRISE_CAPTURE_CONTEXT_H

#include "tasks.h"

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
