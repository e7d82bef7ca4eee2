// SPDX-License-Identifier: MIT
#include "generate/job_text.h"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <set>
#include <utility>

#include "formats/support/error.h"
#include "formats/support/input.h"
#include "formats/support/limits.h"
#include "formats/support/nearest.h"

namespace reprise {
namespace {

constexpr WordInfo kWords[] = {
#define WORD(name, place, value, otherwise, meaning) {#name, WordPlace::place, WordValue::value, otherwise, meaning},
#include "generate/words.def"
};

/// Words of fio that change nothing in a log, and are passed over.
constexpr std::string_view kOnlyReports[] = {"name",        "description", "group_reporting", "eta",
                                             "norandommap", "randrepeat",  "create_on_open",  "invalidate"};

/// Words of fio that are known and have no counterpart, with what to do.
constexpr std::pair<std::string_view, std::string_view> kElsewhere[] = {
    {"time_based", "a log holds a number of operations: give size=, number_ios= or loops=, or rate_iops= and runtime="},
    {"rate", "write rate_iops= for blocks that arrive each second; thinktime= pauses between blocks"},
    {"rate_process", "write arrivals=poisson or arrivals=fixed"},
    {"filename", "files are named after their section and job; directory= says where they lie"},
    {"blocksize", "write bs="},
    {"readwrite", "write rw="},
    {"ramp_time", "leave it out; replay --runs has warm-up runs"},
    {"buffered", "write direct="},
    {"rwmixwrite", "write rwmixread=: percent of the mix that are reads"},
    {"startdelay", "sections begin together, or with stonewall when those above are done"},
    {"io_size", "write number_ios= or loops=: a log holds a number of operations"},
    {"random_distribution", "offsets are drawn evenly; leave it out"},
    {"record_length", "write sample_size="},
    {"batch_size", "write batch="},
    {"num_workers", "write loader_workers="},
    {"prefetch_factor", "write prefetch="},
};

std::string_view trimmed(std::string_view text) {
    constexpr const char* kBlanks = " \t\r";
    const size_t from = text.find_first_not_of(kBlanks);
    return from == text.npos ? std::string_view() : text.substr(from, text.find_last_not_of(kBlanks) - from + 1);
}

/// Without a comment: ; or # at the begin of a line or after a blank.
std::string_view without_comment(std::string_view line) {
    for (size_t i = 0; i < line.size(); ++i) {
        const bool starts = line[i] == ';' || line[i] == '#';
        if (starts && (i == 0 || line[i - 1] == ' ' || line[i - 1] == '\t')) {
            return line.substr(0, i);
        }
    }
    return line;
}

struct PlaceName {
    WordPlace place;
    std::string_view name, has;
};
constexpr PlaceName kPlaces[] = {{WordPlace::io, "io", "rw="},
                                 {WordPlace::training, "training", "format="},
                                 {WordPlace::kv, "kv", "workload=kv-cache"},
                                 {WordPlace::load, "load", "workload=model-load"},
                                 {WordPlace::prep, "prep", "workload=convert, tokenize or decode-cache"}};

constexpr std::pair<std::string_view, WordPlace> kWorkloads[] = {{"kv-cache", WordPlace::kv},
                                                                 {"model-load", WordPlace::load},
                                                                 {"convert", WordPlace::prep},
                                                                 {"tokenize", WordPlace::prep},
                                                                 {"decode-cache", WordPlace::prep}};

class Reader {
public:
    Reader(std::string_view text, const std::string& name, std::string_view accelerator)
        : text_(text), name_(name), asked_(accelerator) {}

    std::vector<SectionText> read() {
        for (size_t at = 0; at < text_.size();) {
            const size_t end = std::min(text_.find('\n', at), text_.size());
            ++line_;
            const std::string_view line = trimmed(without_comment(text_.substr(at, end - at)));
            at = end + 1;
            if (!line.empty()) {
                line[0] == '[' ? section(line) : word(line);
            }
        }
        for (SectionText& section : sections_) {
            settle(section);
        }
        if (sections_.empty()) {
            wrong_line(name_, std::max<size_t>(line_, 1), "no section",
                       "begin one, e.g. [train] with format=npz, or [scan] with rw=read");
        }
        for (const auto& [word, given] : global_) {
            if (!used_.contains(word)) {
                wrong_line(name_, given.line, "no section of this file takes " + word + "= of [global]",
                           "it is of " + place_text(word_of(word)->place));
            }
        }
        if (!asked_.empty() && !chose_) {
            throw bad_input(name_, "has no figures of an accelerator: --accelerator " + escape_line(asked_),
                            "leave it out, or give them: compute." + escape_line(asked_) + "=636ms");
        }
        return std::move(sections_);
    }

private:
    [[noreturn]] void fail(const std::string& what, const std::string& todo) const {
        wrong_line(name_, line_, what, todo);
    }
    /// "compute" of "compute.A100"
    static std::string base_of(const std::string& word) { return word.substr(0, word.find('.')); }
    static bool is_of_accelerator(const std::string& word) { return word.find('.') != word.npos; }
    static const WordInfo* word_of(const std::string& word) { return find_word(base_of(word)); }

    void section(std::string_view line) {
        if (line.back() != ']') {
            fail("'" + escape_line(line) + "' has no ]", "sections are [global] and [NAME]");
        }
        const std::string name(trimmed(line.substr(1, line.size() - 2)));
        const bool good = !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
            return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
        });
        if (!good || name == "." || name == "..") {
            fail("'" + escape_line(name) + "' is not a name", "letters, digits, '-', '_' and '.', e.g. [train]");
        }
        in_global_ = name == "global";
        if (in_global_) {
            return;
        }
        if (!names_.insert(name).second) {
            fail("a second [" + name + "]", "give each section another name");
        }
        SectionText& section = sections_.emplace_back();
        section.name = name;
        section.line = line_;
        section.words = global_;  // as in fio, what stands above
    }

    void word(std::string_view line) {
        if (!in_global_ && sections_.empty()) {
            fail("'" + escape_line(line) + "' is in no section", "begin with [global] or [NAME]");
        }
        const size_t equals = line.find('=');
        const std::string word(trimmed(line.substr(0, equals)));
        // A word alone is set, as in fio.
        const std::string value(equals == line.npos ? "1" : trimmed(line.substr(equals + 1)));
        if (std::find(std::begin(kOnlyReports), std::end(kOnlyReports), word) != std::end(kOnlyReports)) {
            return;
        }
        const WordInfo* const known = word_of(word);
        if (is_of_accelerator(word) && known != nullptr) {
            const std::string accelerator = word.substr(word.find('.') + 1);
            const bool good =
                !accelerator.empty() && std::all_of(accelerator.begin(), accelerator.end(), [](unsigned char c) {
                    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
                });
            if (!good || known->name == "accelerator") {
                fail("'" + escape_line(word) + "' is no word of an accelerator",
                     "its name comes after the point: compute.A100=636ms");
            }
        }
        if (known == nullptr) {
            const auto elsewhere = std::find_if(std::begin(kElsewhere), std::end(kElsewhere),
                                                [&](const auto& each) { return each.first == word; });
            if (elsewhere != std::end(kElsewhere)) {
                fail(word + "= is not supported", std::string(elsewhere->second));
            }
            std::vector<std::string> names;
            for (const WordInfo& each : kWords) {
                names.emplace_back(each.name);
            }
            const std::string first = word.substr(0, word.find_first_of(" \t:"));
            if (equals == line.npos && first != word && find_word(first) != nullptr) {
                fail("'" + escape_line(word) + "' has no =",
                     "write " + first + "=" + escape_line(std::string(trimmed(word.substr(first.size() + 1)))));
            }
            for (const auto& each : kElsewhere) {
                names.emplace_back(each.first);
            }
            fail("'" + escape_line(word) + "' is not known" + did_you_mean(nearest_names(base_of(word), names)),
                 "all words: reprise generate --words");
        }
        if (equals == line.npos && known->value != WordValue::yes) {
            fail(word + " has no value",
                 "e.g. " + word + "=" + std::string(known->otherwise.empty() ? "..." : known->otherwise));
        }
        if (value.empty()) {
            fail(word + "= has no value", "leave out the line, or give one");
        }
        auto& own = in_global_ ? global_ : sections_.back().own;
        if (!own.try_emplace(word, GivenWord{value, line_}).second) {
            fail("a second " + word + "= in this section", "leave out one of them");
        }
    }

    /// The kind that the section says itself, or that [global] says.
    void settle_kind(SectionText& section) {
        const char* const kinds[] = {"rw", "format", "workload"};
        const auto given = [&](const auto& in) {
            std::vector<std::string> out;
            for (const char* kind : kinds) {
                if (in.contains(kind)) {
                    out.emplace_back(kind);
                }
            }
            return out;
        };
        std::vector<std::string> says = given(section.own);
        says = says.empty() ? given(section.words) : says;
        if (says.empty()) {
            wrong_line(name_, section.line, "[" + section.name + "] has neither rw= nor format= nor workload=",
                       "rw=read makes it plain I/O, format=npz a training job, workload=kv-cache serving");
        }
        if (says.size() > 1) {
            wrong_line(name_, section.words.at(says[1]).line,
                       "[" + section.name + "] has both " + says[0] + "= and " + says[1] + "=",
                       "rw= is plain I/O, format= a training job, workload= another: make two sections");
        }
        if (says[0] != "workload") {
            section.kind = says[0] == "rw" ? WordPlace::io : WordPlace::training;
            return;
        }
        const GivenWord& workload = section.words.at("workload");
        std::vector<std::string> names;
        for (const auto& [name, place] : kWorkloads) {
            if (name == workload.value) {
                section.kind = place;
                return;
            }
            names.emplace_back(name);
        }
        wrong_line(name_, workload.line,
                   "workload= cannot be '" + escape_line(workload.value) + "'" +
                       did_you_mean(nearest_names(workload.value, names)),
                   "one of: " + join(names, ", "));
    }

    void settle(SectionText& section) {
        const auto inherited = section.words;
        for (const auto& [word, given] : section.own) {
            section.words[word] = given;
        }
        settle_kind(section);
        section.words.clear();
        for (const auto& [word, given] : inherited) {
            if (fits(word_of(word)->place, section.kind)) {
                used_.insert(word);
                // What the section says itself holds for every accelerator.
                if (!is_of_accelerator(word) || !section.own.contains(base_of(word))) {
                    section.words[word] = given;
                }
            }
        }
        for (const auto& [word, given] : section.own) {
            if (!fits(word_of(word)->place, section.kind)) {
                wrong_line(
                    name_, given.line, word + "= does not belong in [" + section.name + "]",
                    (word == "sync" && section.kind == WordPlace::io ? std::string("fsync=1 syncs after each write; ")
                                                                     : "") +
                        "it is of " + place_text(word_of(word)->place) + "; this one has " +
                        place_text(section.kind).substr(std::string_view("sections with ").size()));
            }
            section.words[word] = given;
        }
        choose_accelerator(section);
    }

    /// Words that are given by accelerator become those of the section's.
    void choose_accelerator(SectionText& section) {
        std::map<std::string, GivenWord> all;
        std::set<std::string> names;
        for (const auto& [word, given] : section.words) {
            if (is_of_accelerator(word)) {
                all.emplace(word, given);
                names.insert(word.substr(word.find('.') + 1));
            }
        }
        if (all.empty()) {
            return;
        }
        chose_ = true;
        const std::vector<std::string> sorted(names.begin(), names.end());
        const auto given = section.words.find("accelerator");
        const std::string& first = all.begin()->first;
        if (asked_.empty() && given == section.words.end()) {
            wrong_line(name_, all.begin()->second.line, first + "= in a section that does not say which accelerator",
                       "accelerator= is one of: " + join(sorted, ", "));
        }
        const std::string accelerator = asked_.empty() ? given->second.value : std::string(asked_);
        if (!names.contains(accelerator)) {
            const std::string way = asked_.empty() ? "accelerator=" : "--accelerator ";
            wrong_line(name_, asked_.empty() ? given->second.line : section.line,
                       "[" + section.name + "] has no figures of " + way + escape_line(accelerator) +
                           did_you_mean(nearest_names(accelerator, sorted)),
                       "one of: " + join(sorted, ", "));
        }
        section.words["accelerator"].value = accelerator;
        for (const auto& [word, value] : all) {
            const std::string base = base_of(word), chosen = base + "." + accelerator;
            const auto found = all.find(chosen);
            if (found == all.end() && !section.words.contains(base)) {
                wrong_line(name_, value.line, base + "= is given, but not for " + escape_line(accelerator),
                           chosen + "=, or " + base + "= for all others");
            }
            if (found != all.end()) {
                section.words[base] = found->second;
                if (section.own.contains(chosen)) {
                    section.own[base] = found->second;
                }
            }
            section.words.erase(word);
            section.own.erase(word);
        }
    }

    const std::string_view text_;
    const std::string& name_;
    const std::string_view asked_;  // the accelerator; empty: what the file says
    bool chose_ = false;
    size_t line_ = 0;
    std::vector<SectionText> sections_;
    std::map<std::string, GivenWord> global_;
    std::set<std::string> names_, used_;
    bool in_global_ = false;
};

}  // namespace

std::string place_text(WordPlace place) {
    std::string out;
    for (const PlaceName& each : kPlaces) {
        if (fits(place, each.place)) {
            out += (out.empty() ? "sections with " : ", ") + std::string(each.has);
        }
    }
    return out;
}

std::string place_names(WordPlace place) {
    std::string out;
    for (const PlaceName& each : kPlaces) {
        if (fits(place, each.place)) {
            out += (out.empty() ? "" : ",") + std::string(each.name);
        }
    }
    return place == WordPlace::both ? "both" : out;
}

std::span<const WordInfo> all_words() { return kWords; }

const WordInfo* find_word(std::string_view name) {
    const auto* const found =
        std::find_if(std::begin(kWords), std::end(kWords), [&](const WordInfo& each) { return each.name == name; });
    return found == std::end(kWords) ? nullptr : found;
}

void wrong_line(const std::string& file, size_t line, const std::string& what, const std::string& todo) {
    throw bad_input(file + ":" + std::to_string(line), what, todo);
}

std::string read_text(const std::filesystem::path& file, size_t most, const std::string& what) {
    std::optional<std::string> text = read_small_file(file, most);
    if (!text) {
        throw bad_input(file.string(), "cannot be read: " + reason(errno),
                        "name a " + what + "; see: reprise generate --help");
    }
    return std::move(*text);
}

void check_size(std::string_view text, size_t most, const std::string& name, const std::string& what) {
    if (text.size() > most) {
        throw bad_input(name, "is no " + what + ": it is too large",
                        "at most " + std::to_string(most >> 20) + " MiB; see: reprise generate --help");
    }
}

std::vector<SectionText> read_sections(std::string_view text, const std::string& name, std::string_view accelerator) {
    return Reader(text, name, accelerator).read();
}

}  // namespace reprise
