// SPDX-License-Identifier: MIT
// What a replay writes: a storage that compresses or finds what it has already shall gain nothing by it.
#include <doctest/doctest.h>
#include <sys/mman.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>

#include "tests/replay/engine/run_fixture.h"

using namespace reprise;
using namespace reprise::test;

namespace {

constexpr size_t kBlock = 4096;

std::string content(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    std::string text(std::filesystem::file_size(path), '\0');
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    return text;
}

/// Share of blocks that some block before has, too.
double repeated(const std::string& text) {
    std::set<std::string_view> seen;
    size_t blocks = 0;
    for (size_t at = 0; at + kBlock <= text.size(); at += kBlock, ++blocks) {
        seen.insert(std::string_view(text).substr(at, kBlock));
    }
    return 1.0 - static_cast<double>(seen.size()) / static_cast<double>(blocks);
}

}  // namespace

TEST_CASE("no block is written twice, whatever the calls") {
    for (const int64_t size : {4'096, 12'288, 65'536, 1'048'576, 6'291'456}) {
        for (const OpKind kind : {OpKind::write, OpKind::pwrite, OpKind::writev, OpKind::pwritev}) {
            if (kSanitized && size < 65'536) {
                continue;
            }
            INFO(size, " ", info(kind).name);
            RunInRoot root;
            JobBuilder job(root.dir / "job.oplog");
            const TaskId task = job.lone_task();
            const HandleId out = job.open(task, job.file("/d/out", Origin::created), O_WRONLY | O_CREAT | O_TRUNC);
            const int64_t half[] = {size / 2, size - size / 2};
            for (int64_t at = 0; at < 24 << 20; at += size) {
                Op op{.kind = kind, .result = size, .handle = out, .fd = job.fd(out), .offset = at, .size = size};
                if (kind == OpKind::writev || kind == OpKind::pwritev) {
                    op.list = half;
                }
                job.add(task, op);
            }
            job.close(task, out);
            const ReplayResult run = root.run(job);
            CHECK(run.mismatches == 0);
            const std::string text = content(root.root / "d/out");
            REQUIRE(text.size() >= 24 << 20);
            // A write that is longer than what there is of them comes back to its begin.
            CHECK(repeated(text) <= (size > 4 << 20 ? 0.5 : 0.0));
        }
    }
}

TEST_CASE("O_DIRECT writes begin at pages, and repeat after 4 MiB") {
    RunInRoot root;
    JobBuilder job(root.dir / "job.oplog");
    const TaskId task = job.lone_task();
    const HandleId out = job.open(task, job.file("/d/out", Origin::created), O_WRONLY | O_CREAT | O_TRUNC | O_DIRECT);
    for (int64_t at = 0; at < 4 << 20; at += 16'384) {
        job.pwrite(task, out, at, 16'384);
    }
    job.close(task, out);
    const ReplayResult run = root.run(job);
    CHECK(run.mismatches == 0);
    CHECK(repeated(content(root.root / "d/out")) == 0.0);
}

TEST_CASE("what is written through a mapping is new, too: whole pages, as far as the file goes") {
    constexpr int64_t kSize = (int64_t{4} << 20) + 100;
    RunInRoot root;
    JobBuilder job(root.dir / "job.oplog");
    const TaskId task = job.lone_task();
    const auto map_of = [&](const char* path, uint32_t map, int64_t flags, bool writable_later = false) {
        const HandleId out = job.open(task, job.file(path, Origin::created), O_RDWR | O_CREAT | O_TRUNC);
        job.add(task, {.kind = OpKind::ftruncate, .handle = out, .fd = job.fd(out), .size = kSize});
        job.add(task, {.kind = OpKind::mmap,
                       .handle = out,
                       .fd = job.fd(out),
                       .offset = 0,
                       .size = kSize,
                       .flags = flags,
                       .mode = writable_later ? PROT_READ : PROT_READ | PROT_WRITE,
                       .map = map});
        if (writable_later) {
            job.add(task, {.kind = OpKind::mprotect, .size = kSize, .mode = PROT_READ | PROT_WRITE, .map = map});
        }
        for (int64_t at = 0; at < kSize; at += 65'536) {
            job.add(task, {.kind = OpKind::touch, .offset = at, .size = 65'536, .flags = 1, .map = map});
        }
        job.close(task, out);
    };
    map_of("/d/shared", 1, MAP_SHARED);
    map_of("/d/private", 2, MAP_PRIVATE);
    map_of("/d/later", 3, MAP_SHARED, true);
    map_of("/d/private_later", 4, MAP_PRIVATE, true);
    const ReplayResult run = root.run(job);
    const std::string shared = content(root.root / "d/shared"), own = content(root.root / "d/private");
    REQUIRE(shared.size() == kSize);
    CHECK(repeated(shared) == 0.0);
    std::set<std::string> words;  // of eight bytes
    for (size_t at = 0; at + 8 <= shared.size(); at += 8) {
        words.insert(shared.substr(at, 8));
    }
    CHECK(words.size() > shared.size() / 8 * 99 / 100);
    CHECK(own.find_first_not_of('\0') == std::string::npos);
    CHECK(repeated(content(root.root / "d/later")) == 0.0);
    CHECK(content(root.root / "d/private_later") == own);
}

TEST_CASE("two tasks do not write the same") {
    RunInRoot root;
    JobBuilder job(root.dir / "job.oplog");
    const ProcessId process = job.process();
    for (const char* name : {"/d/one", "/d/two"}) {
        const TaskId task = job.task(process);
        const HandleId out = job.open(task, job.file(name, Origin::created), O_WRONLY | O_CREAT | O_TRUNC);
        for (int64_t at = 0; at < 1 << 20; at += 4'096) {
            job.pwrite(task, out, at, 4'096);
        }
        job.close(task, out);
    }
    CHECK(root.run(job).mismatches == 0);
    CHECK(repeated(content(root.root / "d/one") + content(root.root / "d/two")) == 0.0);
}

TEST_CASE("writes of an instance that was made direct after it was opened come from whole pages") {
    RunInRoot root;
    JobBuilder job(root.dir / "job.oplog");
    const TaskId task = job.lone_task();
    const HandleId out = job.open(task, job.file("/d/out", Origin::created), O_WRONLY | O_CREAT | O_TRUNC);
    job.add(task, {.kind = OpKind::fcntl, .handle = out, .fd = job.fd(out), .flags = O_DIRECT, .arg = F_SETFL});
    constexpr int64_t kPart = 65'536;
    for (int64_t at = 0; at < 40 * kPart; at += kPart) {
        job.pwrite(task, out, at, kPart);
    }
    const ReplayResult run = root.run(job);
    if (root.result_of(task, 1) < 0) {
        REPRISE_SKIP("the file system has no direct I/O");
    }
    CHECK(run.mismatches == 0);
    CHECK(content(root.root / "d/out").size() == 40 * kPart);
}
