// SPDX-License-Identifier: MIT
#include "cli/recordings.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstring>
#include <iostream>

#include "analyze/summary.h"
#include "cli/json_output.h"
#include "cli/log_arguments.h"
#include "cli/units.h"
#include "formats/support/error.h"
#include "replay/prepare/root_marker.h"

namespace reprise::cli {
namespace {

namespace fs = std::filesystem;

/// The exit code of a process, or 128 and the signal that ended it.
int code_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

/// A terminal's Ctrl-C reaches the recording, too, which ends with a valid log; this process ends after it.
volatile std::sig_atomic_t interrupted = 0;
void note_signal(int signal) { interrupted = signal; }

class WhileRecording {
public:
    WhileRecording() {
        struct sigaction note {};
        note.sa_handler = note_signal;
        for (size_t i = 0; i < kSignals.size(); ++i) {
            ::sigaction(kSignals[i], &note, &before_[i]);
        }
    }
    ~WhileRecording() { restore(); }
    WhileRecording(const WhileRecording&) = delete;
    WhileRecording& operator=(const WhileRecording&) = delete;
    void restore() {
        for (size_t i = 0; i < kSignals.size(); ++i) {
            ::sigaction(kSignals[i], &before_[i], nullptr);
        }
    }

private:
    static constexpr std::array<int, 3> kSignals{SIGINT, SIGTERM, SIGHUP};
    std::array<struct sigaction, 3> before_{};
};

int in_a_process(WhileRecording& signals, const std::function<int()>& work) {
    std::cout.flush();
    std::cerr.flush();
    const pid_t pid = ::fork();
    if (pid < 0) {
        throw machine_error(std::string("cannot start a process: ") + std::strerror(errno), "");
    }
    if (pid == 0) {
        signals.restore();
        int code = static_cast<int>(ExitCode::machine);
        try {
            code = work();
        } catch (const Error& error) {
            std::cerr << "reprise: " << error.what() << "\n";
            code = static_cast<int>(error.code());
        }
        std::cout.flush();
        std::cerr.flush();
        ::_exit(code);
    }
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
        if (interrupted != 0) {
            ::kill(pid, interrupted);  // by `kill`, which reaches this process only
        }
    }
    return code_of(status);
}

/// As `info` counts them; -1: not known.
int64_t fetched_of(const LogReader& log) {
    uint64_t bytes = 0;
    bool known = false;
    for (const RoleSummary& role : summarize(log).roles) {
        known = known || role.bytes_fetched;
        bytes += role.bytes_fetched.value_or(0);
    }
    return known ? static_cast<int64_t>(std::min<uint64_t>(bytes, INT64_MAX)) : -1;
}

}  // namespace

unsigned wanted_runs(const po::variables_map& values) {
    return static_cast<unsigned>(whole_number(values, "runs", 1, kMostRuns));
}

fs::path numbered(const fs::path& path, size_t number) {
    fs::path out = path;
    return out.replace_extension(std::to_string(number) + path.extension().string());
}

Recordings::Recordings(const std::vector<std::string>& logs) : logs_(logs) {
    std::vector<std::string> prints;
    for (const std::string& log : logs) {
        const LogReader reader(log);
        facts_.push_back(recording_facts(reader));
        facts_.back().fetched_bytes = fetched_of(reader);
        prints.push_back(log_fingerprint(reader));
        const auto before = std::find(prints.begin(), prints.end() - 1, prints.back());
        if (before != prints.end() - 1) {
            const std::string& first = logs[static_cast<size_t>(before - prints.begin())];
            throw usage_error(
                printable(log) + " is the same recording as " + (first == log ? "one before" : printable(first)),
                "give each recording once");
        }
    }
    check_one_job(facts_);
    outcomes_ = recording_outcomes(facts_);
    verdict_ = judge_series(outcomes_);
}

Table Recordings::table() const {
    Table table({{"recording", "log"},
                 {"elapsed", "elapsed_ns", true},
                 {"ops", "ops", true},
                 {"steal time", "stolen_ns", true},
                 {"run queue", "run_queue_ns", true},
                 {"fetched", "fetched_bytes", true},
                 {"", "note"}});
    const auto known = [](int64_t ns) { return ns < 0 ? Cell("-", nullptr) : duration_cell(ns); };
    for (size_t i = 0; i < logs_.size(); ++i) {
        std::string note = i == verdict_.median_run ? "the one nearest to the median" : "";
        if (!outcomes_[i].disturbed.empty()) {
            note = "disturbed: " + outcomes_[i].disturbed.front();
        } else if (std::find(verdict_.odd.begin(), verdict_.odd.end(), i) != verdict_.odd.end()) {
            note = "far from the others, no cause found";
        }
        table.row({printable(logs_[i]), duration_cell(facts_[i].elapsed_ns), count_cell(facts_[i].ops),
                   known(facts_[i].stolen_ns), known(facts_[i].run_queue_ns),
                   facts_[i].fetched_bytes < 0 ? Cell("-", nullptr)
                                               : bytes_cell(static_cast<uint64_t>(facts_[i].fetched_bytes)),
                   note});
    }
    return table;
}

Scatter Recordings::times() const {
    std::vector<double> seconds;
    for (const size_t one : verdict_.counted) {
        seconds.push_back(outcomes_[one].seconds);
    }
    return scatter_of(seconds);
}

void Recordings::print(std::ostream& out) const {
    table().print(out, 2);
    const MedianInterval& seconds = verdict_.seconds;
    out << counted(logs_.size(), "recording") << ", median " << format_duration(std::llround(seconds.median * 1e9))
        << ", between " << format_duration(std::llround(seconds.low * 1e9)) << " and "
        << format_duration(std::llround(seconds.high * 1e9)) << " with " << std::llround(seconds.level * 100)
        << " % confidence\n";
    if (verdict_.disturbed_counted) {
        out << "warning: most recordings were disturbed, so disturbed ones count, too\n";
    }
    for (const std::string& warning : warnings()) {
        out << "warning: " << warning << "\n";
    }
}

std::vector<std::string> Recordings::warnings() const {
    std::vector<std::string> out;
    if (std::string unlike = unlike_recordings(facts_); !unlike.empty()) {
        out.push_back(std::move(unlike));
    }
    if (const auto mixed = mixed_caches(facts_)) {
        out.push_back("cold and warm recordings are mixed: from " + format_bytes(static_cast<uint64_t>(mixed->first)) +
                      " to " + format_bytes(static_cast<uint64_t>(mixed->second)) +
                      " were not in the page cache; their median is of neither");
    }
    return out;
}

Json Recordings::json() const {
    const MedianInterval& seconds = verdict_.seconds;
    Json rows = table().json();
    for (size_t i = 0; i < logs_.size(); ++i) {
        rows[i]["disturbed"] = outcomes_[i].disturbed;
    }
    return {{"recordings", std::move(rows)}, {"chosen", printable(chosen())}, {"median_s", seconds.median},
            {"low_s", seconds.low},          {"high_s", seconds.high},        {"confidence", seconds.level},
            {"warnings", warnings()}};
}

ChosenLog chosen_log(const po::variables_map& values) {
    const auto& logs = values["log"].as<std::vector<std::string>>();
    if (logs.size() == 1) {
        return {logs.front(), {}};
    }
    if (values.count("recover") != 0) {
        throw usage_error("--recover with several recordings", "give the truncated one alone, or the whole ones");
    }
    const Recordings recordings(logs);
    if (!quiet()) {
        recordings.print(std::cerr);
        std::cerr << "using " << printable(recordings.chosen()) << "\n\n";
    }
    return {recordings.chosen(), recordings.times(), recordings.warnings()};
}

int record_runs(unsigned runs, const fs::path& output, const po::variables_map& values,
                const std::function<int(const fs::path&)>& record) {
    std::vector<std::string> logs;
    WhileRecording signals;
    int code = 0;
    unsigned run = 0;
    while (run < runs && code == 0 && interrupted == 0) {
        const fs::path log = numbered(output, ++run);
        code = in_a_process(signals, [&] { return record(log); });
        if (std::error_code ignored; fs::exists(log, ignored)) {
            logs.push_back(log.string());
        }
    }
    if (code != 0 || interrupted != 0) {
        std::cerr << "reprise: stopped after run " << run << " of " << runs
                  << (code != 0 ? ": exit code " + std::to_string(code) : std::string()) << "\n";
        return code != 0 ? code : static_cast<int>(ExitCode::machine);
    }
    const Recordings recordings(logs);
    if (json_wanted(values)) {
        put_json(values, recordings.json());
    }
    if (!json_alone(values) && !quiet()) {
        std::cerr << "\n";
        recordings.print(std::cerr);
    }
    return 0;
}

}  // namespace reprise::cli
