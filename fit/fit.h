// SPDX-License-Identifier: MIT
// A job file from a recorded job: what of it the log shows, how well, and what it cannot show.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/oplog/oplog.h"
#include "generate/job.h"

namespace reprise {

/// A word of the job file.
struct FittedWord {
    std::string word, value;
    std::string evidence;        // "2,000 files; KS 0.02"
    double mean_error = 0;       // half of the 95 % interval, as a share of the value, of the mean where it is drawn
    double deviation_error = 0;  // likewise, of the deviation
    double ks = -1;              // Kolmogorov-Smirnov distance of what is drawn; -1: it is not
    bool guessed = false;        // the log allows other values, too; `unseen` says why
};

struct UnseenWord {
    std::string word, why;
};

struct FittedJob {
    std::string name, directory;
    std::vector<FittedWord> words;
    std::vector<UnseenWord> unseen;
    std::vector<std::string> notes;  // what of the recording the job leaves out
    std::string differs;             // how far it reads something else than the recording; empty: it does not

    const FittedWord* find(std::string_view word) const;
    bool sees(std::string_view word) const;
    FittedWord& add(std::string word, std::string value, std::string evidence);
    /// The value, if any, is a guess.
    void cannot_see(std::string word, std::string why);

    /// The job file, with what is guessed in comments. read_job() takes it.
    std::string text(std::string_view log) const;
};

/// Throws Error (bad_input), which says why, where no training job is seen. Memory: about 80 bytes for each op that
/// says something of the job.
FittedJob fit_job(const LogReader& log);

}  // namespace reprise
