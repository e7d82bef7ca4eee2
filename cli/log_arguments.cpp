// SPDX-License-Identifier: MIT
#include "cli/log_arguments.h"

#include <charconv>
#include <filesystem>
#include <functional>
#include <iostream>

#include "formats/oplog/part_of_job.h"
#include "formats/oplog/recorded_links.h"
#include "formats/support/error.h"

namespace fs = std::filesystem;

namespace reprise::cli {
namespace {

using Words = std::vector<std::string>;

Words words(const po::variables_map& values, const char* name) {
    return values.count(name) != 0 ? values[name].as<Words>() : Words{};
}

bool any_below(const std::string& directory, const Tables& tables) {
    const std::string below = directory == "/" ? directory : directory + "/";
    for (FileId file = 1; file < tables.files.size(); ++file) {
        const std::string_view path = tables.path(file);
        if (path == directory || path.starts_with(below)) {
            return true;
        }
    }
    return false;
}

bool keeps_any(const OpFilter& filter, const Tables& tables) {
    for (FileId file = 1; file < tables.files.size(); ++file) {
        if (filter.keeps_file(tables, file)) {
            return true;
        }
    }
    return false;
}

}  // namespace

int64_t whole_number(const po::variables_map& values, const char* option, int64_t least, int64_t most) {
    const auto& text = values[option].as<std::string>();
    int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size() || number < least || number > most) {
        throw usage_error("--" + std::string(option) + " is '" + escape_line(text) +
                              "', expected a whole number from " + std::to_string(least) + " to " +
                              std::to_string(most),
                          "");
    }
    return number;
}

void add_recover_option(po::options_description& options) {
    options.add_options()("recover", "read a truncated log up to its last complete block");
}

LogReader open_log(const std::string& path, const po::variables_map& values) {
    LogReader log(path, ReadOptions{.recover = values.count("recover") != 0});
    if (log.recovered()) {
        std::cerr << "reprise: " << escape_line(path) << ": recovered: " << *log.recovered() << '\n';
    }
    return log;
}

void require_ops(const LogReader& log) {
    if (log.op_count() == 0) {
        throw bad_input(log.path().string(), "has no ops", "record or import the job again");
    }
}

std::string recovered_words(const LogReader& log) { return part_of_job(log.tables()).truncated ? "--recover" : ""; }

void add_word(std::string& text, const std::string& word) { text += text.empty() || word.empty() ? word : " " + word; }

void add_task_option(po::options_description& options) {
    options.add_options()("task", po::value<std::vector<std::string>>()->composing()->value_name("ID"),
                          "only this task (id as in `info --tasks`); may be repeated");
}

std::vector<TaskId> wanted_tasks(const LogReader& log, const po::variables_map& values) {
    std::vector<TaskId> tasks;
    if (values.count("task") == 0) {
        return tasks;
    }
    for (const std::string& word : values["task"].as<std::vector<std::string>>()) {
        TaskId id = 0;
        const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), id);
        if (error != std::errc() || end != word.data() + word.size() || id == 0 || id >= log.tables().tasks.size()) {
            throw usage_error("--task '" + escape_line(word) + "': the log has tasks 1 to " +
                                  std::to_string(log.tables().tasks.size() - 1),
                              "see: reprise info --tasks " + log.path().string());
        }
        tasks.push_back(id);
    }
    return tasks;
}

void add_filter_options(po::options_description& options) {
    options.add_options()("only", po::value<Words>()->composing()->value_name("ROLE|PATH"),
                          "only files with this role or path; commas separate several");
    options.add_options()("not", po::value<Words>()->composing()->value_name("ROLE|PATH"),
                          "exclude files with this role or path; commas separate several");
    options.add_options()("allow-empty", "accept --only, --not and --map that match or leave no file");
}

namespace {

// The words of --only and --not, and where they lead through links that the recording followed: the log has the files
// by their own names.
Words with_real_names(const Words& given, const Tables& tables) {
    if (given.empty()) {
        return {};  // a pass over all files less
    }
    const RecordedLinks links(tables);
    Words out;
    const auto add = [&](std::string word) {
        for (size_t comma = 0; (comma = word.find(',', comma)) != word.npos; comma += 2) {
            word.insert(comma, "\\");
        }
        out.push_back(std::move(word));
    };
    for (const std::string& word : split_words(given)) {
        const std::string real = word.starts_with('/') ? links.behind_glob(word) : word;
        if (real == word || selects_any(word, tables)) {
            add(word);
        }
        if (real != word) {
            add(real);
        }
    }
    return out;
}

}  // namespace

OpFilter wanted_filter(const po::variables_map& values, const LogReader& log, Base base) {
    const Words only = words(values, "only"), leave = words(values, "not");
    OpFilter filter = OpFilter::from_words(
        only.empty() && base == Base::everything ? Words{"all"} : with_real_names(only, log.tables()),
        with_real_names(leave, log.tables()));
    if (values.count("allow-empty") != 0) {
        return filter;
    }
    const auto check = [&](const char* option, const Words& given, bool roles) {
        for (const std::string& word : split_words(given)) {
            const bool selects = selects_any(word, log.tables()) ||
                                 selects_any(RecordedLinks(log.tables()).behind_glob(word), log.tables());
            if ((roles || !role_by_name(word)) && !selects) {
                throw usage_error(std::string(option) + " '" + escape_line(word) + "' matches no file of " +
                                      escape_line(log.path().string()),
                                  "see: reprise info --files " + escape_line(log.path().string()) +
                                      "; to go on all the same: --allow-empty");
            }
        }
    };
    check("--only", only, true);
    check("--not", leave, false);  // leaving out a role that is not there changes nothing
    if ((!only.empty() || !leave.empty()) && !keeps_any(filter, log.tables())) {
        const char* which = leave.empty() ? "--only leaves" : only.empty() ? "--not leaves" : "--only and --not leave";
        throw usage_error(
            std::string(which) + " no file of " + escape_line(log.path().string()) +
                (only.empty() && base == Base::job ? ": program and system files are left out anyway" : ""),
            "see: reprise info --files " + escape_line(log.path().string()) + "; to go on all the same: --allow-empty");
    }
    return filter;
}

std::string filter_words(const po::variables_map& values) {
    std::string text;
    for (const char* const name : {"only", "not"}) {
        if (values.count(name) == 0) {
            continue;
        }
        text += (text.empty() ? "--" : " --") + std::string(name) + " ";
        std::string list;
        for (const std::string& word : words(values, name)) {
            list += (list.empty() ? "" : ",") + word;
        }
        text += list;
    }
    return text;
}

void add_map_option(po::options_description& options, const char* help) {
    options.add_options()("map", po::value<Words>()->composing()->value_name("OLD=NEW"), help);
}

std::optional<PathMap> wanted_maps(const po::variables_map& values, const LogReader& log) {
    if (values.count("map") == 0) {
        return std::nullopt;
    }
    const RecordedLinks links(log.tables());
    PathMap maps =
        PathMap::parse(words(values, "map")).behind([&](const std::string& path) { return links.behind(path); });
    for (const PathMap::Rule& rule : maps.rules()) {
        if (values.count("allow-empty") == 0 && !any_below(rule.from, log.tables())) {
            throw usage_error("--map " + escape_line(rule.from) + "=" + escape_line(rule.to.empty() ? "." : rule.to) +
                                  " matches no file of " + escape_line(log.path().string()),
                              "see: reprise info --files " + escape_line(log.path().string()) +
                                  "; to go on all the same: --allow-empty");
        }
    }
    return maps;
}

void add_role_option(po::options_description& options) {
    options.add_options()("role", po::value<std::vector<std::string>>()->composing()->value_name("PATTERN=ROLE"),
                          "set the role of files at, below or matching this path; may be repeated");
}

RoleOverrides wanted_roles(const po::variables_map& values, bool on_disk) {
    if (values.count("role") == 0) {
        return {};
    }
    std::function<std::string(const std::string&)> real_name;
    if (on_disk) {
        real_name = [](const std::string& pattern) {
            std::error_code error;
            const fs::path real = pattern.starts_with('/') ? fs::canonical(pattern, error) : fs::path();
            return error || real.empty() ? pattern : real.native();
        };
    }
    return RoleOverrides::parse(words(values, "role"), real_name);
}

}  // namespace reprise::cli
