// SPDX-License-Identifier: MIT
// The marker file of a prepared root and the fingerprint of a log.
#include "replay/prepare/root_marker.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>

#include "formats/support/error.h"
#include "formats/support/hash.h"
#include "formats/support/limits.h"
#include "formats/support/unique_fd.h"

namespace reprise {

namespace {

constexpr int kMarkerVersion = 1;
constexpr size_t kLongestMarker = size_t{16} << 20;

std::string name_in(std::string_view root_name) { return std::string(root_name) + "/" + std::string(kMarkerName); }

Error cannot(std::string_view what, std::string_view root_name, int error) {
    return machine_error("cannot " + std::string(what) + " " + escape_line(name_in(root_name)) + ": " + reason(error),
                         remedy(error, "the root must be a directory that this user may read and write"));
}

/// rename(2), which must not replace a marker unless `replace`.
int rename_marker(int root, const std::string& partial, bool replace) {
    const std::string name(kMarkerName);
    if (!replace) {
        if (::renameat2(root, partial.c_str(), root, name.c_str(), RENAME_NOREPLACE) == 0) {
            return 0;
        }
        if (errno != EINVAL && errno != ENOSYS) {
            return -1;  // some file systems cannot do without replacing
        }
    }
    return ::renameat(root, partial.c_str(), root, name.c_str());
}

}  // namespace

std::string_view content_name(Content content) {
    switch (content) {
        case Content::random: return "random";
        case Content::zero: return "zero";
        case Content::sparse: return "sparse";
        case Content::recorded: return "recorded";
    }
    return "?";
}

std::optional<Content> content_by_name(std::string_view name) {
    for (const Content content : {Content::random, Content::zero, Content::sparse, Content::recorded}) {
        if (content_name(content) == name) {
            return content;
        }
    }
    return std::nullopt;
}

std::string_view marker_state_name(MarkerState state) {
    switch (state) {
        case MarkerState::incomplete: return "incomplete";
        case MarkerState::resetting: return "resetting";
        case MarkerState::complete: return "complete";
        case MarkerState::changed: return "changed";
    }
    return "?";
}

std::optional<Marker> read_marker(int root, std::string_view root_name) {
    const std::string name(kMarkerName);
    const UniqueFd file{open_beneath(root, name.c_str(), O_RDONLY | O_NONBLOCK, 0, Links::refuse)};
    if (file.get() == -ENOENT) {
        return std::nullopt;
    }
    if (file.get() < 0) {
        throw cannot("read", root_name, -file.get());
    }
    const auto wrong = [&](std::string_view why) {
        return bad_input(name_in(root_name), "this is not a marker that reprise understands: " + std::string(why),
                         "use an empty directory as the root, or remove the file if the root holds nothing of value");
    };
    struct stat status {};
    if (::fstat(file.get(), &status) != 0) {
        throw cannot("read", root_name, errno);
    }
    if (!S_ISREG(status.st_mode)) {
        throw wrong("not a regular file");
    }
    if (static_cast<uint64_t>(status.st_size) > kLongestMarker) {
        throw wrong("too large");
    }
    std::string text(static_cast<size_t>(status.st_size), '\0');
    size_t got = 0;
    while (got < text.size()) {
        const ssize_t n = ::read(file.get(), text.data() + got, text.size() - got);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            throw cannot("read", root_name, errno);
        }
        if (n == 0) {
            break;
        }
        got += static_cast<size_t>(n);
    }
    text.resize(got);

    const auto json = nlohmann::json::parse(text, nullptr, false);
    if (!json.is_object()) {
        throw wrong("not a JSON object");
    }
    const auto string_of = [&](const char* key) {
        const auto found = json.find(key);
        if (found == json.end() || !found->is_string()) {
            throw wrong(std::string("no text '") + key + "'");
        }
        return percent_decode(found->get<std::string>());
    };
    const auto number_of = [&](const char* key) {
        const auto found = json.find(key);
        if (found == json.end() || !found->is_number_integer()) {
            throw wrong(std::string("no number '") + key + "'");
        }
        return found->get<int64_t>();
    };
    if (const int64_t version = number_of("version"); version != kMarkerVersion) {
        throw wrong("version " + std::to_string(version) + ", expected " + std::to_string(kMarkerVersion));
    }
    Marker marker;
    const std::string state = string_of("state");
    bool known = false;
    for (const MarkerState candidate :
         {MarkerState::incomplete, MarkerState::resetting, MarkerState::complete, MarkerState::changed}) {
        if (marker_state_name(candidate) != state) {
            continue;
        }
        marker.state = candidate;
        known = true;
    }
    if (!known) {
        throw wrong("state '" + escape_line(state) + "'");
    }
    const auto content = content_by_name(string_of("content"));
    if (!content) {
        throw wrong("content '" + escape_line(string_of("content")) + "'");
    }
    marker.content = *content;
    marker.tool = string_of("tool");
    marker.log = string_of("log");
    marker.fingerprint = string_of("fingerprint");
    marker.filter = string_of("filter");
    marker.time_unix_ns = number_of("time_unix_ns");
    constexpr int64_t kMostCopies = 1'024;                                     // as GpuCopies
    const int64_t copies = json.contains("copies") ? number_of("copies") : 1;  // not in older markers
    if (copies < 1 || copies > kMostCopies) {
        throw wrong("copies " + std::to_string(copies));
    }
    marker.copies = static_cast<uint32_t>(copies);
    const auto listing = json.find("listing_entries");  // not in older markers
    marker.listing_entries = listing == json.end() || !listing->is_boolean() || listing->get<bool>();
    marker.maps = PathMap::from_json(json.value("maps", nlohmann::json::object()), name_in(root_name));
    return marker;
}

namespace {

std::optional<Marker> marker_in(const std::filesystem::path& root) {
    const UniqueFd fd(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    return fd.valid() ? read_marker(fd.get(), root.string()) : std::nullopt;
}

}  // namespace

bool is_prepared(const std::filesystem::path& root) { return marker_in(root).has_value(); }

bool needs_reset(const std::filesystem::path& root) {
    const std::optional<Marker> marker = marker_in(root);
    return marker && marker->needs_reset();
}

void write_marker(int root, std::string_view root_name, const Marker& marker, RootLock& lock) {
    const nlohmann::ordered_json json = {
        {"what", "reprise prepared this directory; replays may change and remove what is in it"},
        {"version", kMarkerVersion},
        {"state", marker_state_name(marker.state)},
        {"tool", percent_encode(marker.tool)},
        {"log", percent_encode(marker.log)},
        {"fingerprint", percent_encode(marker.fingerprint)},
        {"filter", percent_encode(marker.filter)},
        {"content", content_name(marker.content)},
        {"maps", marker.maps.to_json()},
        {"copies", marker.copies},
        {"listing_entries", marker.listing_entries},
        {"time_unix_ns", marker.time_unix_ns},
    };
    const std::string text = json.dump(2) + "\n";
    const std::string name(kMarkerName);
    const std::string partial = name + ".partial";
    ::unlinkat(root, partial.c_str(), 0);
    const UniqueFd file{open_beneath(root, partial.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0644, Links::refuse)};
    if (file.get() < 0) {
        throw cannot("write", root_name, -file.get());
    }
    const auto give_up = [&] {
        Error error = cannot("write", root_name, errno);
        ::unlinkat(root, partial.c_str(), 0);
        return error;
    };
    size_t done = 0;
    while (done < text.size()) {
        const ssize_t n = ::write(file.get(), text.data() + done, text.size() - done);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            throw give_up();
        }
        done += static_cast<size_t>(n);
    }
    if (::fsync(file.get()) != 0) {
        throw give_up();
    }
    const bool replace = lock.has_marker();
    lock.move_to(file.get());
    if (rename_marker(root, partial, replace) != 0) {
        const bool other = errno == EEXIST;
        Error error = give_up();
        throw other ? root_in_use(root_name) : error;
    }
}

void mark_changed(int root, std::string_view root_name, RootLock& lock, uint32_t copies) {
    auto marker = read_marker(root, root_name);
    // A root that is being laid out or reset stays so: both say more than "changed".
    if (!marker || (marker->state != MarkerState::complete && marker->state != MarkerState::changed)) {
        return;
    }
    if (marker->state == MarkerState::changed && copies <= marker->copies) {
        if (::faccessat(root, ".", W_OK | X_OK, AT_EACCESS) != 0) {  // as where the marker had to be written
            throw cannot("write", root_name, errno);
        }
        return;
    }
    marker->state = MarkerState::changed;
    marker->copies = std::max(marker->copies, copies);
    marker->time_unix_ns =
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
            .count();
    write_marker(root, root_name, *marker, lock);
}

uint32_t copies_below(const std::filesystem::path& root, std::string_view fingerprint) {
    const UniqueFd fd(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!fd.valid()) {
        return 1;
    }
    const std::optional<Marker> marker = read_marker(fd.get(), root.string());
    return marker && marker->fingerprint == fingerprint ? marker->copies : 1;
}

std::string log_fingerprint(const LogReader& log) {
    Hash hash;
    const Header& header = log.header();
    hash.number(header.time_unit_ns);
    hash.number(static_cast<uint64_t>(header.origin_unix_ns));
    for (const std::string* text : {&header.clock, &header.source, &header.host, &header.kernel, &header.command}) {
        hash.text(*text);
    }
    const Tables& tables = log.tables();
    for (const FileRow& file : tables.files) {
        hash.text(tables.strings[file.path]);
        hash.text(tables.strings[file.target]);
        hash.number(file.size);
        hash.number(file.generation);
        hash.number(static_cast<uint64_t>(file.type) << 48 | static_cast<uint64_t>(file.role) << 40 |
                    static_cast<uint64_t>(file.origin) << 32 | file.mode);
    }
    for (const HandleRow& handle : tables.handles) {
        hash.number(handle.file);
        hash.number(static_cast<uint64_t>(handle.flags));
    }
    for (const ProcessRow& process : tables.processes) {
        hash.number(static_cast<uint64_t>(static_cast<uint32_t>(process.pid)) << 32 | process.parent);
    }
    for (const TaskRow& task : tables.tasks) {
        hash.number(static_cast<uint64_t>(static_cast<uint32_t>(task.tid)) << 32 | task.process);
    }
    // Blocks are cut by the writer's memory; their first and last times and the number of ops are the recording's.
    hash.number(log.op_count());
    int64_t end = 0;
    for (const BlockInfo& block : log.blocks()) {
        end = block.end > end ? block.end : end;
    }
    hash.number(static_cast<uint64_t>(end));
    static constexpr char kHex[] = "0123456789abcdef";
    std::string out;
    for (int shift = 60; shift >= 0; shift -= 4) {
        out += kHex[hash.value() >> shift & 15];
    }
    return out;
}

}  // namespace reprise
