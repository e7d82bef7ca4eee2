// SPDX-License-Identifier: MIT
#include "replay/engine/verifying.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "formats/support/error.h"
#include "replay/content/differences.h"
#include "replay/content/written.h"

namespace reprise {

VerifyingEngine::VerifyingEngine(const EngineContext& context)
    : PosixEngine(context),
      verify_(*context.plan.verify),
      task_(static_cast<TaskId>(&context.task - context.plan.tasks.data())),
      own_bytes_((worker_.pattern.size() + 4095) & ~size_t{4095}) {
    make_requests_at_once();
    sums_.task = task_;
    sums_.op = VerifyRow::kSums;
    if (own_bytes_ == 0) {
        return;
    }
    void* const at =
        mmap(nullptr, own_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) {
        throw machine_error("no memory for a buffer of " + std::to_string(own_bytes_) + " bytes",
                            "free memory, or raise its limit (ulimit -v)");
    }
    madvise(at, own_bytes_, MADV_DONTFORK);
    own_ = static_cast<std::byte*>(at);
}

VerifyingEngine::~VerifyingEngine() {
    report(sums_);
    if (own_ != nullptr) {
        munmap(own_, own_bytes_);
    }
}

/// One write(2) with O_APPEND: rows of several processes stay whole.
void VerifyingEngine::report(const VerifyRow& row) const {
    [[maybe_unused]] const ssize_t written = ::write(verify_.findings, &row, sizeof row);
}

int64_t VerifyingEngine::submit(const OpBlock& b, size_t i) {
    const OpInfo& row = info(static_cast<OpKind>(b.kind[i]));
    if (row.is(Trait::submits) || row.is(Trait::reads) == row.is(Trait::writes) || !row.has(Field::offset)) {
        return PosixEngine::submit(b, i);
    }
    if (row.is(Trait::writes)) {
        return write(b, i);
    }
    const int64_t result = PosixEngine::submit(b, i);
    if (result > 0) {
        check(b, i, static_cast<uint64_t>(result));
    }
    return result;
}

int64_t VerifyingEngine::write(const OpBlock& b, size_t i) {
    const size_t bytes = std::min(write_size(b.size[i]), own_bytes_);
    if (b.offset[i] < 0 || bytes == 0) {
        return PosixEngine::submit(b, i);
    }
    fill_written(write_seed(task_, b.first + i), static_cast<uint64_t>(b.offset[i]), {own_, bytes});
    outgoing_ = own_;
    const int64_t result = PosixEngine::submit(b, i);
    outgoing_ = worker_.pattern.data();
    return result;
}

void VerifyingEngine::check(const OpBlock& b, size_t i, uint64_t bytes) {
    constexpr size_t kMostRuns = 1000;
    const uint64_t op = b.first + i;
    if (b.offset[i] < 0) {
        ++sums_.unchecked;
        return;
    }
    const auto begin = static_cast<uint64_t>(b.offset[i]);
    const std::vector<Extent> expected = verify_.expected(task_, op, b.handle[i], begin, begin + bytes);
    if (expected.empty()) {
        ++sums_.unchecked;
        return;
    }
    ++sums_.reads;
    for (const Extent& part : expected) {
        if (part.source.is == Source::Is::unknown) {
            continue;
        }
        const auto size = static_cast<size_t>(part.to - part.from);
        wanted_.resize(size);
        fill_from(part.source, part.from, wanted_);
        sums_.bytes += size;
        const std::byte* const got = buffer_ + (part.from - begin);
        if (std::memcmp(got, wanted_.data(), size) == 0) {
            continue;  // far faster than the loop below
        }
        each_difference({got, size}, wanted_, kMostRuns, [&](size_t from, size_t to) {
            report({task_, b.handle[i], op, part.from + from, to - from, 0, 0, static_cast<uint8_t>(wanted_[from]),
                    static_cast<uint8_t>(got[from])});
        });
    }
}

}  // namespace reprise
