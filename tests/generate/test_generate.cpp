// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "formats/support/error.h"
#include "generate/data_set.h"
#include "generate/generate.h"
#include "tests/support.h"

using namespace reprise;
using namespace reprise::test;

namespace {

struct Generated {
    explicit Generated(const std::string& text)
        : result(generate(parse_job(text, "job.ini"), dir / "job.oplog")), log(dir / "job.oplog") {}

    std::map<OpKind, uint64_t> kinds() const {
        std::map<OpKind, uint64_t> out;
        log.for_each_in_time([&](TaskId, const Op& op, uint64_t) { ++out[op.kind]; });
        return out;
    }
    /// Bytes read of each file.
    std::map<std::string, int64_t> bytes() const {
        std::map<std::string, int64_t> out;
        log.for_each_in_time([&](TaskId, const Op& op, uint64_t) {
            if (info(op.kind).is(Trait::reads)) {
                out[std::string(log.tables().path(log.tables().file_of(op)))] += data_bytes(op);
            }
        });
        return out;
    }

    TempDir dir;
    GenerateResult result;
    LogReader log;
};

/// Each edge's source is over before what waits for it is.
void check_edges(const LogReader& log) {
    std::map<std::pair<TaskId, uint64_t>, int64_t> ends;
    log.for_each_in_time([&](TaskId task, const Op& op, uint64_t number) { ends[{task, number}] = op.end(); });
    uint64_t edges = 0;
    log.for_each_in_time([&](TaskId, const Op& op, uint64_t) {
        for (const Edge& edge : op.edges) {
            const auto source = ends.find({edge.task, edge.op});
            REQUIRE(source != ends.end());
            CHECK(source->second <= op.end());
            ++edges;
        }
    });
    CHECK(edges > 0);
}

}  // namespace

TEST_CASE("what was drawn below the least is said, and checkpoints that are never due") {
    const Generated job(
        "[t]\nformat=npz\nsamples=1000\nsample_size=normal(1000,600)\nbatch=10\nloader_workers=3\n"
        "decode=uniform(0,1ms)\ncompute=normal(5ms,3ms)\ncheckpoint_every=101\ncheckpoint_size=1k\n"
        "[e]\nformat=npz\nsamples=20\nsample_size=1k\nbatch=10\nsteps=1\ncheckpoint_every=1epoch\n"
        "checkpoint_size=1k\n"
        "[c]\nworkload=convert\nsamples=1000\nsample_size=normal(1000,600)\n");
    uint64_t least = 0;
    for (size_t file = 1; file < job.log.tables().files.size(); ++file) {
        least += job.log.tables().path(static_cast<FileId>(file)).starts_with("/data/t-") &&
                         job.log.tables().files[file].size == 1
                     ? 1
                     : 0;
    }
    REQUIRE(least > 10);
    const std::vector<std::string> notes = notes_of(job.result);
    REQUIRE(notes.size() == 5);
    CHECK(notes[0] ==
          "[t] sample_size=normal(1000,600): " + std::to_string(least) + " of 1,000 draws were below 1 and became 1");
    CHECK(notes[1].starts_with("[t] compute=normal(5ms,3ms): "));
    CHECK(notes[1].ends_with(" below 0 and became 0"));
    CHECK(notes[1].find(" of 100 draws ") != std::string::npos);
    CHECK(notes[2] == "[t] writes no checkpoint: checkpoint_every=101, and the job has 100 steps");
    CHECK(notes[3] == "[e] writes no checkpoint: checkpoint_every=1epoch, and the job has 0 whole epochs");
    CHECK(notes[4].starts_with("[c] sample_size=normal(1000,600): "));
    CHECK(notes_of(Generated("[t]\nformat=npz\nsamples=20\nsample_size=1k\nbatch=10\ncheckpoint_every=2\n"
                             "checkpoint_size=1k\n")
                       .result)
              .empty());
}

TEST_CASE("steps= takes as many epochs as it needs; where epochs= ends before, a note says so") {
    constexpr const char* kSmall = "[t]\nformat=npz\nsamples=20\nsample_size=1k\nbatch=4\nsteps=12\n";
    const Generated job(kSmall);
    CHECK(job.result.sections[0].steps == 12);
    CHECK(notes_of(job.result).empty());
    for (const auto& [path, bytes] : job.bytes()) {
        const int64_t epochs = bytes / 1024;  // 5 steps each, and two of the third
        CHECK((epochs == 2 || epochs == 3));
    }
    const std::string note = "[t] makes 5 steps, not the 12 of steps=: 1 epoch of 5 has no more";
    const Generated fewer(std::string(kSmall) + "epochs=1\n");
    CHECK(fewer.result.sections[0].steps == 5);
    CHECK(notes_of(fewer.result) == std::vector<std::string>{note});
    CHECK(notes_of(Generated(std::string(kSmall) + "epochs=2\n").result) ==
          std::vector<std::string>{"[t] makes 10 steps, not the 12 of steps=: 2 epochs of 5 have no more"});
    CHECK(notes_of(Generated(std::string(kSmall) + "epochs=3\n").result).empty());
}

TEST_CASE("compute_on=processor: the ranks compute, and there is no accelerator") {
    const Generated job(
        "[t]\nformat=npz\nsamples=24\nsample_size=100k\nbatch=2\ngpus=2\nloader_workers=3\ncompute=5ms\n"
        "compute_on=processor\n");
    check_edges(job.log);
    auto kinds = job.kinds();
    CHECK(kinds[OpKind::gpu_submit] == 0);
    CHECK(kinds[OpKind::gpu_wait] == 0);
    CHECK(kinds[OpKind::compute] == 12);
    CHECK(job.result.sections.at(0).end >= 6 * 5'000'000);
    CHECK_THROWS(
        parse_job("[t]\nformat=npz\nsamples=24\nsample_size=1k\ngpus=2\nranks=1\ncompute_on=processor\n", "x"));
}

TEST_CASE("a file for each sample: every sample is read once an epoch, as a whole") {
    const Generated job(
        "[t]\nformat=npz\nsamples=24\nsample_size=normal(100k,20k)\nbatch=2\ngpus=2\nloader_workers=3\nshuffle=full\n"
        "epochs=2\ncompute=5ms\ndecode=1ms\n");
    check_edges(job.log);
    CHECK(job.result.sections.at(0).files == 24);
    CHECK(job.result.sections.at(0).steps == 12);
    const auto bytes = job.bytes();
    CHECK(bytes.size() == 24);
    for (FileId file = 1; file < job.log.tables().files.size(); ++file) {
        const FileRow& row = job.log.tables().files[file];
        CHECK(bytes.at(std::string(job.log.tables().path(file))) == 2 * static_cast<int64_t>(row.size));
    }
    auto kinds = job.kinds();
    CHECK(kinds[OpKind::open] == 48);
    CHECK(kinds[OpKind::gpu_submit] == 24);
    CHECK(kinds[OpKind::compute] == 48);
    CHECK(kinds[OpKind::spawn] == 6);
    CHECK(kinds[OpKind::join] == 6);
}

TEST_CASE("streams are read from front to back, each byte once an epoch") {
    for (const char* format : {"tfrecord", "tar"}) {
        CAPTURE(format);
        const Generated job(
            "[t]\nformat=" + std::string(format) +
            "\nsamples=120\nsamples_per_file=10\nsample_size=30000\nbatch=5\nloader_workers=2\nshuffle=full\nbs=64k\n");
        check_edges(job.log);
        uint64_t whole = 0;
        for (const auto& [path, bytes] : job.bytes()) {
            whole += static_cast<uint64_t>(bytes);
        }
        // Two readers may meet within a file, and read a block twice.
        CHECK(static_cast<int64_t>(whole) >= job.result.sections[0].file_bytes - 12 * 1024);
        CHECK(static_cast<int64_t>(whole) <= job.result.sections[0].file_bytes + 2 * 65536);
    }
}

TEST_CASE("formats read what their libraries do") {
    SUBCASE("hdf5") {
        const Generated job("[t]\nformat=hdf5\nsamples=8\nsamples_per_file=1\nsample_size=1MiB\nloader_workers=1\n");
        auto kinds = job.kinds();
        CHECK(kinds[OpKind::pread] == 8 * 9);
        CHECK(kinds[OpKind::fstat] == 8);
        CHECK(kinds[OpKind::open] == 8);
    }
    SUBCASE("parquet") {
        const Generated job(
            "[t]\nformat=parquet\nsamples=64\nsample_size=1k\nrow_group=16\ncolumns=4\nloader_workers=1\nbatch=8\n");
        CHECK(job.kinds()[OpKind::pread] == 2 + 4 * 4);  // the footer twice, then columns of row groups
    }
    SUBCASE("mapped") {
        for (const char* format : {"indexed", "arrow", "lmdb"}) {
            CAPTURE(format);
            const Generated job("[t]\nformat=" + std::string(format) +
                                "\nsamples=200\nsample_size=lognormal(9k,2k)\nloader_workers=2\nshuffle=full\n");
            check_edges(job.log);
            auto kinds = job.kinds();
            CHECK(kinds[OpKind::mmap] == (std::string(format) == "indexed" ? 4 : 2));
            CHECK(kinds[OpKind::munmap] == kinds[OpKind::mmap]);
            CHECK(kinds[OpKind::touch] >= 200);
            job.log.for_each_in_time([&](TaskId, const Op& op, uint64_t) {
                if (op.kind == OpKind::touch) {
                    CHECK(op.offset >= 0);
                }
            });
        }
    }
    SUBCASE("none") {
        const Generated job(
            "[t]\nformat=none\nsteps=3\ngpus=2\ncompute=1ms\ncheckpoint_every=1\ncheckpoint_size=10m\ncheckpoint_mode="
            "sharded\n");
        CHECK(job.result.written_bytes == 30 << 20);
        CHECK(job.result.read_bytes == 0);
        CHECK(job.kinds()[OpKind::rename] == 6);
    }
}

TEST_CASE("reads and touches stay within their files") {
    for (const char* format : {"npz", "tfrecord", "tar", "hdf5", "indexed", "parquet", "arrow", "lmdb"}) {
        CAPTURE(format);
        const bool one = std::string(format) == "npz";
        const Generated job("[t]\nformat=" + std::string(format) + (one ? "\n" : "\nsamples_per_file=70\n") +
                            "samples=333\nsample_size=normal(5000,3000)\nbatch=3\nshuffle=20\nepochs=2\n");
        std::map<uint32_t, FileId> maps;
        job.log.for_each_in_time([&](TaskId, const Op& op, uint64_t) {
            const Tables& tables = job.log.tables();
            if (op.kind == OpKind::mmap) {
                maps[op.map] = tables.file_of(op);
            } else if (op.kind == OpKind::touch) {
                CHECK(op.offset + op.size <= static_cast<int64_t>(tables.files[maps.at(op.map)].size) + 4095);
            } else if (op.kind == OpKind::pread) {
                CHECK(op.offset >= 0);
                CHECK(op.offset + op.result <= static_cast<int64_t>(tables.files[tables.file_of(op)].size));
            }
        });
    }
}

TEST_CASE("the loader is never further ahead than its queue") {
    const Generated job("[t]\nformat=npz\nsamples=64\nsample_size=1k\nloader_workers=2\nprefetch=3\ncompute=10ms\n");
    // A worker begins batch b only after batch b - 6 was taken: reads begun less steps done are at most 7.
    int64_t begun = 0, done = 0, most = 0;
    job.log.for_each_in_time([&](TaskId, const Op& op, uint64_t) {
        begun += op.kind == OpKind::open ? 1 : 0;
        done += op.kind == OpKind::gpu_wait ? 1 : 0;
        most = std::max(most, begun - done);
    });
    CHECK(most >= 6);
    CHECK(most <= 8);
}

TEST_CASE("interleave: a batch takes samples from all loaders in turn, and all together are ahead") {
    const std::string text =
        "[t]\nformat=npz\nsamples=64\nsample_size=1k\nbatch=6\nloader_workers=4\nprefetch=2\n"
        "compute=10ms\nepochs=2\ninterleave=";
    const Generated job(text + "1\n"), own(text + "0\n");
    check_edges(job.log);
    CHECK(job.bytes() == own.bytes());
    CHECK(job.result.sections[0].steps == 20);
    std::map<TaskId, uint64_t> opened;
    int64_t begun = 0, done = 0, most = 0;
    size_t waits_for = 0;
    job.log.for_each_in_time([&](TaskId task, const Op& op, uint64_t) {
        opened[task] += op.kind == OpKind::open ? 1 : 0;
        begun += op.kind == OpKind::open ? 1 : 0;
        done += op.kind == OpKind::gpu_wait ? 6 : 0;
        most = std::max(most, begun - done);
        waits_for = std::max(waits_for, op.edges.size());
    });
    CHECK(opened.size() == 5);  // of them one, the rank, opens nothing
    for (const auto& [task, files] : opened) {
        CHECK(files == (task == 1 ? 0 : 30));
    }
    CHECK(waits_for == 4);
    CHECK(most >= 12);
    CHECK(most <= 18 + 4);
    for (const char* const format : {"tfrecord", "tar"}) {
        const std::string stream = std::string("[t]\nformat=") + format +
                                   "\nsamples=64\nsamples_per_file=8\nsample_size=10k\nbatch=8\nloader_workers=4\n"
                                   "interleave=";
        CHECK(Generated(stream + "1\n").bytes() == Generated(stream + "0\n").bytes());
    }
    CHECK_THROWS_WITH_AS(
        parse_job("[t]\nformat=npz\nsamples=8\nsample_size=1k\nloader_workers=0\ninterleave=1\n", "x.ini"),
        doctest::Contains("interleave=1 needs loaders"), Error);
}

TEST_CASE("checkpoints: who writes, and who waits") {
    const std::string job =
        "[t]\nformat=none\nsteps=4\ngpus=2\ncompute=10ms\ncheckpoint_every=2\ncheckpoint_size=100m\ncheckpoint_mode=";
    const Generated blocking(job + "blocking\n"), copied(job + "async\n"), sharded(job + "sharded\n");
    CHECK(blocking.kinds()[OpKind::rename] == 2);
    CHECK(copied.kinds()[OpKind::rename] == 2);
    CHECK(sharded.kinds()[OpKind::rename] == 4);
    check_edges(blocking.log);
    check_edges(copied.log);
    check_edges(sharded.log);
    CHECK(copied.kinds()[OpKind::compute] == 2);
    CHECK(copied.result.tasks == 3);
}

TEST_CASE("checkpoints by epoch: each has a name of its own, and none is made of an epoch that was cut short") {
    const Generated job(
        "[t]\nformat=npz\nsamples=4\nsample_size=1k\nbatch=2\nepochs=100\nsteps=9\ncheckpoint_every=1epoch\ncheckpoint_"
        "size=1k\n");
    std::set<std::string> names;
    job.log.for_each_in_time([&](TaskId, const Op& op, uint64_t) {
        if (op.kind == OpKind::rename) {
            CHECK(names.insert(std::string(job.log.tables().path(op.file2))).second);
        }
    });
    CHECK(names == std::set<std::string>{"/data/t-checkpoint-2.pt", "/data/t-checkpoint-4.pt",
                                         "/data/t-checkpoint-6.pt", "/data/t-checkpoint-8.pt"});
}

TEST_CASE("plain I/O: every block once, mixed, behind each other, in flight") {
    SUBCASE("random") {
        const Generated job("[r]\nrw=randread\nsize=1m\nbs=4k\nnrfiles=2\nnumjobs=2\n");
        std::set<std::pair<FileId, int64_t>> seen;
        job.log.for_each_in_time([&](TaskId, const Op& op, uint64_t) {
            if (op.kind == OpKind::pread) {
                CHECK(seen.insert({job.log.tables().file_of(op), op.offset}).second);
            }
        });
        CHECK(seen.size() == 512);
    }
    SUBCASE("a mix of sizes") {
        const Generated job("[m]\nrw=rw\nsize=4m\nbs=4k-64k\nfsync=10\nthinktime=5\nend_fsync=1\n");
        // The last block is whole, as with fio.
        CHECK(job.result.read_bytes + job.result.written_bytes >= 4 << 20);
        CHECK(job.result.read_bytes + job.result.written_bytes < (4 << 20) + (64 << 10));
        auto kinds = job.kinds();
        CHECK(kinds[OpKind::fsync] == kinds[OpKind::pwrite] / 10 + 1);
        CHECK(kinds[OpKind::wait] == kinds[OpKind::pread] + kinds[OpKind::pwrite]);
    }
    SUBCASE("syncs come as with fio: after so many writes, one, and none behind the last block") {
        const auto order = [](const std::string& words) {
            std::string out;
            const Generated job("[a]\nbs=4k\n" + words + "\n");
            job.log.for_each_in_time([&](TaskId, const Op& op, uint64_t) {
                out += op.kind == OpKind::pread       ? "r"
                       : op.kind == OpKind::pwrite    ? "w"
                       : op.kind == OpKind::fsync     ? "S"
                       : op.kind == OpKind::fdatasync ? "D"
                                                      : "";
            });
            return out;
        };
        // By strace of fio 3.33.
        CHECK(order("rw=write\nsize=64k\nfsync=4") == "wwwwSwwwwSwwwwSwwww");
        CHECK(order("rw=write\nsize=64k\nfsync=4\nfdatasync=2") == "wwDwwSwwDwwSwwDwwSwwDww");
        const std::string mixed = order("rw=randrw\nsize=256k\nfsync=2");
        std::string written;
        std::copy_if(mixed.begin(), mixed.end(), std::back_inserter(written), [](char each) { return each != 'r'; });
        REQUIRE(std::count(mixed.begin(), mixed.end(), 'r') > 10);
        for (size_t i = 0; i < written.size(); ++i) {
            CHECK(written[i] == (i % 3 == 2 ? 'S' : 'w'));
        }
        CHECK(mixed.find("wrr") != std::string::npos);
    }
    SUBCASE("as many as fio 3.33 makes") {
        struct Case {
            const char* words;
            uint64_t requests;
        };
        for (const Case& one :
             {Case{"rw=read\nsize=1MB\nbs=4kb", 256}, Case{"rw=read\nsize=10k\nbs=4k", 2},
              Case{"rw=randread\nsize=10k\nfilesize=256k\nbs=4k", 3}, Case{"rw=read\nsize=20k\nnrfiles=2\nbs=4k", 4},
              Case{"rw=randread\nsize=256k\nfilesize=64k\nnrfiles=2\nbs=4k", 32},
              Case{"rw=read\nsize=300k\nfilesize=256k\nbs=4k\nloops=2", 128},
              Case{"rw=randread\nsize=1m\nnrfiles=3\nbs=4k", 255},
              Case{"rw=randread\nsize=64k\nnumber_ios=4\nloops=3\nbs=4k", 12},
              Case{"rw=randread\nsize=64k\nnumber_ios=20\nloops=2\nbs=4k", 32}}) {
            CAPTURE(one.words);
            const Generated job("[a]\n" + std::string(one.words) + "\n");
            auto kinds = job.kinds();
            CHECK(kinds[OpKind::pread] == one.requests);
        }
    }
    SUBCASE("a mix reads and writes each from the front") {
        const Generated job("[m]\nrw=rw\nsize=64k\nbs=4k\n");
        int64_t read = 0, written = 0;
        job.log.for_each_in_time([&](TaskId, const Op& op, uint64_t) {
            if (op.kind == OpKind::pread || op.kind == OpKind::pwrite) {
                int64_t& at = op.kind == OpKind::pread ? read : written;
                CHECK(op.offset == at);
                at += op.result;
            }
        });
        CHECK(read + written == 64 << 10);
        CHECK(written > 0);
    }
    SUBCASE("units that fio reads otherwise are named") {
        CHECK(parse_job("[a]\nrw=read\nsize=1m\nbsrange=4kb-8kb\n", "x").notes.empty());
        const Job job = parse_job("[a]\nrw=read\nsize=1MiB\nbs=4k\n", "x");
        REQUIRE(job.notes.size() == 1);
        CHECK(job.notes[0].find("size=1MiB") != std::string::npos);
        CHECK_THROWS_AS(parse_job("[a]\nrw=read\nsize=1m\nbs=4k\nbsrange=4k-8k\n", "x"), Error);
    }
    SUBCASE("after the section before") {
        const Generated job(
            "[a]\nrw=read\nsize=1m\nnumjobs=2\n[b]\nrw=write\nsize=1m\nstonewall\n[c]\nrw=read\nsize=4k\n");
        CHECK(job.result.sections[1].begin == job.result.sections[0].end);
        CHECK(job.result.sections[2].begin == job.result.sections[1].begin);
        check_edges(job.log);
    }
    SUBCASE("in flight") {
        for (const char* engine : {"io_uring", "libaio"}) {
            CAPTURE(engine);
            const Generated job("[q]\nrw=randread\nsize=1m\nioengine=" + std::string(engine) + "\niodepth=8\n");
            int64_t flying = 0, most = 0, submitted = 0;
            job.log.for_each_in_time([&](TaskId, const Op& op, uint64_t) {
                const OpInfo& row = info(op.kind);
                flying += row.is(Trait::submits) ? 1 : row.is(Trait::completes) ? -1 : 0;
                submitted += row.is(Trait::submits) ? 1 : 0;
                most = std::max(most, flying);
            });
            CHECK(submitted == 256);
            CHECK(most == 8);
            CHECK(flying == 0);
        }
    }
}

TEST_CASE("the same job file and seed give the same log, another seed another") {
    const std::string text = "[t]\nformat=npz\nsamples=50\nsample_size=normal(9k,1k)\nshuffle=full\n";
    const auto dump = [](const Generated& job) {
        std::vector<std::pair<FileId, int64_t>> out;
        job.log.for_each_in_time(
            [&](TaskId, const Op& op, uint64_t) { out.emplace_back(job.log.tables().file_of(op), op.size); });
        return out;
    };
    const Generated one(text), same(text), other(text + "seed=2\n");
    CHECK(dump(one) == dump(same));
    CHECK(dump(one) != dump(other));
}
