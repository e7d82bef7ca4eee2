// SPDX-License-Identifier: MIT
#include "cli/scale_options.h"

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iostream>

#include "cli/log_arguments.h"
#include "cli/show_summary.h"
#include "cli/units.h"
#include "formats/support/error.h"
#include "formats/support/escape.h"
#include "formats/support/new_file.h"

namespace reprise::cli {
namespace {

namespace fs = std::filesystem;

double factor_of(const std::string& word) {
    double factor = 0;
    size_t used = 0;
    try {
        factor = std::stod(word, &used);
    } catch (const std::exception&) {
        used = 0;
    }
    if (used == 0 || used != word.size() || !(factor >= ScaleOptions::kLeast) || factor > ScaleOptions::kMost) {
        throw usage_error("--scale is '" + escape_line(word) + "', expected a number from 0.01 to 1000",
                          "2 doubles the data set, 0.5 halves it");
    }
    return factor;
}

}  // namespace

void add_scale_factor_options(po::options_description& add) {
    add.add_options()("scale", po::value<std::string>()->default_value("1")->value_name("K"),
                      "the job on a data set K times as large: more files, or longer ones");
    add.add_options()("epochs", po::value<std::string>()->value_name("N"), "as many epochs [default: as recorded]");
}

void add_scale_detail_options(po::options_description& add) {
    add.add_options()("seed", po::value<std::string>()->default_value("1")->value_name("S"),
                      "with --scale: of the order of the samples");
    add.add_options()("scale-as", po::value<std::vector<std::string>>()->value_name("PATTERN=CLASS")->composing(),
                      "with --scale: how files grow (sample, records, index, fixed), where `info --scaling` is wrong; "
                      "may be repeated");
}

std::vector<SampleOverride> sample_overrides(const po::variables_map& values) {
    std::vector<SampleOverride> out;
    if (values.count("scale-as") != 0) {
        for (const std::string& word : values["scale-as"].as<std::vector<std::string>>()) {
            out.push_back(SampleOverride::parse(word));
        }
    }
    return out;
}

ScaleOptions scale_options(const po::variables_map& values) {
    constexpr int64_t kMostEpochs = 10'000;
    ScaleOptions options;
    options.factor = factor_of(values["scale"].as<std::string>());
    if (values.count("epochs") != 0 && !values["epochs"].as<std::string>().empty()) {
        options.epochs = static_cast<uint32_t>(whole_number(values, "epochs", 1, kMostEpochs));
    }
    options.seed = static_cast<uint64_t>(whole_number(values, "seed", 0, INT32_MAX));
    options.as = sample_overrides(values);
    if (!options.changes_anything() && (!options.as.empty() || options.seed != 1)) {
        throw usage_error(std::string(options.as.empty() ? "--seed" : "--scale-as") + " requires --scale or --epochs",
                          "");
    }
    return options;
}

LogReader log_at_scale(const std::string& path, const ScaleOptions& options, const po::variables_map& values) {
    LogReader log = open_log(path, values);
    if (!options.changes_anything()) {
        return log;
    }
    const ScratchDir scratch;  // gone once the log is open
    const fs::path scaled = scratch.path() / "scaled.oplog";
    WriterOptions fast;
    fast.level = 1;
    fast.sync = false;
    const ScaleResult result = scale_log(log, scaled, options, fast);
    if (!quiet()) {
        for (const std::string& note : result.notes) {
            std::cerr << "note: " << note << '\n';
        }
    }
    return LogReader(scaled);
}

std::string name_at_scale(const std::string& path, const ScaleOptions& options, const po::variables_map& values) {
    std::string text = shell_word(path) + (values.count("recover") != 0 ? " --recover" : "");
    if (options.factor != 1) {
        char factor[32];
        std::snprintf(factor, sizeof factor, " --scale %.15g", options.factor);
        text += factor;
    }
    text += options.epochs != 0 ? " --epochs " + std::to_string(options.epochs) : "";
    text += options.seed != 1 ? " --seed " + std::to_string(options.seed) : "";
    for (const SampleOverride& one : options.as) {
        text += " --scale-as " + shell_word(one.pattern + "=" + std::string(sample_class_name(one.kind)));
    }
    return text;
}

Table scaling_table(const ScalingSurvey& survey) {
    Table table({{"files", "what"},
                 {"count", "files", true},
                 {"ops", "ops", true},
                 {"read", "bytes", true},
                 {"class", "class"},
                 {"sure", "confidence", true},
                 {"grows", "grows"}});
    for (const ScalingRow& row : survey.rows) {
        table.row({text_cell(row.what),
                   count_cell(row.files),
                   count_cell(row.ops),
                   bytes_cell(row.bytes),
                   sample_class_name(row.kind),
                   {std::to_string(row.confidence) + " %", row.confidence},
                   row.grows});
    }
    return table;
}

void print_scaling(const ScalingSurvey& survey) {
    std::cout << "Scaling\n";
    scaling_table(survey).print(std::cout, 2);
    if (!survey.epochs.empty()) {
        std::cout << "  epochs       ";
        for (size_t i = 0; i < survey.epochs.size() && i < 8; ++i) {
            std::cout << (i == 0 ? "" : ", ") << format_count(survey.epochs[i]);
        }
        std::cout << (survey.epochs.size() > 8 ? ", ..." : "") << " reads of samples; "
                  << format_share(survey.late_share) << " of them before the epoch before was over\n";
    }
    if (survey.obstacle.empty()) {
        std::cout << "  order        " << survey.order << "\n  steps of     " << survey.leader << '\n';
    } else {
        std::cout << "  cannot be scaled: " << survey.obstacle << '\n';
    }
    for (const std::string& note : survey.notes) {
        std::cout << "  note: " << note << '\n';
    }
}

Json scaling_json(const ScalingSurvey& survey) {
    return {{"files", scaling_table(survey).json()},
            {"epochs", survey.epochs},
            {"late_share", survey.late_share},
            {"order", survey.order},
            {"leader", survey.leader},
            {"obstacle", survey.obstacle.empty() ? Json(nullptr) : Json(survey.obstacle)},
            {"notes", survey.notes}};
}

}  // namespace reprise::cli
