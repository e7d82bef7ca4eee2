// SPDX-License-Identifier: MIT
#include "replay/engine/read_buffer.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <string>

#include "formats/oplog/oplog.h"
#include "replay/content/verify_plan.h"
#include "replay/engine/posix.h"
#include "tests/replay/job_builder.h"

using namespace reprise;
using namespace reprise::test;

namespace {

constexpr size_t kMiB = size_t{1} << 20;

/// Mappings of this process that are of memory which lies in a buffer again and again.
size_t repeated_parts() {
    std::ifstream maps("/proc/self/maps");
    size_t count = 0;
    for (std::string line; std::getline(maps, line);) {
        count += line.find("reprise-reads") != line.npos ? 1 : 0;
    }
    return count;
}

struct NoRun : RunContext {
    bool stopped() const override { return false; }
    bool ended(TaskId) const override { return false; }
    PassSlot& pass(size_t) override { return slot; }
    PassSlot slot;
};

/// How many such parts the buffer has of an engine for a log of that source which reads so many bytes at once.
size_t parts_of_engine(const std::string& source, int64_t bytes, bool verified) {
    const TempDir dir;
    {
        Header header;
        header.source = source;
        LogWriter out(dir / "job.oplog", header);
        FileRow file;
        file.path = out.intern("/data/in");
        file.type = FileType::regular;
        const HandleId handle = out.add_handle({.file = out.add_file(file), .flags = O_RDONLY});
        const TaskId task = out.add_task({.process = out.add_process({})});
        out.append(task, {.kind = OpKind::pread, .duration = 1, .result = bytes, .handle = handle, .size = bytes});
        out.finish();
    }
    const LogReader log(dir / "job.oplog");
    Plan plan = make_plan(log, {}, {});
    if (verified) {
        plan.verify = std::make_shared<VerifyPlan>();
    }
    const WritePattern pattern(4096);
    NoRun run;
    WorkerState process(plan, -1, false, pattern, run);
    const PosixEngine engine({.plan = plan, .task = plan.tasks.at(1), .process = &process});
    return repeated_parts();
}

}  // namespace

TEST_CASE("a large buffer of little memory takes all bytes, and keeps the last") {
    const ReadBuffer buffer(9 * kMiB + 5000, true);
    REQUIRE(buffer.memory() == 2 * kMiB);
    CHECK(repeated_parts() == 5);
    std::memset(buffer.data(), 'x', 9 * kMiB + 5000);
    std::memset(buffer.data() + 8 * kMiB, 'y', 1000);
    CHECK(buffer.data()[0] == std::byte{'y'});
    CHECK(buffer.data()[2 * kMiB + 999] == std::byte{'y'});
    CHECK(buffer.data()[2 * kMiB + 1000] == std::byte{'x'});
}

TEST_CASE("small buffers, and those whose bytes somebody looks at, are memory of their own") {
    for (const size_t bytes : {size_t{1}, 4 * kMiB}) {
        const ReadBuffer buffer(bytes, true);
        CHECK(buffer.memory() >= bytes);
        CHECK(repeated_parts() == 0);
    }
    const ReadBuffer buffer(9 * kMiB, false);
    std::memset(buffer.data() + 8 * kMiB, 'y', 1000);
    CHECK(buffer.data()[0] == std::byte{0});
    CHECK(buffer.memory() == 9 * kMiB);
}

TEST_CASE("generated jobs read into little memory, unless what they read is verified; recorded ones do not") {
    constexpr int64_t kLarge = 20 << 20;
    CHECK(parts_of_engine("generate", kLarge, false) == 10);
    CHECK(parts_of_engine("generate", kLarge, true) == 0);
    CHECK(parts_of_engine("capture", kLarge, false) == 0);
    CHECK(parts_of_engine("generate", 100'000, false) == 0);
}
