// SPDX-License-Identifier: MIT
#include "replay/run/root_advice.h"

#include "formats/support/error.h"
#include "formats/support/escape.h"

namespace reprise {
namespace {

/// The log's path, without the options that follow it.
std::string_view path_in(std::string_view log_name) { return log_name.substr(0, log_name.find(" --")); }

std::string command(const ReplayOptions& options) {
    return "reprise prepare " + options.log_name + " --root " + shell_word(options.root.string());
}

/// Those of the marker hold for its own recording only.
PathMap maps_for(const ReplayOptions& options, const std::optional<Marker>& marker) {
    if (options.maps) {
        return *options.maps;
    }
    return marker && path_in(marker->log) == path_in(options.log_name) ? marker->maps : PathMap{};
}

}  // namespace

std::string prepare_command(const ReplayOptions& options, const std::optional<Marker>& marker) {
    std::string text = command(options);
    const PathMap maps = maps_for(options, marker);
    for (const PathMap::Rule& rule : maps.rules()) {
        text += " --map " + shell_word(rule.from + "=" + (rule.to.empty() ? "." : rule.to));
    }
    return text + (marker && marker->needs_reset() ? " --reset" : "");
}

std::string reset_command(const ReplayOptions& options) { return command(options) + " --reset"; }

std::string other_log_sentence(const ReplayOptions& options, const Marker& marker) {
    if (marker.log == options.log_name) {
        return "was prepared for another recording of this name, " + escape_line(marker.log);
    }
    if (path_in(marker.log) == path_in(options.log_name)) {
        return "was prepared for " + escape_line(marker.log) + ", not for " + options.log_name;
    }
    // Whether this log's files belong in the same places, only its user knows.
    const bool mapped = !options.maps && !marker.maps.rules().empty();
    return "was prepared for another log, " + escape_line(marker.log) +
           (mapped ? ", with " + escape_line(marker.maps.to_options()) : "");
}

}  // namespace reprise
