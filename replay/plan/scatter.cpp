// SPDX-License-Identifier: MIT
#include "replay/plan/scatter.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <tuple>

namespace reprise {

namespace {

constexpr uint64_t kChunk = 64;  // of XFS, inodes

using Files = std::vector<RecordedInode>;  // sorted by device and inode
using Places = std::vector<size_t>;        // in Files, of one directory

enum class Numbering : uint8_t { runs_on, chunks, unknown };

Numbering numbering_of(std::string_view type) {
    constexpr std::array<std::string_view, 5> kRunOn = {"ext2", "ext3", "ext4", "btrfs", "tmpfs"};
    if (type == "xfs") {
        return Numbering::chunks;
    }
    return std::find(kRunOn.begin(), kRunOn.end(), type) != kRunOn.end() ? Numbering::runs_on : Numbering::unknown;
}

/// Numbers between two files; 0 where they are too far apart to mean anything.
uint64_t between(const RecordedInode& a, const RecordedInode& b) {
    const uint64_t gap = b.inode - a.inode;
    return a.device == b.device && gap <= InodeScatter::kMostGap ? gap - 1 : 0;
}

bool adjoin(const RecordedInode& a, const RecordedInode& b) {
    return a.device == b.device && b.inode - a.inode <= InodeScatter::kMostGap;
}

/// Others of the directory before, between and after its files. What lies between files of two directories is half the
/// one's and half the other's. Before the first file and after the last one, others are as likely as between two.
std::vector<uint64_t> others_of(const Files& files, const Places& places) {
    uint64_t sum = 0, gaps = 0;
    for (size_t i = 1; i < places.size(); ++i) {
        const RecordedInode &a = files[places[i - 1]], &b = files[places[i]];
        const uint64_t named = places[i] - places[i - 1] - 1;  // of other directories
        sum += between(a, b) - std::min(between(a, b), named);
        gaps += adjoin(a, b) ? 1 : 0;
    }
    const uint64_t mean = gaps == 0 ? 0 : (sum + gaps / 2) / gaps;
    const auto before = [&](size_t place) {
        const bool shares = place > 0 && adjoin(files[place - 1], files[place]);
        return shares ? std::min(mean, between(files[place - 1], files[place]) / 2) : mean;
    };
    const auto after = [&](size_t place) {
        const bool shares = place + 1 < files.size() && adjoin(files[place], files[place + 1]);
        return shares ? std::min(mean, between(files[place], files[place + 1]) / 2) : mean;
    };
    std::vector<uint64_t> others = {before(places.front())};
    for (size_t i = 1; i < places.size(); ++i) {
        const size_t a = places[i - 1], b = places[i];
        const bool own = b == a + 1 && adjoin(files[a], files[b]);
        others.push_back(own ? between(files[a], files[b]) : after(a) + before(b));
    }
    others.push_back(after(places.back()));
    return others;
}

/// How many chunks there were, if `files` of them, taken at random, lie in `seen` different ones. At most twice those
/// seen: beyond that, the number says little.
double chunks_there_were(size_t files, size_t seen) {
    const auto expected = [&](double chunks) {
        return chunks * -std::expm1(static_cast<double>(files) * std::log1p(-1 / chunks));
    };
    auto low = static_cast<double>(seen), high = 2 * low;
    if (seen < 2 || expected(high) <= low) {
        return seen < 2 ? low : high;
    }
    for (int step = 0; step < 50; ++step) {
        const double middle = (low + high) / 2;
        (expected(middle) < static_cast<double>(seen) ? low : high) = middle;
    }
    return low;
}

bool in_one_chunk(const RecordedInode& a, const RecordedInode& b) {
    return a.device == b.device && a.inode / kChunk == b.inode / kChunk;
}

/// Different chunks that files lie in.
size_t chunks_seen(const Files& files, const Places& places) {
    size_t seen = 1;
    for (size_t i = 1; i < places.size(); ++i) {
        seen += in_one_chunk(files[places[i - 1]], files[places[i]]) ? 0 : 1;
    }
    return seen;
}

/// Numbers that run on in place of those of chunks that lie apart, with chunks that no file shows. `chunks`: of a
/// device, whether it has such numbers.
void close_up(Files& files, const std::map<uint32_t, Places>& directories,
              const std::function<bool(uint64_t device)>& chunks) {
    std::map<uint32_t, double> stretch;
    for (const auto& [directory, places] : directories) {
        const size_t seen = chunks_seen(files, places);
        stretch[directory] = chunks_there_were(places.size(), seen) / static_cast<double>(seen);
    }
    double chunk = 1;
    RecordedInode before;
    for (RecordedInode& file : files) {
        const RecordedInode was = file;
        if (before.inode == 0 || file.device != before.device) {
            chunk = 1;
        } else if (!in_one_chunk(file, before)) {
            chunk += file.directory == before.directory ? stretch[file.directory] : 1.0;
        }
        if (chunks(file.device)) {
            file.inode = static_cast<uint64_t>(chunk) * kChunk + file.inode % kChunk;
        }
        before = was;
    }
}

/// Whether so many files share chunks that these are not arbitrary numbers.
bool shares_chunks(const Files& files, const Places& places) {
    constexpr double kShares = 0.9;
    return static_cast<double>(chunks_seen(files, places)) <= kShares * static_cast<double>(places.size());
}

}  // namespace

std::vector<uint64_t> InodeScatter::spread(uint64_t count) const {
    std::vector<uint64_t> out(others.size(), 0);
    if (all_others == 0) {
        // One file may be any of them; several in a row are taken for the first ones.
        out.front() = entries.size() == 1 ? count / 2 : 0;
        out.back() += count - out.front();
        return out;
    }
    uint64_t done = 0, up_to = 0;
    for (size_t i = 0; i < others.size(); ++i) {
        up_to += others[i];
        const double share = static_cast<double>(up_to) / static_cast<double>(all_others);
        const auto due = static_cast<uint64_t>(std::llround(static_cast<double>(count) * share));
        out[i] = due - done;
        done = due;
    }
    return out;
}

std::map<uint32_t, InodeScatter> find_scatter(std::vector<RecordedInode> files,
                                              const std::function<std::string_view(uint64_t device)>& type) {
    const auto order = [](const RecordedInode& one) { return std::tuple(one.device, one.inode, one.entry); };
    std::sort(files.begin(), files.end(), [&](const auto& a, const auto& b) { return order(a) < order(b); });
    // Further names of an inode lie nowhere.
    files.erase(std::unique(files.begin(), files.end(),
                            [](const auto& a, const auto& b) { return a.device == b.device && a.inode == b.inode; }),
                files.end());
    std::map<uint32_t, Places> directories;
    for (size_t i = 0; i < files.size(); ++i) {
        directories[files[i].directory].push_back(i);
    }
    std::map<uint64_t, Numbering> numbering;
    for (const RecordedInode& file : files) {
        numbering.try_emplace(file.device, Numbering::runs_on);
    }
    for (auto& [device, how] : numbering) {
        how = numbering_of(type(device));
    }
    const auto how = [&](const Places& places) { return numbering.at(files[places.front()].device); };
    std::map<uint32_t, InodeScatter> out;
    for (const auto& [directory, places] : directories) {
        out[directory].dense = how(places) != Numbering::unknown || shares_chunks(files, places);
    }
    close_up(files, directories, [&](uint64_t device) { return numbering.at(device) != Numbering::runs_on; });
    for (const auto& [directory, places] : directories) {
        InodeScatter& scatter = out[directory];
        for (const size_t place : places) {
            scatter.entries.push_back(files[place].entry);
        }
        scatter.others = others_of(files, places);
        scatter.all_others = std::accumulate(scatter.others.begin(), scatter.others.end(), uint64_t{0});
        scatter.dense &= scatter.all_others <= InodeScatter::kMostPerFile * places.size();
    }
    return out;
}

}  // namespace reprise
