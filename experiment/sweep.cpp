// SPDX-License-Identifier: MIT
#include "experiment/sweep.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>

namespace reprise {
namespace {

using Json = nlohmann::ordered_json;

struct Figure {
    const char* key;
    std::optional<double> SweepRun::*member;
};
constexpr Figure kFigures[] = {{"au", &SweepRun::au},
                               {"bytes_per_s", &SweepRun::bytes_per_s},
                               {"read_p99_s", &SweepRun::read_p99_s},
                               {"device_bytes", &SweepRun::device_bytes},
                               {"device_share", &SweepRun::device_share},
                               {"limit_bytes", &SweepRun::limit_bytes}};

Json to_json(const SweepTurn& turn, const SweepRun& run) {
    Json json = {{"cell", turn.cell},  {"run", turn.run},      {"refused", run.refused},
                 {"trust", run.trust}, {"reason", run.reason}, {"elapsed_s", run.elapsed_s}};
    for (const Figure& figure : kFigures) {
        const std::optional<double>& value = run.*figure.member;
        json[figure.key] = value ? Json(*value) : Json(nullptr);
    }
    return json;
}

std::pair<SweepTurn, SweepRun> from_json(const Json& json) {
    SweepRun run;
    run.refused = json.at("refused").get<std::string>();
    run.trust = json.at("trust").get<std::string>();
    run.reason = json.at("reason").get<std::string>();
    run.elapsed_s = json.at("elapsed_s").get<double>();
    for (const Figure& figure : kFigures) {
        if (const Json& value = json.at(figure.key); !value.is_null()) {
            run.*figure.member = value.get<double>();
        }
    }
    return {{json.at("cell").get<size_t>(), json.at("run").get<size_t>()}, run};
}

}  // namespace

std::vector<SweepCell> sweep_cells(const std::vector<SweepAxis>& axes) {
    std::vector<SweepCell> cells = {{}};
    for (const SweepAxis& axis : axes) {
        std::vector<SweepCell> more;
        for (const SweepCell& cell : cells) {
            for (size_t value = 0; value < axis.values.size(); ++value) {
                more.push_back(cell);
                more.back().push_back(value);
            }
        }
        cells = std::move(more);
    }
    return cells;
}

std::vector<SweepTurn> sweep_order(size_t cells, size_t runs, uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<SweepTurn> order;
    for (size_t run = 0; run < runs; ++run) {
        std::vector<size_t> round(cells);
        for (size_t cell = 0; cell < cells; ++cell) {
            round[cell] = cell;
        }
        // As std::shuffle, whose result is not the same everywhere.
        for (size_t left = cells; left > 1; --left) {
            std::swap(round[left - 1], round[random() % left]);
        }
        for (const size_t cell : round) {
            order.push_back({cell, run});
        }
    }
    return order;
}

SweepRows::SweepRows(std::filesystem::path path, std::string conditions, bool fresh)
    : file_(std::move(path), "sweep", std::move(conditions), fresh) {
    for (const Json& json : file_.found()) {
        try {
            rows_.push_back(from_json(json));
        } catch (const Json::exception&) {
            continue;  // not a run
        }
    }
}

const SweepRun* SweepRows::find(SweepTurn turn) const {
    const auto found = std::find_if(rows_.begin(), rows_.end(), [&](const auto& row) { return row.first == turn; });
    return found == rows_.end() ? nullptr : &found->second;
}

void SweepRows::add(SweepTurn turn, SweepRun run) {
    file_.add(to_json(turn, run));
    rows_.emplace_back(turn, std::move(run));
}

std::optional<SweepFigure> sweep_figure(const std::vector<const SweepRun*>& runs, const SweepFigureOf& figure) {
    constexpr size_t kEnough = 6;
    std::vector<double> good, made;
    for (const SweepRun* const run : runs) {
        const std::optional<double> value = run->refused.empty() ? figure(*run) : std::nullopt;
        if (value) {
            made.push_back(*value);
            if (run->trust != "poor") {
                good.push_back(*value);
            }
        }
    }
    const std::vector<double>& values = good.empty() ? made : good;
    if (values.empty()) {
        return std::nullopt;
    }
    const MedianInterval interval = median_interval(values);
    SweepFigure result{interval.median, interval.low, interval.high, values.size()};
    if (values.size() < kEnough) {
        const auto [least, most] = std::minmax_element(values.begin(), values.end());
        result.low = *least;
        result.high = *most;
    }
    return result;
}

}  // namespace reprise
