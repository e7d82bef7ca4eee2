// SPDX-License-Identifier: MIT
#include "cli/show_interval.h"

#include <cmath>
#include <string>

#include "cli/units.h"

namespace reprise::cli {

void print_interval(std::ostream& out, const PathTimes& path, const std::optional<TimeInterval>& interval) {
    std::string parts;
    for (size_t i = 0; i < kPathParts; ++i) {
        if (path.ns[i] > 0) {
            parts += (parts.empty() ? "" : " + ") + std::string(path_part_name(static_cast<PathPart>(i))) + " " +
                     format_duration(path.ns[i]);
        }
    }
    if (!parts.empty()) {
        out << "critical path: " << parts << "\n";
    }
    if (!interval) {
        return;
    }
    std::string sources;
    for (const TimeInterval::Part& part : interval->parts) {
        const std::string down = format_duration(std::llround(part.down_ns)),
                          up = format_duration(std::llround(part.up_ns));
        sources += (sources.empty() ? "" : ", ") + std::string(part.name) + " ";
        sources += part.up_ns == 0 ? "-" + down : down == up ? "+-" + down : "-" + down + "/+" + up;
    }
    out << "95 % of the real job's runs here take " << format_duration(interval->low_ns) << " to "
        << format_duration(interval->high_ns) << ": " << sources << "\n";
}

Json path_json(const PathTimes& path) {
    if (path.sum() == 0) {
        return nullptr;
    }
    Json json = Json::object();
    for (size_t i = 0; i < kPathParts; ++i) {
        json[std::string(path_part_name(static_cast<PathPart>(i))) + "_s"] = static_cast<double>(path.ns[i]) / 1e9;
    }
    json["doubtful_s"] = path.doubtful_ns / 1e9;
    return json;
}

Json interval_json(const TimeInterval& interval) {
    Json json = Json::array();
    for (const TimeInterval::Part& part : interval.parts) {
        json.push_back({{"source", part.name}, {"down_s", part.down_ns / 1e9}, {"up_s", part.up_ns / 1e9}});
    }
    return json;
}

}  // namespace reprise::cli
