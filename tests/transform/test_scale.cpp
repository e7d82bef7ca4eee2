// SPDX-License-Identifier: MIT
// The log of a job on a larger data set.
#include <doctest/doctest.h>
#include <sys/mman.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "formats/oplog/cached_pages.h"
#include "formats/oplog/header_facts.h"
#include "formats/oplog/held_memory.h"
#include "formats/oplog/touched.h"
#include "formats/support/error.h"
#include "tests/transform/scaled_job.h"

using namespace reprise;
using namespace reprise::test;
namespace fs = std::filesystem;

namespace {

constexpr int kSamples = 96, kBatch = 4;

/// One process: lists, looks at each file, reads an index; two epochs of shuffled steps of four samples.
struct FilesJob : ScaledJob {
    TaskId task = job.lone_task();
    std::vector<FileId> files;

    /// `saves`: a checkpoint after so many samples, too.
    explicit FilesJob(int epochs = 2, bool shuffle = true, size_t saves = 0) {
        const FileId folder = job.file("/data/train", Origin::existed, Role::dataset, FileType::directory);
        const HandleId list = job.handle(folder, O_RDONLY | O_DIRECTORY, HandleKind::directory);
        job.add(task, {.kind = OpKind::open, .result = 3, .handle = list, .file = folder});
        job.add(task, {.kind = OpKind::getdents, .result = kSamples * 32, .handle = list, .fd = 3, .size = 32768});
        job.add(task, {.kind = OpKind::getdents, .result = 0, .handle = list, .fd = 3, .size = 32768});
        job.add(task, {.kind = OpKind::close, .handle = list, .fd = 3});
        const FileId labels = sized("/data/labels.json", kSamples * 20);
        const HandleId index = job.open(task, labels);
        job.read(task, index, 0, kSamples * 20);
        job.close(task, index);
        for (int i = 0; i < kSamples; ++i) {
            char path[64];
            std::snprintf(path, sizeof path, "/data/train/s%04d.bin", i);
            files.push_back(sized(path, 10'000 + 100 * static_cast<uint64_t>(i)));
            job.add(task, {.kind = OpKind::stat, .file = files.back()});
        }
        std::mt19937 random(7);
        for (int epoch = 0; epoch < epochs; ++epoch) {
            std::vector<FileId> order = files;
            if (shuffle) {
                std::shuffle(order.begin(), order.end(), random);
            }
            for (size_t i = 0; i < order.size(); ++i) {
                sample(task, order[i]);
                if ((i + 1) % kBatch == 0) {
                    compute(task, 20 * kMs);
                }
                if (saves != 0 && (i + 1) % saves == 0) {
                    checkpoint(task, 1000 * (epoch + 1) + static_cast<int>(i));
                }
            }
            checkpoint(task, epoch);
        }
    }
    void sample(TaskId by, FileId file) {
        const auto size = static_cast<int64_t>(job.writer().tables().files[file].size);
        const HandleId handle = job.open(by, file);
        job.add(by, {.kind = OpKind::read, .result = size, .handle = handle, .fd = job.fd(handle), .size = size + 1});
        job.add(by, {.kind = OpKind::read, .handle = handle, .fd = job.fd(handle), .offset = size, .size = 1});
        job.close(by, handle);
    }
};

std::map<OpKind, uint64_t> kinds(const LogReader& log) {
    std::map<OpKind, uint64_t> out;
    log.for_each_in_time([&](TaskId, const Op& op, uint64_t) { ++out[op.kind]; });
    return out;
}

/// Paths that are opened and read, in the order of time.
std::vector<std::string> read_paths(const LogReader& log) {
    std::vector<std::string> out;
    log.for_each_in_time([&](TaskId, const Op& op, uint64_t) {
        if (op.kind == OpKind::read && op.result > 0 && op.offset == 0) {
            out.emplace_back(log.tables().path(log.tables().handles[op.handle].file));
        }
    });
    return out;
}

}  // namespace

TEST_CASE("twice the data set: twice the files, each once an epoch, and all that walks them") {
    FilesJob job;
    const auto before = kinds(job.recorded());
    const LogReader& scaled = job.scale(2);
    auto now = kinds(scaled);
    const std::vector<std::string> paths = read_paths(scaled);
    REQUIRE(paths.size() == 1 + 4 * kSamples);  // with the index
    for (size_t epoch = 0; epoch < 2; ++epoch) {
        const auto first = paths.begin() + 1 + static_cast<std::ptrdiff_t>(epoch) * 2 * kSamples;
        CHECK(std::set<std::string>(first, first + 2 * kSamples).size() == 2 * kSamples);
    }
    CHECK(std::vector(paths.begin() + 1, paths.begin() + 1 + 2 * kSamples) !=
          std::vector(paths.begin() + 1 + 2 * kSamples, paths.end()));
    CHECK(std::count(paths.begin(), paths.end(), "/data/train/s0191.bin") == 2);
    CHECK(now[OpKind::stat] == 2 * kSamples);
    CHECK(now[OpKind::write] == before.at(OpKind::write));  // checkpoints stay
    CHECK(job.result.files_added == kSamples);
    CHECK(job.result.edges_dropped == 0);
    CHECK(job.result.ops_dropped == 0);
    int64_t listed = 0, index = 0;
    scaled.for_each_in_time([&](TaskId, const Op& op, uint64_t) {
        listed += op.kind == OpKind::getdents ? op.result : 0;
        index += op.kind == OpKind::read &&
                         scaled.tables().path(scaled.tables().handles[op.handle].file) == "/data/labels.json"
                     ? op.result
                     : 0;
    });
    CHECK(listed == 2 * kSamples * 32);
    CHECK(index == 2 * kSamples * 20);
    check_sizes(scaled);
    check_replay(scaled);
}

TEST_CASE("what the job held itself, it holds for as long as it goes on") {
    FilesJob job;
    const int64_t end = job.job.now(), middle = (end / 2) / kMs * kMs;
    constexpr uint64_t kMiB = 1 << 20;
    job.job.writer().keep(encode_held_memory({{1, {{0, 10 * kMiB, 0}, {middle, 20 * kMiB, kMiB}, {end, 0, 0}}}}));
    const LogReader& scaled = job.scale(2);
    int64_t last = 0;
    for (const BlockInfo& block : scaled.blocks()) {
        last = std::max(last, block.end);
    }
    const auto held = held_memory(scaled);
    REQUIRE(held);
    const std::vector<HeldTotal> total = total_held(*held);
    CHECK(most_held(total) == 21 * kMiB);
    CHECK(held_at(total, 0) == 10 * kMiB);
    CHECK(held_at(total, last * 9 / 10) == 21 * kMiB);
    CHECK(held_at(total, last * 11 / 10) == 0);
    CHECK(std::is_sorted(total.begin(), total.end(),
                         [](const HeldTotal& a, const HeldTotal& b) { return a.time_ns < b.time_ns; }));
}

TEST_CASE("a set may be a fraction, larger or smaller") {
    FilesJob job;
    for (const double factor : {0.5, 1.5, 3.25}) {
        INFO(factor);
        const LogReader& scaled = job.scale(factor);
        const auto want = static_cast<int64_t>(factor * kSamples);
        for (const uint64_t reads : job.result.epochs) {
            CHECK(std::abs(static_cast<int64_t>(reads) - want) <= kBatch);
        }
        check_sizes(scaled);
        check_replay(scaled);
    }
}

TEST_CASE("epochs are added and left out") {
    FilesJob job(3);
    for (const uint32_t epochs : {1u, 2u, 5u}) {
        INFO(epochs);
        const LogReader& scaled = job.scale(2, epochs);
        CHECK(job.result.epochs == std::vector<uint64_t>(epochs, 2 * kSamples));
        CHECK(kinds(scaled)[OpKind::write] == epochs);
        check_replay(scaled);
    }
    FilesJob once(1);
    CHECK_THROWS_WITH_AS(once.scale(1, 2), doctest::Contains("--epochs requires two"), Error);
    once.scale(2);
    CHECK(once.result.epochs == std::vector<uint64_t>{2 * kSamples});
}

TEST_CASE("checkpoints within an epoch stay as many samples apart") {
    constexpr size_t kSaves = 12;
    FilesJob job(1, true, kSaves);
    const LogReader& scaled = job.scale(3);
    uint64_t reads = 0, saves = 0;
    std::set<uint64_t> apart;
    scaled.for_each_in_time([&](TaskId, const Op& op, uint64_t) {
        if (op.kind == OpKind::write && op.result > 0) {
            apart.insert(reads);
            reads = 0;
            ++saves;
        } else if (op.kind == OpKind::read && op.result >= 10'000) {
            ++reads;
        }
    });
    CHECK(saves == 3 * kSamples / kSaves + 1);
    CHECK(apart == std::set<uint64_t>{0, kSaves});  // 0: at the end
    check_replay(scaled);
}

TEST_CASE("another seed is another order, the same seed the same log") {
    FilesJob job;
    const auto first = read_paths(job.scale(2)), again = read_paths(job.scale(2));
    CHECK(first == again);
    ScaleOptions options;
    options.factor = 2;
    options.seed = 2;
    scale_log(job.recorded(), job.dir / "other.oplog", options);
    CHECK(read_paths(LogReader(job.dir / "other.oplog")) != first);
}

TEST_CASE("samples that are read in order are read in the same order in each epoch") {
    FilesJob job(2, false);
    const auto paths = read_paths(job.scale(2));
    const auto middle = paths.begin() + 1 + 2 * kSamples;
    CHECK(std::equal(paths.begin() + 1, middle, middle));
}

TEST_CASE("loader processes hand over more batches, and what waits for them still does") {
    bool shell = false;
    SUBCASE("by itself") {}
    SUBCASE("under a shell that waits for it") { shell = true; }
    ScaledJob job;
    std::vector<FileId> files;
    files.reserve(120);
    for (int i = 0; i < 120; ++i) {
        files.push_back(job.sized("/data/" + std::to_string(i) + ".jpg", 5'000 + static_cast<uint64_t>(i) * 10));
    }
    const ProcessId parent = job.job.process();
    const TaskId main = job.job.task(parent);
    std::mt19937 random(3);
    std::vector<uint64_t> shm;
    int made = 0;
    for (int epoch = 0; epoch < 2; ++epoch) {
        std::shuffle(files.begin(), files.end(), random);
        std::vector<TaskId> workers;
        std::vector<HandleId> pipes, late(2);
        HandleId received = 0;
        for (int w = 0; w < 2; ++w) {
            const HandleId in = job.job.handle(0, 0, HandleKind::pipe), out = job.job.handle(0, 0, HandleKind::pipe);
            job.job.add(main, {.kind = OpKind::pipe, .handle = in, .fd = 50, .handle2 = out, .fd2 = 51, .arg = kPipe});
            pipes.push_back(out);
            const ProcessId child = job.job.process(parent);
            workers.push_back(job.job.task(child));
            const uint64_t spawn = job.job.spawn(main, workers.back());
            const Edge edge{main, EdgeKind::lifecycle, 100, spawn};
            job.job.add(workers.back(), {.kind = OpKind::compute, .flags = kComputeWorks, .edges = {&edge, 1}});
        }
        for (size_t batch = 0; batch < files.size() / 4; ++batch) {
            const TaskId worker = workers[batch % 2];
            for (size_t i = 0; i < 4; ++i) {
                const FileId file = files[batch * 4 + i];
                const HandleId handle = job.job.open(worker, file);
                job.job.read(worker, handle, 0, static_cast<int64_t>(job.job.writer().tables().files[file].size));
                job.job.close(worker, handle);
            }
            const FileId shared = job.job.file("/dev/shm/b" + std::to_string(made++), Origin::created, Role::ipc);
            const HandleId handle = job.job.open(worker, shared, O_RDWR | O_CREAT | O_EXCL);
            job.job.write(worker, handle, 0, 1'000);
            const uint64_t sent = job.job.add(
                worker, {.kind = OpKind::send, .result = 8, .handle = pipes[batch % 2], .fd = 51, .size = 8});
            // The loader keeps its descriptor until the next batch but one, the trainer its own until the next.
            if (late[batch % 2] != 0) {
                job.job.close(worker, late[batch % 2]);
            }
            late[batch % 2] = handle;
            const Edge edge{worker, EdgeKind::message, 100, sent};
            job.job.add(main, {.kind = OpKind::receive,
                               .result = 8,
                               .handle = pipes[batch % 2],
                               .fd = 50,
                               .size = 8,
                               .edges = {&edge, 1}});
            job.job.add(main, {.kind = OpKind::fstat, .handle = handle, .fd = job.job.fd(handle)});
            job.job.add(main, {.kind = OpKind::unlink, .file = shared});
            if (received != 0) {
                job.job.close(main, received);
            }
            received = handle;
            job.compute(main, kMs);
        }
        job.job.close(main, received);
        for (size_t w = 0; w < workers.size(); ++w) {
            job.job.close(workers[w], late[w]);
        }
        for (const TaskId worker : workers) {
            const uint64_t exit = job.job.add(worker, {.kind = OpKind::exit});
            const Edge edge{worker, EdgeKind::lifecycle, 100, exit};
            job.job.add(main, {.kind = OpKind::join, .peer = worker, .edges = {&edge, 1}});
        }
        job.checkpoint(main, epoch);
    }
    if (shell) {
        const uint64_t last = job.job.add(main, {.kind = OpKind::compute, .flags = kComputeWorks});
        const Edge edge{main, EdgeKind::lifecycle, 100, last};
        job.job.add(job.job.lone_task(),
                    {.kind = OpKind::join, .begin = 1, .duration = job.job.now(), .peer = main, .edges = {&edge, 1}});
    }
    const auto before = kinds(job.recorded());
    for (const auto& [factor, epochs] : {std::pair{2.0, 0u}, {3.0, 4u}, {0.5, 1u}}) {
        const auto& this_factor = factor;  // clang 14 has no capture of bindings
        INFO(this_factor);
        const LogReader& scaled = job.scale(factor, epochs);
        auto now = kinds(scaled);
        const uint64_t all = epochs == 0 ? 2 : epochs;
        CHECK(job.result.edges_dropped == 0);
        CHECK(job.result.ops_dropped == 0);
        for (const uint64_t reads : job.result.epochs) {
            CHECK(std::abs(static_cast<double>(reads) - factor * 120) <= 8);  // a batch of each loader
        }
        CHECK(now[OpKind::send] == now[OpKind::receive]);
        CHECK(now[OpKind::send] == now[OpKind::unlink]);
        CHECK(now[OpKind::spawn] == before.at(OpKind::spawn) / 2 * all);
        CHECK(now[OpKind::exit] == before.at(OpKind::exit) / 2 * all);
        check_edges(scaled);
        check_sizes(scaled);
        check_replay(scaled);
        std::set<std::pair<ProcessId, HandleId>> closed;
        scaled.for_each_in_time([&](TaskId task, const Op& op, uint64_t) {
            const bool once =
                op.kind != OpKind::close || closed.emplace(scaled.tables().tasks[task].process, op.handle).second;
            CHECK(once);
        });
        CHECK(now[OpKind::fstat] == now[OpKind::send]);
    }
    CHECK(survey_scaling(job.recorded(), {}).leader.find("task 1, which waits") == 0);
}

namespace {

/// Records of one file, `at` says where each is in an epoch.
struct RecordsJob : ScaledJob {
    static constexpr int kRecords = 200;
    static constexpr int64_t kRecord = 4096;
    TaskId task = job.lone_task();
    FileId file = sized("/data/table.bin", kRecords* kRecord);

    /// Of a mapping, epochs after the first are seen as uses of mapped pages.
    explicit RecordsJob(bool shuffle, bool mapped = false, int mapped_epochs = 1) {
        const HandleId handle = job.open(task, file);
        if (mapped) {
            job.add(task, {.kind = OpKind::mmap,
                           .handle = handle,
                           .fd = job.fd(handle),
                           .size = kRecords * kRecord,
                           .flags = 1,
                           .mode = 1,
                           .map = 1});
        }
        std::mt19937 random(5);
        std::vector<int64_t> order(kRecords);
        for (int i = 0; i < kRecords; ++i) {
            order[static_cast<size_t>(i)] = i;
        }
        for (int epoch = 0; epoch < (mapped ? mapped_epochs : 2); ++epoch) {
            if (shuffle) {
                std::shuffle(order.begin(), order.end(), random);
            }
            for (size_t i = 0; i < order.size(); ++i) {
                const int64_t at = order[i] * kRecord;
                if (mapped) {
                    job.add(task, {.kind = OpKind::touch,
                                   .offset = at,
                                   .size = kRecord,
                                   .flags = epoch == 0 ? 0 : kTouchAgain,
                                   .map = 1});
                } else if (shuffle) {
                    job.pread(task, handle, at, kRecord);
                } else {
                    job.read(task, handle, at, kRecord);
                }
                if ((i + 1) % kBatch == 0) {
                    job.skip(20 * kMs);
                }
            }
            if (!shuffle && !mapped) {
                job.add(task, {.kind = OpKind::read,
                               .handle = handle,
                               .fd = job.fd(handle),
                               .offset = at_end(),
                               .size = kRecord});
                job.add(task, {.kind = OpKind::lseek, .handle = handle, .fd = job.fd(handle), .arg = SEEK_SET});
            }
            checkpoint(task, epoch);
        }
    }
    static constexpr int64_t at_end() { return kRecords * kRecord; }
};

}  // namespace

TEST_CASE("records of one file lie over a longer one, each read once an epoch") {
    for (const bool mapped : {false, true}) {
        INFO(mapped);
        RecordsJob job(true, mapped);
        const LogReader& scaled = job.scale(2);
        CHECK(job.result.epochs == std::vector<uint64_t>(mapped ? 1 : 2, 2 * RecordsJob::kRecords));
        CHECK(scaled.tables().files[job.file].size == 2 * RecordsJob::at_end());
        std::vector<int64_t> at;
        scaled.for_each_in_time([&](TaskId, const Op& op, uint64_t) {
            if (op.kind == OpKind::pread || op.kind == OpKind::touch) {
                at.push_back(op.offset);
            }
        });
        const size_t epochs = mapped ? 1 : 2, each = 2 * RecordsJob::kRecords;
        REQUIRE(at.size() == epochs * each);
        for (size_t epoch = 0; epoch < epochs; ++epoch) {
            const auto first = at.begin() + static_cast<std::ptrdiff_t>(epoch * each);
            const size_t places = std::set<int64_t>(first, first + static_cast<std::ptrdiff_t>(each)).size();
            CHECK(places >= (mapped ? each * 9 / 10 : each));  // pages lie together, whoever touches them
        }
        check_replay(scaled);
    }
}

TEST_CASE("of a longer file as much was not in memory as of the recorded one") {
    RecordsJob job(true);
    constexpr uint64_t kRead = 50 * RecordsJob::kRecord;
    RangeSet fetched;
    fetched.add(kRead, 2 * kRead);
    job.job.writer().keep(encode_fetched({{job.file, fetched}}));
    for (const double factor : {0.5, 2.0, 3.0}) {
        CAPTURE(factor);
        const auto pages = fetched_pages(job.scale(factor));
        REQUIRE(pages);
        CHECK(static_cast<double>(pages->at(job.file).bytes()) == std::max(factor, 1.0) * kRead);
    }
}

TEST_CASE("ranges of one touch have places of their own, also in a shorter file") {
    constexpr int kPages = 6400;  // each fault maps 16
    constexpr int64_t kPage = 4096;
    ScaledJob job;
    const TaskId task = job.job.lone_task();
    const FileId file = job.sized("/data/tokens.bin", kPages * kPage);
    const HandleId handle = job.job.open(task, file);
    job.job.add(task, {.kind = OpKind::mmap,
                       .handle = handle,
                       .fd = job.job.fd(handle),
                       .size = kPages * kPage,
                       .flags = 1,
                       .mode = 1,
                       .map = 1});
    std::mt19937 random(7);
    std::vector<int64_t> faults(kPages / 16);
    for (size_t i = 0; i < faults.size(); ++i) {
        faults[i] = static_cast<int64_t>(i) * 16 * kPage;
    }
    std::shuffle(faults.begin(), faults.end(), random);
    for (size_t i = 0; i < faults.size(); i += 2) {
        const std::vector<int64_t> list{0, kPage, faults[i + 1] - faults[i] - kPage, kPage};
        Op op{.kind = OpKind::touch, .offset = faults[i], .size = kPage, .map = 1};
        op.size = std::max(kPage, faults[i + 1] - faults[i] + kPage);
        op.list = list;
        job.job.add(task, op);
        job.job.skip(20 * kMs);
    }
    job.checkpoint(task, 0);
    for (const double factor : {0.5, 2.0}) {
        CAPTURE(factor);
        const LogReader& scaled = job.scale(factor);
        const auto size = static_cast<int64_t>(scaled.tables().files[file].size);
        std::set<int64_t> places;
        scaled.for_each_in_time([&](TaskId, const Op& op, uint64_t) {
            if (op.kind == OpKind::touch) {
                CHECK(op.list.size() == 4);
                each_touched(op.offset, op.size, op.list, [&](int64_t at, int64_t bytes) {
                    CHECK(at + bytes <= size);
                    places.insert(at);
                });
            }
        });
        CHECK(static_cast<double>(places.size()) >= factor * static_cast<double>(faults.size()) * 0.9);
        check_replay(scaled);
    }
}

TEST_CASE("later epochs of one process that maps its records grow where uses of mapped pages are known") {
    RecordsJob job(true, true, 3);
    const LogReader& scaled = job.scale(2);
    CHECK(job.result.epochs == std::vector<uint64_t>(3, 2 * RecordsJob::kRecords));
    uint64_t touches = 0, again = 0;
    scaled.for_each_in_time([&](TaskId, const Op& op, uint64_t) {
        touches += op.kind == OpKind::touch ? 1 : 0;
        again += op.kind == OpKind::touch && op.flags == kTouchAgain ? 1 : 0;
    });
    CHECK(touches == uint64_t{3} * 2 * RecordsJob::kRecords);
    CHECK(again == uint64_t{2} * 2 * RecordsJob::kRecords);
    check_replay(scaled);
}

TEST_CASE("a stream goes on in order, to the end of the longer file") {
    RecordsJob job(false);
    const LogReader& scaled = job.scale(2);
    int64_t next = 0;
    uint64_t jumps = 0, reads = 0;
    scaled.for_each_in_time([&](TaskId, const Op& op, uint64_t) {
        if (op.kind == OpKind::read && op.result > 0) {
            jumps += op.offset != next ? 1 : 0;
            next = op.offset + op.result;
            ++reads;
        }
    });
    CHECK(reads == 4 * RecordsJob::kRecords);
    CHECK(jumps <= 1);  // at the second epoch
    CHECK(next == 2 * RecordsJob::at_end());
    check_sizes(scaled);
    check_replay(scaled);
}

TEST_CASE("an index at the end of a file, read before what it is of, does not keep a longer file from being read") {
    ScaledJob parts;
    JobBuilder& job = parts.job;
    constexpr int kReads = 200;
    constexpr int64_t kRecord = 32'768, kSize = kReads * kRecord;
    const TaskId task = job.lone_task();
    const HandleId handle = job.open(task, parts.sized("/data/table.parquet", kSize));
    job.pread(task, handle, 0, 4'096);
    job.pread(task, handle, kSize - 65'536, 65'536);
    for (int i = 0; i < kReads; ++i) {
        job.pread(task, handle, i * kRecord, kRecord);
        if (i % 8 == 7) {
            job.skip(20 * kMs);
        }
    }
    const LogReader& scaled = parts.scale(3);
    int64_t furthest = 0;
    std::set<int64_t> places;
    std::vector<int64_t> order;
    scaled.for_each_in_time([&](TaskId, const Op& op, uint64_t) {
        if (op.kind == OpKind::pread) {
            order.push_back(op.offset);
            places.insert(op.offset / kRecord);
            furthest = std::max(furthest, op.offset + op.result);
        }
    });
    REQUIRE(order.size() > 2);
    CHECK(order[1] == 3 * kSize - 65'536);  // the index lies at the end of the longer file
    CHECK(furthest == 3 * kSize);
    CHECK(places.size() > 3 * kReads * 95 / 100);
    CHECK_FALSE(read_fact(scaled.header(), fact::scaled_missed).has_value());
    check_replay(scaled);
}

TEST_CASE("recordings that do not look like epochs are refused, and say why") {
    ScaledJob empty;
    const TaskId task = empty.job.lone_task();
    empty.compute(task, kMs);
    CHECK_THROWS_WITH_AS(empty.scale(2), doctest::Contains("reads no files of a data set"), Error);
    CHECK(!survey_scaling(empty.recorded(), {}).obstacle.empty());

    // Samples drawn with replacement.
    FilesJob drawn(0);
    std::mt19937 random(11);
    for (int i = 0; i < 4 * kSamples; ++i) {
        drawn.sample(drawn.task, drawn.files[random() % drawn.files.size()]);
    }
    CHECK_THROWS_WITH_AS(drawn.scale(2), doctest::Contains("do not look like epochs"), Error);
    CHECK(!fs::exists(drawn.dir / "scaled1.oplog"));
}

TEST_CASE("a sample that a shared mapping may write to, also by mprotect, is none") {
    for (const bool shared : {true, false}) {
        CAPTURE(shared);
        FilesJob job;
        const HandleId handle = job.job.open(job.task, job.files.front(), O_RDWR);
        job.job.add(job.task, {.kind = OpKind::mmap,
                               .handle = handle,
                               .fd = job.job.fd(handle),
                               .size = 4096,
                               .flags = shared ? MAP_SHARED : MAP_PRIVATE,
                               .mode = PROT_READ,
                               .map = 1});
        job.job.add(job.task, {.kind = OpKind::mprotect, .size = 4096, .mode = PROT_READ | PROT_WRITE, .map = 1});
        const ScalingSurvey survey = survey_scaling(job.recorded(), {});
        const auto samples = std::find_if(survey.rows.begin(), survey.rows.end(),
                                          [](const ScalingRow& row) { return row.what == "*.bin"; });
        REQUIRE(samples != survey.rows.end());
        CHECK(samples->files == kSamples - (shared ? 1 : 0));
    }
}

TEST_CASE("a job that keeps its samples does not read more, and that is said") {
    FilesJob job(1);
    for (int step = 0; step < 400; ++step) {
        job.compute(job.task, 20 * kMs);
    }
    job.scale(2);
    REQUIRE(job.result.notes.size() == 1);
    CHECK(job.result.notes[0].find("keeps them itself") != std::string::npos);
    FilesJob plain(2);
    plain.scale(2);
    CHECK(plain.result.notes.empty());
}

TEST_CASE("how files grow can be given") {
    FilesJob job;
    const LogReader& scaled = job.scale(2, 0, {SampleOverride::parse("/data/labels.json=fixed")});
    CHECK(scaled.tables().files[job.job.file("/data/labels.json")].size == kSamples * 20);
    CHECK_THROWS_WITH_AS(job.scale(2, 0, {SampleOverride::parse("/data/train=fixed")}),
                         doctest::Contains("cannot be scaled"), Error);
    for (const char* text : {"", "/data", "=sample", "/data=more"}) {
        CHECK_THROWS_WITH_AS(SampleOverride::parse(text), doctest::Contains("--scale-as"), Error);
    }
    const ScalingSurvey survey = survey_scaling(job.recorded(), {});
    REQUIRE(survey.rows.size() >= 2);
    CHECK(survey.rows[0].kind == SampleClass::index);
    CHECK(survey.rows[1].what == "*.bin");
    CHECK(survey.rows[1].files == kSamples);
    CHECK(survey.epochs == std::vector<uint64_t>{kSamples, kSamples});
}
