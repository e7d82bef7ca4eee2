// SPDX-License-Identifier: MIT
// Help texts and man pages, made from the registry so that they cannot go stale.
#include "cli/help.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <sstream>
#include <utility>

#include "cli/options.h"

#if __has_include("formats/oplog/oplog.h")
#include "formats/oplog/oplog.h"
#endif

namespace reprise {

// Used if the op log does not define its version: qualified lookup finds a direct
// member of the namespace before one from a using-directive.
namespace fallback {
inline constexpr int kFormatVersion = 0;
}  // namespace fallback
using namespace fallback;  // NOLINT(google-build-using-namespace)

namespace cli {

namespace {

constexpr std::size_t kWidth = 80;

struct GroupTitle {
    Group group;
    const char* title;
};
constexpr std::array kGroups = {
    GroupTitle{Group::record, "Record"}, GroupTitle{Group::look, "Inspect"}, GroupTitle{Group::replay, "Replay"},
    GroupTitle{Group::judge, "Compare"}, GroupTitle{Group::setup, "Other"},
};

constexpr const char* kStory =
    "reprise records the I/O of a job once and replays it on any other storage,\n"
    "without its accelerators or its data.\n";

const std::vector<Example>& first_steps() {
    static const std::vector<Example> steps = {
        {"reprise import job.strace -o job.oplog", "turn a recording into an op log"},
        {"reprise info job.oplog", "show what it holds and what is missing"},
        {"reprise prepare job.oplog --root /mnt/new", "create the files it needs"},
        {"reprise replay job.oplog --root /mnt/new -o run.oplog", "replay it there"},
        {"reprise compare job.oplog run.oplog", "recording and replay side by side"},
    };
    return steps;
}

constexpr const char* kExitCodes =
    "0 success, 1 a check failed, 2 usage error, 3 bad input, 4 refused by the machine (permission, kernel, space)";

/// Breaks at blanks so that lines, `indent` included, stay within kWidth.
/// The first line starts in column `column` and gets no indent.
std::string wrap(std::string_view text, std::size_t indent, std::size_t column) {
    std::string out;
    std::istringstream words{std::string(text)};
    std::string word;
    bool first = true;
    while (words >> word) {
        if (!first && column + 1 + word.size() > kWidth) {
            out += '\n' + std::string(indent, ' ');
            column = indent;
        } else if (!first) {
            out += ' ';
            ++column;
        }
        out += word;
        column += word.size();
        first = false;
    }
    return out;
}

std::vector<std::string> paragraphs(const std::string& text) {
    std::vector<std::string> out;
    std::size_t from = 0;
    while (from < text.size()) {
        const std::size_t to = text.find("\n\n", from);
        out.push_back(text.substr(from, to == std::string::npos ? to : to - from));
        from = to == std::string::npos ? text.size() : text.find_first_not_of('\n', to);
    }
    return out;
}

/// Two columns: the left one as wide as needed up to a limit.
std::string two_columns(const std::vector<std::pair<std::string, std::string>>& rows) {
    constexpr std::size_t kWidest = 28;
    std::size_t left = 0;
    for (const auto& [name, text] : rows) {
        left = std::max(left, std::min(name.size(), kWidest));
    }
    std::string out;
    for (const auto& [name, text] : rows) {
        const std::size_t indent = 2 + left + 2;
        out += "  " + name;
        if (name.size() > left) {
            out += '\n' + std::string(indent, ' ');
        } else {
            out += std::string(left - name.size() + 2, ' ');
        }
        out += wrap(text, indent, indent) + '\n';
    }
    return out;
}

std::string example_lines(const std::vector<Example>& examples) {
    std::string out;
    for (const auto& example : examples) {
        out += "  " + example.line + "\n      " + wrap(example.does, 6, 6) + '\n';
    }
    return out;
}

/// Text for troff: backslashes and leading dots are commands there.
std::string troff(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '\\') {
            out += "\\e";
        } else if (c == '-') {
            out += "\\-";
        } else {
            out += c;
        }
        if (c == '\n') {
            out += "\\&";
        }
    }
    return "\\&" + out;
}

void man_head(std::ostream& out, const std::string& name, const std::string& summary) {
    std::string title = name;
    std::transform(title.begin(), title.end(), title.begin(), [](unsigned char c) { return std::toupper(c); });
    out << ".\\\" Made by `reprise __man` from the command registry; do not edit.\n"
        << ".TH " << troff(title).substr(2) << " 1 \"\" \"reprise " << REPRISE_VERSION << "\" \"User Commands\"\n"
        << ".SH NAME\n"
        << troff(name).substr(2) << " \\- " << troff(summary) << "\n";
}

void man_examples(std::ostream& out, const std::vector<Example>& examples) {
    for (const auto& example : examples) {
        out << ".TP\n.I " << troff(example.line) << '\n' << troff(example.does) << '\n';
    }
}

}  // namespace

std::string_view tool_version() { return REPRISE_VERSION; }

std::string version_text() {
    std::ostringstream out;
    out << "reprise " << REPRISE_VERSION << "\nop log format " << +reprise::kFormatVersion << '\n';
    return out.str();
}

std::string overview_text() {
    std::string out = "usage: reprise [-q|-v] COMMAND [OPTION...] [ARGUMENT...]\n\n";
    out += kStory;
    for (const auto& [group, title] : kGroups) {
        std::vector<std::pair<std::string, std::string>> rows;
        for (const Command* command : all_commands()) {
            if (command->group == group) {
                rows.emplace_back(command->name, command->summary);
            }
        }
        if (!rows.empty()) {
            out += '\n' + std::string(title) + '\n' + two_columns(rows);
        }
    }
    out += "\nTypical use\n";
    out += example_lines(first_steps());
    out += "\nreprise COMMAND --help explains a command. Exit codes:\n" + wrap(kExitCodes, 0, 0) + ".\n";
    return out;
}

std::string usage_line(const Command& command) {
    std::string out = "reprise " + command.name + " [OPTION...]";
    for (const auto& positional : command.positionals) {
        std::string word = positional.label + (positional.most == 1 ? "" : "...");
        if (positional.least == 0) {
            word = "[" + word + "]";
        }
        out += ' ' + word;
    }
    return out;
}

std::string help_text(const Command& command) {
    std::string out = "usage: " + usage_line(command) + "\n\n";
    for (const auto& paragraph : paragraphs(command.help)) {
        out += wrap(paragraph, 0, 0) + "\n\n";
    }
    std::vector<std::pair<std::string, std::string>> rows;
    for (const auto& option : described_options(command)) {
        rows.emplace_back(option.spelling(), option.text);
    }
    out += "Options\n" + two_columns(rows);
    out += std::string("\n") + (command.examples.size() == 1 ? "Example\n" : "Examples\n");
    out += example_lines(command.examples);
    return out;
}

std::string man_page() {
    std::ostringstream out;
    man_head(out, "reprise", "record the I/O of a job once, replay it anywhere");
    out << ".SH SYNOPSIS\n.B reprise\n[\\-q|\\-v]\n.I COMMAND\n[\\fIOPTION\\fR...] [\\fIARGUMENT\\fR...]\n"
        << ".SH DESCRIPTION\n"
        << troff(kStory) << "\n.SH COMMANDS\n";
    for (const auto& [group, title] : kGroups) {
        out << ".SS " << troff(title) << '\n';
        for (const Command* command : all_commands()) {
            if (command->group == group) {
                out << ".TP\n.BR reprise\\-" << troff(command->name).substr(2) << " (1)\n"
                    << troff(command->summary) << '\n';
            }
        }
    }
    out << ".SH OPTIONS OF EVERY COMMAND\n";
    for (const auto& option : described_options(Command{})) {
        out << ".TP\n.B " << troff(option.spelling()) << '\n' << troff(option.text) << '\n';
    }
    out << ".SH EXAMPLES\n";
    man_examples(out, first_steps());
    out << ".SH EXIT STATUS\n" << troff(kExitCodes) << ".\n";
    return out.str();
}

std::string man_page(const Command& command) {
    std::ostringstream out;
    man_head(out, "reprise-" + command.name, command.summary);
    out << ".SH SYNOPSIS\n.B reprise " << troff(command.name) << "\n[\\fIOPTION\\fR...]"
        << troff(usage_line(command).substr(("reprise " + command.name + " [OPTION...]").size()))
        << "\n.SH DESCRIPTION\n";
    for (const auto& paragraph : paragraphs(command.help)) {
        out << troff(paragraph) << "\n.PP\n";
    }
    out << ".SH OPTIONS\n";
    for (const auto& option : described_options(command)) {
        out << ".TP\n.B " << troff(option.spelling()) << '\n' << troff(option.text) << '\n';
    }
    out << ".SH EXAMPLES\n";
    man_examples(out, command.examples);
    out << ".SH EXIT STATUS\n" << troff(kExitCodes) << ".\n.SH SEE ALSO\n.BR reprise (1)\n";
    return out.str();
}

}  // namespace cli
}  // namespace reprise
