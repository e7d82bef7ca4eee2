// SPDX-License-Identifier: MIT
#include "cli/named_files.h"

#include <sys/stat.h>

#include <array>
#include <optional>
#include <string>
#include <system_error>
#include <tuple>

#include "formats/support/error.h"

namespace reprise::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kMostLinks = 40;  // as the kernel's

/// Options whose values name files; how the name is told from the rest of the value.
struct FileOption {
    std::string_view name;
    bool written = false;
    fs::path (*file_of)(const std::string& value) = nullptr;
};

fs::path whole(const std::string& value) { return value; }
/// predict --service recorded: the log itself
fs::path log_of(const std::string& value) { return value == "recorded" ? fs::path() : fs::path(value); }
/// METRIC=SHARE|FILE
fs::path unless_assigned(const std::string& value) { return value.find('=') == value.npos ? value : ""; }
/// NAME=FILE
fs::path assigned(const std::string& value) {
    const size_t at = value.find('=');
    return at == value.npos ? "" : value.substr(at + 1);
}
/// empirical(FILE)
fs::path in_brackets(const std::string& value) {
    constexpr std::string_view kBefore = "empirical(";
    const size_t end = value.rfind(')');
    return value.starts_with(kBefore) && end != value.npos ? value.substr(kBefore.size(), end - kBefore.size()) : "";
}

constexpr std::array kFileOptions = {
    FileOption{"output", true, whole},     FileOption{"html", true, whole},
    FileOption{"json", true, whole},       FileOption{"diagram", true, whole},
    FileOption{"junit", true, whole},      FileOption{"markdown", true, whole},
    FileOption{"baseline", true, whole},   FileOption{"storage", false, whole},
    FileOption{"network", false, whole},   FileOption{"service", false, log_of},
    FileOption{"key-file", false, whole},  FileOption{"compare", false, whole},
    FileOption{"against", false, whole},   FileOption{"threshold", false, unless_assigned},
    FileOption{"beside", false, assigned}, FileOption{"gpu-model", false, in_brackets},
    FileOption{"cufile", false, whole}};

std::vector<std::string> texts_of(const po::variables_map& values, const std::string& name) {
    if (values.count(name) == 0) {
        return {};
    }
    const auto& value = values[name].value();
    if (const auto* one = boost::any_cast<std::string>(&value)) {
        return {*one};
    }
    const auto* many = boost::any_cast<std::vector<std::string>>(&value);
    return many != nullptr ? *many : std::vector<std::string>{};
}

std::string shown(std::string_view option, const std::string& value) {
    const std::string text = escape_line(value);
    if (option == "json") {
        return "--json=" + text;
    }
    return (option == "output" ? "-o " : "--" + std::string(option) + " ") + text;
}

/// By device and inode; where there is no file yet, those of its directory and the name in it.
using Identity = std::tuple<dev_t, ino_t, std::string>;

std::optional<Identity> identity_of(fs::path path) {
    std::error_code error;
    if (!path.has_filename()) {
        path = path.parent_path();  // a slash at the end
    }
    for (int i = 0; i < kMostLinks && fs::is_symlink(fs::symlink_status(path, error)); ++i) {
        const fs::path target = fs::read_symlink(path, error);
        path = path.parent_path() / target;  // an absolute one replaces it
    }
    struct stat st {};
    if (::stat(path.c_str(), &st) == 0) {
        return S_ISCHR(st.st_mode) ? std::nullopt : std::optional(Identity(st.st_dev, st.st_ino, ""));
    }
    const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
    if (::stat(folder.c_str(), &st) != 0) {
        return std::nullopt;
    }
    return Identity(st.st_dev, st.st_ino, path.filename().string());
}

/// Throws where writing `output` would replace `other`, or both are written.
void check_pair(std::string_view command, const NamedFile& output, const NamedFile& other) {
    if (!same_file(output.path, other.path)) {
        return;
    }
    if (other.written) {
        throw usage_error(std::string(command) + ": " + output.shown + " and " + other.shown + " are the same file",
                          "choose another file for one");
    }
    throw usage_error(std::string(command) + ": " + output.shown + " would overwrite " + other.shown,
                      "choose another file");
}

const Command& command_named(std::string_view name) { return *find_command(name); }

}  // namespace

std::vector<NamedFile> named_files(const Command& command, const po::variables_map& values) {
    std::vector<NamedFile> files;
    const auto add = [&](const std::string& as, const fs::path& path, bool written) {
        if (!path.empty() && path != "-") {
            files.push_back({as, path, written});
        }
    };
    for (const FileOption& option : kFileOptions) {
        for (const std::string& value : texts_of(values, std::string(option.name))) {
            add(shown(option.name, value), option.file_of(value), option.written);
        }
    }
    for (const Positional& positional : command.positionals) {
        for (const std::string& value : texts_of(values, positional.name)) {
            if (!command.runs_program) {
                add(escape_line(value), value, false);
            }
        }
    }
    return files;
}

bool same_file(const fs::path& a, const fs::path& b) {
    const std::optional<Identity> one = identity_of(a), other = identity_of(b);
    return one && one == other;
}

void check_named_files(const Command& command, const po::variables_map& values) {
    const std::vector<NamedFile> files = named_files(command, values);
    for (size_t i = 0; i < files.size(); ++i) {
        for (size_t j = 0; j < files.size(); ++j) {
            if (files[i].written && (i < j || !files[j].written)) {
                check_pair(command.name, files[i], files[j]);
            }
        }
    }
}

void check_written_too(std::string_view command, const po::variables_map& values, const fs::path& path,
                       std::string_view option) {
    const NamedFile output{escape_line(path.native()) + " of " + std::string(option), path, true};
    for (const NamedFile& other : named_files(command_named(command), values)) {
        check_pair(command, output, other);
    }
}

void check_folder_too(std::string_view command, const po::variables_map& values, const fs::path& folder,
                      std::span<const std::string_view> names) {
    for (const std::string_view name : names) {
        check_written_too(command, values, folder / name, "-o " + escape_line(folder.native()));
    }
}

void make_folder_of(std::string_view command, const po::variables_map& values, const fs::path& folder,
                    std::span<const std::string_view> names) {
    check_folder_too(command, values, folder, names);
    for (const std::string_view name : names) {
        if (values.count("force") == 0 && fs::exists(fs::symlink_status(folder / name))) {
            throw usage_error(escape_line((folder / name).string()) + " exists",
                              "choose another folder with -o, or replace it with -f");
        }
    }
    std::error_code error;
    fs::create_directories(folder, error);
    if (!fs::is_directory(folder)) {
        throw machine_error("cannot make the folder " + escape_line(folder.string()) + ": " + error.message(),
                            "choose another one with -o");
    }
}

void check_read_too(std::string_view command, const po::variables_map& values, const fs::path& path) {
    for (const NamedFile& output : named_files(command_named(command), values)) {
        if (output.written) {
            check_pair(command, output, {escape_line(path.native()), path, false});
        }
    }
}

}  // namespace reprise::cli
