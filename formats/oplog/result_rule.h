// SPDX-License-Identifier: MIT
// Whether two results of an op are the same: the one rule of `replay` and `compare`.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "formats/oplog/op.h"

namespace reprise {

/// A call's result that is -errno (Linux: MAX_ERRNO).
constexpr bool is_error(int64_t result) { return result < 0 && result > -4096; }

enum class ResultMatch {
    same,
    known,  // both succeeded, with numbers that depend on the machine: descriptors, addresses, sizes of names
    differs,
};

constexpr bool is_vectored(OpKind kind) {
    return kind == OpKind::readv || kind == OpKind::preadv || kind == OpKind::writev || kind == OpKind::pwritev;
}

/// What of an op says how its results compare: `arg`, of vectored calls `flags`.
constexpr int64_t result_detail(OpKind kind, int64_t arg, int64_t flags) { return is_vectored(kind) ? flags : arg; }

/// `detail`: see result_detail(); the results are the call's, or -errno. Errors must be equal. Where both succeeded,
/// the numbers must be equal, too, if they are the program's own: bytes moved, positions. Ops that perform no I/O
/// (Trait::io) have no result of their own, and always agree. What a call moves that may not wait (RWF_NOWAIT) is a
/// matter of timing. A look at a name below what was no directory (ENOTDIR) may find nothing there (ENOENT).
ResultMatch match_results(OpKind kind, int64_t detail, int64_t recorded, int64_t run);

/// Results of getdents, in the order of the ops. How a listing is spread over its calls depends on the file system; one
/// that has returned less than half of the recorded bytes by then has fewer names.
class ListingResults {
public:
    /// `listing`: the directory or the open instance. As match_results.
    ResultMatch match(uint32_t listing, int64_t recorded, int64_t run);

private:
    struct Bytes {
        int64_t recorded = 0, run = 0;
    };
    std::unordered_map<uint32_t, Bytes> bytes_;
};

/// Reads of a file that grows, by somebody who looks at its end again and again (tail -f, torchrun's logs). In which of
/// the looks the bytes arrive is a matter of timing; that they all arrive is not. Such reads are kept until they have
/// moved as many bytes as in the recording. `Seen`: what the caller needs to report a read that differs after all.
template <class Seen>
class PolledReads {
public:
    /// All ops of a task in their order, those whose results agree, too. `reader`: the open instance or the file.
    void see(uint32_t reader, OpKind kind, int64_t offset, int64_t recorded) {
        if (kind == OpKind::close) {
            if (!ends_.empty()) {
                ends_.erase(reader);
            }
        } else if (recorded == 0 && by_position(kind)) {
            ends_[reader] = offset;
        }
    }

    /// A result that differs. True: it is kept, and is in `left` if the bytes never come.
    bool keep(uint32_t reader, OpKind kind, int64_t offset, int64_t recorded, int64_t run, const Seen& seen) {
        if (!by_position(kind) || recorded < 0 || run < 0 || held_ == kMost) {
            return false;
        }
        const auto end = ends_.find(reader);
        const bool grew = recorded > 0 && end != ends_.end() && end->second == offset;
        if (recorded != 0 && !grew && held_by_.count(reader) == 0) {
            return false;  // nobody was waiting for more
        }
        Held& held = held_by_[reader];
        held.grew |= grew;
        held.ahead += run - recorded;
        held.late += recorded > run ? recorded - run : 0;
        held.reads.push_back(seen);
        ++held_;
        if (held.ahead == 0 && held.grew) {
            held_ -= held.reads.size();
            known_ += held.reads.size();
            late_ += held.late;
            held_by_.erase(reader);
        }
        return true;
    }

    /// Those kept whose bytes did not come; none after that.
    std::vector<Seen> left() {
        std::vector<Seen> out;
        for (auto& [reader, held] : held_by_) {
            out.insert(out.end(), held.reads.begin(), held.reads.end());
        }
        held_by_.clear();
        held_ = 0;
        return out;
    }

    /// How many got their bytes in another call than in the recording.
    uint64_t known() const { return known_; }
    /// Bytes of those that calls lacked which had them in the recording.
    int64_t late() const { return late_; }

private:
    static constexpr size_t kMost = 65536;  // of a run that differs everywhere
    static bool by_position(OpKind kind) { return kind == OpKind::read || kind == OpKind::readv; }

    struct Held {
        int64_t ahead = 0, late = 0;  // bytes
        bool grew = false;            // in the recording, it read on where it had been at the end
        std::vector<Seen> reads;
    };
    std::unordered_map<uint32_t, int64_t> ends_;  // where the recording read nothing, by reader
    std::map<uint32_t, Held> held_by_;            // in order: what is left is reported so
    size_t held_ = 0;
    uint64_t known_ = 0;
    int64_t late_ = 0;
};

}  // namespace reprise
