// SPDX-License-Identifier: MIT
#include "replay/prepare/lost_data.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "formats/support/range_set.h"
#include "formats/support/unique_fd.h"

namespace reprise {

bool has_lost_data(const Layout& layout, uint32_t entry, const struct stat& status, int directory, const char* name) {
    constexpr uint64_t kPage = RangeSet::kPage;
    const LayoutEntry& file = layout.entries[entry];
    const uint64_t held = static_cast<uint64_t>(status.st_blocks) * 512;
    // Enough blocks, the usual case, need no look at the file.
    if (held + kPage > file.size || layout.hard_links.contains(entry)) {
        return false;
    }
    RangeSet data = layout.data_of(entry, 0, file.size);
    data.clip(file.size);
    if (file.data_changed()) {
        data.remove(file.changed_from, std::min(file.changed_to, file.size));
    }
    const UniqueFd fd(::openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!fd.valid()) {
        return false;
    }
    for (const auto& [from, to] : data.ranges()) {
        const off_t hole = ::lseek(fd.get(), static_cast<off_t>(from), SEEK_HOLE);
        // Less than a page at the end of a range is how far the recording's holes were known.
        if (hole >= 0 && static_cast<uint64_t>(hole) + kPage <= to) {
            return true;
        }
    }
    return false;
}

}  // namespace reprise
