// SPDX-License-Identifier: MIT
#include "formats/export/fio_order.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "formats/support/error.h"
#include "formats/support/quantity.h"

namespace reprise {
namespace {

/// Keeps the best two of different tasks, the better one first.
template <class Use, class Better>
void keep(std::array<Use, 2>& best, const Use& use, const Better& better) {
    const auto own = std::find_if(best.begin(), best.end(), [&](const Use& each) { return each.task == use.task; });
    if (own != best.end()) {
        own->time = better(use.time, own->time) ? use.time : own->time;
    } else if (best[1].task == 0 || better(use.time, best[1].time)) {
        best[1] = use;
    }
    if (best[0].task == 0 || (best[1].task != 0 && better(best[1].time, best[0].time))) {
        std::swap(best[0], best[1]);
    }
}

}  // namespace

void FioOrder::see(uint32_t name, TaskId task, bool writes, int64_t begin) {
    if (name >= uses_.size()) {
        uses_.resize(std::max<size_t>(name + 1, uses_.size() * 2));
    }
    if (writes) {
        keep(uses_[name].first_writes, {task, begin}, std::less<>());
    } else {
        keep(uses_[name].last_reads, {task, begin}, std::greater<>());
    }
}

bool FioOrder::Uses::passes() const {
    for (const Use& write : first_writes) {
        for (const Use& read : last_reads) {
            if (write.task != 0 && read.task != 0 && write.task != read.task && write.time < read.time) {
                return true;
            }
        }
    }
    return false;
}

std::string FioOrder::note(const FioNames& names) const {
    uint64_t files = 0;
    uint32_t first = 0;
    for (uint32_t name = 0; name < uses_.size(); ++name) {
        if (uses_[name].passes() && files++ == 0) {
            first = name;
        }
    }
    if (files == 0) {
        return {};
    }
    return counted(files, "file") + (files == 1 ? " is" : " are") + " read by a task after another wrote " +
           (files == 1 ? "it (" : "them (") + escape_line(names.text(first)) + (files == 1 ? "" : ", ...") +
           "): fio's jobs do not wait for each other, so on slower storage a read may come before the write";
}

}  // namespace reprise
