// SPDX-License-Identifier: MIT
// What a subcommand is, and the registry of them. Each cli/cmd_<name>.cpp
// describes itself once; help, parsing, completion and man pages come from that.
#pragma once

#include <boost/program_options/options_description.hpp>
#include <boost/program_options/value_semantic.hpp>
#include <boost/program_options/variables_map.hpp>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::cli {

namespace po = boost::program_options;

/// Where `reprise --help` lists a command.
enum class Group { record, look, replay, judge, setup, hidden };

struct Example {
    std::string line;  ///< the command as typed, starting with "reprise"
    std::string does;  ///< what it shows, in a few words
};

/// An argument without a dash. The value arrives in the variables_map under
/// `name`: a std::string where most == 1, else a std::vector<std::string>.
struct Positional {
    std::string name;   ///< key in the variables_map; must differ from every option
    std::string label;  ///< in help, e.g. "LOG"
    int least = 1;
    int most = 1;  ///< -1: as many as given; only for the last positional
};

struct Command {
    std::string name;
    Group group = Group::hidden;
    std::string summary;            ///< one line, no full stop
    std::string help;               ///< paragraphs separated by an empty line
    std::vector<Example> examples;  ///< at least one
    /// Adds the options (a dozen at most; replay a few more). --help, -q and -v are added for all.
    void (*options)(po::options_description&) = nullptr;
    std::vector<Positional> positionals = {};
    /// The positionals are another program's command line: options end at the first word that is not one.
    bool runs_program = false;
    /// Option name -> the only values it takes. Checked, shown and completed.
    std::map<std::string, std::vector<std::string>> choices = {};
    /// Returns an ExitCode as int; throws Error on failure.
    int (*run)(const po::variables_map&) = nullptr;
};

/// `const Registration registration{{.name = "info", ...}};` at namespace scope
/// of cmd_info.cpp, in an anonymous namespace.
class Registration {
public:
    explicit Registration(Command command);
};

/// All commands, by group and then by name. Hidden ones come last.
std::vector<const Command*> all_commands();
/// nullptr if there is none of that name.
const Command* find_command(std::string_view name);
/// Up to three visible commands whose name is near `typed`, nearest first.
std::vector<std::string> near_commands(std::string_view typed);

/// The command's options together with those every command has.
po::options_description options_of(const Command& command);
/// Parses and checks `arguments` (without the command's name). Throws Error
/// (usage). Skips checks if --help is among them.
po::variables_map parse(const Command& command, const std::vector<std::string>& arguments);

/// -1 with -q, 0, or the number of -v.
int verbosity();
void set_verbosity(int level);
inline bool quiet() { return verbosity() < 0; }

/// The whole of main, testable: arguments without argv[0].
int run_main(const std::vector<std::string>& arguments);

}  // namespace reprise::cli
