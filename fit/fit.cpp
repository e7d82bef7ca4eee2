// SPDX-License-Identifier: MIT
#include "fit/fit.h"

#include <algorithm>
#include <cctype>

#include "fit/data_set_fit.h"
#include "fit/fit_check.h"
#include "fit/order_fit.h"
#include "fit/saves.h"
#include "fit/steps_fit.h"
#include "formats/oplog/run_times.h"
#include "formats/support/error.h"
#include "formats/support/quantity.h"
#include "generate/job_text.h"

namespace reprise {
namespace {

/// The folder that all files of the data set lie in.
std::string folder_of(const JobTrace& trace) {
    constexpr const char* kElse = "/data";
    if (trace.data.empty()) {
        return kElse;
    }
    std::string folder(trace.tables.path(trace.data.front()));
    for (const FileId file : trace.data) {
        const std::string_view path = trace.tables.path(file);
        while (!folder.empty() &&
               !(path.starts_with(folder) && path.size() > folder.size() && path[folder.size()] == '/')) {
            folder.resize(folder.find_last_of('/') == folder.npos ? 0 : folder.find_last_of('/'));
        }
    }
    const bool plain = std::all_of(folder.begin(), folder.end(),
                                   [](unsigned char c) { return c > ' ' && c != ';' && c != '#' && c != 0x7f; });
    return folder.empty() || folder.front() != '/' || !plain ? kElse : folder;
}

std::string name_of(const LogReader& log, const JobTrace& trace, const TrainingLoop& loop) {
    std::string name(trace.tables.strings[trace.tables.tasks[loop.ranks.front().task].name]);
    if (loop.ranks.size() > 1 && name.ends_with("-0")) {
        name.resize(name.size() - 2);
    }
    const bool good = !name.empty() && name != "global" && std::all_of(name.begin(), name.end(), [](unsigned char c) {
        return std::isalnum(c) != 0 || c == '-' || c == '_';
    });
    return log.header().source == "generate" && good ? name : "train";
}

void add_notes(const JobTrace& trace, const TrainingLoop& loop, FittedJob& job) {
    for (const std::string& each : trace.left_out) {
        job.notes.push_back("left out: " + each);
    }
    if (trace.arrivals > 0) {
        job.notes.push_back("left out: an open loop of " + counted(trace.arrivals, "request"));
    }
    const TraceTask& first = trace.tasks[loop.ranks.front().task];
    const int64_t begin = loop.ranks.front().batches.front().begins;
    if (!first.ops.empty() && begin - first.ops.front().begin > 100'000'000) {
        job.notes.push_back("left out: " + format_duration(begin - first.ops.front().begin) +
                            " before the first batch is loaded (programs, listings)");
    }
    uint64_t readers = 0;
    for (const TraceTask& task : trace.tasks) {
        readers += task.reads > 0 ? 1 : 0;
    }
    uint64_t known = 0;
    for (const RankLoop& rank : loop.ranks) {
        known += rank.loaders.empty() ? 1 : rank.loaders.size();
    }
    if (readers > known && gathered_batches(trace, loop).empty()) {
        job.notes.push_back("left out: " + counted(readers - known, "task") +
                            " that read the data set and feed no rank");
    }
}

}  // namespace

const FittedWord* FittedJob::find(std::string_view word) const {
    const auto found =
        std::find_if(words.begin(), words.end(), [&](const FittedWord& each) { return each.word == word; });
    return found == words.end() ? nullptr : &*found;
}

bool FittedJob::sees(std::string_view word) const {
    return std::none_of(unseen.begin(), unseen.end(), [&](const UnseenWord& each) { return each.word == word; });
}

FittedWord& FittedJob::add(std::string word, std::string value, std::string evidence) {
    FittedWord& made = words.emplace_back();
    made.guessed = !sees(word);
    made.word = std::move(word);
    made.value = std::move(value);
    made.evidence = std::move(evidence);
    return made;
}

void FittedJob::cannot_see(std::string word, std::string why) {
    for (FittedWord& each : words) {
        each.guessed = each.guessed || each.word == word;
    }
    const auto known =
        std::find_if(unseen.begin(), unseen.end(), [&](const UnseenWord& each) { return each.word == word; });
    if (known != unseen.end()) {
        known->why += known->why == why ? "" : "; " + why;
        return;
    }
    unseen.push_back({std::move(word), std::move(why)});
}

std::string FittedJob::text(std::string_view log) const {
    std::string out = "; fitted to " + escape_line(log) + " by reprise fit\n";
    if (!differs.empty()) {
        out += "; NOT THE RECORDED JOB: " + differs + '\n';
    }
    for (const std::string& note : notes) {
        out += "; " + note + '\n';
    }
    out += "[" + name + "]\ndirectory=" + directory + '\n';
    for (const FittedWord& word : words) {
        std::string line = word.word + "=" + word.value;
        const auto why =
            std::find_if(unseen.begin(), unseen.end(), [&](const UnseenWord& each) { return each.word == word.word; });
        if (why != unseen.end()) {
            line.resize(std::max<size_t>(line.size(), 31), ' ');
            line += " ; guessed: " + why->why;
        }
        out += line + '\n';
    }
    return out;
}

FittedJob fit_job(const LogReader& log) {
    refuse_without_times(log);
    const std::string name = log.path().string();
    const JobTrace trace(log);
    if (trace.arrivals > 0 && trace.read_bytes == 0) {
        throw bad_input(name,
                        counted(trace.arrivals, "request") + " that arrive when they are due: serving, no training",
                        "fit is of training jobs; describe the service in a job file (docs/jobs.md, Open loops)");
    }
    const TrainingLoop loop = find_training_loop(trace, name);
    FittedJob job;
    const SavesFit saves = fit_saves(trace, loop, job);
    const LoadedSamples loaded = find_samples(trace, loop, saves.copies);
    job.name = name_of(log, trace, loop);
    job.directory = folder_of(trace);
    const DataSetFit set = fit_data_set(trace, loop, loaded, job);
    fit_order(trace, loop, loaded, set, job);
    fit_steps(trace, loop, loaded, set, saves, job);
    job.cannot_see("seed", "sizes, orders and times are drawn anew");
    add_notes(trace, loop, job);
    // In the order of words.def, as --show has them.
    const auto place = [](const FittedWord& word) { return find_word(word.word); };
    std::stable_sort(job.words.begin(), job.words.end(),
                     [&](const FittedWord& x, const FittedWord& y) { return place(x) < place(y); });
    const FittedWord* const size = job.find("sample_size");
    job.differs = differing_reads(trace, loaded, parse_job(job.text(name), "the fitted job").sections.at(0),
                                  size == nullptr ? 0 : size->mean_error);
    if (std::string gathered = gathered_batches(trace, loop); !gathered.empty()) {
        job.cannot_see("loader_workers", "a batch comes from several of them");
        job.cannot_see("prefetch", "a batch comes from several loaders");
        job.differs = job.differs.empty() ? std::move(gathered) : job.differs + "; " + gathered;
    }
    return job;
}

}  // namespace reprise
