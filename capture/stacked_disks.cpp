// SPDX-License-Identifier: MIT
#include "capture/stacked_disks.h"

#include <sys/sysmacros.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

namespace reprise {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostStacked = 500;  // the meta record has room for so many

std::string line_of(const fs::path& file) {
    std::ifstream in(file);
    std::string line;
    std::getline(in, line);
    return line;
}

/// "254:0" of a device's directory in /sys, a partition's disk for a partition; empty where there is none.
std::string disk_at(const fs::path& entry) {
    std::error_code error;
    fs::path device = fs::canonical(entry, error);
    if (error) {
        return {};
    }
    if (fs::exists(device / "partition", error)) {
        device = device.parent_path();
    }
    return line_of(device / "dev");
}

}  // namespace

StackedDisks stacked_disks(const fs::path& sys, const std::function<std::optional<dev_t>(const fs::path&)>& device_of) {
    StackedDisks out;
    std::error_code error;
    for (fs::directory_iterator at(sys / "block", error), end; !error && at != end; at.increment(error)) {
        std::set<std::string> below;
        std::error_code none;
        for (fs::directory_iterator slave(at->path() / "slaves", none), last; !none && slave != last;
             slave.increment(none)) {
            below.insert(disk_at(slave->path()));
        }
        if (fs::path file = line_of(at->path() / "loop" / "backing_file"); !file.empty()) {
            constexpr std::string_view kDeleted = " (deleted)";
            std::optional<dev_t> device = device_of(file);
            if (!device && file.native().ends_with(kDeleted)) {
                device = device_of(file.parent_path());
            }
            if (device) {
                below.insert(disk_at(sys / "dev" / "block" /
                                     (std::to_string(major(*device)) + ":" + std::to_string(minor(*device)))));
            }
        }
        const std::string own = line_of(at->path() / "dev");
        below.erase("");
        below.erase(own);
        if (!own.empty() && !below.empty() && out.size() < kMostStacked) {
            out[own] = {below.begin(), below.end()};
        }
    }
    return out;
}

}  // namespace reprise
