#!/usr/bin/env bash
# Programs that look for results of requests, in memory or with calls, and one that computes while its reads are in flight: the first wait for
# their results in a replay, the last computes. Needs root and BPF, a compiler, liburing, and a disk that reads take time of.
# SPDX-License-Identifier: MIT
# plain builds only
# shellcheck source=lib.bash
source "$(dirname "$0")/lib.bash"
can_record || skip "this machine cannot record"
cd "$tmp" || exit 1
tmp=$(pwd -P)

cat >reader.c <<'EOF'
#define _GNU_SOURCE
#include <fcntl.h>
#include <liburing.h>
#include <linux/aio_abi.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static long ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}
// The same by calls that ask for nothing, of io_uring or of libaio.
static int by_calls(int fd, int requests, void* buffer, struct io_uring* ring) {
    aio_context_t context = 0;
    if (ring == NULL && syscall(SYS_io_setup, 8, &context) != 0) {
        return 77;
    }
    for (int i = 0; i < requests; ++i) {
        struct iocb block = {.aio_lio_opcode = IOCB_CMD_PREAD, .aio_fildes = (unsigned)fd, .aio_buf = (unsigned long)buffer,
                             .aio_nbytes = 1 << 18, .aio_offset = (long)i << 18}, *const list = &block;
        struct io_uring_cqe* done = NULL;
        struct io_event event;
        struct timespec at_once = {0, 0};
        if (ring != NULL) {
            io_uring_prep_read(io_uring_get_sqe(ring), fd, buffer, 1 << 18, (off_t)i << 18);
            io_uring_submit(ring);
            while (io_uring_peek_cqe(ring, &done) != 0) {
                syscall(SYS_io_uring_enter, ring->ring_fd, 0, 0, IORING_ENTER_GETEVENTS, NULL, 0);
            }
            io_uring_cqe_seen(ring, done);
        } else {
            if (syscall(SYS_io_submit, context, 1, &list) != 1) {
                return 1;
            }
            while (syscall(SYS_io_getevents, context, 0, 1, &event, &at_once) != 1) {
            }
        }
    }
    return 0;
}
// reader FILE REQUESTS MICROSECONDS [polled|calls|aio]: so much computing before each look; 0: it looks all the time. polled: a
// thread of the kernel takes the requests. calls, aio: it looks with calls.
int main(int argc, char** argv) {
    const int fd = open(argv[1], O_RDONLY | O_DIRECT), requests = atoi(argv[2]);
    const long work = atol(argv[3]) * 1000;
    struct io_uring ring;
    void* buffer;
    if (fd < 0 || io_uring_queue_init(8, &ring, argc > 4 && strcmp(argv[4], "polled") == 0 ? IORING_SETUP_SQPOLL : 0) != 0 || posix_memalign(&buffer, 4096, 1 << 18) != 0) {
        return 77;
    }
    memset(buffer, 1, 1 << 18);
    if (argc > 4 && strcmp(argv[4], "polled") != 0) {
        return by_calls(fd, requests, buffer, strcmp(argv[4], "calls") == 0 ? &ring : NULL);
    }
    for (int i = 0; i < requests; ++i) {
        struct io_uring_cqe* done = NULL;
        io_uring_prep_read(io_uring_get_sqe(&ring), fd, buffer, 1 << 18, (off_t)i << 18);
        io_uring_submit(&ring);
        for (const long end = ns() + work + (i % 7) * work / 8; ns() < end;) {
        }
        while (io_uring_peek_cqe(&ring, &done) != 0) {
        }
        if (done->res != 1 << 18) {
            return 1;
        }
        io_uring_cqe_seen(&ring, done);
    }
    return 0;
}
EOF
cc -O2 -o reader reader.c -luring 2>cc.txt || skip "no compiler with liburing: $(head -n 1 cc.txt)"
head -c 64M /dev/urandom >data
sync data
status=0
./reader "$tmp/data" 4 0 || status=$?
[[ $status != 77 ]] || skip "no io_uring, or no O_DIRECT on the file system of $tmp"
equal "$status" 0

for work in 0 5000 polled calls aio; do
    words=("$work")
    [[ $work == [0-9]* ]] || words=(0 "$work")
    run 0 "$REPRISE" capture -o $work.oplog -- ./reader "$tmp/data" 200 "${words[@]}"
    run 0 "$REPRISE" prepare $work.oplog --root $work.root --only "$tmp"
    # A crowded machine does not keep pace, which is no concern of this.
    run "0 1" "$REPRISE" replay $work.oplog --root $work.root --only "$tmp" --cache as-is -v --json=$work.json
    contains "$out" "SAME:"
    for pace in afap timed; do
        run "0 1" "$REPRISE" replay $work.oplog --root $work.root --only "$tmp" --cache as-is --pace $pace
        contains "$out" "SAME:"
    done
done
note="of the recorded computing was polling for results of requests in memory"
grep -q "$note" 0.json || fail "the program that looks: $(grep -A4 notes 0.json)"
# With a thread of the kernel, three want two processors, and what came when may say nothing.
grep -q "$note" polled.json || echo "note: not seen that the job with a polling thread looks"
grep -q "$note" 5000.json && fail "the program that computes: $(grep "$note" 5000.json)"
# As many calls in a row as find nothing are one op.
for work in calls aio; do
    run 0 "$REPRISE" dump $work.oplog
    grep -cE "(uring_enter|aio_reap) result=0" "$out" >/dev/null || fail "$work: no call that found nothing"
    (($(grep -cE "uring_enter|aio_reap" "$out") < 5000)) || fail "$work: $(grep -cE "uring_enter|aio_reap" "$out") calls"
done
# On no storage at all.
for work in 0 5000 polled calls aio; do
    run 0 "$REPRISE" replay $work.oplog --engine null --json=null-$work.json
done
python3 - <<'EOF' || fail "without storage"
import json
runs = {work: json.load(open(f"null-{work}.json")) for work in ("0", "5000", "polled", "calls", "aio")}
print({work: (run["elapsed_s"], run["recorded_s"]) for work, run in runs.items()})
computes = runs["5000"]
for work in ("calls", "aio"):
    assert runs[work]["elapsed_s"] < runs[work]["recorded_s"] / 2, work
assert computes["elapsed_s"] > 200 * 0.005, computes["elapsed_s"]
EOF
finish
