// SPDX-License-Identifier: MIT
#include "replay/prepare/cache_regime.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <iterator>
#include <set>
#include <thread>
#include <utility>

#include "formats/support/unique_fd.h"
#include "replay/plan/paths.h"
#include "replay/prepare/parallel.h"
#include "replay/prepare/residency.h"

namespace reprise {
namespace {

constexpr std::pair<CacheRegime, std::string_view> kNames[] = {{CacheRegime::cold, "cold"},
                                                               {CacheRegime::warm, "warm"},
                                                               {CacheRegime::recorded, "recorded"},
                                                               {CacheRegime::as_is, "as-is"}};
constexpr int kOpenFlags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
constexpr int kDropRounds = 5;
// Of the files whose names are not in memory, those looked at: one of 16, but few. Each brings along what its file
// system reads together, ext4 512 inodes.
constexpr size_t kSampleEach = 16, kMostSampled = 2;
constexpr auto kBetweenRounds = std::chrono::milliseconds(50);

/// -EAGAIN where a part of the path is not in the kernel's cache of names.
int open_by_cached_name(int root, const char* path, int flags) {
    open_how how{};
    how.flags = static_cast<uint64_t>(static_cast<unsigned>(flags));
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_CACHED;
    const long fd = ::syscall(SYS_openat2, root, path, &how, sizeof how);
    return fd >= 0 ? static_cast<int>(fd) : -errno;
}

bool is_absent(int error) {
    return error == -ENOENT || error == -ENOTDIR || error == -ELOOP || error == -EXDEV || error == -ENXIO;
}

/// What of `bytes` that are read the file cannot have on its device; 0 where that is little.
uint64_t holes_in(uint64_t bytes, const struct stat& st) {
    constexpr uint64_t kBlock = 512, kLittle = 64 << 10, kPart = 10;
    const uint64_t there = static_cast<uint64_t>(st.st_blocks) * kBlock;
    const uint64_t without = bytes - std::min(bytes, there);
    return without >= std::max(kLittle, bytes / kPart) ? without : 0;
}

}  // namespace

std::string_view cache_regime_name(CacheRegime regime) {
    const auto* const found =
        std::find_if(std::begin(kNames), std::end(kNames), [&](const auto& row) { return row.first == regime; });
    return found->second;
}

std::optional<CacheRegime> cache_regime_by_name(std::string_view name) {
    const auto* const found =
        std::find_if(std::begin(kNames), std::end(kNames), [&](const auto& row) { return row.second == name; });
    return found == std::end(kNames) ? std::nullopt : std::optional(found->first);
}

std::string_view cache_why_name(CacheChoice::Why why) {
    switch (why) {
        case CacheChoice::Why::asked: return "asked";
        case CacheChoice::Why::fetched: return "fetched";
        case CacheChoice::Why::in_memory: return "in memory";
        case CacheChoice::Why::unknown: return "unknown";
    }
    return "";
}

CacheChoice choose_regime(std::optional<CacheRegime> asked, const RecordedCache& recorded) {
    using Why = CacheChoice::Why;
    if (asked == CacheRegime::recorded && !recorded.pages_known) {
        return {CacheRegime::as_is, asked, Why::unknown};
    }
    if (asked) {
        return {*asked, asked, Why::asked};
    }
    if (!recorded.fetched_bytes || recorded.read_bytes == 0) {
        return {CacheRegime::as_is, asked, Why::unknown};
    }
    const double share = static_cast<double>(*recorded.fetched_bytes) / static_cast<double>(recorded.read_bytes);
    if (share < (recorded.pages_known ? kFetchedShare : kFetchedShareEstimated)) {
        // Not as it is: what prepare leaves in memory depends on how it wrote each file.
        return {recorded.pages_known ? CacheRegime::recorded : CacheRegime::as_is, asked, Why::in_memory};
    }
    const bool cold = !recorded.pages_known || share >= kColdShare;
    return {cold ? CacheRegime::cold : CacheRegime::recorded, asked, Why::fetched};
}

struct CacheKeeper::Opened {
    UniqueFd fd;
    uint64_t size = 0;
};

CacheKeeper::CacheKeeper(int root, CachePlan plan, unsigned threads, Tick tick)
    : root_(root), plan_(std::move(plan)), threads_(threads), tick_(std::move(tick)), states_(plan_.targets.size()) {}

/// Sets what the state says of the file's being there.
CacheKeeper::Opened CacheKeeper::open(size_t target, Name name) {
    FileState& state = states_[target];
    const char* const path = plan_.targets[target].path;
    const auto attempt = [&](int flags) {
        return name == Name::cached ? open_by_cached_name(root_, path, flags)
                                    : open_beneath(root_, path, flags, 0, Links::follow);
    };
    int fd = attempt(kOpenFlags | O_NOATIME);
    if (fd == -EPERM) {
        fd = attempt(kOpenFlags);  // somebody else's
    }
    Opened opened{UniqueFd(fd), 0};
    state.uncached_name = name == Name::cached && fd == -EAGAIN;
    struct stat st {};
    if (fd < 0 || ::fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        state.there = fd < 0 && !is_absent(fd) && !state.uncached_name;
        state.known = !state.there;
        opened.fd.reset();
        return opened;
    }
    opened.size = static_cast<uint64_t>(st.st_size);
    state.there = true;
    state.known = true;
    state.device = st.st_dev;
    state.inode = st.st_ino;
    state.in_memory = lies_in_memory(fd);
    state.bytes = reads_of(target, opened).bytes();
    RangeSet whole;
    whole.add(0, opened.size);
    state.size = whole.bytes();
    state.holes = state.in_memory ? 0 : holes_in(state.bytes, st);
    return opened;
}

RangeSet CacheKeeper::reads_of(size_t target, const Opened& file) const {
    RangeSet reads = plan_.targets[target].reads;
    reads.clip(file.size);
    return reads;
}

uint64_t CacheKeeper::resident(size_t target, const Opened& file, const RangeSet& ranges) {
    const std::optional<uint64_t> bytes = resident_bytes(file.fd.get(), ranges);
    states_[target].known = bytes.has_value();
    return bytes.value_or(0);
}

void CacheKeeper::each(const std::function<void(size_t)>& work) {
    in_turn(
        states_.size(), [](size_t target) { return target; }, work);
}

void CacheKeeper::each_of(const std::vector<size_t>& targets, const std::function<void(size_t)>& work) {
    in_turn(
        targets.size(), [&](size_t i) { return targets[i]; }, work);
}

void CacheKeeper::in_turn(size_t count, const std::function<size_t(size_t)>& target_at,
                          const std::function<void(size_t)>& work) {
    const auto weight = [&](size_t target) { return plan_.targets[target].reads.bytes(); };
    uint64_t total = 0;
    for (size_t i = 0; i < count; ++i) {
        total += weight(target_at(i));
    }
    done_ = 0;
    const auto tick = [&] {
        if (tick_) {
            tick_(std::min(done_.load(), total), total);
        }
    };
    run_parallel(threads_, count, stop_, tick, [&](size_t, size_t piece) {
        const uint64_t before = done_.load();
        const size_t target = target_at(piece);
        work(target);
        // What fills the cache counts as it goes.
        if (done_.load() == before) {
            done_ += weight(target);
        }
    });
}

void CacheKeeper::look(size_t target, Name name, uint64_t FileState::*into) {
    const Opened file = open(target, name);
    states_[target].*into = file.fd.valid() ? resident(target, file, reads_of(target, file)) : 0;
}

void CacheKeeper::drop(size_t target, bool first, bool sync) {
    const Opened file = open(target, Name::any);
    FileState& state = states_[target];
    if (!file.fd.valid()) {
        return;
    }
    const RangeSet reads = reads_of(target, file);
    if (first) {
        state.found = resident(target, file, reads);
    }
    if (sync) {
        ::fdatasync(file.fd.get());
    }
    drop_cached(file.fd.get());
    RangeSet whole;
    whole.add(0, file.size);
    whole.clip(file.size);
    state.left = resident(target, file, whole);
    state.before = state.left == 0 ? 0 : resident(target, file, reads);
}

std::vector<size_t> CacheKeeper::still_cached() const {
    std::vector<size_t> found;
    for (size_t target = 0; target < states_.size(); ++target) {
        if (states_[target].left != 0 && !states_[target].in_memory) {
            found.push_back(target);
        }
    }
    return found;
}

/// Dirty pages stay: one sync of each file system, as one of each file would wait for the device each time.
void CacheKeeper::sync_devices(const std::vector<size_t>& targets) {
    std::set<dev_t> done;
    for (const size_t target : targets) {
        if (!done.insert(states_[target].device).second) {
            continue;
        }
        const Opened file = open(target, Name::any);
        if (file.fd.valid()) {
            ::syncfs(file.fd.get());
        }
    }
}

/// After a mount, or once the caches of the machine were dropped, no file's name is in memory. Then its data is not
/// either, as far as some of the files show, and looking at all of them would only bring the names in.
bool CacheKeeper::names_are_out() {
    each([&](size_t target) { look(target, Name::cached, &FileState::found); });
    if (std::any_of(states_.begin(), states_.end(), [](const FileState& state) { return !state.uncached_name; })) {
        return false;
    }
    const size_t step = std::max(kSampleEach, (states_.size() + kMostSampled - 1) / kMostSampled);
    for (size_t target = 0; target < states_.size(); target += step) {
        drop(target, true, false);
        FileState& state = states_[target];
        const FileState seen = state;
        // Some file systems never find a name by the kernel's cache alone.
        const bool finds = !seen.there || open(target, Name::cached).fd.valid();
        state = seen;
        if (!finds || !seen.known || seen.found != 0) {
            return false;
        }
    }
    return true;
}

void CacheKeeper::make_cold() {
    if (names_are_out()) {
        return;
    }
    each([&](size_t target) { drop(target, true, false); });
    std::vector<size_t> left = still_cached();
    for (int round = 0; round < kDropRounds && !left.empty(); ++round) {
        if (round == 0) {
            sync_devices(left);
        } else {
            std::this_thread::sleep_for(kBetweenRounds);
        }
        each_of(left, [&](size_t target) { drop(target, false, round != 0); });
        left = still_cached();
    }
    std::sort(left.begin(), left.end(), [&](size_t a, size_t b) { return states_[a].left > states_[b].left; });
    report_.stayed_files = left.size();
    for (size_t i = 0; i < left.size(); ++i) {
        report_.stayed_bytes += states_[left[i]].left;
        if (i < CacheReport::kMostStayed) {
            const Opened file = open(left[i], Name::any);
            report_.stayed.push_back(
                {plan_.targets[left[i]].path, states_[left[i]].left, file.fd.valid() ? why_cached(file.fd.get()) : ""});
        }
    }
}

void CacheKeeper::fill(size_t target, const RangeSet& wanted, bool first) {
    if (wanted.empty() && states_[target].uncached_name) {
        return;  // stays out of memory, its name too
    }
    const Opened file = open(target, Name::any);
    FileState& state = states_[target];
    if (!file.fd.valid()) {
        return;
    }
    const RangeSet reads = reads_of(target, file);
    RangeSet want = wanted;
    want.clip(file.size);
    if (first) {
        state.found = resident(target, file, reads);
    }
    for (const auto& [from, to] : want.ranges()) {
        fill_cache(file.fd.get(), from, to, stop_, done_);
    }
    state.before = resident(target, file, reads);
    const uint64_t there = resident(target, file, want);
    state.missing = state.known ? want.bytes() - std::min(want.bytes(), there) : 0;
}

void CacheKeeper::make_warm(RangeSet CacheTarget::*what, bool first) {
    each([&](size_t target) { fill(target, plan_.targets[target].*what, first); });
    // What the kernel has taken back meanwhile.
    std::vector<size_t> again;
    for (size_t target = 0; target < states_.size(); ++target) {
        if (states_[target].missing != 0) {
            again.push_back(target);
        }
    }
    each_of(again, [&](size_t target) { fill(target, plan_.targets[target].*what, false); });
    // Under a limit, what came later has taken the place of what came before.
    each([&](size_t target) { look_filled(target, plan_.targets[target].*what); });
}

/// What of a file is in memory once all files were filled.
void CacheKeeper::look_filled(size_t target, const RangeSet& wanted) {
    FileState& state = states_[target];
    if (!state.there || !state.known || (wanted.empty() && state.before == 0)) {
        return;
    }
    const Opened file = open(target, Name::any);
    if (!file.fd.valid()) {
        return;
    }
    RangeSet want = wanted;
    want.clip(file.size);
    state.before = resident(target, file, reads_of(target, file));
    state.missing = want.bytes() - std::min(want.bytes(), resident(target, file, want));
}

void CacheKeeper::apply(const CacheRequest& request) {
    report_ = {};
    report_.recorded = plan_.recorded;
    report_.choice = choose_regime(request.regime, plan_.recorded);
    report_.dropped_all = request.drop_all;
    states_.assign(states_.size(), FileState{});
    const CacheRegime regime = report_.choice.regime;
    if (request.drop_all && regime != CacheRegime::cold) {
        drop_machine_caches();
    }
    switch (regime) {
        case CacheRegime::cold:
            make_cold();
            if (request.drop_all) {
                // Last, as dropping the files has brought their names into memory.
                drop_machine_caches();
                each([&](size_t target) { look(target, Name::cached, &FileState::before); });
            }
            break;
        case CacheRegime::recorded:
            make_cold();
            make_warm(&CacheTarget::resident, false);
            break;
        case CacheRegime::warm: make_warm(&CacheTarget::reads, true); break;
        case CacheRegime::as_is:
            each([&](size_t target) {
                look(target, Name::cached, &FileState::found);
                states_[target].before = states_[target].found;
            });
            break;
    }
    sum_up();
}

uint64_t CacheKeeper::wanted_bytes() const {
    uint64_t bytes = plan_.around_bytes;
    for (const CacheTarget& target : plan_.targets) {
        bytes += target.reads.bytes();
    }
    return bytes;
}

void CacheKeeper::look_before() {
    each([&](size_t target) { look(target, Name::any, &FileState::before); });
    sum_up();
}

std::optional<double> CacheKeeper::resident_share(size_t most_files) const {
    const size_t step = std::max<size_t>(1, (plan_.targets.size() + most_files - 1) / std::max<size_t>(most_files, 1));
    uint64_t bytes = 0, there = 0;
    bool seen = false;
    for (size_t target = 0; target < plan_.targets.size(); target += step) {
        const CacheTarget& file = plan_.targets[target];
        int fd = open_by_cached_name(root_, file.path, kOpenFlags | O_NOATIME);
        fd = fd == -EPERM ? open_by_cached_name(root_, file.path, kOpenFlags) : fd;
        const UniqueFd opened(std::max(fd, -1));
        RangeSet reads = file.reads;
        if (opened.valid()) {
            struct stat st {};
            if (::fstat(opened.get(), &st) != 0 || !S_ISREG(st.st_mode)) {
                continue;
            }
            reads.clip(static_cast<uint64_t>(st.st_size));
            const std::optional<uint64_t> resident = resident_bytes(opened.get(), reads);
            if (!resident) {
                continue;
            }
            seen = true;
            there += *resident;
        } else if (fd != -EAGAIN) {
            continue;
        }
        bytes += reads.bytes();
    }
    return seen && bytes != 0 ? std::optional(static_cast<double>(there) / static_cast<double>(bytes)) : std::nullopt;
}

/// The run may have made a file shorter or longer, punched or replaced it: what is said of it is said of the file from
/// before.
void CacheKeeper::look_after(size_t target) {
    FileState& state = states_[target];
    const FileState before = state;
    look(target, Name::any, &FileState::after);
    if (before.inode != 0) {
        const uint64_t after = std::min(state.after, before.bytes);
        const bool known = state.known;
        state = before;
        state.there = true;
        state.uncached_name = false;
        state.known = known;
        state.after = after;
        return;
    }
    if (before.uncached_name) {
        // Nobody looked, as that would have brought the name into memory. What the job reads was there, as a rule.
        state.bytes = std::max(state.bytes, plan_.targets[target].reads.bytes());
        state.size = std::max(state.size, state.bytes);
    }
}

void CacheKeeper::look_again() {
    each([&](size_t target) { look_after(target); });
    const uint64_t uncached_names = report_.uncached_names;
    const uint64_t after = sum_up();
    report_.uncached_names = uncached_names;
    if (report_.before) {
        report_.after = after;
    }
}

/// What is known of files, each once: of one with several names, what was read by any of them.
void CacheKeeper::each_once(const std::function<void(const FileState&)>& visit) const {
    const auto inode = [&](uint32_t target) { return std::pair(states_[target].device, states_[target].inode); };
    std::vector<uint32_t> named;
    for (uint32_t target = 0; target < states_.size(); ++target) {
        if (states_[target].there && states_[target].inode != 0) {
            named.push_back(target);
        } else {
            visit(states_[target]);
        }
    }
    std::sort(named.begin(), named.end(), [&](uint32_t a, uint32_t b) { return inode(a) < inode(b); });
    for (size_t i = 0; i < named.size();) {
        FileState file = states_[named[i]];
        for (++i; i < named.size() && inode(named[i]) == inode(named[i - 1]); ++i) {
            const FileState& name = states_[named[i]];
            for (uint64_t FileState::*part :
                 {&FileState::bytes, &FileState::found, &FileState::before, &FileState::after}) {
                file.*part = std::min(file.*part + name.*part, file.size);
            }
            file.holes = std::max(file.holes, name.holes);
            file.missing = std::max(file.missing, name.missing);
            file.known &= name.known;
        }
        visit(file);
    }
}

/// Returns what of the files was in memory after the run.
uint64_t CacheKeeper::sum_up() {
    uint64_t found = 0, before = 0, after = 0;
    report_.files = report_.bytes = report_.unseen = report_.uncached_names = report_.memory_files = 0;
    report_.memory_file_bytes = 0;
    report_.missing_bytes = report_.sparse_files = report_.hole_bytes = 0;
    uint64_t data = plan_.beside_bytes;
    each_once([&](const FileState& state) {
        report_.files += state.there ? 1 : 0;
        report_.bytes += state.there ? state.bytes : 0;
        report_.unseen += state.there && !state.known ? 1 : 0;
        report_.uncached_names += state.uncached_name ? 1 : 0;
        report_.memory_files += state.there && state.in_memory ? 1 : 0;
        report_.memory_file_bytes += state.there && state.in_memory ? state.bytes : 0;
        report_.missing_bytes += state.missing;
        report_.sparse_files += state.holes != 0 ? 1 : 0;
        report_.hole_bytes += state.holes;
        data += state.size;
        found += state.known ? state.found : 0;
        before += state.known ? state.before : 0;
        after += state.known ? state.after : 0;
    });
    report_.data_bytes = plan_.drops ? std::nullopt : std::optional(data);
    const bool any = report_.files == 0 || report_.unseen < report_.files;
    report_.found = any ? std::optional(found) : std::nullopt;
    report_.before = any ? std::optional(before) : std::nullopt;
    return after;
}

}  // namespace reprise
