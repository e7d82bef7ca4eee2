// SPDX-License-Identifier: MIT
#include "formats/import/dftracer/processes.h"

#include <algorithm>
#include <limits>
#include <set>

namespace reprise::dftracer {
namespace {

constexpr int32_t kMostDescriptors = 1 << 20;

bool fits(int64_t number) { return number >= 0 && number <= std::numeric_limits<int32_t>::max(); }

// Hands out numbers that no process bears.
class Numbers {
public:
    int32_t claim(int64_t wanted) {
        if (fits(wanted) && taken_.insert(static_cast<int32_t>(wanted)).second) {
            return static_cast<int32_t>(wanted);
        }
        while (!taken_.insert(next_).second) {
            ++next_;
        }
        return next_++;
    }
    void reserve(int64_t number) {
        if (fits(number)) {
            taken_.insert(static_cast<int32_t>(number));
        }
    }

private:
    std::set<int32_t> taken_;
    int32_t next_ = 1'000'000'000;
};

}  // namespace

// Rows of one (host, pid) and tid become one. Where a pid occurs on one host only, events without host are its own.
void Processes::group_by_host(const Lines& lines) {
    const auto& threads = lines.threads;
    std::map<int64_t, StringId> host_of;  // the first host of a pid
    for (const Thread& thread : threads) {
        if (thread.host) {
            host_of.try_emplace(thread.pid, thread.host);
        }
    }
    std::map<std::pair<StringId, int64_t>, uint32_t> processes;
    std::map<std::pair<uint32_t, int64_t>, uint32_t> first_row;
    members_.assign(threads.size(), {});
    same_.assign(threads.size(), 0);
    for (uint32_t row = 0; row < threads.size(); ++row) {
        const Thread& thread = threads[row];
        StringId host = thread.host;
        if (!host) {
            if (const auto known = host_of.find(thread.pid); known != host_of.end()) {
                host = known->second;
            }
        }
        const uint32_t process =
            processes.try_emplace({host, thread.pid}, static_cast<uint32_t>(processes.size())).first->second;
        if (process == of_process_.size()) {
            of_process_.emplace_back();
        }
        const auto [stands, is_new] = first_row.try_emplace({process, thread.tid}, row);
        same_[row] = stands->second;
        members_[row].process = process;
        members_[row].joined = row;
        if (is_new) {
            of_process_[process].push_back(row);
        }
    }
    // The first thread of a process: the one that bears its number, else the one seen first.
    std::vector<int64_t> begin(threads.size(), std::numeric_limits<int64_t>::max());
    lines.events.for_each(
        [&](const Event& event) { begin[same_[event.thread]] = std::min(begin[same_[event.thread]], event.begin); });
    for (const auto& rows : of_process_) {
        const auto first = std::min_element(rows.begin(), rows.end(), [&](uint32_t a, uint32_t b) {
            const bool main_a = threads[a].tid == threads[a].pid, main_b = threads[b].tid == threads[b].pid;
            return main_a != main_b ? main_a : begin[a] < begin[b];
        });
        members_[*first].first = true;
    }
}

void Processes::look_at(const Lines& lines, const Event& event) {
    const uint32_t row = same_[event.thread];
    Member& me = members_[row];
    const Call call = lines.names[event.name].call;
    const auto slot = [](Member& member, int64_t fd) -> StringId* {
        return fd >= 0 && static_cast<size_t>(fd) < member.open.size() ? &member.open[static_cast<size_t>(fd)]
                                                                       : nullptr;
    };
    if (call == Call::fork) {
        if (!(event.known & kResult)) {
            return;
        }
        if (event.result == 0 && !me.first) {
            me.forked = true;
        }
        if (event.result > 0) {
            children_.try_emplace({me.process, event.result}, 0);
        }
        return;
    }
    if (call == Call::open || call == Call::creat || call == Call::openat) {
        const int64_t fd = event.result;
        if (!(event.known & kResult) || fd < 0 || fd >= kMostDescriptors) {
            return;
        }
        for (const uint32_t other : of_process_[me.process]) {
            if (other == row) {
                continue;
            }
            if (const StringId* path = slot(members_[other], fd); path && *path) {
                me.alone |= !me.first;
                members_[other].alone |= !members_[other].first;
            }
        }
        if (static_cast<size_t>(fd) >= me.open.size()) {
            me.open.resize(static_cast<size_t>(fd) + 1);
        }
        me.open[static_cast<size_t>(fd)] = event.path ? event.path : UINT32_MAX;
        return;
    }
    if (!(event.known & kFd)) {
        return;
    }
    StringId* mine = slot(me, event.fd);
    if (!mine || !*mine) {
        for (const uint32_t other : of_process_[me.process]) {
            if (other == row) {
                continue;
            }
            StringId* theirs = slot(members_[other], event.fd);
            if (!theirs || !*theirs || (event.path && *theirs != event.path)) {
                continue;
            }
            const std::pair<uint32_t, uint32_t> pair{row, other};
            if (std::find(shared_.begin(), shared_.end(), pair) == shared_.end()) {
                shared_.push_back(pair);
            }
            mine = theirs;
            break;
        }
    }
    if (call == Call::close && mine && *mine) {
        *mine = 0;
    }
}

uint32_t Processes::root(uint32_t thread) {
    while (members_[thread].joined != thread) {
        thread = members_[thread].joined = members_[members_[thread].joined].joined;
    }
    return thread;
}

void Processes::number(const Lines& lines) {
    for (const auto& [a, b] : shared_) {
        const bool apart = members_[a].alone || members_[b].alone || members_[a].forked || members_[b].forked;
        if (!apart) {
            members_[root(a)].joined = root(b);
        }
    }
    Numbers pids;
    for (const Thread& thread : lines.threads) {
        pids.reserve(thread.pid);
    }
    std::set<int64_t> borne;  // pids already given to their process on one host
    log_pid_.assign(lines.threads.size(), 0);
    log_tid_.assign(lines.threads.size(), 0);
    for (const auto& rows : of_process_) {
        const bool any_alone = std::any_of(rows.begin(), rows.end(), [&](uint32_t row) { return members_[row].alone; });
        const uint32_t first =
            *std::find_if(rows.begin(), rows.end(), [&](uint32_t row) { return members_[row].first; });
        const int64_t pid = lines.threads[first].pid;
        std::map<uint32_t, int32_t> numbers;  // per root
        const int32_t own = fits(pid) && borne.insert(pid).second ? static_cast<int32_t>(pid) : pids.claim(-1);
        numbers[root(first)] = own;
        Numbers tids;
        for (const uint32_t row : rows) {
            if (fits(lines.threads[row].tid)) {
                tids.reserve(lines.threads[row].tid);
            }
        }
        for (const uint32_t row : rows) {
            const int64_t tid = lines.threads[row].tid;
            const bool apart = members_[row].forked || any_alone;
            if (!apart) {
                log_pid_[row] = own;
            } else {
                const auto [number, is_new] = numbers.try_emplace(root(row), 0);
                if (is_new) {
                    number->second = pids.claim(tid);
                    inferred_ += !members_[row].forked;
                }
                log_pid_[row] = number->second;
            }
            log_tid_[row] = fits(tid) ? static_cast<int32_t>(tid) : tids.claim(-1);
            if (!members_[row].forked) {
                continue;
            }
            log_tid_[row] = log_pid_[row];  // the only thread of its process
            children_[{members_[row].process, tid}] = log_pid_[row];
        }
    }
    for (auto& [key, number] : children_) {
        if (!number) {
            number = pids.claim(key.second);
        }
    }
    for (uint32_t row = 0; row < same_.size(); ++row) {
        log_pid_[row] = log_pid_[same_[row]];
        log_tid_[row] = log_tid_[same_[row]];
    }
}

void Processes::infer(const Lines& lines, const std::function<void(const Visit&)>& each_call) {
    group_by_host(lines);
    each_call([&](const Event& event) { look_at(lines, event); });
    number(lines);
}

int32_t Processes::child(uint32_t thread, int64_t result) const {
    const auto found = children_.find({members_[same_[thread]].process, result});
    return found == children_.end() ? 0 : found->second;
}

std::string Processes::first_host(const Lines& lines) const {
    for (const Thread& thread : lines.threads) {
        if (thread.host) {
            return std::string(lines.strings[thread.host]);
        }
    }
    return {};
}

void Processes::describe(const Lines& lines, Assembler& assembler) const {
    for (uint32_t row = 0; row < same_.size(); ++row) {
        // Forked children take these from their parent when it forks.
        if (!lines.threads[row].host || members_[same_[row]].forked) {
            continue;
        }
        assembler.set_host(log_pid_[row], lines.strings[lines.threads[row].host]);
    }
    for (const Start& start : lines.starts) {
        const int32_t pid = log_pid_[start.thread];
        if (start.command) {
            assembler.set_command(pid, lines.strings[start.command]);
        }
        if (start.directory) {
            assembler.set_directory(pid, lines.strings[start.directory]);
        }
    }
}

void Processes::count(LogWriter& writer) const {
    if (inferred_ > 0) {
        writer.count(Count::processes_inferred, inferred_);
    }
}

}  // namespace reprise::dftracer
