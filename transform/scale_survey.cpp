// SPDX-License-Identifier: MIT
// What scaling would do with a recording, for people.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <numeric>

#include "formats/oplog/header_facts.h"
#include "formats/oplog/op_fields.h"
#include "formats/support/error.h"
#include "formats/support/one_line.h"
#include "transform/scale.h"

namespace reprise {
namespace {

std::string pattern_of(std::string_view path, SampleClass kind) {
    if (kind != SampleClass::sample) {
        return std::string(path);
    }
    const size_t point = path.rfind('.');
    return point == path.npos || point < path.rfind('/') + 1 ? "*" : "*" + std::string(path.substr(point));
}

const char* growth_of(SampleClass kind) {
    switch (kind) {
        case SampleClass::sample: return "more files, read once an epoch";
        case SampleClass::records: return "longer, its records read once an epoch";
        case SampleClass::index: return "longer, read once";
        case SampleClass::fixed: return "no";
    }
    return "";
}

uint32_t confidence_of(SampleClass kind, const ScaleRecording& recording, bool given) {
    if (given) {
        return 100;
    }
    const bool twice = recording.epochs().size() > 1 && recording.late_share() < 0.02;
    switch (kind) {
        case SampleClass::sample: return twice ? 95 : recording.late_share() < 0.02 ? 85 : 60;
        case SampleClass::records: return twice ? 85 : 65;
        case SampleClass::index: return 60;
        case SampleClass::fixed: return 70;
    }
    return 0;
}

double moved_share(const Score& score) {
    const auto all = static_cast<double>(std::accumulate(score.played.begin(), score.played.end(), uint64_t{0}));
    return all > 0 ? static_cast<double>(score.moved_on) / all : 0;
}

}  // namespace

std::string ScaleOptions::to_string() const {
    char text[64];
    std::snprintf(text, sizeof text, "--scale %g", factor);
    std::string out = text;
    if (epochs != 0) {
        out += " --epochs " + std::to_string(epochs);
    }
    out += " --seed " + std::to_string(seed);
    for (const SampleOverride& one : as) {
        out += " --scale-as " + one.pattern + "=" + std::string(sample_class_name(one.kind));
    }
    return out;
}

size_t ScaleResult::missed_epoch() const {
    constexpr double kMost = 0.1;
    double most = kMost;
    size_t worst = epochs.size();
    for (size_t epoch = 0; epoch < std::min(epochs.size(), asked.size()); ++epoch) {
        const auto made = static_cast<double>(epochs[epoch]), wanted = static_cast<double>(asked[epoch]);
        const double missed = std::abs(made - wanted) / std::max(wanted, 1.0);
        if (missed > most) {
            most = missed;
            worst = epoch;
        }
    }
    return worst;
}

void add_missed_epochs(const Score& score, std::vector<std::string>& notes) {
    for (size_t epoch = 0; epoch < score.played.size(); ++epoch) {
        const double want = epoch < score.wanted.size() ? static_cast<double>(score.wanted[epoch]) : 0;
        const auto played = static_cast<double>(score.played[epoch]);
        if (want > 0 && std::abs(played - want) > want / 50 + 1) {
            char text[160];
            std::snprintf(text, sizeof text, "epoch %zu reads %.0f samples, not %.0f: it has too few steps alike",
                          epoch + 1, played, want);
            notes.emplace_back(text);
        }
    }
    if (moved_share(score) > 0.02) {
        char text[160];
        std::snprintf(text, sizeof text,
                      "%.0f %% of the reads are of another shard than they would be: some have too few steps alike",
                      100 * moved_share(score));
        notes.emplace_back(text);
    }
}

uint32_t missed_permille(const Score& score) {
    double most = 0;
    for (size_t epoch = 0; epoch < std::min(score.played.size(), score.wanted.size()); ++epoch) {
        const auto want = static_cast<double>(score.wanted[epoch]), played = static_cast<double>(score.played[epoch]);
        most = want > 0 ? std::max(most, std::abs(played - want) / want) : most;
    }
    return static_cast<uint32_t>(std::min(std::max(most, moved_share(score)) * 1000, 1e6));
}

std::vector<std::string> scaling_notes(const ScaleRecording& recording) {
    std::vector<std::string> notes;
    int64_t first = INT64_MAX, last = INT64_MIN, end = INT64_MIN;
    for (const SampleUnit& unit : recording.units()) {
        if (unit.bytes > 0) {
            first = std::min(first, unit.begin);
            last = std::max(last, unit.begin);
        }
    }
    for (const RecordedTask& task : recording.tasks()) {
        end = std::max(end, task.end);
    }
    uint64_t touches = 0, reads = 0;
    for (const SampleUnit& unit : recording.units()) {
        reads += unit.bytes > 0 ? 1 : 0;
        touches += unit.bytes > 0 && recording.touched(unit.file) ? 1 : 0;
    }
    if (touches * 2 > reads && !read_fact(recording.log().header(), fact::mapped_uses).value_or(false)) {
        notes.emplace_back(
            "the samples are pages of mapped files: steps that touch none for the first time are not seen as such, and "
            "do not grow (capture --with mapped-uses sees them)");
    }
    if (first <= last && recording.epochs().size() == 1 && (end - last) / 2 > last - first) {
        char text[240];
        std::snprintf(text, sizeof text,
                      "the samples are read in the first %.1f s and not in the %.1f s after: the job keeps them itself "
                      "(a cache of its own), or does something else then; that time does not grow",
                      static_cast<double>(last - first) / 1e9, static_cast<double>(end - last) / 1e9);
        notes.emplace_back(text);
    }
    return notes;
}

ScalingSurvey survey_scaling(const LogReader& log, const std::vector<SampleOverride>& as) {
    const ScaleRecording recording(log, as);
    const Tables& tables = log.tables();
    ScalingSurvey out;
    out.epochs = recording.epochs();
    out.late_share = recording.late_share();
    out.obstacle = scaling_obstacle(recording);
    out.notes = scaling_notes(recording);
    std::vector<uint64_t> ops(tables.files.size()), bytes(tables.files.size());
    OpBlock block;
    for (const BlockInfo& where : log.blocks()) {
        log.decode(where, block);
        for (size_t i = 0; i < block.count(); ++i) {
            FileId file = block.file[i];
            if (file == 0 && block.handle[i] < tables.handles.size()) {
                file = tables.handles[block.handle[i]].file;
            }
            file = file == 0 && block.map[i] != 0 ? recording.file_of_map(block.map[i]) : file;
            if (file != 0 && file < ops.size()) {
                ++ops[file];
                bytes[file] += info(static_cast<OpKind>(block.kind[i])).is(Trait::reads) && block.result[i] > 0
                                   ? static_cast<uint64_t>(block.result[i])
                                   : 0;
            }
        }
        log.forget(where);
    }
    std::map<std::pair<int, std::string>, ScalingRow> rows;
    uint64_t in_order = 0, units = 0;
    for (FileId file = 1; file < tables.files.size(); ++file) {
        const SampleClass kind = recording.class_of(file);
        const Role role = tables.files[file].role;
        const bool shown = kind != SampleClass::fixed || ops[file] > 0;
        if (!shown) {
            continue;
        }
        const std::string what = kind == SampleClass::fixed ? "other files: " + std::string(role_name(role))
                                                            : pattern_of(tables.path(file), kind);
        ScalingRow& row = rows[{-static_cast<int>(kind), what}];
        row.what = what;
        row.kind = kind;
        ++row.files;
        row.ops += ops[file];
        row.bytes += bytes[file];
        row.grows = growth_of(kind);
        row.confidence = confidence_of(kind, recording, !as.empty() && kind != SampleClass::fixed);
        in_order += kind == SampleClass::records && recording.in_order(file) ? 1 : 0;
        units += kind == SampleClass::records ? 1 : 0;
    }
    for (auto& [key, row] : rows) {
        out.rows.push_back(std::move(row));
    }
    if (!out.obstacle.empty()) {
        return out;
    }
    out.order = units == 0             ? "as recorded, a new permutation for each epoch"
                : in_order * 2 > units ? "one after the other, as recorded"
                                       : "spread over the file, as recorded";
    try {
        const Score score = make_score(recording, 2, 0);
        out.leader = "task " + std::to_string(score.leader) +
                     (score.by_causes ? ", which waits for what is read (by its recorded causes)"
                                      : ", which reads the most (by time)");
    } catch (const Error& error) {
        out.obstacle = in_one_line(error.what());
    }
    return out;
}

}  // namespace reprise
