// SPDX-License-Identifier: MIT
#include "calibrate/work_profile.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>
#include <vector>

#include "calibrate/clock.h"
#include "calibrate/delay.h"
#include "calibrate/wait_cost_json.h"
#include "calibrate/work_units.h"
#include "formats/support/hash.h"
#include "formats/support/percentile.h"
#include "formats/support/unique_fd.h"

namespace reprise {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kRounds = 5;
constexpr int64_t kEach = 40'000'000;  // ns, of one kind in one round
/// What two measurements on one idle machine differ by beyond what each one shows of itself.
constexpr double kDrift = 0.02;
constexpr double kSpreadOfOld = 0.05;  // where a profile does not say it
constexpr std::array<double WorkRates::*, 3> kKinds{&WorkRates::integer, &WorkRates::inflate, &WorkRates::memcpy};

template <class Unit>
double best_rate(Unit unit) {
    int64_t best = INT64_MAX;
    std::atomic<uint64_t> sink{0};
    const int64_t begin = monotonic_ns();
    for (int64_t now = begin; now - begin < kEach;) {
        sink.store(unit(), std::memory_order_relaxed);
        const int64_t after = monotonic_ns();
        best = std::min(best, after - now);
        now = after;
    }
    return 1e9 / static_cast<double>(std::max<int64_t>(best, 1));
}

std::string line_of(const char* path, std::string_view key = {}) {
    std::ifstream in(path);
    for (std::string line; std::getline(in, line);) {
        if (line.starts_with(key)) {
            return line;
        }
    }
    return {};
}

fs::path default_cache() {
    const char* const cache = std::getenv("XDG_CACHE_HOME");
    if (cache != nullptr && *cache == '/') {
        return fs::path(cache) / "reprise";
    }
    const char* const home = std::getenv("HOME");
    return home != nullptr && *home == '/' ? fs::path(home) / ".cache/reprise" : fs::path{};
}

}  // namespace

uint64_t machine_identity() {
    utsname name{};
    uname(&name);
    Hash hash;
    for (const std::string& part :
         {line_of("/etc/machine-id"), std::string(name.nodename), std::string(name.machine),
          line_of("/proc/cpuinfo", "model name"), std::to_string(sysconf(_SC_NPROCESSORS_CONF))}) {
        hash.text(part);
    }
    return std::max<uint64_t>(hash.value() >> 11, 1);  // 53 bits, as JSON readers keep numbers in doubles
}

uint64_t boot_identity() {
    Hash hash;
    hash.text(line_of("/proc/sys/kernel/random/boot_id"));
    return std::max<uint64_t>(hash.value() >> 11, 1);
}

WorkProfile measure_work_profile() {
    WorkUnits units;
    std::vector<WorkRates> rounds;
    for (int round = 0; round < kRounds; ++round) {
        WorkRates found;
        found.integer = best_rate([&] { return units.run_integer(); });
        found.inflate = best_rate([&] { return units.run_inflate(); });
        found.memcpy = best_rate([&] { return units.run_memcpy(); });
        rounds.push_back(found);
    }
    WorkProfile out;
    for (double WorkRates::*const kind : kKinds) {
        std::vector<double> rates;
        rates.reserve(rounds.size());
        for (const WorkRates& one : rounds) {
            rates.push_back(one.*kind);
        }
        const auto [least, most] = std::minmax_element(rates.begin(), rates.end());
        const double range = *most - *least;
        out.one.*kind = median(rates);
        out.spread.*kind = range / 2 / (out.one.*kind);
    }
    out.identity = machine_identity();
    out.boot = boot_identity();
    out.measured_unix_s = std::time(nullptr);
    out.cpus = usable_cpus();
    out.waits = measure_wait_cost();
    return out;
}

bool same_speed(const WorkProfile& a, const WorkProfile& b) {
    return std::all_of(kKinds.begin(), kKinds.end(), [&](double WorkRates::*kind) {
        const auto spread = [&](const WorkProfile& p) {
            return p.spread == WorkRates{} ? kSpreadOfOld : p.spread.*kind;
        };
        const double apart = std::abs(std::log((a.one.*kind) / (b.one.*kind)));
        return apart <= spread(a) + spread(b) + kDrift;
    });
}

std::string to_json(const WorkProfile& p) {
    Json json{{"identity", p.identity},
              {"cpus", p.cpus},
              {"integer", p.one.integer},
              {"inflate", p.one.inflate},
              {"memcpy", p.one.memcpy}};
    if (p.spread != WorkRates{}) {
        json["spread"] = {{"integer", p.spread.integer}, {"inflate", p.spread.inflate}, {"memcpy", p.spread.memcpy}};
    }
    if (p.boot != 0) {
        json["boot"] = p.boot;
    }
    if (p.measured_unix_s != 0) {
        json["measured_unix_s"] = p.measured_unix_s;
    }
    add_wait_cost(json, p.waits);
    return json.dump();
}

std::optional<WorkProfile> work_profile_of(std::string_view text) {
    const Json json = Json::parse(text, nullptr, false);
    if (!json.is_object()) {
        return std::nullopt;
    }
    const auto number_in = [](const Json& object, const char* key) {
        const auto at = object.find(key);
        return at != object.end() && at->is_number() ? at->get<double>() : 0.0;
    };
    const auto number = [&](const char* key) { return number_in(json, key); };
    WorkProfile out;
    out.one = {number("integer"), number("inflate"), number("memcpy")};
    const double identity = number("identity"), cpus = number("cpus");
    const bool no_number = json.contains("identity") && !json["identity"].is_number();
    if (no_number || !std::isfinite(identity) || identity < 0 || identity > 1e18) {
        return std::nullopt;
    }
    for (const double value : {cpus, out.one.integer, out.one.inflate, out.one.memcpy}) {
        if (!std::isfinite(value) || value <= 0 || value > 1e18) {
            return std::nullopt;
        }
    }
    constexpr double kMostExact = 9'007'199'254'740'992;
    if (const auto spread = json.find("spread"); spread != json.end() && spread->is_object()) {
        out.spread = {number_in(*spread, "integer"), number_in(*spread, "inflate"), number_in(*spread, "memcpy")};
        for (double WorkRates::*const kind : kKinds) {
            out.spread.*kind = std::clamp(out.spread.*kind, 0.0, 1.0);
        }
    }
    out.boot = static_cast<uint64_t>(std::clamp(number("boot"), 0.0, kMostExact));
    out.measured_unix_s = static_cast<int64_t>(std::clamp(number("measured_unix_s"), 0.0, kMostExact));
    out.identity = static_cast<uint64_t>(identity);
    out.cpus = static_cast<int>(std::min(cpus, 1e6));
    out.waits = wait_cost_of(json);
    return out;
}

namespace {

/// That of `path`, if it is of this boot and was measured at `since` or later.
std::optional<WorkProfile> kept_in(const fs::path& path, int64_t since) {
    std::ifstream in(path);
    std::ostringstream text;
    text << in.rdbuf();  // nothing where it cannot be read; iterators of the buffer would throw then
    std::optional<WorkProfile> kept = work_profile_of(text.str());
    if (!kept) {
        return std::nullopt;
    }
    const int64_t at = kept->measured_unix_s;
    // A namespace may have another name, and another share of the processors; it is the same machine.
    if (kept->boot != boot_identity() || at < since || at > std::time(nullptr) || !kept->waits.measured()) {
        return std::nullopt;
    }
    kept->identity = machine_identity();
    kept->cpus = usable_cpus();
    return kept;
}

/// Processes that measure at the same time, such as ranks that start together, slow each other down. One measures, and
/// the others find what it kept.
class Turn {
public:
    explicit Turn(const fs::path& lock)
        : path_(lock), fd_(::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644)) {
        constexpr int kTries = 500;  // each 20 ms: a measurement takes two seconds
        for (int i = 0; fd_.valid() && i < kTries; ++i) {
            locked_ = ::flock(fd_.get(), LOCK_EX | LOCK_NB) == 0;
            if (locked_ || errno != EWOULDBLOCK) {
                break;
            }
            ::usleep(20'000);
        }
    }
    ~Turn() {
        if (locked_) {
            ::unlink(path_.c_str());
        }
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

private:
    fs::path path_;
    UniqueFd fd_;
    bool locked_ = false;
};

void keep(const WorkProfile& measured, const fs::path& path) {
    const fs::path partial = path.string() + "." + std::to_string(getpid());
    std::error_code ignored;
    std::ofstream out(partial);
    out << to_json(measured) << "\n";
    out.close();
    fs::rename(partial, path, ignored);
    if (!out || ignored) {
        fs::remove(partial, ignored);
    }
    // What earlier boots and killed processes left.
    for (fs::directory_iterator at(path.parent_path(), ignored), end; !ignored && at != end; at.increment(ignored)) {
        const std::string other = at->path().filename().string();
        std::error_code gone;
        const auto written = fs::last_write_time(at->path(), gone);
        if (!gone && other.starts_with("work-") &&
            fs::file_time_type::clock::now() - written > std::chrono::hours(24)) {
            fs::remove(at->path(), gone);
        }
    }
}

}  // namespace

std::string kept_profile_name() {
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    const char* const build = "";
#else
    const char* const build = "-slow-build";
#endif
    char name[56] = {};
    std::snprintf(name, sizeof name, "work-%" PRIx64 "%s.json", boot_identity(), build);
    return name;
}

namespace {

/// The one kept, where it was measured at `since` or later; else measured now, and kept.
WorkProfile profile_since(int64_t since, const fs::path& cache) {
    const fs::path folder = cache.empty() ? default_cache() : cache;
    if (folder.empty()) {
        return measure_work_profile();
    }
    const fs::path path = folder / kept_profile_name();
    if (const auto kept = kept_in(path, since)) {
        return *kept;
    }
    std::error_code ignored;
    fs::create_directories(folder, ignored);
    const Turn turn(path.string() + ".lock");
    if (const auto kept = kept_in(path, since)) {
        return *kept;
    }
    const WorkProfile measured = measure_work_profile();
    keep(measured, path);
    return measured;
}

}  // namespace

WorkProfile measured_anew(const fs::path& cache) {
    constexpr int64_t kNow = 60;  // s: who replays one log again and again does not measure each time
    return profile_since(std::time(nullptr) - kNow, cache);
}

WorkProfile this_work_profile(const fs::path& cache) { return profile_since(std::time(nullptr) - kProfileAge, cache); }

}  // namespace reprise
