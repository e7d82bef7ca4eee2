// SPDX-License-Identifier: MIT
// What a storage does with dirty data: how fast it writes them back, in large pieces and in scattered ones.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/clock.h"
#include "calibrate/mounted.h"
#include "calibrate/storage_folder.h"
#include "formats/support/percentile.h"
#include "formats/support/unique_fd.h"

namespace reprise {
namespace {

/// The median, which no single long one moves. Where a few long ones are most of the time, as under a limit of
/// requests that lets some through at once, the mean.
int64_t usual(std::vector<int64_t> times) {
    const int64_t sum = std::accumulate(times.begin(), times.end(), int64_t{0});
    const int64_t most = *std::max_element(times.begin(), times.end());
    const auto count = static_cast<int64_t>(times.size());
    const int64_t middle = median(std::move(times));
    const int64_t mean = count > 1 ? (sum - most) / (count - 1) : sum;
    return mean > 3 * middle ? mean : middle;
}

}  // namespace

double measure_write_rate(const StorageFolder& in) {
    const UniqueFd file(::open(in.data().c_str(), O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0600));
    if (file.get() < 0) {
        in.failed("cannot create a file");
    }
    const StorageBuffer buffer(size_t{1} << 20);
    struct Took {
        int64_t ns;
        bool sync_alone;  // else the copying was held up, and counts
    };
    // Writes so much and syncs it.
    const auto write = [&](int64_t bytes) {
        const auto device_before = read_device_counter(in.folder());
        const int64_t begin = monotonic_ns();
        for (int64_t at = 0; at < bytes; at += 1 << 20) {
            if (::pwrite(file.get(), buffer.data, size_t{1} << 20, at) != 1 << 20) {
                in.failed("cannot write a file");
            }
            in.check();
        }
        const auto device_copied = read_device_counter(in.folder());
        const int64_t copied = monotonic_ns();
        if (::fsync(file.get()) != 0) {
            in.failed("cannot sync a file");
        }
        const int64_t synced = monotonic_ns();
        constexpr uint64_t kOthers = 32;  // what others have written meanwhile is less than this part
        const bool sync_alone =
            device_before && device_copied
                ? (device_copied->write_bytes - device_before->write_bytes) * kOthers < static_cast<uint64_t>(bytes)
                : synced - copied > copied - begin;
        return Took{synced - (sync_alone ? copied : begin), sync_alone};
    };
    // A limit lets through at once what a pause saved up, both times.
    const int64_t all = in.options().file_bytes, part = std::max<int64_t>(all / 4 >> 20 << 20, 1 << 20);
    const Took once = write(part), more = write(all);
    const bool known = all > part && once.sync_alone == more.sync_alone && more.ns > once.ns + more.ns / 4;
    return static_cast<double>(known ? all - part : all) * 1e9 /
           static_cast<double>(std::max<int64_t>(known ? more.ns - once.ns : more.ns, 1));
}

double measure_scattered_writes(const StorageFolder& in) {
    const UniqueFd file(::open(in.data().c_str(), O_RDWR | O_CLOEXEC));
    const StorageBuffer buffer(kAlign);
    const auto pages = [&](int64_t count) {
        const int64_t apart = in.options().file_bytes / count / kAlign * kAlign;
        for (int64_t i = 0; i < count; ++i) {
            if (::pwrite(file.get(), buffer.data, kAlign, i * apart) < 0) {
                in.failed("cannot write a file");
            }
        }
        const int64_t begin = monotonic_ns();
        if (::fsync(file.get()) != 0) {
            in.failed("cannot sync a file");
        }
        in.check();
        return monotonic_ns() - begin;
    };
    constexpr int64_t kShort = 50'000'000;
    // No two pages of the most are in one request.
    const int64_t most = std::max<int64_t>(in.options().file_bytes / (int64_t{256} << 10), 4);
    int64_t count = std::min<int64_t>(128, most / 4), once = pages(count);
    while (once < kShort && 8 * count <= most) {
        count *= 2;
        once = pages(count);
    }
    const int64_t more = pages(4 * count);
    return static_cast<double>(3 * count) * 1e9 / static_cast<double>(std::max<int64_t>(more - once, more / 4));
}

std::vector<SizedLatency> measure_direct_writes(const StorageFolder& in) {
    constexpr int64_t kMost = int64_t{1} << 20;
    const UniqueFd file(::open(in.data().c_str(), O_RDWR | O_DIRECT | O_CLOEXEC));
    const StorageBuffer buffer(static_cast<size_t>(kMost));
    std::vector<SizedLatency> out;
    for (const int64_t bytes : {int64_t{4} << 10, int64_t{64} << 10, kMost}) {
        std::mt19937_64 random(static_cast<uint64_t>(bytes));
        const auto places = static_cast<uint64_t>(std::max<int64_t>(in.options().file_bytes / bytes, 1));
        const auto write = [&] {
            const auto at = static_cast<int64_t>(random() % places) * bytes;
            return ::pwrite(file.get(), buffer.data, static_cast<size_t>(bytes), at) == bytes;
        };
        if (!file.valid() || !write()) {
            return {};  // the file system does not take them
        }
        std::vector<int64_t> times = in.timed(
            [&] {
                if (!write()) {
                    in.failed("cannot write a file");
                }
            },
            1'000);
        out.push_back({bytes, usual(std::move(times))});
        // Interpolation wants a longer write to take longer.
        out.back().ns = std::max(out.back().ns, out.size() > 1 ? out[out.size() - 2].ns : 0);
    }
    return out;
}

int64_t measure_sync(const StorageFolder& in, bool longer) {
    const UniqueFd file(::open((in.folder() + "/sync").c_str(), O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0600));
    const StorageBuffer buffer(kAlign);
    off_t at = 0;
    return usual(in.timed(
        [&] {
            if (::pwrite(file.get(), buffer.data, kAlign, at) < 0 || ::fsync(file.get()) != 0) {
                in.failed("cannot sync a file");
            }
            at += longer ? kAlign : 0;
        },
        100));
}

}  // namespace reprise
