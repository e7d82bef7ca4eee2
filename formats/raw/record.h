/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Raw records: what the kernel side of `reprise capture` emits and the assembling of ops reads. Plain C, shared by the
 * BPF programs (capture/bpf) and C++ (formats/raw). Host byte order; a raw log is read where it was made, and the
 * version in its meta record is refused when it differs. All sizes are multiples of 8. */
#ifndef REPRISE_RAW_RECORD_H
#define REPRISE_RAW_RECORD_H

#ifdef __BPF__
typedef __u8 raw_u8;
typedef __u16 raw_u16;
typedef __u32 raw_u32;
typedef __s32 raw_s32;
typedef __u64 raw_u64;
typedef __s64 raw_s64;
#else
#include <stdint.h>
typedef uint8_t raw_u8;
typedef uint16_t raw_u16;
typedef uint32_t raw_u32;
typedef int32_t raw_s32;
typedef uint64_t raw_u64;
typedef int64_t raw_s64;
#endif

/* Names as C has them. NOLINTBEGIN(readability-identifier-naming) */

#define RAW_VERSION 8

enum raw_type {
    RAW_META = 1, /* first record: JSON text (user space) */
    RAW_CALL,     /* one system call, at its exit (or at the end of a task that never returned from it) */
    RAW_SPAWN,    /* a new task, in its parent's context */
    RAW_EXEC,     /* program replaced: text is the file's path as given */
    RAW_EXIT,     /* a task ended */
    RAW_SWITCH,   /* one interval a task was off the processor, emitted when it runs again */
    RAW_FAULT,    /* page fault on a file mapping */
    RAW_URING_SUBMIT,
    RAW_URING_COMPLETE,
    RAW_PAGE_CACHE, /* pages added to or evicted from the page cache */
    RAW_BLOCK,      /* a block request completed */
    RAW_PRESSURE,   /* PSI sample (user space) */
    RAW_CLOCK,      /* the same moment on three clocks (user space) */
    RAW_SEED_TASK,  /* attach: a task that was there already (iterator) */
    RAW_SEED_FD,  /* attach, or inherited by the command: an open descriptor: parts RAW_PART_FD, RAW_PART_STRING path */
    RAW_SEED_MAP, /* attach: a file mapping */
    RAW_LOSS,     /* what was lost so far (user space, at the end and whenever it grows) */
    RAW_GPU,      /* accelerator interval (user space) */
    RAW_TOUCH,    /* page faults that the file system's part does not tell: tmpfs, huge pages */
    RAW_STOLEN,   /* time in which a task had a processor that the host gave to others */
    RAW_FAULTS,   /* page faults of a task outside its calls, counted: most leave no other record */
    RAW_BACKING,  /* overlayfs: the file below, which has the pages of an opened one */
    RAW_MEMORY,   /* memory besides files that a process holds from now on (user space) */
    RAW_USES,     /* mapped pages that a process used again (user space) */
    RAW_RANK,     /* which rank of a job a process is, as its environment says (user space) */
    RAW_SOCKET,   /* a connection's two addresses, and how it does so far */
    RAW_CUFILE,   /* calls of libcufile: what is moved between a file and an accelerator's memory */
    RAW_HOLES,    /* where a file that was sparse at its open has no data (user space) */
};

/* Every record begins with this. `time` is CLOCK_MONOTONIC ns. (pid, tid) are those of the initial pid namespace. */
struct raw_head {
    raw_u16 size;     /* of the whole record, with this head and all parts */
    raw_u8 type;      /* enum raw_type */
    raw_u8 flags;     /* RAW_FLAG_* */
    raw_u32 sequence; /* per task, from 0, without gaps unless records were lost; user space records: 0 */
    raw_u32 pid;      /* thread group */
    raw_u32 tid;
    raw_u64 time; /* end of what happened */
};

#define RAW_FLAG_UNFINISHED 1u /* the call never returned: result is unknown */
#define RAW_FLAG_TRUNCATED 2u  /* a string or list did not fit */
#define RAW_FLAG_UNREADABLE 4u /* user memory could not be read */
/* RAW_SWITCH: what the waker's call left to the kernel woke it: a soft interrupt inside the call, or a worker, perhaps
 * later. */
#define RAW_FLAG_DEFERRED 8u

/* RAW_CALL. Parts follow up to head.size.
 * - `sequence` belongs to the kernel's task, also where an exec by another thread changes its tid. Records with pid 0
 * were made outside followed tasks.
 * - A result of -512..-516 means that a signal came: the call either starts again (the next call of the task, or
 *   restart_syscall) or the program sees EINTR.
 * - A successful execve has lost its arguments; RAW_EXEC, just before it, has the path.
 * - openat2: RAW_PART_VALUES {flags, mode, resolve}; waitid: {pid, code, status}; clone3: {flags}.
 * - wait4 and waitid inside a PID namespace: RAW_PART_VALUES {pid} of RAW_WHICH_RESULT: the number in the initial one
 *   of who ended.
 * - copies: RAW_PART_VALUES {offset after the call} for each offset argument that was given.
 * - readv, writev and the like: RAW_PART_LIST of the buffers' sizes; with O_DIRECT RAW_PART_VALUES of their addresses.
 * - ioctl: only clones, and TCGETS. FICLONERANGE has RAW_PART_VALUES of its struct file_clone_range.
 * - io_submit: after an iocb, RAW_PART_FD where its fd differs from the one before, and RAW_PART_LIST of its buffers'
 *   sizes where it is vectored (PREADV, PWRITEV).
 * - messages: RAW_PART_FD of what the first SCM_RIGHTS among the first four heads of each carries, 32 in all.
 * - descriptors of *at calls: RAW_PART_FD unless AT_FDCWD. */
struct raw_call {
    struct raw_head head;
    raw_u64 enter; /* ns */
    raw_s64 result;
    raw_u16 nr; /* system call number, x86-64 */
    raw_u16 pad;
    raw_u32 own_ns; /* what the recorder took after the task's recorded call before this one; 0: none, or unknown */
    raw_u64 args[6];
};

/* A part: head, then size - 8 bytes. */
struct raw_part {
    raw_u16 type;   /* enum raw_part_type */
    raw_u16 size;   /* with this head, multiple of 8 */
    raw_u16 which;  /* argument 0..5 it belongs to; RAW_WHICH_* */
    raw_u16 length; /* bytes that count (strings without NUL); for lists the number of entries */
};
#define RAW_WHICH_RESULT 8    /* the descriptor the call returned */
#define RAW_WHICH_RESULT2 9   /* the second one of pipe/socketpair (the first is RAW_WHICH_RESULT) */
#define RAW_WHICH_RECEIVED 16 /* 16 + n: n-th descriptor received by SCM_RIGHTS; sent ones: 64 + n */
#define RAW_WHICH_SENT 64

enum raw_part_type {
    RAW_PART_FD = 1, /* struct raw_fd: the open file behind a descriptor */
    RAW_PART_PATH,   /* bytes of a path argument */
    RAW_PART_STRING, /* other bytes: attribute name, link target, marker name, command */
    RAW_PART_LIST,   /* raw_s64[length]: iovec sizes; pairs for aio, see RAW_PART_IOCB */
    RAW_PART_STAT,   /* struct raw_stat: what a stat call returned */
    RAW_PART_VALUES, /* raw_s64[length]: out arguments, e.g. offsets of copies after the call, wait status */
    RAW_PART_IOCB,   /* struct raw_iocb, one per submitted iocb */
    RAW_PART_EVENT,  /* struct raw_aio_event, one per reaped event */
};

/* The open file behind a descriptor at the exit of the call (for close: at its entry). `file` is the address of the
 * kernel's struct file: equal while the open instance lives, reused after its last close. */
struct raw_fd {
    raw_u64 file; /* 0: no such descriptor */
    raw_u64 inode;
    raw_u64 size;          /* bytes, of the inode */
    raw_s64 position;      /* f_pos after the call */
    raw_u64 peer_or_pages; /* sockets: the other end, see below; RAW_FD_CACHED: pages; else 0 */
    raw_u32 device;        /* major << 20 | minor, as the kernel keeps it */
    raw_u32 generation;    /* i_generation */
    raw_u32 flags;         /* f_flags (O_*) */
    raw_u32 mode;          /* i_mode */
    raw_s32 fd;
    raw_u32 info; /* RAW_FD_* */
};
/* Unix sockets: the inode number of the peer's socket. TCP: a name of the peer with the first bit set; this end's own
 * name differs in the last bit. */
#define RAW_PEER_CONNECTION (1ULL << 63)
#define RAW_FD_CREATED 1u /* FMODE_CREATED: this open made the file */
#define RAW_FD_CLOEXEC 2u /* only in RAW_SEED_FD */
#define RAW_FD_EVENTFD 4u
#define RAW_FD_EPOLL 8u
#define RAW_FD_URING 16u
#define RAW_FD_MEMFD 32u   /* shmem file without a path (memfd_create) */
#define RAW_FD_CACHED 64u  /* a regular file, just opened or seeded: peer_or_pages are its pages in the page cache */
#define RAW_FD_SPARSE 128u /* with RAW_FD_CACHED: its blocks and those pages are fewer than its size needs */
#define RAW_FD_TMPFS 256u  /* the file lies in memory: on a tmpfs, or a memfd */

struct raw_stat { /* device as in raw_fd */
    raw_u64 device, inode, size;
    raw_u32 mode, links;
};

struct raw_spawn {
    struct raw_head head;
    raw_u32 child_pid, child_tid;
    raw_u64 flags; /* CLONE_* */
    char name[16];
};

struct raw_exec {
    struct raw_head head;
    raw_u32 old_tid; /* of the thread that called execve */
    raw_u32 pad;
    char name[16];
    /* parts: RAW_PART_PATH path of the program */
};

struct raw_exit {
    struct raw_head head;
    raw_s32 code; /* as wait would show it: code << 8 | signal */
    raw_u32
        last; /* 1: the last thread of its process; before Linux 6.16 of threads that end at once several may say so */
    raw_u64 allowed; /* processors it might use, a bit each, of the first 64 */
    raw_u32 cpus;    /* how many those are in all */
    raw_u32 pad;
    raw_u64 held; /* bytes, last thread: most memory besides files that its process held; 0: unknown (before 6.16) */
};

enum raw_off_state { RAW_OFF_RUNNABLE = 0, RAW_OFF_SLEEPING = 1, RAW_OFF_UNINTERRUPTIBLE = 2 };

/* head.time: when the task ran again. Off the processor from `off` until then; woken (made runnable) at `wake`. */
struct raw_switch {
    struct raw_head head;
    raw_u64 off;                  /* ns */
    raw_u64 wake;                 /* ns; 0: was never asleep (preempted), or its wake was not seen */
    raw_u32 waker_pid, waker_tid; /* recorded task that woke it; 0: none of the recorded ones, or an interrupt */
    raw_u16 waker_nr;             /* system call the waker was in, 0xffff: none */
    raw_u16 nr;                   /* system call the sleeper was in, 0xffff: none (page fault, preemption) */
    raw_u16 state;                /* enum raw_off_state */
    raw_u16 in_iowait;            /* 1: waiting for a block device */
    raw_u64 waker_enter;          /* enter time of the waker's call: names the call */
};

/* Address 0: the kernel brought the page in for a call, without an exception (get_user_pages): the mapping is the one
 * that holds the file's page. Emitted when the fault begins; what it then waits for are RAW_SWITCH and RAW_PAGE_CACHE.
 * One fault (same enter and address) may have two records, the second one with major: the file system was asked for the
 * page itself by a read, so it was not there, or another fault held its lock just then. */
struct raw_fault {
    struct raw_head head;
    raw_u64 enter;   /* ns */
    raw_u64 address; /* user address that faulted */
    raw_u64 inode;
    raw_u64 offset; /* bytes into the file, of the faulting page */
    raw_u32 device;
    raw_u16 write; /* RAW_FAULT_* */
    raw_u16 major; /* 1: the page itself was asked for */
};

#define RAW_FAULT_WRITES 1u
/* Of tmpfs: a page that a shared writable mapping has read can be written to without another fault. */
#define RAW_FAULT_MEMORY 2u
/* Of the fault of the same task and enter before it: all pages of the folio, which it mapped at once, for writing. */
#define RAW_FAULT_FOLIO 4u

/* Faults on neighbouring pages, each at once after the one before. Which file it is, the mapping at the address says.
 */
struct raw_touch {
    struct raw_head head;
    raw_u64 enter;   /* ns, of the first fault */
    raw_u64 end;     /* of the last one */
    raw_u64 busy;    /* ns inside the faults */
    raw_u64 address; /* of the first page */
    raw_u32 pages;
    raw_u32 write; /* RAW_FAULT_* */
};

/* Of the task's own code since its last record, noticed at head.time. */
struct raw_stolen {
    struct raw_head head;
    raw_u64 stolen; /* ns */
};

/* Outside calls, since the task's last such record. Told before a call or a switch, once they are many or dear. */
struct raw_faults {
    struct raw_head head;
    raw_u64 dear_ns; /* by how much the dear ones took longer than such a page usually does on this machine */
    raw_u32 faults;  /* of any kind */
    raw_u32 dear;    /* new pages of anonymous memory, in base pages, each of which took several times as long; both by
                      * one in eight of the base pages, and all huge ones */
};

/* head.pid/tid: who submitted (the SQPOLL thread's own ids where it did). Counts of a ring never go back, but begin at
 * 0 again after 2^32: what the job has taken is all before its head. */
struct raw_uring {
    struct raw_head head;
    raw_u64 ring;    /* inode-independent identity: address of the ring's context */
    raw_u64 request; /* address of the request, equal in submit and complete */
    raw_u64 user_data;
    raw_u64 offset;   /* submit */
    raw_u64 file;     /* struct file of the request, 0: none; submit: as far as it is known by then */
    raw_u64 address;  /* submit: sqe->addr; of a vector the address of its first buffer */
    raw_u32 length;   /* submit: sqe->len */
    raw_s32 fd;       /* submit: descriptor or fixed-file index */
    raw_s32 result;   /* complete; submit of an open or close: 1 + the number of the fixed file it is about, 0: a
                       * descriptor, -1: the kernel chooses the number; of a splice or tee: what it reads from */
    raw_u32 flags;    /* submit: IOSQE_*; complete: IORING_CQE_F_* */
    raw_u32 rw_flags; /* submit */
    raw_u8 opcode;
    raw_u8 sqpoll;     /* 1: submitted by the kernel's polling thread */
    raw_u16 buffer;    /* submit: index of the fixed buffer, or group of provided ones */
    raw_u32 taken;     /* how many completions of the ring the job had taken (head) */
    raw_u32 completed; /* how many the ring had been given; complete: with this one */
    raw_u32 behind;    /* submit by the polling thread: requests that the job had put in line after it by then, which
                        * was before `taken` was looked at */
    raw_u32 pad;
    /* parts: RAW_PART_FD (which 0) of `file`, with `fd` (complete: -1), unless it was told before and it is a regular
     * file or a disk, and has not changed; complete: only of fixed files; of an allocation RAW_PART_VALUES {bytes}
     * (length is its mode); RAW_PART_LIST for vectored. Calls on names, on submit: RAW_PART_PATH (which 1, and 3 of the
     * second name), RAW_PART_FD of the second directory (which 2), RAW_PART_VALUES of openat2 {flags, mode, resolve}
     * (which 2). Splice and tee: RAW_PART_FD of what they read from (which 2). All on complete: RAW_PART_FD of what an
     * open made (RAW_WHICH_RESULT; a fixed file's fd is -1), RAW_PART_STAT of statx */
};

struct raw_iocb {
    raw_u64 iocb; /* user address: names the request until it is reaped */
    raw_u64 data;
    raw_s64 offset;
    raw_u64 length;
    raw_u64 buffer; /* user address; of a vector that of its first buffer */
    raw_u16 opcode; /* IOCB_CMD_* */
    raw_u16 rw_flags;
    raw_s32 fd;
};

struct raw_aio_event {
    raw_u64 iocb;
    raw_u64 data;
    raw_s64 result;
};

/* Pages that came or went one after the other, told when something else began on that processor. */
struct raw_page_cache {
    struct raw_head head;
    raw_u64 inode;
    raw_u64 offset, bytes;
    raw_u64 first, last; /* ns, of the first and the last page */
    raw_u64 after;       /* went for a call that had returned: its end, as in raw_call; else 0 */
    raw_u32 device;
    raw_u16 evicted; /* 0: added */
    raw_u16 in_nr;   /* system call of the task, 0xffff: none */
    raw_u32 folios;  /* that these bytes were: the recorder looked at each */
    raw_u32 pad;
};

/* Of a file as raw_fd tells it; `below` 0: it could not be found. head.pid 0: no task's sequence. */
struct raw_backing {
    struct raw_head head;
    raw_u64 inode, below; /* inode numbers */
    raw_u32 device, device_below;
};

struct raw_block {
    struct raw_head head; /* time: completed */
    raw_u64 issued;       /* ns */
    raw_u64 sector;
    raw_u32 bytes;
    raw_u32 device;
    raw_u32 write;
    raw_u32 pad;
};

/* Microseconds stalled since boot, as /proc/pressure says it: some and full. */
struct raw_pressure {
    struct raw_head head;
    raw_u64 cpu_some, cpu_full, memory_some, memory_full, io_some, io_full;
};

struct raw_memory {
    struct raw_head head;      /* pid: of the process */
    raw_u64 anonymous, shared; /* bytes; what several processes share counts for each in its part */
};

/* Pages of file mappings that were mapped before `from`, and that the process used between then and head.time.
 * Part: RAW_PART_LIST of runs: the address of the first page, plus the number of those that follow it.
 * RAW_FLAG_TRUNCATED: and of huge pages, which have one mark for all their parts. */
struct raw_uses {
    struct raw_head head; /* pid: of the process */
    raw_u64 from;         /* ns */
};

struct raw_clock {
    struct raw_head head; /* time: CLOCK_MONOTONIC */
    raw_s64 realtime, boottime;
};

struct raw_seed_task {
    struct raw_head head;
    raw_u32 parent_pid;
    raw_u32 pad;
    char name[16];
    /* parts: RAW_PART_STRING which 0: command line, 1: current directory, 2: root, 3: mount namespace, 4: umask (octal)
     */
};

struct raw_seed_map {
    struct raw_head head;
    raw_u64 address, size, offset, inode;
    raw_u32 device, prot, flags, pad;
    /* parts: RAW_PART_VALUES {size of the file}, RAW_PART_PATH */
};

/* Of the program that the process runs; those it forks are of the same rank. */
struct raw_rank {
    struct raw_head head; /* pid: of the process */
    raw_u32 rank, world;  /* world 0: not said */
    raw_u32 local, pad;   /* number on its host, RAW_NO_RANK: not said */
    /* parts: RAW_PART_STRING which 0: who says so, 1: name of the job, empty: not said */
};
#define RAW_NO_RANK 0xffffffffu

/* Told when a followed task uses a connection for the first time, then once a second at most, and when it is over.
 * head.pid 0: no task's sequence. */
struct raw_socket {
    struct raw_head head;
    raw_u64 inode;     /* as raw_fd has it */
    raw_u64 peer;      /* as raw_fd has it: RAW_PEER_CONNECTION is set */
    raw_u8 local[16];  /* addresses as IPv6 has them; those of IPv4 mapped, ::ffff:a.b.c.d */
    raw_u8 remote[16]; /* ... */
    raw_u16 local_port, remote_port;
    raw_u32 net;            /* network namespace: its inode */
    raw_u64 sent, received; /* bytes, as TCP counts them; 0 where the kernel does not tell */
    raw_u32 retransmits;    /* segments sent again */
    raw_u32 rtt_us;         /* smoothed round-trip time, 0: not known */
    raw_u32 family, pad;    /* AF_INET, AF_INET6 */
};

/* Of calls of libcufile, at their end; RAW_CUFILE_ENTER at their begin. Not numbered, so that a task's own numbers have
 * no gaps; those of one call are 1 ns apart. */
enum raw_cufile_kind {
    RAW_CUFILE_ENTER = 1,    /* a call that moves, submits or takes begins */
    RAW_CUFILE_REGISTERED,   /* a file: handle, fd */
    RAW_CUFILE_DEREGISTERED, /* handle */
    RAW_CUFILE_MOVED,        /* cuFileRead and cuFileWrite: all but stream and request */
    RAW_CUFILE_ASKED,        /* one request of a batch or stream */
    RAW_CUFILE_SUBMITTED,    /* the call that asked for the `size` requests before it */
    RAW_CUFILE_DONE,         /* one request is done: stream, request, result */
    RAW_CUFILE_TAKEN,        /* the call that told of the `size` requests before it, least of them: `offset` */
    RAW_CUFILE_FORGOTTEN,    /* a batch ends with all its requests: stream */
    RAW_CUFILE_OPENED,       /* a process opened the library; its calls are recorded from `enter` on, 0: they are not
                              * (user space) */
    RAW_CUFILE_DRIVER,       /* a process opened the driver that moves data past system calls (user space) */
};

struct raw_cufile {
    struct raw_head head;
    raw_u64 enter;   /* ns, when the call began */
    raw_u64 handle;  /* of the file, as the library names it */
    raw_u64 stream;  /* of a request: its batch, or its stream */
    raw_u64 request; /* what names it there: a batch's cookie, of a stream where the library writes its result */
    raw_s64 offset;  /* bytes into the file */
    raw_u64 size;    /* bytes */
    raw_s64 result;  /* bytes; below 0: it failed */
    raw_u16 kind;    /* enum raw_cufile_kind */
    raw_u16 how;     /* RAW_CUFILE_* below */
    raw_u32 pad;
    struct raw_fd fd; /* the file; fd.file 0: not known */
};
#define RAW_CUFILE_WRITES 1u
#define RAW_CUFILE_STREAM 2u /* of a stream, not of a batch */

/* Of a file that was sparse when it was opened, as it was at head.time, soon after that: its regions without data, in
 * whole pages of 4 KiB. Several records of the same time are of one look; RAW_PART_LIST has pairs of begin and end. */
struct raw_holes {
    struct raw_head head;
    raw_u64 inode;
    raw_u64 size; /* bytes, of the file then */
    raw_u32 device, pad;
};

struct raw_loss {
    struct raw_head head;
    raw_u64 failed_reserves; /* records that found the ring buffer full */
    raw_u64 recursion_misses;
    raw_u64 untracked;   /* tasks that could not be given storage */
    raw_u64 most_lag_ns; /* longest time between two drains */
};

struct raw_gpu {
    struct raw_head head; /* time: end */
    raw_u64 begin;
    raw_u32 device, stream;
    /* parts: RAW_PART_STRING name */
};

/* Markers travel as prctl(RAW_MARKER_PRCTL, name, number, phase, RAW_MARKER_MAGIC), which the kernel refuses with
 * EINVAL and the recorder sees: an ordinary RAW_CALL of prctl with RAW_PART_STRING of argument 1. phase as in
 * MarkerPhase (formats/oplog/op.h). */
#define RAW_MARKER_PRCTL 0x52505253
#define RAW_MARKER_MAGIC 0x6d61726b

/* NOLINTEND(readability-identifier-naming) */

#endif
