// SPDX-License-Identifier: MIT
#include "transform/copies.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <vector>

#include "formats/oplog/header_facts.h"
#include "formats/support/error.h"
#include "transform/copies_steps.h"
#include "transform/shares.h"

namespace reprise {
namespace {

/// Tells processes of the copies apart where they are shown.
constexpr int32_t kPidsPerCopy = 10'000'000;

class Variant {
public:
    Variant(const LogReader& log, const std::filesystem::path& output, const VariantOptions& options)
        : log_(log),
          tables_(log.tables()),
          options_(options),
          copies_(options.copies.count),
          steps_(log),
          shares_(log, copies_),
          writer_(output, header(log, options), scratch_options()) {}

    void run() {
        try {
            check();
            tables();
            for (copy_ = 0; copy_ < copies_; ++copy_) {
                draw();
                for (TaskId task = 1; task < tables_.tasks.size(); ++task) {
                    ops(task);
                }
            }
            count();
            writer_.finish();
        } catch (...) {
            writer_.discard();
            throw;
        }
    }

private:
    static Header header(const LogReader& log, const VariantOptions& options) {
        Header out = log.header();
        if (options.model) {
            write_fact(out, fact::gpu_model, options.model->spec);
        }
        if (options.copies.count != 1) {
            write_fact(
                out, fact::gpus,
                std::to_string(options.copies.count) + (options.copies.in_step ? " in step" : " free of each other"));
        }
        return out;
    }
    static WriterOptions scratch_options() {
        WriterOptions out;
        out.level = 1;
        out.sync = false;
        return out;
    }

    void check() const {
        constexpr uint64_t kMostRows = UINT32_MAX / 2;
        const uint64_t most = std::max<uint64_t>({tables_.files.size(), tables_.handles.size(), tables_.tasks.size(),
                                                  shares_.map_limit(), shares_.request_limit()});
        if (most * copies_ > kMostRows) {
            throw usage_error("--gpus: " + std::to_string(copies_) + " copies of this log are more than a log holds",
                              "ask for fewer");
        }
        if (options_.model && steps_.steps().empty()) {
            throw bad_input(log_.path().string(), "the log has no accelerator whose step times --gpu-model could set",
                            "record with marks of the accelerator, or graft a profile onto it");
        }
    }

    template <class Id>
    Id moved(Id id, size_t rows) const {
        return id == 0 ? 0 : id + copy_ * static_cast<Id>(rows - 1);
    }
    TaskId task(TaskId id) const { return moved(id, tables_.tasks.size()); }
    HandleId handle(HandleId id) const { return moved(id, tables_.handles.size()); }
    ProcessId process(ProcessId id) const { return moved(id, tables_.processes.size()); }
    FileId file(FileId id) const {
        if (copy_ == 0 || id >= tables_.files.size()) {
            return id;
        }
        return shares_.own(id) ? own_files_[copy_ - 1][id] : shares_.rotated(id, copy_);
    }

    void tables() {
        strings_.resize(tables_.strings.size());
        for (StringId id = 1; id < strings_.size(); ++id) {
            strings_[id] = writer_.intern(tables_.strings[id]);
        }
        for (copy_ = 0; copy_ < copies_; ++copy_) {
            if (copy_ > 0) {
                own_files_.emplace_back(tables_.files.size());
            }
            for (FileId id = 1; id < tables_.files.size(); ++id) {
                FileRow row = tables_.files[id];
                row.target = text(row.target);
                if (copy_ == 0) {
                    row.path = text(row.path);
                    writer_.add_file(row);
                } else if (shares_.own(id)) {
                    row.path = writer_.intern(shares_.own_path(id, copy_));
                    row.inode = 0;
                    own_files_.back()[id] = writer_.add_file(row);
                }
            }
            for (HandleId id = 1; id < tables_.handles.size(); ++id) {
                HandleRow row = tables_.handles[id];
                row.file = file(row.file);
                row.process = process(row.process);
                writer_.add_handle(row);
            }
            for (ProcessId id = 1; id < tables_.processes.size(); ++id) {
                ProcessRow row = tables_.processes[id];
                row.command = text(row.command);
                row.host = text(row.host);
                row.parent = process(row.parent);
                row.pid = static_cast<int32_t>(static_cast<uint32_t>(row.pid) + copy_ * uint32_t{kPidsPerCopy});
                writer_.add_process(row);
            }
            for (TaskId id = 1; id < tables_.tasks.size(); ++id) {
                TaskRow row = tables_.tasks[id];
                row.name = text(row.name);
                row.process = process(row.process);
                writer_.add_task(row);
            }
        }
    }

    StringId text(StringId id) const { return id < strings_.size() ? strings_[id] : StringId{0}; }

    /// Busy times of this copy's steps.
    void draw() {
        if (!options_.model) {
            return;
        }
        const auto& steps = steps_.steps();
        std::vector<int64_t> recorded;
        for (const AcceleratorSteps::Step& step : steps) {
            if (step.complete) {
                recorded.push_back(step.busy);
            }
        }
        std::map<std::pair<ProcessId, int64_t>, StepDraws> of_devices;
        busy_.clear();
        for (const AcceleratorSteps::Step& step : steps) {
            const uint64_t number = (uint64_t{copy_} << 32 | step.process) * 64 + static_cast<uint64_t>(step.device);
            auto& draw =
                of_devices.try_emplace({step.process, step.device}, *options_.model, number, recorded).first->second;
            busy_.push_back(step.complete ? draw.next() : step.busy);
        }
        for (const auto& [device, draw] : of_devices) {
            negative_draws_ += draw.negative();
        }
    }

    int64_t device(int64_t id) const {
        if (copy_ == 0) {
            return id;
        }
        const auto& all = steps_.devices();
        const auto place = std::lower_bound(all.begin(), all.end(), id) - all.begin();
        const uint64_t first = static_cast<uint64_t>(all.back()) + 1 + uint64_t{copy_ - 1} * all.size();
        return static_cast<int64_t>(first + static_cast<uint64_t>(place));
    }

    /// Number of an op of the recording in the copies, which have more ops.
    uint64_t number(TaskId task, uint64_t op) const { return op + before(task, op); }
    uint64_t before(TaskId task, uint64_t op) const {
        if (!barriers() || task >= tables_.tasks.size()) {
            return 0;
        }
        const auto& waits = steps_.last_waits(task);
        return static_cast<uint64_t>(std::lower_bound(waits.begin(), waits.end(), op) - waits.begin());
    }
    bool barriers() const { return copies_ > 1 && options_.copies.in_step; }

    void ops(TaskId recorded) {
        size_t submissions = 0, waits = 0;
        const auto& last_waits = steps_.last_waits(recorded);
        log_.for_each(recorded, [&](const Op& from, uint64_t at) {
            Op op = from;
            if (op.kind == OpKind::gpu_submit) {
                submitted(recorded, op, submissions++);
            }
            change(op);
            edges_.assign(op.edges.begin(), op.edges.end());
            for (Edge& edge : edges_) {
                edge.op = number(edge.task, edge.op);
                edge.task = edge.task < tables_.tasks.size() ? task(edge.task) : 0;
            }
            op.edges = edges_;
            writer_.append(task(recorded), op);
            if (barriers() && waits < last_waits.size() && last_waits[waits] == at) {
                barrier(recorded, at, end_of(from));
                ++waits;
            }
        });
    }

    static int64_t end_of(const Op& op) {
        int64_t end = 0;
        return __builtin_add_overflow(op.begin, op.duration, &end) ? INT64_MAX - 1 : end;
    }

    /// The first copy waits for all others' devices, the others for it.
    void barrier(TaskId recorded, uint64_t wait, int64_t end) {
        const uint64_t own = number(recorded, wait);
        edges_.clear();
        if (copy_ == 0) {
            for (uint32_t other = 1; other < copies_; ++other) {
                const auto task = static_cast<TaskId>(recorded + other * (tables_.tasks.size() - 1));
                edges_.push_back({task, EdgeKind::message, 100, own});
            }
        } else {
            edges_.push_back({recorded, EdgeKind::message, 100, own + 1});
        }
        Op op;
        op.kind = OpKind::wait;
        op.begin = end;
        op.duration = copy_ == 0 ? 0 : 1;
        op.edges = edges_;
        writer_.append(task(recorded), op);
        barriers_made_ += copy_ == 0 ? 1 : 0;
    }

    void submitted(TaskId recorded, Op& op, size_t submission) {
        op.size = std::max<int64_t>(op.size, 0);
        if (!options_.model) {
            return;
        }
        // A step's pieces keep their shares of it.
        const uint32_t step = steps_.of_submissions(recorded)[submission];
        const int64_t all = steps_.steps()[step].busy;
        if (all > 0) {
            op.size = static_cast<int64_t>(static_cast<double>(op.size) / static_cast<double>(all) *
                                           static_cast<double>(busy_[step]));
        } else if (steps_.steps()[step].complete) {
            op.size = busy_[step];
        }
    }

    void change(Op& op) {
        op.text = text(op.text);
        if (op.kind == OpKind::gpu_submit || op.kind == OpKind::gpu_wait) {
            op.arg = device(op.arg);
            return;
        }
        if (copy_ == 0) {
            return;
        }
        const FileId opened = op.handle < tables_.handles.size() ? tables_.handles[op.handle].file : 0;
        data(op, opened);
        op.handle = op.handle < tables_.handles.size() ? handle(op.handle) : 0;
        op.handle2 = op.handle2 < tables_.handles.size() ? handle(op.handle2) : 0;
        op.file = file(op.file);
        op.file2 = file(op.file2);
        op.map = op.map == 0 ? 0 : op.map + copy_ * (shares_.map_limit() - 1);
        op.request = op.request == 0 ? 0 : op.request + copy_ * (shares_.request_limit() - 1);
        op.peer = op.peer < tables_.tasks.size() ? task(op.peer) : 0;
    }

    /// Reads of dataset files, for the file or the part of it that is this copy's. At explicit offsets, as the position
    /// would follow what the reads before got.
    void data(Op& op, FileId opened) {
        const bool reads = op.kind == OpKind::read || op.kind == OpKind::pread || op.kind == OpKind::readv ||
                           op.kind == OpKind::preadv;
        if (op.kind == OpKind::touch) {
            op.offset = shares_.offset(shares_.file_of_map(op.map), copy_, op.offset, op.size);
            return;
        }
        if (op.kind == OpKind::uring_complete || op.kind == OpKind::aio_complete) {
            const Shares::Request* const request = shares_.request(op.request);
            if (request != nullptr && shares_.moves(request->file) && op.result >= 0) {
                const int64_t at = shares_.offset(request->file, copy_, request->offset, request->size);
                op.result = shares_.bytes(request->file, copy_, at, request->size);
            }
            return;
        }
        if (!shares_.moves(opened)) {
            return;
        }
        switch (op.kind) {
            case OpKind::lseek:
                if (op.result >= 0) {
                    op.offset = op.result;
                    op.arg = SEEK_SET;
                }
                return;
            case OpKind::uring_submit:
            case OpKind::aio_submit:
            case OpKind::readahead:
            case OpKind::fadvise: op.offset = shares_.offset(opened, copy_, op.offset, op.size); return;
            default: break;
        }
        if (!reads || op.result < 0) {
            return;
        }
        op.kind = op.kind == OpKind::read ? OpKind::pread : op.kind == OpKind::readv ? OpKind::preadv : op.kind;
        op.offset = shares_.offset(opened, copy_, op.offset, op.size);
        op.result = shares_.bytes(opened, copy_, op.offset, op.size);
    }

    void count() {
        for (const Counter& counter : tables_.counters) {
            writer_.count(counter);
        }
        writer_.count(Count::gpu_model_below_zero, negative_draws_);
        writer_.count(Count::accelerator_work_negative, steps_.negative());
        if (copies_ == 1) {
            return;
        }
        writer_.count(Count::dataset_files_rotated, shares_.files_rotated());
        writer_.count(Count::dataset_files_shifted, shares_.files_shifted());
        writer_.count(Count::dataset_files_shared, shares_.files_shared());
        writer_.count(Count::written_files_to_prepare, shares_.files_written());
        writer_.count(Count::steps_in_step, barriers_made_);
        if (barriers() && barriers_made_ == 0) {
            writer_.count(Count::steps_unknown);
        }
    }

    const LogReader& log_;
    const Tables& tables_;
    const VariantOptions& options_;
    const uint32_t copies_;
    const AcceleratorSteps steps_;
    const Shares shares_;
    LogWriter writer_;
    uint32_t copy_ = 0;
    std::vector<StringId> strings_;
    std::vector<std::vector<FileId>> own_files_;  // by copy - 1, by FileId
    std::vector<int64_t> busy_;                   // ns, by step
    std::vector<Edge> edges_;                     // scratch
    uint64_t negative_draws_ = 0, barriers_made_ = 0;
};

}  // namespace

GpuCopies GpuCopies::parse(std::string_view text) {
    GpuCopies copies;
    std::string_view number = text;
    constexpr std::string_view kFree = ":free";
    if (number.ends_with(kFree)) {
        copies.in_step = false;
        number.remove_suffix(kFree.size());
    }
    const auto [rest, error] = std::from_chars(number.data(), number.data() + number.size(), copies.count);
    if (error != std::errc() || rest != number.data() + number.size() || copies.count == 0 || copies.count > kMost) {
        throw usage_error("--gpus is '" + escape_line(text) + "'",
                          "expected how many copies of the recorded job to run, from 1 to " + std::to_string(kMost) +
                              ", e.g. 8, or 8:free for copies that do not wait for each other after each step");
    }
    return copies;
}

void write_variant(const LogReader& log, const std::filesystem::path& output, const VariantOptions& options) {
    Variant(log, output, options).run();
}

}  // namespace reprise
