// SPDX-License-Identifier: MIT
// Whether a run did what the recorded job did: how many results may differ, and which root is the log's.
#include <doctest/doctest.h>
#include <fcntl.h>

#include "replay/run/same_job.h"
#include "tests/replay/job_builder.h"
#include "tests/support.h"

namespace reprise::test {
namespace {

/// 1,000 reads, `differ` of them with another result.
ReplayResult thousand_reads(uint64_t differ) {
    ReplayResult result;
    result.latency.resize(kOpKindLimit);
    result.ops = 2000;
    for (int i = 0; i < 1000; ++i) {
        result.latency[static_cast<size_t>(OpKind::read)].add(1000);
        result.latency[static_cast<size_t>(OpKind::compute)].add(1000);  // cannot differ, so it does not count
    }
    result.mismatches = differ;
    result.mismatches_by_kind[static_cast<size_t>(OpKind::read)] = differ;
    return result;
}

}  // namespace

TEST_CASE("one op in a thousand may differ by default, a number or a share by choice") {
    struct Row {
        ToleratedDifferences tolerated;
        uint64_t differ;
        bool same;
    };
    const ToleratedDifferences none{0, {}}, ten{0, 10}, tenth{0.1, {}};
    for (const Row& row :
         {Row{{}, 0, true}, Row{{}, 1, true}, Row{{}, 2, false}, Row{none, 0, true}, Row{none, 1, false},
          Row{ten, 10, true}, Row{ten, 11, false}, Row{tenth, 100, true}, Row{tenth, 101, false}}) {
        CAPTURE(row.differ);
        ReplayResult result = thousand_reads(row.differ);
        judge_results(row.tolerated, result);
        CHECK(result.not_same_job.empty() == row.same);
    }
}

TEST_CASE("a single op that stands for most bytes is more than one in a thousand") {
    const auto same = [](uint64_t missing, const ToleratedDifferences& tolerated = {}) {
        ReplayResult result = thousand_reads(1);
        result.recorded_bytes = 1'000'000;
        result.missing_bytes = missing;
        judge_results(tolerated, result);
        return result.not_same_job;
    };
    CHECK(same(1'000).empty());
    REQUIRE(same(1'001).size() == 1);
    CHECK(same(1'001)[0] == "1001 B of 977 KiB were not read or written, most often read.");
    CHECK(same(950'000, {0, 1}).empty());  // one op, by choice
    // Or of ops each of which may have done less (RWF_NOWAIT): there is none to name.
    ReplayResult none = thousand_reads(0);
    none.recorded_bytes = 1'000'000;
    none.missing_bytes = 400'000;
    judge_results({}, none);
    CHECK(none.not_same_job == std::vector<std::string>{"391 KiB of 977 KiB were not read or written."});
    CHECK(same(50'000, {0.05, {}}).empty());
    CHECK_FALSE(same(50'001, {0.05, {}}).empty());
}

TEST_CASE("a run of no I/O op is no replay, whatever else it did") {
    ReplayResult result;
    result.latency.resize(kOpKindLimit);
    const auto why = [&] {
        result.not_same_job.clear();
        judge_results({}, result);
        return result.not_same_job.size() == 1 ? result.not_same_job[0] : std::string();
    };
    CHECK(why() == "There was nothing to replay: the log has no I/O op.");
    result.ops = 3;
    result.latency[static_cast<size_t>(OpKind::compute)].add(1000);
    CHECK(why() == "There was nothing to replay: the log has no I/O op.");
    result.left_out_io[static_cast<size_t>(LeftOut::no_place)] = 1;
    CHECK(why() == "No I/O op was performed: none of the log's could be.");
    result.left_out_io[static_cast<size_t>(LeftOut::filter)] = 1;
    CHECK(why() == "No I/O op was performed: the filter leaves nothing of the log.");
    result.ended = "interrupted: signal 2 (Interrupt)";
    CHECK(why().empty());
}

TEST_CASE("a part of a job need not have I/O, where the job has") {
    ReplayResult result;
    result.latency.resize(kOpKindLimit);
    result.ops = 3;
    judge_results({}, result, false);
    CHECK(result.not_same_job.empty());
    result.doubts.kept_ops = 1;
    judge_whole(result);
    CHECK(result.not_same_job.empty());
    result.doubts.kept_ops = 0;
    judge_whole(result);
    REQUIRE(result.not_same_job.size() == 1);
    CHECK(result.not_same_job[0] == "There was nothing to replay: the log has no I/O op.");
}

TEST_CASE("ops whose file did not open count, and the open is the example") {
    ReplayResult result = thousand_reads(501);
    result.latency[static_cast<size_t>(OpKind::read)] = {};
    result.latency[static_cast<size_t>(OpKind::open)].add(1000);
    result.left_out[static_cast<size_t>(LeftOut::not_open)] = 500;
    result.mismatches_by_kind[static_cast<size_t>(OpKind::read)] = 500;
    result.mismatches_by_kind[static_cast<size_t>(OpKind::open)] = 1;
    result.examples = {{1, 5, OpKind::read, "/a", 4096, -EBADF, LeftOut::not_open},
                       {1, 4, OpKind::open, "/a\n", 3, -ENOENT, LeftOut::none}};
    CHECK(comparable_ops(result) == 501);
    judge_results({}, result);
    REQUIRE(result.not_same_job.size() == 1);
    CHECK(result.not_same_job[0] ==
          "501 of 501 I/O ops (100 %) have another result than in the recording, most often read; for example open of "
          "/a\\n: here ENOENT, recorded 3.");
    result.not_same_job.clear();
    result.left_out_io[static_cast<size_t>(LeftOut::read_only)] = 1;
    judge_results({}, result);
    REQUIRE(result.not_same_job.size() == 1);
    CHECK(result.not_same_job[0].ends_with("recorded 3; --read-only leaves out what makes it."));
}

TEST_CASE("a full file system is never the same job") {
    ReplayResult result = thousand_reads(0);
    result.no_space = 1;
    judge_results({1, {}}, result);
    REQUIRE(result.not_same_job.size() == 1);
    CHECK(result.not_same_job[0].find("The file system was full: 1 op failed") == 0);
}

namespace {

struct RootOfALog {
    PreparedRoot prepared;
    ReplayOptions options;
    RootOfALog() {
        options.root = prepared.root;
        options.pace = Pace::afap;
        options.log_name = "mine.oplog";
    }
    void mark(const std::string& fingerprint, const PathMap& maps = {}) const {
        const UniqueFd fd(::open(prepared.root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
        RootLock lock = RootLock::take(fd.get(), "root", RootLock::Kind::exclusive);
        Marker marker;
        marker.state = MarkerState::complete;
        marker.log = "theirs.oplog";
        marker.fingerprint = fingerprint;
        marker.maps = maps;
        write_marker(fd.get(), "root", marker, lock);
    }
    LogReader log() const {
        JobBuilder job(prepared.dir / "job.oplog");
        const TaskId t = job.lone_task();
        const HandleId h = job.open(t, job.file("/out", Origin::created), O_WRONLY | O_CREAT);
        job.write(t, h, 0, 4096);
        job.close(t, h);
        return job.finish();
    }
    std::string refusal() const {
        try {
            replay(log(), options);
        } catch (const Error& error) {
            CHECK(error.code() == ExitCode::machine);
            return error.what();
        }
        return "no refusal";
    }
};

}  // namespace

TEST_CASE("a root prepared for another log is refused, with what to do") {
    RootOfALog with;
    with.options.fingerprint = "0123456789abcdef";
    with.mark("fedcba9876543210");
    const std::string root = with.prepared.root.string();
    CHECK(with.refusal() == "the root " + root +
                                " was prepared for another log, theirs.oplog\n  prepare it for this one: reprise "
                                "prepare mine.oplog --root " +
                                root);
    with.mark("fedcba9876543210", PathMap::parse({"/data=."}));
    CHECK(with.refusal().find("another log, theirs.oplog, with --map /data=.\n  prepare it") != std::string::npos);
    with.mark("0123456789abcdef");
    CHECK(with.refusal() == "no refusal");
}

TEST_CASE("a root of the same recording at another scale is no root of another log") {
    RootOfALog with;
    with.options.fingerprint = "0123456789abcdef";
    with.options.log_name = "theirs.oplog --epochs 4";
    with.mark("fedcba9876543210", PathMap::parse({"/data=my place"}));
    const std::string root = with.prepared.root.string();
    CHECK(with.refusal() ==
          "the root " + root +
              " was prepared for theirs.oplog, not for theirs.oplog --epochs 4\n  prepare it for this "
              "one: reprise prepare theirs.oplog --epochs 4 --root " +
              root + " --map '/data=my place'");
    with.options.log_name = "theirs.oplog";
    CHECK(with.refusal().find(" was prepared for another recording of this name, theirs.oplog\n") != std::string::npos);
}

TEST_CASE("--map that contradicts the marker is refused") {
    RootOfALog with;
    with.mark("", PathMap::parse({"/data=."}));
    with.options.maps = PathMap::parse({"/data=x", "/out=."});
    CHECK(with.refusal().find(
              "was prepared with --map /data=., not with --map /data=x --map /out=.\n  leave out --map") !=
          std::string::npos);
    with.options.maps = PathMap{};
    CHECK(with.refusal().find("was prepared with --map /data=., not with no --map\n") != std::string::npos);
    with.options.maps = PathMap::parse({"/data=."});
    CHECK(with.refusal() == "no refusal");
}

TEST_CASE("a root in use is refused, and one that a replay changed is named") {
    RootOfALog with;
    with.mark("");
    {
        const UniqueFd fd(::open(with.prepared.root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
        const RootLock lock = RootLock::take(fd.get(), "root", RootLock::Kind::shared);
        CHECK(with.refusal().find(" is in use by another reprise process\n") != std::string::npos);
        with.options.read_only = true;  // modifies nothing, so two may read
        CHECK(with.refusal() == "no refusal");
        with.options.read_only = false;
    }
    const ReplayResult first = replay(with.log(), with.options);
    CHECK(first.notes.empty());
    const ReplayResult second = replay(with.log(), with.options);
    REQUIRE(second.notes.size() == 1);
    CHECK(second.notes[0].find("Earlier replays changed files in this root. Restore them first with reprise prepare "
                               "mine.oplog --root ") == 0);
}

}  // namespace reprise::test
