// SPDX-License-Identifier: MIT
#include "replay/cluster/network.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "formats/support/error.h"
#include "formats/support/nearest.h"

namespace reprise {
namespace {

using Json = nlohmann::ordered_json;
constexpr const char* kHint = "examples/network.json has all fields with what they mean";

struct Field {
    const char* key;
    double NetworkModel::*member;
    double most;
};
constexpr double kMost = 1e18;
constexpr std::array kFields{Field{"latency_us", &NetworkModel::latency_us, 1e9},
                             Field{"host_bytes_per_s", &NetworkModel::host_bytes_per_s, kMost},
                             Field{"fabric_bytes_per_s", &NetworkModel::fabric_bytes_per_s, kMost},
                             Field{"inside_latency_us", &NetworkModel::inside_latency_us, 1e9},
                             Field{"inside_bytes_per_s", &NetworkModel::inside_bytes_per_s, kMost},
                             Field{"gradient_bytes", &NetworkModel::gradient_bytes, kMost},
                             Field{"overlap", &NetworkModel::overlap, 1},
                             Field{"storage_bytes_per_s", &NetworkModel::storage_bytes_per_s, kMost}};

[[noreturn]] void bad(const std::filesystem::path& path, const std::string& key, const std::string& what) {
    throw Error(ExitCode::bad_input, path.string() + ":/" + escape_line(key), "the field " + what, kHint);
}

void read_field(const std::filesystem::path& path, const std::string& key, const Json& value, NetworkModel& out) {
    for (const Field& field : kFields) {
        if (key != field.key) {
            continue;
        }
        const double number = value.is_number() ? value.get<double>() : -1;
        if (!value.is_number() || !std::isfinite(number) || number < 0 || number > field.most) {
            bad(path, key, field.most == 1 ? "is not a number from 0 to 1" : "is not a number from 0 on, or too large");
        }
        out.*field.member = number;
        return;
    }
    std::vector<std::string> names = {"network_model", "algorithm", "comment"};
    for (const Field& field : kFields) {
        names.emplace_back(field.key);
    }
    bad(path, key, "is unknown" + did_you_mean(nearest_names(key, names)));
}

/// Of `bytes` over `n` members; ns. No limit: `per_s` 0.
double reduce_ns(NetworkModel::Algorithm how, double n, double bytes, double latency_us, double per_s) {
    if (n <= 1 || bytes <= 0) {
        return 0;
    }
    const double byte_ns = per_s > 0 ? 1e9 / per_s : 0;
    const double latency = latency_us * 1e3;
    if (how == NetworkModel::Algorithm::tree) {  // reduced and broadcast in pieces, both directions at once
        return 2 * std::ceil(std::log2(n)) * latency + 2 * bytes * byte_ns;
    }
    return 2 * (n - 1) * latency + 2 * (n - 1) / n * bytes * byte_ns;
}

}  // namespace

double NetworkModel::all_reduce_ns(uint64_t accelerators, uint64_t hosts) const {
    const double inside = static_cast<double>(accelerators) / static_cast<double>(std::max<uint64_t>(hosts, 1));
    const auto outside = static_cast<double>(hosts);
    double per_s = host_bytes_per_s;
    if (fabric_bytes_per_s > 0 && hosts > 1) {
        const double share = fabric_bytes_per_s / outside;
        per_s = per_s > 0 ? std::min(per_s, share) : share;
    }
    // Within a host first, its sum between hosts, the result within.
    const double all = reduce_ns(Algorithm::ring, inside, gradient_bytes, inside_latency_us, inside_bytes_per_s) +
                       reduce_ns(algorithm, outside, gradient_bytes, latency_us, per_s);
    return all * (1 - overlap);
}

NetworkModel read_network_model(const std::filesystem::path& path) {
    std::error_code ignored;
    std::ifstream in(path);
    if (std::filesystem::is_directory(path, ignored) || !in) {
        throw bad_input(path.string(), "cannot be read as a network model", kHint);
    }
    const Json json = Json::parse(in, nullptr, false);
    if (!json.is_object() || !json.contains("network_model")) {
        throw bad_input(path.string(), "is not a network model: no JSON object with \"network_model\": 1", kHint);
    }
    NetworkModel out;
    for (const auto& [key, value] : json.items()) {
        if (key == "network_model") {
            if (!value.is_number() || value.get<double>() != NetworkModel::kVersion) {
                bad(path, key, "has an unsupported version, expected 1");
            }
        } else if (key == "algorithm") {
            if (!value.is_string() || (value != "ring" && value != "tree")) {
                bad(path, key, "is neither \"ring\" nor \"tree\"");
            }
            out.algorithm = value == "ring" ? NetworkModel::Algorithm::ring : NetworkModel::Algorithm::tree;
        } else if (key != "comment") {
            read_field(path, key, value, out);
        }
    }
    return out;
}

}  // namespace reprise
