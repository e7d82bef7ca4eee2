// SPDX-License-Identifier: MIT
// A decoded block: its columns and their views.
#include <algorithm>
#include <array>

#include "formats/oplog/block_model.h"
#include "formats/oplog/block_storage.h"
#include "formats/oplog/oplog.h"

namespace reprise {

using namespace block_model;

OpBlock::OpBlock() : storage_(std::make_shared<Storage>()) {}
OpBlock::~OpBlock() = default;
OpBlock::OpBlock(OpBlock&&) noexcept = default;
OpBlock& OpBlock::operator=(OpBlock&&) noexcept = default;

void OpBlock::drop_scratch() { scratch_.reset(); }

std::span<const int64_t> OpBlock::list_of(size_t i) const {
    const uint32_t at = list[i];
    if (at == 0) {
        return {};
    }
    const auto& start = storage_->list_start;
    return std::span(storage_->list_values).subspan(start[at], start[at + 1] - start[at]);
}

bool OpBlock::has_edges() const { return !storage_->edges.empty(); }

std::span<const Edge> OpBlock::edges_of(size_t i) const {
    const auto& index = storage_->edge_of;
    if (index.empty()) {
        return {};
    }
    i += start_;
    const auto found =
        std::lower_bound(index.begin(), index.end(), i, [](const auto& row, size_t op) { return row.first < op; });
    if (found == index.end() || found->first != i) {
        return {};
    }
    const size_t from = found->second;
    const size_t to = found + 1 == index.end() ? storage_->edges.size() : (found + 1)->second;
    return std::span(storage_->edges).subspan(from, to - from);
}

Op OpBlock::row(size_t i) const {
    Op op;
    op.kind = static_cast<OpKind>(kind[i]);
    op.begin = begin[i];
    op.duration = duration[i];
    op.result = result[i];
    op.handle = handle[i];
    op.fd = fd[i];
    op.handle2 = handle2[i];
    op.fd2 = fd2[i];
    op.file = file[i];
    op.file2 = file2[i];
    op.offset = offset[i];
    op.offset2 = offset2[i];
    op.size = size[i];
    op.flags = flags[i];
    op.mode = mode[i];
    op.arg = arg[i];
    op.map = map[i];
    op.peer = peer[i];
    op.text = text[i];
    op.request = request[i];
    op.list = list_of(i);
    op.edges = edges_of(i);
    return op;
}

void OpBlock::view(size_t from, size_t n) {
    Storage& s = *storage_;
    start_ = from;
    count_ = n;
    kind = s.kind.data() + from;
    begin = s.begin.data() + from;
    duration = s.duration.data() + from;
    result = s.result.data() + from;
    const auto set = [&](Field field, auto*& column, const auto& values, auto* absent) {
        column = s.fields & field_bit(field) ? values.data() + from : absent;
    };
    set(Field::handle, handle, s.handle, no_ids.data());
    set(Field::fd, fd, s.fd, no_descriptors().data());
    set(Field::handle2, handle2, s.handle2, no_ids.data());
    set(Field::fd2, fd2, s.fd2, no_descriptors().data());
    set(Field::file, file, s.file, no_ids.data());
    set(Field::file2, file2, s.file2, no_ids.data());
    set(Field::offset, offset, s.offset, zeros.data());
    set(Field::offset2, offset2, s.offset2, zeros.data());
    set(Field::size, size, s.size, zeros.data());
    set(Field::flags, flags, s.flags, zeros.data());
    set(Field::mode, mode, s.mode, zeros.data());
    set(Field::arg, arg, s.arg, zeros.data());
    set(Field::map, map, s.map, no_ids.data());
    set(Field::peer, peer, s.peer, no_ids.data());
    set(Field::text, text, s.text, no_ids.data());
    set(Field::request, request, s.request, no_ids.data());
    set(Field::list, list, s.list, no_ids.data());
}

void OpBlock::start_rows(TaskId of, uint64_t number, size_t rows) {
    if (rows > kBlockOps) {
        throw std::logic_error("more rows than a block holds");
    }
    task = of;
    first = number;
    rows_ = 0;
    if (storage_->shared) {
        storage_ = std::make_shared<Storage>();
    }
    Storage& s = *storage_;
    s.blocks.clear();
    s.fields = 0;
    s.kind.resize(rows);
    s.begin.resize(rows);
    s.duration.resize(rows);
    s.result.resize(rows);
#define FIELD(name, type, meaning) s.name.resize(rows);
#include "formats/oplog/ops.def"
    s.list_values.clear();
    s.list_start.assign(2, 0);
    s.edges.clear();
    s.edge_of.clear();
    view(0, rows);
}

void OpBlock::add_row(const Op& op) {
    if (rows_ == count_) {
        throw std::logic_error("more rows than were to come");
    }
    Storage& s = *storage_;
    const size_t i = rows_++;
    const OpInfo& row = info(op.kind);
    const Op none;
    s.fields |= row.fields;
    s.kind[i] = static_cast<uint8_t>(op.kind);
    s.begin[i] = op.begin;
    s.duration[i] = op.duration;
    s.result[i] = op.result;
    const auto set = [&](Field field, auto& column, const auto& value, const auto& otherwise) {
        column[i] = row.has(field) ? value : otherwise;
    };
    set(Field::handle, s.handle, op.handle, none.handle);
    set(Field::fd, s.fd, op.fd, none.fd);
    set(Field::handle2, s.handle2, op.handle2, none.handle2);
    set(Field::fd2, s.fd2, op.fd2, none.fd2);
    set(Field::file, s.file, op.file, none.file);
    set(Field::file2, s.file2, op.file2, none.file2);
    set(Field::offset, s.offset, op.offset, none.offset);
    set(Field::offset2, s.offset2, op.offset2, none.offset2);
    set(Field::size, s.size, op.size, none.size);
    set(Field::flags, s.flags, op.flags, none.flags);
    set(Field::mode, s.mode, op.mode, none.mode);
    set(Field::arg, s.arg, op.arg, none.arg);
    set(Field::map, s.map, op.map, none.map);
    set(Field::peer, s.peer, op.peer, none.peer);
    set(Field::text, s.text, op.text, none.text);
    set(Field::request, s.request, op.request, none.request);
    s.list[i] = 0;
    if (row.has(Field::list) && !op.list.empty()) {
        s.list_values.insert(s.list_values.end(), op.list.begin(), op.list.end());
        s.list[i] = static_cast<uint32_t>(s.list_start.size() - 1);
        s.list_start.push_back(static_cast<uint32_t>(s.list_values.size()));
    }
    if (!op.edges.empty()) {
        s.edge_of.emplace_back(static_cast<uint32_t>(i), static_cast<uint32_t>(s.edges.size()));
        s.edges.insert(s.edges.end(), op.edges.begin(), op.edges.end());
    }
    if (rows_ == count_) {
        view(0, count_);  // with the columns that are filled now
    }
}

}  // namespace reprise
