// SPDX-License-Identifier: MIT
#include "replay/plan/file_systems.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "formats/oplog/header_facts.h"
#include "formats/support/error.h"
#include "formats/support/quantity.h"
#include "formats/support/sums.h"

namespace reprise {
namespace {

/// Of the calls or the bytes. Memory serves calls hundreds of times as fast as a device.
constexpr double kShareInMemory = 0.01, kShareOnDevice = 0.1;
/// A look at a file or two elsewhere, of which a job of few calls makes a large share of its calls.
constexpr uint64_t kFewFiles = 16;
constexpr double kNoWeight = 0.01;       // of bytes and of time
constexpr uint64_t kFewBytes = 1 << 20;  // bytes, which the page cache takes without a wait

bool more_than(double share, uint64_t part, uint64_t all) {
    return static_cast<double>(part) > share * static_cast<double>(all);
}

void add_use(FileUse& to, const FileUse& more) {
    sum(to.calls, more.calls);
    sum(to.bytes, more.bytes);
    sum(to.written, more.written);
    sum(to.syncs, more.syncs);
    sum(to.ns, more.ns);
}

/// "an ext4", "an xfs", "a btrfs": as the names are spoken.
std::string with_article(const std::string& type) {
    static constexpr std::string_view kSpelled[] = {"xfs", "nfs", "ntfs", "f2fs", "hfs", "msdos", "smb"};
    const bool vowel =
        type.find_first_of("aeio") == 0 || std::any_of(std::begin(kSpelled), std::end(kSpelled),
                                                       [&](std::string_view one) { return type.starts_with(one); });
    return (vowel ? "an " : "a ") + type;
}

/// Whether a replay in one place can be another for it. Memory hides what a sync costs.
bool has_weight(const FileSystemUse& use, const FileUse& all, bool in_memory) {
    return use.files > kFewFiles || more_than(kNoWeight, use.bytes, all.bytes) ||
           more_than(kNoWeight, use.ns, all.ns) || (in_memory && use.syncs != 0);
}

/// "an ext4 (12 files, 800 KiB written, such as /tmp/x)"
std::string words_of(const FileSystemUse& use, bool calls_known) {
    std::string text = counted(use.files, "file");
    text += calls_known ? ", " + format_bytes(use.written) + " written" : "";
    text += (use.files == 1 ? ": " : ", such as ") + escape_line(use.path);
    return use.type.empty() ? "with " + text : with_article(use.type) + " (" + text + ")";
}

nlohmann::json object_of(const std::optional<std::string>& text) {
    nlohmann::json json = nlohmann::json::parse(text.value_or(""), nullptr, false);
    return json.is_object() ? json : nlohmann::json::object();
}

}  // namespace

RecordedFileSystems::RecordedFileSystems(const Header& header) {
    const nlohmann::json types = object_of(read_fact(header, fact::file_systems)),
                         uncounted = object_of(read_fact(header, fact::uncounted_devices));
    for (const auto& [device, type] : types.items()) {
        if (type.is_string()) {
            types_.emplace(device, type.get<std::string>());
        }
    }
    for (const auto& [device, name] : uncounted.items()) {
        uncounted_.insert(device);
    }
}

bool RecordedFileSystems::is_counted(uint64_t device) const { return !uncounted_.contains(device_name(device)); }

std::string_view RecordedFileSystems::type(uint64_t device) const {
    const auto found = types_.find(device_name(device));
    return found == types_.end() ? std::string_view() : found->second;
}

FileSystems::FileSystems(const LogReader& log) : tables_(log.tables()), types_(log.header()) {}

void FileSystems::add(FileId file, const FileUse& more) {
    const FileRow& row = tables_.files[file];
    const bool data = row.type == FileType::regular || row.type == FileType::directory || row.type == FileType::symlink;
    if (row.device == 0 || !data || row.origin == Origin::absent || tables_.path(file).starts_with("/dev/shm/")) {
        return;
    }
    const auto found =
        std::find_if(uses_.begin(), uses_.end(), [&](const auto& one) { return one.device == row.device; });
    const auto at = static_cast<size_t>(found - uses_.begin());
    if (at == uses_.size()) {
        FileSystemUse& use = uses_.emplace_back();
        use.device = row.device;
        use.type = types_.type(row.device);
        most_.emplace_back();
    }
    FileSystemUse& use = uses_[at];
    if (use.files++ == 0 || std::tuple(more.bytes, more.calls) > std::tuple(most_[at].bytes, most_[at].calls)) {
        use.file = file;
        use.path = tables_.path(file);
        most_[at] = more;
    }
    add_use(use, more);
}

std::vector<FileSystemUse> FileSystems::sorted() const {
    std::vector<FileSystemUse> sorted = uses_;
    std::stable_sort(sorted.begin(), sorted.end(), [](const FileSystemUse& a, const FileSystemUse& b) {
        return std::tuple(a.bytes, a.calls, a.files) > std::tuple(b.bytes, b.calls, b.files);
    });
    return sorted;
}

std::string memory_among(const std::vector<FileSystemUse>& uses, double share) {
    uint64_t all = 0, memory = 0;
    const FileSystemUse* most = nullptr;
    for (const FileSystemUse& use : uses) {
        sum(all, use.bytes);
        if (use.in_memory()) {
            sum(memory, use.bytes);
            most = most == nullptr ? &use : most;
        }
    }
    return most == nullptr || memory == all || memory <= kFewBytes || !more_than(share, memory, all)
               ? std::string()
               : format_bytes(memory) + " of the " + format_bytes(all) + " read and written were of files in memory (" +
                     most->type + "), such as " + escape_line(most->path);
}

std::string several_file_systems(const std::vector<FileSystemUse>& uses, bool shares) {
    FileUse all;
    for (const FileSystemUse& use : uses) {
        add_use(all, use);
    }
    std::string others;
    for (size_t i = 1; i < uses.size(); ++i) {
        const FileSystemUse& use = uses[i];
        const bool mixed = use.in_memory() != uses.front().in_memory();
        const double least = mixed ? kShareInMemory : kShareOnDevice;
        const bool share = !shares || more_than(least, use.calls, all.calls) || more_than(least, use.bytes, all.bytes);
        if (share && has_weight(use, all, mixed && use.in_memory())) {
            others += (others.empty() ? ", one of them " : ", one ") + words_of(use, shares);
        }
    }
    return others.empty() ? others
                          : "the recorded files lay on " + std::to_string(uses.size()) + " file systems" + others;
}

}  // namespace reprise
