// SPDX-License-Identifier: MIT
#include "cli/show_epochs.h"

#include <algorithm>

#include "cli/units.h"

namespace reprise::cli {
namespace {

uint64_t asked_in(const std::vector<uint64_t>& asked, size_t row) { return row < asked.size() ? asked[row] : 0; }

Cell bytes_or_none(const std::optional<uint64_t>& bytes) { return bytes ? bytes_cell(*bytes) : Cell("-", nullptr); }
Cell share_or_none(const std::optional<double>& share) {
    return share ? Cell(format_share(*share), *share) : Cell("-", nullptr);
}

}  // namespace

Table epochs_table(const std::vector<EpochProof>& epochs, const std::vector<uint64_t>& asked) {
    Table table({{"epoch", "epoch", true},
                 {"begin", "begin_ns", true},
                 {"time", "elapsed_ns", true},
                 {"samples", "accesses", true},
                 {"asked for", "asked_bytes", true},
                 {"device read", "device_bytes", true},
                 {"for the run", "own_bytes", true},
                 {"read/asked", "amplification", true},
                 {"in memory before", "resident_before_share", true},
                 {"after", "resident_after_share", true}});
    for (size_t i = 0; i < epochs.size(); ++i) {
        const EpochProof& epoch = epochs[i];
        const uint64_t bytes = asked_in(asked, i + 1);
        const std::optional<uint64_t> read = epoch.storage_bytes();
        const double times = bytes == 0 ? 0.0 : static_cast<double>(read.value_or(0)) / static_cast<double>(bytes);
        table.row({count_cell(i + 1), duration_cell(epoch.begin_ns), duration_cell(epoch.elapsed_ns),
                   count_cell(epoch.accesses), bytes_cell(bytes), bytes_or_none(epoch.device_bytes),
                   bytes_or_none(epoch.own_bytes), read && bytes != 0 ? number_cell(times, 2) : Cell("-", nullptr),
                   share_or_none(epoch.resident_before), share_or_none(epoch.resident_after)});
    }
    return table;
}

std::string epochs_line(const std::vector<EpochProof>& epochs, const std::vector<uint64_t>& asked, bool limited) {
    constexpr uint64_t kPart = 100, kLeast = 1 << 20;
    std::vector<size_t> unreached;
    uint64_t read = 0, bytes = 0;
    std::string served;
    for (size_t i = 0; i < epochs.size(); ++i) {
        const uint64_t of = asked_in(asked, i + 1);
        const std::optional<uint64_t> from = epochs[i].storage_bytes();
        if (!from || of < kLeast) {
            continue;
        }
        if (*from < of / kPart) {
            unreached.push_back(i + 1);
            read += *from;
            bytes += of;
        }
        served += (served.empty() ? "" : "; ") + std::to_string(i + 1) + ": " +
                  format_share(static_cast<double>(*from) / static_cast<double>(of)) +
                  (served.empty() ? " from the device in " : " in ") + format_duration(epochs[i].elapsed_ns);
    }
    if (unreached.size() == epochs.size()) {
        return "";
    }
    if (unreached.empty()) {
        return limited ? served : "";
    }
    const bool row = unreached.size() > 2 && unreached.back() - unreached.front() + 1 == unreached.size();
    std::string numbers = std::to_string(unreached.front());
    for (size_t i = row ? unreached.size() - 1 : 1; i < unreached.size(); ++i) {
        numbers += (row ? " to " : i + 1 == unreached.size() ? " and " : ", ") + std::to_string(unreached[i]);
    }
    return numbers + " (of " + std::to_string(epochs.size()) + ") never reached the storage: the device read " +
           format_bytes(read) + " of the " + format_bytes(bytes) + " asked for";
}

}  // namespace reprise::cli
