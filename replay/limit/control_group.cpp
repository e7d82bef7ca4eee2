// SPDX-License-Identifier: MIT
#include "replay/limit/control_group.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

#include "formats/support/error.h"

namespace reprise {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "reprise-";

std::string read_text(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream out;
    out << in.rdbuf();
    return out.str();
}

/// 0 or an errno.
int write_text(const fs::path& path, const std::string& text) {
    const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!fd.valid()) {
        return errno;
    }
    return ::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : errno;
}

/// Among the controllers that a file of version 2 lists.
bool lists(const fs::path& path, std::string_view controller) {
    std::istringstream words(read_text(path));
    return std::find(std::istream_iterator<std::string>(words), {}, controller) != std::istream_iterator<std::string>();
}

std::string_view name_of(Controller controller, int version) {
    return controller == Controller::memory ? "memory" : version == 1 ? "blkio" : "io";
}

std::optional<GroupFolder> folder_of_version_2(Controller controller, const OwnGroup& own) {
    const std::string_view name = name_of(controller, 2);
    if (!lists(own.mount / "cgroup.controllers", name)) {
        return std::nullopt;
    }
    for (fs::path at = own.folder;; at = at.parent_path()) {
        if (lists(at / "cgroup.subtree_control", name)) {
            return GroupFolder{2, at, own.folder, false, own.shown};
        }
        if (at == own.mount) {
            return GroupFolder{2, at, own.folder, true, own.shown};
        }
    }
}

/// When a process began, in ticks; 0: there is none.
uint64_t begin_of(pid_t pid) {
    const std::string stat = read_text("/proc/" + std::to_string(pid) + "/stat");
    const size_t name_end = stat.rfind(')');  // the name may hold anything
    if (name_end == std::string::npos) {
        return 0;
    }
    std::istringstream words(stat.substr(name_end + 1));
    std::string word;
    for (int field = 3; field <= 22; ++field) {
        words >> word;
    }
    return std::strtoull(word.c_str(), nullptr, 10);
}

uint64_t own_pid_namespace() {
    struct stat found {};
    return ::stat("/proc/self/ns/pid", &found) == 0 ? found.st_ino : 0;
}

/// "reprise-NAMESPACE-PID-BEGIN-NUMBER": whose it is, and whether that still lives.
std::string new_name() {
    static int number = 0;
    return std::string(kPrefix) + std::to_string(own_pid_namespace()) + "-" + std::to_string(::getpid()) + "-" +
           std::to_string(begin_of(::getpid())) + "-" + std::to_string(number++);
}

bool is_left(const std::string& name) {
    if (!name.starts_with(kPrefix)) {
        return false;
    }
    std::istringstream words(name.substr(kPrefix.size()));
    uint64_t space = 0, begin = 0;
    pid_t pid = 0;
    char dash = 0;
    return words >> space >> dash >> pid >> dash >> begin && space == own_pid_namespace() && begin_of(pid) != begin;
}

/// A process that was killed may take a moment to leave.
int remove_group(const fs::path& path) {
    using namespace std::chrono_literals;
    for (int tries = 0;; ++tries) {
        if (::rmdir(path.c_str()) == 0 || errno == ENOENT) {
            return 0;
        }
        if (errno != EBUSY || tries == 200) {
            return errno;
        }
        std::this_thread::sleep_for(5ms);
    }
}

/// Calls nothing that a signal handler may not. Whoever is in the group worked for this process.
void end_group(const char* path, const char* home) {
    const auto open_processes = [](const char* folder, int flags) {
        std::array<char, PATH_MAX> file{};
        constexpr std::string_view kName = "/cgroup.procs";
        const size_t length = std::strlen(folder);
        if (length + kName.size() >= file.size()) {
            return -1;
        }
        std::memcpy(file.data(), folder, length);
        std::memcpy(file.data() + length, kName.data(), kName.size());
        return ::open(file.data(), flags | O_CLOEXEC);
    };
    if (const int processes = open_processes(home, O_WRONLY); processes >= 0) {
        [[maybe_unused]] const ssize_t moved = ::write(processes, "0", 1);
        ::close(processes);
    }
    constexpr timespec kMoment{0, 5'000'000};
    for (int tries = 0; tries < 200 && ::rmdir(path) != 0 && errno == EBUSY; ++tries) {
        const int processes = open_processes(path, O_RDONLY);
        std::array<char, 4096> text{};
        pid_t pid = 0;
        for (ssize_t i = 0, read = ::read(processes, text.data(), text.size()); i < read; ++i) {
            const char c = text[static_cast<size_t>(i)];
            if (c == '\n' && pid > 0 && pid != ::getpid()) {
                ::kill(pid, SIGKILL);
            }
            pid = c == '\n' ? 0 : pid * 10 + (c - '0');
        }
        ::close(processes);
        ::nanosleep(&kMoment, nullptr);
    }
}

Error refused(const std::string& what, int error) {
    const bool permission = error == EACCES || error == EPERM || error == EROFS;
    return Error(ExitCode::machine, {}, what + ": " + std::strerror(error),
                 permission ? "run as root, or in a delegated group: systemd-run --user --scope -p Delegate=yes "
                              "reprise ...; without one, --direct keeps the page cache out of a replay"
                            : "");
}

std::optional<DiskLimits> limits_left(const GroupFolder& io) {
    return io.own_shown ? limits_left_behind(io.version, io.own, io.parent) : std::nullopt;
}

std::string unread_limits(const GroupFolder& io) {
    return "whether the control group has I/O limits, which would not hold for the run, cannot be read (" +
           io.own.string() + ")";
}

}  // namespace

std::optional<GroupFolder> find_group_folder(Controller controller, const GroupTexts& texts) {
    if (const auto own = own_group_of(name_of(controller, 1), texts)) {
        return GroupFolder{1, own->folder, own->folder, false, own->shown};
    }
    const auto own = own_unified_group(texts);
    return own ? folder_of_version_2(controller, *own) : std::nullopt;
}

size_t remove_left_groups(const fs::path& parent) {
    size_t removed = 0;
    std::error_code error;
    std::vector<fs::path> left;
    for (fs::directory_iterator at(parent, error), end; !error && at != end; at.increment(error)) {
        if (is_left(at->path().filename())) {
            left.push_back(at->path());
        }
    }
    for (const fs::path& path : left) {
        removed += ::rmdir(path.c_str()) == 0 ? 1 : 0;
    }
    return removed;
}

ControlGroup::ControlGroup(std::optional<uint64_t> memory_limit) : name_(new_name()) {
    if (!memory_limit) {
        return;
    }
    const Place& place = add(Controller::memory);
    const std::string limit = std::to_string(*memory_limit);
    const fs::path file = place.path / (place.version == 1 ? "memory.limit_in_bytes" : "memory.max");
    if (const int error = write_text(file, limit); error != 0) {
        remove();
        throw refused("the kernel refuses a memory limit of " + limit + " bytes (" + file.string() + ")", error);
    }
}

ControlGroup::~ControlGroup() { remove(); }

/// With version 2 a process is in one group for all controllers.
std::optional<GroupFolder> ControlGroup::folder_for(Controller controller) const {
    std::optional<GroupFolder> folder = find_group_folder(controller, read_group_texts());
    if (folder && folder->version == 2 && !places_.empty() && places_.front().version == 2) {
        folder->parent = places_.front().path.parent_path();
        folder->enable = !lists(folder->parent / "cgroup.subtree_control", name_of(controller, 2));
    }
    return folder;
}

ControlGroup::Place& ControlGroup::add(Controller controller) {
    const auto folder = folder_for(controller);
    const std::string kind = controller == Controller::memory ? "memory" : "I/O";
    if (!folder) {
        throw Error(ExitCode::machine, {}, "no " + kind + " controller of control groups is mounted here",
                    "mount one: mount -t cgroup2 none /sys/fs/cgroup; without one, --direct keeps the page cache out");
    }
    Place place{controller, folder->version, {}, folder->own, UniqueFd(), {}, {}};
    const std::string controller_name(name_of(controller, folder->version));
    if (folder->enable) {
        const fs::path file = folder->parent / "cgroup.subtree_control";
        if (const int error = write_text(file, "+" + controller_name); error != 0) {
            if (error == EBUSY) {
                throw Error(ExitCode::machine, {},
                            "the control group " + folder->parent.string() +
                                " has processes of its own and cannot hand its " + kind + " controller on",
                            "in a container, run reprise in a group below: see docs/ratios.md; without one, --direct "
                            "keeps the page cache out of a replay");
            }
            throw refused("the " + kind + " controller cannot be handed on (" + file.string() + ")", error);
        }
        place.enabled = file;
    }
    remove_left_groups(folder->parent);
    place.path = folder->parent / name_;
    const EndsHeld held;
    const auto same =
        std::find_if(places_.begin(), places_.end(), [&](const Place& other) { return other.path == place.path; });
    if (same == places_.end() && ::mkdir(place.path.c_str(), 0755) != 0) {
        const int error = errno;
        if (!place.enabled.empty()) {
            write_text(place.enabled, "-" + controller_name);
        }
        throw refused("cannot make the control group " + place.path.string(), error);
    }
    if (same == places_.end()) {
        place.unfinished = UndoneAtEnd(end_group, place.path, place.home);
    }
    place.processes.reset(::open((place.path / "cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
    places_.push_back(std::move(place));
    return places_.back();
}

const ControlGroup::Place* ControlGroup::place(Controller controller) const {
    const auto found =
        std::find_if(places_.begin(), places_.end(), [&](const Place& each) { return each.controller == controller; });
    return found == places_.end() ? nullptr : &*found;
}

bool ControlGroup::leaves(const GroupFolder& io) const {
    return std::any_of(places_.begin(), places_.end(), [&](const Place& each) {
        return each.version == io.version && (io.version == 2 || each.path.parent_path() == io.parent);
    });
}

void ControlGroup::put_limits(const Place& io, dev_t disk, const IoLimits& limits) {
    const std::string number = std::to_string(major(disk)) + ":" + std::to_string(minor(disk));
    const auto put = [&](const char* file, const std::string& text) {
        if (const int error = write_text(io.path / file, text); error != 0) {
            throw refused("the kernel refuses the limit '" + text + "' (" + (io.path / file).string() + ")", error);
        }
    };
    if (io.version == 1) {
        for (const ThrottleFile& file : kThrottleFiles) {
            if (limits.*file.member != 0) {
                put(file.name, number + " " + std::to_string(limits.*file.member));
            }
        }
        return;
    }
    std::string line = number;
    for (const MaxWord& word : kMaxWords) {
        const uint64_t value = limits.*word.member;
        line += " " + std::string(word.name) + "=" + (value == 0 ? "max" : std::to_string(value));
    }
    put("io.max", line);
}

void ControlGroup::keep(const DiskLimits& limits) {
    try {
        for (const auto& [disk, each] : limits) {
            put_limits(*place(Controller::io), disk, each);
        }
        kept_io_ = limits;
    } catch (const Error& error) {
        lost_io_ = "the control group's limit (" + limits_text(limits) + ") does not hold for the run: " + error.what();
    }
}

void ControlGroup::limit_io(const IoLimits& limits, dev_t device) {
    const auto folder = folder_for(Controller::io);
    const Place& io = add(Controller::io);
    if (io.version == 1 && (limits.write_bytes | limits.writes) != 0) {
        throw Error(ExitCode::machine, {},
                    "with control groups of version 1 the kernel writes dirty pages back as the root group: a limit of "
                    "this run's group would not hold for them, and one of the root group would hold for all other "
                    "writes of the machine to that disk",
                    "limit reads only, or boot with version 2 (systemd.unified_cgroup_hierarchy=1)");
    }
    std::optional<DiskLimits> own = limits_left(*folder);
    if (!own) {
        lost_io_ = unread_limits(*folder);
        own.emplace();
    }
    keep(*own);
    const auto here = own->find(device);
    put_limits(io, device, here == own->end() ? limits : stricter(limits, here->second));
}

void ControlGroup::count_io() {
    const auto folder = folder_for(Controller::io);
    if (place(Controller::io) != nullptr || !folder) {
        return;
    }
    const std::optional<DiskLimits> own = limits_left(*folder);
    const bool must = leaves(*folder);  // the group of memory took this process out of its own
    if (!own && must) {
        lost_io_ = unread_limits(*folder);
    }
    if (!own || (folder->enable && (!must || own->empty()))) {
        return;
    }
    try {
        add(Controller::io);
    } catch (const Error& error) {
        // The device's own counter has to do.
        if (must && !own->empty()) {
            lost_io_ =
                "the control group's limit (" + limits_text(*own) + ") does not hold for the run: " + error.what();
        }
        return;
    }
    keep(*own);
    if (!must && !lost_io_.empty()) {
        remove_last();  // and stay where the limits are
        lost_io_.clear();
    }
}

std::optional<uint64_t> ControlGroup::read_bytes(dev_t device) const {
    const Place* const at = place(Controller::io);
    if (at == nullptr) {
        return std::nullopt;
    }
    const bool first = at->version == 1;
    const fs::path file = at->path / (first ? "blkio.throttle.io_service_bytes" : "io.stat");
    const std::string disk = std::to_string(major(device)) + ":" + std::to_string(minor(device));
    return number_in(file, disk + (first ? " Read" : " rbytes="));
}

bool ControlGroup::enter() const {
    return std::all_of(places_.begin(), places_.end(), [](const Place& each) {
        return each.processes.valid() && ::write(each.processes.get(), "0", 1) == 1;
    });
}

void ControlGroup::leave() const {
    for (const Place& each : places_) {
        if (const int error = write_text(each.home / "cgroup.procs", "0"); error != 0) {
            throw refused("cannot leave the control group " + each.path.string(), error);
        }
    }
}

uint64_t ControlGroup::held() const {
    const Place* const at = place(Controller::memory);
    if (at == nullptr) {
        return 0;
    }
    const fs::path stat = at->path / "memory.stat";
    const bool first = at->version == 1;
    return number_in(stat, first ? "total_rss" : "anon").value_or(0) +
           number_in(stat, first ? "total_shmem" : "shmem").value_or(0);
}

std::optional<GroupMemory> ControlGroup::memory() const {
    const Place* const at = place(Controller::memory);
    if (at == nullptr) {
        return std::nullopt;
    }
    const bool first = at->version == 1;
    const auto number = [&](const char* file, const char* of_version_2, std::string_view word = {}) {
        return number_in(at->path / (first ? file : of_version_2), word);
    };
    const std::optional<uint64_t> used = number("memory.usage_in_bytes", "memory.current");
    if (!used) {
        return std::nullopt;
    }
    GroupMemory memory;
    memory.used = *used;
    memory.peak = number("memory.max_usage_in_bytes", "memory.peak").value_or(0);
    memory.reached = number("memory.failcnt", "memory.events", first ? "" : "max").value_or(0);
    memory.killed = number("memory.oom_control", "memory.events", "oom_kill").value_or(0);
    return memory;
}

std::string ControlGroup::remove_last() {
    std::string why;
    const Place& place = places_.back();
    if (const int error = remove_group(place.path); error != 0) {
        why = "the control group " + place.path.string() + " cannot be removed: " + std::strerror(error);
    } else if (!place.enabled.empty()) {
        write_text(place.enabled, "-" + std::string(name_of(place.controller, place.version)));
    }
    places_.pop_back();
    return why;
}

std::string ControlGroup::remove() {
    std::string why;
    while (!places_.empty()) {
        if (std::string failed = remove_last(); !failed.empty()) {
            why = std::move(failed);
        }
    }
    return why;
}

}  // namespace reprise
