// SPDX-License-Identifier: MIT
// Which files there should be, and what they hold, after the ops of a log.
#include "replay/content/file_model.h"

#include <doctest/doctest.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <sys/mman.h>

#include <algorithm>

#include "formats/oplog/touched.h"
#include "replay/content/content.h"
#include "replay/content/verify_plan.h"
#include "replay/content/written.h"
#include "tests/replay/job_builder.h"

using namespace reprise;
using namespace reprise::test;

namespace {

/// A log, its plan, and the model after all of it.
struct Followed {
    explicit Followed(JobBuilder& job, const std::vector<std::pair<std::string, uint64_t>>& there = {})
        : log(job.finish()), plan(make_plan(log, OpFilter::all(), {})), model(plan) {
        begin = [there](FileModel& into) {
            for (const auto& [path, size] : there) {
                into.add(path, FileType::regular, size, "");
            }
        };
        begin(model);
        log.for_each_in_time([&](TaskId task, const Op& op, uint64_t number) { model.apply(task, number, op); });
    }
    /// "0-5 p 5-9 1.3": who wrote what; p: prepared, z: zeros, ?: unknown, TASK.OP
    std::string bytes(const std::string& path) const {
        const ModelFilePointer file = model.find(path);
        if (file == nullptr) {
            return "no file";
        }
        std::string out;
        for (const Extent& one : file->extents.of(0, file->size)) {
            const std::string who = one.source.is == Source::Is::written
                                        ? std::to_string(one.source.task) + "." + std::to_string(one.source.op)
                                    : one.source.is == Source::Is::prepared ? "p"
                                    : one.source.is == Source::Is::zeros    ? "z"
                                                                            : "?";
            out += (out.empty() ? "" : " ") + std::to_string(one.from) + "-" + std::to_string(one.to) + " " + who;
        }
        return out;
    }
    LogReader log;
    Plan plan;
    FileModel model;
    BeginModel begin;
};

}  // namespace

TEST_CASE("file model: writes, truncation, holes, and a rename over another file") {
    const TempDir folder;
    JobBuilder job(folder / "log");
    const TaskId task = job.lone_task();
    const FileId made = job.file("/made"), old = job.file("/old");
    const HandleId out = job.open(task, made, O_RDWR | O_CREAT);                                // op 0
    job.write(task, out, 0, 100);                                                               // 1
    job.pwrite(task, out, 50, 10);                                                              // 2
    job.pwrite(task, out, 200, 10);                                                             // 3
    job.add(task, {.kind = OpKind::ftruncate, .handle = out, .fd = job.fd(out), .size = 205});  // 4
    job.add(task, {.kind = OpKind::fallocate,
                   .handle = out,
                   .fd = job.fd(out),
                   .offset = 10,
                   .size = 5,
                   .flags = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE});  // 5
    job.add(task, {.kind = OpKind::rename, .file = made, .file2 = old});   // 6
    job.add(task, {.kind = OpKind::write, .result = -ENOSPC, .handle = out, .fd = job.fd(out), .offset = 0, .size = 9});
    const Followed followed(job, {{"old", 7}, {"data", 30}});
    CHECK(followed.bytes("made") == "no file");
    CHECK(followed.bytes("old") == "0-10 1.1 10-15 z 15-50 1.1 50-60 1.2 60-100 1.1 100-200 z 200-205 1.3");
    CHECK(followed.bytes("data") == "0-30 p");
    const ModelFilePointer file = followed.model.find("old");
    REQUIRE(file->had.size() == 2);
    CHECK(file->had[0].first == "made");
    CHECK(file->had[0].second < INT64_MAX);
    CHECK(file->had[1] == std::pair<std::string, int64_t>("old", INT64_MAX));
}

TEST_CASE("file model: names: links, removed ones, directories that move") {
    const TempDir folder;
    JobBuilder job(folder / "log");
    const TaskId task = job.lone_task();
    const FileId a = job.file("/d/a"), b = job.file("/b"),
                 d = job.file("/d", Origin::existed, Role::dataset, FileType::directory),
                 e = job.file("/e", Origin::existed, Role::dataset, FileType::directory), gone = job.file("/gone"),
                 inside = job.file("/e/a");
    job.add(task, {.kind = OpKind::link, .file = a, .file2 = b});
    job.add(task, {.kind = OpKind::unlink, .file = gone});
    job.add(task, {.kind = OpKind::rename, .file = d, .file2 = e});
    const HandleId out = job.open(task, inside, O_WRONLY);
    job.pwrite(task, out, 0, 5);
    job.add(task, {.kind = OpKind::truncate, .file = b, .size = 4});
    const LogReader log = job.finish();
    const Plan plan = make_plan(log, OpFilter::all(), {});
    FileModel model(plan);
    model.add("d", FileType::directory, 0, "");
    model.add("d/a", FileType::regular, 9, "");
    model.add("gone", FileType::regular, 1, "");
    log.for_each_in_time([&](TaskId by, const Op& op, uint64_t number) { model.apply(by, number, op); });
    CHECK(model.find("gone") == nullptr);
    CHECK(model.find("d/a") == nullptr);
    CHECK(model.find("d") == nullptr);
    REQUIRE(model.find("e/a") != nullptr);
    CHECK(model.find("e/a") == model.find("b"));
    CHECK(model.find("b")->names == 2);
    CHECK(model.find("b")->size == 4);
    CHECK(model.find("e")->type == FileType::directory);
}

TEST_CASE("file model: the root is no file in it, whatever the job does with it") {
    const TempDir folder;
    JobBuilder job(folder / "log");
    const TaskId task = job.lone_task();
    const FileId top = job.file("/d", Origin::existed, Role::dataset, FileType::directory),
                 file = job.file("/d/f", Origin::created);
    const HandleId opened = job.open(task, top, O_RDONLY);  // without O_DIRECTORY, as `sync DIR` does
    job.add(task, {.kind = OpKind::fsync, .handle = opened, .fd = job.fd(opened)});
    job.write(task, job.open(task, file, O_WRONLY | O_CREAT), 0, 5);
    const LogReader log = job.finish();
    const Plan plan = make_plan(log, OpFilter::all(), PathMap::parse({"/d=."}));
    FileModel model(plan);
    model.add(".", FileType::directory, 0, "");
    log.for_each_in_time([&](TaskId by, const Op& op, uint64_t number) { model.apply(by, number, op); });
    REQUIRE(model.names().size() == 1);
    CHECK(model.names().begin()->first == "f");
    CHECK(model.find("f")->size == 5);
    CHECK(model.unchecked().empty());
}

TEST_CASE("file model: directories that are exchanged take along what lies below them") {
    const TempDir folder;
    JobBuilder job(folder / "log");
    const TaskId task = job.lone_task();
    const FileId p = job.file("/p", Origin::existed, Role::dataset, FileType::directory),
                 q = job.file("/q", Origin::existed, Role::dataset, FileType::directory);
    job.add(task, {.kind = OpKind::rename, .file = p, .file2 = q, .flags = RENAME_EXCHANGE});
    const LogReader log = job.finish();
    const Plan plan = make_plan(log, OpFilter::all(), {});
    FileModel model(plan);
    model.add("p", FileType::directory, 0, "");
    model.add("q", FileType::directory, 0, "");
    model.add("p/f", FileType::regular, 9, "");
    model.add("q/f", FileType::regular, 7, "");
    model.add("p/only", FileType::regular, 5, "");
    log.for_each_in_time([&](TaskId by, const Op& op, uint64_t number) { model.apply(by, number, op); });
    const auto size = [&](const char* path) { return model.find(path) == nullptr ? 0 : model.find(path)->size; };
    CHECK(size("p/f") == 7);
    CHECK(size("q/f") == 9);
    CHECK(size("q/only") == 5);
    CHECK(model.find("p/only") == nullptr);
    REQUIRE(model.find("p") != nullptr);
    REQUIRE(model.find("q") != nullptr);
    CHECK(model.find("p")->names == 1);
}

TEST_CASE("file model: copies carry where their bytes come from, appends of several and races are not checked") {
    const TempDir folder;
    JobBuilder job(folder / "log");
    const TaskId task = job.lone_task(), other = job.lone_task();
    const HandleId in = job.open(task, job.file("/in"));
    const HandleId out = job.open(task, job.file("/copy"), O_WRONLY | O_CREAT);
    job.add(task, {.kind = OpKind::copy_file_range,
                   .result = 10,
                   .handle = in,
                   .fd = job.fd(in),
                   .handle2 = out,
                   .fd2 = job.fd(out),
                   .offset = 5,
                   .offset2 = 100,
                   .size = 10,
                   .flags = kCopyFromOffset | kCopyToOffset});
    const FileId log_file = job.file("/log");
    const HandleId first = job.open(task, log_file, O_WRONLY | O_CREAT | O_APPEND);
    const HandleId second = job.open(other, log_file, O_WRONLY | O_APPEND);
    job.write(task, first, 0, 10);
    job.write(other, second, 10, 10);
    const HandleId raced = job.open(task, job.file("/raced"), O_RDWR | O_CREAT);
    const HandleId raced2 = job.open(other, job.file("/raced"), O_RDWR);
    const int64_t now = job.now() + 1'000'000;
    job.add(task, {.kind = OpKind::pwrite,
                   .begin = now,
                   .duration = 1000,
                   .result = 10,
                   .handle = raced,
                   .fd = job.fd(raced),
                   .offset = 0,
                   .size = 10});
    job.add(other, {.kind = OpKind::pwrite,
                    .begin = now + 500,
                    .duration = 1000,
                    .result = 10,
                    .handle = raced2,
                    .fd = job.fd(raced2),
                    .offset = 5,
                    .size = 10});
    const Followed followed(job, {{"in", 50}});
    const Extent copied = followed.model.find("copy")->extents.of(100, 110).front();
    CHECK(copied.to == 110);
    std::vector<std::byte> want(64 << 10), got(10);
    fill_random(content_seed("in"), 0, want);
    fill_from(copied.source, 100, got);
    CHECK(std::equal(got.begin(), got.end(), want.begin() + 5));
    CHECK(followed.model.find("log")->unordered);
    CHECK(followed.model.unchecked().at("appended to by several instances") == 1);
    CHECK(followed.bytes("raced").find("5-10 ?") != std::string::npos);
    CHECK(followed.bytes("raced").find("10-15 2.") != std::string::npos);
}

TEST_CASE("file model: with O_APPEND an offset does not count, from open or from fcntl on") {
    const TempDir folder;
    JobBuilder job(folder / "log");
    const TaskId task = job.lone_task();
    const auto pwrite = [&](HandleId handle) {
        job.add(
            task,
            {.kind = OpKind::pwrite, .result = 10, .handle = handle, .fd = job.fd(handle), .offset = 0, .size = 10});
    };
    const HandleId log = job.open(task, job.file("/log"), O_WRONLY | O_CREAT | O_APPEND);
    job.write(task, log, 0, 10);
    pwrite(log);
    const HandleId later = job.open(task, job.file("/later"), O_WRONLY | O_CREAT);
    job.write(task, later, 0, 10);
    pwrite(later);
    job.add(task, {.kind = OpKind::fcntl, .handle = later, .fd = job.fd(later), .flags = O_APPEND, .arg = F_SETFL});
    pwrite(later);
    job.add(task, {.kind = OpKind::fcntl, .handle = later, .fd = job.fd(later), .flags = 0, .arg = F_SETFL});
    pwrite(later);
    const Followed followed(job, {});
    CHECK(followed.model.find("log")->size == 20);
    CHECK(followed.model.find("later")->size == 20);
    // The bytes are those that the engine makes for the offset of the call.
    const Extent last = followed.model.find("log")->extents.of(10, 20).front();
    CHECK(last.to == 20);
    std::vector<std::byte> want(10), got(10);
    fill_written(write_seed(task, 2), 0, want);
    fill_from(last.source, 10, got);
    CHECK(want == got);
}

TEST_CASE("file model: what is stored through a mapping, as far as the file goes") {
    const TempDir folder;
    JobBuilder job(folder / "log");
    const TaskId task = job.lone_task();
    const auto map = [&](const char* path, int64_t flags, uint32_t number, int64_t mode = PROT_READ | PROT_WRITE) {
        const HandleId handle = job.open(task, job.file(path), O_RDWR);
        job.add(task, {.kind = OpKind::mmap,
                       .handle = handle,
                       .fd = job.fd(handle),
                       .offset = 4096,
                       .size = 16384,
                       .flags = flags,
                       .mode = mode,
                       .map = number});
    };
    const auto touch = [&](uint32_t number, int64_t flags) {
        const int64_t list[] = {0, 4096, 4096, 4096};  // the first page, and the third
        Op op{.kind = OpKind::touch, .offset = 0, .size = 8192, .flags = flags, .map = number};
        op.list = list;
        job.add(task, op);
    };
    map("/shared", MAP_SHARED, 1);    // 0, 1
    map("/private", MAP_PRIVATE, 2);  // 2, 3
    touch(1, 0);
    touch(1, kTouchWrites);  // 5
    touch(2, kTouchWrites);
    map("/later", MAP_SHARED, 3, PROT_READ);  // 7, 8
    job.add(task, {.kind = OpKind::mprotect, .size = 16384, .mode = PROT_READ | PROT_WRITE, .map = 3});
    touch(3, kTouchWrites);  // 10
    const Followed followed(job, {{"shared", 13000}, {"private", 13000}, {"later", 13000}});
    CHECK(followed.bytes("later") == "0-4096 p 4096-8192 1.10 8192-12288 p 12288-13000 1.10");
    CHECK(followed.bytes("shared") == "0-4096 p 4096-8192 1.5 8192-12288 p 12288-13000 1.5");
    CHECK(followed.bytes("private") == "0-13000 p");
}

TEST_CASE("file model: RWF_APPEND and RWF_NOAPPEND count for their call alone") {
    const TempDir folder;
    JobBuilder job(folder / "log");
    const TaskId task = job.lone_task();
    const HandleId plain = job.open(task, job.file("/plain"), O_WRONLY | O_CREAT);
    const HandleId log = job.open(task, job.file("/log"), O_WRONLY | O_CREAT | O_APPEND);
    constexpr int64_t kAppend = 0x10, kNoAppend = 0x20;
    const auto pwritev = [&](HandleId handle, int64_t offset, int64_t flags) {
        job.add(task, {.kind = OpKind::pwritev,
                       .result = 10,
                       .handle = handle,
                       .fd = job.fd(handle),
                       .offset = offset,
                       .size = 10,
                       .flags = flags});
    };
    for (const HandleId handle : {plain, log}) {
        pwritev(handle, 0, 0);
        pwritev(handle, 5, kAppend);
        pwritev(handle, 5, kNoAppend);
    }
    const Followed followed(job, {});
    CHECK(followed.model.unchecked().empty());
    for (const char* path : {"plain", "log"}) {
        const ModelFile& file = *followed.model.find(path);
        CHECK(file.size == 20);
        std::vector<uint64_t> by;  // op, of the handle's three
        for (const Extent& part : file.extents.of(0, 20)) {
            by.insert(by.end(), part.to - part.from, part.source.op);
        }
        const uint64_t first = by.front();
        CHECK(by.size() == 20);
        CHECK(std::count(by.begin(), by.begin() + 5, first) == 5);
        CHECK(std::count(by.begin() + 5, by.begin() + 15, first + 2) == 10);
        CHECK(std::count(by.begin() + 15, by.end(), first + 1) == 5);
    }
}

TEST_CASE("file model: appends of two tasks at once are not checked, one after the other they are") {
    const TempDir folder;
    JobBuilder job(folder / "log");
    const TaskId task = job.lone_task(), other = job.lone_task();
    const auto append = [&](TaskId by, HandleId handle, int64_t begin) {
        job.add(by, {.kind = OpKind::pwrite,
                     .begin = begin,
                     .duration = 1000,
                     .result = 10,
                     .handle = handle,
                     .fd = job.fd(handle),
                     .offset = 0,
                     .size = 10});
    };
    const HandleId in_turn = job.open(task, job.file("/in_turn"), O_WRONLY | O_CREAT | O_APPEND);
    const HandleId at_once = job.open(task, job.file("/at_once"), O_WRONLY | O_CREAT | O_APPEND);
    const int64_t now = job.now() + 1'000'000;
    append(task, in_turn, now);
    append(other, in_turn, now + 2000);
    append(task, at_once, now + 4000);
    append(other, at_once, now + 4500);
    const Followed followed(job, {});
    CHECK_FALSE(followed.model.find("in_turn")->unordered);
    CHECK(followed.model.find("at_once")->unordered);
    CHECK(followed.model.unchecked().at("appended to by several tasks at once") == 1);
}

TEST_CASE("verify plan: what was prepared needs no entry, what was written has one") {
    const TempDir folder;
    JobBuilder job(folder / "log");
    const TaskId task = job.lone_task();
    const HandleId in = job.open(task, job.file("/in"), O_RDWR);  // 0
    job.pread(task, in, 0, 20);                                   // 1
    job.pwrite(task, in, 10, 5);                                  // 2
    job.pread(task, in, 0, 20);                                   // 3
    const Followed followed(job, {{"in", 50}});
    const VerifyPlan verify = plan_verification(followed.plan, followed.begin);
    CHECK(verify.prepared[in] == content_seed("in"));
    CHECK(verify.reads.size() == 1);
    const std::vector<Extent> before = verify.expected(task, 1, in, 0, 20), after = verify.expected(task, 3, in, 4, 12);
    REQUIRE(before.size() == 1);
    CHECK(before[0].source.is == Source::Is::prepared);
    REQUIRE(after.size() == 2);
    CHECK(after[0].from == 4);
    CHECK(after[1].from == 10);
    CHECK(after[1].to == 12);
    CHECK(after[1].source.seed == write_seed(task, 2));
    CHECK(verify.expected(task, 9, 99, 0, 5).empty());
}
