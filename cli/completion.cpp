// SPDX-License-Identifier: MIT
// The bash completion script, made from the registry.
#include <sstream>

#include "cli/help.h"
#include "cli/options.h"

namespace reprise::cli {

namespace {

std::string words_of(const std::vector<std::string>& words) {
    std::string out;
    for (const auto& word : words) {
        out += (out.empty() ? "" : " ") + word;
    }
    return out;
}

}  // namespace

std::string bash_completion_script() {
    std::vector<std::string> names = {"help"};
    std::ostringstream options;  // per command: what may follow a dash
    std::ostringstream values;   // per command and option: what its value may be
    for (const Command* command : all_commands()) {
        if (command->group == Group::hidden) {
            continue;
        }
        names.push_back(command->name);
        std::vector<std::string> words;
        for (const auto& option : described_options(*command)) {
            words.push_back(option.long_name);
            if (!option.short_name.empty()) {
                words.push_back(option.short_name);
            }
            if (option.value.empty()) {
                continue;
            }
            values << "        " << command->name << ":" << option.long_name;
            if (!option.short_name.empty()) {
                values << "|" << command->name << ":" << option.short_name;
            }
            // An empty reply makes bash complete file names.
            values << ") reply='" << words_of(option.choices) << "'; value=1 ;;\n";
        }
        options << "        " << command->name << ") reply='" << words_of(words) << "' ;;\n";
    }

    std::ostringstream out;
    out << "# bash completion for reprise; made by `reprise completion bash`.\n"
        << "_reprise() {\n"
        << "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
        << "    local command='' reply='' value='' i\n"
        << "    COMPREPLY=()\n"
        << "    # --option=value arrives as three words.\n"
        << "    if [[ $cur == '=' ]]; then cur=''\n"
        << "    elif [[ $prev == '=' ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
        << "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
        << "        if [[ ${COMP_WORDS[i]} == -- ]]; then return; fi\n"
        << "        if [[ -z $command && ${COMP_WORDS[i]} != -* ]]; then "
           "command=${COMP_WORDS[i]}; fi\n"
        << "    done\n"
        << "    if [[ -z $command || $command == help ]]; then\n"
        << "        reply='" << words_of(names) << "'\n"
        << "        if [[ $cur == -* ]]; then reply='--help --version --quiet --verbose'; fi\n"
        << "        mapfile -t COMPREPLY < <(compgen -W \"$reply\" -- \"$cur\")\n"
        << "        return\n"
        << "    fi\n"
        << "    case $command:$prev in\n"
        << values.str() << "    esac\n"
        << "    if [[ -z $value && $cur == -* ]]; then\n"
        << "        case $command in\n"
        << options.str() << "        esac\n"
        << "    elif [[ -z $value && $command == completion ]]; then reply='bash'\n"
        << "    fi\n"
        << "    if [[ -n $reply ]]; then\n"
        << "        mapfile -t COMPREPLY < <(compgen -W \"$reply\" -- \"$cur\")\n"
        << "    fi\n"
        << "}\n"
        << "complete -o bashdefault -o default -F _reprise reprise\n";
    return out.str();
}

}  // namespace reprise::cli
