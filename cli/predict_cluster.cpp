// SPDX-License-Identifier: MIT
#include "cli/predict_cluster.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/clock.h"
#include "cli/json_output.h"
#include "cli/named_files.h"
#include "cli/progress.h"
#include "cli/show_cluster.h"
#include "cli/units.h"
#include "formats/support/error.h"
#include "replay/cluster/cluster.h"
#include "replay/cluster/network.h"

namespace reprise::cli {
namespace {

namespace fs = std::filesystem;
constexpr const char* kHint = "for example --gpus 10000 --hosts 1250, or --sweep gpus=1..10000";
constexpr double kPerDecade = 3;

uint64_t count_of(const std::string& text, const std::string& what) {
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < 1 || value > ClusterOptions::kMost) {
        throw usage_error(what + " is '" + escape_line(text) + "', expected a whole number from 1 to " +
                              format_count(ClusterOptions::kMost),
                          kHint);
    }
    return value;
}

bool sweeps_gpus(const po::variables_map& values) {
    return values.count("sweep") != 0 && [&] {
        const auto& all = values["sweep"].as<std::vector<std::string>>();
        return std::any_of(all.begin(), all.end(),
                           [](const std::string& axis) { return axis == "gpus" || axis.starts_with("gpus="); });
    }();
}

struct Asked {
    std::vector<uint64_t> accelerators;  // ascending
    uint64_t per_host = 0;               // 0: all on one
    bool in_step = true;
};

/// From one count to another, about three for each power of ten; multiples of what a host or the log has.
std::vector<uint64_t> counts_between(uint64_t from, uint64_t to, uint64_t recorded, uint64_t per_host) {
    std::vector<uint64_t> out;
    const auto points =
        static_cast<int>(std::ceil(std::log10(static_cast<double>(to) / static_cast<double>(from)) * kPerDecade));
    for (int i = 0; i <= points; ++i) {
        const double exact = static_cast<double>(from) * std::pow(static_cast<double>(to) / static_cast<double>(from),
                                                                  static_cast<double>(i) / std::max(points, 1));
        const uint64_t unit = per_host != 0 && exact > static_cast<double>(per_host) ? per_host : recorded;
        const uint64_t count =
            std::max<uint64_t>(1, static_cast<uint64_t>(std::llround(exact / static_cast<double>(unit)))) * unit;
        if (out.empty() || count > out.back()) {
            out.push_back(count);
        }
    }
    return out;
}

std::vector<uint64_t> swept_counts(const std::string& text, uint64_t recorded, uint64_t per_host) {
    const std::string what = "--sweep gpus";
    if (const size_t dots = text.find(".."); dots != std::string::npos) {
        const uint64_t from = count_of(text.substr(0, dots), what), to = count_of(text.substr(dots + 2), what);
        if (from >= to) {
            throw usage_error(what + " goes from " + std::to_string(from) + " to " + std::to_string(to) +
                                  ", expected the smaller one first",
                              kHint);
        }
        return counts_between(from, to, recorded, per_host);
    }
    std::vector<uint64_t> out;
    for (size_t from = 0; from <= text.size();) {
        const size_t comma = std::min(text.find(',', from), text.size());
        out.push_back(count_of(text.substr(from, comma - from), what));
        from = comma + 1;
    }
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
}

Asked asked_for(const po::variables_map& values, const JobProfile& profile) {
    Asked out;
    uint64_t accelerators = profile.accelerators;
    if (values.count("gpus") != 0) {
        std::string text = values["gpus"].as<std::string>();
        if (constexpr std::string_view free = ":free"; text.ends_with(free)) {
            out.in_step = false;
            text.resize(text.size() - free.size());
        }
        accelerators = count_of(text, "--gpus");
    }
    if (values.count("hosts") != 0) {
        const uint64_t hosts = count_of(values["hosts"].as<std::string>(), "--hosts");
        check_cluster(profile, accelerators, hosts);
        out.per_host = accelerators / hosts;
    }
    out.accelerators = {accelerators};
    if (sweeps_gpus(values)) {
        const auto& axes = values["sweep"].as<std::vector<std::string>>();
        if (axes.size() != 1) {
            throw usage_error("--sweep gpus goes with no other axis", "leave out the other --sweep");
        }
        out.accelerators = swept_counts(axes[0].substr(std::min(axes[0].size(), axes[0].find('=') + 1)),
                                        profile.accelerators, out.per_host);
    }
    return out;
}

fs::path folder_of(const po::variables_map& values) {
    if (values.count("output") == 0) {
        return {};
    }
    fs::path folder = values["output"].as<std::string>();
    constexpr std::array<std::string_view, 3> kFiles = {"cluster.csv", "cluster.svg", "cluster.png"};
    make_folder_of("predict", values, folder, kFiles);
    return folder;
}

}  // namespace

void add_cluster_options(po::options_description& add) {
    add.add_options()("gpus", po::value<std::string>()->value_name("N[:free]"),
                      "simulate so many accelerators, each doing what one of the log did, in step after each step or, "
                      "with :free, not")("hosts", po::value<std::string>()->value_name("H"),
                                         "hosts that they are on, evenly [default: 1]")(
        "network", po::value<std::string>()->value_name("FILE"),
        "network model: all-reduce, and what a host gets from the storage (examples/network.json)")(
        "scatter", po::value<std::string>()->default_value("recorded")->value_name("HOW"),
        "recorded: each copy has the log's samples and step times in an order of its own; none: all have the same");
}

bool cluster_given(const po::variables_map& values) {
    return values.count("gpus") != 0 || values.count("hosts") != 0 || values.count("network") != 0 ||
           sweeps_gpus(values);
}

void check_cluster_options(const po::variables_map& values) {
    for (const char* const other : {"service", "ratio", "memory"}) {
        if (values.count(other) != 0) {
            throw usage_error(std::string("--") + other + " does not go with --gpus, --hosts and --network",
                              "leave it out");
        }
    }
    if (values.count("output") != 0 && !sweeps_gpus(values)) {
        throw usage_error("-o with --gpus writes curves, and needs --sweep gpus=FROM..TO", kHint);
    }
}

int run_cluster(const po::variables_map& values, const LogReader& log, const Predictor& predictor,
                const PredictOptions& how) {
    const fs::path folder = folder_of(values);
    ClusterOptions options;
    if (values.count("network") != 0) {
        options.network = read_network_model(values["network"].as<std::string>());
    }
    const int64_t begin = monotonic_ns();
    const JobProfile profile = profile_job(log, predictor, how);
    const Asked asked = asked_for(values, profile);
    options.storage = how.storage;
    options.in_step = asked.in_step;
    options.scatter = values["scatter"].as<std::string>() == "recorded";
    options.cpus = how.cpus;
    ClusterShown shown;
    shown.log = values["log"].as<std::string>();
    shown.storage = values["storage"].as<std::string>();
    shown.recorded = profile.accelerators;
    shown.network = values.count("network") != 0 ? values["network"].as<std::string>() : std::string();
    shown.swept = sweeps_gpus(values);
    shown.poor = poor_reason(profile.alone, how.storage);
    Progress progress("simulating");
    for (size_t i = 0; i < asked.accelerators.size(); ++i) {
        options.accelerators = asked.accelerators[i];
        options.hosts = asked.per_host == 0
                            ? 1
                            : std::max<uint64_t>(1, (options.accelerators + asked.per_host - 1) / asked.per_host);
        options.progress = [&](double share) {
            constexpr uint64_t kSteps = 1000;
            progress.update(i * kSteps + static_cast<uint64_t>(share * kSteps), asked.accelerators.size() * kSteps);
        };
        shown.results.push_back(simulate_cluster(profile, options));
    }
    progress.finish();
    shown.guesses = cluster_guesses(profile, options);
    shown.took_s = static_cast<double>(monotonic_ns() - begin) / 1e9;
    const ClusterFiles files = folder.empty() ? ClusterFiles() : write_cluster(shown, folder);
    if (json_wanted(values)) {
        put_json(values, cluster_json(shown));
    }
    if (!json_alone(values)) {
        print_cluster(std::cout, shown, files);
    }
    return static_cast<int>(shown.poor.empty() ? ExitCode::done : ExitCode::check_failed);
}

}  // namespace reprise::cli
