// SPDX-License-Identifier: MIT
// Inferred queues kept in the log: as they were inferred, used instead of inferring, and never trusted.
#include "replay/plan/stored_queues.h"

#include <doctest/doctest.h>

#include "formats/support/error.h"
#include "replay/plan/plan.h"
#include "tests/support.h"
#include "tests/units.h"

using namespace reprise;
using reprise::test::TempDir;

namespace {

// A reader of 50 parts and a consumer with 50 submissions: no queue was ever full, so that data is conserved.
void write_job(const std::filesystem::path& path, WriterOptions options) {
    options.sync = false;
    Header header;
    header.source = "test";
    LogWriter log(path, header, options);
    const ProcessId process = log.add_process({.pid = 1});
    const TaskId reader = log.add_task({.process = process, .tid = 1});
    const TaskId trainer = log.add_task({.process = process, .tid = 2});
    FileRow row;
    row.path = log.intern("/data/in");
    row.type = FileType::regular;
    row.role = Role::dataset;
    HandleRow opened;
    opened.file = log.add_file(row);
    const HandleId handle = log.add_handle(opened);
    log.append(reader, {.kind = OpKind::open, .begin = 0, .duration = 10, .result = 3, .handle = handle, .file = 1});
    for (int64_t i = 0; i < 50; ++i) {
        log.append(reader, {.kind = OpKind::pread,
                            .begin = (i + 1) * kMs,
                            .duration = kMs / 2,
                            .result = 4096,
                            .handle = handle,
                            .fd = 3,
                            .offset = i * 4096,
                            .size = 4096});
        log.append(trainer, {.kind = OpKind::gpu_submit, .begin = (i + 2) * kMs, .duration = 10, .size = kMs / 2});
    }
    log.finish();
}

bool same(const QueueInference& a, const QueueInference& b) {
    return encode_queues(a) == encode_queues(b) && a.edges == b.edges;
}

// Made up, to be told from what the log says.
QueueInference other() {
    QueueInference queues;
    InferredQueue queue;
    queue.consumer = 2;
    queue.readers = {1};
    queue.wakes = 99;
    queue.bytes = -5;
    queue.bytes_per_s = 0.1;
    queue.edges = 2;
    queues.queues.push_back(queue);
    queues.edges[2] = {{3, Edge{1, EdgeKind::queue, 70, 8}}, {3, Edge{1, EdgeKind::queue, 71, 2}}};
    queues.feed_nobody = {1};
    queues.event_loops = {2, 1};
    queues.shared = {{{1, 2}, 13, 84, 0}, {{2}, 1, 1, 1}};
    return queues;
}

}  // namespace

TEST_CASE("stored queues: as they were inferred") {
    const TempDir dir;
    write_job(dir / "plain.oplog", {});
    write_job(dir / "kept.oplog", {.derive = derive_queues});
    const LogReader plain(dir / "plain.oplog"), kept(dir / "kept.oplog");
    const QueueInference found = infer_queues(plain);
    REQUIRE(found.queues.size() == 1);
    CHECK(found.edges.at(2).size() == 50);
    CHECK_FALSE(plain.derived("queues"));
    REQUIRE(kept.derived("queues"));
    uint64_t looked = 0;
    CHECK(same(queues_of(kept, [&](uint64_t) { ++looked; }), found));
    CHECK(looked == 0);
    CHECK(same(queues_of(plain, [&](uint64_t) { ++looked; }), found));
    CHECK(looked != 0);
}

TEST_CASE("stored queues: the plan takes those of this version, and infers otherwise") {
    const TempDir dir;
    uint32_t version = kInferenceVersion;
    SUBCASE("this version") {}
    SUBCASE("another version") { ++version; }
    write_job(dir / "a.oplog", {.derive = [&](const LogReader&) {
                  return Derived{"queues", version, encode_queues(other())};
              }});
    const LogReader log(dir / "a.oplog");
    const QueueInference wanted = version == kInferenceVersion ? other() : infer_queues(log);
    CHECK(same(queues_of(log), wanted));
    CHECK(same(make_plan(log, OpFilter::all(), {}, true).queues, wanted));
    CHECK(make_plan(log, OpFilter::all(), {}).queues.empty());
}

TEST_CASE("stored queues: bytes that cannot be of this log are refused") {
    const TempDir dir;
    write_job(dir / "plain.oplog", {});
    const LogReader plain(dir / "plain.oplog");
    const Bytes good = encode_queues(other());
    CHECK(same(decode_queues(good, plain), other()));
    for (size_t n = 0; n < good.size(); ++n) {
        CHECK_THROWS_AS(decode_queues(ByteView(good).first(n), plain), Corrupt);
    }
    Bytes longer = good;
    longer.push_back(0);
    CHECK_THROWS_AS(decode_queues(longer, plain), Corrupt);
    const auto refused = [&](const std::function<void(QueueInference&)>& change) {
        QueueInference queues = other();
        change(queues);
        CHECK_THROWS_AS(decode_queues(encode_queues(queues), plain), Corrupt);
    };
    refused([](QueueInference& q) { q.queues[0].consumer = 3; });
    refused([](QueueInference& q) { q.queues[0].consumer = 0; });
    refused([](QueueInference& q) { q.queues[0].readers = {9}; });
    refused([](QueueInference& q) { q.queues[0].by = static_cast<InferredQueue::By>(2); });
    refused([](QueueInference& q) { q.edges[2][0].second.op = 51; });
    refused([](QueueInference& q) { q.edges[2][1].first = 50; });
    refused([](QueueInference& q) { q.edges[2][0].second.task = 7; });
    refused([](QueueInference& q) { q.event_loops = {3}; });
    refused([](QueueInference& q) { q.shared[0].tasks = {3}; });
    refused([](QueueInference& q) { q.shared[1].parent = 3; });
    write_job(dir / "bad.oplog", {.derive = [&](const LogReader&) {
                  return Derived{"queues", kInferenceVersion, longer};
              }});
    CHECK_THROWS_AS(queues_of(LogReader(dir / "bad.oplog")), Error);
}
