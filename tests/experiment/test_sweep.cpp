// SPDX-License-Identifier: MIT
// Sweeps: which cells, in which order, what is kept of them, what they say.
#include "experiment/sweep.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "experiment/picture.h"
#include "formats/support/error.h"
#include "tests/support.h"

namespace reprise::test {
namespace {

SweepRun run_of(double elapsed, const char* trust = "good") {
    SweepRun run;
    run.trust = trust;
    run.elapsed_s = elapsed;
    run.au = 0.5;
    return run;
}

std::optional<double> elapsed(const SweepRun& run) { return run.elapsed_s; }

}  // namespace

TEST_CASE("sweep: all combinations, and each once in every round, shuffled by the seed") {
    const std::vector<SweepCell> cells = sweep_cells({{"ratio", {"1", "2", "4"}}, {"gpu-speed", {"1", "2"}}});
    CHECK(cells == std::vector<SweepCell>{{0, 0}, {0, 1}, {1, 0}, {1, 1}, {2, 0}, {2, 1}});
    CHECK(sweep_cells({}).size() == 1);
    const std::vector<SweepTurn> order = sweep_order(6, 50, 1);
    REQUIRE(order.size() == 300);
    std::set<std::vector<size_t>> rounds;
    for (size_t round = 0; round < 50; ++round) {
        std::vector<size_t> in_round;
        for (size_t i = 0; i < 6; ++i) {
            CHECK(order[round * 6 + i].run == round);
            in_round.push_back(order[round * 6 + i].cell);
        }
        rounds.insert(in_round);
        std::sort(in_round.begin(), in_round.end());
        CHECK(in_round == std::vector<size_t>{0, 1, 2, 3, 4, 5});
    }
    CHECK(rounds.size() > 30);
    CHECK(sweep_order(6, 50, 1) == order);
    CHECK_FALSE(sweep_order(6, 50, 2) == order);
}

TEST_CASE("sweep: runs are kept as they are made; a line that was cut is not one; others' are refused") {
    const TempDir dir;
    const auto path = dir / "runs.jsonl";
    SweepRun refused;
    refused.refused = "a limit that \"nothing\" fits in\n";
    SweepRun second = run_of(1.25, "poor");
    second.reason = "steal \xff";  // not UTF-8
    second.device_bytes = 1e12;
    {
        SweepRows rows(path, "log a", false);
        rows.add({0, 0}, run_of(0.1));
        rows.add({1, 0}, refused);
        rows.add({0, 1}, second);
        CHECK(rows.size() == 3);
    }
    {
        const SweepRows again(path, "log a", false);
        REQUIRE(again.size() == 3);
        CHECK(*again.find({0, 0}) == run_of(0.1));
        CHECK(*again.find({1, 0}) == refused);
        CHECK(again.find({0, 1})->device_bytes == 1e12);
        CHECK(again.find({1, 1}) == nullptr);
        CHECK_THROWS_WITH_AS(SweepRows(path, "log a", false), doctest::Contains("in use by another sweep"), Error);
    }
    const std::string whole = read_file(path);
    for (const size_t cut : {whole.size() - 1, whole.size() - 20}) {
        write_file(path, whole.substr(0, cut));
        {
            SweepRows rows(path, "log a", false);
            const bool only_the_end = cut == whole.size() - 1;
            CHECK(rows.size() == (only_the_end ? 3 : 2));
            if (!only_the_end) {
                rows.add({0, 1}, run_of(3));
            }
        }
        CHECK(SweepRows(path, "log a", false).size() == 3);
    }
    write_file(path, "garbage\n{}\n[]\n" + whole);
    CHECK(SweepRows(path, "log a", false).size() == 3);
    CHECK_THROWS_WITH_AS(SweepRows(path, "log b", false), doctest::Contains("runs of another sweep"), Error);
    CHECK(SweepRows(path, "log b", true).size() == 0);
    CHECK_THROWS_WITH_AS(SweepRows(dir / "no/folder", "log a", false), doctest::Contains("No such file"), Error);
}

TEST_CASE("rows are kept in a folder of their own: neither others' files nor a foreign file of the name are touched") {
    const TempDir dir;
    const auto path = dir / "runs.jsonl";
    const auto begin = [&](bool fresh, const std::filesystem::path& aside = {}) {
        return RowFile(path, "sweep", "log a", fresh, aside).found().size();
    };
    CHECK(begin(false) == 0);
    CHECK(begin(false) == 0);  // killed before its first row
    write_file(path, "{\"cut");
    CHECK(begin(false) == 0);  // in it
    write_file(path, "mine\n");
    CHECK_THROWS_WITH_AS(begin(false), doctest::Contains("has files, and not those of a sweep"), Error);
    CHECK(read_file(path) == "mine\n");
    std::filesystem::remove(path);
    write_file(dir / "cells.csv", "mine\n");
    CHECK_THROWS_WITH_AS(begin(false), doctest::Contains("-f uses this one"), Error);
    CHECK_FALSE(std::filesystem::exists(path));
    CHECK(begin(true) == 0);
    CHECK(read_file(dir / "cells.csv") == "mine\n");
    RowFile(path, "sweep", "log a", false).add({{"run", 1}});
    CHECK(RowFile::peek(path).size() == 1);
    const std::string before = read_file(path);
    CHECK(begin(true, dir / "before") == 0);
    CHECK(read_file(dir / "before") == before);
    CHECK(RowFile::peek(dir / "none").empty());
    CHECK_THROWS_WITH_AS(begin(true, dir / "no/folder"), doctest::Contains("cannot write"), Error);
}

TEST_CASE("sweep: a cell is the median of what may be trusted, and says how far its runs lie apart") {
    const SweepRun a = run_of(1), b = run_of(3), c = run_of(2), poor = run_of(90, "poor");
    SweepRun refused;
    refused.refused = "no";
    auto figure = sweep_figure({&a, &b, &c, &poor, &refused}, elapsed);
    REQUIRE(figure);
    CHECK(figure->median == 2);
    CHECK(figure->low == 1);
    CHECK(figure->high == 3);
    CHECK(figure->runs == 3);
    figure = sweep_figure({&poor}, elapsed);
    REQUIRE(figure);
    CHECK(figure->median == 90);
    CHECK_FALSE(sweep_figure({&refused}, elapsed));
    CHECK_FALSE(sweep_figure({}, elapsed));
    CHECK_FALSE(sweep_figure({&a}, [](const SweepRun& run) { return run.read_p99_s; }));
}

TEST_CASE("pictures: round ticks, and files of both kinds") {
    CHECK(round_ticks(8, 5) == std::vector<double>{0, 2, 4, 6, 8});
    CHECK(round_ticks(1, 5).size() == 6);
    CHECK(round_ticks(7.3, 5) == std::vector<double>{0, 2, 4, 6, 8});
    CHECK(round_ticks(1000, 4).back() >= 1000);
    CHECK(round_ticks(0.003, 5).back() >= 0.003);
    const TempDir dir;
    Chart chart;
    chart.title = "a job & <others>";
    chart.ticks = {{0, "1"}, {1, "2"}, {3, "8"}};
    ChartPanel panel{.title = "time", .curves = {}, .y_label = [](double y) { return std::to_string(y); }};
    panel.curves = {{"one", {{0, 1, 0.5, 2}, {3, 4, 4, 4}}}, {"two", {}}};
    chart.panels = {panel, panel, panel};
    draw(chart, dir / "a.svg");
    draw(chart, dir / "a.png");
    CHECK(read_file(dir / "a.svg").find("</svg>") != std::string::npos);
    CHECK(read_file(dir / "a.png").substr(1, 3) == "PNG");
    draw(Chart(), dir / "none.svg");
    CHECK_FALSE(std::filesystem::exists(dir / "none.svg"));
    CHECK_THROWS_AS(draw(chart, dir / "no/folder.png"), Error);
    CHECK_THROWS_AS(draw(chart, dir / "no/folder.svg"), Error);
    chart.ticks = {{5, "only"}};
    chart.panels.resize(1);
    draw(chart, dir / "one.png");
    CHECK(read_file(dir / "one.png").substr(1, 3) == "PNG");
}

}  // namespace reprise::test
