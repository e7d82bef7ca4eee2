// SPDX-License-Identifier: MIT
#include "replay/run/machine.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string_view>
#include <utility>

#include "calibrate/delay.h"

namespace reprise {
namespace {

/// See MachineFacts::cached_loop; of "/dev/loop3p1", too.
std::string cached_loop(const std::string& device) {
    constexpr std::string_view kLoop = "/dev/loop";
    if (!device.starts_with(kLoop)) {
        return {};
    }
    const size_t end = device.find_first_not_of("0123456789", kLoop.size());
    const std::string name = device.substr(sizeof "/dev", end == std::string::npos ? end : end - sizeof "/dev");
    int direct = 1;
    std::ifstream("/sys/block/" + name + "/loop/dio") >> direct;
    return direct == 0 ? "/dev/" + name : std::string();
}

void describe_root(const std::filesystem::path& root, MachineFacts& facts) {
    Mounted mounted = mounted_at(root);
    struct statx status {};
    const bool asked = ::statx(AT_FDCWD, root.c_str(), 0, STATX_BASIC_STATS, &status) == 0;
    facts.compresses = compression_of(mounted, asked && (status.stx_attributes & STATX_ATTR_COMPRESSED) != 0);
    facts.cached_loop = cached_loop(mounted.device);
    facts.file_system = std::move(mounted.file_system);
    facts.device = std::move(mounted.device);
    facts.mount_options = std::move(mounted.options);
    if (const std::optional<dev_t> disk = disk_of(root)) {
        facts.io_limits = limits_on(*disk, read_group_texts());
    }
    if (const ReadSizes sizes = read_sizes(root); !sizes.setting.empty()) {
        facts.read_ahead = sizes.read_ahead;
    }
    struct statvfs fs {};
    if (statvfs(root.c_str(), &fs) == 0) {
        facts.free_bytes = uint64_t{fs.f_bavail} * fs.f_frsize;
    }
}

}  // namespace

std::string compression_of(const Mounted& mounted, bool marked) {
    // btrfs: compress, compress-force; bcachefs: compression.
    std::istringstream options(mounted.options);
    for (std::string option; std::getline(options, option, ',');) {
        const std::string_view value = std::string_view(option).substr(std::min(option.find('='), option.size()));
        const bool compresses = option.starts_with("compress=") || option.starts_with("compress-force=") ||
                                option.starts_with("compression=") || option == "compress" ||
                                option == "compress-force";
        if (compresses && value != "=no" && value != "=none") {
            return option;
        }
    }
    if (mounted.file_system == "zfs") {
        return "ZFS, unless its compression is off";  // a property, not an option of the mount
    }
    return marked ? "chattr +c" : "";
}

std::string raise_task_limits() {
    std::string text = "raise the limits on processes and memory (";
    const auto limit = [&](const char* name, int which) {
        rlimit value{};
        getrlimit(static_cast<__rlimit_resource>(which), &value);
        text += std::string(name) + " is " +
                (value.rlim_cur == RLIM_INFINITY ? std::string("unlimited") : std::to_string(value.rlim_cur)) + ", ";
    };
    limit("ulimit -u", RLIMIT_NPROC);
    limit("ulimit -v, in bytes,", RLIMIT_AS);
    for (const char* const path : {"/proc/sys/kernel/threads-max", "/proc/sys/vm/max_map_count"}) {
        std::string value = "unknown";
        std::ifstream(path) >> value;
        text += std::string(path + sizeof "/proc/sys") + " is " + value + ", ";
    }
    return text + "a container may set pids.max), or replay a part of the log";
}

MachineFacts machine_facts(const std::filesystem::path& root) {
    MachineFacts facts;
    utsname names{};
    if (uname(&names) == 0) {
        facts.host = names.nodename;
        facts.kernel = std::string(names.sysname) + " " + names.release + " " + names.machine;
    }
    std::ifstream in("/proc/cpuinfo");
    std::string line;
    while (std::getline(in, line)) {
        if (line.starts_with("model name")) {
            const size_t colon = line.find(": ");
            facts.cpu = colon == std::string::npos ? "" : line.substr(colon + 2);
            break;
        }
    }
    facts.cpus = usable_cpus();
    facts.memory_bytes = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    if (!root.empty()) {
        describe_root(root, facts);
    }
    return facts;
}

}  // namespace reprise
