// SPDX-License-Identifier: MIT
// What the decoder of a block refuses: ids beyond the tables, edges that no encoder writes, other counts of ops.
#include "formats/oplog/block_codec.h"

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

#include "formats/support/compress.h"
#include "formats/support/error.h"

using namespace reprise;

namespace {

constexpr size_t kAmple = 100;

// The tables that a test does not cut are ample.
struct Sizes {
    size_t strings = kAmple, files = kAmple, tasks = kAmple, handles = kAmple;
};

Bytes encoded(const std::vector<Op>& ops, const std::vector<HandleRow>& handles) {
    const std::vector<Op> chunks[] = {ops};
    const Run runs[] = {{chunks}};
    Bytes out;
    BlockCodec::Encoder(1).encode(runs, 1, handles, out);
    return out;
}

// What is wrong, or nothing.
std::string refusal(const std::vector<Op>& ops, const Sizes& sizes = {}, uint32_t said = 0) {
    const std::vector<HandleRow> handles(kAmple);
    const Bytes bytes = encoded(ops, handles);
    const RunInfo runs[] = {{said ? said : static_cast<uint32_t>(ops.size()), ops.front().begin}};
    OpBlock block;
    try {
        BlockCodec::decode(bytes, 1, runs,
                           {sizes.strings, sizes.files, sizes.tasks, std::span(handles).first(sizes.handles)}, block);
    } catch (const Corrupt& problem) {
        return problem.what();
    }
    CHECK(block.count() == ops.size());
    return "";
}

}  // namespace

TEST_CASE("block: ids are below the sizes of their tables") {
    struct Row {
        const char* what;
        OpKind kind;
        uint32_t Op::*id;
        size_t Sizes::*size;
    };
    const Row rows[] = {{"handle", OpKind::read, &Op::handle, &Sizes::handles},
                        {"handle", OpKind::sendfile, &Op::handle2, &Sizes::handles},
                        {"file", OpKind::stat, &Op::file, &Sizes::files},
                        {"file", OpKind::rename, &Op::file2, &Sizes::files},
                        {"task", OpKind::join, &Op::peer, &Sizes::tasks},
                        {"string", OpKind::marker, &Op::text, &Sizes::strings}};
    for (const Row& row : rows) {
        CAPTURE(row.what);
        // The greatest of them counts, wherever it is.
        for (size_t place = 0; place < 3; ++place) {
            std::vector<Op> ops(3);
            for (size_t i = 0; i < ops.size(); ++i) {
                ops[i].kind = row.kind;
                ops[i].begin = static_cast<int64_t>(i);
                ops[i].*row.id = i == place ? 7 : static_cast<uint32_t>(i);
            }
            Sizes sizes;
            sizes.*row.size = 8;
            CHECK(refusal(ops, sizes).empty());
            sizes.*row.size = 7;
            CHECK(refusal(ops, sizes) == std::string(row.what) + " 7 is not in its table of 6");
        }
        Op none;
        none.kind = row.kind;
        Sizes empty;
        empty.*row.size = 0;
        CHECK(refusal({none}, empty).empty());
        none.*row.id = 1;
        CHECK(refusal({none}, empty) == std::string(row.what) + " 1 is not in its table of 0");
    }
}

TEST_CASE("block: edges name a task of the log and a kind that is known") {
    const auto with = [](TaskId task, int kind) {
        const Edge edges[] = {{1, EdgeKind::wake, 100, 5}, {task, static_cast<EdgeKind>(kind), 100, 5}};
        Op op;
        op.edges = edges;
        Sizes sizes;
        sizes.tasks = 4;
        return refusal({op}, sizes);
    };
    CHECK(with(1, 1).empty());
    CHECK(with(3, 6).empty());
    CHECK(with(0, 1) == "task 0 is not in its table of 3");
    CHECK(with(4, 1) == "task 4 is not in its table of 3");
    CHECK(with(1, 0) == "edge kind 0 is not known");
    CHECK(with(1, 7).empty());
    CHECK(with(1, 8) == "edge kind 8 is not known");
}

TEST_CASE("block: as many ops as its index says") {
    const std::vector<Op> three(3);
    CHECK(refusal(three).empty());
    CHECK(refusal(three, {}, 2) == "a block of 3 ops where the index says 2");
    CHECK(refusal(three, {}, 4) == "a block of 3 ops where the index says 4");
    CHECK(refusal(three, {}, kBlockOps + 1) == "a block of " + std::to_string(kBlockOps + 1) + " ops");
    const Bytes bytes = encoded(three, {});
    OpBlock block;
    const RunInfo none[] = {{0, 0}};
    CHECK_THROWS_WITH_AS(BlockCodec::decode(bytes, 1, none, {}, block), "a block of 0 ops", Corrupt);
}

namespace {

// A block of ops of kind compute, byte by byte; all of its columns are zeros but the last one, the flags.
struct Handmade {
    Bytes kinds{58};            // of each op
    Bytes directory{1, 58, 1,   // kinds; the one kind, how often
                    0, 0,  0};  // think, duration, result
    Bytes flags{0};             // how they are stored
    Bytes ends{0, 0, 0, 0};     // lists and edges
    Bytes joint, own;

    std::string decode(int64_t* value = nullptr, uint32_t ops = 1) const {
        Bytes all = directory, payload;
        all.insert(all.end(), flags.begin(), flags.end());
        all.insert(all.end(), ends.begin(), ends.end());
        Compressor compressor(1);
        put_blob(payload, all, compressor);
        put_blob(payload, kinds, compressor);
        put_blob(payload, joint, compressor);
        payload.insert(payload.end(), own.begin(), own.end());
        const RunInfo runs[] = {{ops, 0}};
        OpBlock block;
        try {
            BlockCodec::decode(payload, 1, runs, {}, block);
        } catch (const Corrupt& problem) {
            return problem.what();
        }
        if (value) {
            *value = block.flags[0];
        }
        return "";
    }
};

}  // namespace

TEST_CASE("block: a column is one to eight planes of bytes, apart or together") {
    for (int tag = 4; tag < 256; ++tag) {
        CAPTURE(tag);
        const bool apart = tag > 32;
        const int width = tag - (apart ? 32 : 16);
        Handmade block;
        block.flags = {static_cast<uint8_t>(tag)};
        uint64_t stored = 0;
        for (int byte = 0; byte < width && byte < 8; ++byte) {
            const auto next = static_cast<uint8_t>(3 + 2 * byte);
            stored |= uint64_t{next} << (8 * byte);
            if (apart) {
                block.flags.push_back(1);
            }
            (apart ? block.own : block.joint).push_back(next);
        }
        int64_t value = 0;
        if (width < 1 || width > 8) {
            CHECK(block.decode(&value) == "column storage " + std::to_string(tag) + " is not known");
        } else {
            CHECK(block.decode(&value).empty());
            CHECK(value == unzigzag(stored));
        }
    }
}

TEST_CASE("block: a directory that cannot be is refused") {
    const auto with = [](const std::function<void(Handmade&)>& change, uint32_t ops = 1) {
        Handmade block;
        change(block);
        return block.decode(nullptr, ops);
    };
    CHECK(with([](Handmade&) {}).empty());
    CHECK(with([](Handmade& b) { b.directory[1] = 0; }) == "op id 0 is not in the op table of this version");
    CHECK(with([](Handmade& b) { b.directory[1] = 200; }) == "op id 200 is not in the op table of this version");
    CHECK(with([](Handmade& b) { b.directory[2] = 0; }) == "an empty kind in a block");
    CHECK(with([](Handmade& b) { b.kinds[0] = 60; }) == "the kinds of a block differ from its directory");
    CHECK(with([](Handmade& b) { b.kinds.push_back(58); }, 2) == "the kinds of a block add up to 1 ops of 2");
    CHECK(with(
              [](Handmade& b) {
                  b.kinds.push_back(58);
                  b.directory = {2, 58, 1, 0, 0, 0, 0, 58, 1, 0, 0, 0};
              },
              2) == "op id 58 stands twice in a block");
    const std::string left_over = "bytes are left over at the end of a block";
    CHECK(with([](Handmade& b) { b.ends.push_back(0); }) == left_over);
    CHECK(with([](Handmade& b) { b.joint.push_back(0); }) == left_over);
    CHECK(with([](Handmade& b) { b.own.push_back(0); }) == left_over);
    CHECK(with([](Handmade& b) {
              b.ends = {1, 1, 0, 0};
              b.joint = {0};
          }) == "the lists of a block differ from its directory");
    CHECK(with([](Handmade& b) {
              b.ends = {0, 0, 1, 0};
              b.joint = {0};
          }) == left_over);
    CHECK(with([](Handmade& b) {
              b.ends = {0, 0, 1, 2};
              b.joint = {0, 0};
          }) == "the edges of a block differ from its directory");
    CHECK(with([](Handmade& b) {
              b.ends = {0, 0, 1, 1};
              b.joint = {1};
          }) == "edges out of order");
}
