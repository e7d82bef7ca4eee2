// SPDX-License-Identifier: MIT
#include "generate/dlio_yaml.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "formats/support/error.h"
#include "formats/support/nearest.h"
#include "formats/support/quantity.h"
#include "generate/job_text.h"

namespace reprise {
namespace {

enum class Use : uint8_t { used, old, ignored, tree };

struct Key {
    std::string_view path;
    Use use;
    std::string_view becomes;
};
constexpr Key kKeys[] = {
#define KEY(path, use, becomes) {path, Use::use, becomes},
#include "generate/dlio_keys.def"
};

const Key* find_key(std::string_view path) {
    const auto* const found =
        std::find_if(std::begin(kKeys), std::end(kKeys), [&](const Key& each) { return each.path == path; });
    return found == std::end(kKeys) ? nullptr : found;
}

/// Whether other keys lie below it.
bool is_group(std::string_view path) {
    return std::any_of(std::begin(kKeys), std::end(kKeys), [&](const Key& each) {
        return each.path.size() > path.size() && each.path.starts_with(path) && each.path[path.size()] == '.';
    });
}

size_t line_of(const YAML::Mark& mark) { return mark.line < 0 ? 1 : static_cast<size_t>(mark.line) + 1; }

/// The line of a second document's ---; 0 where there is none.
size_t second_document(std::string_view yaml) {
    bool begun = false;
    size_t line = 1;
    for (size_t at = 0; at < yaml.size(); ++line) {
        const size_t end = std::min(yaml.find('\n', at), yaml.size());
        const std::string_view text = yaml.substr(at, end - at);
        if (begun && text.starts_with("---")) {
            return line;
        }
        const size_t first = text.find_first_not_of(" \t\r");
        begun = begun || (first != text.npos && text[first] != '#' && text[first] != '%');
        at = end + 1;
    }
    return 0;
}

/// Not YAML::LoadAll(), which goes on for ever where a document begins with a comma.
YAML::Node document(std::string_view yaml, const std::string& name) {
    if (const size_t line = second_document(yaml)) {
        wrong_line(name, line, "a second YAML document", "one workload a file");
    }
    try {
        return YAML::Load(std::string(yaml));
    } catch (const YAML::Exception& wrong) {
        wrong_line(name, line_of(wrong.mark), "is not YAML: " + escape_line(wrong.msg), "correct the line");
    }
}

std::string lower(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return text;
}

}  // namespace

DlioKeys::DlioKeys(std::string_view yaml, const std::string& name) : name_(name) {
    const YAML::Node whole = document(yaml, name);
    if (!whole.IsMap()) {
        wrong_line(name, 1, "is no DLIO workload: it has no keys",
                   "one mapping with dataset:, reader: and train:, as DLIO's configs/workload has it");
    }
    try {
        YAML::Node root = whole;
        // As Hydra writes down what it has run.
        for (const auto& each : whole) {
            if (each.first.IsScalar() && each.first.Scalar() == "workload" && each.second.IsMap()) {
                root.reset(each.second);
                break;
            }
        }
        read(root, "", 0);
    } catch (const YAML::Exception& wrong) {
        wrong_line(name, line_of(wrong.mark), "cannot be read: " + escape_line(wrong.msg), "correct the line");
    }
}

void DlioKeys::read(const YAML::Node& map, const std::string& above, size_t depth) {
    for (const auto& each : map) {
        if (!each.first.IsScalar()) {
            wrong_line(name_, line_of(each.first.Mark()), "a key that is no word", "write KEY: VALUE");
        }
        std::string path = above.empty() ? each.first.Scalar() : above + "." + each.first.Scalar();
        if (path == "data_reader") {
            path = "reader";
        }
        add(path, each.first, each.second, depth);
    }
}

void DlioKeys::add(const std::string& path, const YAML::Node& key, const YAML::Node& value, size_t depth) {
    constexpr size_t kDeepest = 4;
    const size_t line = line_of(key.Mark());
    if (value.IsMap() && is_group(path) && depth < kDeepest) {
        return read(value, path, depth + 1);
    }
    const Key* const known = find_key(path);
    if (known == nullptr) {
        if (!is_group(path)) {
            unknown(path, line);
        }
        if (!value.IsNull()) {
            wrong_line(name_, line, escape_line(path) + " has no keys", "write them below it, one a line");
        }
        return;
    }
    if (value.IsNull()) {
        return;  // as if it were not there
    }
    const std::string name(known->use == Use::old ? known->becomes : known->path);
    if (!given_.try_emplace(name, Given{value, line}).second) {
        wrong_line(name_, line, "a second " + name, "leave out one of them");
    }
}

void DlioKeys::unknown(const std::string& path, size_t line) const {
    std::vector<std::string> names;
    const size_t dot = path.rfind('.');
    const std::string above = dot == path.npos ? "" : path.substr(0, dot + 1);
    for (const Key& each : kKeys) {
        if (each.path.starts_with(above)) {
            names.emplace_back(each.path);
        }
        const std::string group(each.path.substr(0, each.path.find('.')));
        if (dot == path.npos && group != each.path && std::find(names.begin(), names.end(), group) == names.end()) {
            names.push_back(group);
        }
    }
    std::vector<std::string> near = nearest_names(path, names);
    if (near.empty()) {
        // Right below another key?
        for (const Key& each : kKeys) {
            const std::string_view last = each.path.substr(each.path.rfind('.') + 1);
            if (last == path.substr(dot == path.npos ? 0 : dot + 1)) {
                near.emplace_back(each.path);
            }
        }
    }
    wrong_line(name_, line, "'" + escape_line(path) + "' is no known key of DLIO" + did_you_mean(near),
               "leave it out if it changes no reads or writes; docs/jobs-dlio.md lists all keys");
}

void DlioKeys::fail(std::string_view key, const std::string& what, const std::string& todo) const {
    const auto found = given_.find(key);
    wrong_line(name_, found == given_.end() ? 1 : found->second.line, what, todo);
}

void DlioKeys::wrong(std::string_view key, const std::string& todo) const {
    const auto found = given_.find(key);
    const bool scalar = found != given_.end() && found->second.node.IsScalar();
    fail(key,
         std::string(key) + " cannot be " + (scalar ? "'" + escape_line(found->second.node.Scalar()) + "'" : "that"),
         todo);
}

std::optional<YAML::Node> DlioKeys::node(std::string_view key) {
    const auto found = given_.find(key);
    if (found == given_.end()) {
        return std::nullopt;
    }
    used_.insert(found->first);
    return found->second.node;
}

std::string DlioKeys::text(std::string_view key, const std::string& otherwise) {
    const auto value = node(key);
    if (!value) {
        return otherwise;
    }
    if (!value->IsScalar()) {
        wrong(key, "one value");
    }
    return value->Scalar();
}

bool DlioKeys::yes(std::string_view key, bool otherwise) {
    const std::string value = lower(text(key, otherwise ? "true" : "false"));
    if (value == "true" || value == "yes" || value == "on" || value == "1") {
        return true;
    }
    if (value == "false" || value == "no" || value == "off" || value == "0") {
        return false;
    }
    wrong(key, "True or False");
}

double DlioKeys::number_of(std::string_view key, const YAML::Node& node, double least, double most) const {
    double value = 0;
    const std::string text = node.IsScalar() ? node.Scalar() : "";
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || error != std::errc() || rest != text.data() + text.size() || !(value >= least) ||
        !(value <= most)) {
        fail(key, std::string(key) + " cannot be " + (text.empty() ? "that" : "'" + escape_line(text) + "'"),
             most >= static_cast<double>(kMostCount) && least <= 0
                 ? "a number that is not negative"
                 : "a number from " + format_count(static_cast<uint64_t>(std::max(least, 0.0))) + " to " +
                       format_count(static_cast<uint64_t>(std::min(most, 0x1p62))));
    }
    return value;
}

double DlioKeys::number(std::string_view key, double otherwise, double least, double most) {
    const auto value = node(key);
    return value ? number_of(key, *value, least, most) : otherwise;
}

uint64_t DlioKeys::count(std::string_view key, uint64_t otherwise, uint64_t least, uint64_t most) {
    const auto value = node(key);
    if (!value) {
        return otherwise;
    }
    const std::string todo = "a whole number from " + std::to_string(least) + " to " + std::to_string(most);
    uint64_t number = 0;
    const std::string text = value->IsScalar() ? value->Scalar() : "";
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (text.empty() || error != std::errc() || rest != text.data() + text.size() || number < least || number > most) {
        wrong(key, todo);
    }
    return number;
}

std::optional<uint64_t> DlioKeys::maybe_count(std::string_view key) {
    const auto value = node(key);
    if (!value) {
        return std::nullopt;
    }
    if (value->IsScalar() && (value->Scalar() == "-1" || value->Scalar() == "0")) {
        return std::nullopt;
    }
    return count(key, 0, 1);
}

std::vector<double> DlioKeys::numbers(std::string_view key) {
    const auto value = node(key);
    std::vector<double> out;
    if (!value) {
        return out;
    }
    constexpr double kMost = 0x1p62;
    if (!value->IsSequence()) {
        return {number_of(key, *value, 0, kMost)};
    }
    for (const auto& each : *value) {
        out.push_back(number_of(key, each, 0, kMost));
    }
    return out;
}

std::vector<std::string> DlioKeys::ignored() const {
    std::vector<std::pair<std::string_view, std::vector<std::string>>> reasons;  // in the order of the table
    for (const Key& key : kKeys) {
        if (key.use == Use::old || !given_.contains(key.path) || used_.contains(key.path)) {
            continue;
        }
        const std::string_view reason = key.use == Use::used ? "nothing of this job needs them" : key.becomes;
        auto at = std::find_if(reasons.begin(), reasons.end(), [&](const auto& each) { return each.first == reason; });
        if (at == reasons.end()) {
            at = reasons.insert(at, {reason, {}});
        }
        at->second.emplace_back(key.path);
    }
    std::vector<std::string> notes;
    notes.reserve(reasons.size());
    for (const auto& each : reasons) {
        notes.push_back("ignored, as " + std::string(each.first) + ": " + join(each.second, ", "));
    }
    return notes;
}

}  // namespace reprise
