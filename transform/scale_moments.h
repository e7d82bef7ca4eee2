// SPDX-License-Identifier: MIT
// The moments at which a recorded job might be cut, and which of them are alike.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "transform/scale_past.h"
#include "transform/scale_recording.h"

namespace reprise {

/// A moment at which the job might be cut: before an op of the leader.
struct Moment {
    uint32_t op = 0;
    int64_t time = 0;
    uint64_t units = 0;  // before it
    uint32_t epoch = UINT32_MAX;
    uint64_t of_epoch = 0;    // units of that epoch before it
    TaskId reader = 0;        // whose batch comes next
    uint64_t flying = 0;      // what is on its way between tasks, as a hash
    uint64_t open = 0;        // which files of records are open, likewise
    uint64_t saved = 0;       // checkpoints before it
    uint64_t until_next = 0;  // units
};

class Moments {
public:
    explicit Moments(const ScaleRecording& recording);

    /// Who consumes the samples, as its causes tell, or reads most of them.
    TaskId leader() const { return leader_; }
    bool by_causes() const { return by_causes_; }
    const std::vector<Moment>& all() const { return moments_; }
    const Moment& operator[](size_t i) const { return moments_[i]; }
    /// The files that accesses to samples were to, by time.
    const std::vector<FileId>& reads() const { return files_read_; }
    /// Moments of an epoch that are alike, ascending; without its begin and its end, where loaders fill and drain.
    std::vector<size_t> alike(uint32_t epoch) const;
    /// The first and the last moment of an epoch at which each of its readers has handed over two batches in it, and
    /// has two more to hand over: before and after, what they and the consumer hold differs. None: first > last.
    std::pair<size_t, size_t> under_way(uint32_t epoch) const;
    /// Those that are alike, as far apart as can be: of all that are under way. `same`: some that are alike.
    std::vector<size_t> furthest_alike(uint32_t epoch, const std::vector<size_t>& same) const;

    /// Calls visit(op of the leader, its time, what is before) for each.
    template <class Visit>
    void each(Visit&& visit) const {
        if (!arrivals_.empty()) {
            walk(visit);
        }
    }

private:
    using Visit = std::function<void(uint32_t, int64_t, const CausalPast&)>;
    const RecordedTask& task(TaskId id) const { return recording_.tasks()[id]; }
    void find_readers();
    std::vector<uint32_t> arrivals(TaskId id, uint64_t& learned, bool& seldom) const;
    void find_leader();
    void keep_pauses();
    void find_lanes();
    uint64_t flying(const CausalPast& past) const;
    void find_streams();
    void find_checkpoints();
    uint64_t saved(const CausalPast& past) const;
    std::vector<size_t> after_checkpoints(const std::vector<size_t>& moments) const;
    uint64_t open_streams(const CausalPast& past) const;
    uint32_t epoch_at(const CausalPast& past) const;
    void walk(const Visit& visit) const;
    void find_moments();

    /// Messages between two tasks.
    struct Lane {
        TaskId from = 0, to = 0;
        std::vector<uint32_t> sent, received;  // ops
    };
    const ScaleRecording& recording_;
    TaskId leader_ = 0;
    bool by_causes_ = false;
    std::vector<uint64_t> reads_;  // of samples, by task
    std::vector<FileId> files_read_;
    size_t readers_ = 0;  // most in an epoch
    uint64_t total_ = 0;
    std::vector<uint32_t> arrivals_;  // ops of the leader
    std::vector<Lane> lanes_;
    std::vector<HandleId> streams_;
    std::vector<std::vector<uint32_t>> checkpoints_;  // ops that make one, by task
    std::vector<Moment> moments_;
};

}  // namespace reprise
