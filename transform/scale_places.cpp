// SPDX-License-Identifier: MIT
#include "transform/scale_places.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace reprise {
namespace {

constexpr int64_t kPage = 4096;
constexpr int64_t kAround = 64 * 1024;  // bytes that one fault maps, as far as they are in memory

uint64_t hash(uint64_t a, uint64_t b) { return ScaleRandom(a * 0x9e3779b97f4a7c15ull + b).next(); }

}  // namespace

RecordPlaces::RecordPlaces(const ScaleRecording& recording, const Score& score, double factor, uint64_t seed)
    : recording_(recording), score_(score), seed_(seed) {
    const Tables& tables = recording.log().tables();
    for (FileId file = 1; file < tables.files.size(); ++file) {
        if (holds(file)) {
            files_.push_back(file);
        }
    }
    see_in_order();
    for (const FileId file : files_) {
        const double size = factor * static_cast<double>(tables.files[file].size);
        sizes_[file] = std::max<uint64_t>(static_cast<uint64_t>(std::llround(size)), 1);
    }
    draw();
}

/// A footer, a directory of an archive, an index: what lies at the end and is read before most of the file says nothing
/// of how far the epoch has come.
void RecordPlaces::see_in_order() {
    constexpr double kEnd = 0.9, kMost = 0.5;  // of the file
    const auto& units = recording_.units();
    const size_t cuts = score_.cuts.size();
    ahead_.resize(units.size());
    std::map<std::pair<FileId, uint32_t>, std::vector<uint32_t>> of_epoch;  // by time
    for (uint32_t number = 0; number < units.size(); ++number) {
        if (holds(units[number].file) && recording_.in_order(units[number].file)) {
            of_epoch[{units[number].file, units[number].epoch}].push_back(number);
        }
    }
    for (const auto& [of, numbers] : of_epoch) {
        const double end = kEnd * static_cast<double>(size_before(of.first));
        double later = 0;  // bytes of what is before the end of the file, and read later
        for (auto number = numbers.rbegin(); number != numbers.rend(); ++number) {
            const SampleUnit& unit = units[*number];
            if (static_cast<double>(unit.offset) < end) {
                later += static_cast<double>(unit.bytes);
            } else {
                ahead_[*number] = later >= kMost * static_cast<double>(size_before(of.first)) ? 1 : 0;
            }
        }
        auto& at = reached_[of];
        at.resize(cuts);
        for (const uint32_t number : numbers) {
            const size_t cut = score_.piece_of(units[number].task, units[number].first) + 1;
            if (cut < cuts && ahead_[number] == 0) {
                at[cut] = std::max(at[cut], units[number].offset + units[number].bytes);
            }
        }
        std::partial_sum(at.begin(), at.end(), at.begin(), [](int64_t a, int64_t b) { return std::max(a, b); });
    }
}

std::pair<double, FileId> RecordPlaces::not_reached() const {
    constexpr double kAll = 0.95;  // of the recorded file
    double got_to = 0, all = 0, most = 0;
    FileId worst = 0;
    for (const auto& [of, at] : reached_) {
        const auto found = got_to_.find(of);
        const auto before = static_cast<double>(size_before(of.first)), end = static_cast<double>(size(of.first));
        if (!at.empty() && static_cast<double>(at.back()) >= kAll * before && found != got_to_.end()) {
            const double missing = end - static_cast<double>(found->second);
            got_to += static_cast<double>(found->second);
            all += end;
            worst = missing > most ? of.first : worst;
            most = std::max(most, missing);
        }
    }
    return {all > 0 ? 1 - got_to / all : 0, worst};
}

uint64_t RecordPlaces::size_before(FileId file) const { return recording_.log().tables().files[file].size; }
uint64_t RecordPlaces::size(FileId file) const { return sizes_.at(file); }

int64_t RecordPlaces::reached(FileId file, uint32_t epoch, size_t cut) const {
    const auto found = reached_.find({file, epoch});
    return found == reached_.end() ? 0 : found->second[cut];
}

void RecordPlaces::shift(size_t passage, std::map<std::pair<FileId, uint32_t>, int64_t>& shifts) const {
    if (passage == 0) {
        return;
    }
    const Passage &before = score_.passages[passage - 1], &now = score_.passages[passage];
    const size_t from = before.piece + 1, to = now.piece;
    if (from == to || before.epochs != now.epochs) {
        return;
    }
    for (const auto& [of, at] : reached_) {
        if (const int64_t by = at[from] - at[to]; by != 0) {
            shifts[{of.first, of.second + now.epochs}] += by;
        }
    }
}

void RecordPlaces::enter(size_t passage) {
    shift(passage, shifts_);
    passage_ = passage;
}

/// Each record of the longer file once an epoch, in a new permutation, by an access to a record as long.
void RecordPlaces::draw() {
    struct Record {
        int64_t bytes, offset;
        bool operator<(const Record& other) const { return bytes < other.bytes; }
    };
    struct Play {
        int64_t bytes;
        uint64_t key;
        bool operator<(const Play& other) const { return bytes < other.bytes; }
    };
    // The first access to a record; what always goes on where the task's access before ended belongs to that one.
    const auto& units = recording_.units();
    std::vector<uint8_t> first(units.size());
    std::map<FileId, std::map<int64_t, int64_t>> records;  // bytes by offset
    for (const RecordedTask& task : recording_.tasks()) {
        FileId file = 0;
        int64_t end = -1;
        for (const uint32_t number : task.units) {
            const SampleUnit& unit = units[number];
            if (unit.bytes > 0 && holds(unit.file) && !recording_.in_order(unit.file) &&
                !recording_.touched(unit.file)) {
                if (unit.file != file || unit.offset != end) {
                    records[unit.file].emplace(unit.offset, unit.bytes);
                }
                file = unit.file;
                end = unit.offset + unit.bytes;
            }
        }
    }
    for (uint32_t number = 0; number < units.size(); ++number) {
        const auto of = records.find(units[number].file);
        first[number] = of != records.end() && units[number].bytes > 0 && of->second.contains(units[number].offset);
    }
    std::map<std::pair<FileId, uint32_t>, std::vector<Play>> plays;
    std::vector<std::vector<uint32_t>> in_piece(score_.cuts.size());
    for (uint32_t number = 0; number < units.size(); ++number) {
        if (first[number]) {
            in_piece[score_.piece_of(units[number].task, units[number].first)].push_back(number);
        }
    }
    for (size_t passage = 0; passage < score_.passages.size(); ++passage) {
        for (const uint32_t number : in_piece[score_.passages[passage].piece]) {
            const SampleUnit& unit = units[number];
            plays[{unit.file, unit.epoch + score_.passages[passage].epochs}].push_back(
                {unit.bytes, uint64_t{passage} << 32 | number});
        }
    }
    for (auto& [of, all] : plays) {
        const auto before = static_cast<int64_t>(size_before(of.first)), end = static_cast<int64_t>(size(of.first));
        ScaleRandom random(hash(seed_ ^ of.first, of.second));
        std::vector<Record> places;
        for (const auto& [offset, bytes] : records[of.first]) {
            for (int64_t at = offset; at + bytes <= end && before > 0; at += before) {
                places.push_back({bytes, at});
            }
        }
        random.shuffle(places);
        random.shuffle(all);
        for (size_t more = places.size(); places.size() < all.size() && more > 0;) {
            places.push_back(places[random.below(more)]);
        }
        places.resize(std::min(places.size(), all.size()));
        std::stable_sort(places.begin(), places.end());
        std::stable_sort(all.begin(), all.end());
        for (size_t i = 0; i < places.size(); ++i) {
            drawn_[all[i].key] = places[i].offset;
        }
    }
}

int64_t RecordPlaces::place(uint64_t stream, uint32_t unit, uint32_t epoch, int64_t offset, int64_t bytes) {
    const FileId file = recording_.units()[unit].file;
    Stream& of = streams_[stream];
    int64_t now = offset;
    if (ahead_[unit] != 0) {
        now += static_cast<int64_t>(sizes_.at(file)) - static_cast<int64_t>(size_before(file));
    } else if (recording_.in_order(file)) {
        const auto by = shifts_.find({file, epoch});
        now += by == shifts_.end() ? 0 : by->second;
    } else if (recording_.touched(file)) {
        now = touch(file, recording_.units()[unit].task, epoch, offset, bytes);
    } else if (const auto drawn = drawn_.find(uint64_t{passage_} << 32 | unit); drawn != drawn_.end()) {
        now = drawn->second;
    } else if (of.recorded == offset) {
        now = of.now;  // the rest of a record
    }
    const auto end = static_cast<int64_t>(sizes_.at(file));
    if (now < 0 || now + bytes > end) {  // round to where it began
        now = std::clamp<int64_t>(now % std::max<int64_t>(end, 1), 0, std::max<int64_t>(end - bytes, 0));
    }
    of.recorded = offset + bytes;
    of.now = now + bytes;
    if (ahead_[unit] == 0 && recording_.in_order(file)) {
        int64_t& got_to = got_to_[{file, epoch}];
        got_to = std::max(got_to, of.now);
    }
    return now;
}

/// Pages that one fault of a process brings lie together. Other processes have other places at the same time: each
/// touches all of the file, and at K times the distance from each other.
int64_t RecordPlaces::touch(FileId file, TaskId task, uint32_t epoch, int64_t offset, int64_t bytes) {
    const auto before = std::max<int64_t>(static_cast<int64_t>(size_before(file)), kPage);
    const auto end = static_cast<int64_t>(sizes_.at(file));
    if (end < before) {
        return slot(file, epoch, offset / kAround) * kAround + offset % kAround;
    }
    const ProcessId process = recording_.log().tables().tasks[task].process;
    const uint64_t around = hash(hash(hash(seed_ ^ file, epoch), process), static_cast<uint64_t>(offset / kAround));
    const auto fits = static_cast<uint64_t>(std::max<int64_t>((end - offset - bytes) / before + 1, 1));
    return offset + static_cast<int64_t>((around + score_.passages[passage_].again) % fits) * (before / kPage * kPage);
}

/// Of a shorter file: all of it is touched before any of it twice, in an order of its own.
int64_t RecordPlaces::slot(FileId file, uint32_t epoch, int64_t around) {
    const auto slots = std::max<int64_t>(static_cast<int64_t>(sizes_.at(file)) / kAround, 1);
    auto& known = slots_[{file, epoch}];
    const auto [found, fresh] = known.try_emplace(around, 0);
    if (fresh) {
        int64_t step = std::max<int64_t>(slots * 5 / 8, 1);  // about the golden section
        while (std::gcd(step, slots) != 1) {
            ++step;
        }
        const auto begin = static_cast<int64_t>(hash(seed_ ^ file, epoch) % static_cast<uint64_t>(slots));
        found->second = (begin + static_cast<int64_t>(known.size()) * step) % slots;
    }
    return found->second;
}

}  // namespace reprise
