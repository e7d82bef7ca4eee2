// SPDX-License-Identifier: MIT
// The registry, the parsing of a command line, and the one place where
// errors become messages and exit codes.
#include "cli/command.h"

#include <algorithm>
#include <array>
#include <boost/program_options/parsers.hpp>
#include <boost/program_options/positional_options.hpp>
#include <boost/system/system_error.hpp>
#include <cstdlib>
#include <iostream>
#include <new>
#include <stdexcept>
#include <system_error>
#include <tuple>
#include <utility>

#include "cli/given_values.h"
#include "cli/help.h"
#include "cli/json_output.h"
#include "cli/named_files.h"
#include "formats/support/error.h"
#include "formats/support/limits.h"
#include "formats/support/nearest.h"

namespace reprise::cli {

namespace {

std::vector<Command>& registry() {
    static std::vector<Command> commands;
    return commands;
}

int& verbosity_level() {
    static int level = 0;
    return level;
}

Error wrong_use(const Command& command, const std::string& what) {
    return usage_error(command.name + ": " + what, "see: reprise " + command.name + " --help");
}

po::options_description positional_options(const Command& command) {
    po::options_description hidden;
    for (const auto& positional : command.positionals) {
        if (positional.most == 1) {
            hidden.add_options()(positional.name.c_str(), po::value<std::string>());
        } else {
            hidden.add_options()(positional.name.c_str(), po::value<std::vector<std::string>>());
        }
    }
    return hidden;
}

void check_positionals(const Command& command, const po::variables_map& values) {
    for (const auto& positional : command.positionals) {
        int given = 0;
        if (values.count(positional.name) != 0) {
            const auto& value = values[positional.name];
            given = positional.most == 1 ? 1 : static_cast<int>(value.as<std::vector<std::string>>().size());
        }
        if (given < positional.least) {
            throw wrong_use(command, "missing " + positional.label + ", expected: " + usage_line(command));
        }
    }
}

/// "--pace" for an option, "SHELL" for a positional.
std::string spelling_of(const Command& command, const std::string& name) {
    for (const auto& positional : command.positionals) {
        if (positional.name == name) {
            return positional.label;
        }
    }
    return "--" + name;
}

void check_choices(const Command& command, const po::variables_map& values) {
    for (const auto& [name, allowed] : command.choices) {
        if (values.count(name) == 0) {
            continue;
        }
        std::vector<std::string> given;
        if (const auto* one = boost::any_cast<std::string>(&values[name].value())) {
            given = {*one};
        } else if (const auto* many = boost::any_cast<std::vector<std::string>>(&values[name].value())) {
            given = *many;
        }
        for (const auto& value : given) {
            if (std::find(allowed.begin(), allowed.end(), value) == allowed.end()) {
                throw wrong_use(command, spelling_of(command, name) + " is '" + escape_line(value) +
                                             "', expected one of: " + join(allowed, ", "));
            }
        }
    }
}

/// Index of the first word that is neither an option nor an option's value.
std::size_t first_word(const po::options_description& options, const std::vector<std::string>& arguments) {
    const auto takes_value = [&](const std::string& name) {
        const po::option_description* found = options.find_nothrow(name, false);
        return found != nullptr && found->semantic()->min_tokens() > 0;
    };
    std::size_t i = 0;
    while (i < arguments.size()) {
        const std::string& word = arguments[i];
        if (word.size() < 2 || word[0] != '-' || word == "--") {
            return i;
        }
        bool with_next = word.starts_with("--") && word.find('=') == std::string::npos && takes_value(word.substr(2));
        // Letters, up to one that takes the rest of the word or, at its end, the next word.
        for (std::size_t at = 1; at < word.size() && !word.starts_with("--"); ++at) {
            if (takes_value({'-', word[at]})) {
                with_next = at + 1 == word.size();
                break;
            }
        }
        i += with_next ? 2 : 1;
    }
    return arguments.size();
}

int run_command(const Command& command, const std::vector<std::string>& arguments) {
    const po::variables_map values = parse(command, arguments);
    if (values.count("help") != 0) {
        std::cout << help_text(command);
        return 0;
    }
    return command.run(values);
}

Error unknown_command(const std::string& name) {
    const auto near = near_commands(name);
    return usage_error("'" + escape_line(name) + "' is not a command",
                       near.empty() ? "see: reprise --help" : "did you mean: " + join(near, ", "));
}

int dispatch(const std::vector<std::string>& arguments) {
    std::size_t i = 0;
    int level = 0;
    for (; i < arguments.size() && arguments[i].starts_with("-"); ++i) {
        const auto& word = arguments[i];
        if (word == "-h" || word == "--help") {
            std::cout << overview_text();
            return 0;
        }
        if (word == "-V" || word == "--version") {
            std::cout << version_text();
            return 0;
        }
        if (word == "-q" || word == "--quiet") {
            level = -1;
        } else if (word == "-v" || word == "--verbose") {
            ++level;
        } else {
            throw usage_error("unknown option '" + escape_line(word) + "' before a command", "see: reprise --help");
        }
    }
    set_verbosity(level);
    if (i == arguments.size()) {
        std::cerr << overview_text();
        return static_cast<int>(ExitCode::usage);
    }
    if (arguments[i] == "help") {
        if (i + 1 == arguments.size()) {
            std::cout << overview_text();
            return 0;
        }
        const Command* topic = find_command(arguments[i + 1]);
        if (topic == nullptr) {
            throw unknown_command(arguments[i + 1]);
        }
        std::cout << help_text(*topic);
        return 0;
    }
    const Command* command = find_command(arguments[i]);
    if (command == nullptr) {
        throw unknown_command(arguments[i]);
    }
    return run_command(*command, {arguments.begin() + static_cast<std::ptrdiff_t>(i) + 1, arguments.end()});
}

int complain(ExitCode code, const std::string& message) {
    std::cout.flush();
    std::cerr << "reprise: " << message << '\n';
    return static_cast<int>(code);
}

/// What a library threw; limits and full disks have better words.
int complain_of(int error, const std::string& what) {
    const std::string todo = remedy(error, {});
    return complain(ExitCode::machine, todo.empty() ? what : reason(error) + "\n  " + todo);
}

}  // namespace

Registration::Registration(Command command) { registry().push_back(std::move(command)); }

std::vector<const Command*> all_commands() {
    std::vector<const Command*> out;
    for (const auto& command : registry()) {
        out.push_back(&command);
    }
    std::sort(out.begin(), out.end(), [](const Command* a, const Command* b) {
        return std::tie(a->group, a->name) < std::tie(b->group, b->name);
    });
    return out;
}

const Command* find_command(std::string_view name) {
    for (const auto& command : registry()) {
        if (command.name == name) {
            return &command;
        }
    }
    return nullptr;
}

std::vector<std::string> near_commands(std::string_view typed) {
    std::vector<std::string> names;
    for (const Command* command : all_commands()) {
        if (command->group != Group::hidden) {
            names.push_back(command->name);
        }
    }
    return nearest_names(typed, names);
}

po::options_description options_of(const Command& command) {
    po::options_description all;
    if (command.options != nullptr) {
        command.options(all);
    }
    if (all.find_nothrow("json", false) != nullptr && all.find_nothrow("force", false) == nullptr) {
        const bool output = all.find_nothrow("output", false) != nullptr;
        all.add_options()("force,f",
                          output ? "overwrite files that exist" : "overwrite the file of --json if it exists");
    }
    all.add_options()("help,h", "show this help");
    all.add_options()("quiet,q", "print results and errors only");
    all.add_options()("verbose,v", "print more");
    return all;
}

po::variables_map parse(const Command& command, const std::vector<std::string>& given) {
    po::options_description everything = options_of(command);
    std::vector<std::string> arguments = given;
    if (const std::size_t end = command.runs_program ? first_word(everything, given) : given.size();
        end < given.size() && given[end] != "--") {
        arguments.insert(arguments.begin() + static_cast<std::ptrdiff_t>(end), "--");
    }
    everything.add(positional_options(command));
    po::positional_options_description positions;
    for (const auto& positional : command.positionals) {
        positions.add(positional.name.c_str(), positional.most);
    }
    po::variables_map values;
    int louder = 0;
    try {
        namespace style = po::command_line_style;
        auto parsed = po::command_line_parser(with_given_values(with_json_target(arguments)))
                          .options(everything)
                          .positional(positions)
                          .style(style::unix_style & ~style::allow_guessing)
                          .run();
        if (std::any_of(parsed.options.begin(), parsed.options.end(),
                        [](const auto& option) { return option.string_key == "help"; })) {
            values.emplace("help", po::variable_value(boost::any(), false));
            return values;
        }
        std::erase_if(parsed.options, [&](const auto& option) {
            louder += option.string_key == "verbose" ? 1 : 0;
            return option.string_key == "verbose";
        });
        po::store(parsed, values);
        po::notify(values);
    } catch (const po::too_many_positional_options_error&) {
        const bool json = std::find(arguments.begin(), arguments.end(), "--json") != arguments.end();
        throw usage_error(command.name + ": too many arguments, expected: " + usage_line(command),
                          json ? "--json alone prints to standard output; to write a file: --json=FILE"
                               : "see: reprise " + command.name + " --help");
    } catch (const po::error& error) {
        throw wrong_use(command, error.what());
    }
    check_positionals(command, values);
    check_choices(command, values);
    check_named_files(command, values);
    check_json_option(command, values);
    if (values.count("quiet") != 0) {
        set_verbosity(-1);
    } else if (louder > 0) {
        set_verbosity(std::max(0, verbosity()) + louder);
    }
    return values;
}

int verbosity() { return verbosity_level(); }
void set_verbosity(int level) { verbosity_level() = level; }

int run_main(const std::vector<std::string>& arguments) {
    try {
        take_limits();
        const int code = dispatch(arguments);
        std::cout.flush();
        if (!std::cout) {
            return complain(ExitCode::machine, "cannot write to standard output");
        }
        return code;
    } catch (const Error& error) {
        return complain(error.code(), error.what());
    } catch (const std::bad_alloc&) {
        return complain(ExitCode::machine, "out of memory");
    } catch (const std::system_error& error) {
        return complain_of(error.code().value(), error.what());
    } catch (const boost::system::system_error& error) {
        return complain_of(error.code().value(), error.what());
    } catch (const std::exception& error) {
        return complain(ExitCode::machine, std::string("internal error, please report: ") + error.what());
    }
}

}  // namespace reprise::cli
