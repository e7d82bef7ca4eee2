// SPDX-License-Identifier: MIT
#include "cli/log_arguments.h"

#include <charconv>
#include <iostream>

#include "formats/support/error.h"

namespace reprise::cli {

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
    options.add_options()("only", po::value<std::vector<std::string>>()->composing()->value_name("ROLE|GLOB"),
                          "only files with this role or path; may be repeated");
    options.add_options()("not", po::value<std::vector<std::string>>()->composing()->value_name("ROLE|GLOB"),
                          "exclude files with this role or path; may be repeated");
}

OpFilter wanted_filter(const po::variables_map& values) {
    const auto words = [&](const char* name) {
        return values.count(name) ? values[name].as<std::vector<std::string>>() : std::vector<std::string>{};
    };
    std::vector<std::string> only = words("only");
    const std::vector<std::string> leave = words("not");
    if (only.empty()) {
        only.emplace_back("all");
    }
    return OpFilter::from_words(only, leave);
}

void add_role_option(po::options_description& options) {
    options.add_options()("role", po::value<std::vector<std::string>>()->composing()->value_name("PATTERN=ROLE"),
                          "set the role of files at, below or matching this path; may be repeated");
}

RoleOverrides wanted_roles(const po::variables_map& values) {
    if (values.count("role") == 0) {
        return {};
    }
    return RoleOverrides::parse(values["role"].as<std::vector<std::string>>());
}

}  // namespace reprise::cli
