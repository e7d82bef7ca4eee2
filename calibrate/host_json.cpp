// SPDX-License-Identifier: MIT
// host.json: a host profile on disk, written and read side by side.
#include <fstream>
#include <nlohmann/json.hpp>

#include "calibrate/host_profile.h"
#include "calibrate/wait_cost_json.h"
#include "formats/support/error.h"

namespace reprise {
namespace {

using Json = nlohmann::ordered_json;

Json rates_json(const WorkRates& rates) {
    return {{"integer", rates.integer}, {"inflate", rates.inflate}, {"memcpy", rates.memcpy}};
}

/// Reads fields of the right type, and says which one is missing.
class Reader {
public:
    Reader(const std::filesystem::path& path, const Json& json) : path_(path), json_(json) {}

    template <class T>
    T get(const std::string& pointer) const {
        const Json::json_pointer at(pointer);
        if (!json_.contains(at)) {
            bad(pointer, "is missing");
        }
        try {
            return json_.at(at).get<T>();
        } catch (const nlohmann::json::exception&) {
            bad(pointer, "has the wrong type");
        }
    }
    double rate(const std::string& pointer) const {
        const auto value = get<double>(pointer);
        if (!(value > 0)) {
            bad(pointer, "is not above 0");
        }
        return value;
    }
    WorkRates rates(const std::string& pointer) const {
        return {rate(pointer + "/integer"), rate(pointer + "/inflate"), rate(pointer + "/memcpy")};
    }
    [[noreturn]] void bad(const std::string& pointer, const char* what) const {
        throw Error(ExitCode::bad_input, path_.string() + ":" + pointer, std::string("the field ") + what,
                    "recreate it with `reprise calibrate -o host.json`");
    }

private:
    const std::filesystem::path& path_;
    const Json& json_;
};

}  // namespace

std::string to_json(const HostProfile& p) {
    Json delays = Json::array();
    for (const DelayError& one : p.delays) {
        delays.push_back({{"target_ns", one.target_ns},
                          {"count", one.count},
                          {"total_error", one.total},
                          {"p50_ns", one.p50_ns},
                          {"p99_ns", one.p99_ns}});
    }
    Json json{{"reprise_host_profile", HostProfile::kVersion},
              {"host", p.host},
              {"cpu", p.cpu},
              {"kernel", p.kernel},
              {"measured_unix_s", p.measured_unix_s},
              {"cpus", p.cpus},
              {"sleep_1ms_late_ns", {{"p50", p.sleep_p50_ns}, {"p99", p.sleep_p99_ns}}},
              {"least_slack_1ms_late_ns", {{"p50", p.slack_p50_ns}, {"p99", p.slack_p99_ns}}},
              {"delays", delays},
              {"clock_ns", p.clock_ns},
              {"spin_ns", p.spin_ns},
              {"call_ns", p.call_ns},
              {"pread_4k_ns", p.pread_ns},
              {"open_close_ns", p.open_ns},
              {"wake_ns", p.wake_ns},
              {"work_per_s", {{"one", rates_json(p.one)}, {"all", rates_json(p.all)}}}};
    add_wait_cost(json, p.waits);
    return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

HostProfile read_host_profile(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) {
        throw Error(ExitCode::bad_input, path.string(), "the file cannot be read",
                    "make one with `reprise calibrate -o host.json`");
    }
    const Json json = Json::parse(in, nullptr, false);
    if (json.is_discarded() || !json.is_object()) {
        throw Error(ExitCode::bad_input, path.string(), "this is not a host profile: not JSON, or not an object",
                    "make one with `reprise calibrate -o host.json`");
    }
    const Reader reader(path, json);
    if (reader.get<int>("/reprise_host_profile") != HostProfile::kVersion) {
        reader.bad("/reprise_host_profile", "has a version other than 1");
    }
    HostProfile p;
    p.host = reader.get<std::string>("/host");
    p.cpu = reader.get<std::string>("/cpu");
    p.kernel = reader.get<std::string>("/kernel");
    p.measured_unix_s = reader.get<int64_t>("/measured_unix_s");
    p.cpus = reader.get<int>("/cpus");
    p.sleep_p50_ns = reader.get<int64_t>("/sleep_1ms_late_ns/p50");
    p.sleep_p99_ns = reader.get<int64_t>("/sleep_1ms_late_ns/p99");
    p.slack_p50_ns = reader.get<int64_t>("/least_slack_1ms_late_ns/p50");
    p.slack_p99_ns = reader.get<int64_t>("/least_slack_1ms_late_ns/p99");
    const auto rows = reader.get<Json>("/delays");
    for (size_t i = 0; i < rows.size(); ++i) {
        const std::string at = "/delays/" + std::to_string(i);
        p.delays.push_back({reader.get<int64_t>(at + "/target_ns"), reader.get<uint64_t>(at + "/count"),
                            reader.get<double>(at + "/total_error"), reader.get<int64_t>(at + "/p50_ns"),
                            reader.get<int64_t>(at + "/p99_ns")});
    }
    p.clock_ns = reader.get<double>("/clock_ns");
    p.spin_ns = reader.get<double>("/spin_ns");
    p.call_ns = reader.get<double>("/call_ns");
    p.pread_ns = reader.get<double>("/pread_4k_ns");
    p.open_ns = reader.get<double>("/open_close_ns");
    p.wake_ns = reader.get<double>("/wake_ns");
    p.one = reader.rates("/work_per_s/one");
    p.all = reader.rates("/work_per_s/all");
    p.waits = wait_cost_of(json);
    if (json.contains(kWaitCostKey) && !p.waits.measured()) {
        reader.bad(std::string("/") + kWaitCostKey, "is not valid");
    }
    return p;
}

}  // namespace reprise
