// SPDX-License-Identifier: MIT
#include "formats/oplog/op_filter.h"

#include <fnmatch.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "formats/support/error.h"
#include "formats/support/nearest.h"

namespace reprise {
namespace {

constexpr Role kRoles[] = {Role::unknown, Role::dataset, Role::checkpoint, Role::log,
                           Role::cache,   Role::ipc,     Role::program,    Role::system};
// A hostile log may number mappings and requests as it likes; numbers beyond this are not followed.
constexpr uint32_t kMostFollowed = 1u << 28;

bool matches_any(const std::vector<std::string>& globs, std::string_view path) {
    if (globs.empty() || path.empty()) {
        return false;
    }
    const std::string text(path);
    return std::any_of(globs.begin(), globs.end(),
                       [&](const std::string& glob) { return ::fnmatch(glob.c_str(), text.c_str(), 0) == 0; });
}

bool contains(const std::vector<Role>& roles, Role role) {
    return std::find(roles.begin(), roles.end(), role) != roles.end();
}

void add_role(std::vector<Role>& roles, Role role) {
    if (!contains(roles, role)) {
        roles.push_back(role);
    }
}

// Letters, digits and the usual signs of paths stay; anything else becomes %XX.
std::string encode(std::string_view text) {
    static constexpr char kHex[] = "0123456789ABCDEF";
    std::string out;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                           std::string_view("/._-*?[]!+@:").find(c) != std::string_view::npos;
        if (plain) {
            out += c;
        } else {
            out += '%';
            out += kHex[byte >> 4];
            out += kHex[byte & 15];
        }
    }
    return out;
}

Error bad_filter(std::string_view text, std::string_view what) {
    return bad_input("filter '" + std::string(text) + "'", what,
                     "expected e.g. leave=program,system;only=/data/*;not=*.tmp");
}

int hex_digit(char c) {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'A' && c <= 'F') {
        return c - 'A' + 10;
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return -1;
}

std::string decode(std::string_view text, std::string_view whole) {
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '%') {
            out += text[i];
            continue;
        }
        const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
        const int low = high >= 0 ? hex_digit(text[i + 2]) : -1;
        if (low < 0) {
            throw bad_filter(whole, "a % is not followed by two hexadecimal digits");
        }
        out += static_cast<char>(high * 16 + low);
        i += 2;
    }
    return out;
}

// A role, or none for a path.
std::optional<Role> role_or_path(const char* option, const std::string& word) {
    if (word.empty()) {
        throw usage_error(std::string(option) + " is empty", "expected a role, a path or glob, or all");
    }
    const auto role = role_by_name(word);
    if (role || word.find_first_of("/*?[") != std::string::npos) {
        return role;
    }
    std::vector<std::string> names{"all"};
    for (const Role one : kRoles) {
        names.emplace_back(role_name(one));
    }
    const std::vector<std::string> near = nearest_names(word, names);
    throw usage_error(
        std::string(option) + " '" + escape_line(word) + "' is neither a role nor a path" + did_you_mean(near),
        "roles: " + join(names, ", ") + "; a path is written with / or *, such as '*/" + escape_line(word) + "'");
}

// A path stands for what lies below it, too.
void add_globs(std::vector<std::string>& globs, std::string_view word) {
    const size_t last = word.find_last_not_of('/');
    word = word.substr(0, last == std::string_view::npos ? 0 : last + 1);
    if (word.ends_with('*')) {
        globs.emplace_back(word);
        return;
    }
    if (!word.empty()) {
        globs.emplace_back(word);
    }
    globs.push_back(std::string(word) + "/*");
}

// Calls visit(piece) for each piece between separators; none for empty text.
template <class Visit>
void split(std::string_view text, char separator, Visit visit) {
    while (!text.empty()) {
        const size_t end = text.find(separator);
        visit(text.substr(0, end));
        if (end == std::string_view::npos) {
            return;
        }
        text.remove_prefix(end + 1);
    }
}

}  // namespace

std::vector<Role> OpFilter::default_left_out() { return {Role::program, Role::system}; }

OpFilter OpFilter::all() {
    OpFilter filter;
    filter.leave_out.clear();
    return filter;
}

OpFilter OpFilter::from_words(const std::vector<std::string>& only, const std::vector<std::string>& leave) {
    OpFilter filter;
    std::vector<Role> wanted;
    bool all_roles = false;
    for (const std::string& word : split_words(only)) {
        if (word == "all") {
            all_roles = true;
        } else if (const auto role = role_or_path("--only", word)) {
            add_role(wanted, *role);
        } else {
            add_globs(filter.only_paths, word);
        }
    }
    if (all_roles) {
        filter.leave_out.clear();
        filter.only_paths.clear();
    } else if (wanted.empty() && !filter.only_paths.empty()) {
        filter.leave_out.clear();
    } else if (!wanted.empty()) {
        filter.leave_out.clear();
        filter.also_paths = std::exchange(filter.only_paths, {});
        for (const Role role : kRoles) {
            if (!contains(wanted, role)) {
                filter.leave_out.push_back(role);
            }
        }
    }
    for (const std::string& word : split_words(leave)) {
        std::vector<Role>& roles = filter.also_paths.empty() ? filter.leave_out : filter.not_roles;
        if (word == "all") {
            for (const Role role : kRoles) {
                add_role(roles, role);
            }
        } else if (const auto role = role_or_path("--not", word)) {
            add_role(roles, *role);
        } else {
            add_globs(filter.not_paths, word);
        }
    }
    return filter;
}

std::vector<std::string> split_words(const std::vector<std::string>& given) {
    std::vector<std::string> words;
    for (const std::string& text : given) {
        std::string word;
        for (size_t i = 0; i < text.size(); ++i) {
            if (text[i] == '\\' && i + 1 < text.size() && text[i + 1] == ',') {
                word += text[++i];
            } else if (text[i] == ',') {
                words.push_back(std::exchange(word, {}));
            } else {
                word += text[i];
            }
        }
        words.push_back(word);
    }
    return words;
}

bool selects_any(const std::string& word, const Tables& tables) {
    const auto role = role_by_name(word);
    std::vector<std::string> globs;
    if (!role && word != "all") {
        add_globs(globs, word);
    }
    for (FileId file = 1; file < tables.files.size(); ++file) {
        if (word == "all" || (role && tables.files[file].role == *role) || matches_any(globs, tables.path(file))) {
            return true;
        }
    }
    return false;
}

bool OpFilter::keeps_file(const Tables& tables, FileId file) const {
    if (file == 0 || file >= tables.files.size()) {
        return true;
    }
    const Role role = tables.files[file].role;
    const std::string_view path = tables.path(file);
    if (contains(not_roles, role) || (contains(leave_out, role) && !matches_any(also_paths, path))) {
        return false;
    }
    if (!only_paths.empty() && !matches_any(only_paths, path)) {
        return false;
    }
    return !matches_any(not_paths, path);
}

bool OpFilter::keeps_handle(const Tables& tables, HandleId handle) const {
    if (handle >= tables.handles.size()) {
        return true;
    }
    const HandleRow& row = tables.handles[handle];
    if (row.file == 0 && row.kind == HandleKind::memfd) {
        return only_paths.empty() && !contains(leave_out, Role::ipc) && !contains(not_roles, Role::ipc);
    }
    return keeps_file(tables, row.file);
}

bool OpFilter::keeps(const Tables& tables, const Op& op) const {
    if (info(op.kind).is(Trait::cause)) {
        return true;
    }
    return keeps_file(tables, op.file) && keeps_file(tables, op.file2) && keeps_handle(tables, op.handle2) &&
           (copies_to_file(tables, op.kind, op.handle2) || keeps_handle(tables, op.handle));
}

std::string OpFilter::to_string() const {
    const auto names = [](const std::vector<Role>& roles) {
        std::vector<std::string> words;
        words.reserve(roles.size());
        for (const Role role : roles) {
            words.emplace_back(role_name(role));
        }
        return join(words, ",");
    };
    std::string out = "leave=" + names(leave_out);
    if (!not_roles.empty()) {
        out += ";never=" + names(not_roles);
    }
    for (const std::string& glob : also_paths) {
        out += ";also=" + encode(glob);
    }
    for (const std::string& glob : only_paths) {
        out += ";only=" + encode(glob);
    }
    for (const std::string& glob : not_paths) {
        out += ";not=" + encode(glob);
    }
    return out;
}

OpFilter OpFilter::parse(std::string_view text) {
    OpFilter filter = all();
    bool leave_seen = false;
    split(text, ';', [&](std::string_view piece) {
        const size_t equals = piece.find('=');
        if (equals == std::string_view::npos) {
            throw bad_filter(text, "a part has no '='");
        }
        const std::string_view key = piece.substr(0, equals), value = piece.substr(equals + 1);
        if (key == "leave" || key == "never") {
            leave_seen = leave_seen || key == "leave";
            std::vector<Role>& roles = key == "leave" ? filter.leave_out : filter.not_roles;
            split(value, ',', [&](std::string_view name) {
                const auto role = role_by_name(name);
                if (!role) {
                    throw bad_filter(text, "'" + escape_line(name) + "' is not a role");
                }
                add_role(roles, *role);
            });
        } else if (key == "also") {
            filter.also_paths.push_back(decode(value, text));
        } else if (key == "only") {
            filter.only_paths.push_back(decode(value, text));
        } else if (key == "not") {
            filter.not_paths.push_back(decode(value, text));
        } else {
            throw bad_filter(text, "'" + escape_line(key) + "' is none of leave, never, also, only, not");
        }
    });
    if (!leave_seen) {
        throw bad_filter(text, "it has no part leave=");
    }
    return filter;
}

OpSelector::OpSelector(const LogReader& log, OpFilter filter) : tables_(&log.tables()), filter_(std::move(filter)) {
    kept_.resize(tables_->files.size(), 1);
    for (FileId file = 1; file < kept_.size(); ++file) {
        kept_[file] = filter_.keeps_file(*tables_, file);
        keeps_everything_ = keeps_everything_ && kept_[file];
    }
    for (HandleId handle = 1; handle < tables_->handles.size(); ++handle) {
        const HandleRow& row = tables_->handles[handle];
        if (row.kind == HandleKind::memfd && row.file == 0) {
            keeps_memory_ = filter_.keeps_handle(*tables_, handle);
            keeps_everything_ = keeps_everything_ && keeps_memory_;
            break;
        }
    }
    if (!keeps_everything_) {
        follow(log);
    }
}

bool OpSelector::keeps_handle(HandleId handle) const {
    if (handle >= tables_->handles.size()) {
        return true;
    }
    const HandleRow& row = tables_->handles[handle];
    return row.file == 0 && row.kind == HandleKind::memfd ? keeps_memory_ : keeps_file(row.file);
}

bool OpSelector::keeps(const Op& op) const {
    if (keeps_everything_ || info(op.kind).is(Trait::cause)) {
        return true;
    }
    const bool copied = copies_to_file(*tables_, op.kind, op.handle2);
    if (!keeps_file(op.file) || !keeps_file(op.file2) || !(copied || keeps_handle(op.handle)) ||
        !keeps_handle(op.handle2)) {
        return false;
    }
    return keeps_mapping(op.map) && keeps_request(op.request);
}

void OpSelector::follow(const LogReader& log) {
    const auto drop = [](std::vector<bool>& dropped, uint32_t id) {
        if (id == 0 || id >= kMostFollowed) {
            return;
        }
        if (id >= dropped.size()) {
            dropped.resize(std::max<size_t>(id + 1, dropped.size() * 2));
        }
        dropped[id] = true;
    };
    OpBlock block;
    for (const BlockInfo& where : log.blocks()) {
        log.decode(where, block);
        for (size_t i = 0; i < block.count(); ++i) {
            const auto kind = static_cast<OpKind>(block.kind[i]);
            const bool maps = kind == OpKind::mmap;
            if (!maps && !info(kind).is(Trait::submits)) {
                continue;
            }
            if (keeps_file(block.file[i]) && keeps_handle(block.handle[i])) {
                continue;
            }
            drops_requests_ = drops_requests_ || !maps;
            drop(maps ? map_dropped_ : request_dropped_, maps ? block.map[i] : block.request[i]);
        }
        log.forget(where);
    }
}

}  // namespace reprise
