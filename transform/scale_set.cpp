// SPDX-License-Identifier: MIT
#include "transform/scale_set.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "transform/scale_random.h"

namespace reprise {
namespace {

/// The last digits of a file's name: its number among its siblings.
struct NumberedName {
    std::string before, after;
    std::string digits;  // empty: it has none

    explicit NumberedName(std::string_view path) {
        const size_t name = path.rfind('/') + 1;
        size_t point = path.find('.', name + 1);
        point = point == path.npos ? path.size() : point;
        size_t end = point;
        while (end > name && (path[end - 1] < '0' || path[end - 1] > '9')) {
            --end;
        }
        size_t begin = end;
        constexpr size_t kMostDigits = 18;
        while (begin > name && end - begin < kMostDigits && path[begin - 1] >= '0' && path[begin - 1] <= '9') {
            --begin;
        }
        if (begin == end) {
            begin = end = point;
        }
        before = path.substr(0, begin);
        digits = path.substr(begin, end - begin);
        after = path.substr(end);
    }
    /// What siblings have in common, in whatever folder they are.
    std::string pattern() const { return before.substr(before.rfind('/') + 1) + "\n" + after; }
};

}  // namespace

LargerSet::LargerSet(const ScaleRecording& recording, const Score& score, double factor, uint64_t seed)
    : recording_(recording),
      score_(score),
      tables_(recording.log().tables()),
      units_in_(score.cuts.size()),
      assigned_(score.passages.size()),
      members_(tables_.files.size()),
      in_set_(tables_.files.size()),
      walks_(recording.units().size()) {
    for (FileId file = 1; file < tables_.files.size(); ++file) {
        in_set_[file] = recording.class_of(file) == SampleClass::sample ? 1 : 0;
        names_.emplace(tables_.path(file));
        if (in_set_[file]) {
            const NumberedName name(tables_.path(file));
            Numbers& numbers = numbers_[name.pattern()];
            const uint64_t number = name.digits.empty() ? 1 : std::strtoull(name.digits.c_str(), nullptr, 10);
            numbers.next = std::max(numbers.next, number + 1);
            numbers.digits = std::max(numbers.digits, name.digits.size());
        }
    }
    sort_units();
    find_order();
    make_members(factor);
    find_sequence();
    for (uint32_t epoch = 0; epoch < plays_.size(); ++epoch) {
        assign(epoch, seed);
    }
}

void LargerSet::sort_units() {
    const auto& units = recording_.units();
    std::vector<std::pair<int64_t, int64_t>> spans(recording_.epochs().size(), {INT64_MAX, INT64_MIN});
    for (const SampleUnit& unit : units) {
        if (unit.bytes > 0) {
            spans[unit.epoch].first = std::min(spans[unit.epoch].first, unit.begin);
            spans[unit.epoch].second = std::max(spans[unit.epoch].second, unit.begin);
        }
    }
    for (uint32_t number = 0; number < units.size(); ++number) {
        const SampleUnit& unit = units[number];
        units_in_[score_.piece_of(unit.task, unit.first)].push_back(number);
        if (unit.bytes == 0) {
            // Between epochs every file is looked at, within one those that are read.
            walks_[number] = std::none_of(spans.begin(), spans.end(), [&](const auto& span) {
                return unit.begin >= span.first && unit.begin <= span.second;
            });
        }
    }
    for (uint32_t passage = 0; passage < score_.passages.size(); ++passage) {
        const Passage& now = score_.passages[passage];
        const auto& in = units_in_[now.piece];
        assigned_[passage].resize(in.size());
        for (uint32_t place = 0; place < in.size(); ++place) {
            const SampleUnit& unit = units[in[place]];
            if (unit.bytes == 0 || !sample(unit.file)) {
                continue;
            }
            const uint32_t epoch = unit.epoch + now.epochs;
            if (epoch < (1u << 20)) {
                plays_.resize(std::max<size_t>(plays_.size(), epoch + 1));
                plays_[epoch].push_back({passage, place, unit.file});
            }
        }
    }
}

std::string LargerSet::further_name(FileId like) {
    const NumberedName name(tables_.path(like));
    Numbers& numbers = numbers_[name.pattern()];
    for (;;) {
        std::string digits = std::to_string(numbers.next++);
        if (name.digits.empty()) {
            digits.insert(0, "_");
        } else if (digits.size() < name.digits.size()) {
            digits.insert(0, name.digits.size() - digits.size(), '0');
        }
        std::string path = name.before + digits + name.after;
        if (names_.insert(path).second) {
            return path;
        }
    }
}

void LargerSet::add(FileId like) {
    members_[like].push_back(static_cast<FileId>(tables_.files.size() + added_.size()));
    added_.push_back({like, further_name(like)});
}

void LargerSet::make_members(double factor) {
    // The epoch with the most accesses reads all there is.
    const auto widest = std::max_element(plays_.begin(), plays_.end(),
                                         [](const auto& a, const auto& b) { return a.size() < b.size(); });
    std::vector<uint32_t> count(tables_.files.size());
    std::vector<uint8_t> read(tables_.files.size());
    if (widest != plays_.end()) {
        for (const Play& play : *widest) {
            ++count[play.file];
        }
    }
    for (const SampleUnit& unit : recording_.units()) {
        read[unit.file] |= unit.bytes > 0 ? 1 : 0;
    }
    const auto files = static_cast<double>(std::count(read.begin(), read.end(), 1));
    const double each = widest == plays_.end() || files == 0 ? factor : static_cast<double>(widest->size()) / files;
    double due = 0, due_read = 0.5;
    for (FileId file = 1; file < tables_.files.size(); ++file) {
        if (!in_set_[file]) {
            continue;
        }
        if (factor == 1) {  // the set stays as it is, whatever an epoch has too few or too many
            members_[file].push_back(file);
            continue;
        }
        uint32_t copies = count[file];
        if (!read[file] || shuffled_) {  // else only as many as are played in the order that all epochs have
            double& so_far = read[file] ? due_read : due;
            so_far += read[file] ? each : factor;
            copies = static_cast<uint32_t>(std::max(so_far, 0.0));
            so_far -= copies;
        }
        if (copies > 0) {
            members_[file].push_back(file);
        }
        for (uint32_t copy = 1; copy < copies; ++copy) {
            add(file);
        }
    }
}

/// In order where the second epoch follows the first one or, of one epoch, where names ascend.
void LargerSet::find_order() {
    std::vector<uint32_t> place(tables_.files.size());
    std::unordered_map<uint64_t, FileId> last;  // by epoch and task
    uint32_t number = 0;
    uint64_t pairs = 0, forward = 0;
    const bool twice = recording_.epochs().size() > 1;
    for (const SampleUnit& unit : recording_.units()) {
        if (unit.bytes == 0 || !sample(unit.file)) {
            continue;
        }
        if (twice && unit.epoch == 0) {
            place[unit.file] = ++number;
        }
        if (unit.epoch == (twice ? 1 : 0)) {
            FileId& before = last[twice ? 0 : unit.task];
            if (before != 0) {
                ++pairs;
                forward += twice ? place[before] < place[unit.file] : tables_.path(before) < tables_.path(unit.file);
            }
            before = unit.file;
        }
    }
    // Chance has half of them ascend.
    shuffled_ = forward * 10 < pairs * 9;
}

/// The widest epoch gives the order that all have.
void LargerSet::find_sequence() {
    const auto widest = std::max_element(plays_.begin(), plays_.end(),
                                         [](const auto& a, const auto& b) { return a.size() < b.size(); });
    std::vector<uint32_t> used(members_.size());
    for (const Play& play : widest == plays_.end() ? std::vector<Play>() : *widest) {
        const auto& mine = members_[play.file];
        sequence_.push_back(mine.empty() ? 0 : mine[used[play.file]++ % mine.size()]);
    }
}

void LargerSet::assign(uint32_t epoch, uint64_t seed) {
    std::vector<Play>& plays = plays_[epoch];
    if (!shuffled_) {
        for (size_t i = 0; i < plays.size(); ++i) {
            assigned_[plays[i].passage][plays[i].place] = sequence_[i];
        }
        return;
    }
    // Every file once, for a recorded access to one of about its size: among as many neighbours by size as keep the
    // sizes alike, chance decides.
    constexpr size_t kMostNeighbours = 16;
    ScaleRandom random(seed * 1'000'003 + epoch);
    const auto size = [&](FileId file) { return tables_.files[like(file)].size; };
    std::vector<FileId> files;
    for (const auto& mine : members_) {
        files.insert(files.end(), mine.begin(), mine.end());
    }
    random.shuffle(files);
    std::vector<FileId> drawn = files;
    drawn.resize(std::min(drawn.size(), plays.size()));
    while (drawn.size() < plays.size() && !files.empty()) {
        drawn.push_back(files[random.below(files.size())]);
    }
    if (drawn.empty()) {
        return;
    }
    random.shuffle(plays);
    std::stable_sort(drawn.begin(), drawn.end(), [&](FileId a, FileId b) { return size(a) < size(b); });
    std::stable_sort(plays.begin(), plays.end(),
                     [&](const Play& a, const Play& b) { return size(a.file) < size(b.file); });
    const size_t near = std::clamp<size_t>(plays.size() / 50, 1, kMostNeighbours);
    for (size_t begin = 0; begin < drawn.size(); begin += near) {
        std::vector<FileId> part(drawn.begin() + static_cast<std::ptrdiff_t>(begin),
                                 drawn.begin() + static_cast<std::ptrdiff_t>(std::min(begin + near, drawn.size())));
        random.shuffle(part);
        std::copy(part.begin(), part.end(), drawn.begin() + static_cast<std::ptrdiff_t>(begin));
    }
    for (size_t i = 0; i < plays.size(); ++i) {
        FileId file = drawn[i];
        // What is mapped is touched where it was: a file that is shorter does not do.
        const auto& mine = members_[plays[i].file];
        if (recording_.mapped(plays[i].file) && size(file) < size(plays[i].file) && !mine.empty()) {
            file = mine[random.below(mine.size())];
        }
        assigned_[plays[i].passage][plays[i].place] = file;
    }
}

FileId LargerSet::file_of(size_t passage, uint32_t unit) const {
    const Passage& now = score_.passages[passage];
    const auto& in = units_in_[now.piece];
    const FileId file = recording_.units()[unit].file;
    if (recording_.units()[unit].bytes > 0) {
        const auto place = std::lower_bound(in.begin(), in.end(), unit);
        if (place != in.end() && *place == unit) {
            return assigned_[passage][static_cast<size_t>(place - in.begin())];
        }
    }
    const auto& mine = members_[file];
    return mine.empty() ? 0 : mine[now.again % mine.size()];
}

}  // namespace reprise
