// SPDX-License-Identifier: MIT
#include "cli/ranks.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <set>

#include "cli/help.h"
#include "cli/units.h"
#include "formats/support/error.h"
#include "hosts/launched.h"

namespace reprise::cli {
namespace {

const char* variable(const char* name) { return std::getenv(name); }

/// Ends the conversation, and, where not all ranks can be reached, the process.
int leave(Hosts& hosts, int code, const std::string& message) {
    const bool alone = hosts.ranks().lost();
    if (!message.empty() && (hosts.rank() == 0 || alone)) {
        std::cout.flush();
        std::cerr << "reprise: " << message << '\n';
    }
    std::cout.flush();
    std::cerr.flush();
    if (!hosts.ranks().end(code)) {
        std::fflush(nullptr);
        _exit(code != 0 ? code : static_cast<int>(ExitCode::machine));
    }
    return hosts.rank() == 0 ? code : 0;
}

int talk(Hosts& hosts, const std::function<int(Hosts*)>& body) {
    int code = static_cast<int>(ExitCode::machine);
    std::string message;
    try {
        hosts.meet("reprise " + std::string(tool_version()));
        if (hosts.rank() != 0) {
            set_verbosity(-1);
        }
        code = body(&hosts);
        return leave(hosts, code, {});
    } catch (const Error& error) {
        code = static_cast<int>(error.code());
        message = error.what();
    } catch (const std::bad_alloc&) {
        message = "out of memory";
    } catch (const std::exception& error) {
        message = error.what();
    }
    hosts.ranks().stop(message, code);
    return leave(hosts, code, message);
}

std::string signed_duration(int64_t ns) { return (ns < 0 ? "-" : "") + format_duration(ns < 0 ? -ns : ns); }

Table table_of(const PeersReport& report) {
    Table table({{"rank", "rank", true},
                 {"host", "host"},
                 {"recorded", "recorded_ranks"},
                 {"ops", "ops", true},
                 {"read", "bytes_read", true},
                 {"written", "bytes_written", true},
                 {"elapsed", "elapsed_ns", true},
                 {"waited", "waited_ns", true},
                 {"held up", "held_up_ns", true},
                 {"clock", "clock_offset_ns", true},
                 {"+-", "clock_uncertainty_ns", true},
                 {"drift", "clock_drift_ppm", true},
                 {"", "ended"}});
    for (const PeerRow& row : report.rows) {
        const Cell drift = row.clock.drift_known
                               ? Cell(number_cell(row.clock.drift_ppm, 1).text + " ppm", row.clock.drift_ppm)
                               : Cell("-", nullptr);
        const std::string note = row.ended != "complete" ? row.ended : row.why;
        table.row({count_cell(row.rank), printable(row.host), row.recorded, count_cell(row.ops),
                   bytes_cell(row.bytes_read), bytes_cell(row.bytes_written), duration_cell(row.elapsed_ns),
                   duration_cell(row.waited_ns), duration_cell(row.held_up_ns),
                   Cell(signed_duration(row.clock.offset_ns), row.clock.offset_ns),
                   Cell(format_duration(row.clock.uncertainty_ns), row.clock.uncertainty_ns), drift, printable(note)});
    }
    return table;
}

}  // namespace

int with_ranks(const std::function<int(Hosts*)>& body) {
    const std::optional<Launched> how = launched(variable);
    if (!how) {
        return body(nullptr);
    }
    ConversationSettings settings;
    settings.give_up = [](const std::string& why, int code, Transport& transport) {
        if (transport.rank() == 0) {
            std::cerr << "reprise: " << why << std::endl;
            transport.abort(code);
        }
        _exit(code);
    };
    settings.cut_off = [](const std::string& why) {
        const std::string line = "reprise: " + why + "; the run ends\n";
        (void)!::write(STDERR_FILENO, line.data(), line.size());
    };
    Hosts hosts([how] { return mpi_transport(*how); }, settings);
    return talk(hosts, body);
}

void refuse_ranks(const std::string& command) {
    const std::optional<Launched> how = launched(variable);
    if (how) {
        throw usage_error(how->by + " started " + std::to_string(how->size) + " ranks of `reprise " + command +
                              "`, which works on one host",
                          "start it alone");
    }
}

std::optional<Straggler> straggler_of(const PeersReport& report) {
    Straggler most;
    int64_t held_up = 0;
    for (const PeerRow& row : report.rows) {
        most.waited_ns += row.held_up_ns;
        if (row.held_up_ns > held_up) {
            held_up = row.held_up_ns;
            most.rank = row.rank;
        }
    }
    if (held_up == 0) {
        return std::nullopt;
    }
    most.share = static_cast<double>(held_up) / static_cast<double>(most.waited_ns);
    return most;
}

void print_ranks(std::ostream& out, const PeersReport& report, size_t hosts) {
    if (report.rows.empty()) {
        return;
    }
    out << '\n' << counted(report.rows.size(), "rank") << " on " << counted(hosts, "host") << ":\n";
    table_of(report).print(out, 2);
    int64_t longest = 0, sum = 0, heard = 0;
    uint32_t slowest = 0;
    for (const PeerRow& row : report.rows) {
        sum += row.elapsed_ns;
        heard += row.ended != "lost" ? 1 : 0;
        if (row.elapsed_ns > longest) {
            longest = row.elapsed_ns;
            slowest = row.rank;
        }
    }
    out << "started within " << format_duration(report.skew_ns) << " of each other (clocks known to "
        << format_duration(report.uncertainty_ns) << ")\n"
        << "slowest: rank " << slowest << ", " << format_duration(longest) << " (mean "
        << format_duration(sum / std::max<int64_t>(heard, 1)) << ")\n";
    if (const std::optional<Straggler> straggler = straggler_of(report)) {
        out << "straggler: rank " << straggler->rank << ", for which the ranks waited "
            << share_cell(straggler->share).text << " of the " << format_duration(straggler->waited_ns)
            << " that they waited for each other (if all were alike: "
            << share_cell(1.0 / static_cast<double>(report.rows.size())).text << ")\n";
    }
}

Json ranks_json(const PeersReport& report) {
    const std::optional<Straggler> straggler = straggler_of(report);
    const auto figure = [&](auto value) { return straggler ? Json(value(*straggler)) : Json(nullptr); };
    return {{"rows", table_of(report).json()},
            {"waited_s", figure([](const Straggler& of) { return static_cast<double>(of.waited_ns) / 1e9; })},
            {"straggler", figure([](const Straggler& of) { return of.rank; })},
            {"straggler_share", figure([](const Straggler& of) { return of.share; })},
            {"start_skew_s", static_cast<double>(report.skew_ns) / 1e9},
            {"clock_uncertainty_s", static_cast<double>(report.uncertainty_ns) / 1e9}};
}

}  // namespace reprise::cli
