// SPDX-License-Identifier: MIT
// same_ops A B --map-root OLD=NEW: whether recording B, of a replay of recording A, holds the same calls on files: per
// task the same ops in the same order, on the same files and open instances, with the same offsets, sizes, flags and
// results. A's files lie below OLD, B's below NEW. Exit code 0 where all agree, 1 with the first differences.
//
// What a replay does besides, or does otherwise, and is therefore put aside (docs/replay.md says why):
//  - the calls of the process that runs the replay, and descriptors opened with O_PATH to name something (with their
//    close, unless the job itself used them); where such an open fails, it stands for the call that it was made for;
//  - its question whether a descriptor is a device: statx of an instance with the mask STATX_TYPE alone;
//  - O_NONBLOCK, O_NOCTTY of opens (and of F_SETFL, F_GETFL), LOCK_NB of flock, AT_SYMLINK_NOFOLLOW of calls by name,
//    AT_EMPTY_PATH: it adds them for safety;
//  - close-on-exec: at an exec the replay asks each descriptor (F_GETFD) and closes those that are marked;
//  - its question where an instance stands (lseek of 0 from there) before a copy; the end of a copy that is a pipe;
//  - the copy of a descriptor that it keeps for a process that receives it (F_DUPFD_CLOEXEC from 16 on, and its close);
//  - numbers of descriptors: results of opens and dups, and with them which of the dup calls it is;
//  - sync of everything is the syncfs of the replay's root;
//  - asynchronous requests are the calls they stand for, done where they are submitted; opens, closes and calls on
//  names
//    are ops of their own, and requests of a ring in both where they are in one.
// Causes (messages, waits, processes) are not performed again and not compared.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "formats/oplog/async_request.h"
#include "formats/oplog/oplog.h"
#include "tests/programs/support/program_scope.h"

namespace {

using namespace reprise;
using reprise::test::ProgramScope;

constexpr int64_t kAddedOpenFlags = 04000 | 0400;  // O_NONBLOCK, O_NOCTTY
constexpr int64_t kPathOnly = 010000000;           // O_PATH
constexpr int64_t kAddedAtFlags = 0x100 | 0x1000;  // AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH
constexpr int64_t kTypeMask = 1;                   // STATX_TYPE
constexpr int32_t kKeptFrom = 16;                  // least number of what it keeps
constexpr int64_t kGetFl = 3, kSetFl = 4, kNoBlock = 4;

// An op as both recordings should show it.
struct Seen {
    Op op;
    std::vector<int64_t> list;
    std::string file, file2, text;  // paths below the root
    std::string shown;
    bool exec_follows = false;
};

struct TaskOps {
    TaskId id = 0;
    std::vector<Seen> ops;
};

class Side {
public:
    Side(const char* path, std::string root, bool replayed)
        : log_(path), root_(std::move(root)), replayed_(replayed), scope_(log_, root_, {"memfd"}) {
        const Tables& tables = log_.tables();
        find_used_handles();
        for (TaskId id = 1; id < tables.tasks.size(); ++id) {
            // The first process of a recorded replay is the replayer itself.
            if (replayed_ && tables.tasks[id].process == 1) {
                continue;
            }
            TaskOps task{id, collect(id)};
            if (!task.ops.empty()) {
                tasks.push_back(std::move(task));
            }
        }
    }

    std::vector<TaskOps> tasks;  // in the order they first did something

private:
    struct Pending {
        int64_t size = 0;
        OpKind kind = OpKind::pread;
        bool performed = false;
    };

    static bool names_only(const Op& op) { return op.kind == OpKind::open && (op.flags & kPathOnly) != 0; }
    bool own_question(const Op& op) const {
        return replayed_ && op.kind == OpKind::statx && op.file == 0 && op.arg == kTypeMask;
    }

    void find_used_handles() {
        for (TaskId id = 1; id < log_.tables().tasks.size(); ++id) {
            log_.for_each(id, [&](const Op& op, uint64_t) {
                if (op.kind == OpKind::open || op.kind == OpKind::close || own_question(op)) {
                    return;
                }
                if (op.kind == OpKind::syncfs && holds_root(op.handle)) {
                    return;
                }
                used_.insert(op.handle);
                used_.insert(op.handle2);
            });
        }
    }

    // The instance is the root, or a directory above it.
    bool holds_root(HandleId handle) const {
        const std::string path(log_.tables().path(log_.tables().handles[handle].file));
        return !path.empty() && (root_ == path || root_.starts_with(path + "/"));
    }

    std::string below_root(FileId id) const {
        if (id == 0) {
            return "-";
        }
        std::string_view path = log_.tables().path(id);
        if (path == root_) {
            return ".";
        }
        if (path.starts_with(root_ + "/")) {
            path.remove_prefix(root_.size() + 1);
        }
        return std::string(path) + "#" + std::to_string(log_.tables().files[id].generation);
    }

    std::vector<Seen> collect(TaskId id) {
        std::vector<Seen> out;
        std::map<uint32_t, size_t> requests;  // where in `out`
        const Tables& tables = log_.tables();
        log_.for_each(id, [&](const Op& recorded, uint64_t) {
            Op op = recorded;
            const OpInfo& row = info(op.kind);
            if (op.kind == OpKind::exec && op.result >= 0 && !out.empty()) {
                out.back().exec_follows = true;
            }
            if (row.is(Trait::cause) && !(op.kind == OpKind::pipe && op.arg == 4)) {
                return;
            }
            if (op.kind == OpKind::marker || op.kind == OpKind::uring_enter || op.kind == OpKind::aio_reap) {
                return;
            }
            const bool whole = op.kind == OpKind::syncfs && op.handle != 0 && holds_root(op.handle);
            if (!whole && !scope_.has(op)) {
                return;
            }
            if (op.kind == OpKind::touch && !touches) {
                return;
            }
            if (own_question(op)) {
                return;
            }
            const std::pair number(tables.tasks[id].process, op.kind == OpKind::dup ? op.result : op.fd);
            if (replayed_ && op.kind == OpKind::dup && op.arg == 4 && op.fd2 == kKeptFrom) {
                kept_.insert(number);
                return;
            }
            if (op.kind == OpKind::close && kept_.erase(number) != 0) {
                return;
            }
            const bool ends_only = op.kind == OpKind::open || op.kind == OpKind::close;
            if (ends_only && op.handle != 0 && !used_.contains(op.handle) && for_naming(op)) {
                return;
            }
            if (whole) {
                op.handle = 0;
            }
            if (row.is(Trait::reads) && row.is(Trait::writes)) {
                if (is_pipe(op.handle)) {
                    op.handle = 0, op.offset = 0;
                }
                if (is_pipe(op.handle2)) {
                    op.handle2 = 0, op.offset2 = 0;
                }
                while (replayed_ && !out.empty() && out.back().op.kind == OpKind::lseek && out.back().op.arg == 1 &&
                       out.back().op.offset == 0 &&
                       (out.back().op.handle == op.handle || out.back().op.handle == op.handle2)) {
                    out.pop_back();
                }
            }
            std::vector<int64_t> list(op.list.begin(), op.list.end());
            if (const AsyncRequest asked = async_request(op); op.kind == OpKind::uring_submit && asked.is_call()) {
                using Does = AsyncRequest::Does;
                if (asked.does == Does::splice || asked.does == Does::advise_memory) {
                    return;  // the replay makes some of these as calls
                }
                // Its call follows as an op; the replay opens by openat2.
                op.arg = static_cast<int64_t>(asked.does);
                op.request = 0;
            } else if (op.kind == OpKind::uring_submit || op.kind == OpKind::aio_submit) {
                const auto call = as_call(op);
                if (!call) {
                    return;
                }
                requests[op.request] = out.size();
                op = *call;
            }
            if (op.kind == OpKind::uring_complete || op.kind == OpKind::aio_complete) {
                const auto found = requests.find(op.request);
                if (found == requests.end()) {
                    return;
                }
                Seen& asked = out[found->second];
                asked.op.result = op.result;
                asked.shown = reprise::test::op_text(tables, asked.op, root_);
                return;
            }
            op.list = {};
            op.edges = {};
            if (op.kind == OpKind::touch) {
                return touched(op, list, out);
            }
            Seen seen{
                op, std::move(list), below_root(op.file), below_root(op.file2), std::string(tables.strings[op.text]),
                {}};
            op.list = seen.list;
            seen.shown = reprise::test::op_text(tables, op, root_);
            out.push_back(std::move(seen));
        });
        return out;
    }

    // One op per page: how many touches become one op depends on how fast they come.
    void touched(const Op& op, const std::vector<int64_t>& list, std::vector<Seen>& out) const {
        constexpr int64_t kPage = 4096;
        const auto range = [&](int64_t from, int64_t bytes) {
            for (int64_t at = from & ~(kPage - 1); at < from + bytes; at += kPage) {
                Seen seen;
                seen.op = op;
                seen.op.offset = at;
                seen.op.size = kPage;
                seen.shown = reprise::test::op_text(log_.tables(), seen.op, root_);
                out.push_back(std::move(seen));
            }
        };
        int64_t at = op.offset;
        if (list.empty()) {
            range(at, op.size);
        }
        for (size_t i = 0; i + 1 < list.size(); i += 2) {
            at += list[i];
            range(at, list[i + 1]);
            at += list[i + 1];
        }
    }

    bool is_pipe(HandleId handle) const {
        const HandleKind kind = log_.tables().handles[handle].kind;
        return handle != 0 && kind != HandleKind::file && kind != HandleKind::directory && kind != HandleKind::memfd;
    }

    // The instance only names something: O_PATH, or the root for a syncfs.
    bool for_naming(const Op& op) const {
        const HandleRow& row = log_.tables().handles[op.handle];
        return (row.flags & kPathOnly) != 0 || holds_root(op.handle);
    }

    // The call that a replay performs for a request, whose result comes later; nothing where it makes none.
    static std::optional<Op> as_call(const Op& request) {
        Op op = request;
        op.fd = -1;
        op.flags = 0;
        const bool ring = request.kind == OpKind::uring_submit;
        const int64_t code = request.arg;
        op.arg = 0;
        const int64_t own_flags = (request.flags & ~kUringPolled) >> kUringOwnFlags;
        if (ring ? code == 0 || code == 11 : code == 6) {  // a timeout is no call
            return std::nullopt;
        }
        if (ring ? code == 22 || code == 4 : code == 0) {
            op.kind = OpKind::pread;
        } else if (ring ? code == 23 || code == 5 : code == 1) {
            op.kind = OpKind::pwrite;
        } else if (ring ? code == 1 : code == 7) {
            op.kind = OpKind::preadv;
        } else if (ring ? code == 2 : code == 8) {
            op.kind = OpKind::pwritev;
        } else if (ring ? code == 3 && !(own_flags & 1) : code == 2) {
            op.kind = OpKind::fsync;
        } else if (code == 3) {
            op.kind = OpKind::fdatasync;
        } else if (ring && code == 17) {
            op.kind = OpKind::fallocate;
            op.flags = own_flags;
        } else {
            throw std::runtime_error("an asynchronous request of a kind that same_ops does not know");
        }
        return op;
    }

    LogReader log_;
    std::string root_;
    bool replayed_;
    ProgramScope scope_;
    std::set<HandleId> used_{0};
    std::set<std::pair<ProcessId, int64_t>> kept_;  // descriptors that the replay keeps for other processes

public:
    static inline bool touches = true;
};

// One number of A is one number of B, over all tasks.
class Pairs {
public:
    bool same(uint64_t a, uint64_t b) {
        if (a == 0 || b == 0) {
            return a == b;
        }
        return forth_.emplace(a, b).first->second == b && back_.emplace(b, a).first->second == a;
    }

private:
    std::map<uint64_t, uint64_t> forth_, back_;
};

struct Numbers {
    Pairs handles, maps;
};

// Whether `name` is the file or a directory above it. Both end in their generation.
bool leads_to(const std::string& name, const std::string& file) {
    const std::string path = name.substr(0, name.rfind('#'));
    return name == file || path == "." || file.starts_with(path + "/");
}

// Field that differs, or empty.
std::string difference(const Seen& a, const Seen& b, Numbers& numbers) {
    const Op &x = a.op, &y = b.op;
    if (y.kind == OpKind::open && (y.flags & kPathOnly) != 0 && y.result < 0 && x.kind != OpKind::open) {
        return x.result == y.result && leads_to(b.file, a.file) ? "" : "result of a call that was not reached";
    }
    if (x.kind != y.kind) {
        return "kind";
    }
    const OpInfo& row = info(x.kind);
    if (row.has(Field::file) && a.file != b.file) {
        return "file";
    }
    if (row.has(Field::file2) && a.file2 != b.file2) {
        return "file2";
    }
    if (row.has(Field::handle) && !numbers.handles.same(x.handle, y.handle)) {
        return "handle";
    }
    if (row.has(Field::handle2) && !numbers.handles.same(x.handle2, y.handle2)) {
        return "handle2";
    }
    if (row.has(Field::map) && !numbers.maps.same(x.map, y.map)) {
        return "map";
    }
    if (x.offset != y.offset) {
        return "offset";
    }
    if (x.offset2 != y.offset2) {
        return "offset2";
    }
    if (x.size != y.size) {
        return "size";
    }
    if (x.mode != y.mode && x.kind != OpKind::mprotect) {
        return "mode";
    }
    if (row.has(Field::list) && a.list != b.list) {
        return "list";
    }
    // A link that led from the root leads there by a relative path in a replay; what is opened by it tells whether it
    // does.
    const bool absolute = a.op.kind == OpKind::symlink && a.text.starts_with('/') && !b.text.starts_with('/');
    if (row.has(Field::text) && a.text != b.text && !absolute) {
        return "text";
    }
    const bool dup = x.kind == OpKind::dup, lock = x.kind == OpKind::flock;
    if (!dup && (lock ? x.arg | kNoBlock : x.arg) != (lock ? y.arg | kNoBlock : y.arg)) {
        return "arg";
    }
    int64_t added = kFreshMemory;
    if (x.kind == OpKind::open || (x.kind == OpKind::fcntl && x.arg == kSetFl)) {
        added |= kAddedOpenFlags;
    }
    if (x.kind == OpKind::stat || x.kind == OpKind::statx || x.kind == OpKind::access || x.kind == OpKind::utimens ||
        x.kind == OpKind::chown) {
        added |= kAddedAtFlags;
    }
    if ((x.flags & ~added) != (y.flags & ~added)) {
        return "flags";
    }
    const bool number = (x.kind == OpKind::open || dup || x.kind == OpKind::pipe) && x.result >= 0 && y.result >= 0;
    const bool status = x.kind == OpKind::fcntl && x.arg == kGetFl;
    if (!number &&
        (status ? x.result | kAddedOpenFlags : x.result) != (status ? y.result | kAddedOpenFlags : y.result)) {
        return "result";
    }
    return "";
}

// Past what the replay does with descriptors at an exec.
size_t after_exec(const std::vector<Seen>& ops, size_t i) {
    constexpr int64_t kGetFd = 1;
    while (i < ops.size() && ops[i].op.kind == OpKind::fcntl && ops[i].op.arg == kGetFd) {
        const bool ends = ops[i].op.result == 1 && i + 1 < ops.size() && ops[i + 1].op.kind == OpKind::close;
        i += ends ? 2 : 1;
    }
    return i;
}

struct Agreement {
    size_t a = 0, b = 0;  // ops that agree, from the first on, in each
};

// `numbers` takes in the pairs of what agrees.
Agreement agreement(const TaskOps& a, const TaskOps& b, Numbers& numbers) {
    Agreement n;
    while (n.a < a.ops.size() && n.b < b.ops.size()) {
        Numbers before = numbers;
        if (!difference(a.ops[n.a], b.ops[n.b], numbers).empty()) {
            numbers = std::move(before);
            break;
        }
        ++n.b;
        if (a.ops[n.a++].exec_follows) {
            n.b = after_exec(b.ops, n.b);
        }
    }
    return n;
}

int compare(const Side& a, const Side& b) {
    Numbers numbers;
    std::set<TaskId> taken;
    size_t same = 0, all = 0, wrong = 0;
    for (const TaskOps& task : a.tasks) {
        all += task.ops.size();
        const TaskOps* best = nullptr;
        Agreement most;
        const auto whole = [&](const TaskOps& other, const Agreement& n) {
            return n.a == task.ops.size() && n.b == other.ops.size();
        };
        for (const TaskOps& other : b.tasks) {
            if (taken.contains(other.id)) {
                continue;
            }
            Numbers tried = numbers;
            const Agreement n = agreement(task, other, tried);
            if (best == nullptr || n.a > most.a || whole(other, n)) {
                best = &other, most = n;
            }
            if (whole(other, n)) {
                break;
            }
        }
        if (best == nullptr) {
            std::printf("task %u of A has no counterpart: %s\n", task.id, task.ops.front().shown.c_str());
            ++wrong;
            continue;
        }
        taken.insert(best->id);
        agreement(task, *best, numbers);
        same += most.a;
        if (whole(*best, most)) {
            continue;
        }
        ++wrong;
        const auto show = [&](const TaskOps& side, size_t i) {
            return i < side.ops.size() ? side.ops[i].shown.c_str() : "(nothing more)";
        };
        std::string field = "number of ops";
        if (most.a < task.ops.size() && most.b < best->ops.size()) {
            Numbers copy = numbers;
            field = difference(task.ops[most.a], best->ops[most.b], copy);
        }
        std::printf("task %u, op %zu: %s differs\n    A %s\n    B %s\n", task.id, most.a, field.c_str(),
                    show(task, most.a), show(*best, most.b));
        for (size_t i = 1; i < 3; ++i) {
            std::printf("      then A %s\n      then B %s\n", show(task, most.a + i), show(*best, most.b + i));
        }
    }
    for (const TaskOps& other : b.tasks) {
        if (!taken.contains(other.id)) {
            std::printf("task %u of B has no counterpart: %s\n", other.id, other.ops.front().shown.c_str());
            ++wrong;
        }
    }
    std::printf("%zu of %zu ops of %zu tasks are the same\n", same, all, a.tasks.size());
    return wrong == 0 && same == all && all > 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    char* const equals = argc >= 5 ? std::strchr(argv[4], '=') : nullptr;
    const bool no_touch = argc == 6 && std::strcmp(argv[5], "--no-touch") == 0;
    if (equals == nullptr || std::strcmp(argv[3], "--map-root") != 0 || (argc != 5 && !no_touch)) {
        std::fprintf(stderr, "usage: same_ops A B --map-root OLD=NEW [--no-touch]\n");
        return 2;
    }
    Side::touches = !no_touch;
    try {
        const Side a(argv[1], std::string(argv[4], static_cast<size_t>(equals - argv[4])), false);
        const Side b(argv[2], equals + 1, true);
        return compare(a, b);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "same_ops: %s\n", error.what());
        return 3;
    }
}
