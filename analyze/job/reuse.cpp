// SPDX-License-Identifier: MIT
#include "analyze/job/reuse.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <unordered_map>

#include "formats/support/percentile.h"

namespace reprise {
namespace {

constexpr uint32_t kNone = UINT32_MAX;

/// Sums of ranges of values that change (a Fenwick tree).
class Sums {
public:
    explicit Sums(size_t count) : tree_(count + 1) {}
    void add(size_t at, int64_t value) {
        for (++at; at < tree_.size(); at += at & (~at + 1)) {
            tree_[at] += value;
        }
    }
    /// Of the values before `at`.
    int64_t before(size_t at) const {
        int64_t sum = 0;
        for (; at > 0; at -= at & (~at + 1)) {
            sum += tree_[at];
        }
        return sum;
    }

private:
    std::vector<int64_t> tree_;
};

/// Of each access, the one before it to the same place.
std::vector<uint32_t> earlier(std::span<const Access> accesses) {
    std::vector<uint32_t> before(accesses.size(), kNone);
    std::unordered_map<uint64_t, uint32_t> last;
    last.reserve(accesses.size() / 2);
    for (uint32_t i = 0; i < accesses.size(); ++i) {
        const auto [found, fresh] = last.try_emplace(accesses[i].place(), i);
        if (!fresh) {
            before[i] = std::exchange(found->second, i);
        }
    }
    return before;
}

size_t size_class(double bytes) {
    const double limited = std::clamp(bytes, 0.0, 9e15);
    return std::min<size_t>(std::bit_width(static_cast<uint64_t>(std::ceil(limited)) - (limited > 0 ? 1 : 0)),
                            Reuse::kSizes - 1);
}

}  // namespace

Reuse reuse_of(std::span<const Access> accesses, double share) {
    Reuse out;
    const std::vector<uint32_t> before = earlier(accesses);
    Sums sums(accesses.size());
    std::map<FileId, std::vector<float>> of_file;
    for (uint32_t i = 0; i < accesses.size(); ++i) {
        const double bytes = static_cast<double>(accesses[i].bytes) / share;
        if (before[i] == kNone) {
            out.first_bytes += bytes;
        } else {
            const uint32_t last = before[i];
            const double distance = static_cast<double>(sums.before(i) - sums.before(last + size_t{1})) / share;
            sums.add(last, -static_cast<int64_t>(accesses[last].bytes));
            out.again_bytes += bytes;
            out.again_by[size_class(distance)] += bytes;
            out.longest = std::max(out.longest, distance);
            of_file[accesses[i].file].push_back(static_cast<float>(distance));
        }
        sums.add(i, accesses[i].bytes);
    }
    for (auto& [file, distances] : of_file) {
        out.by_file[file] = median(std::move(distances));
    }
    return out;
}

double Reuse::within(double bytes) const {
    if (again_bytes <= 0) {
        return 0;
    }
    double sum = 0;
    for (size_t i = 0; i < kSizes && std::ldexp(1.0, static_cast<int>(i)) <= bytes; ++i) {
        sum += again_by[i];
    }
    return sum / again_bytes;
}

double Reuse::median() const {
    double sum = 0;
    for (size_t i = 0; i < kSizes; ++i) {
        sum += again_by[i];
        if (sum * 2 >= again_bytes && again_bytes > 0) {
            return std::min(std::ldexp(1.0, static_cast<int>(i)), longest);
        }
    }
    return 0;
}

}  // namespace reprise
