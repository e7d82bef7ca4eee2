// SPDX-License-Identifier: MIT
#include "cli/show_limits.h"

#include "cli/table.h"
#include "cli/units.h"

namespace reprise::cli {
namespace {

double ratio_of(const LimitedMemory& memory) {
    return memory.limit == 0 ? 0.0 : static_cast<double>(memory.data) / static_cast<double>(memory.limit);
}

}  // namespace

std::string memory_line(const LimitedMemory& memory) {
    std::string line = format_bytes(memory.limit) + " for " + format_bytes(memory.data) + " of data (ratio " +
                       number_cell(ratio_of(memory), 2).text + "), ";
    line += memory.group.reached == 0 ? std::string("never full") : "full " + counted(memory.group.reached, "time");
    if (memory.group.peak != 0 && memory.group.reached == 0) {
        line += ", peak " + format_bytes(memory.group.peak);
    }
    if (memory.stood_in) {
        line += "; job's own: " + format_bytes(memory.held_peak) + " (recorded " + format_bytes(memory.job_peak) + ")";
    } else if (memory.job_known && memory.job_peak != 0) {
        line += "; nothing for the job's own " + format_bytes(memory.job_peak);
    }
    return line;
}

Json memory_json(const LimitedMemory& memory) {
    return {{"limit_bytes", memory.limit},
            {"data_bytes", memory.data},
            {"ratio", ratio_of(memory)},
            {"cgroup_version", memory.version},
            {"used_bytes", memory.group.used},
            {"peak_bytes", memory.group.peak == 0 ? Json(nullptr) : Json(memory.group.peak)},
            {"limit_reached", memory.group.reached},
            {"killed", memory.group.killed},
            {"job_peak_bytes", memory.job_known ? Json(memory.job_peak) : Json(nullptr)},
            {"stood_in", memory.stood_in},
            {"held_peak_bytes", memory.held_peak},
            {"held_error", memory.held_error},
            {"did_not_fit_bytes", memory.cut}};
}

Json io_limits_json(const IoLimits& limits) {
    return {{"read_bytes_per_s", limits.read_bytes},
            {"write_bytes_per_s", limits.write_bytes},
            {"reads_per_s", limits.reads},
            {"writes_per_s", limits.writes}};
}

}  // namespace reprise::cli
