// SPDX-License-Identifier: MIT
// Declared options read back.
#include "cli/options.h"

#include <boost/program_options/cmdline.hpp>

namespace reprise::cli {

std::string DescribedOption::spelling() const {
    std::string out = short_name.empty() ? "    " : short_name + ", ";
    out += long_name;
    if (!value.empty()) {
        out += joined ? "[=" + value + "]" : ' ' + value;
    }
    return out;
}

std::vector<DescribedOption> described_options(const Command& command) {
    const po::options_description all = options_of(command);
    constexpr std::size_t kCommon = 3;
    std::vector<DescribedOption> out;
    for (const auto& option : all.options()) {
        DescribedOption described;
        const std::string short_name = option->canonical_display_name(po::command_line_style::allow_dash_for_short);
        if (short_name.size() == 2 && short_name[0] == '-') {
            described.short_name = short_name;
        }
        described.long_name = "--" + option->long_name();
        described.text = option->description();
        described.repeats = option->semantic()->is_composing() || described.long_name == "--verbose";
        if (option->semantic()->max_tokens() > 0) {
            // "N (=4)" where there is a default.
            const std::string parameter = option->format_parameter();
            const std::size_t default_at = parameter.find(" (=");
            described.value = parameter.substr(0, default_at);
            described.joined = option->semantic()->min_tokens() == 0;
            if (const auto choices = command.choices.find(option->long_name()); choices != command.choices.end()) {
                described.choices = choices->second;
                std::string list;
                for (const auto& choice : choices->second) {
                    list += (list.empty() ? "" : ", ") + choice;
                }
                described.text += ": " + list;
            }
            if (default_at != std::string::npos) {
                described.text +=
                    " [default " + parameter.substr(default_at + 3, parameter.size() - default_at - 4) + "]";
            }
        }
        out.push_back(std::move(described));
    }
    for (std::size_t i = out.size() - kCommon; i < out.size(); ++i) {
        out[i].common = true;
    }
    return out;
}

}  // namespace reprise::cli
