// SPDX-License-Identifier: MIT
// fio's iolog version 3, one file per task, and a job file that replays them together (fio 3.33, read_iolog).
//
// fio's actions are add, open, close, read, write, sync and datasync of named files; anything else is counted. What fio
// needs beyond that was learnt by running 3.33: times are microseconds; a delay is the difference to the line before,
// taken only where that one is not 0, so times begin at 1; a file must be added and opened before use and not opened
// twice; a file named by a path that `directory=` changed is not found again, so names are relative to where fio is
// started, and those of before the first rename (FioNames); names end at white space and after 256 bytes; a job without
// data is refused; direct= is of a whole job, so what a task does with O_DIRECT and without are two.
#include <algorithm>
#include <limits>
#include <optional>
#include <system_error>
#include <unordered_map>

#include "formats/export/exporter.h"
#include "formats/export/fio_names.h"
#include "formats/export/fio_order.h"
#include "formats/oplog/async_request.h"
#include "formats/oplog/open_flags.h"
#include "formats/support/error.h"
#include "formats/support/escape.h"
#include "formats/support/new_file.h"
#include "formats/support/text_output.h"

namespace reprise {
namespace {

enum class Action { none, open, close, duplicate, read, write, sync, datasync };

Action async_action(const Op& op) {
    using Does = AsyncRequest::Does;
    switch (async_request(op).does) {
        case Does::read: return Action::read;
        case Does::write: return Action::write;
        case Does::sync: return Action::sync;
        case Does::sync_data: return Action::datasync;
        case Does::nothing:
        case Does::sync_range:
        case Does::allocate:
        case Does::advise:
        case Does::open:
        case Does::close:
        case Does::stat:
        case Does::make_name:
        case Does::end_name:
        case Does::splice:
        case Does::advise_memory:
        case Does::other: break;
    }
    return Action::none;
}

Action action_of(const Op& op) {
    switch (op.kind) {
        case OpKind::open: return Action::open;
        case OpKind::close: return Action::close;
        case OpKind::dup: return Action::duplicate;
        case OpKind::read:
        case OpKind::pread:
        case OpKind::readv:
        case OpKind::preadv: return Action::read;
        case OpKind::write:
        case OpKind::pwrite:
        case OpKind::writev:
        case OpKind::pwritev: return Action::write;
        case OpKind::fsync: return Action::sync;
        case OpKind::fdatasync: return Action::datasync;
        case OpKind::uring_submit:
        case OpKind::aio_submit: return async_action(op);
        case OpKind::fcntl:
        case OpKind::lseek:
        case OpKind::stat:
        case OpKind::fstat:
        case OpKind::ioctl:
        case OpKind::statx:
        case OpKind::access:
        case OpKind::getdents:
        case OpKind::readlink:
        case OpKind::mkdir:
        case OpKind::rmdir:
        case OpKind::unlink:
        case OpKind::rename:
        case OpKind::link:
        case OpKind::symlink:
        case OpKind::truncate:
        case OpKind::ftruncate:
        case OpKind::fallocate:
        case OpKind::sync_file_range:
        case OpKind::syncfs:
        case OpKind::fadvise:
        case OpKind::readahead:
        case OpKind::chmod:
        case OpKind::chown:
        case OpKind::utimens:
        case OpKind::mmap:
        case OpKind::munmap:
        case OpKind::mremap:
        case OpKind::madvise:
        case OpKind::msync:
        case OpKind::mprotect:
        case OpKind::touch:
        case OpKind::sendfile:
        case OpKind::copy_file_range:
        case OpKind::splice:
        case OpKind::getxattr:
        case OpKind::setxattr:
        case OpKind::listxattr:
        case OpKind::removexattr:
        case OpKind::flock:
        case OpKind::statfs:
        case OpKind::uring_complete:
        case OpKind::uring_enter:
        case OpKind::aio_reap:
        case OpKind::aio_complete:
        case OpKind::compute:
        case OpKind::wait:
        case OpKind::idle:
        case OpKind::pipe:
        case OpKind::send:
        case OpKind::receive:
        case OpKind::spawn:
        case OpKind::join:
        case OpKind::exec:
        case OpKind::exit:
        case OpKind::gpu_submit:
        case OpKind::gpu_wait:
        case OpKind::marker: return Action::none;
    }
    return Action::none;
}

// One task's iolog. fio keeps one descriptor per name and job, so instances of one file are counted.
class Job {
public:
    Job(const std::filesystem::path& path, TaskId task, const Tables& tables, FioNames& names, FioOrder& order,
        ExportReport& report, int64_t origin)
        : out_(path), task_(task), tables_(tables), names_(names), order_(order), report_(report), origin_(origin) {
        out_.put("fio version 3 iolog\n");
    }

    void op(const Op& op) {
        const Action action = action_of(op);
        if (action == Action::none) {
            if (info(op.kind).is(Trait::io)) {
                report_.count(Count::no_fio_action, 1, info(op.kind).name);
            }
            return;
        }
        const FileId file = tables_.file_of(op);
        if (file == 0 || file >= tables_.files.size() || !has_data(tables_.files[file])) {
            report_.count(Count::not_a_regular_file);
            return;
        }
        if (op.result < 0) {
            report_.count(Count::failed_calls);
            return;
        }
        const uint32_t name = names_.of(op);
        State& state = files_[name];
        switch (action) {
            case Action::none: return;
            case Action::open:
                ++state.instances;
                ensure_open(state, name, op.begin);
                break;
            case Action::duplicate: ++state.instances; break;
            case Action::close:
                if (state.instances > 0) {
                    --state.instances;
                }
                if (state.instances == 0 && state.open) {
                    line(op.begin, name, "close");
                    state.open = false;
                }
                break;
            case Action::read: data(state, name, op, "read"); return;
            case Action::write: data(state, name, op, "write"); return;
            case Action::sync: use(state, name, op, "sync", 0); break;
            case Action::datasync: use(state, name, op, "datasync", 0); break;
        }
        ++ops_;
    }

    uint64_t ops() const { return ops_; }
    bool has_data() const { return data_lines_ > 0; }
    void finish() { out_.finish(); }

private:
    struct State {
        bool added = false, open = false;
        uint64_t instances = 0;
    };

    static bool has_data(const FileRow& file) {
        return file.type == FileType::regular || file.type == FileType::unknown;
    }

    void stamp(int64_t begin) {
        append_number(out_.text, (begin > origin_ ? (begin - origin_) / 1000 : 0) + 1);
        out_.text += ' ';
    }
    void line(int64_t begin, uint32_t name, std::string_view action) {
        stamp(begin);
        out_.text += names_.text(name);
        out_.text += ' ';
        out_.text += action;
        out_.text += '\n';
        out_.drain();
    }
    void ensure_open(State& state, uint32_t name, int64_t begin) {
        if (!state.added) {
            line(first_line_ ? origin_ : begin, name, "add");
        }
        first_line_ = false;
        state.added = true;
        if (!state.open) {
            line(begin, name, "open");
        }
        state.open = true;
    }
    void use(State& state, uint32_t name, const Op& op, std::string_view action, int64_t size) {
        if (!state.open) {
            ++state.instances;
            report_.count(Count::opens_synthesised);
            ensure_open(state, name, op.begin);
        }
        stamp(op.begin);
        std::string& text = out_.text;
        text += names_.text(name);
        text += ' ';
        text += action;
        text += ' ';
        append_number(text, op.offset > 0 ? op.offset : 0);
        text += ' ';
        append_number(text, size);
        text += '\n';
        out_.drain();
    }
    void data(State& state, uint32_t name, const Op& op, std::string_view action) {
        const bool async = info(op.kind).is(Trait::async);
        const int64_t size = async ? op.size : op.result;
        if (size <= 0 || size > 0xffffffffLL) {
            report_.count(Count::no_bytes);
            return;
        }
        if (async) {
            report_.count(Count::asynchronous);
        }
        use(state, name, op, action, size);
        order_.see(name, task_, action == "write", op.begin);
        ++data_lines_;
        ++ops_;
    }

    TextOutput out_;
    const TaskId task_;
    const Tables& tables_;
    FioNames& names_;
    FioOrder& order_;
    ExportReport& report_;
    const int64_t origin_;
    bool first_line_ = true;
    uint64_t ops_ = 0, data_lines_ = 0;
    std::unordered_map<uint32_t, State> files_;  // by name
};

// OUT, OUT.1, OUT/task-1.iolog: where the log of a task goes.
struct Places {
    std::filesystem::path output;
    bool folder = false, single = false;

    std::filesystem::path log(TaskId task, bool direct) const {
        const std::string which = direct ? ".direct" : "";
        if (folder) {
            return output / ("task-" + std::to_string(task) + which + ".iolog");
        }
        return output.string() + (single ? "" : "." + std::to_string(task)) + which;
    }
    std::filesystem::path job_file() const {
        return folder ? output / "replay.fio" : std::filesystem::path(output.string() + ".fio");
    }
};

/// A section of the job file.
struct Section {
    TaskId task = 0;
    bool direct = false;  // its files were opened with O_DIRECT
};

/// Where OUT is a file that the export would not write: names are made of it.
void refuse_a_file(const Places& places) {
    std::error_code ignored;
    const std::filesystem::file_status there = std::filesystem::status(places.output, ignored);
    const bool regular = std::filesystem::is_regular_file(there);
    if (places.folder || !std::filesystem::exists(there) || (regular && places.single)) {
        return;
    }
    const std::string name = escape_line(places.output.string());
    throw usage_error(name + (regular ? " is a file" : " is a device, pipe or socket") +
                          "; fio needs several: -o NAME writes the job file NAME.fio and iologs NAME.1, NAME.2, ...",
                      "choose another name, or a directory: -o NAME/");
}

/// Before anything is written: the folder is there, and no file of an earlier export is in the way. `direct`: something
/// was opened with O_DIRECT.
void make_places(const Places& places, std::span<const TaskId> tasks, bool direct, const ExportOptions& options) {
    std::error_code error, ignored;
    refuse_a_file(places);
    if (places.folder) {
        std::filesystem::create_directories(places.output, error);
        const std::string folder = escape_line(places.output.string());
        if (error == std::errc::not_a_directory || error == std::errc::file_exists) {
            throw usage_error(folder + " cannot be made: there is a file of that name",
                              "choose another directory with -o");
        }
        if (!std::filesystem::is_directory(places.output, ignored)) {
            throw machine_error(folder + " cannot be made: " + error.message(),
                                "choose a directory that this user may write to");
        }
    }
    check_written(places.job_file(), options);
    for (const TaskId task : tasks) {
        check_written(places.log(task, false), options);
        if (direct) {
            check_written(places.log(task, true), options);
        }
    }
}

void write_job_file(const Places& places, std::span<const Section> sections, const Tables& tables,
                    const FioNames& names, ExportReport& report) {
    TextOutput out(places.job_file());
    std::string& text = out.text;
    text +=
        "; Replays the iologs beside this file with fio 3.33, one job per recorded task, at the recorded times.\n"
        "; Files must exist: prepare a root first, with the same --only and --not as this export, then\n"
        ";   reprise prepare LOG --root ROOT\n"
        ";   cd ROOT\n";
    for (const std::string& folder : names.missing()) {
        text += ";   mkdir -p -- " + shell_word(folder) + "\n";  // the job made it, and fio does not
        out.drain();
    }
    text += ";   export IOLOGS=<folder of this file>\n;   fio $IOLOGS/" + places.job_file().filename().string() +
            "\n"
            "; Add --replay_no_stall=1 for as fast as possible.\n";
    for (const std::string& note : report.notes) {
        text += "; " + note + ".\n";
    }
    text += names.renames() ? "; fio renames nothing: files keep the names that they had first.\n" : "";
    for (const auto& [name, path] : names.replaced()) {
        text += "; " + name + " stands for ";
        append_quoted(text, path);
        text += ", a name fio cannot read: link it\n";
    }
    text += "; What is in memory stays there, as in the job; for a cold start drop the caches before.\n";
    text += "[global]\nioengine=psync\nthread=1\ninvalidate=0\n";
    for (size_t i = 0; i < sections.size(); ++i) {
        const auto [task, direct] = sections[i];
        const bool second = i > 0 && sections[i - 1].task == task;
        const TaskRow& row = tables.tasks[task];
        text += "\n; task " + std::to_string(task) + ", tid " + std::to_string(row.tid) + ' ';
        append_escaped(text, tables.strings[row.name]);
        text += second ? ": its files with O_DIRECT, at the same time as the others and not in turn with them\n" : "\n";
        text += "[task-" + std::to_string(task) + (second ? "-direct" : "") + "]\nread_iolog=${IOLOGS}/" +
                places.log(task, direct).filename().string() + (direct ? "\ndirect=1\n" : "\n");
        out.drain();
    }
    out.finish();
    report.files.push_back(places.job_file());
}

bool is_direct(const Tables& tables, const Op& op) {
    return op.handle < tables.handles.size() && (tables.handles[op.handle].flags & kOpenDirect) != 0;
}

[[noreturn]] void refuse_empty(const LogReader& log, const ExportReport& report) {
    std::string others;  // that move data
    for (const OpKind kind : {OpKind::mmap, OpKind::touch, OpKind::copy_file_range, OpKind::sendfile, OpKind::splice}) {
        const auto found = std::find_if(report.counters.begin(), report.counters.end(), [&](const Counter& counter) {
            return counter.name == "no_fio_action." + std::string(info(kind).name);
        });
        if (found != report.counters.end()) {
            others += (others.empty() ? "; fio has no " : ", ") + std::string(info(kind).name) + " (" +
                      std::to_string(found->value) + ")";
        }
    }
    const std::string excluded =
        report.left_out == 0 ? "" : "; " + std::to_string(report.left_out) + " ops are excluded";
    throw bad_input(log.path().string(),
                    "nothing that fio can do: no call reads or writes data of a regular file" + others + excluded,
                    (excluded.empty() ? "" : "select others with --only; ") +
                        std::string("what reads by mappings or copies within the kernel goes to `reprise replay`"));
}

ExportReport write(const LogReader& log, const std::filesystem::path& output, const ExportOptions& options) {
    if (output == "-") {
        throw usage_error("fio needs files: -o cannot be -", "name a file or a folder");
    }
    const Tables& tables = log.tables();
    const OpSelector selector(log, options.filter);
    std::vector<TaskId> tasks = options.tasks;
    if (tasks.empty()) {
        for (TaskId task = 1; task < tables.tasks.size(); ++task) {
            if (log.op_count(task) > 0) {
                tasks.push_back(task);
            }
        }
    }
    int64_t origin = std::numeric_limits<int64_t>::max();
    for (const TaskId task : tasks) {
        for (const BlockInfo& block : log.blocks_of(task)) {
            origin = std::min(origin, block.begin);
        }
    }

    std::error_code ignored;
    const bool slash = output.string().ends_with('/');
    const Places places{output, slash || std::filesystem::is_directory(output, ignored), tasks.size() == 1};
    const bool direct = std::any_of(tables.handles.begin(), tables.handles.end(),
                                    [](const HandleRow& row) { return (row.flags & kOpenDirect) != 0; });
    make_places(places, tasks, direct, options);
    ExportReport report;
    FioNames names(log);
    FioOrder order;
    std::vector<Section> written;
    uint64_t seen = 0;
    for (const TaskId task : tasks) {
        Job buffered(places.log(task, false), task, tables, names, order, report, origin);
        std::optional<Job> past;  // the page cache
        log.for_each(task, [&](const Op& op, uint64_t) {
            if (selector.keeps(op)) {
                const bool directly = is_direct(tables, op);
                if (directly && !past) {
                    past.emplace(places.log(task, true), task, tables, names, order, report, origin);
                }
                (directly ? *past : buffered).op(op);
            } else {
                ++report.left_out;
            }
            if (options.progress) {
                options.progress(++seen);
            }
        });
        const size_t before = written.size();
        for (Job* const job : {&buffered, past ? &*past : nullptr}) {
            if (job == nullptr || !job->has_data()) {
                continue;
            }
            job->finish();
            report.ops += job->ops();
            written.push_back({task, job != &buffered});
            report.files.push_back(places.log(task, job != &buffered));
        }
        report.count(Count::tasks_without_data, written.size() == before ? 1 : 0);
    }
    if (written.empty()) {
        refuse_empty(log, report);
    }
    report.count(Count::names_replaced, names.replaced().size());
    if (std::string note = order.note(names); !note.empty()) {
        report.notes.push_back(std::move(note));
    }
    write_job_file(places, written, tables, names, report);
    return report;
}

}  // namespace

extern const Exporter export_fio;
const Exporter export_fio{"fio", "fio iolog version 3, one per task, and a job file (OUT/ makes a folder)", write, true,
                          "iolog"};

}  // namespace reprise
