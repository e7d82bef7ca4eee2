/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What the BPF programs and their loader agree on, besides the records themselves: rules of calls, settings, counters,
 * the state of a followed task. Plain C. */
#ifndef REPRISE_CAPTURE_SHARED_H
#define REPRISE_CAPTURE_SHARED_H

#include "formats/raw/record.h"

/* Names as C has them. NOLINTBEGIN(readability-identifier-naming) */

#define CALL_LIMIT 512 /* system call numbers known; a power of two */
#define NO_CALL 0xffff

/* What the iterator task_memory writes, for each followed process: resident pages. A page that several share counts for
 * each. */
struct process_memory {
    raw_u32 pid, pad;
    raw_u64 anonymous, shared; /* bytes */
};

enum rule_kind {
    RULE_NONE = 0, /* not recorded */
    RULE_PLAIN,    /* arguments only */
    RULE_FD,       /* and one descriptor: the fast path of read and write */
    RULE_OPEN,     /* the result's descriptor and one path: the fast path of open where the path is short */
    RULE_RICH,     /* descriptors, strings, lists */
};

enum rule_flags {
    RULE_WAKES = 1,      /* a task inside this call can end another's wait */
    RULE_AT_ENTER = 2,   /* the descriptor is gone at exit: close */
    RULE_NOT_ANON = 4,   /* mmap: no descriptor where MAP_ANONYMOUS */
    RULE_IF_MARKER = 8,  /* prctl: only markers and names */
    RULE_IF_CLONE = 16,  /* ioctl: only FICLONE, FICLONERANGE and TCGETS */
    RULE_POPULATES = 32, /* brings pages in, as its op says */
    RULE_UNMAPS = 64,    /* mappings end, or move */
    RULE_READS = 128,    /* data into memory */
    RULE_WRITES = 256,   /* data out of memory */
    RULE_CHILD = 512,    /* tells which child ended, by its number in the caller's PID namespace */
    RULE_LOCKS = 1024,   /* fcntl: some commands are about a lock on a range, a struct flock */
};

/* What else a call says, beside descriptors and strings. `extra_arg` names the argument. */
enum rule_extra {
    EXTRA_NONE = 0,
    EXTRA_IOVEC,    /* struct iovec[next argument] -> RAW_PART_LIST */
    EXTRA_MESSAGE,  /* struct msghdr: sizes and passed descriptors */
    EXTRA_MESSAGES, /* struct mmsghdr[result]: bytes of each, passed descriptors */
    EXTRA_STAT,     /* struct stat filled by the call */
    EXTRA_STATX,
    EXTRA_OFFSETS, /* 64-bit offsets behind pointers: extra_arg and extra_arg2 -> RAW_PART_VALUES each */
    EXTRA_PAIR,    /* int[2] of descriptors filled by the call */
    EXTRA_IOCBS,   /* io_submit */
    EXTRA_EVENTS,  /* io_getevents */
    EXTRA_SIGINFO, /* waitid: pid, code, status */
    EXTRA_HOW,     /* struct open_how */
    EXTRA_CLONE,   /* ioctl: the source, a descriptor or struct file_clone_range */
    EXTRA_LIST,    /* an access control list: value of the attribute named by the argument before, size in the next */
    EXTRA_LOCK,    /* struct flock -> RAW_PART_VALUES */
    EXTRA_LINK,    /* as many bytes as the result says: the target of a link */
};

/* Arguments are stored as number + 1; 0: none. Of descriptors 9 is the result. */
struct call_rule {
    raw_u16 kind, flags;
    raw_u8 fd, fd2;
    raw_u8 path, path2;
    raw_u8 string;
    raw_u8 extra, extra_arg, extra_arg2;
};
#define RULE_RESULT (RAW_WHICH_RESULT + 1)

enum counter {
    COUNT_RECORDS = 0,
    COUNT_LOST,      /* the ring was full */
    COUNT_UNTRACKED, /* tasks that could not be given storage, or whose calls are not understood (32-bit) */
    COUNT_TASKS,     /* ever followed */
    COUNT_LIVE,      /* now followed */
    COUNT_LIMIT,
};

/* What the programs keep of a followed task. */
struct task_state {
    raw_u64 enter; /* ns; 0: in no recorded call */
    raw_u64 left;  /* ns: end of the last one */
    raw_u64 off, wake, waker_enter;
    raw_u64 fault_enter, fault_address;
    raw_u64 submit_time; /* of its last request of io_uring */
    raw_u32 submit_sequence;
    raw_u32 waker_pid, waker_tid;
    raw_u32 sequence;
    raw_u16 nr, waker_nr;
    raw_u16 off_nr, off_state, off_iowait;
    raw_u8 fault_write, fault_told;
    raw_u8 fault_present; /* the page was there: not its first touch */
    raw_u8 fault_counted; /* pages of a file were mapped, and nothing of the file system told which */
    raw_u8 fault_broken;  /* the task left the processor since it began */
    raw_u8 fault_looks;   /* these programs look whether a page is mapped */
    raw_u64 fault_end;
    raw_u64 dear_ns; /* see raw_faults; not emitted yet, as the two below */
    raw_u32 dear, faults;
    raw_u64 stolen;        /* by the host from this processor, when the task was last looked at; 0: not yet */
    raw_u32 own;           /* ns that these programs took after the last call's end */
    raw_u8 compat;         /* a 32-bit program: other call numbers */
    raw_u8 pages;          /* a run of page-cache traffic is at hand */
    raw_u8 waker_deferred; /* RAW_FLAG_DEFERRED */
    raw_u8 ended;          /* its last record was sent */
    raw_u64 folio_mapping,
        folio_page;        /* page cache and number of the page that a fault writes to; 0: none is awaited */
    raw_s64 folio_counted; /* pages of files (before: of tmpfs) that the process had mapped by then */
    raw_u64 fault_pages;   /* that the fault mapped, from its address on */
    raw_u64 aio_context;   /* to which it submitted last (libaio); 0: none */
    raw_s64 aio_eventfd;   /* less 1: that of its last request with one; 0: none */
    struct raw_fd at_enter;
    struct { /* faults on neighbouring pages, not emitted yet */
        raw_u64 enter, end, busy, address;
        raw_u32 pages, write;
    } touch;
};

/* A path shorter than this takes no detour over the scratch. Its record is reserved whole and cut to head.size by the
 * reader of the ring. */
#define SHORT_PATH 128

/* A file whose page-cache traffic is recorded. */
struct file_key {
    raw_u64 inode;
    raw_u32 device, pad;
};

/* A control group whose tasks are followed. */
struct cgroup_key {
    raw_u64 id;
    raw_u32 hierarchy, pad;
};

/* What a fault on new anonymous memory takes: of a page, and of a huge one. Filled in by the loader once it was
 * measured; until then each fault is a dear one, which is how it is measured. */
enum page_kind { PAGE_BASE = 0, PAGE_HUGE, PAGE_KINDS };
struct page_cost {
    raw_u64 usual; /* ns */
    raw_u64 dear;  /* ns from which on it is far more */
};

/* What the iterator page_roots writes: where a process's page tables begin, as the kernel addresses them. */
struct page_root {
    raw_u32 pid, pad;
    raw_u64 table;
};

/* What read_page_tables is asked for: the lowest tables from `begin` on, `count` of them; each has 2 MiB of addresses.
 * `base`: where the kernel has physical address 0. */
struct page_walk {
    raw_u64 root, base, begin, count, levels;
};

/* Bits of an entry, as the processor has them. */
#define PAGE_PRESENT 1ULL
#define PAGE_USED 0x20ULL
#define PAGE_IS_HUGE 0x80ULL
#define PAGE_FRAME 0x000ffffffffff000ULL

#define PAGE_ENTRIES 512
#define PAGE_TABLES 256 /* most of one walk */
enum page_table_kind { PAGE_TABLE_NONE = 0, PAGE_TABLE_PAGES, PAGE_TABLE_HUGE };
struct page_table {
    raw_u64 kind; /* enum page_table_kind; huge: entries[0] is that of all 2 MiB (or more) */
    raw_u64 entries[PAGE_ENTRIES];
};
struct page_tables {
    struct page_table slots[PAGE_TABLES];
};

/* Functions that are probed; each probe has its own as cookie. The numbers are the loader's and these programs' only.
 */
enum probed_function {
    CUFILE_REGISTER = 1,
    CUFILE_DEREGISTER,
    CUFILE_READ,
    CUFILE_WRITE,
    CUFILE_READ_ASYNC,
    CUFILE_WRITE_ASYNC,
    CUFILE_BATCH_SUBMIT,
    CUFILE_BATCH_STATUS,
    CUFILE_BATCH_DESTROY,
    CUDA_SYNC_STREAM, /* all that was given to the stream of the first argument is done */
    CUDA_SYNC_ALL,    /* all that was given to any */
    CUDA_SYNC_SOME,   /* not known what */
};

struct request_state {
    raw_u64 issued, sector;
    raw_u32 pid, tid, bytes, device, write, pad;
};

/* NOLINTEND(readability-identifier-naming) */

#endif
