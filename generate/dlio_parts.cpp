// SPDX-License-Identifier: MIT
#include "generate/dlio_parts.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <optional>

#include "formats/support/error.h"
#include "formats/support/quantity.h"

namespace reprise {
namespace {

constexpr double kMostSeconds = 1e9, kMostBytes = 0x1p60;
constexpr uint64_t kMostParts = 1'000'000;

std::string seconds(double value) { return plain_number(value) + "s"; }

/// The keys of a time that is a mapping.
class TimeOf {
public:
    TimeOf(DlioJob& job, const std::string& key, const YAML::Node& map) : job_(job), key_(key), map_(map) {
        for (const auto& each : map) {
            const std::string name = each.first.IsScalar() ? each.first.Scalar() : "";
            constexpr std::string_view kNames[] = {"mean", "stdev", "type", "min", "max", "shape", "scale", "lam"};
            if (std::find(std::begin(kNames), std::end(kNames), name) == std::end(kNames)) {
                job.keys.fail(key, "'" + escape_line(name) + "' is no key of " + key,
                              "mean, stdev, type, min, max, shape, scale or lam");
            }
        }
    }
    std::string text() const {
        const YAML::Node type = map_["type"];
        std::string kind = type && type.IsScalar() ? type.Scalar() : "normal";
        if (kind == "normal") {
            const double deviation = value("stdev", 0);
            const std::string mean = seconds(value("mean", 0));
            return deviation == 0 ? mean : "normal(" + mean + "," + seconds(deviation) + ")";
        }
        if (kind == "uniform") {
            return "uniform(" + seconds(value("min")) + "," + seconds(value("max")) + ")";
        }
        if (kind == "gamma") {
            const double shape = value("shape"), scale = value("scale");
            return lognormal(kind, shape * scale, std::sqrt(shape) * scale);
        }
        if (kind == "exponential") {
            const double scale = value("scale");
            return lognormal(kind, scale, scale);
        }
        if (kind == "poisson") {
            const double mean = value("lam");
            return lognormal(kind, mean, std::sqrt(mean));
        }
        job_.keys.fail(key_, "'" + escape_line(kind) + "' is no distribution of DLIO",
                       "one of: normal, uniform, gamma, exponential, poisson");
    }

private:
    double value(const char* name, std::optional<double> otherwise = {}) const {
        const YAML::Node node = map_[name];
        if (!node || node.IsNull()) {
            if (!otherwise) {
                job_.keys.fail(key_, key_ + " has no " + name, "its type needs it");
            }
            return *otherwise;
        }
        return job_.keys.number_of(key_, node, 0, kMostSeconds);
    }
    std::string lognormal(const std::string& kind, double mean, double deviation) const {
        if (!(mean > 1e-9)) {
            return "0";
        }
        job_.note(key_ + ": type " + kind + " became a lognormal distribution of the same mean and deviation");
        return "lognormal(" + seconds(mean) + "," + seconds(deviation) + ")";
    }
    DlioJob& job_;
    const std::string& key_;
    const YAML::Node map_;
};

double bytes_of_type(DlioJob& job, std::string_view key, const std::string& otherwise) {
    const std::string type = job.keys.text(key, otherwise);
    if (type == "int8" || type == "uint8") {
        return 1;
    }
    if (type == "fp16" || type == "bf16") {
        return 2;
    }
    if (type == "fp32" || type == "fp64") {
        return type == "fp32" ? 4 : 8;
    }
    job.keys.wrong(key, "one of: int8, uint8, fp16, bf16, fp32, fp64");
}

/// The model's weights and an optimizer that holds three numbers for each of them, by DLIO's rule.
double transformer_bytes(DlioJob& job, double layers) {
    DlioKeys& keys = job.keys;
    const auto size = [&](const char* key, uint64_t otherwise) {
        return static_cast<double>(keys.count(std::string("model.transformer.") + key, otherwise, 1));
    };
    const double vocabulary = size("vocab_size", 32000), hidden = size("hidden_size", 2048);
    const double inner = size("ffn_hidden_size", 8192), heads = size("num_attention_heads", 32);
    const double key_values = std::floor(hidden / heads) * size("num_kv_heads", 8);
    const double attention = hidden * (hidden + 2 * key_values) + hidden * hidden;
    const double layer = 2 * hidden + attention + 3 * hidden * inner;
    const double weights = 2 * vocabulary * hidden + layers * layer + hidden;
    return weights * (bytes_of_type(job, "model.model_datatype", "fp16") +
                      3 * bytes_of_type(job, "model.optimizer_datatype", "fp32"));
}

struct Checkpoints {
    uint64_t bytes = 0;    // of one, all ranks together
    uint64_t writers = 1;  // ranks
};

Checkpoints checkpoint_size(DlioJob& job) {
    DlioKeys& keys = job.keys;
    const uint64_t parallel = keys.count("model.parallelism.tensor", 1, 1, kMostParts) *
                              keys.count("model.parallelism.pipeline", 1, 1, kMostParts);
    const double stage = keys.number("model.parallelism.zero_stage", 0, -1, 3);
    const std::string type = keys.text("checkpoint.type", "rank_zero");
    if (type != "rank_zero" && type != "all_ranks" && type != "independent") {
        keys.wrong("checkpoint.type", "rank_zero or all_ranks");
    }
    Checkpoints out;
    out.writers = stage > 0 || type != "rank_zero" ? job.gpus : std::min(job.gpus, parallel);
    const double layers = keys.number("model.num_layers", 0, -1, 1e6);
    const std::vector<double> groups = keys.numbers("model.optimization_groups");
    const std::vector<double> parts = keys.numbers("model.layer_parameters");
    const auto sum = [](const std::vector<double>& of) { return std::accumulate(of.begin(), of.end(), 0.0); };
    double bytes = 0;
    if (keys.text("model.type", "") == "transformer" && groups.empty() && parts.empty()) {
        if (layers < 1) {
            keys.fail("model.type", "a transformer without model.num_layers has no size", "give num_layers");
        }
        bytes = transformer_bytes(job, layers);
    } else {
        const bool sized = keys.given("model.model_size_bytes");
        if (!sized && groups.empty() && parts.empty()) {
            job.note("no size of the model is given: checkpoints have DLIO's default of 10240 bytes");
        }
        const double model = keys.number("model.model_size_bytes", 10240, 0, kMostBytes);
        // A group is written as two tensors and once more with all others.
        bytes = static_cast<double>(out.writers) * (model + 3 * sum(groups)) + std::max(layers, 0.0) * sum(parts);
    }
    if (!(bytes < kMostBytes)) {
        keys.fail("model.num_layers", "a checkpoint would have more than 2^60 bytes", "correct the model's sizes");
    }
    out.bytes = std::max<uint64_t>(static_cast<uint64_t>(bytes), 1);
    return out;
}

}  // namespace

std::string plain_number(double value) {
    char text[512];
    const auto [end, error] = std::to_chars(std::begin(text), std::end(text), value, std::chars_format::fixed);
    return error == std::errc() ? std::string(text, end) : "0";
}

std::string dlio_folder(DlioJob& job, std::string_view key, const std::string& otherwise) {
    std::string folder = job.keys.text(key, otherwise);
    const std::string given = folder;
    if (folder.starts_with("file://")) {
        folder.erase(0, 7);
    }
    if (folder.find("://") != folder.npos) {
        job.keys.wrong(key, "a path: objects are not made into a log; place files elsewhere with `prepare --map`");
    }
    if (!folder.starts_with('/')) {
        const std::string root = job.keys.text("storage.storage_root", "");
        folder = root.starts_with('/') ? root + "/" + folder : "/" + folder;
        for (size_t at = folder.find("/./"); at != folder.npos; at = folder.find("/./")) {
            folder.erase(at, 2);
        }
        while (folder.ends_with('/')) {
            folder.pop_back();
        }
        job.note("directory: " + std::string(key) + " '" + escape_line(given) + "' is " + escape_line(folder) +
                 " in the log; `prepare --map` places it elsewhere");
    }
    const bool good = std::all_of(folder.begin(), folder.end(), [](unsigned char c) { return c > ' ' && c != 0x7f; });
    if (!good) {
        job.keys.wrong(key, "a path without blanks");
    }
    while (folder.ends_with('/')) {
        folder.pop_back();
    }
    return folder;
}

std::string dlio_times(DlioJob& job, const std::string& key) {
    const auto node = job.keys.node(key);
    const std::string deviation_key = key + "_stdev";
    const double deviation = job.keys.number(deviation_key, 0, 0, kMostSeconds);
    std::string text;
    if (node && node->IsMap()) {
        text = TimeOf(job, key, *node).text();
        if (deviation != 0 && text.find('(') != text.npos) {
            job.keys.fail(deviation_key, deviation_key + " beside a distribution", "leave out one of them");
        }
    } else if (node) {
        text = seconds(job.keys.number_of(key, *node, 0, kMostSeconds));
    } else if (deviation != 0) {
        text = "0s";
    }
    return deviation == 0 || text.empty() ? text : "normal(" + text + "," + seconds(deviation) + ")";
}

void dlio_checkpoints(DlioJob& job, uint64_t epochs) {
    DlioKeys& keys = job.keys;
    if (!keys.yes("workflow.checkpoint", false)) {
        return;
    }
    std::string every;
    if (const auto steps = keys.maybe_count("checkpoint.steps_between_checkpoints")) {
        every = std::to_string(*steps);
        if (epochs > 1) {
            job.note(
                "checkpoint.steps_between_checkpoints: steps are counted through all epochs; DLIO begins anew in "
                "each");
        }
    } else {
        const uint64_t first = keys.count("checkpoint.checkpoint_after_epoch", 1, 1);
        const uint64_t between = keys.count("checkpoint.epochs_between_checkpoints", 1, 1);
        if (first > epochs) {
            return job.note("no checkpoint: checkpoint.checkpoint_after_epoch is " + std::to_string(first) + " of " +
                            counted(epochs, "epoch"));
        }
        const bool alone = first + between > epochs && 2 * first > epochs;  // there is just one
        every = std::to_string(alone ? first : between) + "epochs";
        if (!alone && first != between) {
            job.note("checkpoint.checkpoint_after_epoch: checkpoints are made every " + counted(between, "epoch") +
                     " from the start; DLIO makes the first one after epoch " + std::to_string(first));
        }
    }
    if (keys.given("checkpoint.checkpoint_folder")) {
        keys.text("checkpoint.checkpoint_folder", "");
        job.note("checkpoint.checkpoint_folder: checkpoints lie beside the data set");
    }
    const Checkpoints size = checkpoint_size(job);
    job.word("checkpoint_every", every);
    job.word("checkpoint_size", size.bytes);
    job.word("checkpoint_mode", size.writers > 1 ? "sharded" : "blocking");
    if (size.writers > 1 && size.writers < job.gpus) {
        job.note("all ranks write a part of a checkpoint; in DLIO " + std::to_string(size.writers) + " do");
    }
    if (!keys.yes("checkpoint.fsync", false)) {
        job.note("checkpoints are synced and renamed when they are written, as frameworks do; DLIO only writes them");
    }
}

void dlio_checkpoints_alone(DlioJob& job) {
    DlioKeys& keys = job.keys;
    constexpr uint64_t kMostSections = 1000, kBlock = 1 << 20;
    const uint64_t writes = keys.maybe_count("checkpoint.num_checkpoints_write").value_or(0);
    const uint64_t reads = keys.maybe_count("checkpoint.num_checkpoints_read").value_or(0);
    if (writes + reads == 0 || writes > kMostSections || reads > kMostSections) {
        keys.fail("workflow.train",
                  "nothing is trained, and checkpoint.num_checkpoints_write and num_checkpoints_read say " +
                      std::to_string(writes) + " and " + std::to_string(reads),
                  "train: True, or from 1 to 1000 checkpoints");
    }
    const Checkpoints size = checkpoint_size(job);
    const uint64_t part = (size.bytes + size.writers - 1) / size.writers;
    const std::string folder = dlio_folder(job, "checkpoint.checkpoint_folder", "./checkpoints/");
    const bool sync = keys.yes("checkpoint.fsync", false);
    const auto add = [&](const std::string& title, const std::string& way) {
        job.section(title);
        job.word("directory", folder.empty() ? "/" : folder);
        job.word("stonewall", 1);
        job.word("rw", way);
        job.word("bs", std::min(part, kBlock));
        job.word("size", part);
        job.word("numjobs", size.writers);
        if (way == "write" && sync) {
            job.word("end_fsync", 1);
        }
    };
    for (uint64_t i = 1; i <= writes; ++i) {
        add(job.name + "-save-" + std::to_string(i), "write");
    }
    for (uint64_t i = 1; i <= reads; ++i) {
        add(job.name + "-load-" + std::to_string(i), "read");
    }
    job.note(
        "checkpoints alone: each rank writes and reads one file of a checkpoint in blocks of 1 MiB, over files that "
        "are there before; what is read is not what was written, so that the page cache does not hold it");
}

}  // namespace reprise
