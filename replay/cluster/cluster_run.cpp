// SPDX-License-Identifier: MIT
#include "replay/cluster/cluster_run.h"

#include <algorithm>
#include <cstddef>
#include <queue>
#include <utility>

#include "formats/support/error.h"
#include "formats/support/random.h"
#include "replay/cluster/cluster_steps.h"
#include "replay/cluster/cluster_storage.h"

namespace reprise {
namespace {

constexpr double kMostEvents = 8e6;   // of fetches, as far as pieces decide that
constexpr uint32_t kMostPieces = 64;  // of a segment
constexpr uint64_t kProgressEvery = 1 << 18;

/// A copy's task, between two events.
struct TaskState {
    enum class At : uint8_t { segment, waiting, body, fetching, fetched, drained, barrier, over };
    double ready = 0;      // it may not begin its segment before
    double waited = 0;     // since when it waits
    uint32_t segment = 0;  // number
    uint32_t published = 0;
    uint32_t step = 0;  // how many are over
    uint16_t piece = 0;
    At at = At::segment;
    bool alive = false;
};

struct Event {
    double time = 0;
    uint64_t who = 0;  // copy and task
    bool operator<(const Event& other) const {
        return time != other.time ? time > other.time : who > other.who;  // the earliest on top
    }
};

class ClusterRun {
public:
    ClusterRun(const JobProfile& profile, const ClusterOptions& options)
        : profile_(profile),
          options_(options),
          copies_(options.accelerators / std::max(profile.accelerators, 1u)),
          width_(profile.tasks.size()),
          storage_(options),
          states_(copies_ * width_),
          streams_(copies_ * profile.streams, 0.0),
          steps_(profile, options, copies_, states_.size()) {
        number_segments();
        choose_pieces();
    }

    ClusterResult run() {
        for (uint64_t copy = 0; copy < copies_; ++copy) {
            for (uint64_t task = 0; task < width_; ++task) {
                if (profile_.tasks[task].at_start) {
                    begin(copy * width_ + task, 0);
                }
            }
        }
        uint64_t over = 0;
        for (; !events_.empty(); ++over) {
            const Event event = events_.top();
            events_.pop();
            advance(event.who, event.time);
            if (over % kProgressEvery == 0 && options_.progress) {
                options_.progress(static_cast<double>(segments_over_) /
                                  static_cast<double>(std::max<uint64_t>(profile_.segments() * copies_, 1)));
            }
        }
        check_over();
        out_.events = over;
        return finish();
    }

private:
    using At = TaskState::At;

    void number_segments() {
        for (const ProfiledTask& task : profile_.tasks) {
            bool trains = false;
            for (const Segment& s : task.segments) {
                alike_.resize(std::max<size_t>(alike_.size(), s.alike + 1));
                alike_[s.alike].push_back(&s);
                trains = trains || s.stream >= 0;
            }
            trains_.push_back(trains);
        }
    }

    void choose_pieces() {
        double fetching = 0;
        for (const ProfiledTask& task : profile_.tasks) {
            fetching += static_cast<double>(std::count_if(task.segments.begin(), task.segments.end(),
                                                          [](const Segment& s) { return s.fetch_requests > 0; }));
        }
        const double fit = kMostEvents / std::max(1.0, fetching * static_cast<double>(copies_));
        most_pieces_ = static_cast<uint32_t>(std::clamp(fit, 1.0, static_cast<double>(kMostPieces)));
        out_.pieces = most_pieces_;
    }

    void at(double time, uint64_t who) { events_.push({time, who}); }
    void begin(uint64_t who, double now) {
        states_[who].alive = true;
        at(now, who);
    }
    const std::vector<Segment>& segments(uint64_t who) const { return profile_.tasks[who % width_].segments; }

    /// Whose work the segment of this copy does: its own, or that of one alike.
    const Segment& work_of(uint64_t who, const Segment& own, uint32_t number) const {
        const uint64_t copy = who / width_;
        if (!options_.scatter || copy == 0 || own.alike == 0 || alike_[own.alike].size() < 2) {
            return own;
        }
        const auto& others = alike_[own.alike];
        const uint64_t draw = splitmix64(splitmix64(options_.seed * kGolden + who) + kGolden * (uint64_t{number} + 1));
        return *others[draw % others.size()];
    }

    void advance(uint64_t who, double now) {
        TaskState& task = states_[who];
        const auto& all = segments(who);
        for (;;) {
            if (task.segment >= all.size()) {
                task.at = At::over;
                publish(who, UINT32_MAX, now);
                return;
            }
            const Segment& own = all[task.segment];
            bool on = false;
            switch (task.at) {
                case At::segment:
                case At::waiting: on = wait(who, task, own, now); break;
                case At::body: on = go(who, task, own, now); break;
                case At::fetching: on = fetch(who, task, own, now); break;
                case At::fetched: on = fetched(who, task, own, now); break;
                case At::drained: on = end(who, task, own, now); break;
                case At::barrier:
                    next(task);
                    on = true;
                    break;
                case At::over: return;
            }
            if (!on) {
                return;
            }
        }
    }

    bool met(uint64_t who, const Segment& own) const {
        const uint64_t first = who - who % width_;
        for (uint32_t i = own.first_wait; i < own.first_wait + own.waits; ++i) {
            if (states_[first + profile_.waits[i].task].published < profile_.waits[i].count) {
                return false;
            }
        }
        return true;
    }

    bool wait(uint64_t who, TaskState& task, const Segment& own, double now) {
        if (task.at == At::segment) {
            task.ready = now + static_cast<double>(own.lead_ns);
            task.waited = -1;
            task.at = At::waiting;
            if (own.inside && own.lead_ns > 0) {
                at(task.ready, who);
                return false;
            }
        }
        if (!met(who, own)) {
            task.waited = task.waited < 0 ? now : task.waited;
            return false;  // publish() looks again
        }
        task.at = At::body;
        task.piece = 0;
        if (task.ready > now) {
            at(task.ready, who);
            return false;
        }
        return true;
    }

    uint32_t pieces_of(const Segment& work) const {
        return work.fetch_requests <= 0
                   ? 1
                   : static_cast<uint32_t>(std::clamp(work.fetch_requests, 1.0, static_cast<double>(most_pieces_)));
    }

    bool writes(uint64_t who) const { return options_.all_write || who < width_; }

    /// A piece begins: what the task does itself.
    bool go(uint64_t who, TaskState& task, const Segment& own, double now) {
        if (task.piece == 0) {
            for (uint32_t i = own.first_start; i < own.first_start + own.starts; ++i) {
                begin(who - who % width_ + profile_.starts[i], now);
            }
            if (own.publishes_first) {
                publish(who, own.published, now);
            }
        }
        const Segment& work = work_of(who, own, task.segment);
        const auto pieces = static_cast<double>(pieces_of(work));
        const uint64_t host = host_of(who);
        double end = now;
        if (work.compute_ns > 0) {
            const double part = work.compute_ns / pieces;
            end = std::max(end, storage_.compute(host, part, now));
            out_.decode_s += trains_[who % width_] ? 0 : part / 1e9;
        }
        if (work.names > 0) {
            end = std::max(end, storage_.names(work.names / pieces, now));
            names_ += work.names / pieces;
        }
        end += (work.own_ns + (writes(who) ? own.write_ns : 0)) / pieces;
        task.at = At::fetching;
        if (end > now) {
            at(end, who);
            return false;
        }
        return true;
    }

    bool fetch(uint64_t who, TaskState& task, const Segment& own, double now) {
        const Segment& work = work_of(who, own, task.segment);
        task.at = At::fetched;
        double end = now;
        if (work.fetch_requests > 0) {
            const auto pieces = static_cast<double>(pieces_of(work));
            const ClusterStorage::Fetch part{work.fetch_ns / pieces, work.fetch_requests / pieces,
                                             work.fetch_bytes / pieces};
            end = storage_.fetch(host_of(who), part, now);
            out_.fetched_bytes += part.bytes;
            out_.requests += part.requests;
        }
        if (own.sync_ns > 0 && task.piece == 0 && writes(who)) {
            end = std::max(end, storage_.write(own.sync_bytes, own.sync_ns, now));
            out_.synced_bytes += own.sync_bytes;
        }
        if (end > now) {
            at(end, who);
            return false;
        }
        return true;
    }

    bool fetched(uint64_t who, TaskState& task, const Segment& own, double now) {
        const Segment& work = work_of(who, own, task.segment);
        if (++task.piece < pieces_of(work)) {
            task.at = At::body;
            return true;
        }
        task.at = At::drained;
        if (own.stream >= 0) {
            double& free = streams_[(who / width_) * profile_.streams + static_cast<uint64_t>(own.stream)];
            if (work.busy_ns > 0) {
                free = std::max(free, now) + static_cast<double>(work.busy_ns);
                busy_ += static_cast<double>(work.busy_ns);
                later_busy_ += task.step > 0 ? static_cast<double>(work.busy_ns) : 0;
                last_end_ = std::max(last_end_, free);
            }
            if (own.drain && free > now) {
                at(free, who);
                return false;
            }
        }
        return true;
    }

    /// The segment is over, but for the others.
    bool end(uint64_t who, TaskState& task, const Segment& own, double now) {
        last_end_ = std::max(last_end_, now);
        if (!own.publishes_first) {
            publish(who, own.published, now);
        }
        if (!own.step_end) {
            next(task);
            return true;
        }
        task.at = At::barrier;
        return steps_.end(who, task.step++, now, [this](uint64_t waiter, double time) { at(time, waiter); });
    }

    void next(TaskState& task) {
        ++task.segment;
        ++segments_over_;
        task.at = At::segment;
    }

    void publish(uint64_t who, uint32_t count, double now) {
        TaskState& task = states_[who];
        if (count <= task.published) {
            return;
        }
        task.published = count;
        const uint64_t first = who - who % width_;
        for (uint64_t other = first; other < first + width_; ++other) {
            TaskState& waiter = states_[other];
            if (other != who && waiter.alive && waiter.at == At::waiting && waiter.waited >= 0 &&
                met(other, segments(other)[waiter.segment])) {
                waited_for(other, waiter, now);
            }
        }
    }

    /// A task that waits goes on. It has no event until then.
    void waited_for(uint64_t who, TaskState& task, double now) {
        const Segment& own = segments(who)[task.segment];
        waited_data_ += !trains_[who % width_]
                            ? 0
                            : std::max(0.0, now - (own.inside ? task.waited : std::max(task.waited, task.ready)));
        task.waited = -1;
        task.at = At::body;
        task.piece = 0;
        at(std::max(now, task.ready), who);
    }

    uint64_t host_of(uint64_t who) const { return (who / width_) * options_.hosts / copies_; }

    void check_over() const {
        for (uint64_t who = 0; who < states_.size(); ++who) {
            if (states_[who].alive && states_[who].at != At::over) {
                throw Error(ExitCode::bad_input, "the job",
                            "its tasks wait for each other in a circle, so that copies of it stand still",
                            "predict it without --hosts, which gives up the weakest of such waits");
            }
        }
    }

    ClusterResult finish() {
        const double elapsed = last_end_;
        const auto accelerators = static_cast<double>(options_.accelerators);
        const double later = steps_.later_ns();
        const auto trainers =
            static_cast<double>(copies_) * static_cast<double>(std::count(trains_.begin(), trains_.end(), true));
        out_.accelerators = options_.accelerators;
        out_.hosts = options_.hosts;
        out_.copies = copies_;
        out_.steps = steps_.count();
        out_.elapsed_s = elapsed / 1e9;
        out_.au = elapsed > 0 ? std::min(busy_ / elapsed / accelerators, 1.0) : 0;
        out_.au_mlperf = later > 0 ? std::min(later_busy_ / later * trainers / accelerators, 1.0) : 0;
        out_.step_s = out_.steps > 1 ? later / trainers / static_cast<double>(out_.steps - 1) / 1e9 : 0;
        out_.names = names_;
        out_.all_reduce_s = steps_.all_reduce_ns() / 1e9;
        out_.wait_data_s = waited_data_ / trainers / 1e9;
        out_.wait_others_s = steps_.waited_ns() / trainers / 1e9;
        out_.use = storage_.use(elapsed);
        for (size_t i = 0; i < kClusterLimits; ++i) {
            out_.delay_s[i] = storage_.delays()[i] / 1e9;
        }
        out_.fetch_alone_s = storage_.alone_ns() / 1e9;
        return std::move(out_);
    }

    const JobProfile& profile_;
    const ClusterOptions& options_;
    const uint64_t copies_;
    const uint64_t width_;  // tasks of a copy
    ClusterStorage storage_;
    std::vector<TaskState> states_;  // by copy, then task
    std::vector<double> streams_;    // when each runs empty
    ClusterSteps steps_;
    std::vector<std::vector<const Segment*>> alike_;
    std::vector<bool> trains_;  // by task: it has an accelerator
    std::priority_queue<Event> events_;
    uint32_t most_pieces_ = 1;
    uint64_t segments_over_ = 0;
    double busy_ = 0, later_busy_ = 0, last_end_ = 0, waited_data_ = 0, names_ = 0;
    ClusterResult out_;
};

}  // namespace

ClusterResult run_cluster(const JobProfile& profile, const ClusterOptions& options) {
    return ClusterRun(profile, options).run();
}

}  // namespace reprise
