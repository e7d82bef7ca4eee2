// SPDX-License-Identifier: MIT
#include "cli/show_prepare.h"

#include <iostream>
#include <string>

#include "cli/table.h"
#include "cli/units.h"
#include "replay/prepare/root_marker.h"

namespace reprise::cli {

uint64_t count_of(const Survey& survey, Action action) { return survey.count[static_cast<size_t>(action)]; }

/// What may be wrong with the root.
void print_doubts(const Preparation& preparation) {
    for (const Counter& counter : preparation.layout().counters) {
        if (counter.severity != Severity::note) {
            std::cout << "  " << severity_name(counter.severity) << ": " << format_count(counter.value) << ' '
                      << counter.meaning << '\n';
        }
    }
    const Examples& lost = preparation.survey().lost;
    if (lost.count > 0) {
        std::cout << "  warning: data is missing in " << counted(lost.count, "file") << ": " << lost.paths.front()
                  << (lost.count > 1 ? ", ..." : "") << "; --reset restores it\n";
    }
}

void print_plan(const Preparation& preparation) {
    const Survey& survey = preparation.survey();
    std::cout << "prepare " << printable(preparation.options().root.string())
              << (preparation.root_missing() ? " (will be created)" : "") << " for "
              << printable(preparation.options().log_name) << ", content " << content_name(preparation.content())
              << '\n';
    Table table({{"", "what"}, {"count", "count", true}, {"bytes", "bytes", true}});
    const auto row = [&](const char* what, uint64_t count, Cell bytes = Cell("")) {
        if (count > 0) {
            table.row({what, count_cell(count), std::move(bytes)});
        }
    };
    row("files to create", survey.files, bytes_cell(survey.bytes));
    row("directories to create", survey.directories);
    row("symbolic links to create", survey.links);
    row("listing entries to create", survey.listing_entries);
    uint64_t attributes = 0;
    for (const auto& [entry, had] : preparation.layout().attributes) {
        attributes += had.size();
    }
    row("extended attributes to have", attributes);
    row("already in place", count_of(survey, Action::keep));
    row("to restore", count_of(survey, Action::refill));
    row("created by the log, to remove", count_of(survey, Action::remove));
    row("directories to rename back", survey.renames_back.size());
    row("excluded by role or path", preparation.layout().files_left_out);
    for (const Counter& counter : preparation.layout().counters) {
        if (counter.severity == Severity::note) {
            row(counter.name.c_str(), counter.value);
        }
    }
    if (!table.empty()) {
        table.print(std::cout, 2);
    }
    for (const Demand& demand : survey.demands) {
        if (demand.bytes == 0 && demand.inodes == 0 && demand.replay_bytes == 0) {
            continue;
        }
        std::cout << "  needs " << format_bytes(demand.bytes) << " and " << counted(demand.inodes, "inode");
        if (demand.replay_bytes > 0) {
            std::cout << ", and the replay " << format_bytes(demand.replay_bytes);
        }
        std::cout << "; free: " << format_bytes(demand.free_bytes);
        if (demand.free_inodes != UINT64_MAX) {
            std::cout << " and " << counted(demand.free_inodes, "inode");
        }
        std::cout << " at " << printable(demand.where) << '\n';
    }
    print_doubts(preparation);
    for (const std::string& remark : preparation.remarks()) {
        std::cout << "  " << remark << '\n';
    }
    std::cout.flush();
}

Json plan_json(const Preparation& preparation) {
    const Survey& survey = preparation.survey();
    Json demands = Json::array();
    for (const Demand& demand : survey.demands) {
        demands.push_back({{"where", printable(demand.where)},
                           {"bytes", demand.bytes},
                           {"replay_bytes", demand.replay_bytes},
                           {"free_bytes", demand.free_bytes},
                           {"inodes", demand.inodes},
                           {"free_inodes", demand.free_inodes == UINT64_MAX ? Json() : Json(demand.free_inodes)},
                           {"fits", demand.fits()}});
    }
    Json counters = Json::array();
    for (const Counter& counter : preparation.layout().counters) {
        counters.push_back({{"name", counter.name},
                            {"severity", severity_name(counter.severity)},
                            {"value", counter.value},
                            {"meaning", counter.meaning}});
    }
    return {{"root", printable(preparation.options().root.string())},
            {"log", printable(preparation.options().log_name)},
            {"fingerprint", preparation.marker().fingerprint},
            {"content", content_name(preparation.content())},
            {"filter", preparation.marker().filter},
            {"files", survey.files},
            {"directories", survey.directories},
            {"links", survey.links},
            {"listing_entries", survey.listing_entries},
            {"bytes", survey.bytes},
            {"bytes_laid_out", survey.bytes_laid_out},
            {"keep", count_of(survey, Action::keep)},
            {"lost_data", survey.lost.count},
            {"make", count_of(survey, Action::make)},
            {"remake", count_of(survey, Action::remake)},
            {"refill", count_of(survey, Action::refill)},
            {"remove", count_of(survey, Action::remove)},
            {"rename_back", survey.renames_back.size()},
            {"left_out", preparation.layout().files_left_out},
            {"file_systems", std::move(demands)},
            {"counters", std::move(counters)},
            {"remarks", preparation.remarks()}};
}

}  // namespace reprise::cli
