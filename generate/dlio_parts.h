// SPDX-License-Identifier: MIT
// What dlio.cpp puts together: times, checkpoints, and notes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "generate/dlio_yaml.h"

namespace reprise {

/// A job file in the making.
struct DlioJob {
    DlioKeys& keys;
    uint64_t gpus = 1;
    std::string name;  // of the section
    std::string text;
    std::vector<std::string> notes;

    void section(const std::string& title) { text += "[" + title + "]\n"; }
    void word(std::string_view word, const std::string& value) { text += std::string(word) + "=" + value + "\n"; }
    void word(std::string_view name_of, uint64_t value) { word(name_of, std::to_string(value)); }
    void note(std::string sentence) { notes.push_back(std::move(sentence)); }
};

/// As a word of a job file takes it: without an exponent.
std::string plain_number(double value);
/// A folder of DLIO's as the log names it: from the root.
std::string dlio_folder(DlioJob& job, std::string_view key, const std::string& otherwise);

/// The time of `key` and `key`_stdev, in seconds, or as a distribution. Empty where neither is given.
std::string dlio_times(DlioJob& job, const std::string& key);

/// checkpoint_every= and the like of a training section.
void dlio_checkpoints(DlioJob& job, uint64_t epochs);
/// Sections that write and read checkpoints, where nothing is trained.
void dlio_checkpoints_alone(DlioJob& job);

}  // namespace reprise
