// SPDX-License-Identifier: MIT
// Logs of ranks for bench_ranks: one is written, the others are copies of its blocks under another task.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "formats/oplog/join.h"
#include "formats/oplog/layout.h"
#include "formats/oplog/section_file.h"
#include "tests/bench/in_child.h"

namespace reprise::bench {

struct Setup {
    std::filesystem::path top;
    uint32_t ranks = 64;
    uint64_t ops = 10'000'000;
    int rounds = 5;
    std::filesystem::path part(uint32_t rank) const { return top / ("run.rank" + std::to_string(rank) + ".oplog"); }
};

/// A loader's reads: blocks of a sample at places that nobody foresees, with times that scatter.
inline void write_first(const Setup& setup) {
    Header header;
    header.source = "replay";
    LogWriter writer(setup.part(0), header, {.sync = false});
    for (uint32_t rank = 0; rank < setup.ranks; ++rank) {
        const ProcessId process = writer.add_process({.pid = static_cast<int32_t>(100 + rank)});
        writer.add_task({.process = process, .tid = static_cast<int32_t>(100 + rank)});
    }
    const FileId file = writer.add_file({.path = writer.intern("/data/train/shard.bin")});
    const HandleId handle = writer.add_handle({.file = file});
    std::mt19937_64 random(1);
    int64_t now = 0;
    for (uint64_t i = 0; i < setup.ops; ++i) {
        const uint64_t bits = random();
        now += 2'000 + static_cast<int64_t>(bits >> 8 & 1023);
        const auto took = static_cast<int64_t>(900 + (bits >> 20 & 255));
        writer.append(1, {.kind = OpKind::pread,
                          .begin = now,
                          .duration = took,
                          .result = 4'096,
                          .handle = handle,
                          .fd = 3,
                          .offset = static_cast<int64_t>(bits >> 32 & 0xfffff) << 12,
                          .size = 4'096});
        now += took;
    }
    writer.finish();
}

/// The ops of the first log as those of another rank's task: blocks as they are, under another head.
inline void copy_for(const Setup& setup, uint32_t rank) {
    const ByteSource source = file_source(setup.part(0));
    const auto fill = [&](std::span<uint8_t> into) {
        while (!into.empty()) {
            const size_t got = source(into);
            if (got == 0) {
                give_up("the first log was cut");
            }
            into = into.subspan(got);
        }
    };
    SectionFile out(setup.part(rank));
    FileHead file_head;
    fill({reinterpret_cast<uint8_t*>(&file_head), sizeof file_head});
    for (;;) {
        SectionHead head;
        fill({reinterpret_cast<uint8_t*>(&head), sizeof head});
        Bytes payload(head.size);
        fill(payload);
        const auto type = static_cast<SectionType>(head.type);
        if (type == SectionType::index) {
            break;
        }
        if (type != SectionType::ops) {
            out.stored_section(type, payload, head.checksum);
            continue;
        }
        ByteReader in(payload);
        Bytes changed;
        const size_t blocks = in.varint();
        put_varint(changed, blocks);
        uint32_t start = 0;
        std::vector<BlockInfo> infos(blocks);
        for (BlockInfo& block : infos) {
            in.varint();
            block.task = rank + 1;
            block.ops = static_cast<uint32_t>(in.varint());
            block.first = in.varint();
            block.begin = in.signed_varint();
            const int64_t span = in.signed_varint();
            block.end = block.begin + span;
            block.start = start;
            block.file_offset = out.offset();
            start += block.ops;
            put_varint(changed, block.task);
            put_varint(changed, block.ops);
            put_varint(changed, block.first);
            put_signed(changed, block.begin);
            put_signed(changed, span);
        }
        const ByteView rest = in.take(in.left());
        changed.insert(changed.end(), rest.begin(), rest.end());
        for (BlockInfo& block : infos) {
            block.stored_bytes = static_cast<uint32_t>(sizeof(SectionHead) + changed.size());
            out.add_block(block);
        }
        out.section(SectionType::ops, changed);
    }
    Compressor compressor(6);
    out.seal(compressor);
    out.finish(false);
}

}  // namespace reprise::bench
