// SPDX-License-Identifier: MIT
#include "transform/kernel_paths.h"

#include <algorithm>
#include <iterator>

namespace reprise {
namespace {

// Files and directories of /proc, as of Linux 6.18.
constexpr std::string_view kOfProc[] = {"acpi",
                                        "asound",
                                        "bootconfig",
                                        "buddyinfo",
                                        "bus",
                                        "cgroups",
                                        "cmdline",
                                        "config.gz",
                                        "consoles",
                                        "cpuinfo",
                                        "crypto",
                                        "devices",
                                        "diskstats",
                                        "dma",
                                        "driver",
                                        "dynamic_debug",
                                        "execdomains",
                                        "fb",
                                        "filesystems",
                                        "fs",
                                        "interrupts",
                                        "iomem",
                                        "ioports",
                                        "irq",
                                        "kallsyms",
                                        "kcore",
                                        "key-users",
                                        "keys",
                                        "kmsg",
                                        "kpagecgroup",
                                        "kpagecount",
                                        "kpageflags",
                                        "latency_stats",
                                        "loadavg",
                                        "locks",
                                        "mdstat",
                                        "meminfo",
                                        "misc",
                                        "modules",
                                        "mounts",
                                        "mtrr",
                                        "net",
                                        "pagetypeinfo",
                                        "partitions",
                                        "pressure",
                                        "schedstat",
                                        "scsi",
                                        "slabinfo",
                                        "softirqs",
                                        "stat",
                                        "swaps",
                                        "sys",
                                        "sysrq-trigger",
                                        "sysvipc",
                                        "timer_list",
                                        "tty",
                                        "uptime",
                                        "version",
                                        "version_signature",
                                        "vmallocinfo",
                                        "vmstat",
                                        "zoneinfo",
                                        "allocinfo"};
// Those of a process.
constexpr std::string_view kOfProcess[] = {"arch_status",
                                           "attr",
                                           "autogroup",
                                           "auxv",
                                           "cgroup",
                                           "children",
                                           "clear_refs",
                                           "cmdline",
                                           "comm",
                                           "coredump_filter",
                                           "cpu_resctrl_groups",
                                           "cpuset",
                                           "environ",
                                           "fdinfo",
                                           "gid_map",
                                           "io",
                                           "ksm_merging_pages",
                                           "ksm_stat",
                                           "latency",
                                           "limits",
                                           "loginuid",
                                           "maps",
                                           "mem",
                                           "mountinfo",
                                           "mounts",
                                           "mountstats",
                                           "net",
                                           "ns",
                                           "numa_maps",
                                           "oom_adj",
                                           "oom_score",
                                           "oom_score_adj",
                                           "pagemap",
                                           "patch_state",
                                           "personality",
                                           "projid_map",
                                           "sched",
                                           "schedstat",
                                           "sessionid",
                                           "setgroups",
                                           "smaps",
                                           "smaps_rollup",
                                           "stack",
                                           "stat",
                                           "statm",
                                           "status",
                                           "syscall",
                                           "timens_offsets",
                                           "timers",
                                           "timerslack_ns",
                                           "uid_map",
                                           "wchan"};
constexpr std::string_view kNamespaces[] = {
    "cgroup", "ipc", "mnt", "net", "pid", "pid_for_children", "time", "time_for_children", "user", "uts"};
constexpr std::string_view kProtocols[] = {
    "arp",      "dev",    "icmp",      "icmp6",    "if_inet6",  "igmp",         "igmp6",    "ipv6_route",  "netlink",
    "netstat",  "packet", "protocols", "psched",   "ptype",     "raw",          "raw6",     "route",       "rt_acct",
    "rt_cache", "snmp",   "snmp6",     "sockstat", "sockstat6", "softnet_stat", "stat",     "tcp",         "tcp6",
    "udp",      "udp6",   "udplite",   "udplite6", "unix",      "wireless",     "fib_trie", "fib_triestat"};
// Below these names everything is the kernel's: parameters, not interfaces, pools or formats that people name.
constexpr std::string_view kPlainTrees[] = {
    "/proc/sys/kernel", "/proc/sys/vm",   "/proc/sys/fs",   "/proc/sys/dev", "/proc/sys/user", "/proc/sys/net/core",
    "/proc/bus",        "/proc/irq",      "/proc/pressure", "/proc/sysvipc", "/proc/tty",      "/proc/driver/nvidia",
    "/sys/block",       "/sys/bus",       "/sys/class",     "/sys/dev",      "/sys/devices",   "/sys/firmware",
    "/sys/hypervisor",  "/sys/kernel/mm", "/sys/module",    "/sys/power"};
// Names in them below which people's begin: formats of programs, interfaces.
constexpr std::string_view kPeoples[] = {"binfmt_misc", "net"};

template <size_t N>
bool is_any(std::string_view text, const std::string_view (&list)[N]) {
    return std::find(std::begin(list), std::end(list), text) != std::end(list);
}

bool consists_of(std::string_view name, std::string_view characters) {
    return !name.empty() && name.find_first_not_of(characters) == std::string_view::npos;
}
bool is_number(std::string_view name) { return consists_of(name, "0123456789"); }
bool is_range(std::string_view name) { return consists_of(name, "0123456789abcdef-"); }

// Takes one component after the other off a path.
class Walk {
public:
    explicit Walk(std::string_view path) : path_(path) {}
    std::string_view next() const { return path_.substr(at_, end() - at_); }
    bool over() const { return at_ >= path_.size(); }
    size_t taken() const { return at_; }
    void take() { at_ = std::min(end() + 1, path_.size()); }
    template <class Is>
    bool take_where(Is is) {
        const bool yes = !over() && is(next());
        if (yes) {
            take();
        }
        return yes;
    }
    bool take_if(std::string_view name) {
        return take_where([&](std::string_view each) { return each == name; });
    }

private:
    size_t end() const { return std::min(path_.find('/', at_), path_.size()); }
    std::string_view path_;
    size_t at_ = 0;
};

// Behind /proc/self/ and the like.
void take_process(Walk& walk) {
    while (walk.take_if("task") && walk.take_where(is_number)) {
    }
    if (walk.take_if("cwd") || walk.take_if("root") || walk.take_if("exe")) {
        return;
    }
    if (walk.take_if("fd") || walk.take_if("fdinfo")) {
        walk.take_where(is_number);
    } else if (walk.take_if("map_files")) {
        walk.take_where(is_range);
    } else if (walk.take_if("ns")) {
        walk.take_where([](std::string_view name) { return is_any(name, kNamespaces); });
    } else if (walk.take_if("net")) {
        walk.take_where([](std::string_view name) { return is_any(name, kProtocols); });
    } else {
        walk.take_where([](std::string_view name) { return is_any(name, kOfProcess); });
    }
}

void take_tree(Walk& walk) {
    while (!walk.over() && walk.next() != "..") {
        const bool peoples = is_any(walk.next(), kPeoples);
        walk.take();
        if (peoples) {
            return;
        }
    }
}

}  // namespace

size_t kernels_own(std::string_view path) {
    for (const std::string_view tree : kPlainTrees) {
        if (path.starts_with(tree) && (path.size() == tree.size() || path[tree.size()] == '/')) {
            Walk walk(path);
            for (auto parts = std::count(tree.begin(), tree.end(), '/') + 1; parts > 0; --parts) {
                walk.take();
            }
            take_tree(walk);
            return walk.taken();
        }
    }
    Walk walk(path);
    walk.take();  // what is before the first slash
    if (!path.starts_with('/')) {
        return 0;
    }
    if (walk.take_if("proc")) {
        if (walk.take_if("self") || walk.take_if("thread-self") || walk.take_where(is_number)) {
            take_process(walk);
        } else if (walk.take_if("net")) {
            walk.take_where([](std::string_view name) { return is_any(name, kProtocols); });
        } else {
            walk.take_where([](std::string_view name) { return is_any(name, kOfProc); });
        }
        return walk.taken();
    }
    if (walk.take_if("sys")) {
        if (!walk.take_if("kernel")) {
            walk.take_if("fs");
        }
        return walk.taken();
    }
    if (walk.take_if("dev") && walk.take_if("fd")) {
        walk.take_where(is_number);
        return walk.taken();
    }
    return 0;
}

}  // namespace reprise
