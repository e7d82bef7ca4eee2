// SPDX-License-Identifier: MIT
// sample_log NAME OUT: writes one of the logs of tests/samples.h, or one of its own, for tests that are scripts.
#include <fcntl.h>

#include <cstdio>
#include <string_view>

#include "formats/oplog/oplog.h"
#include "tests/samples.h"

namespace {

/// 200 reads of 4 KiB through a ring, four in flight: one is done every 100 us, and the next one is submitted.
void write_requests(const char* path) {
    using namespace reprise;
    constexpr int64_t kStep = 100'000, kSize = 4096;
    constexpr uint32_t kRequests = 200, kDepth = 4;
    Header header;
    header.source = "capture";
    LogWriter log(path, header, WriterOptions{.sync = false});
    log.add_process({.pid = 100});
    const TaskId task = log.add_task({.process = 1, .tid = 100});
    FileRow row;
    row.path = log.intern("/data/set");
    row.type = FileType::regular;
    row.origin = Origin::existed;
    row.role = Role::dataset;
    row.size = kRequests * kSize;
    const FileId file = log.add_file(row);
    const HandleId data = log.add_handle({.file = file, .flags = O_RDONLY});
    const HandleId ring = log.add_handle({.kind = HandleKind::other, .inherited = true, .process = 1, .fd = 5});
    const auto add = [&](OpKind kind, int64_t begin, int64_t result, auto fill) {
        Op op;
        op.kind = kind;
        op.begin = begin;
        op.result = result;
        fill(op);
        log.append(task, op);
    };
    add(OpKind::open, -kStep, 3, [&](Op& op) {
        op.file = file;
        op.handle = data;
    });
    const auto submit = [&](uint32_t first, uint32_t last, int64_t now) {
        for (uint32_t request = first; request <= last; ++request) {
            add(OpKind::uring_submit, now, 0, [&](Op& op) {
                op.handle = data;
                op.fd = 3;
                op.offset = int64_t{request - 1} * kSize;
                op.size = kSize;
                op.arg = 22;  // IORING_OP_READ
                op.request = request;
            });
        }
        add(OpKind::uring_enter, now, last + 1 - first, [&](Op& op) {
            op.handle = ring;
            op.fd = 5;
            op.size = last + 1 - first;
            op.arg = 1;
        });
    };
    submit(1, kDepth, 0);
    for (uint32_t done = 1; done <= kRequests; ++done) {
        add(OpKind::uring_complete, done * kStep, kSize, [&](Op& op) {
            op.request = done;
            op.size = kSize;
        });
        if (done + kDepth <= kRequests) {
            submit(done + kDepth, done + kDepth, done * kStep);
        }
    }
    log.finish();
}

}  // namespace

int main(int argc, char** argv) {
    using namespace reprise::test;
    if (argc != 3) {
        std::fprintf(stderr, "usage: sample_log NAME OUT\n");
        return 2;
    }
    const std::string_view name = argv[1];
    if (name == "sample") {
        write_sample(argv[2]);
    } else if (name == "run") {
        write_sample_run(argv[2]);
    } else if (name == "run-short-read") {
        write_sample_run(argv[2], {.short_read = true});
    } else if (name == "run-missing") {
        write_sample_run(argv[2], {.missing_op = true});
    } else if (name == "run-slower") {
        write_sample_run(argv[2], {.slower = 1.1});
    } else if (name == "all-ops") {
        write_all_ops(argv[2]);
    } else if (name == "requests") {
        write_requests(argv[2]);
    } else if (name == "fio") {
        write_fio_sample(argv[2]);
    } else if (name == "live") {
        write_live_sample(argv[2], 500);
    } else if (name == "live-long") {
        write_live_sample(argv[2], 12'000);
    } else if (name == "live-short") {
        write_live_sample(argv[2], 100);
    } else {
        return 2;
    }
    return 0;
}
