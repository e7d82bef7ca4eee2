// SPDX-License-Identifier: MIT
// What the decoder of a block refuses: ids beyond the tables, edges that no encoder writes, other counts of ops.
#include "formats/oplog/block_codec.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

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
    CHECK(with(1, 7) == "edge kind 7 is not known");
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
