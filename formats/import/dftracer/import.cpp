// SPDX-License-Identifier: MIT
// The DFTracer importer: which events are calls, spans or duplicates, in which order they took effect, and which
// threads share descriptors. docs/importers.md says what a trace of this kind cannot know.
#include <fcntl.h>
#include <fnmatch.h>

#include <algorithm>
#include <set>

#include "formats/assemble/assembler.h"
#include "formats/import/dftracer/calls.h"
#include "formats/import/dftracer/lines.h"
#include "formats/import/dftracer/processes.h"
#include "formats/import/importer.h"
#include "formats/oplog/header_facts.h"
#include "formats/support/error.h"

namespace reprise {
namespace {

using namespace dftracer;

bool sniff(std::string_view head) {
    while (!head.empty()) {
        const size_t end = std::min(head.find('\n'), head.size());
        const std::string_view line = head.substr(0, end);
        head.remove_prefix(std::min(end + 1, head.size()));
        const size_t brace = line.find('{');
        if (brace == line.npos || line.find_first_not_of(" \t[,") != brace) {
            if (line.find_first_not_of(" \t\r[") == line.npos) {
                continue;  // before the first event
            }
            return false;
        }
        const auto has = [&](std::string_view key) { return line.find(key) != line.npos; };
        // An event per line. A PyTorch profile begins with its one big object instead.
        return !has("\"traceEvents\"") && has("\"ph\":") && has("\"name\":") && has("\"pid\":") && has("\"cat\":");
    }
    return false;
}

// When an event takes effect, and which: `what` orders those of the same microsecond, so that spans are half-open.
struct Step {
    enum What : uint32_t { span_end, span_begin, call, empty_span_end };
    int64_t time = 0;  // us
    uint32_t event = 0;
    What what = call;
};

// Stable, by 11 bits of the time at a time: traces are nearly sorted, which comparing does not profit from.
void sort_by_time(std::vector<Step>& steps, int64_t origin) {
    constexpr unsigned kBits = 11;
    uint64_t greatest = 0;
    for (const Step& step : steps) {
        greatest |= static_cast<uint64_t>(step.time - origin);
    }
    std::vector<Step> other(steps.size());
    for (unsigned shift = 0; shift < 64 && greatest >> shift; shift += kBits) {
        size_t starts[(size_t{1} << kBits) + 1] = {};
        const auto digit = [&](const Step& step) {
            return (static_cast<uint64_t>(step.time - origin) >> shift) & ((1u << kBits) - 1);
        };
        for (const Step& step : steps) {
            ++starts[digit(step) + 1];
        }
        for (size_t i = 1; i < std::size(starts); ++i) {
            starts[i] += starts[i - 1];
        }
        for (const Step& step : steps) {
            other[starts[digit(step)]++] = step;
        }
        steps.swap(other);
    }
}

int64_t effect_of(const Event& event, Call call) {
    switch (call) {  // what makes a descriptor or a name is there when it ends
        case Call::open:
        case Call::creat:
        case Call::openat:
        case Call::fopen:
        case Call::opendir: return event.begin + event.duration;
        default: return event.begin;
    }
}

bool same(const Event& a, const Event& b) {
    return a.id == b.id && a.thread == b.thread && a.begin == b.begin && a.name == b.name && a.duration == b.duration;
}

class Import {
public:
    Import(std::span<const std::filesystem::path> inputs, const ImportOptions& options)
        : inputs_(inputs), options_(options) {}
    void run(const std::filesystem::path& output);

private:
    void read();
    void refuse_what_holds_no_calls() const;
    void choose_compute_spans();
    bool kept(const Name& name) const;
    void order();
    void drop_duplicates();
    void feed(LogWriter& writer);
    void feed_span(Assembler& assembler, LogWriter& writer, const Event& event, bool begin);
    void count(LogWriter& writer, const Calls& calls) const;
    int64_t ns(int64_t us) const { return (us - origin_) * 1000; }

    std::span<const std::filesystem::path> inputs_;
    const ImportOptions& options_;
    Lines lines_;
    std::vector<Step> steps_;
    Processes processes_;
    std::vector<uint8_t> computes_;  // per row of names: its spans mean a busy accelerator
    bool has_host_compute_ = false;
    int64_t origin_ = 0;  // us
    uint64_t duplicates_ = 0, spans_dropped_ = 0, nested_computes_ = 0;
    std::vector<int64_t> compute_end_;    // per thread, us: to see nesting
    std::map<int32_t, int64_t> devices_;  // per process
};

void Import::read() {
    uint64_t done = 0;
    for (const auto& input : inputs_) {
        lines_.read(input, [&](uint64_t bytes) {
            if (options_.progress) {
                options_.progress(done + bytes);
            }
        });
        std::error_code ignored;
        const auto size = std::filesystem::file_size(input, ignored);
        if (!ignored) {
            done += size;
        }
    }
}

void Import::refuse_what_holds_no_calls() const {
    if (!lines_.events.empty()) {
        return;
    }
    const std::string first = inputs_.empty() ? std::string() : inputs_.front().native();
    if (lines_.aggregated > 0) {
        throw bad_input(lines_.first_aggregated,
                        "this trace holds aggregated counters (" + std::to_string(lines_.aggregated) +
                            " of them) and no individual calls: how often and how long, but not when, where and in "
                            "which order; nothing can be replayed from it",
                        "record again without aggregation");
    }
    if (lines_.malformed > 0) {
        throw bad_input(lines_.first_malformed, "and no line of the input could be read as a DFTracer event",
                        "check that the file is a .pfw trace, or name its format with --from");
    }
    throw bad_input(first, "holds no events", {});
}

// Patterns given by the user replace the built-in ones; without any, the most specific kind of span that occurs.
void Import::choose_compute_spans() {
    computes_.assign(lines_.names.size(), 0);
    const auto mark = [&](auto&& chosen) {
        bool any = false;
        for (size_t i = 0; i < computes_.size(); ++i) {
            const Name& name = lines_.names[i];
            if (name.call != Call::span || !chosen(name)) {
                continue;
            }
            computes_[i] = 1;
            any = true;
        }
        return any;
    };
    for (const Name& name : lines_.names) {
        has_host_compute_ |= name.call == Call::span && name.span == Span::host_compute;
    }
    if (!options_.compute_spans.empty()) {
        const bool any = mark([&](const Name& name) {
            const std::string full = name.category + ":" + name.name;
            return std::any_of(options_.compute_spans.begin(), options_.compute_spans.end(),
                               [&](const std::string& pattern) {
                                   return ::fnmatch(pattern.c_str(), name.name.c_str(), 0) == 0 ||
                                          ::fnmatch(pattern.c_str(), full.c_str(), 0) == 0;
                               });
        });
        if (any) {
            return;
        }
        std::string seen;
        for (const Name& name : lines_.names) {
            if (name.call == Call::span && seen.size() < 600) {
                seen += (seen.empty() ? "" : ", ") + name.category + ":" + name.name;
            }
        }
        throw usage_error("--compute-span matches no span of the trace",
                          "spans in it: " + escape_line(seen.empty() ? "none" : seen));
    }
    if (mark([](const Name& name) { return name.span == Span::compute; })) {
        return;
    }
    mark([](const Name& name) { return name.span == Span::compute_or_step; });
}

bool Import::kept(const Name& name) const {
    return options_.all_spans || name.span != Span::other ||
           computes_[static_cast<size_t>(&name - lines_.names.data())];
}

// Steps in the order of their effect.
void Import::order() {
    const auto& events = lines_.events;
    steps_.reserve(events.size() + events.size() / 8);
    for (uint32_t i = 0; i < events.size(); ++i) {
        const Name& name = lines_.names[events[i].name];
        if (name.call != Call::span) {
            steps_.push_back({effect_of(events[i], name.call), i, Step::call});
        } else {
            steps_.push_back({events[i].begin, i, Step::span_begin});
        }
    }
    sort_by_time(steps_, origin_);
    const auto before = [&](const Step& a, const Step& b) {  // of the same time
        if (a.what != b.what) {
            return a.what < b.what;
        }
        const int64_t da = events[a.event].duration, db = events[b.event].duration;
        if (a.what == Step::span_begin && da != db) {
            return da > db;  // the outer span first
        }
        return a.event < b.event;
    };
    for (size_t first = 0; first < steps_.size();) {
        size_t last = first + 1;
        while (last < steps_.size() && steps_[last].time == steps_[first].time) {
            ++last;
        }
        if (last - first > 1) {
            std::sort(steps_.begin() + static_cast<ptrdiff_t>(first), steps_.begin() + static_cast<ptrdiff_t>(last),
                      before);
        }
        first = last;
    }
    drop_duplicates();
    // Ends only now, so that a dropped span has none.
    std::vector<Step> ends;
    for (const Step& step : steps_) {
        if (step.what == Step::span_begin && kept(lines_.names[events[step.event].name])) {
            ends.push_back({events[step.event].begin + events[step.event].duration, step.event,
                            events[step.event].duration > 0 ? Step::span_end : Step::empty_span_end});
        }
    }
    if (ends.empty()) {
        return;
    }
    std::sort(ends.begin(), ends.end(), [&](const Step& a, const Step& b) {
        if (a.time != b.time) {
            return a.time < b.time;
        }
        if (a.what != b.what) {
            return a.what < b.what;
        }
        const int64_t da = events[a.event].duration, db = events[b.event].duration;
        return da != db ? da < db : a.event > b.event;  // the inner span first
    });
    std::vector<Step> merged(steps_.size() + ends.size());
    std::merge(steps_.begin(), steps_.end(), ends.begin(), ends.end(), merged.begin(),
               [](const Step& a, const Step& b) { return a.time != b.time ? a.time < b.time : a.what < b.what; });
    steps_.swap(merged);
}

// Forked workers write out what their parent had buffered once more. Copies have equal times, so they are neighbours.
void Import::drop_duplicates() {
    const auto& events = lines_.events;
    constexpr size_t kFew = 12;
    const auto key_less = [&](uint32_t a, uint32_t b) {
        const Event &x = events[a], &y = events[b];
        return std::tie(x.id, x.thread, x.begin, x.name, x.duration) <
               std::tie(y.id, y.thread, y.begin, y.name, y.duration);
    };
    size_t out = 0;
    for (size_t first = 0; first < steps_.size();) {
        size_t last = first + 1;
        while (last < steps_.size() && steps_[last].time == steps_[first].time) {
            ++last;
        }
        const size_t kept_from = out;
        std::set<uint32_t, decltype(key_less)> seen(key_less);
        const bool many = last - first > kFew;
        for (size_t i = first; i < last; ++i) {
            const Step step = steps_[i];
            bool is_copy = false;
            if (many) {
                is_copy = !seen.insert(step.event).second;
            } else {
                for (size_t k = kept_from; k < out && !is_copy; ++k) {
                    is_copy = same(events[steps_[k].event], events[step.event]);
                }
            }
            if (is_copy) {
                ++duplicates_;
            } else {
                steps_[out++] = step;
            }
        }
        first = last;
    }
    steps_.resize(out);
}

void Import::feed_span(Assembler& assembler, LogWriter& writer, const Event& event, bool begin) {
    const Name& name = lines_.names[event.name];
    const int32_t pid = processes_.pid(event.thread), tid = processes_.tid(event.thread);
    const bool computes = computes_[event.name];
    if (begin && computes) {
        int64_t& busy_until = compute_end_[event.thread];
        if (event.begin < busy_until) {
            ++nested_computes_;
        } else {
            busy_until = event.begin + event.duration;
            Op op;
            op.kind = OpKind::gpu_submit;
            op.begin = ns(event.begin);
            op.size = event.duration * 1000;
            op.arg = devices_.at(pid);
            op.text = writer.intern(name.name);
            assembler.op(pid, tid, op);
            Op wait;
            wait.kind = OpKind::gpu_wait;
            wait.begin = op.begin;
            wait.duration = event.duration * 1000;
            wait.arg = op.arg;
            assembler.op(pid, tid, wait);
        }
    }
    // A span used as accelerator time is not also a marker, unless it delimits the step.
    if (computes && name.span != Span::compute_or_step) {
        return;
    }
    Op op;
    op.kind = OpKind::marker;
    op.begin = ns(begin ? event.begin : event.begin + event.duration);
    op.flags = static_cast<int64_t>(begin ? MarkerPhase::begin : MarkerPhase::end);
    op.arg = event.size;
    std::string_view text = name.name;
    switch (name.span) {
        case Span::epoch:
            text = "epoch";
            op.arg = event.offset;
            break;
        case Span::step:
        case Span::compute_or_step: text = "step"; break;
        case Span::fetch: text = "fetch"; break;
        case Span::checkpoint: text = "checkpoint"; break;
        case Span::other:
        case Span::host_compute:
        case Span::compute: break;
    }
    op.text = writer.intern(text);
    assembler.op(pid, tid, op);
}

void Import::feed(LogWriter& writer) {
    Assembler::Options assembling;
    assembling.roles = &options_.roles;
    Assembler assembler(writer, assembling);
    processes_.describe(lines_, assembler);
    Calls calls(lines_, processes_, assembler, origin_);
    compute_end_.assign(lines_.threads.size(), INT64_MIN);
    // One accelerator per process that computes, numbered in the order of their pids: that of the ranks.
    lines_.events.for_each([&](const Event& event) {
        if (computes_[event.name]) {
            devices_.try_emplace(processes_.pid(event.thread));
        }
    });
    int64_t number = 0;
    for (auto& [pid, device] : devices_) {
        device = number++;
    }
    for (const Step& step : steps_) {
        const Event& event = lines_.events[step.event];
        switch (step.what) {
            case Step::call: calls.feed(event); break;
            case Step::span_begin:
                if (kept(lines_.names[event.name])) {
                    feed_span(assembler, writer, event, true);
                } else {
                    ++spans_dropped_;
                }
                break;
            case Step::span_end:
            case Step::empty_span_end: feed_span(assembler, writer, event, false); break;
        }
    }
    assembler.finish();
    count(writer, calls);
}

void Import::count(LogWriter& writer, const Calls& calls) const {
    writer.count(Count::events, lines_.events.size() - duplicates_);
    writer.count(Count::duplicates_dropped, duplicates_);
    writer.count(Count::malformed_lines, lines_.malformed, lines_.first_malformed);
    writer.count(Count::aggregated_events, lines_.aggregated, lines_.first_aggregated);
    writer.count(Count::inputs_cut, lines_.truncated_files);
    writer.count(Count::hash_collisions, lines_.hash_collisions);
    writer.count(Count::names_missing, lines_.names_missing);
    writer.count(Count::spans_dropped, spans_dropped_);
    writer.count(Count::nested_compute_spans, nested_computes_);
    if (devices_.empty() && has_host_compute_) {
        writer.count(Count::no_accelerator_spans, 1);
    }
    processes_.count(writer);
    calls.count(writer);
}

void Import::run(const std::filesystem::path& output) {
    read();
    refuse_what_holds_no_calls();
    choose_compute_spans();
    origin_ = INT64_MAX;
    lines_.events.for_each([&](const Event& event) { origin_ = std::min(origin_, event.begin); });
    order();
    processes_.infer(lines_, [&](auto&& visit) {
        for (const Step& step : steps_) {
            if (step.what == Step::call) {
                visit(lines_.events[step.event]);
            }
        }
    });

    Header header;
    header.time_unit_ns = options_.time_unit_ns ? options_.time_unit_ns : 1000;
    header.origin_unix_ns = origin_ * 1000;
    header.clock = "realtime";
    header.source = "dftracer";
    header.host = processes_.first_host(lines_);
    if (!lines_.starts.empty()) {
        header.command = std::string(lines_.strings[lines_.starts.front().command]);
    }
    if (lines_.version) {
        write_fact(header, fact::dftracer_version, static_cast<int64_t>(lines_.version));
    }
    LogWriter writer(output, header, options_.writer);
    try {
        feed(writer);
        writer.finish();
    } catch (...) {
        writer.discard();
        throw;
    }
}

void import(std::span<const std::filesystem::path> inputs, const std::filesystem::path& output,
            const ImportOptions& options) {
    Import(inputs, options).run(output);
}

}  // namespace

extern const Importer import_dftracer;
const Importer import_dftracer{"dftracer", "DFTracer traces (.pfw, .pfw.gz); all files of a run at once", sniff,
                               import};

}  // namespace reprise
