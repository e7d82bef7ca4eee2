// SPDX-License-Identifier: MIT
#include "capture/context_records.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "capture/rank_variables.h"
#include "capture/stacked_disks.h"
#include "formats/support/error.h"

namespace reprise {
namespace {

namespace fs = std::filesystem;

int64_t clock_ns(clockid_t clock) {
    timespec now{};
    ::clock_gettime(clock, &now);
    return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

std::string read_text(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream out;
    out << in.rdbuf();
    return out.str();
}

std::string first_line(const fs::path& path) {
    const std::string text = read_text(path);
    return text.substr(0, text.find('\n'));
}

// "some ... total=N" in microseconds.
uint64_t total_of(const std::string& text, const char* kind) {
    const size_t line = text.find(kind);
    if (line == std::string::npos) {
        return 0;
    }
    const size_t at = text.find("total=", line);
    return at == std::string::npos ? 0 : std::strtoull(text.c_str() + at + 6, nullptr, 10);
}

void put_text(Bytes& record, raw_part_type type, uint16_t which, std::string_view text) {
    text = text.substr(0, 16384);
    raw_part part{};
    part.type = static_cast<raw_u16>(type);
    part.size = static_cast<raw_u16>(sizeof part + (text.size() + 7) / 8 * 8);
    part.which = which;
    part.length = static_cast<raw_u16>(text.size());
    put_fixed(record, part);
    record.insert(record.end(), text.begin(), text.end());
    record.resize((record.size() + 7) / 8 * 8, 0);
}

std::string link_target(const fs::path& path) {
    std::error_code error;
    const fs::path target = fs::read_symlink(path, error);
    return error ? std::string() : target.string();
}

std::vector<pid_t> numbers_in(const fs::path& folder) {
    std::vector<pid_t> found;
    std::error_code error;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
        const std::string name = at->path().filename();
        if (std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isdigit(c) != 0; })) {
            found.push_back(static_cast<pid_t>(std::strtol(name.c_str(), nullptr, 10)));
        }
    }
    return found;
}

// 0 where the process is gone.
pid_t parent_of(pid_t pid) {
    const std::string stat = read_text("/proc/" + std::to_string(pid) + "/stat");
    const size_t name_end = stat.rfind(')');  // the name may hold anything
    if (name_end == std::string::npos || name_end + 4 > stat.size()) {
        return 0;
    }
    return static_cast<pid_t>(std::strtol(stat.c_str() + name_end + 4, nullptr, 10));
}

// Valid UTF-8 for JSON, whatever the bytes are.
std::string printable_text(const std::string& text) {
    return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}
std::string safe(const std::string& text) { return nlohmann::json::parse(printable_text(text)).get<std::string>(); }

/// Types of the mounted file systems by "MAJOR:MINOR" of their devices.
nlohmann::ordered_json file_systems() {
    constexpr size_t kMost = 500;  // a machine of many containers has thousands
    auto types = nlohmann::ordered_json::object();
    std::istringstream lines(read_text("/proc/self/mountinfo"));
    for (std::string line; std::getline(lines, line) && types.size() < kMost;) {
        std::istringstream words(line);  // "25 1 254:0 / /mnt rw - ext4 /dev/x rw": fields before the dash vary
        std::string word, device;
        words >> word >> word >> device;
        while (words >> word && word != "-") {
        }
        if (words >> word) {
            types[device] = safe(word);
        }
    }
    return types;
}

/// Of the devices of `file_systems`, how far the kernel reads ahead there, bytes.
nlohmann::ordered_json read_ahead(const nlohmann::ordered_json& file_systems) {
    auto bytes = nlohmann::ordered_json::object();
    for (const auto& [device, type] : file_systems.items()) {
        int64_t kib = 0;
        if (std::istringstream(read_text("/sys/class/bdi/" + device + "/read_ahead_kb")) >> kib) {
            bytes[device] = kib << 10;
        }
    }
    return bytes;
}

/// Of those devices, those whose driver takes what it is given at once: such requests have no tracepoints. What stands
/// on other disks (dm, md) is counted there. Names, by device number.
nlohmann::ordered_json uncounted_devices(const nlohmann::ordered_json& file_systems) {
    namespace fs = std::filesystem;
    auto names = nlohmann::ordered_json::object();
    for (const auto& [device, type] : file_systems.items()) {
        std::error_code error;
        fs::path disk = fs::canonical("/sys/dev/block/" + device, error);
        if (error) {
            continue;
        }
        if (fs::exists(disk / "partition", error)) {
            disk = disk.parent_path();
        }
        const fs::path slaves = disk / "slaves";
        const bool stands_on_others = fs::is_directory(slaves, error) && !fs::is_empty(slaves, error);
        if (!fs::exists(disk / "mq", error) && !stands_on_others) {
            names[device] = safe(disk.filename().native());
        }
    }
    return names;
}

/// How far the wall clock may be off, ns, as the kernel says where something keeps it (NTP, PTP).
std::optional<int64_t> clock_error_ns() {
    timex state{};
    if (::adjtimex(&state) < 0 || (state.status & STA_UNSYNC) != 0) {
        return std::nullopt;
    }
    return int64_t{state.maxerror} * 1000;
}

}  // namespace

uint64_t monotonic_ns() { return static_cast<uint64_t>(clock_ns(CLOCK_MONOTONIC)); }

std::string capture_meta(const CaptureOptions& options, const BpfPrograms& programs, const std::string& user,
                         long more_per_call_ns, const RecorderCosts& costs) {
    utsname system{};
    ::uname(&system);
    nlohmann::ordered_json meta;
    meta["raw_version"] = RAW_VERSION;
    meta["tool"] = "reprise " + options.version;
    meta["host"] = safe(system.nodename);
    meta["kernel"] = safe(std::string(system.sysname) + " " + system.release + " " + system.machine);
    meta["mode"] = !options.command.empty() ? "command" : options.pid != 0 ? "pid" : "cgroup";
    std::vector<std::string> argv = options.command;
    if (options.pid != 0) {
        const std::string line = read_text("/proc/" + std::to_string(options.pid) + "/cmdline");
        for (size_t at = 0; at < line.size(); at = line.find('\0', at) + 1) {
            argv.emplace_back(line.c_str() + at);
        }
    }
    std::string command;
    size_t bytes = 0;
    auto words = nlohmann::ordered_json::array();
    for (const std::string& word : argv) {
        bytes += word.size() * 2 + 8;
        if (bytes > 20000) {
            meta["argv_cut"] = true;
            break;
        }
        words.emplace_back(safe(word));
        command += (command.empty() ? "" : " ") + word;
    }
    if (!options.cgroup.empty()) {
        command = "cgroup " + options.cgroup.string();
    }
    meta["command"] = safe(command);
    meta["argv"] = words;
    std::error_code ignored;
    meta["directory"] = safe(options.pid != 0 ? link_target("/proc/" + std::to_string(options.pid) + "/cwd")
                                              : fs::current_path(ignored).string());
    meta["user"] = safe(user);
    // Where the job may come upon the recording itself: an archive of its own directory, say.
    std::vector<std::string> own;
    std::error_code unknown;
    for (const fs::path& path : options.own_files()) {
        const fs::path place = fs::weakly_canonical(path, unknown);
        own.push_back(safe(place.empty() ? path.string() : place.string()));
    }
    meta["own_files"] = own;
    meta["clock"] = {
        {"monotonic", monotonic_ns()}, {"realtime", clock_ns(CLOCK_REALTIME)}, {"boottime", clock_ns(CLOCK_BOOTTIME)}};
    meta["boot"] = safe(first_line("/proc/sys/kernel/random/boot_id"));
    if (const std::optional<int64_t> error = clock_error_ns()) {
        meta["clock_error_ns"] = *error;
    }
    auto groups = nlohmann::ordered_json::array({"calls"});
    for (const CaptureGroup& group : capture_groups()) {
        if (std::find(options.without.begin(), options.without.end(), group.name) == options.without.end()) {
            groups.push_back(group.name);
        }
    }
    meta["groups"] = groups;
    meta["programs"] = programs.raw_because().empty() ? "tp_btf" : "raw_tracepoint";
    meta["absent"] = programs.absent();
    const std::string around = first_line("/sys/kernel/debug/fault_around_bytes");
    meta["file_systems"] = file_systems();
    meta["read_ahead_bytes"] = read_ahead(meta["file_systems"]);
    meta["uncounted_devices"] = uncounted_devices(meta["file_systems"]);
    meta["stacked_disks"] = stacked_disks();
    if (options.mapped_uses) {
        meta["mapped_uses"] = "yes";
    }
    meta["fault_around_bytes"] =
        around.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(std::stoull(around));
    meta["more_per_call_ns"] = more_per_call_ns;
    meta["costs"] = costs.json();
    meta["boot_id"] = first_line("/proc/sys/kernel/random/boot_id");
    meta["page_bytes"] = ::sysconf(_SC_PAGESIZE);
    meta["cpus"] = ::sysconf(_SC_NPROCESSORS_ONLN);
    if (!options.profile.empty()) {
        meta["profile"] = options.profile;
    }
    meta["ring_bytes"] = programs.ring_bytes();
    return meta.dump();
}

void clock_record(RawWriter& to) {
    raw_clock clock{};
    clock.realtime = clock_ns(CLOCK_REALTIME);
    clock.boottime = clock_ns(CLOCK_BOOTTIME);
    user_record(to, RAW_CLOCK, clock);
}

void pressure_record(RawWriter& to) {
    const std::string cpu = read_text("/proc/pressure/cpu");
    if (cpu.empty()) {
        return;
    }
    const std::string memory = read_text("/proc/pressure/memory");
    const std::string io = read_text("/proc/pressure/io");
    raw_pressure record{};
    record.cpu_some = total_of(cpu, "some");
    record.cpu_full = total_of(cpu, "full");
    record.memory_some = total_of(memory, "some");
    record.memory_full = total_of(memory, "full");
    record.io_some = total_of(io, "some");
    record.io_full = total_of(io, "full");
    user_record(to, RAW_PRESSURE, record);
}

std::string umask_of(const fs::path& process) {
    constexpr std::string_view kField = "\nUmask:\t";
    const std::string status = read_text(process / "status");
    const size_t at = status.find(kField);
    return at == std::string::npos ? std::string() : status.substr(at + kField.size(), 4);
}

void seed_task_record(RawWriter& to, pid_t pid, const std::vector<std::string>* command) {
    const fs::path process = "/proc/" + std::to_string(pid);
    for (const pid_t tid : numbers_in(process / "task")) {
        raw_seed_task task{};
        task.head.type = RAW_SEED_TASK;
        task.head.pid = static_cast<raw_u32>(pid);
        task.head.tid = static_cast<raw_u32>(tid);
        task.head.time = monotonic_ns();
        task.parent_pid = static_cast<raw_u32>(parent_of(pid));
        const std::string name = first_line(process / "task" / std::to_string(tid) / "comm");
        std::memcpy(task.name, name.data(), std::min(name.size(), sizeof task.name - 1));
        Bytes record;
        put_fixed(record, task);
        if (tid == pid) {
            std::string line;
            if (command) {
                for (const std::string& word : *command) {
                    line += (line.empty() ? "" : " ") + word;
                }
            } else {
                line = read_text(process / "cmdline");
                while (!line.empty() && line.back() == '\0') {
                    line.pop_back();
                }
                std::replace(line.begin(), line.end(), '\0', ' ');
            }
            put_text(record, RAW_PART_STRING, 0, line);
            put_text(record, RAW_PART_STRING, 1, link_target(process / "cwd"));
            put_text(record, RAW_PART_STRING, 2, link_target(process / "root"));
            put_text(record, RAW_PART_STRING, 3, link_target(process / "ns" / "mnt"));
            put_text(record, RAW_PART_STRING, 4, umask_of(process));
        }
        const auto size = static_cast<raw_u16>(record.size());
        std::memcpy(record.data() + offsetof(raw_head, size), &size, sizeof size);
        to.append(record);
    }
}

void rank_record(RawWriter& to, pid_t pid) {
    const std::optional<RankVariables> found = rank_of_process(pid);
    if (!found) {
        return;
    }
    raw_rank rank{};
    rank.head.type = RAW_RANK;
    rank.head.pid = static_cast<raw_u32>(pid);
    rank.head.time = monotonic_ns();
    rank.rank = found->rank;
    rank.world = found->world;
    rank.local = found->local.value_or(RAW_NO_RANK);
    Bytes record;
    put_fixed(record, rank);
    put_text(record, RAW_PART_STRING, 0, found->source);
    put_text(record, RAW_PART_STRING, 1, found->job.substr(0, 256));
    const auto size = static_cast<raw_u16>(record.size());
    std::memcpy(record.data() + offsetof(raw_head, size), &size, sizeof size);
    to.append(record);
}

std::vector<pid_t> process_tree(pid_t root) {
    if (::access(("/proc/" + std::to_string(root)).c_str(), F_OK) != 0) {
        throw machine_error("there is no process " + std::to_string(root), "name one that runs with --pid");
    }
    std::multimap<pid_t, pid_t> children;
    for (const pid_t pid : numbers_in("/proc")) {
        children.emplace(parent_of(pid), pid);
    }
    std::vector<pid_t> tree = {root};
    for (size_t i = 0; i < tree.size(); ++i) {
        const auto [first, last] = children.equal_range(tree[i]);
        for (auto at = first; at != last; ++at) {
            tree.push_back(at->second);
        }
    }
    return tree;
}

std::vector<pid_t> processes_of_cgroup(const fs::path& cgroup) {
    if (::access((cgroup / "cgroup.procs").c_str(), R_OK) != 0) {
        throw usage_error(escape_line(cgroup.string()) + " is no control group (it has no cgroup.procs)",
                          "name a folder below /sys/fs/cgroup");
    }
    std::vector<pid_t> found;
    const auto take = [&](const fs::path& folder) {
        std::ifstream in(folder / "cgroup.procs");
        for (pid_t pid = 0; in >> pid;) {
            if (pid != ::getpid()) {
                found.push_back(pid);
            }
        }
    };
    take(cgroup);
    std::error_code error;
    for (fs::recursive_directory_iterator at(cgroup, error), end; !error && at != end; at.increment(error)) {
        if (at->is_directory(error)) {
            take(at->path());
        }
    }
    return found;
}

std::vector<CgroupId> cgroup_ids(const fs::path& cgroup) {
    struct stat stat {};
    if (::stat(cgroup.c_str(), &stat) != 0) {
        throw usage_error("there is no " + escape_line(cgroup.string()), "name a folder below /sys/fs/cgroup");
    }
    // Its mount says which controllers the hierarchy has, /proc/self/cgroup which number those have.
    const std::string device = std::to_string(major(stat.st_dev)) + ":" + std::to_string(minor(stat.st_dev));
    std::string controllers;
    std::ifstream mounts("/proc/self/mountinfo");
    for (std::string line; std::getline(mounts, line);) {
        std::istringstream words(line);
        std::string id, parent, at;
        words >> id >> parent >> at;
        if (at != device) {
            continue;
        }
        controllers = "," + line.substr(line.rfind(' ') + 1) + ",";
        if (line.find(" - cgroup2 ") != std::string::npos) {
            controllers = "cgroup2";
        }
    }
    uint32_t hierarchy = 0;
    bool known = controllers == "cgroup2";
    std::ifstream groups("/proc/self/cgroup");
    for (std::string line; !known && std::getline(groups, line);) {
        const size_t first = line.find(':'), second = line.find(':', first + 1);
        const std::string names = line.substr(first + 1, second - first - 1);
        if (names.empty() || controllers.find("," + names + ",") == std::string::npos) {
            continue;
        }
        hierarchy = static_cast<uint32_t>(std::strtoul(line.c_str(), nullptr, 10));
        known = true;
    }
    if (!known) {
        throw usage_error(escape_line(cgroup.string()) + " belongs to no hierarchy of control groups",
                          "name a folder below /sys/fs/cgroup");
    }
    std::vector<CgroupId> found = {{stat.st_ino, hierarchy}};
    std::error_code error;
    for (fs::recursive_directory_iterator at(cgroup, error), end; !error && at != end; at.increment(error)) {
        if (at->is_directory(error) && ::stat(at->path().c_str(), &stat) == 0) {
            found.push_back({stat.st_ino, hierarchy});
        }
    }
    return found;
}

}  // namespace reprise
