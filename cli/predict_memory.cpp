// SPDX-License-Identifier: MIT
#include "cli/predict_memory.h"

#include <vector>

#include "cli/show_epochs.h"
#include "cli/units.h"
#include "replay/prepare/cache_plan.h"

namespace reprise::cli {
namespace {

constexpr const char* kLru = "lru";
constexpr const char* kTwoLists = "two-lists";

const char* name_of(PageCachePolicy policy) { return policy == PageCachePolicy::lru ? kLru : kTwoLists; }

double ratio_of(const PredictedLimit& limit, const MemoryOfJob& job) {
    return limit.bytes == 0 ? 0.0 : static_cast<double>(job.data) / static_cast<double>(limit.bytes);
}

/// As a replay has them.
std::vector<EpochProof> proofs_of(const Prediction& prediction) {
    std::vector<EpochProof> proofs;
    for (const PredictedEpoch& epoch : prediction.epochs) {
        EpochProof proof;
        proof.accesses = epoch.accesses;
        proof.begin_ns = epoch.begin_ns;
        proof.elapsed_ns = epoch.elapsed_ns;
        proof.own_bytes = epoch.storage_bytes;
        proofs.push_back(proof);
    }
    return proofs;
}

/// With what is before the first one.
std::vector<uint64_t> asked_of(const Prediction& prediction) {
    std::vector<uint64_t> asked = {0};
    for (const PredictedEpoch& epoch : prediction.epochs) {
        asked.push_back(epoch.asked_bytes);
    }
    return asked;
}

}  // namespace

void add_memory_options(po::options_description& add) {
    add.add_options()("memory", po::value<std::string>()->value_name("SIZE"),
                      "limit memory: page cache and what the job itself held share it")(
        "ratio", po::value<std::string>()->value_name("R"),
        "the same, with memory for the Rth part of the data that are read")(
        "no-ballast", "the job itself holds nothing: all of the limit is page cache")(
        "page-cache", po::value<std::string>()->default_value(kTwoLists)->value_name("HOW"),
        "which pages leave a full page cache: lru, those not used for longest; two-lists, as Linux decides");
}

MemoryOfJob memory_of(const Predictor& predictor, const LogReader& log) {
    MemoryOfJob job;
    const CachePlan cache = plan_cache(predictor.plan(), log);
    job.data = cache.around_bytes;
    for (const CacheTarget& target : cache.targets) {
        job.data += target.reads.bytes();
    }
    if (predictor.held()) {
        job.peak = most_held(*predictor.held());
    }
    return job;
}

PageCachePolicy page_cache_policy(const po::variables_map& values) {
    return values["page-cache"].as<std::string>() == kLru ? PageCachePolicy::lru : PageCachePolicy::two_lists;
}

std::optional<PredictedLimit> predicted_limit(const RunLimits& limits, PageCachePolicy policy, const MemoryOfJob& job) {
    constexpr uint64_t kLeast = 1 << 20;  // less holds no process
    const std::optional<uint64_t> bytes = checked_limit(limits, job.data, job.peak.value_or(0), kLeast);
    return bytes ? std::optional(PredictedLimit{*bytes, limits.ballast, policy}) : std::nullopt;
}

std::string predicted_memory_line(const PredictedLimit& limit, const MemoryOfJob& job) {
    std::string line = format_bytes(limit.bytes) + " for " + format_bytes(job.data) + " of data (ratio " +
                       number_cell(ratio_of(limit, job), 2).text + "), page cache " + name_of(limit.policy);
    if (job.peak && *job.peak != 0) {
        line += limit.held ? "; job's own: up to " + format_bytes(*job.peak)
                           : "; nothing for the job's own " + format_bytes(*job.peak);
    }
    return line;
}

Json predicted_memory_json(const PredictedLimit& limit, const MemoryOfJob& job) {
    return {{"limit_bytes", limit.bytes},
            {"data_bytes", job.data},
            {"ratio", ratio_of(limit, job)},
            {"page_cache", name_of(limit.policy)},
            {"job_peak_bytes", job.peak ? Json(*job.peak) : Json(nullptr)},
            {"stood_in", limit.held && job.peak.value_or(0) != 0}};
}

Json predicted_epochs_json(const Prediction& prediction) {
    return epochs_table(proofs_of(prediction), asked_of(prediction)).json();
}

std::string predicted_epochs_line(const Prediction& prediction) {
    return epochs_line(proofs_of(prediction), asked_of(prediction), true);
}

}  // namespace reprise::cli
