// SPDX-License-Identifier: MIT
#include "cli/predict_service.h"

#include <array>
#include <cstdint>
#include <utility>

#include "cli/log_arguments.h"
#include "cli/units.h"
#include "formats/oplog/header_facts.h"
#include "formats/support/error.h"
#include "replay/run/runner.h"

namespace reprise::cli {
namespace {

constexpr const char* kRecorded = "recorded";

std::string name_of(const LogReader& log) { return escape_line(log.path().filename().string()); }

/// Each of these is a question about a storage model.
void check_alone(const po::variables_map& values) {
    static constexpr std::array kModelOnly{"storage",      "sweep",    "memory",      "ratio",
                                           "no-ballast",   "direct",   "sync-writes", "mmap-as-read",
                                           "read-as-mmap", "prefetch", "read-ahead"};
    for (const char* option : kModelOnly) {
        const bool is_switch = values.count(option) != 0 && values[option].value().type() == typeid(bool);
        if (values.count(option) != 0 && !values[option].defaulted() && !(is_switch && !values[option].as<bool>())) {
            throw usage_error(std::string("--service and --") + option +
                                  ": recorded service times are of the storage, "
                                  "memory and calls that the recording had",
                              "leave out one of them");
        }
    }
    for (const char* option : {"cache", "page-cache"}) {
        if (!values[option].defaulted()) {
            throw usage_error(std::string("--service and --") + option +
                                  ": recorded service times are of the cache that "
                                  "the recording had",
                              "leave out one of them");
        }
    }
}

void check_times(const LogReader& log, const std::string& instead) {
    if (log.op_count() == 0) {
        throw bad_input(log.path().string(), "the log has no ops, and so no service times",
                        log.recovered() ? "nothing of it could be recovered: record it again" : "name another log");
    }
    if (times_are_computed(log.header())) {
        throw usage_error(name_of(log) + " was not recorded: its service times are computed", instead);
    }
    if (!has_service_times(log)) {
        throw usage_error(name_of(log) + " has no service times: its calls take no time, as in logs of fio", instead);
    }
}

}  // namespace

void add_service_option(po::options_description& add) {
    add.add_options()("service", po::value<std::string>()->value_name("LOG"),
                      "in place of --storage: calls take as long as in the log itself (recorded), or as like ones in "
                      "the recording LOG");
}

bool service_given(const po::variables_map& values) { return values.count("service") != 0; }

void Service::put(PredictOptions& how) const {
    how.calls = calls;
    how.service = times.get();
}

Service service_of(const po::variables_map& values, const LogReader& log) {
    check_alone(values);
    Service service;
    service.from = values["service"].as<std::string>();
    if (service.from == kRecorded) {
        check_times(log,
                    "draw them from a recording of such a job: --service LOG; or measure the storage: reprise "
                    "calibrate --storage DIR -o model.json, predict --storage model.json");
        return service;
    }
    const LogReader other = open_log(service.from, values);
    check_losses(other, values.count("allow-loss") != 0, values.count("recover") != 0);
    check_times(other, "name a recording, which has them");
    service.calls = CallTimes::drawn;
    service.times = std::make_unique<const ServiceTimes>(other);
    service.from = other.path().filename().string();
    return service;
}

std::string service_line(const Service& service, const Prediction& prediction) {
    if (service.calls == CallTimes::recorded) {
        return "as recorded";
    }
    std::string line = "drawn from " + escape_line(service.from);
    for (size_t i = 0; i < prediction.not_in_service.size(); ++i) {
        const auto& [kind, n] = prediction.not_in_service[i];
        line += (i == 0 ? "; it has none of " : ", ") + kind + " (" + format_count(n) + ")";
    }
    return line + (prediction.not_in_service.empty() ? "" : ", which take the times of their own log");
}

}  // namespace reprise::cli
