// SPDX-License-Identifier: MIT
// Asynchronous requests on the screen: how many were in flight, and how long they took.
#pragma once

#include <string>
#include <string_view>

#include "cli/table.h"
#include "formats/oplog/in_flight.h"

namespace reprise::cli {

/// "51,200, 31.9 in flight (recorded 31.9), latency p50 4.10 ms (recorded 120 us), p99 5.20 ms (recorded 300 us)"
std::string requests_line(const InFlight& here, const InFlight& recorded, std::string_view beside);
/// Of one log: "read 51,200, fsync 1; 31.9 in flight (p50 32, max 32), latency p50 4.10 ms, p99 5.20 ms"
std::string requests_line(const InFlight& requests);

/// Rings of both sides, those with most requests first; `recorded` null: of one side. At most 16 rows.
Table rings_table(const InFlight& here, const InFlight* recorded, std::string_view beside);
/// Share of the time by how many were in flight: 1, 2, 3 to 4, 5 to 8, ...
Table depths_table(const InFlight& here, const InFlight* recorded, std::string_view beside);

}  // namespace reprise::cli
