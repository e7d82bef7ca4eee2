// SPDX-License-Identifier: MIT
#include "calibrate/mounted.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <fstream>
#include <sstream>

namespace reprise {
namespace {

bool is_octal(const std::string& text, size_t at) {
    for (size_t i = at; i < at + 3; ++i) {
        if (i >= text.size() || text[i] < '0' || text[i] > '7') {
            return false;
        }
    }
    return true;
}

/// mountinfo writes white space and backslashes as \NNN.
std::string unescaped(const std::string& text) {
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\\' && is_octal(text, i + 1)) {
            out += static_cast<char>(std::stoi(text.substr(i + 1, 3), nullptr, 8));
            i += 3;
        } else {
            out += text[i];
        }
    }
    return out;
}

}  // namespace

Mounted mounted_at(const std::filesystem::path& path) {
    Mounted mounted;
    struct statx status {};
    if (::statx(AT_FDCWD, path.c_str(), 0, STATX_BASIC_STATS | STATX_MNT_ID, &status) != 0) {
        return mounted;
    }
    // By the mount's number; where the kernel does not tell it, by the device, and the last one mounted wins.
    const bool numbered = (status.stx_mask & STATX_MNT_ID) != 0;
    const std::string number = std::to_string(status.stx_mnt_id);
    const std::string device = std::to_string(status.stx_dev_major) + ":" + std::to_string(status.stx_dev_minor);
    std::ifstream in("/proc/self/mountinfo");
    for (std::string line; std::getline(in, line);) {
        std::istringstream words(line);
        std::string id, parent, on, skip;
        words >> id >> parent >> on;
        if (numbered ? id != number : on != device) {
            continue;
        }
        while (words >> skip && skip != "-") {
        }
        words >> mounted.file_system >> mounted.device >> mounted.options;
    }
    mounted.device = unescaped(mounted.device);
    return mounted;
}

std::optional<DeviceCounter> read_device_counter(const std::filesystem::path& path) {
    struct stat st {};
    if (path.empty() || ::stat(path.c_str(), &st) != 0) {
        return std::nullopt;
    }
    std::ifstream in("/sys/dev/block/" + std::to_string(major(st.st_dev)) + ":" + std::to_string(minor(st.st_dev)) +
                     "/stat");
    // Reads, merged, sectors, time; the same of writes. Sectors are 512 bytes, whatever the device's are.
    uint64_t reads = 0, merged = 0, sectors_read = 0, time = 0, writes = 0, merged_too = 0, sectors_written = 0;
    if (!(in >> reads >> merged >> sectors_read >> time >> writes >> merged_too >> sectors_written)) {
        return std::nullopt;
    }
    return DeviceCounter{sectors_read * 512, sectors_written * 512};
}

}  // namespace reprise
