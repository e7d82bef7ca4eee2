// SPDX-License-Identifier: MIT
// strace -f output to op logs: one or several files (-ff), with or without -T, -y, -yy, any absolute clock.
#include <fcntl.h>
#include <sys/wait.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <memory>
#include <queue>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "formats/import/strace/strace_import.h"
#include "formats/oplog/kernel_names.h"
#include "formats/oplog/range_lock.h"
#include "formats/oplog/syscalls.h"
#include "formats/support/error.h"

namespace reprise {
namespace {

constexpr int64_t kDay = 86400LL * 1'000'000'000;
constexpr int64_t kInterrupted = -4;  // EINTR
constexpr size_t kMostDroppedNames = 256;

bool equal_bytes(const std::filesystem::path& a, const std::filesystem::path& b) {
    constexpr size_t kPiece = 1 << 16;
    std::ifstream first(a, std::ios::binary), second(b, std::ios::binary);
    std::string of_first(kPiece, '\0'), of_second(kPiece, '\0');
    while (first && second) {
        first.read(of_first.data(), kPiece);
        second.read(of_second.data(), kPiece);
        const auto n = static_cast<size_t>(first.gcount());
        if (first.gcount() != second.gcount() ||
            std::string_view(of_first).substr(0, n) != std::string_view(of_second).substr(0, n)) {
            return false;
        }
    }
    return !first && !second && !first.bad() && !second.bad();
}

// The op of a call as far as strace shows it: of requests of libaio only that the call was made, or waited.
OpKind op_of(const Syscall& row) {
    const bool unseen = row.action == CallAction::aio_submit || row.action == CallAction::aio_reap;
    return unseen ? OpKind::wait : row.kind;
}

// "trace.1234", "trace.1234.gz": the number -ff appends.
int32_t tid_of_name(const std::filesystem::path& path) {
    std::string name = path.filename().string();
    for (const std::string_view packed : {".gz", ".zst"}) {
        if (name.ends_with(packed)) {
            name.resize(name.size() - packed.size());
        }
    }
    const size_t point = name.rfind('.');
    if (point == std::string::npos) {
        return -1;
    }
    bool too_large = false;
    int64_t value = 0;
    if (!parse_strace_number(std::string_view(name).substr(point + 1), value, too_large)) {
        return -1;
    }
    return value > 0 && value <= INT32_MAX ? static_cast<int32_t>(value) : -1;
}

// Where relative paths start when the recording begins, by the first task's own calls. Empty: unknown.
std::string initial_directory(std::string_view head) {
    StraceStrings strings;
    StraceCall call;
    std::optional<int32_t> first_task;
    while (!head.empty()) {
        const size_t end = std::min(head.find('\n'), head.size());
        const StraceLine line = parse_strace_line(head.substr(0, end));
        head.remove_prefix(std::min(end + 1, head.size()));
        if (line.kind != StraceLine::Kind::call || !parse_strace_call(line.text, call)) {
            continue;
        }
        if (first_task.value_or(line.tid) != line.tid) {
            continue;
        }
        first_task = line.tid;
        const StraceFd fd = parse_strace_fd(call.arg(0));
        if (fd.at_current_directory && !fd.about.empty()) {
            return std::string(strings.plain(fd.about));
        }
        if (call.result_kind != StraceCall::Result::value || call.result < 0) {
            continue;
        }
        if (call.name == "getcwd") {
            return std::string(strings.quoted(call.arg(0)).value_or(std::string_view{}));
        }
        if (call.name == "chdir" || call.name == "fchdir") {
            break;
        }
    }
    return {};
}

// Its calls would all count twice. Two tasks of -ff may well say the same, if they say little.
void refuse_copies(const std::vector<std::filesystem::path>& inputs) {
    std::map<uintmax_t, std::vector<const std::filesystem::path*>> by_size;
    for (const std::filesystem::path& input : inputs) {
        std::error_code unknown;
        const uintmax_t size = std::filesystem::file_size(input, unknown);
        if (unknown || size == 0) {
            continue;
        }
        auto& others = by_size[size];
        for (const std::filesystem::path* const other : others) {
            const bool two_tasks =
                tid_of_name(input) > 0 && tid_of_name(*other) > 0 && tid_of_name(input) != tid_of_name(*other);
            if (!two_tasks && equal_bytes(*other, input)) {
                throw usage_error(escape_line(input.native()) + " is a copy of " + escape_line(other->native()),
                                  "name each log once");
            }
        }
        others.push_back(&input);
    }
}

}  // namespace

StraceImport::StraceImport(std::span<const std::filesystem::path> inputs, const std::filesystem::path& output,
                           const ImportOptions& options)
    : inputs_(inputs.begin(), inputs.end()), options_(options) {
    refuse_copies(inputs_);
    for (size_t i = 0; i < inputs_.size(); ++i) {
        const int32_t tid = tid_of_name(inputs_[i]);
        auto source = std::make_unique<StraceSource>(inputs_[i], tid > 0 ? tid : static_cast<int32_t>(i) + 1, faults_);
        if (source->next()) {
            sources_.push_back(std::move(source));
        }
    }
    if (sources_.empty()) {
        throw bad_input(at(inputs_.empty() ? "" : inputs_.front().string(), 1), "no line is a call as strace writes it",
                        "record with: strace -f -ttt -T -yy -o FILE COMMAND");
    }

    // The first task's number is the least, unless the numbers wrapped; nothing runs before it.
    const auto least = [](const auto& a, const auto& b) { return a->record().tid < b->record().tid; };
    const StraceSource& root = **std::min_element(sources_.begin(), sources_.end(), least);
    for (auto& source : sources_) {
        if (source->clock() != root.clock()) {
            throw bad_input(source->where(), "its time stamps are of another kind than in the other files",
                            "import files of one run together, and only those");
        }
        const bool behind_midnight = source->clock() == StraceLine::Clock::of_day && source.get() != &root &&
                                     source->record().begin < root.record().begin;
        if (behind_midnight) {
            source->add_to_clock(kDay);
        }
    }
    origin_ = INT64_MAX;
    for (const auto& source : sources_) {
        origin_ = std::min(origin_, source->record().begin);
    }

    const std::string head = read_head(root.path(), size_t{2} << 20);
    const StraceLine first = parse_strace_line(std::string_view(head).substr(0, head.find('\n')));
    Header header;
    header.time_unit_ns = options.time_unit_ns ? options.time_unit_ns : first.fraction_digits > 6 ? 1 : 1000;
    if (root.clock() == StraceLine::Clock::unix_time) {
        header.origin_unix_ns = origin_;
    }
    header.clock = "realtime";
    header.source = "strace";
    writer_ = std::make_unique<LogWriter>(output, header, options.writer);
    const std::string directory = initial_directory(head);
    Assembler::Options assembling;
    if (directory.starts_with('/')) {
        assembling.initial_directory = directory;
    }
    assembling.roles = &options_.roles;
    assembler_ = std::make_unique<Assembler>(*writer_, assembling);
}

void StraceImport::run() {
    try {
        // Always the source whose next call takes effect first; the earlier file where they tie.
        using Turn = std::pair<int64_t, size_t>;
        std::priority_queue<Turn, std::vector<Turn>, std::greater<>> turns;
        for (size_t i = 0; i < sources_.size(); ++i) {
            turns.emplace(sources_[i]->effect_time(), i);
        }
        while (!turns.empty()) {
            const size_t i = turns.top().second;
            turns.pop();
            feed(*sources_[i]);
            if (sources_[i]->next()) {
                turns.emplace(sources_[i]->effect_time(), i);
            }
        }
        if (calls_ == 0) {
            throw bad_input(faults_.first_malformed.empty() ? at(inputs_.front().string(), 1) : faults_.first_malformed,
                            "no line is a call as strace writes it",
                            "record with: strace -f -ttt -T -yy -o FILE COMMAND");
        }
        count_faults();
        assembler_->finish();
        writer_->header().command = header_command_;
        writer_->finish();
    } catch (...) {
        writer_->discard();
        throw;
    }
}

int32_t StraceImport::process_of(int32_t tid) const {
    const auto it = thread_group_.find(tid);
    return it == thread_group_.end() ? tid : it->second;
}

int64_t StraceImport::number(std::string_view text) {
    bool too_large = false;
    int64_t value = 0;
    if (!parse_strace_number(text, value, too_large)) {
        return 0;
    }
    numbers_too_large_ += too_large;
    return value;
}

int64_t StraceImport::flags(std::string_view text) {
    bool too_large = false;
    const int64_t value = parse_strace_flags(text, too_large, symbols_unknown_);
    numbers_too_large_ += too_large;
    return value;
}

void StraceImport::drop(std::string_view name) {
    auto it = dropped_.find(name);
    if (it == dropped_.end()) {
        if (dropped_.size() >= kMostDroppedNames) {
            name = "others";
        }
        it = dropped_.try_emplace(std::string(name), 0).first;
    }
    ++it->second;
}

void StraceImport::feed(const StraceSource& source) {
    const StraceRecord& record = source.record();
    strings_.clear();
    tids_seen_.insert(record.tid);
    if (record.text.starts_with("+++ ")) {
        return feed_end(record);
    }
    if (!parse_strace_call(record.text, call_)) {
        if (faults_.malformed++ == 0) {
            faults_.first_malformed = at(source.name(), record.line);
        }
        --faults_.good;
        return;
    }
    if (++calls_ % 65536 == 0 && options_.progress) {
        uint64_t bytes = 0;
        for (const auto& each : sources_) {
            bytes += each->bytes();
        }
        options_.progress(bytes);
    }
    numbers_too_large_ += call_.number_too_large;
    errors_unknown_ += call_.error_unknown;
    const Syscall* row = find_syscall(call_.name);
    if (!row || row->strace == kNotImported ||
        (row->action == CallAction::clone_blocks && !is_clone() && !asks_terminal())) {
        return drop(call_.name);
    }
    feed_call(record, *row);
}

void StraceImport::feed_end(const StraceRecord& record) {
    any_exit_ = true;
    // A number that comes again is another task: forget it.
    const int32_t pid = process_of(record.tid);
    const bool ended_itself = ended_.erase(record.tid) > 0;
    if (!ended_itself) {
        RawCall raw;
        raw.pid = pid;
        raw.tid = record.tid;
        raw.kind = OpKind::exit;
        raw.begin = record.begin - origin_;
        if (record.text.starts_with("+++ exited with ")) {
            any_exited_ = true;
            std::string_view code = record.text.substr(16);
            raw.arg = number(code.substr(0, code.find(' ')));
        } else if (record.text.starts_with("+++ killed by ")) {
            const std::string_view name = record.text.substr(14);
            raw.arg = 128 + symbol_value(name.substr(0, name.find(' '))).value_or(0);
            raw.result = kInterrupted;
        }
        assembler_->call(raw);
    }
    thread_group_.erase(record.tid);
}

void StraceImport::feed_call(const StraceRecord& record, const Syscall& row) {
    RawCall raw;
    raw.tid = record.tid;
    raw.pid = process_of(record.tid);
    raw.kind = op_of(row);
    any_exit_ |= raw.kind == OpKind::exit;
    any_exit_call_ |= raw.kind == OpKind::exit;
    any_exec_ |= row.action == CallAction::exec;
    any_map_ |= raw.kind == OpKind::mmap;
    any_sync_ |= info(raw.kind).is(Trait::syncs);
    if (!any_exit_) {
        processes_seen_.insert(raw.pid);
    }
    raw.begin = record.begin - origin_;
    raw.result = call_.result;
    raw.flags = row.flags;
    raw.arg = row.arg;
    if (call_.duration) {
        raw.duration = *call_.duration;
    } else if (record.joined_at >= 0) {
        raw.duration = std::max<int64_t>(record.joined_at - record.begin, 0);
    } else if (call_.result_kind == StraceCall::Result::value) {
        ++durations_unknown_;
    }

    if (call_.result_kind != StraceCall::Result::value) {
        const bool frees = raw.kind == OpKind::close || raw.kind == OpKind::munmap;
        if (raw.kind != OpKind::exit && raw.kind != OpKind::wait && !frees) {
            // Nothing was done: the kernel asks for the call again, or its task was killed. It took its time, though.
            const bool again = call_.result_kind == StraceCall::Result::restarted;
            writer_->count(again ? Count::calls_restarted : Count::calls_cut);
            raw.kind = OpKind::wait;
            raw.arg = 0;
            raw.flags = 0;
            raw.result = kInterrupted;
            assembler_->call(raw);
            return;
        }
        raw.result = raw.kind == OpKind::wait ? kInterrupted : 0;
    }
    if (!fill(row, raw)) {
        writer_->count(Count::calls_with_unreadable_paths);
        return;
    }
    if (act(row, raw)) {
        assembler_->call(raw);
    }
    if (row.action == CallAction::receive && raw.result >= 0) {
        adopt_received(raw);
    }
    if (row.kind == OpKind::exit) {
        ended_.insert(record.tid);
    }
}

std::string_view StraceImport::about(const StraceFd& fd) {
    const bool is_path = fd.about.starts_with('/') || fd.about.starts_with("\\x2f");  // the latter with -xx
    if (!is_path) {
        return fd.about;
    }
    return strings_.plain(fd.about, fd.deleted ? "(deleted)" : "");
}

void StraceImport::adopt_received(const RawCall& raw) {
    const std::string_view control = strace_field(call_.arg(1), "msg_control");
    if (control.find("SCM_RIGHTS") == std::string_view::npos) {
        return;
    }
    std::string keep;
    each_strace_field(control, "cmsg_data", [&](std::string_view data) {
        for (const StraceFd& fd : descriptors_in(data, keep)) {
            assembler_->adopt(raw.pid, fd.fd, about(fd).starts_with('/') ? HandleKind::file : HandleKind::other, 0,
                              about(fd), raw.tid);
        }
    });
}

void StraceImport::spawned(RawCall& raw) {
    // clone(child_stack=NULL, flags=A|B), clone3({flags=A|B, ...} => {parent_tid=[1]}, 88)
    for (size_t i = 0; i < call_.count; ++i) {
        const std::string_view value = strace_field(call_.args[i], "flags");
        if (!value.empty()) {
            raw.flags |= flags(value);
        }
    }
    if (raw.result <= 0 || raw.result > INT32_MAX) {
        return;
    }
    raw.arg = raw.result;
    const auto child = static_cast<int32_t>(raw.result);
    started_.insert(child);
    ended_.erase(child);
    constexpr int64_t kThread = 0x10000;  // CLONE_THREAD
    if (raw.flags & kThread) {
        thread_group_[child] = raw.pid;
    } else {
        thread_group_.erase(child);
        if (const auto it = directory_.find(raw.tid); it != directory_.end()) {
            directory_[child] = std::string(it->second);
        } else {
            directory_.erase(child);
        }
    }
}

void StraceImport::executed(const Syscall& row, int32_t pid) {
    std::string command;
    std::string_view list = call_.arg(row.nr == SYS_execve ? 1 : 2);
    while (!list.empty()) {
        const size_t quote = list.find('"');
        if (quote == std::string_view::npos) {
            break;
        }
        list.remove_prefix(quote);
        const auto word = strings_.quoted(list);
        if (!word) {
            break;
        }
        command += (command.empty() ? "" : " ") + std::string(*word);
        list.remove_prefix(skip_strace_string(list, 0));
    }
    assembler_->set_command(pid, command);
    if (header_command_.empty()) {
        header_command_ = command;
    }
}

// What the call does besides being an op. False if it is none.
bool StraceImport::act(const Syscall& row, RawCall& raw) {
    const bool done = raw.result >= 0;
    const auto make = [&](HandleKind kind) {
        const StraceFd fd = parse_strace_fd(call_.result_text);
        if (done) {
            assembler_->adopt(raw.pid, fd.fd, kind, raw.flags, about(fd), raw.tid);
        }
        return false;
    };
    const auto move_to = [&](std::string_view directory) {
        if (done && !directory.empty()) {
            directory_.erase(raw.tid);
            assembler_->set_directory(raw.pid, directory, raw.tid);
        }
        return false;
    };
    switch (row.action) {
        case CallAction::chdir: return move_to(raw.path);
        case CallAction::fchdir: return raw.fd_path.starts_with('/') ? move_to(raw.fd_path) : false;
        case CallAction::getcwd: return move_to(strings_.quoted(call_.arg(0)).value_or(std::string_view{}));
        case CallAction::unshare:
            if (done) {
                assembler_->unshare(raw.pid, raw.tid, raw.flags);
            }
            return false;
        case CallAction::umask:
            if (done) {
                assembler_->set_umask(raw.pid, raw.mode, raw.tid);
            }
            return false;
        case CallAction::make: return make(HandleKind::other);
        case CallAction::make_socket: return make(HandleKind::socket);
        case CallAction::make_epoll: return make(HandleKind::epoll);
        case CallAction::pipe: {
            if (row.arg == kPipe || row.arg == kSocketPair) {
                return true;
            }
            const StraceFd fd = parse_strace_fd(call_.result_text);
            raw.fd = fd.fd;
            raw.fd_path = about(fd);
            return true;
        }
        case CallAction::spawn: spawned(raw); return true;
        case CallAction::clone_blocks: fill_clone(raw); return true;
        case CallAction::lock_memory: return lock_memory(row.nr, raw, locks_all_[raw.pid]);
        case CallAction::wait_child:
            raw.arg = 0;
            raw.flags = call_.arg(row.nr == SYS_waitid ? 3 : 2).find("WNOHANG") != std::string_view::npos ? WNOHANG : 0;
            if (done) {
                int64_t child = raw.result;
                if (row.nr == SYS_waitid) {
                    child = number(strace_field(call_.arg(2), "si_pid"));
                }
                raw.arg = std::max<int64_t>(child, 0);
            }
            return true;
        case CallAction::uring_enter:
        case CallAction::aio_submit:
            writer_->count(Count::asynchronous_requests_unseen);
            return row.action == CallAction::uring_enter;
        case CallAction::exec:
            if (done) {
                executed(row, raw.pid);
                locks_all_.erase(raw.pid);
            }
            return true;
        case CallAction::op:
        case CallAction::close_range:
        case CallAction::fcntl:
        case CallAction::mmap:
        case CallAction::mremap:
        case CallAction::receive:
        case CallAction::exit:
        case CallAction::wait:
        case CallAction::futex:
        case CallAction::wake:
        case CallAction::aio_reap: correct(row, raw); return true;
        case CallAction::none:
        case CallAction::ask_task:
        case CallAction::brk:
        case CallAction::marker:
        case CallAction::chroot:
        case CallAction::pivot_root:
        case CallAction::mount:
        case CallAction::umount:
        case CallAction::setns: return false;  // kNotImported
    }
    return false;
}

// A lock on a range. 0: not known, as where it counts from the position or the end.
int64_t StraceImport::packed_lock(std::string_view text) {
    const std::string_view type = strace_field(text, "l_type");
    const int known = type == "F_RDLCK" ? F_RDLCK : type == "F_WRLCK" ? F_WRLCK : type == "F_UNLCK" ? F_UNLCK : -1;
    if (known < 0 || strace_field(text, "l_whence") != "SEEK_SET") {
        return 0;
    }
    const int64_t start = number(strace_field(text, "l_start")), bytes = number(strace_field(text, "l_len"));
    return pack(range_lock_of(known, SEEK_SET, start, bytes, 0, 0));
}

// Corrects arguments whose meaning the letters of the table do not cover.
void StraceImport::correct(const Syscall& row, RawCall& raw) {
    const bool done = raw.result >= 0;
    if (row.kind == OpKind::open) {
        // Until here fd_path was that of the directory, which stands in raw.directory.
        raw.fd_path = done ? about(parse_strace_fd(call_.result_text)) : std::string_view{};
    }
    if (row.kind == OpKind::mmap && done) {
        constexpr int64_t kMapPopulate = 0x8000;
        raw.address = static_cast<uint64_t>(raw.result);
        const auto locks = locks_all_.find(raw.pid);
        raw.flags |= locks != locks_all_.end() && locks->second ? kMapPopulate : 0;
    }
    if (row.kind == OpKind::mremap && done) {
        raw.address2 = static_cast<uint64_t>(raw.result);
    }
    if ((row.kind == OpKind::mmap || row.kind == OpKind::mremap) && done) {
        raw.result = 0;
    }
    if (row.action == CallAction::fcntl && locks_range(raw.arg)) {
        raw.flags = packed_lock(call_.arg(2));
    }
    if (row.action == CallAction::close_range && raw.fd2 < 0) {
        raw.fd2 = INT32_MAX;
    }
    if (row.nr == SYS_unlinkat && raw.flags & AT_REMOVEDIR) {
        raw.kind = OpKind::rmdir;
    }
}

/// What strace was not asked to record.
void StraceImport::count_unseen() {
    constexpr uint64_t kFew = 20, kMany = 100;
    // A log that begins or ends within the run lacks some of these, too, so only what cannot be otherwise tells.
    const bool ends_uncalled = any_exited_ && !any_exit_call_;
    const bool begins_unmapped = any_exec_ && !any_map_ && calls_ >= kFew;
    const bool nothing_else = !any_exec_ && !any_map_ && !any_exit_ && dropped_.empty() && calls_ >= kMany;
    if (ends_uncalled || begins_unmapped || nothing_else) {
        std::string lacks;
        uint64_t kinds = 0;
        for (const auto& [seen, name] :
             {std::pair(any_exec_, "execve"), std::pair(any_map_, "mmap"), std::pair(any_exit_call_, "exit_group")}) {
            if (!seen) {
                lacks += (lacks.empty() ? "" : ", ") + std::string(name);
                ++kinds;
            }
        }
        lacks += any_sync_ ? "" : "; nor has it a sync such as fsync";
        writer_->count(Count::calls_filtered, kinds, lacks);
    }
    // Without the calls that start tasks, or in a name space of their own, tasks appear from nowhere.
    const auto never = [](const auto& these, const auto& those) {
        return std::count_if(these.begin(), these.end(), [&](int32_t tid) { return !those.contains(tid); });
    };
    const auto unseen = never(started_, tids_seen_), unstarted = never(tids_seen_, started_);
    writer_->count(Count::children_unseen,
                   static_cast<uint64_t>(std::max<int64_t>(unseen - std::max<int64_t>(unstarted - 1, 0), 0)));
}

void StraceImport::count_faults() {
    count_unseen();
    writer_->count(Count::unrecognized_lines, faults_.malformed, faults_.first_malformed);
    writer_->count(Count::clock_set_back, faults_.set_back, faults_.first_set_back);
    writer_->count(Count::inputs_cut, faults_.cut);
    writer_->count(Count::exits_missing, any_exit_ ? 0 : processes_seen_.size());
    writer_->count(Count::lines_without_first_half, faults_.orphans);
    writer_->count(Count::lines_without_second_half, faults_.unfinished);
    writer_->count(Count::calls_reordered, faults_.forced);
    writer_->count(Count::symbols_unknown, symbols_unknown_);
    writer_->count(Count::numbers_too_large, numbers_too_large_);
    writer_->count(Count::errors_unknown, errors_unknown_);
    writer_->count(Count::durations_unknown, durations_unknown_);
    for (const auto& [name, n] : dropped_) {
        writer_->count(Count::dropped, n, name);
    }
}

namespace {

bool sniff(std::string_view head) {
    size_t seen = 0, good = 0;
    while (!head.empty() && seen < 64) {
        const size_t end = head.find('\n');
        if (end == std::string_view::npos && seen > 0) {
            break;  // the last line may be cut
        }
        const std::string_view text = head.substr(0, end);
        head.remove_prefix(end == std::string_view::npos ? head.size() : end + 1);
        if (text.empty()) {
            continue;
        }
        ++seen;
        const StraceLine line = parse_strace_line(text);
        StraceCall call;
        switch (line.kind) {
            case StraceLine::Kind::call: good += parse_strace_call(line.text, call); break;
            case StraceLine::Kind::unfinished:
            case StraceLine::Kind::resumed:
            case StraceLine::Kind::ended:
            case StraceLine::Kind::signal: ++good; break;
            case StraceLine::Kind::remark:
            case StraceLine::Kind::malformed: break;
        }
    }
    return good > 0 && good * 2 >= seen;
}

void import(std::span<const std::filesystem::path> inputs, const std::filesystem::path& output,
            const ImportOptions& options) {
    StraceImport(inputs, output, options).run();
}

}  // namespace

extern const Importer import_strace;
const Importer import_strace{"strace", "output of strace -f -ttt -T -yy; all files of -ff at once", sniff, import};

}  // namespace reprise
