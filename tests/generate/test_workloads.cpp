// SPDX-License-Identifier: MIT
// Sections with workload=: what a key-value cache, loading a model and pre-processing do to their files.
#include <doctest/doctest.h>
#include <fcntl.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "generate/generate.h"
#include "generate/kv_cache.h"
#include "tests/support.h"

using namespace reprise;
using namespace reprise::test;

namespace {

struct Generated {
    explicit Generated(const std::string& text)
        : result(generate(parse_job(text, (dir / "job.ini").string()), dir / "job.oplog")), log(dir / "job.oplog") {
        log.for_each_in_time([&](TaskId task, const Op& op, uint64_t) {
            ++kinds[op.kind];
            ops.emplace_back(task, op.kind);
        });
    }
    template <class Each>
    void each(const Each& what) const {
        log.for_each_in_time([&](TaskId task, const Op& op, uint64_t) { what(task, op); });
    }
    TempDir dir;
    GenerateResult result;
    LogReader log;
    std::map<OpKind, uint64_t> kinds;
    std::vector<std::pair<TaskId, OpKind>> ops;
};

// 2 x 2 layers x 1 head x 64 numbers x 2 bytes x 16 tokens.
constexpr int64_t kBlock = 8192;
constexpr const char* kKv =
    "[k]\nworkload=kv-cache\nnum_hidden_layers=2\nnum_key_value_heads=1\nhead_dim=64\nblock_tokens=16\n"
    "kv_capacity=1MiB\nrequest_rate=10\nrequests=40\nconcurrency=4\n";

}  // namespace

TEST_CASE("least recently used: in order at first, then by use") {
    LeastRecentlyUsed blocks(3);
    blocks.use(0);
    CHECK(blocks.replace() == 1);
    CHECK(blocks.replace() == 2);
    CHECK(blocks.replace() == 0);
    blocks.use(1);
    blocks.use(1);
    CHECK(blocks.replace() == 2);
    LeastRecentlyUsed one(1);
    one.use(0);
    CHECK(one.replace() == 0);
}

TEST_CASE("kv-cache: blocks that the tier has are read, the others are written, and the first token ends a request") {
    const Generated job(std::string(kKv) +
                        "prompt_tokens=170\nhit_rate=60\nprefill=10us\ndecode_step=1ms\noutput_tokens=9\n");
    // 10 blocks of a prompt; the last 10 tokens are none.
    CHECK(job.result.read_bytes == 40 * 6 * kBlock);
    CHECK(job.result.written_bytes == 40 * 4 * kBlock);
    CHECK(job.result.sections[0].requests == 40);
    int64_t busy = 0, decode = 0;
    job.each([&](TaskId, const Op& op) {
        busy += op.kind == OpKind::gpu_submit ? op.size : 0;
        decode += op.kind == OpKind::compute ? op.duration : 0;
        if (op.kind == OpKind::pread || op.kind == OpKind::pwrite) {
            CHECK(op.offset % kBlock == 0);
            CHECK(op.offset + op.size <= 1 << 20);
        }
    });
    CHECK(busy == int64_t{40} * (170 - 96) * 10'000);
    CHECK(decode == int64_t{40} * 8 * 1'000'000);
    // A server's request: reads, the accelerator, the end of the request, and only then the answer's time.
    TaskId server = 0;
    std::vector<OpKind> kinds;
    for (const auto& [task, kind] : job.ops) {
        server = server == 0 && kind == OpKind::pread ? task : server;
    }
    for (const auto& [task, kind] : job.ops) {
        if (task == server && kinds.size() < 13) {
            kinds.push_back(kind);
        }
    }
    const std::vector<OpKind> wanted = {OpKind::wait,   OpKind::wait,       OpKind::marker,   OpKind::pread,
                                        OpKind::pread,  OpKind::pread,      OpKind::pread,    OpKind::pread,
                                        OpKind::pread,  OpKind::gpu_submit, OpKind::gpu_wait, OpKind::marker,
                                        OpKind::compute};
    CHECK(kinds == wanted);
}

TEST_CASE(
    "kv-cache: hit rates that are no whole blocks are met in the mean; answers are stored where that is asked for") {
    const Generated job(std::string(kKv) + "prompt_tokens=48\nhit_rate=50\n");
    const double share = static_cast<double>(job.result.read_bytes) / (40.0 * 3 * kBlock);
    CHECK(share > 0.4);
    CHECK(share < 0.6);
    CHECK(job.result.read_bytes + job.result.written_bytes == 40 * 3 * kBlock);
    const Generated kept(std::string(kKv) + "prompt_tokens=48\nhit_rate=0\noutput_tokens=33\nsave_decode_cache=1\n");
    CHECK(kept.result.read_bytes == 0);
    CHECK(kept.result.written_bytes == 40 * 5 * kBlock);
}

TEST_CASE("kv-cache: new blocks replace those that were not used for longest") {
    const Generated job(std::string(kKv) + "prompt_tokens=64\nhit_rate=0\n");
    std::vector<int64_t> offsets;
    job.each([&](TaskId, const Op& op) {
        if (op.kind == OpKind::pwrite) {
            offsets.push_back(op.offset / kBlock);
        }
    });
    REQUIRE(offsets.size() == 160);
    for (size_t i = 0; i < offsets.size(); ++i) {
        CHECK(offsets[i] == static_cast<int64_t>(i % 128));
    }
}

TEST_CASE("kv-cache: files for each block, in flight, past the page cache") {
    std::string text = kKv;
    text.replace(text.find("head_dim=64"), 11, "head_dim=60\ndtype_bytes=1");
    const Generated job(text +
                        "prompt_tokens=320\nhit_rate=100\nkv_layout=files\nioengine=io_uring\niodepth=8\ndirect=1\n");
    // 3840 bytes of a block become a page.
    CHECK(job.result.sections[0].file_bytes == 1 << 20);
    CHECK(job.result.sections[0].files == 256);
    std::map<TaskId, int64_t> flying;
    int64_t most = 0;
    job.each([&](TaskId task, const Op& op) {
        const OpInfo& row = info(op.kind);
        flying[task] += row.is(Trait::submits) ? 1 : row.is(Trait::completes) ? -1 : 0;
        most = std::max(most, flying[task]);
        if (op.kind == OpKind::uring_submit) {
            CHECK(op.size == 4096);
            CHECK(op.offset == 0);
        }
        if (op.kind == OpKind::open) {
            CHECK((op.flags & O_DIRECT) != 0);
        }
    });
    CHECK(most == 8);
    auto kinds = job.kinds;
    CHECK(kinds[OpKind::uring_enter] == 40 * 3);  // 20 blocks: 8, 8, 4
    CHECK(kinds[OpKind::open] == 800);
    CHECK(kinds[OpKind::close] == 800);
}

TEST_CASE("kv-cache: a file of arrivals gives times and tokens") {
    TempDir dir;
    write_file(dir / "trace.csv",
               "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:00:00.0,64,3\n2023-11-16 18:00:02.5,32,1\n");
    std::string text = kKv;
    text.replace(text.find("request_rate=10"), 15, "arrivals=trace.csv");
    const Job job = parse_job(text + "hit_rate=0\ndecode_step=1ms\n", (dir / "job.ini").string());
    const GenerateResult result = generate(job, dir / "job.oplog");
    CHECK(result.sections[0].requests == 2);
    CHECK(result.written_bytes == 6 * kBlock);
}

TEST_CASE("model-load: headers and tensors, by each way, once for each rank or once for all") {
    const std::string model = "[m]\nworkload=model-load\nmodel_size=1000003\nmodel_files=3\ntensors=7\n";
    struct Case {
        const char* words;
        int64_t copies;
    };
    const Case cases[] = {{"", 1},
                          {"ranks=3\n", 3},
                          {"load_by=read\n", 1},
                          {"load_by=read\nbs=4k\nranks=2\nload_split=slices\n", 1},
                          {"ranks=3\nload_split=slices\n", 1},
                          {"ranks=2\nload_split=files\n", 1},
                          {"load_by=eager\nranks=2\n", 2}};
    for (const Case& each : cases) {
        CAPTURE(each.words);
        const Generated job(model + each.words);
        int64_t headers = 0;
        std::map<FileId, std::set<std::pair<int64_t, int64_t>>> read;
        job.each([&](TaskId, const Op& op) {
            if (op.kind == OpKind::pread) {
                const FileId file = job.log.tables().file_of(op);
                CHECK(op.offset + op.result <= static_cast<int64_t>(job.log.tables().files[file].size));
            }
            headers += op.kind == OpKind::fstat ? 1 : 0;
        });
        const int64_t header = 8 + 7 * 112;
        const std::string words = each.words;
        const bool shares = words.find("slices") != words.npos;
        const int64_t all = shares ? 1000003 + headers * header : each.copies * (1000003 + 3 * header);
        if (job.kinds.contains(OpKind::touch)) {
            const auto touches = static_cast<int64_t>(job.kinds.at(OpKind::touch));
            CHECK(job.result.read_bytes == 0);
            CHECK(job.result.touched_bytes >= all);
            CHECK(job.result.touched_bytes < all + 2 * 4096 * touches);  // whole pages
        } else {
            CHECK(job.result.read_bytes == all);
            CHECK(job.result.touched_bytes == 0);
        }
        CHECK(job.result.sections[0].file_bytes == 1000003 + 3 * header);
    }
    const Generated mapped(model);
    CHECK(mapped.kinds.at(OpKind::mmap) == 3);
    CHECK(mapped.kinds.at(OpKind::touch) == 3 * 8);
    CHECK(mapped.kinds.count(OpKind::pread) == 0);
    CHECK(mapped.log.tables().path(1) == "/data/m-00001-of-00003.safetensors");
    const Generated direct(model + "load_by=eager\nbs=64k\ndirect=1\n");
    direct.each([&](TaskId, const Op& op) {
        if (op.kind == OpKind::pread) {
            CHECK(op.size == 64 << 10);
            CHECK(op.offset % 4096 == 0);
        }
    });
}

TEST_CASE("convert: each file is read once, as a whole, and all go into few files") {
    const Generated job(
        "[c]\nworkload=convert\nsamples=20\nsample_size=normal(20k,5k)\nsamples_per_file=6\nbs=8k\n"
        "shuffle=full\nworkers=3\ndecode=1ms\nend_fsync=1\n");
    std::map<FileId, int64_t> read, written;
    job.each([&](TaskId, const Op& op) {
        const FileId file = job.log.tables().file_of(op);
        (op.kind == OpKind::pread ? read : written)[file] +=
            op.kind == OpKind::pread || op.kind == OpKind::write ? op.result : 0;
    });
    int64_t bytes = 0;
    for (FileId file = 1; file <= 20; ++file) {
        CHECK(read[file] == static_cast<int64_t>(job.log.tables().files[file].size));
        bytes += read[file];
    }
    for (FileId file = 21; file <= 24; ++file) {
        CHECK(written[file] == static_cast<int64_t>(job.log.tables().files[file].size));
    }
    CHECK(job.result.written_bytes == bytes + 20 * 512);
    CHECK(job.kinds.at(OpKind::compute) == 20);
    CHECK(job.kinds.at(OpKind::fsync) == 4);
    CHECK(job.log.tables().files.size() == 25);
}

TEST_CASE("tokenize: text is read from front to back, its tokens and an index are written") {
    const Generated job(
        "[t]\nworkload=tokenize\nsamples=5\nsample_size=100000\nsamples_per_file=2\nbs=16k\n"
        "output_ratio=50\ndecode=7ms\n");
    CHECK(job.result.read_bytes == 500'000);
    CHECK(job.result.written_bytes == 250'000 + 5 * 20);
    int64_t computes = 0;
    job.each([&](TaskId, const Op& op) { computes += op.kind == OpKind::compute ? op.duration : 0; });
    CHECK(computes == 5 * 7'000'000);
    CHECK(job.kinds.at(OpKind::read) == 5 * 7);
}

TEST_CASE("decode-cache: the first epoch decodes and keeps, later ones read what was kept") {
    const Generated job(
        "[d]\nworkload=decode-cache\nsamples=10\nsample_size=1000\noutput_ratio=300\nepochs=3\n"
        "decode=1ms\nworkers=4\n");
    CHECK(job.result.read_bytes == 10 * 1'000 + 2 * 10 * 3'000);
    CHECK(job.result.written_bytes == 10 * 3'000);
    CHECK(job.kinds.at(OpKind::compute) == 10);
    CHECK(job.kinds.at(OpKind::marker) == 6);
}
