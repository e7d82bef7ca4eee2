// SPDX-License-Identifier: MIT
#include "experiment/suite.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <functional>
#include <map>
#include <set>

#include "formats/support/error.h"
#include "formats/support/limits.h"
#include "formats/support/nearest.h"

namespace reprise {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSections = "[suite], [job NAME] or [target NAME]";

std::string trimmed(const std::string& text) {
    constexpr const char* kBlanks = " \t\r";
    const size_t begin = text.find_first_not_of(kBlanks);
    return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

/// Names become folders and columns.
bool good_name(const std::string& name) {
    return !name.empty() && name != "." && name != ".." && std::all_of(name.begin(), name.end(), [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
    });
}

class SuiteReader {
public:
    explicit SuiteReader(const fs::path& file) : file_(file), in_(file) {
        if (!in_) {
            throw bad_input(file.string(), "cannot be read: " + reason(errno),
                            "name a suite; see: reprise regress --help");
        }
    }

    Suite read() {
        for (std::string line; std::getline(in_, line);) {
            ++number_;
            const std::string text = trimmed(line);
            if (text.empty() || text[0] == '#' || text[0] == ';') {
                continue;
            }
            text[0] == '[' ? section(text) : key(text);
        }
        return std::move(suite_);
    }

private:
    using Take = std::function<void(const std::string&)>;

    [[noreturn]] void fail(const std::string& what, const std::string& todo) const {
        throw bad_input(at(file_.string(), number_), what, todo);
    }

    std::string named(const std::string& kind, const std::string& name) {
        if (!good_name(name)) {
            fail("'" + escape_line(name) + "' is not a name",
                 "letters, digits, '-', '_' and '.', for example [" + kind + " resnet]");
        }
        if (!names_.insert(kind + " " + name).second) {
            fail("a second [" + kind + " " + name + "]", "give each " + kind + " another name");
        }
        return name;
    }

    void section(const std::string& text) {
        if (text.back() != ']') {
            fail("'" + escape_line(text) + "' has no ]", std::string("sections are ") + kSections);
        }
        const std::string inside = trimmed(text.substr(1, text.size() - 2));
        const size_t blank = inside.find_first_of(" \t");
        const std::string kind = inside.substr(0, blank);
        const std::string name = blank == std::string::npos ? "" : trimmed(inside.substr(blank));
        keys_.clear();
        seen_.clear();
        if (kind == "job") {
            SuiteJob& job = suite_.jobs.emplace_back();
            job.name = named(kind, name);
            keys_ = {{"log", [&job, this](const std::string& v) { job.log = file_.parent_path() / v; }},
                     {"prepare", [&job, this](const std::string& v) { job.prepare = words(v); }},
                     {"replay", [&job, this](const std::string& v) { job.replay = words(v); }}};
        } else if (kind == "target") {
            SuiteTarget& target = suite_.targets.emplace_back();
            target.name = named(kind, name);
            keys_ = {{"folder", [&target](const std::string& v) { target.folder = v; }},
                     {"remount", [&target](const std::string& v) { target.remount = v; }},
                     {"make", [&target](const std::string& v) { target.make = v; }},
                     {"mount-options", [&target](const std::string& v) { target.mount_options = v; }},
                     {"size", [&target, this](const std::string& v) { target.size = bytes(v); }}};
        } else if (kind == "suite" && name.empty()) {
            keys_ = {{"runs", [this](const std::string& v) { suite_.runs = number(v, 1); }},
                     {"warm-up", [this](const std::string& v) { suite_.warm_up = number(v, 0); }},
                     {"seed", [this](const std::string& v) { suite_.seed = number(v, 0); }},
                     {"cuts", [this](const std::string& v) { suite_.cuts = number(v, 1); }}};
        } else {
            fail("'[" + escape_line(inside) + "]' is no section" +
                     did_you_mean(nearest_names(kind, {"suite", "job", "target"})),
                 std::string("sections are ") + kSections);
        }
    }

    void key(const std::string& text) {
        const size_t equals = text.find('=');
        if (equals == std::string::npos) {
            fail("'" + escape_line(text) + "' is neither KEY = VALUE nor a section", "for example log = job.oplog");
        }
        const std::string name = trimmed(text.substr(0, equals)), value = trimmed(text.substr(equals + 1));
        if (keys_.empty()) {
            fail("'" + escape_line(name) + "' is in no section", std::string("begin with ") + kSections);
        }
        const auto found = keys_.find(name);
        if (found == keys_.end()) {
            std::vector<std::string> known;
            for (const auto& [one, take] : keys_) {
                known.push_back(one);
            }
            fail("'" + escape_line(name) + "' is not known here" + did_you_mean(nearest_names(name, known)),
                 "here are: " + join(known, ", "));
        }
        if (value.empty()) {
            fail(name + " has no value", "leave out the line, or give one");
        }
        if (!seen_.insert(name).second) {
            fail("a second " + name, "leave out one of them");
        }
        found->second(value);
    }

    std::vector<std::string> words(const std::string& text) const {
        return split_words(text, at(file_.string(), number_));
    }

    size_t number(const std::string& text, size_t least) const {
        constexpr size_t kMost = 10'000;
        size_t value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error != std::errc() || end != text.data() + text.size() || value < least || value > kMost) {
            fail("'" + escape_line(text) + "' is not a number from " + std::to_string(least) + " to " +
                     std::to_string(kMost),
                 "for example runs = 10");
        }
        return value;
    }

    uint64_t bytes(const std::string& text) const {
        uint64_t value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        const std::string unit(end, static_cast<size_t>(text.data() + text.size() - end));
        const std::map<std::string, unsigned> shifts{{"", 0}, {"K", 10}, {"M", 20}, {"G", 30}};
        const auto shift = shifts.find(unit);
        if (error != std::errc() || shift == shifts.end() || value == 0 || value > (UINT64_MAX >> 40)) {
            fail("'" + escape_line(text) + "' is not a size", "for example size = 1G");
        }
        return value << shift->second;
    }

    fs::path file_;
    std::ifstream in_;
    size_t number_ = 0;
    Suite suite_;
    std::map<std::string, Take> keys_;  // of the section
    std::set<std::string> names_, seen_;
};

}  // namespace

std::vector<std::string> split_words(const std::string& text, const std::string& where) {
    std::vector<std::string> out;
    bool inside = false;
    char quote = '\0';
    for (const char c : text) {
        if (quote != '\0' ? c == quote : c == '\'' || c == '"') {
            quote = quote != '\0' ? '\0' : c;
            if (!inside) {
                out.emplace_back();
                inside = true;
            }
        } else if (quote == '\0' && (c == ' ' || c == '\t')) {
            inside = false;
        } else {
            if (!inside) {
                out.emplace_back();
                inside = true;
            }
            out.back() += c;
        }
    }
    if (quote != '\0') {
        throw bad_input(where, "a quotation mark has no counterpart", "close it");
    }
    return out;
}

Suite read_suite(const fs::path& file) { return SuiteReader(file).read(); }

void add_target(Suite& suite, const std::string& text) {
    const size_t equals = text.find('=');
    const std::string name = text.substr(0, equals);
    if (equals == std::string::npos || equals + 1 == text.size() || !good_name(name)) {
        throw usage_error("--target '" + escape_line(text) + "' is not NAME=DIR", "for example --target ext4=/mnt/a");
    }
    const fs::path folder = text.substr(equals + 1);
    // Those of the command line come first, in their order: the first one is what the others are compared with.
    const auto place = std::find_if(suite.targets.begin(), suite.targets.end(),
                                    [](const SuiteTarget& target) { return !target.given; });
    const auto found = std::find_if(suite.targets.begin(), suite.targets.end(),
                                    [&](const SuiteTarget& target) { return target.name == name; });
    if (found == suite.targets.end()) {
        SuiteTarget target;
        target.name = name;
        target.folder = folder;
        target.given = true;
        suite.targets.insert(place, target);
    } else if (!found->folder.empty() && found->folder != folder) {
        throw usage_error("--target " + name + ": its folder is already " + escape_line(found->folder.string()),
                          "give it once, here or in the suite");
    } else {
        found->folder = folder;
        if (!found->given) {
            found->given = true;
            std::rotate(place, found, found + 1);
        }
    }
}

void check_suite(const Suite& suite, const fs::path& file) {
    if (suite.jobs.empty()) {
        throw bad_input(file.string(), "the suite is empty: it has no job", "add a section: [job NAME] and log = FILE");
    }
    for (const SuiteJob& job : suite.jobs) {
        if (job.log.empty()) {
            throw bad_input(file.string(), "[job " + job.name + "] has no log", "add log = FILE");
        }
    }
    if (suite.targets.empty()) {
        throw usage_error("no target", "name one: --target ext4=/mnt/a");
    }
    std::map<fs::path, std::string> named;
    for (const SuiteTarget& target : suite.targets) {
        if (target.folder.empty()) {
            throw usage_error("target " + target.name + " has no folder",
                              "give it one: --target " + target.name + "=DIR");
        }
        std::error_code error;
        const fs::path folder = fs::weakly_canonical(target.folder, error);
        const auto [first, fresh] = named.emplace(error ? fs::absolute(target.folder) : folder, target.name);
        if (!fresh) {
            throw usage_error("targets " + first->second + " and " + target.name +
                                  " are the same folder: " + escape_line(target.folder.string()),
                              "a storage does not differ from itself; give each its own");
        }
    }
}

}  // namespace reprise
