// SPDX-License-Identifier: MIT
#include "calibrate/work_profile.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "calibrate/clock.h"
#include "calibrate/delay.h"
#include "calibrate/wait_cost_json.h"
#include "calibrate/work_units.h"
#include "formats/support/hash.h"

namespace reprise {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int64_t kEach = 100'000'000;

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

WorkProfile measure_work_profile() {
    WorkUnits units;
    WorkProfile out;
    out.identity = machine_identity();
    out.cpus = usable_cpus();
    out.one.integer = best_rate([&] { return units.run_integer(); });
    out.one.inflate = best_rate([&] { return units.run_inflate(); });
    out.one.memcpy = best_rate([&] { return units.run_memcpy(); });
    out.waits = measure_wait_cost();
    return out;
}

std::string to_json(const WorkProfile& p) {
    Json json{{"identity", p.identity},
              {"cpus", p.cpus},
              {"integer", p.one.integer},
              {"inflate", p.one.inflate},
              {"memcpy", p.one.memcpy}};
    add_wait_cost(json, p.waits);
    return json.dump();
}

std::optional<WorkProfile> work_profile_of(std::string_view text) {
    const Json json = Json::parse(text, nullptr, false);
    if (!json.is_object()) {
        return std::nullopt;
    }
    const auto number = [&](const char* key) {
        const auto at = json.find(key);
        return at != json.end() && at->is_number() ? at->get<double>() : 0.0;
    };
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
    out.identity = static_cast<uint64_t>(identity);
    out.cpus = static_cast<int>(std::min(cpus, 1e6));
    out.waits = wait_cost_of(json);
    return out;
}

WorkProfile this_work_profile(const fs::path& cache) {
    const fs::path folder = cache.empty() ? default_cache() : cache;
    const fs::path path = folder / "work.json";
    if (!folder.empty()) {
        std::ifstream in(path);
        std::ostringstream text;
        text << in.rdbuf();  // nothing where it cannot be read; iterators of the buffer would throw then
        if (const auto kept = work_profile_of(text.str());
            kept && kept->identity == machine_identity() && kept->waits.measured()) {
            return *kept;
        }
    }
    const WorkProfile measured = measure_work_profile();
    if (!folder.empty()) {
        std::error_code ignored;
        fs::create_directories(folder, ignored);
        const fs::path partial = folder / ("work.json." + std::to_string(getpid()));
        std::ofstream out(partial);
        out << to_json(measured) << "\n";
        out.close();
        fs::rename(partial, path, ignored);
        if (!out || ignored) {
            fs::remove(partial, ignored);
        }
    }
    return measured;
}

}  // namespace reprise
