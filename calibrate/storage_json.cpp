// SPDX-License-Identifier: MIT
// model.json: a storage model on disk, written and read side by side.
#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/storage_model.h"
#include "formats/support/error.h"
#include "formats/support/nearest.h"

namespace reprise {
namespace {

using Json = nlohmann::ordered_json;

class Reader {
public:
    Reader(const std::filesystem::path& path, const Json& json, std::string where = {})
        : path_(path), json_(json), where_(std::move(where)) {}

    /// A number from `least` to 10^15.
    double number(const char* key, double least) {
        const Json& value = field(key);
        if (!value.is_number()) {
            bad(key, "is not a number");
        }
        const auto number = value.get<double>();
        if (!std::isfinite(number) || number < least || number > 1e15) {
            bad(key, least > 0 ? "is not above 0, or too large" : "is below 0, or too large");
        }
        return number;
    }
    bool has(const char* key) const { return json_.contains(key); }
    int64_t ns(const char* key) { return static_cast<int64_t>(number(key, 0)); }
    std::string text(const char* key) {
        known_.insert(key);
        const auto at = json_.find(key);
        if (at == json_.end()) {
            return {};
        }
        if (!at->is_string()) {
            bad(key, "is not a string");
        }
        return at->get<std::string>();
    }
    bool flag(const char* key) {
        const Json& value = field(key);
        if (!value.is_boolean()) {
            bad(key, "is not true or false");
        }
        return value.get<bool>();
    }
    const Json& field(const char* key) {
        known_.insert(key);
        const auto at = json_.find(key);
        if (at == json_.end()) {
            bad(key, "is missing");
        }
        return *at;
    }
    void finish() const {
        for (const auto& [key, value] : json_.items()) {
            if (!known_.contains(key)) {
                bad(key, "is unknown");
            }
        }
    }
    [[noreturn]] void bad(const std::string& key, const char* what) const {
        throw Error(ExitCode::bad_input, path_.string() + ":" + where_ + "/" + escape_line(key),
                    std::string("the field ") + what,
                    "recreate it with `reprise calibrate --storage DIR -o model.json`");
    }

    const std::filesystem::path& path() const { return path_; }

private:
    const std::filesystem::path& path_;
    const Json& json_;
    std::string where_;
    std::set<std::string> known_;
};

std::vector<SizedLatency> latencies(Reader& r, const char* key, size_t least) {
    const Json& list = r.field(key);
    if (!list.is_array() || list.size() < least) {
        r.bad(key, "is not a list of latencies");
    }
    std::vector<SizedLatency> out;
    for (size_t i = 0; i < list.size(); ++i) {
        if (!list[i].is_object()) {
            r.bad(key, "is not a list of latencies");
        }
        Reader row(r.path(), list[i], std::string("/") + key + "/" + std::to_string(i));
        out.push_back({static_cast<int64_t>(row.number("bytes", 1)), row.ns("ns")});
        row.finish();
        if (i > 0 && out[i].bytes <= out[i - 1].bytes) {
            row.bad("bytes", "is not larger than the one before");
        }
    }
    return out;
}

Json latencies_json(const std::vector<SizedLatency>& latencies) {
    Json list = Json::array();
    for (const SizedLatency& one : latencies) {
        list.push_back({{"bytes", one.bytes}, {"ns", one.ns}});
    }
    return list;
}

std::vector<DepthRow> depth_rows(Reader& r, const char* key) {
    constexpr double kMostDepth = 1 << 20;
    std::vector<DepthRow> out;
    if (!r.has(key)) {
        return out;
    }
    const Json& list = r.field(key);
    if (!list.is_array()) {
        r.bad(key, "is not a list of rows");
    }
    for (size_t i = 0; i < list.size(); ++i) {
        if (!list[i].is_object()) {
            r.bad(key, "is not a list of rows");
        }
        Reader row(r.path(), list[i], std::string("/") + key + "/" + std::to_string(i));
        DepthRow one;
        one.bytes = static_cast<int64_t>(row.number("bytes", 1));
        one.depth = static_cast<int>(std::min(row.number("depth", 1), kMostDepth));
        one.ns = row.ns("ns");
        one.mean_ns = row.ns("mean_ns");
        one.per_s = row.number("per_s", 1e-3);
        one.limited = (row.has("limited") && row.flag("limited")) || (!out.empty() && stood_still(one, out.back()));
        row.finish();
        if (!out.empty() && std::pair(one.bytes, one.depth) <= std::pair(out.back().bytes, out.back().depth)) {
            row.bad("depth", "is not larger than the one before");
        }
        out.push_back(one);
    }
    return out;
}

Json depth_json(const std::vector<DepthRow>& rows) {
    Json list = Json::array();
    for (const DepthRow& one : rows) {
        Json row = {
            {"bytes", one.bytes}, {"depth", one.depth}, {"ns", one.ns}, {"mean_ns", one.mean_ns}, {"per_s", one.per_s}};
        if (one.limited) {
            row["limited"] = true;
        }
        list.push_back(std::move(row));
    }
    return list;
}

using SharedField = std::pair<const char*, double SharedStorage::*>;
constexpr std::array kSharedFields{SharedField{"read_bytes_per_s", &SharedStorage::read_bytes_per_s},
                                   SharedField{"reads_per_s", &SharedStorage::reads_per_s},
                                   SharedField{"write_bytes_per_s", &SharedStorage::write_bytes_per_s},
                                   SharedField{"names_per_s", &SharedStorage::names_per_s},
                                   SharedField{"client_read_bytes_per_s", &SharedStorage::client_read_bytes_per_s},
                                   SharedField{"client_reads_per_s", &SharedStorage::client_reads_per_s}};

SharedStorage read_shared(Reader& r) {
    SharedStorage out;
    if (!r.has("shared")) {
        return out;
    }
    const Json& given = r.field("shared");
    if (!given.is_object()) {
        r.bad("shared", "is not an object");
    }
    Reader fields(r.path(), given, "/shared");
    std::vector<std::string> names;
    for (const auto& [key, member] : kSharedFields) {
        names.emplace_back(key);
        out.*member = fields.has(key) ? fields.number(key, 0) : 0;
    }
    for (const auto& [key, value] : given.items()) {
        if (std::find(names.begin(), names.end(), key) == names.end()) {
            throw Error(ExitCode::bad_input, r.path().string() + ":/shared/" + escape_line(key),
                        "the field is unknown" + did_you_mean(nearest_names(key, names)),
                        "docs/predict.md lists the limits that clients share");
        }
    }
    return out;
}

Json shared_json(const SharedStorage& shared) {
    Json out = Json::object();
    for (const auto& [key, member] : kSharedFields) {
        if (shared.*member > 0) {
            out[key] = shared.*member;
        }
    }
    return out;
}

/// What models of earlier versions do not have.
void read_newer(Reader& r, StorageModel& m) {
    constexpr double kMostRequest = 1 << 30, kMostMemory = 1e15;
    const auto bytes = [&](const char* key, int64_t& out, double least, double most) {
        if (r.has(key)) {
            out = static_cast<int64_t>(std::min(r.number(key, least), most));
        }
    };
    if (r.has("reads_per_s")) {
        m.reads_per_s = r.number("reads_per_s", 0);
    }
    bytes("read_ahead_bytes", m.read_ahead_bytes, 0, kMostRequest);
    bytes("request_bytes", m.request_bytes, 1, kMostRequest);
    bytes("dirty_background_bytes", m.dirty_background_bytes, 0, kMostMemory);
    bytes("dirty_bytes", m.dirty_bytes, 0, kMostMemory);
    using Time = std::pair<const char*, int64_t*>;
    for (const auto& [key, out] :
         {Time{"read_burst_ns", &m.read_burst_ns}, Time{"read_step_ns", &m.read_step_ns}, Time{"close_ns", &m.close_ns},
          Time{"ioctl_ns", &m.ioctl_ns}, Time{"fstat_ns", &m.fstat_ns}, Time{"open_cold_ns", &m.open_cold_ns},
          Time{"change_ns", &m.change_ns}, Time{"write_part_ns", &m.write_part_ns}, Time{"list_ns", &m.list_ns},
          Time{"list_name_ns", &m.list_name_ns}, Time{"list_cold_ns", &m.list_cold_ns},
          Time{"dirty_expire_ns", &m.dirty_expire_ns}, Time{"fsync_longer_ns", &m.fsync_longer_ns}}) {
        if (r.has(key)) {
            *out = r.ns(key);
        }
    }
    if (r.has("writes_per_s")) {
        m.writes_per_s = r.number("writes_per_s", 0);
    }
    if (r.has("write")) {
        m.write = latencies(r, "write", 0);
    }
    if (r.has("direct_write")) {
        m.direct_write = latencies(r, "direct_write", 0);
    }
    if (r.has("inline_reads")) {
        m.inline_reads = r.flag("inline_reads");
    }
    if (r.has("disturbed")) {
        m.disturbed = std::min(r.number("disturbed", 0), 1.0);
    }
    m.read_depth = depth_rows(r, "read_depth");
    m.write_depth = depth_rows(r, "write_depth");
    m.sync_depth = depth_rows(r, "sync_depth");
    m.mixed_depth = depth_rows(r, "mixed_depth");
    m.shared = read_shared(r);
}

}  // namespace

std::string to_json(const StorageModel& m) {
    Json json{{"storage_model", StorageModel::kVersion},
              {"host", m.host},
              {"directory", m.directory},
              {"file_system", m.file_system},
              {"device", m.device},
              {"measured_unix_s", m.measured_unix_s},
              {"open_ns", m.open_ns},
              {"open_cold_ns", m.open_cold_ns},
              {"stat_ns", m.stat_ns},
              {"close_ns", m.close_ns},
              {"ioctl_ns", m.ioctl_ns},
              {"fstat_ns", m.fstat_ns},
              {"make_ns", m.make_ns},
              {"remove_ns", m.remove_ns},
              {"change_ns", m.change_ns},
              {"list_ns", m.list_ns},
              {"write_part_ns", m.write_part_ns},
              {"list_name_ns", m.list_name_ns},
              {"list_cold_ns", m.list_cold_ns},
              {"call_ns", m.call_ns},
              {"fsync_ns", m.fsync_ns},
              {"fsync_longer_ns", m.fsync_longer_ns},
              {"read", latencies_json(m.read)},
              {"write", latencies_json(m.write)},
              {"direct_write", latencies_json(m.direct_write)},
              {"read_bytes_per_s", m.read_bytes_per_s},
              {"reads_per_s", m.reads_per_s},
              {"read_burst_ns", m.read_burst_ns},
              {"read_step_ns", m.read_step_ns},
              {"parallelism", m.parallelism},
              {"write_bytes_per_s", m.write_bytes_per_s},
              {"writes_per_s", m.writes_per_s},
              {"cached_bytes_per_s", m.cached_bytes_per_s},
              {"read_ahead_bytes", m.read_ahead_bytes},
              {"request_bytes", m.request_bytes},
              {"dirty_background_bytes", m.dirty_background_bytes},
              {"dirty_bytes", m.dirty_bytes},
              {"dirty_expire_ns", m.dirty_expire_ns},
              {"read_depth", depth_json(m.read_depth)},
              {"write_depth", depth_json(m.write_depth)},
              {"sync_depth", depth_json(m.sync_depth)},
              {"mixed_depth", depth_json(m.mixed_depth)},
              {"inline_reads", m.inline_reads},
              {"disturbed", m.disturbed},
              {"cold", m.cold}};
    if (const Json shared = shared_json(m.shared); !shared.empty()) {
        json["shared"] = shared;
    }
    return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

StorageModel read_storage_model(const std::filesystem::path& path) {
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored)) {
        throw bad_input(path.string(), "is a directory, not a storage model",
                        "measure it: reprise calibrate --storage " + escape_line(path.string()) + " -o model.json");
    }
    std::ifstream in(path);
    if (!in) {
        throw bad_input(path.string(), "cannot be read", "name a file that `reprise calibrate --storage DIR -o` wrote");
    }
    const Json json = Json::parse(in, nullptr, false);
    if (!json.is_object() || !json.contains("storage_model")) {
        throw bad_input(path.string(), "is not a storage model",
                        "name a file that `reprise calibrate --storage DIR -o` wrote");
    }
    Reader r(path, json);
    StorageModel m;
    if (const double version = r.number("storage_model", 1); version != 1 && version != StorageModel::kVersion) {
        r.bad("storage_model", "has an unsupported version");
    }
    m.host = r.text("host");
    m.directory = r.text("directory");
    m.file_system = r.text("file_system");
    m.device = r.text("device");
    m.measured_unix_s = r.ns("measured_unix_s");
    m.open_ns = r.ns("open_ns");
    m.stat_ns = r.ns("stat_ns");
    m.make_ns = r.ns("make_ns");
    m.remove_ns = r.ns("remove_ns");
    m.call_ns = r.ns("call_ns");
    m.fsync_ns = r.ns("fsync_ns");
    m.read_bytes_per_s = r.number("read_bytes_per_s", 1);
    m.write_bytes_per_s = r.number("write_bytes_per_s", 1);
    m.cached_bytes_per_s = r.number("cached_bytes_per_s", 1);
    m.parallelism = static_cast<int>(std::min(r.number("parallelism", 1), 1e6));
    read_newer(r, m);
    m.cold = r.flag("cold");
    m.read = latencies(r, "read", 1);
    r.finish();
    return m;
}

}  // namespace reprise
