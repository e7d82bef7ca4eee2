// SPDX-License-Identifier: MIT
// check_raw EXPECT RAW: looks at every record of a raw recording of a whole job. Exit code 0 where all are as they must
// be, 1 with what is wrong where not.
//
// Of each task the records are numbered without a gap, times go forward, calls do not overlap, and each has the parts
// that its row of formats/oplog/syscalls.def asks for, no more and no less. Records that speak of others (who woke
// whom, whose child, which request was completed) speak of something that is there. Lines "TID raw CALL PART...
// result=N" of EXPECT say which parts the next such call of the task has:
//   fd0=3       descriptor of argument 0 ("fd==": of the result, "fd=2=": the second one, "fdsent0=", "fdreceived0=":
//               passed); 3none: not open; more may follow, up to 3/INODE/SIZE/POSITION/FLAGS/MODE/INFO/PEER
//   path1=TEXT string1=TEXT list1=10,20 values2=1,2,3 stat2=INODE/DEVICE/SIZE/MODE/LINKS
//   iocb2=OPCODE/FD/OFFSET/LENGTH/FLAGS/DATA event3=RESULT/DATA, and UNREADABLE or TRUNCATED
// Lines "TID seed_fd fd0=... string0=NAME" and "TID seed_map ADDRESS/SIZE/OFFSET/INODE/PROT/FLAGS path0=NAME" say what
// a process has that is attached to: all of it.
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>

#include "formats/raw/dump.h"
#include "tests/programs/support/raw_parts.h"

namespace {

using namespace reprise;
using namespace reprise::test;

using TaskKey = std::pair<uint32_t, uint32_t>;
constexpr uint16_t kNoCall = 0xffff;
constexpr size_t kMostShown = 20;
constexpr uint64_t kPage = 4096;

template <class T>
const T& as(const raw_head& head) {
    return *reinterpret_cast<const T*>(&head);
}

struct ExpectedCall {
    std::string line, name;
    std::vector<std::string> parts;
    int64_t result = 0;
};

struct Task {
    std::vector<const raw_head*> records;
    std::vector<const raw_call*> calls;
    const raw_exit* exit = nullptr;
    const raw_spawn* spawn = nullptr;
    bool was_there = false;  // before the recording

    // The recorded call under way at that time; nullptr: none.
    const raw_call* call_at(uint64_t time) const {
        const auto after = std::partition_point(calls.begin(), calls.end(),
                                                [&](const raw_call* call) { return call->head.time < time; });
        return after != calls.end() && (*after)->enter <= time ? *after : nullptr;
    }
    // As records of other things that happen in it say it.
    uint16_t nr_at(uint64_t time) const {
        if (exit && time >= exit->head.time) {
            return SYS_exit_group;
        }
        const raw_call* call = call_at(time);
        return call ? call->nr : kNoCall;
    }
};

// "3/1/2" begins with "3/1" and with "3".
bool begins(const std::string& text, const std::string& wanted) {
    return text == wanted || (wanted.starts_with("fd") && text.starts_with(wanted + "/"));
}

class Check {
public:
    Check(const char* expect, const char* raw) : path_(expect) {
        read_expectation(expect);
        RawReader reader(raw);
        for (ByteView chunk = reader.next(); !chunk.empty(); chunk = reader.next()) {
            for (const raw_head& head : RawRecords(chunk)) {
                auto& kept = kept_.emplace_back((head.size + 7) / 8);
                std::memcpy(kept.data(), &head, head.size);
            }
        }
        if (!reader.cut().empty()) {
            throw std::runtime_error(std::string(raw) + ": " + reader.cut());
        }
    }

    int run() {
        for (const auto& each : kept_) {
            sort(*reinterpret_cast<const raw_head*>(each.data()));
        }
        for (const auto& each : kept_) {
            any(*reinterpret_cast<const raw_head*>(each.data()));
        }
        for (const auto& [key, task] : tasks_) {
            numbered(task);
            whole_life(key, task);
            const auto wanted = expected_.find(key.second);
            if (wanted != expected_.end()) {
                expected(task, wanted->second);
            }
            calls(task);
            woken_by_children(task);
        }
        if (!attached_) {
            pages_of_expectation();
        }
        for (const auto& [tid, rest] : there_) {
            for (const std::string& each : rest) {
                wrong("this was there, but is not told: " + std::to_string(tid) + " " + each, nullptr);
            }
        }
        if (!requests_.empty()) {
            wrong("a request that was never completed", &requests_.begin()->second->head);
        }
        if (sleeps_ > 3 && sleeps_ < 2 * sleeps_without_wake_) {
            wrong("of most sleepers it is not known when they were woken", nullptr);
        }
        // Programs have been run just before, to set up what they find: their pages need not be read. One whose lock
        // another fault holds looks the same, and is rare.
        if (program_faults_[1] > 1 + program_faults_[0] / 8) {
            wrong("pages of a program were read that was run just before", nullptr);
        }
        if (wrong_ == 0) {
            std::printf("%zu records of %zu tasks as they must be\n", kept_.size(), tasks_.size());
        }
        return wrong_ == 0 ? 0 : 1;
    }

private:
    void read_expectation(const char* path) {
        std::ifstream in(path, std::ios::binary);
        if (!in) {
            throw std::runtime_error(std::string(path) + ": cannot be read");
        }
        std::string line, word;
        while (std::getline(in, line) && line[0] != 0) {
            std::istringstream words(line);
            uint32_t tid = 0;
            ExpectedCall call;
            if (!(words >> tid >> word)) {
                continue;
            }
            if (word.starts_with("seed_")) {
                attached_ = true;
                std::string& text = there_[tid].emplace_back(word);
                while (words >> word) {
                    text += " " + word;
                }
            }
            if (word != "raw" || !(words >> call.name)) {
                continue;
            }
            call.line = line;
            while (words >> word) {
                if (word.starts_with("result=")) {
                    call.result = std::stoll(word.substr(7));
                } else {
                    call.parts.push_back(word);
                }
            }
            expected_[tid].push_back(call);
        }
    }

    void wrong(const std::string& what, const raw_head* head) {
        if (++wrong_ <= kMostShown) {
            std::printf("%s%s%s\n", what.c_str(), head ? "\n    " : "", head ? raw_line(*head).c_str() : "");
        }
    }

    static bool is_numbered(const raw_head& head) {
        return head.pid != 0 && head.type != RAW_BLOCK && head.type != RAW_MEMORY && head.type != RAW_USES &&
               head.type != RAW_RANK && head.type != RAW_CUFILE &&
               (head.type < RAW_SEED_TASK || head.type > RAW_SEED_MAP);
    }

    // --- which task a record belongs to

    void sort(const raw_head& head) {
        const TaskKey key{head.pid, head.tid};
        if (head.type == RAW_SEED_TASK) {
            tasks_[key].was_there = true;
        }
        if (head.type == RAW_SPAWN) {
            const auto& spawn = as<raw_spawn>(head);
            Task& child = tasks_[{spawn.child_pid, spawn.child_tid}];
            if (child.spawn) {
                wrong("a task that was made twice", &head);
            }
            child.spawn = &spawn;
        }
        if (head.type == RAW_EXEC) {
            executed(as<raw_exec>(head));
        }
        Task* task = is_numbered(head) ? &tasks_[key] : nullptr;
        if (!task) {
            return;
        }
        task->records.push_back(&head);
        if (head.type == RAW_CALL) {
            task->calls.push_back(&as<raw_call>(head));
        }
        if (head.type == RAW_EXIT) {
            if (task->exit) {
                wrong("a task that ended twice", &head);
            }
            task->exit = &as<raw_exit>(head);
            ++ends_[head.pid][as<raw_exit>(head).last];
        }
    }

    void executed(const raw_exec& record) {
        const TaskKey key{record.head.pid, record.head.tid}, old{record.head.pid, record.old_tid};
        if (!tasks_.count(old)) {
            wrong("a program begun by no task", &record.head);
        }
        if (key != old) {
            // The thread goes on under the number of its process, whose first thread has ended.
            Task moved = std::move(tasks_[old]);
            numbered(tasks_[key]);
            moved.spawn = tasks_[key].spawn;
            moved.was_there = tasks_[key].was_there;
            tasks_.erase(old);
            tasks_[key] = std::move(moved);
        }
        size_t paths = 0;
        for (const raw_part& part : RawParts(record.head)) {
            const std::string path(raw_part_text(part));
            struct stat file {};
            if (path.find("/programs/c/") != std::string::npos && ::stat(path.c_str(), &file) == 0) {
                run_before_.insert(file.st_ino);
            }
            paths += part.type == RAW_PART_PATH && part.which == 0 ? 1 : 100;
            if (path.substr(path.rfind('/') + 1).substr(0, sizeof record.name - 1) != record.name) {
                wrong("a program of another name", &record.head);
            }
        }
        if (paths != 1 || record.pad != 0 || record.head.flags != 0) {
            wrong("a program without a path", &record.head);
        }
    }

    // --- one record

    void any(const raw_head& head) {
        const auto found = tasks_.find({head.pid, head.tid});
        if ((head.pid == 0) != (head.tid == 0) || (head.pid && found == tasks_.end())) {
            return wrong("a record of no task", &head);
        }
        if (!is_numbered(head) && head.sequence != 0) {
            wrong("a number where none belongs", &head);
        }
        const Task& task = found == tasks_.end() ? nobody_ : found->second;
        if (head.type != RAW_META) {
            for (const raw_part& part : RawParts(head)) {
                if (part.size != bytes_of(part)) {
                    wrong("a part of another size than what is in it", &head);
                }
            }
        }
        bool good = true;
        switch (head.type) {
            case RAW_LOSS: {
                const auto& loss = as<raw_loss>(head);
                good = !loss.failed_reserves && !loss.recursion_misses && !loss.untracked;
                break;
            }
            case RAW_BLOCK: good = block(as<raw_block>(head)); break;
            case RAW_PAGE_CACHE: good = page_cache(as<raw_page_cache>(head), task); break;
            case RAW_SEED_FD: good = seed_fd(head); break;
            case RAW_SEED_MAP: good = seed_map(as<raw_seed_map>(head)); break;
            case RAW_SPAWN: good = spawned(as<raw_spawn>(head), task); break;
            case RAW_SWITCH: good = switched(as<raw_switch>(head), task); break;
            case RAW_FAULT: good = fault(as<raw_fault>(head), task); break;
            case RAW_TOUCH: good = touch(as<raw_touch>(head)); break;
            case RAW_STOLEN: good = as<raw_stolen>(head).stolen >= 10'000; break;
            case RAW_FAULTS: good = faults(as<raw_faults>(head)); break;
            case RAW_URING_SUBMIT: return submitted(as<raw_uring>(head), task);
            case RAW_URING_COMPLETE: return completed(as<raw_uring>(head));
            default: break;
        }
        if (!good) {
            wrong("this cannot be", &head);
        }
    }

    static size_t bytes_of(const raw_part& part) {
        switch (part.type) {
            case RAW_PART_FD: return sizeof part + sizeof(raw_fd);
            case RAW_PART_STAT: return sizeof part + sizeof(raw_stat);
            case RAW_PART_IOCB: return sizeof part + sizeof(raw_iocb);
            case RAW_PART_EVENT: return sizeof part + sizeof(raw_aio_event);
            case RAW_PART_LIST:
            case RAW_PART_VALUES: return sizeof part + part.length * sizeof(raw_s64);
            default: return sizeof part + (part.length + 7) / 8 * 8;
        }
    }

    static bool block(const raw_block& record) {
        const std::string device = std::to_string(record.device >> 20) + ":" + std::to_string(record.device & 0xfffff);
        return record.issued && record.issued <= record.head.time && record.write <= 1 && record.bytes % 512 == 0 &&
               record.pad == 0 && ::access(("/sys/dev/block/" + device).c_str(), F_OK) == 0;
    }

    // Few and cheap ones are not told.
    static bool faults(const raw_faults& record) {
        const bool worth_it = record.faults >= 128 || record.dear_ns >= 100'000;
        return worth_it && (record.dear == 0) == (record.dear_ns == 0);
    }

    static bool page_cache(const raw_page_cache& record, const Task& task) {
        const bool by_task = record.head.pid != 0;
        const uint16_t nr = by_task ? task.nr_at(record.first) : kNoCall;
        const bool deferred = record.after == 0 || (record.evicted && nr == kNoCall && record.after <= record.first);
        return record.inode && record.device && record.bytes && record.bytes % kPage == 0 &&
               record.offset % kPage == 0 && record.evicted <= 1 && (by_task || record.evicted) && record.in_nr == nr &&
               record.first <= record.last && record.last <= record.head.time && deferred && record.folios > 0 &&
               record.folios <= record.bytes / kPage && record.pad == 0;
    }

    bool seed_fd(const raw_head& head) {
        std::vector<const raw_part*> parts;
        for (const raw_part& part : RawParts(head)) {
            parts.push_back(&part);
        }
        if (parts.size() != 2 || parts[0]->type != RAW_PART_FD || parts[1]->type != RAW_PART_STRING ||
            parts[0]->which != 0 || parts[1]->which != 0 || parts[1]->length == 0) {
            return false;
        }
        const auto& fd = *static_cast<const raw_fd*>(raw_part_data(*parts[0]));
        seen_there(head, "seed_fd " + raw_part_line(*parts[0]) + " " + raw_part_line(*parts[1]));
        return fd.file && head.pid == head.tid && seeds_.insert({head.pid, fd.fd}).second;
    }

    bool seed_map(const raw_seed_map& record) {
        std::string text = "seed_map";
        char between = ' ';
        for (const uint64_t number : {record.address, record.size, record.offset, record.inode, uint64_t{record.prot},
                                      uint64_t{record.flags}}) {
            text += between + std::to_string(number);
            between = '/';
        }
        for (const raw_part& part : RawParts(record.head)) {
            text += " " + raw_part_line(part);
        }
        seen_there(record.head, text);
        return record.device && record.inode && record.pad == 0 && record.head.pid == record.head.tid;
    }

    // What a task had before the recording, where it says that: "(deleted)" behind a name does not count.
    void seen_there(const raw_head& head, const std::string& text) {
        const auto wanted = there_.find(head.tid);
        if (wanted == there_.end()) {
            return;
        }
        const std::string got = text.substr(0, text.find(" (deleted)"));
        const size_t part = got.find(' ', got.find(' ') + 1);
        const auto found = std::find_if(wanted->second.begin(), wanted->second.end(), [&](const std::string& want) {
            const size_t ends = want.find(' ', want.find(' ') + 1);
            return got.substr(part) == want.substr(ends) &&
                   (got.substr(0, part) + "/").starts_with(want.substr(0, ends) + "/");
        });
        if (found == wanted->second.end()) {
            return wrong("this was not there: " + got, &head);
        }
        wanted->second.erase(found);
    }

    static bool spawned(const raw_spawn& record, const Task& task) {
        constexpr uint64_t kThread = 0x10000;  // CLONE_THREAD
        const bool same_process = record.child_pid == record.head.pid;
        const uint16_t nr = task.nr_at(record.head.time);
        return (record.flags & kThread)
                   ? same_process
                   : !same_process && record.child_pid == record.child_tid && nr != kNoCall && record.name[0] != 0;
    }

    // A fault without an address is one that a call asked for.
    bool fault(const raw_fault& record, const Task& task) {
        if (run_before_.count(record.inode)) {
            ++program_faults_[record.major];
        }
        if (record.write & RAW_FAULT_WRITES) {
            last_writes_[{record.head.pid, record.head.tid}] = record;
        }
        return record.enter && record.enter <= record.head.time && record.inode && record.offset % kPage == 0 &&
               (record.address || task.call_at(record.enter)) && record.write <= 3 && record.major <= 1 &&
               !(record.write & RAW_FAULT_WRITES && record.major);
    }

    // All pages of a folio: of the write fault before, whose page is among them.
    bool folio(const raw_touch& record) {
        const raw_fault& of = last_writes_[{record.head.pid, record.head.tid}];
        return record.write == (RAW_FAULT_WRITES | RAW_FAULT_FOLIO) && record.pages > 1 && record.enter == of.enter &&
               record.address <= of.address && of.address < record.address + record.pages * kPage;
    }

    bool touch(const raw_touch& record) {
        if (record.write & RAW_FAULT_FOLIO && !folio(record)) {
            return false;
        }
        // Of writes to pages that were there only the begin is known.
        const bool lasts = record.write & RAW_FAULT_WRITES || (record.enter < record.end && record.busy);
        return record.enter && lasts && record.enter <= record.end && record.end <= record.head.time &&
               record.busy <= record.end - record.enter && record.address % kPage == 0 && record.address &&
               record.pages && record.write <= 7;
    }

    bool switched(const raw_switch& record, const Task& task) {
        const uint64_t back = record.head.time;
        const raw_call* call = task.call_at(record.off);
        const bool inside = !call || back <= call->head.time || (task.exit && record.off >= task.exit->head.time);
        if (!record.off || record.off >= back || record.nr != task.nr_at(record.off) || !inside || record.state > 2 ||
            record.in_iowait > 1 || (record.wake && (record.wake < record.off || record.wake > back))) {
            return false;
        }
        sleeps_ += record.state == RAW_OFF_SLEEPING ? 1 : 0;
        sleeps_without_wake_ += record.state == RAW_OFF_SLEEPING && !record.wake ? 1 : 0;
        if (record.waker_tid == 0) {
            return record.waker_pid == 0 && record.waker_nr == kNoCall && record.waker_enter == 0;
        }
        const TaskKey key{record.waker_pid, record.waker_tid};
        const auto waker = tasks_.find(key);
        const Syscall* row = find_syscall(record.waker_nr);
        if (waker == tasks_.end() || !record.wake || !row || !row->wakes || &waker->second == &task) {
            return false;
        }
        // What a call left to the kernel's workers may wake others when it has returned.
        const bool deferred = record.head.flags & RAW_FLAG_DEFERRED;
        if (waker->second.nr_at(deferred ? record.waker_enter : record.wake) != record.waker_nr) {
            return false;
        }
        const raw_exit* end = waker->second.exit;
        const raw_call* in = waker->second.call_at(record.waker_enter);
        return in ? in->enter == record.waker_enter : end && end->head.time == record.waker_enter;
    }

    // --- requests of io_uring

    void submitted(const raw_uring& record, const Task& task) {
        if (!requests_.emplace(record.request, &record).second) {
            wrong("a request that is not completed yet", &record.head);
        }
        const bool by_call = task.nr_at(record.head.time) == SYS_io_uring_enter;
        if (!record.ring || record.sqpoll == by_call || !is_told(record) || record.head.flags) {
            wrong("this is no submission", &record.head);
        }
        counted(record);
        if (const std::string differs = wrong_parts(record, nullptr); !differs.empty()) {
            wrong(differs, &record.head);
        }
    }

    // The file, by this record or one before.
    bool is_told(const raw_uring& record) {
        for (const raw_part& part : RawParts(record.head)) {
            if (part.type == RAW_PART_FD && part.which == 0) {
                told_files_.insert(static_cast<const raw_fd*>(raw_part_data(part))->file);
                return static_cast<const raw_fd*>(raw_part_data(part))->file == record.file;
            }
        }
        return record.file == 0 || told_files_.contains(record.file);
    }

    // The job takes no more than the ring was given, and neither count goes back.
    void counted(const raw_uring& record) {
        Counts& before = counts_[record.ring];
        const bool completes = record.head.type == RAW_URING_COMPLETE;
        const bool next = !completes || record.completed == before.completed + 1;
        if (!next || record.taken > record.completed || record.taken < before.taken) {
            wrong("the ring's counts", &record.head);
        }
        before = {record.taken, completes ? record.completed : before.completed};
    }

    void completed(const raw_uring& record) {
        counted(record);
        const auto found = requests_.find(record.request);
        if (found == requests_.end()) {
            return wrong("nobody submitted this", &record.head);
        }
        const raw_uring& asked = *found->second;
        requests_.erase(found);
        const bool same = record.ring == asked.ring && record.user_data == asked.user_data &&
                          record.opcode == asked.opcode && record.head.time >= asked.head.time;
        if (!same || record.fd != -1 || record.sqpoll || record.offset || record.length || record.rw_flags ||
            (record.file && asked.file && record.file != asked.file) || !is_told(record) || record.head.flags) {
            wrong("another request was submitted", &record.head);
        }
        if (const std::string differs = wrong_parts(record, &asked); !differs.empty()) {
            wrong(differs, &record.head);
        }
    }

    // --- one task

    void numbered(const Task& task) {
        uint32_t next = 0;
        uint64_t time = 0;
        for (const raw_head* head : task.records) {
            if (head->sequence != next) {
                wrong("here record #" + std::to_string(next) + " was expected", head);
            }
            if (head->time < time) {
                wrong("earlier than the record before it", head);
            }
            next = head->sequence + 1;
            time = head->time;
        }
    }

    void calls(const Task& task) {
        uint64_t end = 0;
        for (const raw_call* call : task.calls) {
            const Syscall* row = find_syscall(call->nr);
            if (!row || !row->recorded) {
                wrong("no recorded call", &call->head);
                continue;
            }
            if (call->enter < end + call->own_ns || call->enter > call->head.time || call->pad != 0) {
                wrong("begins before the one before it has ended, or ends before it begins", &call->head);
            }
            if ((call->own_ns == 0) != (end == 0)) {
                wrong("what the recorder took after the call before", &call->head);
            }
            end = call->head.time;
            const std::string differs = told_.count(call) ? "" : PartsOfCall(*call).differs();
            if (!differs.empty()) {
                wrong(differs, &call->head);
            }
            const bool mark = call->args[0] == RAW_MARKER_PRCTL && call->args[4] == RAW_MARKER_MAGIC;
            if (row->nr == SYS_prctl && !mark && call->args[0] != 15) {  // PR_SET_NAME
                wrong("neither a mark nor a name", &call->head);
            }
            const bool unfinished = call->head.flags & RAW_FLAG_UNFINISHED;
            if (unfinished && (!task.exit || task.exit->head.time != call->head.time || call != task.calls.back())) {
                wrong("unfinished, but the task went on", &call->head);
            }
        }
    }

    // Who slept until a child had ended was woken by it.
    void woken_by_children(const Task& task) {
        for (const raw_call* call : task.calls) {
            const auto pid = static_cast<uint32_t>(call->result);
            const auto child = tasks_.find({pid, pid});
            if (call->nr != SYS_wait4 || call->result <= 0 || child == tasks_.end() || !child->second.exit) {
                continue;
            }
            const raw_switch* last = nullptr;
            for (const raw_head* head : task.records) {
                const bool inside = head->type == RAW_SWITCH && as<raw_switch>(*head).off >= call->enter;
                if (inside && head->time <= call->head.time && as<raw_switch>(*head).state == RAW_OFF_SLEEPING) {
                    last = &as<raw_switch>(*head);
                }
            }
            if (!last || last->wake < child->second.exit->head.time) {
                continue;
            }
            if (last->waker_pid != pid || last->waker_nr != SYS_exit_group) {
                wrong("woken by a child that is not named", &last->head);
            }
        }
    }

    void whole_life(const TaskKey& key, const Task& task) {
        if (task.records.empty() || !task.exit) {
            return wrong("a task that never ended: " + std::to_string(key.second), nullptr);
        }
        if (task.was_there != (task.spawn == nullptr)) {
            wrong("a task made by nobody", task.records[0]);
        }
        if (ends_[key.first][1] != 1) {
            wrong("not one last thread of a process", &task.exit->head);
        }
        uint64_t back = 0;
        for (const raw_head* head : task.records) {
            if (head->type == RAW_SWITCH) {
                if (as<raw_switch>(*head).off < back) {
                    wrong("off the processor twice at a time", head);
                }
                back = head->time;
            }
            if (task.spawn && head->time < task.spawn->head.time) {
                wrong("before the task was made", head);
            }
        }
    }

    // The expectation was a new file, whose pages the program had made for it by mmap.
    void pages_of_expectation() {
        struct stat file {};
        struct statfs system {};
        if (::stat(path_, &file) != 0 || ::statfs(path_, &system) != 0 ||
            (system.f_type != EXT4_SUPER_MAGIC && system.f_type != XFS_SUPER_MAGIC)) {
            return;
        }
        const uint64_t device = uint64_t{major(file.st_dev)} << 20 | minor(file.st_dev);
        std::set<uint64_t> pages;
        for (const auto& each : kept_) {
            const auto& record = as<raw_page_cache>(*reinterpret_cast<const raw_head*>(each.data()));
            if (record.head.type == RAW_PAGE_CACHE && !record.evicted && record.inode == file.st_ino &&
                record.device == device && record.in_nr == SYS_mmap) {
                for (uint64_t at = 0; at < record.bytes; at += kPage) {
                    pages.insert(record.offset + at);
                }
            }
        }
        if (pages.size() * kPage != static_cast<uint64_t>(file.st_size)) {
            wrong(std::to_string(pages.size()) + " pages of the expectation were seen to come", nullptr);
        }
    }

    // --- what the program says

    void expected(const Task& task, const std::vector<ExpectedCall>& wanted) {
        size_t at = 0;
        bool any = false;
        for (const ExpectedCall& want : wanted) {
            std::string got;
            bool found = false;
            for (; at < task.calls.size() && !found; ++at) {
                const raw_call& call = *task.calls[at];
                if (raw_call_name(call.nr) != want.name) {
                    continue;
                }
                const bool same = call.result == want.result && same_parts(call, want.parts);
                got = raw_line(call.head);
                if (any && !same) {
                    break;  // from the first one on, every one must be said
                }
                found = same;
                told_.insert(&call);
            }
            if (!found) {
                return wrong("expected " + want.line + "\n    but found " + got, nullptr);
            }
            any = true;
        }
    }

    static bool same_parts(const raw_call& call, const std::vector<std::string>& wanted) {
        std::vector<std::string> got;
        for (const raw_part& part : RawParts(call.head)) {
            got.push_back(raw_part_line(part));
        }
        if (call.head.flags & RAW_FLAG_TRUNCATED) {
            got.emplace_back("TRUNCATED");
        }
        if (call.head.flags & RAW_FLAG_UNREADABLE) {
            got.emplace_back("UNREADABLE");
        }
        return std::equal(got.begin(), got.end(), wanted.begin(), wanted.end(), begins);
    }

    const char* path_;
    std::vector<std::vector<uint64_t>> kept_;
    std::map<TaskKey, Task> tasks_;
    std::map<TaskKey, raw_fault> last_writes_;          // to mapped files
    std::map<uint32_t, std::map<uint32_t, int>> ends_;  // by pid, by whether it was the last thread
    std::map<uint32_t, std::vector<ExpectedCall>> expected_;
    std::set<uint64_t> run_before_;                       // inodes of programs
    size_t program_faults_[2] = {0, 0};                   // on those, by whether they say major
    std::set<const raw_call*> told_;                      // by the program
    std::map<uint32_t, std::vector<std::string>> there_;  // by thread id: "seed_fd ...", "seed_map ..."
    std::set<std::pair<uint32_t, int32_t>> seeds_;
    std::map<uint64_t, const raw_uring*> requests_;
    std::set<uint64_t> told_files_;
    struct Counts {
        uint32_t taken = 0, completed = 0;
    };
    std::map<uint64_t, Counts> counts_;  // by ring
    const Task nobody_;
    bool attached_ = false;
    size_t wrong_ = 0, sleeps_ = 0, sleeps_without_wake_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: check_raw EXPECT RAW\n");
        return 2;
    }
    try {
        return Check(argv[1], argv[2]).run();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "check_raw: %s\n", error.what());
        return 3;
    }
}
