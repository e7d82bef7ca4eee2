// SPDX-License-Identifier: MIT
#include "cli/show_cluster.h"

#include <cmath>
#include <fstream>
#include <optional>

#include "cli/units.h"
#include "experiment/picture.h"
#include "formats/support/error.h"

namespace reprise::cli {
namespace {

constexpr double kEnough = 0.9;  // what MLPerf Storage asks of most workloads

std::string seconds_text(double s) { return format_duration(std::llround(s * 1e9)); }

std::string limits_text(const ClusterResult& r) {
    std::string out;
    for (size_t i = 0; i < kClusterLimits; ++i) {
        if (r.use[i] >= 0.005) {
            out += (out.empty() ? "" : ", ") + cluster_limit_name(static_cast<ClusterLimit>(i)) + " " +
                   format_share(r.use[i]);
        }
    }
    return out.empty() ? "none" : out;
}

std::string trust_text(const ClusterShown& shown) {
    if (!shown.poor.empty()) {
        return "trust POOR: " + shown.poor;
    }
    const uint64_t copies = shown.results.back().copies;
    return copies == 1 ? "trust FAIR: limits that were not measured are guesses, see below"
                       : "trust FAIR: " + counted(copies, "copy", "copies") + " are simulated from a log of " +
                             counted(shown.recorded, "accelerator") + ", not measured; guesses are below";
}

void print_one(std::ostream& out, const ClusterResult& r) {
    out << "AU " << format_share(r.au) << " (MLPerf, without the first step: " << format_share(r.au_mlperf) << "), "
        << seconds_text(r.elapsed_s) << " for " << counted(r.steps, "step") << ", " << seconds_text(r.step_s)
        << " each\n";
    out << "storage: " << format_rate(r.bytes_per_s()) << " read, "
        << format_count(static_cast<uint64_t>(r.requests / r.elapsed_s)) << " requests/s, "
        << format_count(static_cast<uint64_t>(r.names / r.elapsed_s)) << " names/s\n";
    out << "each rank waited " << seconds_text(r.wait_data_s) << " for data or its job, "
        << seconds_text(r.wait_others_s) << " for the slowest rank, "
        << seconds_text(r.all_reduce_s * static_cast<double>(r.steps)) << " for all-reduce\n";
    out << "bound by " << r.bound << "; in use: " << limits_text(r) << "\n";
}

Table table_of(const ClusterShown& shown) {
    Table table({{"accelerators", "accelerators", true},
                 {"hosts", "hosts", true},
                 {"AU", "au", true},
                 {"AU (MLPerf)", "au_mlperf", true},
                 {"read", "read_bytes_per_s", true},
                 {"steps/s", "steps_per_s", true},
                 {"step", "step_s", true},
                 {"bound by", "bound", false}});
    for (const ClusterResult& r : shown.results) {
        table.row({count_cell(r.accelerators), count_cell(r.hosts), share_cell(r.au), share_cell(r.au_mlperf),
                   Cell(format_rate(r.bytes_per_s()), r.bytes_per_s()), number_cell(r.steps_per_s(), 1),
                   Cell(seconds_text(r.step_s), r.step_s), r.bound});
    }
    return table;
}

Json result_json(const ClusterResult& r) {
    Json json;
    json["accelerators"] = r.accelerators;
    json["hosts"] = r.hosts;
    json["copies"] = r.copies;
    json["steps"] = r.steps;
    json["elapsed_s"] = r.elapsed_s;
    json["au"] = r.au;
    json["au_mlperf"] = r.au_mlperf;
    json["step_s"] = r.step_s;
    json["steps_per_s"] = r.steps_per_s();
    json["read_bytes"] = r.fetched_bytes;
    json["read_bytes_per_s"] = r.bytes_per_s();
    json["requests_per_s"] = r.elapsed_s > 0 ? r.requests / r.elapsed_s : 0;
    json["names_per_s"] = r.elapsed_s > 0 ? r.names / r.elapsed_s : 0;
    json["synced_bytes"] = r.synced_bytes;
    json["all_reduce_s"] = r.all_reduce_s;
    json["wait_data_s"] = r.wait_data_s;
    json["wait_others_s"] = r.wait_others_s;
    json["bound"] = r.bound;
    for (size_t i = 0; i < kClusterLimits; ++i) {
        const std::string name = cluster_limit_name(static_cast<ClusterLimit>(i));
        json["use"][name] = r.use[i];
        json["delay_s"][name] = r.delay_s[i];
    }
    json["events"] = r.events;
    json["pieces"] = r.pieces;
    return json;
}

Chart chart_of(const ClusterShown& shown) {
    Chart chart;
    chart.title = "AU and throughput over accelerators";
    chart.caption = "Simulated from " + shown.log + " and " + shown.storage + "; nothing here was measured.";
    chart.x_title = "accelerators (logarithmic)";
    ChartPanel au{"AU (without the first step)", {{"simulated", {}}}, format_share, true, false};
    ChartPanel rate{"read from the storage", {{"simulated", {}}}, format_rate, false, true};
    double last = -1;
    for (const ClusterResult& r : shown.results) {
        const double x = std::log10(static_cast<double>(r.accelerators));
        au.curves[0].points.push_back({x, r.au_mlperf, r.au_mlperf, r.au_mlperf});
        rate.curves[0].points.push_back({x, r.bytes_per_s(), r.bytes_per_s(), r.bytes_per_s()});
        if (last < 0 || x - last >= 0.25) {
            chart.ticks.push_back({x, format_count(r.accelerators)});
            last = x;
        }
    }
    chart.panels = {std::move(au), std::move(rate)};
    return chart;
}

}  // namespace

std::string bend_of(const std::vector<ClusterResult>& results) {
    for (size_t i = 1; i < results.size(); ++i) {
        if (results[i - 1].au_mlperf >= kEnough && results[i].au_mlperf < kEnough) {
            return "AU falls below 90 % between " + format_count(results[i - 1].accelerators) + " and " +
                   format_count(results[i].accelerators) + " accelerators: " + results[i].bound;
        }
    }
    return {};
}

void print_cluster(std::ostream& out, const ClusterShown& shown, const ClusterFiles& files) {
    const ClusterResult& last = shown.results.back();
    out << "simulated " << counted(last.accelerators, "accelerator") << " on " << counted(last.hosts, "host") << ", "
        << counted(last.steps, "step") << (shown.swept ? ", " + counted(shown.results.size(), "point") : std::string())
        << "; computed in " << seconds_text(shown.took_s) << "\n";
    out << trust_text(shown) << "\n";
    if (shown.swept) {
        if (const std::string bend = bend_of(shown.results); !bend.empty()) {
            out << bend << "\n";
        }
        table_of(shown).print(out);
    } else {
        print_one(out, last);
    }
    for (const std::string& guess : shown.guesses) {
        out << "guess: " << guess << "\n";
    }
    if (!files.csv.empty()) {
        out << "written: " << printable(files.csv.string()) << ", " << printable(files.svg.string()) << ", "
            << printable(files.png.string()) << "\n";
    }
}

Json cluster_json(const ClusterShown& shown) {
    Json json;
    json["log"] = printable(shown.log);
    json["storage"] = printable(shown.storage);
    json["network"] = shown.network.empty() ? Json(nullptr) : Json(printable(shown.network));
    json["simulated"] = true;
    json["recorded_accelerators"] = shown.recorded;
    json["trust"] = shown.poor.empty() ? "fair" : "poor";
    json["trust_reason"] = trust_text(shown);
    json["guesses"] = shown.guesses;
    json["took_s"] = shown.took_s;
    const std::string bend = bend_of(shown.results);
    json["bend"] = bend.empty() ? Json(nullptr) : Json(bend);
    json["points"] = Json::array();
    for (const ClusterResult& r : shown.results) {
        json["points"].push_back(result_json(r));
    }
    return json;
}

ClusterFiles write_cluster(const ClusterShown& shown, const std::filesystem::path& folder) {
    ClusterFiles files{folder / "cluster.csv", folder / "cluster.svg", folder / "cluster.png"};
    std::ofstream out(files.csv, std::ios::binary);
    out << "accelerators,hosts,au,au_mlperf,read_bytes_per_s,steps_per_s,step_s,bound\n";
    for (const ClusterResult& r : shown.results) {
        out << r.accelerators << "," << r.hosts << "," << r.au << "," << r.au_mlperf << "," << r.bytes_per_s() << ","
            << r.steps_per_s() << "," << r.step_s << "," << r.bound << "\n";
    }
    out.flush();
    if (!out) {
        throw machine_error("cannot write " + escape_line(files.csv.string()), "choose another folder with -o");
    }
    const Chart chart = chart_of(shown);
    draw(chart, files.svg);
    draw(chart, files.png);
    return files;
}

}  // namespace reprise::cli
