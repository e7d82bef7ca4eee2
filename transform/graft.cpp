// SPDX-License-Identifier: MIT
#include "transform/graft.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "formats/oplog/cached_pages.h"
#include "formats/oplog/contents.h"
#include "formats/oplog/copy_tables.h"
#include "formats/oplog/header_facts.h"
#include "formats/oplog/held_memory.h"
#include "formats/support/error.h"
#include "formats/support/percentile.h"
#include "transform/graft_steps.h"

namespace reprise {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
// A profile begins and ends within its job; clocks of the two may differ by so much.
constexpr int64_t kClockSlack = kSecond;

struct Span {
    int64_t begin = INT64_MAX, end = INT64_MIN;
};

Span span_of(const LogReader& log) {
    Span span;
    for (const BlockInfo& block : log.blocks()) {
        span.begin = std::min(span.begin, block.begin);
        span.end = std::max(span.end, block.end);
    }
    return span;
}

std::string seconds(int64_t ns) {
    char text[64];
    std::snprintf(text, sizeof text, "%.3f", static_cast<double>(ns) / 1e9);
    return text;
}

bool uses_accelerator(const LogReader& log) {
    bool found = false;
    OpBlock block;
    for (const BlockInfo& where : log.blocks()) {
        if (found) {
            break;
        }
        log.decode(where, block);
        for (size_t i = 0; i < block.count() && !found; ++i) {
            found = static_cast<OpKind>(block.kind[i]) == OpKind::gpu_submit;
        }
        log.forget(where);
    }
    return found;
}

// Numbers of a task's ops after others were put between them: steps of (old number from which, what is added).
class Renumbering {
public:
    // Op `old` now ends with op `last`, or, where that is less than 0, nothing comes before it.
    void set(uint64_t old, int64_t last) {
        const int64_t shift = last - static_cast<int64_t>(old);
        if (shifts_.empty() ? shift != 0 : shifts_.back().second != shift) {
            shifts_.emplace_back(old, shift);
        }
    }
    std::optional<uint64_t> operator()(uint64_t old) const {
        const auto after = std::upper_bound(shifts_.begin(), shifts_.end(), old,
                                            [](uint64_t op, const auto& each) { return op < each.first; });
        const int64_t now = static_cast<int64_t>(old) + (after == shifts_.begin() ? 0 : std::prev(after)->second);
        return now < 0 ? std::nullopt : std::optional(static_cast<uint64_t>(now));
    }

private:
    std::vector<std::pair<uint64_t, int64_t>> shifts_;
};

class Graft {
public:
    Graft(const LogReader& job, const LogReader& profile, const GraftOptions& options)
        : job_(job), profile_(profile), tables_(job.tables()), options_(options) {}

    GraftResult run(GraftBy by, const std::filesystem::path& output) {
        if (uses_accelerator(job_)) {
            throw bad_input(job_.path().native(), "this log has accelerator work already",
                            "graft onto the log as it was recorded, without marks of an accelerator");
        }
        if (!uses_accelerator(profile_)) {
            throw bad_input(profile_name(), "this profile holds no accelerator work", {});
        }
        job_steps_ = LoopSteps::of(job_);
        profile_steps_ = LoopSteps::of(profile_);
        pairs_ = match_steps(profile_steps_, job_steps_);
        choose(by);
        place();
        write(output);
        return result_;
    }

private:
    // --- which times belong together

    // Empty: the clock fits. Else why it does not, in numbers.
    std::string clock_misfit() {
        const int64_t job_origin = job_.header().origin_unix_ns, profile_origin = profile_.header().origin_unix_ns;
        if (job_origin == 0) {
            return "the recording does not know the wall clock";
        }
        if (profile_origin == 0) {
            return "the profile does not know the wall clock";
        }
        result_.offset_ns = profile_origin - job_origin;
        const Span job = span_of(job_), work = span_of(profile_);
        const int64_t begin = work.begin + result_.offset_ns, end = work.end + result_.offset_ns;
        if (begin < job.begin - kClockSlack || end > job.end + kClockSlack) {
            return "by the clock the profile is from " + seconds(begin - job.begin) + " to " +
                   seconds(end - job.begin) + " s of the recording, which lasts " + seconds(job.end - job.begin) + " s";
        }
        result_.residual_ns.reset();
        if (pairs_.empty()) {
            return {};
        }
        std::vector<int64_t> distances;
        for (const auto& [in_profile, in_job] : pairs_) {
            distances.push_back(
                std::abs(profile_steps_.steps[in_profile].begin + result_.offset_ns - job_steps_.steps[in_job].begin));
        }
        result_.residual_ns = median(distances);
        if (*result_.residual_ns > std::max(job_steps_.median_length(), kSecond / 10)) {
            return "by the clock the steps of the profile lie " + seconds(*result_.residual_ns) +
                   " s off those of the recording, whose steps last " + seconds(job_steps_.median_length()) + " s";
        }
        return {};
    }

    std::string step_misfit() {
        std::string both = "the profile has " + profile_steps_.words() + ", the recording " + job_steps_.words();
        if (profile_steps_.steps.empty() || job_steps_.steps.empty()) {
            return both;
        }
        if (pairs_.empty()) {
            return both + ": they are not the same steps";
        }
        int64_t in_profile = 0, in_job = 0;
        std::vector<int64_t> differences;
        for (const auto& [profile, job] : pairs_) {
            const LoopStep &a = profile_steps_.steps[profile], &b = job_steps_.steps[job];
            in_profile += a.end - a.begin;
            in_job += b.end - b.begin;
            differences.push_back(std::abs((a.end - a.begin) - (b.end - b.begin)));
        }
        // The accelerator's part of a step does not change; the rest may, but not without limit.
        constexpr int64_t kMost = 4;
        if (in_profile > kMost * in_job || in_job > kMost * in_profile) {
            return both + ": " + std::to_string(pairs_.size()) + " common steps take " + seconds(in_profile) +
                   " s and " + seconds(in_job) + " s";
        }
        result_.residual_ns = median(differences);
        return {};
    }

    void choose(GraftBy by) {
        std::string clock, step;
        if (by != GraftBy::step && (clock = clock_misfit()).empty()) {
            result_.by = GraftBy::clock;
            return;
        }
        if (by != GraftBy::clock && (step = step_misfit()).empty()) {
            result_.by = GraftBy::step;
            result_.offset_ns = 0;
            return;
        }
        throw bad_input(
            profile_name(),
            "this profile is not of the recorded job: " + clock + (clock.empty() || step.empty() ? "" : "; ") + step,
            "graft the profile of the same run, or one of a run with the same steps, marked in both "
            "(docs/markers.md)");
    }

    std::string profile_name() const {
        return options_.profile_name.empty() ? profile_.path().native() : options_.profile_name;
    }

    // Log time of a time of the profile; none: in no step that both have.
    std::optional<int64_t> moved(int64_t time) const {
        if (result_.by == GraftBy::clock) {
            return time + result_.offset_ns;
        }
        // The last common step that has begun.
        const auto after = std::upper_bound(pairs_.begin(), pairs_.end(), time, [&](int64_t at, const auto& pair) {
            return at < profile_steps_.steps[pair.first].begin;
        });
        if (after == pairs_.begin()) {
            return std::nullopt;
        }
        const auto& [in_profile, in_job] = *std::prev(after);
        const LoopStep& step = profile_steps_.steps[in_profile];
        // What comes after the last step of the profile belongs to nothing.
        if (time >= step.end && after == pairs_.end()) {
            return std::nullopt;
        }
        // A step that took longer in the profile must not reach into the next one.
        const int64_t limit = after == pairs_.end() ? INT64_MAX : job_steps_.steps[after->second].begin;
        return std::min(job_steps_.steps[in_job].begin + (time - step.begin), limit);
    }

    // --- where it goes

    void place() {
        std::map<std::pair<int32_t, int32_t>, TaskId> threads;
        for (TaskId task = 1; task < tables_.tasks.size(); ++task) {
            const TaskRow& row = tables_.tasks[task];
            if (row.process < tables_.processes.size()) {
                threads.emplace(std::pair(tables_.processes[row.process].pid, row.tid), task);
            }
        }
        const Tables& tables = profile_.tables();
        const auto same = [&](TaskId task) -> TaskId {
            if (result_.by != GraftBy::clock) {
                return 0;
            }
            const TaskRow& row = tables.tasks[task];
            const auto found = threads.find({tables.processes[row.process].pid, row.tid});
            return found == threads.end() ? 0 : found->second;
        };
        // What no recorded thread did is done by the one that runs the loop.
        TaskId main = job_steps_.task;
        for (TaskId task = 1; main == 0 && task < tables.tasks.size(); ++task) {
            main = same(task);
        }
        for (TaskId task = 1; task < tables_.tasks.size() && (main == 0 || job_.op_count(main) == 0); ++task) {
            main = job_.op_count(task) > 0 ? task : main;
        }
        if (main == 0) {
            throw bad_input(job_.path().native(), "this log holds no ops to graft onto", {});
        }
        inserts_.resize(tables_.tasks.size());
        const bool steps_too = job_steps_.mark != "step" && job_steps_.mark != "accelerator";
        for (TaskId task = 1; task < tables.tasks.size(); ++task) {
            const TaskId into = same(task) ? same(task) : main;
            profile_.for_each(task, [&](const Op& from, uint64_t) {
                const bool work = from.kind == OpKind::gpu_submit || from.kind == OpKind::gpu_wait;
                if (!work && !(steps_too && from.kind == OpKind::marker)) {
                    return;
                }
                Op op = from;
                op.edges = {};
                const auto at = moved(from.begin);
                if (!at) {
                    ++outside_;
                    return;
                }
                op.begin = *at;
                inserts_[into].push_back(op);
                moved_threads_ += work && same(task) == 0 && into == main;
                ++(op.kind == OpKind::gpu_wait ? result_.waits : result_.submissions);
                if (op.kind == OpKind::marker) {
                    --result_.submissions;
                }
            });
        }
        for (auto& list : inserts_) {
            std::stable_sort(list.begin(), list.end(), [](const Op& a, const Op& b) { return a.begin < b.begin; });
        }
        result_.steps = pairs_.size();
        result_.steps_of_log = job_steps_.steps.size();
    }

    // --- the ops of one task with those put between them: emit(op, number in the recording or -1, whole or last piece)

    template <class Emit, class Dropped>
    void weave(TaskId task, Emit emit, Dropped dropped) const {
        const std::vector<Op>& inserts = inserts_[task];
        std::vector<Span> waits;  // disjoint, by begin
        for (const Op& op : inserts) {
            if (op.kind != OpKind::gpu_wait || op.duration <= 0) {
                continue;
            }
            if (!waits.empty() && op.begin <= waits.back().end) {
                waits.back().end = std::max(waits.back().end, op.end());
            } else {
                waits.push_back({op.begin, op.end()});
            }
        }
        size_t next = 0, wait = 0;
        int64_t last_begin = INT64_MIN;
        const auto put = [&](Op op, int64_t number, bool last) {
            op.begin = std::max(op.begin, last_begin);
            last_begin = op.begin;
            emit(op, number, last);
        };
        const auto put_inserts = [&](int64_t until) {
            for (; next < inserts.size() && inserts[next].begin <= until; ++next) {
                put(inserts[next], -1, false);
            }
        };
        job_.for_each(task, [&](const Op& op, uint64_t number) {
            put_inserts(op.begin);
            while (wait < waits.size() && waits[wait].end <= op.begin) {
                ++wait;
            }
            const bool computes = op.kind == OpKind::compute || op.kind == OpKind::idle;
            const auto old = static_cast<int64_t>(number);
            if (!computes && op.kind != OpKind::wait) {
                return put(op, old, true);
            }
            // What is left of it outside the waits for the device.
            std::vector<Span> left;
            int64_t from = op.begin;
            for (size_t i = wait; i < waits.size() && waits[i].begin < op.end(); ++i) {
                if (waits[i].begin > from) {
                    left.push_back({from, waits[i].begin});
                }
                from = std::max(from, waits[i].end);
            }
            if (from < op.end() || (op.duration == 0 && from == op.begin)) {
                left.push_back({from, op.end()});
            }
            if (op.kind == OpKind::wait) {
                int64_t kept = 0;
                for (const Span& span : left) {
                    kept += span.end - span.begin;
                }
                if (kept * 2 >= op.duration || op.arg == kWaitWokeOthers) {
                    return put(op, old, true);
                }
                return dropped(number);
            }
            bool any = false;
            for (size_t i = 0; i < left.size(); ++i) {
                int64_t begin = left[i].begin;
                while (next < inserts.size() && inserts[next].begin < left[i].end) {
                    if (inserts[next].begin > begin) {
                        piece(op, begin, inserts[next].begin, any, [&](const Op& part) { put(part, old, false); });
                        begin = inserts[next].begin;
                    }
                    put_inserts(begin);
                }
                piece(op, begin, left[i].end, any, [&](const Op& part) { put(part, old, i + 1 == left.size()); });
            }
            if (!any) {
                dropped(number);
            }
        });
        put_inserts(INT64_MAX);
    }

    // The first piece keeps what the op waits for.
    template <class Put>
    static void piece(const Op& of, int64_t begin, int64_t end, bool& any, Put put) {
        Op part = of;
        part.begin = begin;
        part.duration = end - begin;
        if (any) {
            part.edges = {};
        }
        any = true;
        put(part);
    }

    void write(const std::filesystem::path& output) {
        std::vector<Renumbering> numbers(tables_.tasks.size());
        for (TaskId task = 1; task < tables_.tasks.size(); ++task) {
            if (inserts_[task].empty()) {
                continue;
            }
            int64_t count = 0;
            weave(
                task,
                [&](const Op&, int64_t number, bool) {
                    if (number >= 0) {
                        numbers[task].set(static_cast<uint64_t>(number), count);
                    }
                    ++count;
                },
                [&](uint64_t number) { numbers[task].set(number, count - 1); });
        }
        LogWriter writer(output, header(), options_.writer);
        try {
            copy_tables(tables_, writer);
            uint64_t dropped_waits = 0, dropped_edges = 0;
            std::vector<Edge> edges;
            for (TaskId task = 1; task < tables_.tasks.size(); ++task) {
                const auto emit = [&](Op op, int64_t number, bool) {
                    const auto& strings = number < 0 ? profile_.tables().strings : tables_.strings;
                    op.text = op.text != 0 ? writer.intern(strings[op.text]) : 0;
                    dropped_edges += renumber(op.edges, numbers, edges);
                    op.edges = edges;
                    writer.append(task, op);
                };
                weave(task, emit, [&](uint64_t) { ++dropped_waits; });
            }
            count(writer, dropped_waits, dropped_edges);
            copy_page_cache(job_, writer);
            copy_held_memory(job_, writer);
            copy_contents(job_, writer);
            writer.finish();
        } catch (...) {
            writer.discard();
            throw;
        }
    }

    /// Edges by the new numbers of their sources; returns how many lost theirs.
    static uint64_t renumber(std::span<const Edge> edges, const std::vector<Renumbering>& numbers,
                             std::vector<Edge>& into) {
        into.clear();
        for (Edge edge : edges) {
            if (const auto now = edge.task < numbers.size() ? numbers[edge.task](edge.op) : std::nullopt) {
                edge.op = *now;
                into.push_back(edge);
            }
        }
        return edges.size() - into.size();
    }

    Header header() const {
        Header out = job_.header();
        write_fact(out, fact::accelerator_source, profile_.header().source);
        const std::optional<std::string> clock = read_fact(profile_.header(), fact::accelerator_clock);
        if (clock && !read_fact(out, fact::accelerator_clock)) {
            write_fact(out, fact::accelerator_clock, *clock);
        }
        write_fact(out, fact::accelerator_by, result_.by == GraftBy::clock ? "clock" : "step");
        if (result_.by == GraftBy::clock) {
            write_fact(out, fact::accelerator_offset, result_.offset_ns);
        }
        write_fact(out, fact::accelerator_residual,
                   result_.residual_ns ? std::to_string(*result_.residual_ns) : "unknown: no steps are marked in both");
        if (options_.amend) {
            options_.amend(out);
        }
        return out;
    }

    void count(LogWriter& writer, uint64_t dropped_waits, uint64_t dropped_edges) const {
        for (const Counter& counter : tables_.counters) {
            writer.count(counter);
        }
        for (const Counter& counter : profile_.tables().counters) {
            if (counter.name != "profile_without_io") {
                writer.count(counter);
            }
        }
        writer.count(Count::waits_of_accelerators, dropped_waits);
        writer.count(Count::edges_of_accelerators, dropped_edges);
        writer.count(Count::profile_outside_steps, outside_);
        writer.count(Count::profile_threads_joined, moved_threads_);
        const bool by_steps = result_.steps > 0 && result_.steps_of_log > result_.steps;
        writer.count(Count::steps_without_profile, by_steps ? result_.steps_of_log - result_.steps : 0);
    }

    const LogReader& job_;
    const LogReader& profile_;
    const Tables& tables_;
    const GraftOptions& options_;
    LoopSteps job_steps_, profile_steps_;
    std::vector<std::pair<size_t, size_t>> pairs_;
    std::vector<std::vector<Op>> inserts_;  // by task of the job, by begin
    GraftResult result_;
    uint64_t outside_ = 0, moved_threads_ = 0;
};

}  // namespace

GraftResult graft(const LogReader& job, const LogReader& profile, GraftBy by, const std::filesystem::path& output,
                  const GraftOptions& options) {
    return Graft(job, profile, options).run(by, output);
}

}  // namespace reprise
