// SPDX-License-Identifier: MIT
#include "calibrate/storage_model.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "calibrate/clock.h"
#include "calibrate/in_flight.h"
#include "calibrate/mounted.h"
#include "calibrate/other_io.h"
#include "calibrate/own_folder.h"
#include "calibrate/steady_rate.h"
#include "calibrate/storage_folder.h"
#include "formats/support/error.h"
#include "formats/support/percentile.h"
#include "formats/support/unique_fd.h"

namespace reprise {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMost = int64_t{4} << 20;

class Measurement : StorageFolder {
public:
    Measurement(const OwnFolder& own, const StorageOptions& options) : StorageFolder(options, own.path()) {}
    StorageModel run() {
        StorageModel m;
        utsname name{};
        uname(&name);
        m.host = name.nodename;
        m.measured_unix_s = std::time(nullptr);
        step("calls");
        m.call_ns = median(timed([] { syscall(SYS_getppid); }, 2'000));
        step("names");
        measure_names(*this, m);
        step("small writes");
        measure_small_writes(*this, m);
        step("writing");
        m.write_bytes_per_s = measure_write_rate(*this);
        const WriteBackLimits dirty = write_back_limits();
        m.dirty_background_bytes = dirty.background_bytes;
        m.dirty_bytes = dirty.most_bytes;
        m.dirty_expire_ns = dirty.expire_ns > 0 ? dirty.expire_ns : m.dirty_expire_ns;
        step("scattered writes");
        m.writes_per_s = measure_scattered_writes(*this);
        step("writes past the page cache");
        m.direct_write = measure_direct_writes(*this);
        step("fsync");
        m.fsync_ns = measure_sync(*this, false);
        m.fsync_longer_ns = measure_sync(*this, true);
        step("cached reads");
        m.cached_bytes_per_s = cached();
        const int64_t cached_ns = cached_small();
        open_cold();
        const auto device_before = read_device_counter(folder_);
        limits(m);
        for (const int64_t bytes :
             {int64_t{4} << 10, int64_t{16} << 10, int64_t{64} << 10, int64_t{256} << 10, int64_t{1} << 20, kMost}) {
            step("reads of one thread");
            m.read.push_back({bytes, reading(bytes, pause(m, bytes))});
        }
        m.cold = from_storage(m, cached_ns, device_before, read_device_counter(folder_));
        // Interpolation wants a longer read to take longer.
        for (size_t i = 1; i < m.read.size(); ++i) {
            m.read[i].ns = std::max(m.read[i].ns, m.read[i - 1].ns);
        }
        double one = 0, most = 0;
        for (const int threads : {1, 4, 16}) {
            step("small reads of many threads");
            const double rate = throughput(int64_t{16} << 10, threads);
            one = threads == 1 ? rate : one;
            most = std::max(most, rate);
        }
        m.parallelism = std::max(1, static_cast<int>(std::lround(most / std::max(one, 1.0))));
        step("read-ahead");
        m.inline_reads = reads_inline();
        measure_in_flight(*this, options_, data(), m, [this](const char* what) { step(what); });
        others_.next(OtherIo::now(folder_));
        m.disturbed = others_.share();
        return m;
    }

private:
    /// What the storage allows in the long run, of bytes and of requests. A limit that is set (a control group, a cloud
    /// volume) lets some through at once after a pause: a short measurement would find more than there is.
    void limits(StorageModel& m) {
        constexpr int64_t kLarge = int64_t{1} << 20;
        int best = 1;
        double most = 0;
        for (const int threads : {1, 4, 8}) {
            step("large reads of many threads");
            if (const double rate = throughput(kLarge, threads); rate > most * 1.05) {
                most = rate;
                best = threads;
            }
        }
        step("large reads for longer");
        const SteadyRate large = steady(kLarge, best);
        m.read_bytes_per_s = large.per_second * static_cast<double>(kLarge);
        step("small reads for longer");
        constexpr int kMany = 16;
        const SteadyRate small = steady(int64_t{4} << 10, kMany);
        m.reads_per_s = small.per_second;
        m.read_burst_ns = std::max(large.burst_ns, small.burst_ns);
        m.read_step_ns = (large.burst_ns >= small.burst_ns ? large : small).step_ns;
        const ReadSizes sizes = read_sizes(folder_);
        m.read_ahead_bytes = sizes.read_ahead;
        m.request_bytes = sizes.request > 0 ? sizes.request : std::max(sizes.read_ahead, int64_t{kAlign});
    }

    void step(const char* what) {
        constexpr int kSteps = 23 + kInFlightSteps;
        check();
        if (options_.progress) {
            options_.progress(what, std::min(done_, kSteps), kSteps);
        }
        ++done_;
        others_.next(OtherIo::now(folder_));
    }
    double cached() const {
        const UniqueFd file(::open(data().c_str(), O_RDONLY | O_CLOEXEC));
        const StorageBuffer buffer(size_t{1} << 20);
        // One piece after the other, as what is read is seldom still in the processor's own caches.
        const int64_t pieces = cached_pieces();
        int64_t at = 0;
        const auto next = [&] { (void)!::pread(file.get(), buffer.data, size_t{1} << 20, (at++ % pieces) << 20); };
        for (int64_t i = 0; i < pieces; ++i) {
            next();
        }
        const int64_t ns = median(timed(next, 300));
        return double{1 << 20} * 1e9 / static_cast<double>(std::max<int64_t>(ns, 1));
    }

    /// Past the page cache by O_DIRECT; where the file system refuses that, by dropping the cache before each read.
    void open_cold() {
        const UniqueFd direct(::open(data().c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
        const StorageBuffer buffer(kAlign);
        direct_ = direct.valid() && ::pread(direct.get(), buffer.data, kAlign, 0) == static_cast<ssize_t>(kAlign);
    }
    /// Whether the reads were fetched: by what the device counted meanwhile; where there is no device to ask, by the
    /// time they took. A file system in memory takes O_DIRECT and serves it from memory.
    bool from_storage(const StorageModel& m, int64_t cached_ns, const std::optional<DeviceCounter>& before,
                      const std::optional<DeviceCounter>& after) const {
        if (before && after) {
            return after->read_bytes - before->read_bytes >= read_.load() / 2;
        }
        constexpr int64_t kFaster = 3;  // a device takes longer than that many copies out of memory
        return m.read.front().ns > kFaster * cached_ns;
    }
    /// Of a read of 4 KiB that the page cache serves, anywhere in what cached() has read.
    int64_t cached_small() const {
        const UniqueFd file(::open(data().c_str(), O_RDONLY | O_CLOEXEC));
        const StorageBuffer buffer(kAlign);
        std::mt19937_64 random(1);
        const auto places = static_cast<uint64_t>(cached_pieces()) << 8;
        const auto read = [&] {
            (void)!::pread(file.get(), buffer.data, kAlign, static_cast<off_t>((random() % places) * kAlign));
        };
        timed(read, 300);
        return median(timed(read, 1'000));
    }
    /// Whether what is to be read ahead is there when the call that asks for it returns.
    bool reads_inline() const {
        constexpr int64_t kPiece = int64_t{128} << 10;
        constexpr int kTries = 64;
        constexpr double kMostly = 0.9;
        const UniqueFd file(::open(data().c_str(), O_RDONLY | O_CLOEXEC));
        const auto length = static_cast<size_t>(std::max<int64_t>(options_.file_bytes, kPiece));
        void* const map = ::mmap(nullptr, length, PROT_READ, MAP_SHARED, file.get(), 0);
        if (!file.valid() || map == MAP_FAILED) {
            return false;
        }
        std::mt19937_64 random(7);
        int there = 0;
        for (int i = 0; i < kTries; ++i) {
            const auto at = static_cast<int64_t>(random() % (length / kPiece)) * kPiece;
            std::array<unsigned char, kPiece / kAlign> pages{};
            ::posix_fadvise(file.get(), at, kPiece, POSIX_FADV_DONTNEED);
            const bool asked = ::readahead(file.get(), at, kPiece) == 0 &&
                               ::mincore(static_cast<char*>(map) + at, kPiece, pages.data()) == 0;
            there +=
                asked && std::all_of(pages.begin(), pages.end(), [](unsigned char page) { return (page & 1) != 0; })
                    ? 1
                    : 0;
        }
        ::munmap(map, length);
        return there >= kMostly * kTries;
    }
    /// MiB
    int64_t cached_pieces() const { return std::clamp<int64_t>(options_.file_bytes >> 20, 1, 64); }

    int open_data() const {
        const int fd = ::open(data().c_str(), O_RDONLY | O_CLOEXEC | (direct_ ? O_DIRECT : 0));
        if (fd < 0) {
            failed("cannot read a file");
        }
        if (!direct_) {
            ::posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
        }
        return fd;
    }
    void read_once(int fd, char* buffer, int64_t bytes, std::mt19937_64& random) const {
        const int64_t places = std::max<int64_t>(options_.file_bytes / bytes, 1);
        const int64_t at = static_cast<int64_t>(random() % static_cast<uint64_t>(places)) * bytes;
        if (!direct_) {
            ::posix_fadvise(fd, at, bytes, POSIX_FADV_DONTNEED);
        }
        if (::pread(fd, buffer, static_cast<size_t>(bytes), at) < 0) {
            failed("cannot read a file");
        }
        read_.fetch_add(static_cast<uint64_t>(bytes), std::memory_order_relaxed);
    }

    /// ns between reads at which limits do not show: half of what they let through. 0 where there are none, or where it
    /// would take too long.
    static int64_t pause(const StorageModel& m, int64_t bytes) {
        constexpr double kMost = 0.1;  // s
        const double least = std::max(1.0 / m.reads_per_s, static_cast<double>(bytes) / m.read_bytes_per_s);
        return m.read_burst_ns == 0 || 2 * least > kMost ? 0 : static_cast<int64_t>(2e9 * least);
    }
    int64_t reading(int64_t bytes, int64_t pause_ns) const {
        const UniqueFd file(open_data());
        const StorageBuffer buffer(static_cast<size_t>(bytes));
        std::mt19937_64 random(static_cast<uint64_t>(bytes));
        std::vector<int64_t> times;
        timed(
            [&] {
                std::this_thread::sleep_for(std::chrono::nanoseconds(pause_ns));
                const int64_t before = monotonic_ns();
                read_once(file.get(), buffer.data, bytes, random);
                times.push_back(monotonic_ns() - before);
            },
            2'000);
        return median(std::move(times));
    }

    /// The first error of any thread.
    static void in_threads(int threads, const std::function<void(int)>& work) {
        std::vector<std::thread> running;
        running.reserve(static_cast<size_t>(threads));
        std::mutex one_at_a_time;
        std::exception_ptr error;
        for (int i = 0; i < threads; ++i) {
            running.emplace_back([&, i] {
                try {
                    work(i);
                } catch (const Error&) {
                    const std::lock_guard lock(one_at_a_time);
                    error = error ? error : std::current_exception();
                }
            });
        }
        for (std::thread& one : running) {
            one.join();
        }
        if (error) {
            std::rethrow_exception(error);
        }
    }

    /// Bytes per second of several threads together.
    double throughput(int64_t bytes, int threads) const {
        std::atomic<int64_t> moved{0};
        const int64_t begin = monotonic_ns();
        in_threads(threads, [&](int i) {
            const UniqueFd file(open_data());
            const StorageBuffer buffer(static_cast<size_t>(bytes));
            std::mt19937_64 random(static_cast<uint64_t>(i) + 99);
            do {
                read_once(file.get(), buffer.data, bytes, random);
                moved += bytes;
            } while (monotonic_ns() - begin < options_.each_ns);
        });
        return static_cast<double>(moved.load()) * 1e9 / static_cast<double>(monotonic_ns() - begin);
    }

    /// After a pause. A limit that saves up what a pause does not use is asked again after longer ones, until they save
    /// no more.
    SteadyRate steady(int64_t bytes, int threads) const {
        constexpr int64_t kLongest = 4'000'000'000;  // ns
        for (int64_t rests = options_.each_ns / 2;; rests *= 4) {
            std::this_thread::sleep_for(std::chrono::nanoseconds(rests));
            const SteadyRate found = steady_after(bytes, threads);
            if (found.step_ns > 0 || found.burst_ns < rests / 4 * 3 || 4 * rests > kLongest) {
                return found;
            }
        }
    }
    /// By counting the reads that were over at each time.
    SteadyRate steady_after(int64_t bytes, int threads) const {
        constexpr int64_t kStep = 5'000'000;  // ns
        for (int64_t lasts = std::max<int64_t>(5 * options_.each_ns, 8 * kStep);; lasts *= 4) {
            std::vector<std::atomic<int64_t>> done(static_cast<size_t>(lasts / kStep));
            const int64_t begin = monotonic_ns();
            in_threads(threads, [&](int i) {
                const UniqueFd file(open_data());
                const StorageBuffer buffer(static_cast<size_t>(bytes));
                std::mt19937_64 random(static_cast<uint64_t>(i) + 199);
                for (;;) {
                    read_once(file.get(), buffer.data, bytes, random);
                    const auto at = static_cast<size_t>((monotonic_ns() - begin) / kStep);
                    if (at >= done.size() || (options_.stop != nullptr && options_.stop->load())) {
                        return;
                    }
                    done[at].fetch_add(1, std::memory_order_relaxed);
                }
            });
            check();
            // Not one read in all that time: a stall, or a slow storage. A rate needs some.
            constexpr int64_t kLongest = 60'000'000'000;  // ns
            if (lasts > kLongest || std::any_of(done.begin(), done.end(), [](const auto& n) { return n.load() > 0; })) {
                return steady_rate(std::vector<int64_t>(done.begin(), done.end()), kStep);
            }
        }
    }
    bool direct_ = false;
    mutable std::atomic<uint64_t> read_{0};  // bytes, of reads that ought to be served by the storage
    int done_ = 0;
    OtherIo others_;
};

}  // namespace

namespace {

int64_t between(const std::vector<SizedLatency>& sizes, int64_t bytes) {
    if (sizes.empty()) {
        return 0;
    }
    if (bytes <= sizes.front().bytes || sizes.size() == 1) {
        return sizes.front().ns;
    }
    size_t upper = 1;
    while (upper + 1 < sizes.size() && sizes[upper].bytes < bytes) {
        ++upper;
    }
    const SizedLatency &a = sizes[upper - 1], &b = sizes[upper];
    const double share = static_cast<double>(bytes - a.bytes) / static_cast<double>(b.bytes - a.bytes);
    return a.ns + static_cast<int64_t>(share * static_cast<double>(b.ns - a.ns));
}

}  // namespace

int64_t StorageModel::read_ns(int64_t bytes) const { return between(read, bytes); }
int64_t StorageModel::write_ns(int64_t bytes) const { return between(write, bytes); }

int64_t StorageModel::direct_write_ns(int64_t bytes) const { return between(direct_write, bytes); }

StorageModel measure_storage(const fs::path& directory, const StorageOptions& options) {
    std::error_code ignored;
    const auto room = fs::space(directory, ignored);
    if (!ignored && room.available < static_cast<uintmax_t>(2 * options.file_bytes)) {
        throw machine_error(escape_line(directory.string()) + ": has only " + std::to_string(room.available >> 20) +
                                " MiB free, and the measurement wants " + std::to_string(options.file_bytes >> 19) +
                                " MiB",
                            "free space there, or name another directory");
    }
    const OwnFolder own(directory);
    StorageModel model = Measurement(own, options).run();
    model.directory = fs::absolute(directory, ignored).string();
    Mounted mounted = mounted_at(directory);
    model.file_system = std::move(mounted.file_system);
    model.device = std::move(mounted.device);
    model.cold = model.cold && model.file_system != "tmpfs" && model.file_system != "ramfs";
    return model;
}

}  // namespace reprise
