// SPDX-License-Identifier: MIT
// What-if logs: data-parallel copies of a job, other step times of its accelerators.
#include <doctest/doctest.h>
#include <sys/mman.h>

#include <cmath>
#include <filesystem>
#include <set>
#include <type_traits>

#include "formats/oplog/copy_tables.h"
#include "formats/oplog/ranks.h"
#include "formats/support/error.h"
#include "tests/replay/job_builder.h"
#include "tests/support.h"
#include "tests/units.h"
#include "transform/copies.h"

using namespace reprise;
using namespace reprise::test;
namespace fs = std::filesystem;

namespace {

struct VariantJob {
    TempDir dir;
    fs::path root = dir.path() / "root";
    JobBuilder job{dir.path() / "job.oplog"};
    std::optional<LogReader> recording;

    FileId dataset(const std::string& path, uint64_t size) {
        const FileId file = job.file(path);
        FileRow row = job.writer().tables().files[file];
        row.size = size;
        row.size_exact = true;
        job.writer().update_file(file, row);
        fs::create_directories((root / path.substr(1)).parent_path());
        write_file(root / path.substr(1), std::string(size, 'x'));
        return file;
    }
    LogReader variant(const VariantOptions& options) {
        if (!recording) {
            recording.emplace(job.finish());
        }
        return make_variant(*recording, options);
    }
    // Steps of 100 ms, 120 ms apart, each reading one file first.
    void train(TaskId task, const std::vector<FileId>& files) {
        int64_t at = kMs;
        int64_t step = 0;
        for (const FileId file : files) {
            const HandleId handle = job.handle(file);
            const auto size = static_cast<int64_t>(job.writer().tables().files[file].size);
            job.add(task, {.kind = OpKind::open, .begin = at, .result = 3, .handle = handle, .file = file});
            job.add(task, {.kind = OpKind::read,
                           .begin = at + 10'000,
                           .result = size,
                           .handle = handle,
                           .fd = 3,
                           .size = 1 << 20});
            job.add(task, {.kind = OpKind::close, .begin = at + 20'000, .handle = handle, .fd = 3});
            job.add(task, {.kind = OpKind::gpu_submit, .begin = at + 20 * kMs, .size = 100 * kMs, .arg = 2});
            job.add(task, {.kind = OpKind::gpu_wait, .begin = at + 21 * kMs, .duration = 99 * kMs, .arg = 2});
            at += 120 * kMs;
            ++step;
        }
        job.add(task, {.kind = OpKind::marker, .begin = at + kMs});
    }
};

std::vector<Op> ops_of(const LogReader& log, TaskId task, OpKind kind) {
    std::vector<Op> out;
    log.for_each(task, [&](const Op& op, uint64_t) {
        if (op.kind == kind) {
            out.push_back(op);
            out.back().edges = {};
            out.back().list = {};
        }
    });
    return out;
}

uint64_t counter(const LogReader& log, std::string_view name) {
    for (const Counter& counter : log.tables().counters) {
        if (counter.name == name) {
            return counter.value;
        }
    }
    return 0;
}

GpuCopies copies(uint32_t count, bool in_step = true) { return {count, in_step}; }

}  // namespace

TEST_CASE("models of step times are read, and refused in plain words") {
    CHECK(GpuModel::parse("0.25").mean_ns == 250e6);
    CHECK(GpuModel::parse("constant(375us)").mean_ns == 375e3);
    const GpuModel normal = GpuModel::parse(" normal( 250 ms , 20ms ),seed=7");
    CHECK(normal.kind == GpuModel::Kind::normal);
    CHECK(normal.mean_ns == 250e6);
    CHECK(normal.sd_ns == 20e6);
    CHECK(normal.seed == 7);
    CHECK(GpuModel::parse("empirical").kind == GpuModel::Kind::empirical);
    const TempDir dir;
    write_file(dir.path() / "steps", "# seconds\n0.25\n\n 300ms\n");
    CHECK(GpuModel::parse("empirical(" + (dir.path() / "steps").string() + ")").values ==
          std::vector<int64_t>{250 * kMs, 300 * kMs});
    write_file(dir.path() / "bad", "0.25\nfast\n");
    CHECK_THROWS_WITH_AS(GpuModel::parse("empirical(" + (dir.path() / "bad").string() + ")"),
                         doctest::Contains("bad:2: not a time"), Error);
    write_file(dir.path() / "none", "\n");
    CHECK_THROWS_WITH_AS(GpuModel::parse("empirical(" + (dir.path() / "none").string() + ")"),
                         doctest::Contains("no step time"), Error);
    for (const char* spec : {"", "fast", "-1", "nan", "1e300", "5 years", "normal(1)", "normal(1,-1)", "normal(1,1",
                             "lognormal(0,1)", "gamma(1,1)", "0.25,seed=x"}) {
        INFO(spec);
        CHECK_THROWS_WITH_AS(GpuModel::parse(spec), doctest::Contains("--gpu-model: "), Error);
    }
}

TEST_CASE("draws have the mean and spread that was asked for, and are the same again") {
    const std::vector<int64_t> recorded{kMs, 3 * kMs};
    for (const char* spec : {"normal(100ms,20ms)", "lognormal(100ms,20ms)", "100ms", "empirical"}) {
        INFO(spec);
        const GpuModel model = GpuModel::parse(spec);
        StepDraws draws(model, 1, recorded), again(model, 1, recorded), other(model, 2, recorded);
        double sum = 0, squares = 0;
        uint64_t same_as_other = 0;
        bool repeats = true;
        constexpr int kDraws = 20'000;
        for (int i = 0; i < kDraws; ++i) {
            const int64_t ns = draws.next();
            repeats = repeats && ns == again.next();
            same_as_other += ns == other.next() ? 1 : 0;
            const double ms = static_cast<double>(ns) / 1e6;
            sum += ms;
            squares += ms * ms;
        }
        const double mean = sum / kDraws, sd = std::sqrt(std::max(squares / kDraws - mean * mean, 0.0));
        const bool empirical = model.kind == GpuModel::Kind::empirical;
        CHECK(mean == doctest::Approx(empirical ? 2 : 100).epsilon(0.02));
        CHECK(sd == doctest::Approx(model.kind == GpuModel::Kind::constant ? 0 : empirical ? 1 : 20).epsilon(0.05));
        CHECK(repeats);
        CHECK((model.kind == GpuModel::Kind::constant || same_as_other < kDraws * 6 / 10));
    }
    const GpuModel wide = GpuModel::parse("normal(1ms,1s)");
    StepDraws draws(wide, 0, {});
    for (int i = 0; i < 100; ++i) {
        CHECK(draws.next() >= 0);
    }
    CHECK(draws.negative() > 20);
}

TEST_CASE("how many copies: a number above zero") {
    CHECK(GpuCopies::parse("8").count == 8);
    CHECK(GpuCopies::parse("8").in_step);
    CHECK_FALSE(GpuCopies::parse("2:free").in_step);
    for (const char* text : {"0", "-1", "", "two", "8:", "8:fre", "1025", "99999999999"}) {
        INFO(text);
        CHECK_THROWS_WITH_AS(GpuCopies::parse(text), doctest::Contains("--gpus is"), Error);
    }
}

TEST_CASE_FIXTURE(VariantJob, "a model sets the busy time of whole steps, whose pieces keep their shares") {
    const TaskId task = job.lone_task();
    const StringId step = job.text("step");
    for (int64_t i = 0; i < 3; ++i) {
        const int64_t at = 1 + i * 100 * kMs;
        job.add(task, {.kind = OpKind::gpu_submit, .begin = at, .size = 30 * kMs});
        job.add(task, {.kind = OpKind::gpu_submit, .begin = at + kMs, .size = 10 * kMs});
        job.add(task, {.kind = OpKind::gpu_submit, .begin = at + 2 * kMs, .size = 5 * kMs, .arg = 1});
        job.add(task, {.kind = OpKind::marker, .begin = at + 90 * kMs, .flags = 2, .text = step});
    }
    job.add(task, {.kind = OpKind::gpu_submit, .begin = 500 * kMs, .size = 7 * kMs});  // after the last step
    job.add(task, {.kind = OpKind::gpu_submit, .begin = 510 * kMs, .size = -7 * kMs});
    VariantOptions options;
    options.model = GpuModel::parse("80ms");
    const LogReader log = variant(options);
    const auto submissions = ops_of(log, task, OpKind::gpu_submit);
    REQUIRE(submissions.size() == 11);
    CHECK(submissions[0].size == 60 * kMs);
    CHECK(submissions[1].size == 20 * kMs);
    CHECK(submissions[2].size == 80 * kMs);
    CHECK(submissions[9].size == 7 * kMs);
    CHECK(submissions[10].size == 0);
    CHECK(counter(log, "accelerator_work_negative") == 1);
    CHECK(log.header().extra.at("gpu_model") == "80ms");
}

TEST_CASE_FIXTURE(VariantJob, "a model needs an accelerator") {
    job.add(job.lone_task(), {.kind = OpKind::marker});
    VariantOptions options;
    options.model = GpuModel::parse("80ms");
    CHECK_THROWS_WITH_AS(variant(options), doctest::Contains("no accelerator"), Error);
}

TEST_CASE_FIXTURE(VariantJob, "copies read other files, write files of their own and have accelerators of their own") {
    const ProcessId parent = job.process(), child = job.process(parent);
    const TaskId task = job.task(parent), helper = job.task(child);
    std::vector<FileId> files;
    for (int i = 0; i < 4; ++i) {
        files.push_back(dataset("/data/a" + std::to_string(i) + ".npz", 1000 + static_cast<uint64_t>(i)));
    }
    const FileId directory = job.file("/out", Origin::created, Role::checkpoint, FileType::directory);
    const FileId saved = job.file("/out/x.pt", Origin::created, Role::checkpoint);
    const FileId log_file = job.file("/run.log", Origin::existed, Role::log);
    write_file(root / "run.log", "old");
    job.add(task, {.kind = OpKind::mkdir, .begin = 10, .file = directory, .mode = 0755});
    job.spawn(task, helper);
    const uint64_t helped = job.add(helper, {.kind = OpKind::marker});
    const std::vector<Edge> edges{{helper, EdgeKind::wake, 100, helped}};
    job.add(task, {.kind = OpKind::wait, .arg = 1, .edges = edges});
    train(task, files);
    job.skip(kMs);
    const HandleId out = job.handle(saved, O_WRONLY | O_CREAT);
    job.add(task, {.kind = OpKind::open, .result = 4, .handle = out, .file = saved, .flags = O_WRONLY | O_CREAT});
    job.add(task, {.kind = OpKind::write, .result = 10, .handle = out, .fd = 4, .size = 10});
    const HandleId logged = job.handle(log_file, O_WRONLY);
    job.add(task, {.kind = OpKind::open, .result = 5, .handle = logged, .file = log_file, .flags = O_WRONLY});
    job.add(task, {.kind = OpKind::write, .result = 10, .handle = logged, .fd = 5, .size = 10});

    const LogReader log = variant({copies(2), {}});
    const Tables& tables = log.tables();
    REQUIRE(tables.tasks.size() == 5);
    CHECK(tables.tasks[3].process == 3);
    CHECK(tables.processes[4].parent == 3);
    CHECK(tables.processes[3].pid != tables.processes[1].pid);
    const auto opened = [&](TaskId of) {
        std::vector<std::string> out;
        for (const Op& op : ops_of(log, of, OpKind::open)) {
            out.emplace_back(tables.path(op.file));
            CHECK(tables.handles[op.handle].file == op.file);
        }
        return out;
    };
    using Names = std::vector<std::string>;
    CHECK(opened(1) == Names{"/data/a0.npz", "/data/a1.npz", "/data/a2.npz", "/data/a3.npz", "/out/x.pt", "/run.log"});
    CHECK(opened(3) ==
          Names{"/data/a2.npz", "/data/a3.npz", "/data/a0.npz", "/data/a1.npz", "/gpu1.out/x.pt", "/gpu1.run.log"});
    CHECK(tables.path(ops_of(log, 3, OpKind::mkdir)[0].file) == "/gpu1.out");
    // What is read of a file fits it.
    CHECK(ops_of(log, 1, OpKind::read)[0].result == 1000);
    CHECK(ops_of(log, 3, OpKind::pread)[0].result == 1002);
    CHECK(ops_of(log, 1, OpKind::gpu_submit)[0].arg == 2);
    CHECK(ops_of(log, 3, OpKind::gpu_submit)[0].arg == 3);
    CHECK(counter(log, "dataset_files_rotated") == 4);
    CHECK(counter(log, "written_files_to_prepare") == 1);
    CHECK(counter(log, "steps_in_step") == 4);
    CHECK(log.header().extra.at("gpus") == "2 in step");
    // The first wait is for the helper of the same copy; behind each step all wait for each other.
    const auto edges_of_waits = [&](TaskId of) {
        std::vector<Edge> out;
        log.for_each(of, [&](const Op& op, uint64_t) {
            if (op.kind == OpKind::wait) {
                out.insert(out.end(), op.edges.begin(), op.edges.end());
            }
        });
        return out;
    };
    const auto first = edges_of_waits(1), second = edges_of_waits(3);
    REQUIRE(first.size() == 5);
    REQUIRE(second.size() == 5);
    CHECK(first[0] == Edge{2, EdgeKind::wake, 100, helped});
    CHECK(second[0] == Edge{4, EdgeKind::wake, 100, helped});
    std::vector<uint64_t> waits;
    std::vector<OpKind> kinds;
    log.for_each(1, [&](const Op& op, uint64_t at) {
        kinds.push_back(op.kind);
        if (op.kind == OpKind::gpu_wait) {
            waits.push_back(at);
        }
    });
    for (size_t i = 0; i < 4; ++i) {
        CHECK(first[i + 1] == Edge{3, EdgeKind::message, 100, waits[i]});
        CHECK(second[i + 1] == Edge{1, EdgeKind::message, 100, waits[i] + 1});
        CHECK(kinds[waits[i] + 1] == OpKind::wait);
    }
    SUBCASE("and they run") {
        fs::create_directories(root);
        mark_prepared(root);
        write_file(root / "gpu1.run.log", "old");
        ReplayOptions how = afap(root);
        how.pace = Pace::causal;
        how.speeds.gpu = 10;
        const ReplayResult result = replay(log, how);
        INFO(describe(result));
        CHECK(result.ended == "complete");
        CHECK(result.mismatches == 0);
        CHECK(result.processes == 4);
        CHECK(result.accelerators == 2);
        CHECK(fs::exists(root / "out/x.pt"));
        CHECK(fs::exists(root / "gpu1.out/x.pt"));
        for (const Counter& counter : result.counters) {
            CHECK(counter.name != "edges_against_time");
        }
    }
}

TEST_CASE_FIXTURE(VariantJob, "copies in step are as slow as the slowest of each step, free ones as their own sum") {
    const TaskId task = job.lone_task();
    train(task, {dataset("/data/a", 5000), dataset("/data/b", 5000), dataset("/data/c", 5000)});
    VariantOptions options{copies(2), GpuModel::parse("normal(100ms,60ms),seed=3")};
    fs::create_directories(root);
    int64_t slowest = 0, sums[2] = {};
    const auto elapsed = [&] {
        const LogReader log = variant(options);
        const auto first = ops_of(log, 1, OpKind::gpu_submit), second = ops_of(log, 2, OpKind::gpu_submit);
        slowest = sums[0] = sums[1] = 0;
        for (size_t i = 0; i < first.size(); ++i) {
            slowest += std::max(first[i].size, second[i].size);
            sums[0] += first[i].size;
            sums[1] += second[i].size;
        }
        ReplayOptions how = afap(root);
        how.pace = Pace::causal;
        const ReplayResult result = replay(log, how);
        INFO(describe(result));
        CHECK(result.ended == "complete");
        return result.elapsed_ns - 60 * kMs;  // 20 ms of thinking before each step
    };
    const int64_t together = elapsed();
    CHECK(slowest > std::max(sums[0], sums[1]) + 20 * kMs);  // else the seed tells nothing
    CHECK(together >= slowest);
    options.copies.in_step = false;
    CHECK(counter(variant(options), "steps_in_step") == 0);
    CHECK(elapsed() >= std::max(sums[0], sums[1]));
}

namespace {

/// Two ranks whose recording does not show that they waited for each other.
struct RankedJob : VariantJob {
    RankedJob() {
        for (uint32_t rank = 0; rank < 2; ++rank) {
            const TaskId task = job.task(job.process());
            const std::string data = "/data/" + std::to_string(rank);
            train(task, {dataset(data + "a", 5000), dataset(data + "b", 5000), dataset(data + "c", 5000)});
        }
        write_ranks(job.writer().header(), job.writer().tables(), std::vector<uint32_t>{kNoRank, 0, 1});
    }
};

}  // namespace

TEST_CASE_FIXTURE(RankedJob, "recorded ranks wait for each other after each step where that is asked for") {
    VariantOptions options{copies(1), GpuModel::parse("normal(100ms,60ms),seed=3"), true};
    int64_t slowest = 0, sums[2] = {};
    const auto elapsed = [&] {
        const LogReader log = variant(options);
        const auto first = ops_of(log, 1, OpKind::gpu_submit), second = ops_of(log, 2, OpKind::gpu_submit);
        slowest = sums[0] = sums[1] = 0;
        for (size_t i = 0; i < first.size(); ++i) {
            slowest += std::max(first[i].size, second[i].size);
            sums[0] += first[i].size;
            sums[1] += second[i].size;
        }
        ReplayOptions how = afap(root);
        how.pace = Pace::causal;
        const ReplayResult result = replay(log, how);
        INFO(describe(result));
        CHECK(result.ended == "complete");
        for (const Counter& counter : result.counters) {
            CHECK(counter.name != "edges_against_time");
        }
        return result.elapsed_ns - 60 * kMs;  // 20 ms of thinking before each step
    };
    const int64_t together = elapsed();
    CHECK(slowest > std::max(sums[0], sums[1]) + 20 * kMs);  // else the seed tells nothing
    CHECK(together >= slowest);
    {
        const LogReader log = variant(options);
        CHECK(counter(log, "steps_of_ranks") == 3);
        CHECK(counter(log, "steps_not_of_all") == 0);
        CHECK(log.header().extra.count("gpus") == 0);
    }
    options.copies = copies(2);  // of each rank: four wait for each other
    const LogReader four = variant(options);
    uint64_t waits = 0;
    four.for_each(3, [&](const Op& op, uint64_t) {
        if (op.kind == OpKind::wait) {
            ++waits;
            CHECK(op.edges.size() == 3);
        }
    });
    CHECK(waits == 3);
    options = {copies(1), {}, false};
    CHECK_FALSE(options.changes_anything());
}

TEST_CASE_FIXTURE(VariantJob, "ranks that cannot wait for each other are refused") {
    const TaskId task = job.lone_task();
    train(task, {dataset("/data/a", 5000)});
    CHECK_THROWS_WITH_AS(variant({copies(1), {}, true}), doctest::Contains("the log has one rank"), Error);
}

TEST_CASE_FIXTURE(VariantJob, "a rank without steps, and steps that not all ranks have") {
    const TaskId one = job.task(job.process()), other = job.task(job.process());
    train(one, {dataset("/data/a", 5000), dataset("/data/b", 5000)});
    SUBCASE("none") {
        write_ranks(job.writer().header(), job.writer().tables(), std::vector<uint32_t>{kNoRank, 0, 1});
        CHECK_THROWS_WITH_AS(variant({copies(1), {}, true}), doctest::Contains("rank 1 has no steps"), Error);
    }
    SUBCASE("one, that a mark ends") {
        job.add(other, {.kind = OpKind::marker,
                        .begin = 5 * kMs,
                        .flags = static_cast<int64_t>(MarkerPhase::end),
                        .text = job.text("step")});
        write_ranks(job.writer().header(), job.writer().tables(), std::vector<uint32_t>{kNoRank, 0, 1});
        const LogReader log = variant({copies(1), {}, true});
        CHECK(counter(log, "steps_of_ranks") == 1);
        CHECK(counter(log, "steps_not_of_all") == 1);
    }
}

TEST_CASE_FIXTURE(VariantJob, "of a dataset that is one large file each copy reads another part first") {
    constexpr int64_t kSize = 1 << 20;
    const FileId file = dataset("/data/tokens.bin", kSize + 100), mapped = dataset("/data/more.bin", kSize);
    const TaskId task = job.lone_task();
    const HandleId handle = job.open(task, file);
    job.pread(task, handle, 0, 4096);
    job.pread(task, handle, kSize - 4096, 4096);
    job.pread(task, handle, kSize / 2, kSize / 2);
    const HandleId at = job.open(task, mapped);
    job.add(task, {.kind = OpKind::mmap,
                   .handle = at,
                   .fd = job.fd(at),
                   .size = kSize,
                   .flags = MAP_SHARED,
                   .mode = PROT_READ,
                   .map = 1});
    job.add(task, {.kind = OpKind::touch, .offset = kSize / 2, .size = 8192, .map = 1});
    const LogReader log = variant({copies(4), {}});
    const auto reads = [&](TaskId of) { return ops_of(log, of, OpKind::pread); };
    CHECK(reads(1)[0].offset == 0);
    CHECK(reads(2)[0].offset == kSize / 4);
    CHECK(reads(3)[0].offset == kSize / 2);
    CHECK(reads(3)[1].offset == kSize / 2 - 4096);
    CHECK(reads(2)[1].result == 4096);
    // What would reach beyond the end lies before it.
    CHECK(reads(4)[2].offset + reads(4)[2].size <= kSize + 100);
    CHECK(reads(4)[2].result == kSize / 2);
    CHECK(ops_of(log, 3, OpKind::touch)[0].offset == 0);
    CHECK(ops_of(log, 3, OpKind::touch)[0].map == 3);
    CHECK(counter(log, "dataset_files_shifted") == 2);
    ReplayOptions how = afap(root);
    const ReplayResult result = replay(log, how);
    INFO(describe(result));
    CHECK(result.mismatches == 0);
}

TEST_CASE_FIXTURE(VariantJob,
                  "each copy has its own of what is written through a mapping, writable at first or later") {
    constexpr int64_t kSize = 65'536;
    const TaskId task = job.lone_task(), other = job.lone_task();
    const auto map = [&](TaskId who, const char* path, uint32_t number, int64_t flags, int64_t mode) {
        const HandleId handle = job.open(who, dataset(path, kSize), O_RDWR);
        job.add(who, {.kind = OpKind::mmap,
                      .handle = handle,
                      .fd = job.fd(handle),
                      .size = kSize,
                      .flags = flags,
                      .mode = mode,
                      .map = number});
    };
    const auto protect = [&](uint32_t number, int64_t mode, int64_t result = 0) {
        job.add(task, {.kind = OpKind::mprotect, .result = result, .size = kSize, .mode = mode, .map = number});
    };
    map(task, "/data/written", 1, MAP_SHARED, PROT_READ | PROT_WRITE);
    map(task, "/data/later", 2, MAP_SHARED, PROT_READ);
    protect(2, PROT_READ | PROT_WRITE);
    protect(3, PROT_READ | PROT_WRITE);
    map(other, "/data/by_another", 3, MAP_SHARED, PROT_READ);
    map(task, "/data/private", 4, MAP_PRIVATE, PROT_READ);
    protect(4, PROT_READ | PROT_WRITE);
    map(task, "/data/refused", 5, MAP_SHARED, PROT_READ);
    protect(5, PROT_WRITE, -EACCES);
    map(task, "/data/read", 6, MAP_SHARED, PROT_READ);
    protect(6, PROT_READ);
    const LogReader log = variant({copies(2), {}});
    std::set<std::string> own;
    for (FileId file = 1; file < log.tables().files.size(); ++file) {
        if (const std::string path(log.tables().path(file)); path.find("gpu1") != path.npos) {
            own.insert(path);
        }
    }
    CHECK(own == std::set<std::string>{"/data/gpu1.by_another", "/data/gpu1.later", "/data/gpu1.written"});
}

TEST_CASE_FIXTURE(VariantJob, "copies of a file at its position read at offsets, and seek to them") {
    const FileId file = dataset("/data/a", 100'000), other = dataset("/data/b", 100'500);
    const TaskId task = job.lone_task();
    for (const FileId each : {file, other}) {
        const HandleId handle = job.open(task, each);
        const int64_t size = each == file ? 100'000 : 100'500;
        job.add(task, {.kind = OpKind::lseek, .result = size, .handle = handle, .fd = job.fd(handle), .arg = SEEK_END});
        job.add(task, {.kind = OpKind::lseek, .result = 0, .handle = handle, .fd = job.fd(handle), .arg = SEEK_SET});
        job.read(task, handle, 0, 65536);
        job.add(task, {.kind = OpKind::read,
                       .result = size - 65536,
                       .handle = handle,
                       .fd = job.fd(handle),
                       .offset = 65536,
                       .size = 65536});
        job.add(task,
                {.kind = OpKind::read, .result = 0, .handle = handle, .fd = job.fd(handle), .offset = size, .size = 1});
    }
    const LogReader log = variant({copies(2), {}});
    const auto reads = ops_of(log, 2, OpKind::pread);
    REQUIRE(reads.size() == 6);
    CHECK(reads[1].result == 100'500 - 65536);
    CHECK(reads[4].result == 100'000 - 65536);
    const ReplayResult result = replay(log, afap(root));
    INFO(describe(result));
    CHECK(result.mismatches == 0);
}

namespace {

bool same(const Op& a, const Op& b) {
#define FIELD(name, type, meaning) &&fields_same(a.name, b.name)
    const auto fields_same = [](const auto& x, const auto& y) {
        if constexpr (std::is_integral_v<std::decay_t<decltype(x)>>) {
            return x == y;
        } else {
            return true;
        }
    };
    return a.kind == b.kind && a.begin == b.begin && a.duration == b.duration && a.result == b.result
#include "formats/oplog/ops.def"
           && std::equal(a.list.begin(), a.list.end(), b.list.begin(), b.list.end()) &&
           std::equal(a.edges.begin(), a.edges.end(), b.edges.begin(), b.edges.end());
}

// A row with its lists.
class OwnedRow {
public:
    explicit OwnedRow(const Op& op)
        : op_(op), list_(op.list.begin(), op.list.end()), edges_(op.edges.begin(), op.edges.end()) {}
    Op op() const {
        Op op = op_;
        op.list = list_;
        op.edges = edges_;
        return op;
    }

private:
    Op op_;
    std::vector<int64_t> list_;
    std::vector<Edge> edges_;
};

// What a view says of its blocks is so, and written out it is the same log.
void check_written(const LogReader& view, const fs::path& path) {
    LogWriter writer(path, view.header(), {.sync = false});
    copy_tables(view.tables(), writer);
    for (TaskId task = 1; task < view.tables().tasks.size(); ++task) {
        view.for_each(task, [&](const Op& op, uint64_t) { writer.append(task, op); });
    }
    writer.finish();
    const LogReader written(path);
    CHECK(written.op_count() == view.op_count());
    CHECK(written.tables().files == view.tables().files);
    CHECK(written.tables().handles == view.tables().handles);
    OpBlock block;
    std::vector<uint64_t> next(view.tables().tasks.size());
    for (const BlockInfo& where : view.blocks()) {
        view.decode(where, block);
        REQUIRE(where.ops == block.count());
        CHECK(where.ops <= kBlockOps);
        CHECK(where.first == next[where.task]);
        CHECK(block.task == where.task);
        CHECK(block.first == where.first);
        CHECK(block.begin[0] == where.begin);
        int64_t end = INT64_MIN;
        for (size_t i = 0; i < block.count(); ++i) {
            end = std::max(end, block.begin[i] + block.duration[i]);
        }
        CHECK(end == where.end);
        next[where.task] += where.ops;
    }
    for (TaskId task = 1; task < view.tables().tasks.size(); ++task) {
        CHECK(next[task] == view.op_count(task));
        std::vector<OwnedRow> rows;
        view.for_each(task, [&](const Op& op, uint64_t) { rows.emplace_back(op); });
        uint64_t wrong = 0;
        written.for_each(task, [&](const Op& op, uint64_t at) { wrong += same(rows.at(at).op(), op) ? 0 : 1; });
        CHECK(wrong == 0);
        CHECK(written.op_count(task) == rows.size());
    }
}

}  // namespace

TEST_CASE("a variant is the log that it says it is, block by block") {
    const TempDir dir;
    std::filesystem::path path = dir.path() / "job.oplog";
    WriterOptions options;
    options.sync = false;
    SUBCASE("short blocks") { options.block_ops = 7; }
    SUBCASE("blocks that copies make too long") {}
    JobBuilder job(path, options);
    const TaskId task = job.lone_task(), other = job.lone_task();
    const FileId file = job.file("/data/a"), saved = job.file("/out/x", Origin::created, Role::checkpoint);
    const HandleId handle = job.open(task, file), out = job.handle(saved, O_WRONLY);
    job.add(other, {.kind = OpKind::open, .result = 4, .handle = out, .file = saved, .flags = O_WRONLY | O_CREAT});
    const std::vector<int64_t> sizes{100, 200};
    const size_t steps = options.block_ops == 7 ? 40 : 30'000;
    std::vector<Edge> edges(1);
    for (size_t i = 0; i < steps; ++i) {
        job.add(task, {.kind = OpKind::preadv, .result = 300, .handle = handle, .fd = 3, .size = 300, .list = sizes});
        job.add(task, {.kind = OpKind::gpu_submit, .size = 1000, .arg = 1});
        const uint64_t waited = job.add(task, {.kind = OpKind::gpu_wait, .duration = 50, .arg = 1});
        edges[0] = {task, EdgeKind::wake, 100, waited};
        job.add(other, {.kind = OpKind::wait, .duration = 5, .arg = 1, .edges = edges});
        job.add(other, {.kind = OpKind::write, .result = 10, .handle = out, .fd = 4, .size = 10});
    }
    const LogReader recording = job.finish();
    check_written(make_variant(recording, {copies(3), GpuModel::parse("normal(1ms,0.1ms)")}), dir.path() / "a.oplog");
    check_written(make_variant(recording, {copies(2, false), {}}), dir.path() / "b.oplog");
    check_written(make_variant(recording, {{}, GpuModel::parse("2ms")}), dir.path() / "c.oplog");
}
