// SPDX-License-Identifier: MIT
#include "replay/run/name_walk.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "calibrate/clock.h"
#include "formats/support/quantity.h"
#include "formats/support/unique_fd.h"

namespace reprise {
namespace {

constexpr int64_t kCached = 20'000;  // ns: a name takes less where it is in memory

/// ns; -1: it is not there.
int64_t look(int directory, const char* path) {
    struct stat st {};
    const int64_t begin = monotonic_ns();
    const bool there = ::fstatat(directory, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
    return there ? monotonic_ns() - begin : -1;
}

}  // namespace

std::optional<int64_t> name_walk_ns(const Plan& plan, FileId file, int root) {
    if (file == 0 || file >= plan.paths.size() || plan.paths[file].relative == nullptr) {
        return std::nullopt;
    }
    const std::string path = plan.paths[file].relative;
    const auto directories = std::count(path.begin(), path.end(), '/');
    const size_t slash = path.rfind('/');
    if (directories < 2) {
        return std::nullopt;
    }
    const UniqueFd parent(::openat(root, path.substr(0, slash).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!parent.valid()) {
        return std::nullopt;
    }
    std::array<int64_t, 5> more{};
    for (int64_t& one : more) {
        const int64_t whole = look(root, path.c_str()), last = look(parent.get(), path.c_str() + slash + 1);
        if (whole < 0 || last < 0) {
            return std::nullopt;
        }
        one = whole - last;
    }
    std::sort(more.begin(), more.end());
    return std::max<int64_t>(more[more.size() / 2] / directories, 0);
}

std::string names_asked_for(const RecordedDoubts& doubts, int64_t walk_ns, int64_t elapsed_ns, double share) {
    const double more = static_cast<double>(walk_ns) * static_cast<double>(doubts.kept_directories);
    if (walk_ns <= kCached || more <= share * static_cast<double>(elapsed_ns)) {
        return {};
    }
    return "no name stays in memory on this file system, each takes " + format_duration(walk_ns) +
           ": a job that names files by whole paths takes up to " + format_duration(static_cast<int64_t>(more)) +
           " more, as the replay keeps directories open";
}

}  // namespace reprise
