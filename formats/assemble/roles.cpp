// SPDX-License-Identifier: MIT
#include "formats/assemble/roles.h"

#include <fnmatch.h>

#include <algorithm>
#include <iterator>
#include <string>

#include "formats/oplog/installed_paths.h"
#include "formats/support/error.h"
#include "formats/support/nearest.h"

namespace reprise {
namespace {

// Of a repository what git itself looks at is the program's; what it stores is data (git-annex and LFS keep data sets
// there).
constexpr std::string_view kRepositories[] = {".git"};
constexpr std::string_view kStoredInRepositories[] = {"/.git/objects/", "/.git/annex/", "/.git/lfs/"};
constexpr std::string_view kProgramEndings[] = {".py",  ".pyc", ".pyo", ".pyi", ".pyx", ".so", ".sh",
                                                ".whl", ".egg", ".jar", ".r",   ".jl",  ".pl", ".rb"};
constexpr std::string_view kProgramNames[] = {"pyvenv.cfg", "python", "python3", ".gitconfig", ".netrc"};
constexpr std::string_view kCacheParts[] = {".cache", "__pycache__", ".triton", ".nv", ".ipython", ".jupyter"};
constexpr std::string_view kCachePrefixes[] = {"/tmp", "/var/tmp"};
// A checkpoint also where it is only read: a restart.
constexpr std::string_view kCheckpointEndings[] = {".ckpt", ".safetensors", ".distcp"};
// A checkpoint where it is written.
constexpr std::string_view kWrittenCheckpointEndings[] = {".pt", ".pth", ".pb", ".onnx", ".model", ".keras"};
// A checkpoint where it is written and not read back, else part of a data set that the job makes first.
constexpr std::string_view kDataEndings[] = {
    ".npz",     ".npy",   ".h5",   ".hdf5", ".bin", ".pkl", ".pickle", ".msgpack", ".index", ".tfrecord", ".tfrecords",
    ".parquet", ".arrow", ".lmdb", ".mdb",  ".tar", ".jpg", ".jpeg",   ".png",     ".zarr",  ".nc"};
constexpr std::string_view kLogEndings[] = {".log", ".out",  ".err", ".csv", ".tsv",     ".jsonl", ".json",
                                            ".txt", ".yaml", ".yml", ".pfw", ".darshan", ".prom"};
constexpr std::string_view kLogNames[] = {"stdout", "stderr", "nohup.out"};

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kBigWrite = 16 * kMiB;  // written files at least this big are checkpoints whatever their name

bool under(std::string_view path, std::string_view prefix) {
    return path.starts_with(prefix) && (path.size() == prefix.size() || path[prefix.size()] == '/');
}

template <size_t N>
bool under_any(std::string_view path, const std::string_view (&prefixes)[N]) {
    return std::any_of(std::begin(prefixes), std::end(prefixes), [&](std::string_view p) { return under(path, p); });
}

template <size_t N>
bool is_any(std::string_view text, const std::string_view (&list)[N]) {
    return std::find(std::begin(list), std::end(list), text) != std::end(list);
}

template <size_t N>
bool ends_in_any(std::string_view name, const std::string_view (&endings)[N]) {
    return std::any_of(std::begin(endings), std::end(endings), [&](std::string_view e) { return name.ends_with(e); });
}

// Calls test(component) for each directory of the path, not for its last component.
template <class Test>
bool any_directory(std::string_view path, Test test) {
    size_t start = 1;
    for (size_t slash; (slash = path.find('/', start)) != std::string_view::npos; start = slash + 1) {
        if (slash > start && test(path.substr(start, slash - start))) {
            return true;
        }
    }
    return false;
}

bool is_checkpoint_directory(std::string_view part) {
    return part.starts_with("checkpoint") || part == "ckpt" || part == "ckpts" || part.starts_with("global_step");
}

bool is_program(const RoleFacts& facts, std::string_view name, std::string_view lower, bool directory) {
    const std::string_view path = facts.path;
    if (holds_data_below_programs(path)) {
        return false;
    }
    const bool stored = std::any_of(std::begin(kStoredInRepositories), std::end(kStoredInRepositories),
                                    [&](std::string_view part) { return path.find(part) != std::string_view::npos; });
    const auto program_directory = [own = stored || facts.own_repository](std::string_view part) {
        return (is_any(part, kRepositories) && !own) || is_package_directory(part);
    };
    if (is_program_place(path) || any_directory(path, program_directory)) {
        return true;
    }
    if (directory) {
        return program_directory(name) || name == "__pycache__";
    }
    const std::string_view parent = path.substr(0, path.size() - name.size());
    const bool plain_name = name.find('.') == std::string_view::npos;
    if (plain_name && (parent.ends_with("/bin/") || parent.ends_with("/sbin/"))) {
        return true;
    }
    if (is_any(name, kProgramNames) || ends_in_any(lower, kProgramEndings)) {
        return true;
    }
    return lower.find(".so.") != std::string_view::npos;
}

Role role_of_written(const RoleFacts& facts, std::string_view name, std::string_view lower) {
    const std::string_view path = facts.path;
    const bool in_checkpoint = any_directory(path, is_checkpoint_directory) || is_checkpoint_directory(name);
    if (in_checkpoint || ends_in_any(lower, kWrittenCheckpointEndings)) {
        return Role::checkpoint;
    }
    if (ends_in_any(lower, kDataEndings)) {
        return facts.read ? Role::dataset : Role::checkpoint;
    }
    if (under_any(path, kCachePrefixes)) {
        return Role::cache;
    }
    if (facts.bytes_written >= kBigWrite) {
        return Role::checkpoint;
    }
    if (ends_in_any(lower, kLogEndings) || is_any(name, kLogNames) || name.find("tfevents") != std::string_view::npos) {
        return Role::log;
    }
    if (facts.bytes_written >= kMiB && (facts.renamed_into || facts.synced)) {
        return Role::checkpoint;
    }
    return facts.read ? Role::cache : Role::log;
}

}  // namespace

RoleOverrides RoleOverrides::parse(const std::vector<std::string>& words,
                                   const std::function<std::string(const std::string&)>& real_name) {
    RoleOverrides out;
    for (const std::string& word : words) {
        const size_t equals = word.rfind('=');
        const auto role = equals == std::string::npos ? std::nullopt : role_by_name(word.substr(equals + 1));
        if (!role || equals == 0) {
            throw usage_error("--role wants PATTERN=ROLE, not \"" + escape_line(word) + "\"",
                              "a role is one of dataset, checkpoint, log, cache, ipc, program, system");
        }
        std::string pattern = word.substr(0, equals);
        while (pattern.size() > 1 && pattern.ends_with('/')) {
            pattern.pop_back();
        }
        const std::string real = real_name ? real_name(pattern) : pattern;
        const bool is_link = real != pattern;
        if (is_link) {
            out.rules_.push_back({real, *role});
        }
        out.rules_.push_back({std::move(pattern), *role, is_link});
    }
    return out;
}

bool RoleOverrides::matches(const Rule& rule, std::string_view path) {
    return under(path, rule.pattern) || ::fnmatch(rule.pattern.c_str(), std::string(path).c_str(), 0) == 0;
}

std::optional<Role> RoleOverrides::role_of(std::string_view path) const {
    for (auto rule = rules_.rbegin(); rule != rules_.rend(); ++rule) {
        if (matches(*rule, path)) {
            return rule->role;
        }
    }
    return std::nullopt;
}

void RoleOverrides::check_matches(const std::vector<std::string_view>& paths) const {
    for (const Rule& rule : rules_) {
        if (std::none_of(paths.begin(), paths.end(), [&](std::string_view path) { return matches(rule, path); })) {
            throw usage_error("--role '" + escape_line(rule.pattern) + "=" + std::string(role_name(rule.role)) +
                                  "' matches no file of the recording" +
                                  did_you_mean(nearest_paths(rule.pattern, paths)),
                              "to go on all the same: --allow-empty");
        }
    }
}

std::pair<uint64_t, std::string> RoleOverrides::unmatched(const std::vector<std::string_view>& paths) const {
    std::pair<uint64_t, std::string> out;
    for (const Rule& rule : rules_) {
        const bool matched = rule.may_be_idle || std::any_of(paths.begin(), paths.end(), [&](std::string_view path) {
                                 return matches(rule, path);
                             });
        if (!matched && out.first++ == 0) {
            out.second = escape_line(rule.pattern);
        }
    }
    return out;
}

std::string_view repository_of(std::string_view path) {
    for (size_t start = 1; start < path.size();) {
        const size_t slash = std::min(path.find('/', start), path.size());
        if (is_any(path.substr(start, slash - start), kRepositories)) {
            return path.substr(0, slash);
        }
        start = slash + 1;
    }
    return {};
}

Role classify(const RoleFacts& facts) {
    const std::string_view path = facts.path;
    const std::string_view name = path.substr(path.rfind('/') + 1);
    std::string lower(name);
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    const bool directory = facts.type == FileType::directory;

    if (!path.starts_with('/') || facts.type == FileType::anonymous || facts.type == FileType::fifo ||
        facts.type == FileType::socket || under(path, "/dev/shm")) {
        return Role::ipc;
    }
    if (path == "/" || facts.type == FileType::character || facts.type == FileType::block || is_system_place(path)) {
        return Role::system;
    }
    const bool cached = any_directory(path, [](std::string_view part) { return is_any(part, kCacheParts); });
    if (facts.written && !directory && cached) {
        return Role::cache;
    }
    if (is_program(facts, name, lower, directory)) {
        return Role::program;
    }
    if (directory) {
        return cached ? Role::cache : Role::unknown;
    }
    if (ends_in_any(lower, kCheckpointEndings)) {
        return Role::checkpoint;
    }
    if (facts.written) {
        return role_of_written(facts, name, lower);
    }
    // Looked at or inherited, but not used.
    if (!facts.read && (is_any(name, kLogNames) || lower.ends_with(".log") || under(path, "/unnamed"))) {
        return Role::log;
    }
    if (facts.read || facts.type == FileType::regular) {
        return Role::dataset;
    }
    return Role::unknown;
}

}  // namespace reprise
