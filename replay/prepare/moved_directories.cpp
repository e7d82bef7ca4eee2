// SPDX-License-Identifier: MIT
#include "replay/prepare/moved_directories.h"

#include <fcntl.h>

#include <cerrno>
#include <utility>

#include "formats/support/path.h"
#include "formats/support/unique_fd.h"
#include "replay/content/content.h"
#include "replay/plan/paths.h"

namespace reprise {
namespace {

constexpr uint32_t kRoot = LayoutEntry::kRoot;
constexpr std::string_view kWaiting = ".reprise-moved-";

class MovedFinder {
public:
    MovedFinder(const Layout& layout, int root) : layout_(layout), root_(root) {}

    MovedDirectories run() {
        if (layout_.directory_renames.empty()) {
            return {};
        }
        list_renamed();
        // Who finds another's place sends that one to look for its own.
        for (bool again = true; again;) {
            again = false;
            for (const auto& [index, names] : renamed_) {
                if (!out_.places.contains(index) && is_elsewhere(index)) {
                    again = take_place(index, names) || again;
                }
            }
        }
        return std::move(out_);
    }

private:
    /// What holds others comes first.
    void list_renamed() {
        std::vector<uint32_t> directories = {kRoot};
        for (size_t i = 0; i < directories.size(); ++i) {
            const auto [begin, end] = layout_.children_of(directories[i]);
            for (const uint32_t* child = begin; child != end; ++child) {
                const LayoutEntry& entry = layout_.entries[*child];
                if (entry.type != FileType::directory) {
                    continue;
                }
                directories.push_back(*child);
                if (auto names = later_names(entry.path); entry.initial && !names.empty()) {
                    renamed_.emplace_back(*child, std::move(names));
                }
            }
        }
    }

    /// The names that the log's renames, in their order, give to what has this one at first.
    std::vector<std::string> later_names(std::string at) const {
        std::vector<std::string> names;
        for (const DirectoryRename& rename : layout_.directory_renames) {
            if (is_or_lies_below(at, rename.from)) {
                at = rename.to + at.substr(rename.from.size());
                names.push_back(at);
            }
        }
        return names;
    }

    /// Not in its directory, wherever that lies, or there by a name that is another's.
    bool is_elsewhere(uint32_t index) const {
        const std::string place = place_of(index);
        return out_.taken.contains(place) || look(place) == -ENOENT;
    }

    std::string place_of(uint32_t index) const {
        std::string below;
        for (uint32_t at = index; at != kRoot; at = layout_.entries[at].parent) {
            if (const auto moved = out_.places.find(at); moved != out_.places.end()) {
                return moved->second + below;
            }
            below = "/" + std::string(layout_.entries[at].name()) + below;
        }
        return below.substr(1);
    }

    /// 0: there is a directory of that name. -errno otherwise.
    int look(const std::string& place) const {
        const UniqueFd fd(open_beneath(root_, place.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW, 0, Links::refuse));
        return fd.valid() ? 0 : fd.get();
    }

    bool take_place(uint32_t index, const std::vector<std::string>& names) {
        const std::string& own = layout_.entries[index].path;
        for (auto name = names.rbegin(); name != names.rend(); ++name) {
            for (const std::string& place : {*name, waiting_name(*name, own)}) {
                if (!out_.taken.contains(place) && look(place) == 0) {
                    out_.taken.emplace(place, index);
                    out_.places.emplace(index, place);
                    out_.renames_back.push_back({place, own});
                    return true;
                }
            }
        }
        return false;
    }

    const Layout& layout_;
    const int root_;
    std::vector<std::pair<uint32_t, std::vector<std::string>>> renamed_;  // with their later names
    MovedDirectories out_;
};

}  // namespace

MovedDirectories find_moved(const Layout& layout, int root) { return MovedFinder(layout, root).run(); }

std::string waiting_name(std::string_view from, std::string_view to) {
    const size_t slash = from.rfind('/');
    return std::string(from.substr(0, slash == std::string_view::npos ? 0 : slash + 1)) + std::string(kWaiting) +
           std::to_string(content_seed(to));
}

bool is_waiting(std::string_view path) { return path.substr(path.rfind('/') + 1).starts_with(kWaiting); }

}  // namespace reprise
