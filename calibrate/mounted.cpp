// SPDX-License-Identifier: MIT
#include "calibrate/mounted.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>

#include "formats/support/unique_fd.h"

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

std::optional<dev_t> disk_of(const std::filesystem::path& path) {
    struct stat st {};
    if (const std::string device = mounted_at(path).device;
        !device.starts_with('/') || ::stat(device.c_str(), &st) != 0 || !S_ISBLK(st.st_mode)) {
        return std::nullopt;
    }
    const std::filesystem::path entry =
        "/sys/dev/block/" + std::to_string(major(st.st_rdev)) + ":" + std::to_string(minor(st.st_rdev));
    std::error_code error;
    if (!std::filesystem::exists(entry / "partition", error)) {
        return st.st_rdev;
    }
    std::ifstream in(std::filesystem::canonical(entry, error).parent_path() / "dev");
    unsigned major_number = 0, minor_number = 0;
    char colon = 0;
    return in >> major_number >> colon >> minor_number ? std::optional(makedev(major_number, minor_number))
                                                       : std::nullopt;
}

std::vector<std::string> mounts_below(const std::filesystem::path& path) {
    const std::string above = path == "/" ? "/" : path.string() + "/";
    std::vector<std::string> below;
    std::ifstream in("/proc/self/mountinfo");
    for (std::string line; std::getline(in, line);) {
        std::istringstream words(line);
        std::string id, parent, device, root, place;
        words >> id >> parent >> device >> root >> place;
        if (place = unescaped(place); place.starts_with(above) && place.size() > above.size()) {
            below.push_back(place.substr(above.size()));
        }
    }
    return below;
}

size_t further_devices(const std::filesystem::path& path) {
    const Mounted mounted = mounted_at(path);
    const auto name = std::filesystem::path(mounted.device).filename();
    std::error_code error;
    if (mounted.file_system != "btrfs" || name.empty()) {
        return 0;
    }
    for (std::filesystem::directory_iterator at("/sys/fs/btrfs", error), end; !error && at != end;
         at.increment(error)) {
        std::error_code inside;
        const auto devices = at->path() / "devices";
        if (std::filesystem::exists(std::filesystem::symlink_status(devices / name, inside))) {
            const std::filesystem::directory_iterator all(devices, inside);
            return static_cast<size_t>(std::distance(begin(all), std::filesystem::directory_iterator())) - 1;
        }
    }
    return 0;
}

namespace {

std::optional<DeviceCounter> counter_of(dev_t device) {
    std::ifstream in("/sys/dev/block/" + std::to_string(major(device)) + ":" + std::to_string(minor(device)) + "/stat");
    // Reads, merged, sectors, time; the same of writes. Sectors are 512 bytes, whatever the device's are.
    uint64_t reads = 0, merged = 0, sectors_read = 0, time = 0, writes = 0, merged_too = 0, sectors_written = 0;
    if (!(in >> reads >> merged >> sectors_read >> time >> writes >> merged_too >> sectors_written)) {
        return std::nullopt;
    }
    return DeviceCounter{sectors_read * 512, sectors_written * 512};
}

}  // namespace

std::optional<DeviceCounter> read_device_counter(const std::filesystem::path& path) {
    struct stat st {};
    return path.empty() || ::stat(path.c_str(), &st) != 0 ? std::nullopt : counter_of(st.st_dev);
}

std::optional<DeviceCounter> read_disk_counter(const std::filesystem::path& path) {
    const std::optional<dev_t> disk = disk_of(path);
    return disk ? counter_of(*disk) : std::nullopt;
}

std::optional<DeviceCounter> read_own_counter() {
    std::ifstream in("/proc/self/io");
    std::optional<uint64_t> read, written;
    std::string key;
    for (uint64_t value = 0; in >> key >> value;) {
        if (key == "read_bytes:") {
            read = value;
        } else if (key == "write_bytes:") {
            written = value;
        }
    }
    return read && written ? std::optional<DeviceCounter>({*read, *written}) : std::nullopt;
}

bool drop_names(const std::filesystem::path& path) {
    const UniqueFd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    struct stat st {};
    if (!folder.valid() || ::syncfs(folder.get()) != 0 || ::fstat(folder.get(), &st) != 0) {
        return false;
    }
    constexpr char kNames[] = "2\n";  // dentries and inodes, no data
    const UniqueFd drop(::open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC));
    if (!drop.valid() || ::write(drop.get(), kNames, sizeof kNames - 1) < 0) {
        return false;
    }
    const std::string device =
        "/dev/block/" + std::to_string(major(st.st_dev)) + ":" + std::to_string(minor(st.st_dev));
    const UniqueFd blocks(::open(device.c_str(), O_RDONLY | O_CLOEXEC));
    if (blocks.valid()) {
        (void)::posix_fadvise(blocks.get(), 0, 0, POSIX_FADV_DONTNEED);
    }
    return true;
}

ReadSizes read_sizes(const std::filesystem::path& path) {
    ReadSizes out;
    struct stat st {};
    if (::stat(path.c_str(), &st) != 0) {
        return out;
    }
    const std::string number = std::to_string(major(st.st_dev)) + ":" + std::to_string(minor(st.st_dev));
    const auto value = [](const std::string& file) {
        constexpr int64_t kMost = int64_t{1} << 40;
        std::ifstream in(file);
        int64_t found = 0;
        return in >> found ? std::clamp<int64_t>(found, 0, kMost) : 0;
    };
    std::error_code ignored;
    out.setting = "/sys/class/bdi/" + number + "/read_ahead_kb";
    if (!std::filesystem::exists(out.setting, ignored)) {
        out.setting.clear();
    }
    out.read_ahead = value(out.setting) << 10;
    // A partition has no queue of its own.
    std::string queue = "/sys/dev/block/" + number + "/queue/";
    if (!std::filesystem::exists(queue, ignored)) {
        queue = "/sys/dev/block/" + number + "/../queue/";
    }
    out.request = value(queue + "max_sectors_kb") << 10;
    return out;
}

WriteBackLimits write_back_limits() {
    WriteBackLimits out;
    constexpr int64_t kMost = int64_t{1} << 40;  // of what is read: no product overflows
    const int64_t page = sysconf(_SC_PAGESIZE);
    std::ifstream counters("/proc/vmstat");
    std::string key;
    int64_t value = 0;
    while (counters >> key >> value) {
        if (key == "nr_dirty_background_threshold") {
            out.background_bytes = std::clamp<int64_t>(value, 0, kMost) * page;
        } else if (key == "nr_dirty_threshold") {
            out.most_bytes = std::clamp<int64_t>(value, 0, kMost) * page;
        }
    }
    std::ifstream expire("/proc/sys/vm/dirty_expire_centisecs");
    if (expire >> value) {
        out.expire_ns = std::clamp<int64_t>(value, 0, kMost / 1000) * 10'000'000;
    }
    return out;
}

}  // namespace reprise
