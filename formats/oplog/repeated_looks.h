// SPDX-License-Identifier: MIT
// Looks at files that a task takes again after a sleep: `while read(status) != "done": sleep(0.05)`.
#pragma once

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "formats/oplog/op_filter.h"
#include "formats/oplog/oplog.h"

namespace reprise {

/// A sleep between two looks, or the wait for a child that sleeps (`while [ ! -e stop ]; do sleep 1; done`).
struct LookSleep {
    uint64_t op = 0;
    TaskId child = 0;
    int64_t ns = 0;
    uint64_t since = 0;            ///< op, one past the look before it
    uint64_t first = 0, last = 0;  ///< ops of the look after it
    bool follows = false;          ///< nothing but looks since the sleep before
};

struct LooksOfTask {
    std::vector<LookSleep> sleeps;
    std::vector<std::pair<uint64_t, uint64_t>> repeated;  ///< looks taken again, by sleep: first and last op, ascending

    /// Without children that do more than sleep. Error (machine) as LogReader::decode.
    void drop_other_children(const LogReader& log, const OpSelector& keep);
    bool has(uint64_t op) const {
        const auto after = std::upper_bound(repeated.begin(), repeated.end(), std::pair{op, UINT64_MAX});
        return after != repeated.begin() && std::prev(after)->second >= op;
    }
};

/// The sleeps of a task that does nothing else that counts: no operation that `keep` keeps, no message, no child.
/// Empty: it does more, or never sleeps.
std::vector<uint64_t> sleeps_alone(const LogReader& log, const OpSelector& keep, TaskId task);

/// Makes a name that must not be there: who asks for a lock that is a file, a directory or a link.
bool makes_new_name(const OpBlock& block, size_t i);

/// What such a look finds is a matter of timing, unless it is an error of the storage.
inline bool is_found_or_not(int64_t result) { return result >= 0 || result == -ENOENT; }

/// A look is a few calls that read or ask for attributes and change nothing, as does one that should make a name which
/// is there; the last of those makes it. Those after the sleep must be those before it: a job that sleeps in place of
/// an accelerator reads elsewhere each time.
class RepeatedLooks {
public:
    explicit RepeatedLooks(const Tables& tables) : tables_(tables) {}

    /// The ops of one task, in their order.
    void see(const OpBlock& block, size_t i);
    /// The next op is of another task.
    LooksOfTask take();

private:
    static constexpr size_t kMostLookOps = 16;  // of a look
    struct Call {
        uint64_t op = 0;
        OpKind kind = OpKind::compute;
        StringId path = 0;
        int64_t offset = 0;
        /// The same call once more.
        bool operator==(const Call& other) const {
            return kind == other.kind && path == other.path && offset == other.offset;
        }
    };
    using Calls = std::array<Call, kMostLookOps>;
    void slept(uint64_t op, int64_t ns, TaskId child = 0);
    void works();
    void forget();
    void end_look();

    const Tables& tables_;
    LooksOfTask of_task_;
    Calls before_, after_, recent_;                // the last before the last sleep, the first and the last after it
    size_t before_calls_ = 0;                      // of `before_`
    size_t calls_ = 0, opens_ = 0;                 // looks since the last sleep or other op; opens among them
    std::array<HandleId, kMostLookOps> opened_{};  // by the last of those
    bool only_looks_ = true, asleep_ = false;
    TaskId child_ = 0;      // made last
    int64_t computed_ = 0;  // ns, since the last call or sleep
    LookSleep current_;     // the last sleep
};

}  // namespace reprise
