// SPDX-License-Identifier: MIT
#include "cli/sweep_cache.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "formats/support/error.h"
#include "replay/plan/plan.h"
#include "replay/prepare/cache_plan.h"
#include "replay/prepare/cache_regime.h"

namespace reprise::cli {
namespace {

SweepCache described(CacheRegime regime, const std::string& why) {
    const std::string name(cache_regime_name(regime));
    return {name, (regime == CacheRegime::recorded ? "as recorded" : name) + " at the start of each run (" + why + ")"};
}

}  // namespace

void add_sweep_cache_option(po::options_description& add) {
    add.add_options()("cache", po::value<std::string>()->value_name("REGIME"),
                      "what is in the page cache at the start of each run, of the data to be read: cold, warm or "
                      "recorded [default: as in replay, but never as-is; cold under a memory limit]");
}

SweepCache sweep_cache(const po::variables_map& values, const LogReader& log, const OpFilter& filter, bool limited) {
    std::optional<CacheRegime> asked;
    if (values.count("cache") != 0) {
        const auto& name = values["cache"].as<std::string>();
        asked = cache_regime_by_name(name);
        if (!asked || asked == CacheRegime::as_is) {
            throw usage_error("--cache is '" + escape_line(name) + "', expected cold, warm or recorded",
                              "every run of a sweep begins with the same in memory");
        }
    }
    if (asked && asked != CacheRegime::recorded) {
        return described(*asked, "as asked");
    }
    if (!asked && limited) {
        return {"", "cold at the start of each run (under a memory limit)"};
    }
    const Plan plan = make_plan(log, filter, {});
    const CacheChoice choice = choose_regime(asked, plan_cache(plan, log).recorded);
    if (asked && choice.regime != *asked) {
        throw usage_error("--cache recorded: the log does not say what was in memory", "use --cache cold or warm");
    }
    switch (choice.why) {
        case CacheChoice::Why::asked: return described(choice.regime, "as asked");
        case CacheChoice::Why::fetched:
            return described(choice.regime, "the recording read from its device; --cache chooses");
        case CacheChoice::Why::in_memory:
            return described(CacheRegime::warm, "the recording found its data in memory; --cache chooses");
        case CacheChoice::Why::unknown: break;
    }
    return described(CacheRegime::cold, "the log does not say what was in memory; --cache chooses");
}

std::vector<size_t> cells_of_other_cache(const SweepResult& result) {
    constexpr double kMuch = 0.1;
    std::map<std::string, std::vector<size_t>> alike;
    for (size_t cell = 0; cell < result.cells.size() && !result.predicted; ++cell) {
        std::string memory;
        for (size_t axis = 0; axis < result.axes.size(); ++axis) {
            const std::string& option = result.axes[axis].option;
            memory =
                option == "ratio" || option == "memory" ? result.axes[axis].values[result.cells[cell][axis]] : memory;
        }
        alike[memory].push_back(cell);
    }
    std::vector<size_t> out;
    for (const auto& [memory, cells] : alike) {
        std::vector<const SweepRun*> all;
        for (const size_t cell : cells) {
            all.insert(all.end(), result.runs[cell].begin(), result.runs[cell].end());
        }
        const auto share = [](const SweepRun& run) { return run.device_share; };
        const std::optional<SweepFigure> usual = sweep_figure(all, share);
        for (const size_t cell : cells) {
            const auto& runs = result.runs[cell];
            if (usual && std::any_of(runs.begin(), runs.end(), [&](const SweepRun* run) {
                    return run->device_share && std::abs(*run->device_share - usual->median) > kMuch;
                })) {
                out.push_back(cell);
            }
        }
    }
    std::sort(out.begin(), out.end());
    return out;
}

}  // namespace reprise::cli
