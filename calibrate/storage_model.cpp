// SPDX-License-Identifier: MIT
#include "calibrate/storage_model.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <utility>

#include "calibrate/clock.h"
#include "calibrate/mounted.h"
#include "formats/support/error.h"
#include "formats/support/percentile.h"
#include "formats/support/unique_fd.h"

namespace reprise {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMost = int64_t{4} << 20;
constexpr size_t kAlign = 4096;

struct Buffer {
    explicit Buffer(size_t bytes) : data(static_cast<char*>(std::aligned_alloc(kAlign, bytes))) {
        if (data == nullptr) {
            throw machine_error("no memory for a buffer of " + std::to_string(bytes) + " bytes", "free memory");
        }
        std::mt19937_64 random(bytes);
        for (size_t i = 0; i + 8 <= bytes; i += 8) {
            const uint64_t value = random();
            std::memcpy(data + i, &value, 8);
        }
    }
    ~Buffer() { std::free(data); }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    char* data;
};

class Measurement {
public:
    Measurement(const fs::path& directory, const StorageOptions& options)
        : options_(options), folder_((directory / "reprise-storage-XXXXXX").string()) {
        if (mkdtemp(folder_.data()) == nullptr) {
            const std::string why = std::strerror(errno);
            folder_.clear();
            throw machine_error(escape_line(directory.string()) + ": no folder can be made there: " + why,
                                "name a writable directory on that storage system");
        }
    }
    ~Measurement() {
        std::error_code ignored;
        if (!folder_.empty()) {
            fs::remove_all(folder_, ignored);
        }
    }
    Measurement(const Measurement&) = delete;
    Measurement& operator=(const Measurement&) = delete;

    StorageModel run() {
        StorageModel m;
        utsname name{};
        uname(&name);
        m.host = name.nodename;
        m.measured_unix_s = std::time(nullptr);
        step("calls");
        m.call_ns = median(timed([] { syscall(SYS_getppid); }, 2'000));
        step("names");
        names(m);
        step("writing");
        m.write_bytes_per_s = writing(m);
        step("fsync");
        m.fsync_ns = syncing();
        step("cached reads");
        m.cached_bytes_per_s = cached();
        const int64_t cached_ns = cached_small();
        open_cold();
        const auto device_before = read_device_counter(folder_);
        for (const int64_t bytes :
             {int64_t{4} << 10, int64_t{16} << 10, int64_t{64} << 10, int64_t{256} << 10, int64_t{1} << 20, kMost}) {
            step("reads of one thread");
            m.read.push_back({bytes, reading(bytes)});
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
        for (const int threads : {1, 4, 8}) {
            step("large reads of many threads");
            m.read_bytes_per_s = std::max(m.read_bytes_per_s, throughput(int64_t{1} << 20, threads));
        }
        return m;
    }

private:
    void step(const char* what) {
        constexpr int kSteps = 17;
        check();
        if (options_.progress) {
            options_.progress(what, std::min(done_, kSteps), kSteps);
        }
        ++done_;
    }
    void check() const {
        if (options_.stop != nullptr && options_.stop->load()) {
            throw machine_error("the measurement was interrupted", "run it again");
        }
    }
    [[noreturn]] void failed(const char* what) const {
        throw machine_error(escape_line(folder_) + ": " + what + ": " + std::strerror(errno),
                            "free space there, or name another directory");
    }

    /// Times of up to `most` calls, for as long as a measurement may take.
    template <class Body>
    std::vector<int64_t> timed(Body body, size_t most) const {
        std::vector<int64_t> times;
        const int64_t begin = monotonic_ns();
        while (times.size() < most && (times.size() < 5 || monotonic_ns() - begin < options_.each_ns)) {
            const int64_t before = monotonic_ns();
            body();
            times.push_back(monotonic_ns() - before);
            if (times.size() % 64 == 0) {
                check();
            }
        }
        return times;
    }

    void names(StorageModel& m) const {
        int made = 0;
        const auto path = [&](int i) { return folder_ + "/name" + std::to_string(i); };
        m.make_ns = median(timed(
            [&] {
                const UniqueFd file(::open(path(made).c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
                if (!file.valid()) {
                    failed("cannot create a file");
                }
                ++made;
            },
            500));
        int at = 0;
        m.open_ns = median(timed([&] { ::close(::open(path(at++ % made).c_str(), O_RDONLY | O_CLOEXEC)); }, 1'000));
        m.open_ns = std::max<int64_t>(m.open_ns - m.call_ns, 0);  // less the close
        struct stat st {};
        m.stat_ns = median(timed([&] { (void)::stat(path(at++ % made).c_str(), &st); }, 1'000));
        int removed = 0;
        m.remove_ns = median(timed([&] { ::unlink(path(removed++).c_str()); }, static_cast<size_t>(made)));
    }

    double writing(const StorageModel&) const {
        const UniqueFd file(::open(data().c_str(), O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0600));
        if (file.get() < 0) {
            failed("cannot create a file");
        }
        const Buffer buffer(size_t{1} << 20);
        const int64_t begin = monotonic_ns();
        for (int64_t at = 0; at < options_.file_bytes; at += 1 << 20) {
            if (::pwrite(file.get(), buffer.data, size_t{1} << 20, at) != 1 << 20) {
                failed("cannot write a file");
            }
            check();
        }
        if (::fsync(file.get()) != 0) {
            failed("cannot sync a file");
        }
        return static_cast<double>(options_.file_bytes) * 1e9 / static_cast<double>(monotonic_ns() - begin);
    }

    int64_t syncing() const {
        const UniqueFd file(::open((folder_ + "/sync").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
        const Buffer buffer(kAlign);
        return median(timed(
            [&] {
                if (::pwrite(file.get(), buffer.data, kAlign, 0) < 0 || ::fsync(file.get()) != 0) {
                    failed("cannot sync a file");
                }
            },
            100));
    }

    double cached() const {
        const UniqueFd file(::open(data().c_str(), O_RDONLY | O_CLOEXEC));
        const Buffer buffer(size_t{1} << 20);
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
        const Buffer buffer(kAlign);
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
        const Buffer buffer(kAlign);
        std::mt19937_64 random(1);
        const auto places = static_cast<uint64_t>(cached_pieces()) << 8;
        const auto read = [&] {
            (void)!::pread(file.get(), buffer.data, kAlign, static_cast<off_t>((random() % places) * kAlign));
        };
        timed(read, 300);
        return median(timed(read, 1'000));
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

    int64_t reading(int64_t bytes) const {
        const UniqueFd file(open_data());
        const Buffer buffer(static_cast<size_t>(bytes));
        std::mt19937_64 random(static_cast<uint64_t>(bytes));
        return median(timed([&] { read_once(file.get(), buffer.data, bytes, random); }, 2'000));
    }

    /// Bytes per second of several threads together.
    double throughput(int64_t bytes, int threads) const {
        std::atomic<int64_t> moved{0};
        std::vector<std::thread> running;
        running.reserve(static_cast<size_t>(threads));
        const int64_t begin = monotonic_ns();
        for (int i = 0; i < threads; ++i) {
            running.emplace_back([&, i] {
                try {
                    const UniqueFd file(open_data());
                    const Buffer buffer(static_cast<size_t>(bytes));
                    std::mt19937_64 random(static_cast<uint64_t>(i) + 99);
                    do {
                        read_once(file.get(), buffer.data, bytes, random);
                        moved += bytes;
                    } while (monotonic_ns() - begin < options_.each_ns);
                } catch (const Error&) {
                    // What the others moved still counts; none moved anything where the file cannot be read.
                }
            });
        }
        for (std::thread& one : running) {
            one.join();
        }
        if (moved.load() == 0) {
            failed("cannot read a file");
        }
        return static_cast<double>(moved.load()) * 1e9 / static_cast<double>(monotonic_ns() - begin);
    }

    std::string data() const { return folder_ + "/data"; }

    const StorageOptions& options_;
    std::string folder_;
    bool direct_ = false;
    mutable std::atomic<uint64_t> read_{0};  // bytes, of reads that ought to be served by the storage
    int done_ = 0;
};

}  // namespace

int64_t StorageModel::read_ns(int64_t bytes) const {
    if (read.empty()) {
        return 0;
    }
    if (bytes <= read.front().bytes || read.size() == 1) {
        return read.front().ns;
    }
    size_t upper = 1;
    while (upper + 1 < read.size() && read[upper].bytes < bytes) {
        ++upper;
    }
    const SizedLatency &a = read[upper - 1], &b = read[upper];
    const double share = static_cast<double>(bytes - a.bytes) / static_cast<double>(b.bytes - a.bytes);
    return a.ns + static_cast<int64_t>(share * static_cast<double>(b.ns - a.ns));
}

StorageModel measure_storage(const fs::path& directory, const StorageOptions& options) {
    std::error_code ignored;
    const auto room = fs::space(directory, ignored);
    if (!ignored && room.available < static_cast<uintmax_t>(2 * options.file_bytes)) {
        throw machine_error(escape_line(directory.string()) + ": has only " + std::to_string(room.available >> 20) +
                                " MiB free, and the measurement wants " + std::to_string(options.file_bytes >> 19) +
                                " MiB",
                            "free space there, or name another directory");
    }
    StorageModel model = Measurement(directory, options).run();
    model.directory = fs::absolute(directory, ignored).string();
    Mounted mounted = mounted_at(directory);
    model.file_system = std::move(mounted.file_system);
    model.device = std::move(mounted.device);
    model.cold = model.cold && model.file_system != "tmpfs" && model.file_system != "ramfs";
    return model;
}

}  // namespace reprise
