// SPDX-License-Identifier: MIT
// The completion scripts for bash, zsh and fish, made from the registry.
#include <algorithm>
#include <sstream>

#include "cli/help.h"
#include "cli/options.h"

namespace reprise::cli {

namespace {

std::vector<const Command*> visible_commands() {
    std::vector<const Command*> out = all_commands();
    std::erase_if(out, [](const Command* command) { return command->group == Group::hidden; });
    return out;
}

std::string words_of(const std::vector<std::string>& words) {
    std::string out;
    for (const auto& word : words) {
        out += (out.empty() ? "" : " ") + word;
    }
    return out;
}

std::string command_names() {
    std::vector<std::string> names = {"help"};
    for (const Command* command : visible_commands()) {
        names.push_back(command->name);
    }
    return words_of(names);
}

/// The values an argument without a dash takes; empty: any, such as a file.
std::vector<std::string> values_of(const Command& command, const Positional& positional) {
    const auto found = command.choices.find(positional.name);
    return found == command.choices.end() ? std::vector<std::string>{} : found->second;
}

/// Puts a backslash before each of `special`.
std::string escaped(std::string_view text, std::string_view special) {
    std::string out;
    for (const char c : text) {
        if (special.find(c) != std::string_view::npos) {
            out += '\\';
        }
        out += c;
    }
    return out;
}

/// In single quotes for zsh, which needs those of the text outside of them.
std::string zsh_quoted(std::string_view text) {
    std::string out = "'";
    for (const char c : text) {
        out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    }
    return out + "'";
}

std::string fish_quoted(std::string_view text) { return "'" + escaped(text, "'\\") + "'"; }

/// What completes a value: its choices, or files.
std::string zsh_action(const std::vector<std::string>& choices) {
    return choices.empty() ? "_files" : "(" + words_of(choices) + ")";
}

/// One line for _arguments.
std::string zsh_option(const DescribedOption& option) {
    const std::string text = "[" + escaped(option.text, "[]\\:") + "]";
    const std::string value = option.value.empty() ? ""
                                                   : (option.joined ? "::" : ":") + escaped(option.value, "\\:") + ":" +
                                                         zsh_action(option.choices);
    const std::string repeats = option.repeats ? "*" : "";
    const std::string assign = option.value.empty() ? "" : option.joined ? "=-" : "=";
    if (option.short_name.empty()) {
        return zsh_quoted(repeats + option.long_name + assign + text + value);
    }
    const std::string excludes = option.repeats ? "*" : "(" + option.short_name + " " + option.long_name + ")";
    return zsh_quoted(excludes) + "{" + option.short_name + (option.value.empty() ? "" : "+") + "," + option.long_name +
           assign + "}" + zsh_quoted(text + value);
}

std::string zsh_positional(const Command& command, const Positional& positional) {
    const bool is_command = positional.label == "CMD";
    return zsh_quoted((positional.most == 1 ? ":"
                       : is_command         ? "*::"
                                            : "*:") +
                      positional.label + ":" + (is_command ? "_normal" : zsh_action(values_of(command, positional))));
}

std::string fish_option(const Command& command, const DescribedOption& option) {
    std::string out = "complete -c reprise -n '__reprise_in " + command.name + "'";
    if (!option.short_name.empty()) {
        out += " -s " + option.short_name.substr(1);
    }
    out += " -l " + option.long_name.substr(2);
    if (!option.choices.empty()) {
        out += " -x -a '" + words_of(option.choices) + "'";
    } else if (!option.value.empty()) {
        out += option.joined ? " -F" : " -r -F";
    }
    return out + " -d " + fish_quoted(option.text) + "\n";
}

/// The branches of the bash script's case statements.
struct BashCases {
    std::ostringstream options;    ///< per command: what may follow a dash
    std::ostringstream values;     ///< per command and option: what its value may be
    std::ostringstream arguments;  ///< per command: what an argument without a dash may be

    void add(const Command& command) {
        std::vector<std::string> words;
        for (const auto& option : described_options(command)) {
            words.push_back(option.long_name);
            if (!option.short_name.empty()) {
                words.push_back(option.short_name);
            }
            if (option.value.empty()) {
                continue;
            }
            values << "        " << command.name << ":" << option.long_name;
            if (!option.short_name.empty()) {
                values << "|" << command.name << ":" << option.short_name;
            }
            // An empty reply makes bash complete file names. A value that may be missing is one only after an =.
            values << ") reply='" << words_of(option.choices) << "'; value=" << (option.joined ? "$joined" : "1")
                   << " ;;\n";
        }
        options << "        " << command.name << ") reply='" << words_of(words) << "' ;;\n";
        if (!command.positionals.empty() && !values_of(command, command.positionals[0]).empty()) {
            arguments << "        " << command.name << ") reply='"
                      << words_of(values_of(command, command.positionals[0])) << "' ;;\n";
        }
    }
};

}  // namespace

std::string bash_completion_script() {
    BashCases cases;
    for (const Command* command : visible_commands()) {
        cases.add(*command);
    }
    std::ostringstream out;
    out << "# bash completion for reprise; made by `reprise completion bash`.\n"
        << "_reprise() {\n"
        << "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
        << "    local command='' reply='' value='' joined='' i\n"
        << "    COMPREPLY=()\n"
        << "    # --option=value arrives as three words.\n"
        << "    if [[ $cur == '=' ]]; then cur='' joined=1\n"
        << "    elif [[ $prev == '=' ]]; then prev=${COMP_WORDS[COMP_CWORD-2]} joined=1; fi\n"
        << "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
        << "        if [[ ${COMP_WORDS[i]} == -- ]]; then return; fi\n"
        << "        if [[ -z $command && ${COMP_WORDS[i]} != -* ]]; then command=${COMP_WORDS[i]}; fi\n"
        << "    done\n"
        << "    if [[ -z $command || $command == help ]]; then\n"
        << "        reply='" << command_names() << "'\n"
        << "        if [[ $cur == -* ]]; then reply='--help --version --quiet --verbose'; fi\n"
        << "        mapfile -t COMPREPLY < <(compgen -W \"$reply\" -- \"$cur\")\n"
        << "        return\n"
        << "    fi\n"
        << "    case $command:$prev in\n"
        << cases.values.str() << "    esac\n"
        << "    if [[ -z $value && $cur == -* ]]; then\n"
        << "        case $command in\n"
        << cases.options.str() << "        esac\n"
        << "    elif [[ -z $value ]]; then\n"
        << "        case $command in\n"
        << cases.arguments.str() << "        esac\n"
        << "    fi\n"
        << "    if [[ -n $reply ]]; then\n"
        << "        mapfile -t COMPREPLY < <(compgen -W \"$reply\" -- \"$cur\")\n"
        << "    fi\n"
        << "}\n"
        << "complete -o bashdefault -o default -F _reprise reprise\n";
    return out.str();
}

std::string zsh_completion_script() {
    std::ostringstream out;
    out << "#compdef reprise\n# zsh completion for reprise; made by `reprise completion zsh`.\n"
        << "_reprise() {\n"
        << "    local curcontext=$curcontext state line\n"
        << "    local -a commands\n"
        << "    commands=(\n        'help:explain a command'\n";
    for (const Command* command : visible_commands()) {
        out << "        " << zsh_quoted(command->name + ":" + escaped(command->summary, ":\\")) << "\n";
    }
    out << "    )\n"
        << "    _arguments -C '(- *)'{-h,--help}'[show help]' '(- *)'{-V,--version}'[print the version]' \\\n"
        << "        '(-q --quiet)'{-q,--quiet}'[print results and errors only]' '*'{-v,--verbose}'[say more]' \\\n"
        << "        '1:command:->command' '*::argument:->argument'\n"
        << "    case $state in\n"
        << "        command) _describe command commands ;;\n"
        << "        argument)\n"
        << "            case $words[1] in\n"
        << "                help) _describe command commands ;;\n";
    for (const Command* command : visible_commands()) {
        out << "                " << command->name << ")\n                    _arguments -s -S";
        for (const auto& option : described_options(*command)) {
            out << " \\\n                        " << zsh_option(option);
        }
        for (const auto& positional : command->positionals) {
            out << " \\\n                        " << zsh_positional(*command, positional);
        }
        out << "\n                    ;;\n";
    }
    out << "            esac\n"
        << "            ;;\n"
        << "    esac\n"
        << "}\n"
        << "# Autoloaded from fpath, or sourced.\n"
        << "if [[ $funcstack[1] == _reprise ]]; then _reprise \"$@\"; else compdef _reprise reprise; fi\n";
    return out.str();
}

std::string fish_completion_script() {
    std::ostringstream out;
    out << "# fish completion for reprise; made by `reprise completion fish`.\n"
        << "# Whether the command typed is $argv[1]; without an argument: whether none is typed yet.\n"
        << "function __reprise_in\n"
        << "    set -l words (commandline -opc)\n"
        << "    for word in $words[2..-1]\n"
        << "        string match -q -- '-*' $word; and continue\n"
        << "        test \"$word\" = \"$argv[1]\"\n"
        << "        return\n"
        << "    end\n"
        << "    test -z \"$argv[1]\"\n"
        << "end\n"
        << "complete -c reprise -n __reprise_in -f -a help -d 'explain a command'\n"
        << "complete -c reprise -n __reprise_in -s h -l help -d 'show help'\n"
        << "complete -c reprise -n __reprise_in -s V -l version -d 'print the version'\n"
        << "complete -c reprise -n __reprise_in -s q -l quiet -d 'print results and errors only'\n"
        << "complete -c reprise -n __reprise_in -s v -l verbose -d 'say more'\n"
        << "complete -c reprise -n '__reprise_in help' -f -a '" << command_names() << "'\n";
    for (const Command* command : visible_commands()) {
        out << "complete -c reprise -n __reprise_in -f -a " << command->name << " -d " << fish_quoted(command->summary)
            << "\n";
        for (const auto& option : described_options(*command)) {
            out << fish_option(*command, option);
        }
        if (!command->positionals.empty() && !values_of(*command, command->positionals[0]).empty()) {
            out << "complete -c reprise -n '__reprise_in " << command->name << "' -f -a '"
                << words_of(values_of(*command, command->positionals[0])) << "'\n";
        }
    }
    return out.str();
}

}  // namespace reprise::cli
