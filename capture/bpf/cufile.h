/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* libcufile: what it moves between files and accelerators, which passes no system call where a driver of its own does
 * it. Probes at the begin and the return of its functions; layouts are its public ABI on x86-64. Other tasks can run in
 * between on the same processor, so records are made on the stack and not in the scratch. */
#ifndef REPRISE_CAPTURE_CUFILE_H
#define REPRISE_CAPTURE_CUFILE_H

#include "files.h"
#include "library_calls.h"

#define BATCH_LIMIT 1024      /* requests of one call */
#define CUFILE_OPAQUE_FD 1    /* CU_FILE_HANDLE_TYPE_OPAQUE_FD */
#define CUFILE_OPCODE_WRITE 1 /* CUFILE_WRITE */
#define CUFILE_COMPLETE 0x10
#define CUFILE_ENDED 0x7c /* INVALID, CANCELED, COMPLETE, TIMEOUT, FAILED */

/* Files that are registered: the descriptor of each. */
struct cufile_key {
    __u64 handle;
    __u32 pid, pad;
};
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 65536);
    __type(key, struct cufile_key);
    __type(value, __s32);
} cufile_files SEC(".maps");

/* Requests of streams: `handle` of the key is where the library writes the result. */
struct cufile_request {
    __u64 stream;
    __s64 before; /* what stood there */
};
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 16384);
    __type(key, struct cufile_key);
    __type(value, struct cufile_request);
} cufile_requests SEC(".maps");
__u32 cufile_waiting = 0; /* in there, of all processes */

static __always_inline void begin_cufile(struct raw_cufile* record, __u32 kind, const struct library_call* call,
                                         __u64 time) {
    __builtin_memset(record, 0, sizeof *record);
    fill_head(&record->head, RAW_CUFILE, sizeof *record, 0, time);
    record->kind = kind;
    record->enter = call->enter;
    record->fd.fd = -1;
}

static __always_inline void send_cufile(struct raw_cufile* record) {
    if (bpf_ringbuf_output(&ring, record, sizeof *record, BPF_RB_NO_WAKEUP)) {
        count(COUNT_LOST, 1);
    }
}

static __always_inline __u64 user_word(__u64 address) {
    __u64 word = 0;
    bpf_probe_read_user(&word, sizeof word, (void*)address);
    return word;
}

/* The file that the library knows by a handle. */
static __noinline int add_cufile_file(struct raw_cufile* record, __u64 handle) {
    if (!record) {
        return 0;
    }
    const struct cufile_key key = {.handle = handle, .pid = bpf_get_current_pid_tgid() >> 32};
    const __s32* fd = bpf_map_lookup_elem(&cufile_files, &key);
    record->handle = handle;
    if (!fd) {
        return 0;
    }
    /* As a number, see fill_cached; sockets and the like are never registered. */
    const __u64 address = number_of_file(bpf_get_current_task_btf(), *fd);
    const struct file* file = (const struct file*)address;
    record->fd.fd = *fd;
    if (!address) {
        return 0;
    }
    struct inode* inode = BPF_CORE_READ(file, f_inode);
    record->fd.file = address;
    record->fd.position = BPF_CORE_READ(file, f_pos);
    record->fd.flags = BPF_CORE_READ(file, f_flags);
    record->fd.inode = BPF_CORE_READ(inode, i_ino);
    record->fd.size = BPF_CORE_READ(inode, i_size);
    record->fd.mode = BPF_CORE_READ(inode, i_mode);
    record->fd.generation = BPF_CORE_READ(inode, i_generation);
    record->fd.device = BPF_CORE_READ(inode, i_sb, s_dev);
    return 0;
}

/* When the call begins: once it has returned the handle may be another file's. */
static __noinline int cufile_deregistered(__u64 handle) {
    const struct cufile_key key = {.handle = handle, .pid = bpf_get_current_pid_tgid() >> 32};
    const struct library_call call = {};
    bpf_map_delete_elem(&cufile_files, &key);
    struct raw_cufile record;
    begin_cufile(&record, RAW_CUFILE_DEREGISTERED, &call, bpf_ktime_get_ns());
    record.handle = handle;
    send_cufile(&record);
    return 0;
}

SEC("uprobe")
int library_enter(struct pt_regs* regs) {
    struct task_struct* task = bpf_get_current_task_btf();
    struct task_state* state = state_of(task);
    if (!state || state->compat) {
        return 0;
    }
    const __u32 function = bpf_get_attach_cookie(regs);
    /* Waits for an accelerator matter only to those that gave it files to read. */
    if (function >= CUDA_SYNC_STREAM && !cufile_waiting) {
        return 0;
    }
    if (function == CUFILE_DEREGISTER) {
        return cufile_deregistered(regs->di);
    }
    const __u64 id = bpf_get_current_pid_tgid();
    const __u64 stack = regs->sp;
    struct library_call* outer = bpf_map_lookup_elem(&library_calls, &id);
    if (outer && outer->stack > stack) {
        ++outer->inner;
        return 0;
    }
    struct library_call call = {
        .enter = bpf_ktime_get_ns(),
        .stack = stack,
        .args = {regs->di, regs->si, regs->dx, regs->cx, regs->r8, regs->r9},
        .function = function,
    };
    call.args[6] = user_word(stack + 8);
    bpf_map_update_elem(&library_calls, &id, &call, 0);
    library_calls_made = 1;
    if (function != CUFILE_REGISTER && function != CUFILE_BATCH_DESTROY) {
        struct raw_cufile record;
        begin_cufile(&record, RAW_CUFILE_ENTER, &call, call.enter);
        send_cufile(&record);
    }
    return 0;
}

static __noinline int cufile_registered(const struct library_call* call, __u64 now) {
    if (!call) {
        return 0;
    }
    __u32 descriptor[4] = {}; /* type, padding, descriptor */
    bpf_probe_read_user(descriptor, sizeof descriptor, (void*)call->args[1]);
    struct raw_cufile record;
    begin_cufile(&record, RAW_CUFILE_REGISTERED, call, now);
    const __s32 fd = descriptor[0] == CUFILE_OPAQUE_FD ? (__s32)descriptor[2] : -1;
    const struct cufile_key key = {.handle = user_word(call->args[0]), .pid = bpf_get_current_pid_tgid() >> 32};
    bpf_map_update_elem(&cufile_files, &key, &fd, 0);
    add_cufile_file(&record, key.handle);
    send_cufile(&record);
    return 0;
}

static __noinline int cufile_moved(const struct library_call* call, __s64 result, __u64 now) {
    if (!call) {
        return 0;
    }
    struct raw_cufile record;
    begin_cufile(&record, RAW_CUFILE_MOVED, call, now);
    record.how = call->function == CUFILE_WRITE ? RAW_CUFILE_WRITES : 0;
    record.size = call->args[2];
    record.offset = call->args[3];
    record.result = result;
    add_cufile_file(&record, call->args[0]);
    send_cufile(&record);
    return 0;
}

static __always_inline void cufile_call_over(const struct library_call* call, __u32 kind, __u64 stream, __u64 requests,
                                             __s64 least, __s64 result, __u32 how, __u64 time) {
    struct raw_cufile record;
    begin_cufile(&record, kind, call, time);
    record.stream = stream;
    record.size = requests;
    record.offset = least;
    record.result = result;
    record.how = how;
    send_cufile(&record);
}

/* Size, offset and result are behind pointers, which hold until the request is done. */
static __noinline int cufile_asked(const struct library_call* call, __s64 result, __u64 now) {
    if (!call) {
        return 0;
    }
    const bool taken = (__u32)result == 0;
    if (taken) {
        struct raw_cufile record;
        begin_cufile(&record, RAW_CUFILE_ASKED, call, now);
        record.how = RAW_CUFILE_STREAM | (call->function == CUFILE_WRITE_ASYNC ? RAW_CUFILE_WRITES : 0);
        record.size = user_word(call->args[2]);
        record.offset = user_word(call->args[3]);
        record.request = call->args[5];
        record.stream = call->args[6];
        add_cufile_file(&record, call->args[0]);
        send_cufile(&record);
        const struct cufile_key key = {.handle = record.request, .pid = bpf_get_current_pid_tgid() >> 32};
        const struct cufile_request request = {.stream = record.stream, .before = user_word(record.request)};
        if (!bpf_map_update_elem(&cufile_requests, &key, &request, 0)) {
            __sync_fetch_and_add(&cufile_waiting, 1);
        }
    }
    cufile_call_over(call, RAW_CUFILE_SUBMITTED, call->args[6], taken, 0, result, RAW_CUFILE_STREAM, now + 1);
    return 0;
}

struct cufile_loop {
    const struct library_call* call;
    __u64 list, now;
    __u32 done, function;
    __u64 stream, pid;
};

/* CUfileIOParams_t: mode, {memory, offset in the file, offset in the memory, size}, file, opcode, cookie. */
static long cufile_batch_request(__u32 i, void* context) {
    struct cufile_loop* loop = context;
    __u64 words[8] = {};
    if (bpf_probe_read_user(words, sizeof words, (void*)(loop->list + (__u64)i * sizeof words))) {
        return 1;
    }
    const struct library_call call = {};
    struct raw_cufile record;
    begin_cufile(&record, RAW_CUFILE_ASKED, &call, loop->now + i);
    record.how = (__u32)words[6] == CUFILE_OPCODE_WRITE ? RAW_CUFILE_WRITES : 0;
    record.offset = words[2];
    record.size = words[4];
    record.request = words[7];
    record.stream = loop->stream;
    add_cufile_file(&record, words[5]);
    send_cufile(&record);
    ++loop->done;
    return 0;
}

static __noinline int cufile_batch_submitted(const struct library_call* call, __s64 result, __u64 now) {
    if (!call) {
        return 0;
    }
    struct cufile_loop loop = {.list = call->args[2], .now = now, .stream = call->args[0]};
    __u32 count_of = (__u32)call->args[1];
    if ((__u32)result == 0) {
        if (count_of > BATCH_LIMIT) {
            count(COUNT_LOST, count_of - BATCH_LIMIT);
            count_of = BATCH_LIMIT;
        }
        bpf_loop(count_of, cufile_batch_request, &loop, 0);
    }
    cufile_call_over(call, RAW_CUFILE_SUBMITTED, call->args[0], loop.done, 0, result, 0, now + count_of);
    return 0;
}

/* CUfileIOEvents_t: cookie, status, bytes. */
static long cufile_batch_event(__u32 i, void* context) {
    struct cufile_loop* loop = context;
    __u64 words[3] = {};
    if (bpf_probe_read_user(words, sizeof words, (void*)(loop->list + (__u64)i * sizeof words))) {
        return 1;
    }
    const __u32 status = words[1];
    if (!(status & CUFILE_ENDED)) {
        return 0;
    }
    const struct library_call call = {};
    struct raw_cufile record;
    begin_cufile(&record, RAW_CUFILE_DONE, &call, loop->now + i);
    record.request = words[0];
    record.result = status & CUFILE_COMPLETE ? (__s64)words[2] : -1;
    record.stream = loop->stream;
    send_cufile(&record);
    ++loop->done;
    return 0;
}

static __noinline int cufile_batch_told(const struct library_call* call, __s64 result, __u64 now) {
    if (!call) {
        return 0;
    }
    struct cufile_loop loop = {.list = call->args[3], .now = now, .stream = call->args[0]};
    __u32 count_of = (__u32)user_word(call->args[2]);
    if (count_of > BATCH_LIMIT) {
        count_of = BATCH_LIMIT;
    }
    if ((__u32)result == 0) {
        bpf_loop(count_of, cufile_batch_event, &loop, 0);
    }
    cufile_call_over(call, RAW_CUFILE_TAKEN, call->args[0], loop.done, (__u32)call->args[1], result, 0, now + count_of);
    return 0;
}

struct bpf_map;
static long cufile_stream_request(struct bpf_map* map, struct cufile_key* key, struct cufile_request* request,
                                  struct cufile_loop* loop) {
    if (key->pid != loop->pid) {
        return 0;
    }
    const __s64 result = user_word(key->handle);
    const bool awaited =
        loop->function == CUDA_SYNC_ALL || (loop->function == CUDA_SYNC_STREAM && request->stream == loop->stream);
    if (!awaited && result == request->before) {
        return 0;
    }
    const struct library_call call = {};
    struct raw_cufile record;
    begin_cufile(&record, RAW_CUFILE_DONE, &call, loop->now + loop->done);
    record.how = RAW_CUFILE_STREAM;
    record.request = key->handle;
    record.stream = request->stream;
    record.result = result;
    send_cufile(&record);
    ++loop->done;
    const struct cufile_key gone = *key;
    bpf_map_delete_elem(map, &gone);
    __sync_fetch_and_add(&cufile_waiting, -1);
    return 0;
}

/* A wait for an accelerator is over: which requests of this process are done, the library has written. */
static __noinline int cuda_synced(const struct library_call* call, __u64 now) {
    if (!call) {
        return 0;
    }
    struct cufile_loop loop = {
        .now = now, .function = call->function, .stream = call->args[0], .pid = bpf_get_current_pid_tgid() >> 32};
    bpf_for_each_map_elem(&cufile_requests, cufile_stream_request, &loop, 0);
    cufile_call_over(call, RAW_CUFILE_TAKEN, call->args[0], loop.done, loop.done, 0, RAW_CUFILE_STREAM,
                     now + loop.done);
    return 0;
}

SEC("uretprobe")
int library_return(struct pt_regs* regs) {
    struct task_struct* task = bpf_get_current_task_btf();
    if (!state_of(task)) {
        return 0;
    }
    const __u64 id = bpf_get_current_pid_tgid();
    struct library_call* found = bpf_map_lookup_elem(&library_calls, &id);
    if (!found) {
        return 0;
    }
    if (found->inner) {
        --found->inner;
        return 0;
    }
    const struct library_call call = *found;
    bpf_map_delete_elem(&library_calls, &id);
    const __u64 now = bpf_ktime_get_ns();
    const __s64 result = regs->ax;
    switch (call.function) {
        case CUFILE_REGISTER: return (__u32)result == 0 ? cufile_registered(&call, now) : 0;
        case CUFILE_READ:
        case CUFILE_WRITE: return cufile_moved(&call, result, now);
        case CUFILE_READ_ASYNC:
        case CUFILE_WRITE_ASYNC: return cufile_asked(&call, result, now);
        case CUFILE_BATCH_SUBMIT: return cufile_batch_submitted(&call, result, now);
        case CUFILE_BATCH_STATUS: return cufile_batch_told(&call, result, now);
        case CUFILE_BATCH_DESTROY:
            cufile_call_over(&call, RAW_CUFILE_FORGOTTEN, call.args[0], 0, 0, 0, 0, now);
            return 0;
        case CUDA_SYNC_STREAM:
        case CUDA_SYNC_ALL:
        case CUDA_SYNC_SOME: return cuda_synced(&call, now);
        default: return 0;
    }
}

#endif
