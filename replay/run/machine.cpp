// SPDX-License-Identifier: MIT
#include "replay/run/machine.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "calibrate/delay.h"

namespace reprise {
namespace {

/// Fills in the mount that has the device number of `root` (proc(5), mountinfo). The last one mounted wins.
void find_mount(const std::filesystem::path& root, MachineFacts& facts) {
    struct stat st {};
    if (stat(root.c_str(), &st) != 0) {
        return;
    }
    const std::string wanted = std::to_string(major(st.st_dev)) + ":" + std::to_string(minor(st.st_dev));
    std::ifstream in("/proc/self/mountinfo");
    std::string line;
    while (std::getline(in, line)) {
        std::istringstream words(line);
        std::string id, parent, device, skip;
        words >> id >> parent >> device;
        if (device != wanted) {
            continue;
        }
        while (words >> skip && skip != "-") {
        }
        words >> facts.file_system >> facts.device >> facts.mount_options;
    }
    struct statvfs fs {};
    if (statvfs(root.c_str(), &fs) == 0) {
        facts.free_bytes = uint64_t{fs.f_bavail} * fs.f_frsize;
    }
}

}  // namespace

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

std::optional<DeviceCounter> read_device_counter(const std::filesystem::path& path) {
    struct stat st {};
    if (path.empty() || stat(path.c_str(), &st) != 0) {
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
        find_mount(root, facts);
    }
    return facts;
}

}  // namespace reprise
