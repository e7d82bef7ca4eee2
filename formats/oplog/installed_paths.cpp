// SPDX-License-Identifier: MIT
#include "formats/oplog/installed_paths.h"

#include <algorithm>
#include <iterator>
#include <string>

namespace reprise {
namespace {

// Prefixes end at a path's component.
constexpr std::string_view kSystemPrefixes[] = {"/proc", "/sys",     "/dev",     "/etc",       "/run",
                                                "/boot", "/var/run", "/var/lib", "/var/cache", "/var/spool"};
constexpr std::string_view kDataBelowProgramPrefixes[] = {"/opt/ml", "/opt/data", "/opt/dataset", "/opt/datasets"};
constexpr std::string_view kProgramPrefixes[] = {"/usr",    "/bin", "/sbin", "/lib",  "/lib32", "/lib64",
                                                 "/libx32", "/opt", "/nix",  "/snap", "/gnu"};
constexpr std::string_view kPackageDirectories[] = {"site-packages", "dist-packages", "node_modules", ".pyenv",
                                                    "pyenv",         "miniconda3",    "anaconda3",    "miniforge3",
                                                    "mambaforge",    "conda"};
// Of the places above, those where people put data, too: there a file counts whatever its size.
constexpr std::string_view kSharedPlaces[] = {"/opt",       "/usr/local", "/var/lib",  "/var/cache",
                                              "/var/spool", "/run/media", "/run/user", "/run/mount"};
// State of package managers and of the system, and what programs read of the system whatever they do.
constexpr std::string_view kStatePlaces[] = {
    "/var/lib/dpkg",    "/var/lib/apt",       "/var/lib/rpm",          "/var/lib/dnf",        "/var/lib/pacman",
    "/var/lib/apk",     "/var/lib/systemd",   "/var/lib/dbus",         "/var/lib/locales",    "/var/lib/texmf",
    "/var/lib/python",  "/var/lib/sss",       "/var/lib/alternatives", "/var/cache/apt",      "/var/cache/dnf",
    "/var/cache/man",   "/var/cache/debconf", "/var/cache/fontconfig", "/var/cache/ldconfig", "/usr/include",
    "/usr/lib/locale",  "/usr/lib/file",      "/usr/share/locale",     "/usr/share/i18n",     "/usr/share/zoneinfo",
    "/usr/share/fonts", "/usr/share/icons",   "/usr/share/mime",       "/usr/share/misc",     "/usr/share/file",
    "/usr/share/texmf", "/usr/share/texlive", "/usr/share/doc",        "/usr/share/man",      "/usr/share/perl",
    "/usr/share/perl5", "/usr/share/vim",     "/usr/local/include",    "/usr/share/nodejs",   "/usr/share/java"};
constexpr std::string_view kLibraryEndings[] = {
    ".so",    ".a",    ".o",    ".la",    ".py",    ".pyc",    ".pyo",   ".pyi", ".pyx", ".pth",  ".egg",
    ".whl",   ".jar",  ".jmod", ".class", ".js",    ".mjs",    ".cjs",   ".ts",  ".map", ".node", ".wasm",
    ".css",   ".html", ".h",    ".hh",    ".hpp",   ".hxx",    ".inc",   ".tcc", ".ipp", ".gch",  ".c",
    ".cc",    ".cpp",  ".cu",   ".ptx",   ".cubin", ".fatbin", ".hsaco", ".co",  ".go",  ".rs",   ".rlib",
    ".rmeta", ".rb",   ".pl",   ".pm",    ".ph",    ".jl",     ".lua",   ".tcl", ".sh",  ".r",    ".rdb",
    ".rdx",   ".rds",  ".hi",   ".dll",   ".exe",   ".bc",     ".mo",    ".gmo", ".mgc", ".ttf",  ".otf",
    ".pfb",   ".tfm",  ".sty",  ".cls",   ".fmt",   ".pem",    ".crt",   ".ko",  ".elc", ".el",   ".vim"};
constexpr uint64_t kLargeFile = 1 << 20;  // bytes; what programs read to start is rarely larger, apart from the above

bool under(std::string_view path, std::string_view prefix) {
    return path.starts_with(prefix) && (path.size() == prefix.size() || path[prefix.size()] == '/');
}

template <size_t N>
bool under_any(std::string_view path, const std::string_view (&prefixes)[N]) {
    return std::any_of(std::begin(prefixes), std::end(prefixes), [&](std::string_view p) { return under(path, p); });
}

template <size_t N>
std::string_view longest(std::string_view path, const std::string_view (&prefixes)[N], std::string_view before) {
    for (const std::string_view prefix : prefixes) {
        before = under(path, prefix) && prefix.size() > before.size() ? prefix : before;
    }
    return before;
}

// "python3", "python3.11"
bool is_python_library(std::string_view part) {
    if (!part.starts_with("python")) {
        return false;
    }
    part.remove_prefix(6);
    return !part.empty() && part.find_first_not_of("0123456789.") == std::string_view::npos;
}

std::string lower(std::string_view text) {
    std::string out(text);
    std::transform(out.begin(), out.end(), out.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    return out;
}

bool is_library(std::string_view path) {
    const size_t slash = path.rfind('/');
    const std::string name = lower(path.substr(slash + 1));
    const std::string_view parent = path.substr(0, slash == std::string_view::npos ? 0 : slash + 1);
    for (const std::string_view programs : {"/bin/", "/sbin/", "/libexec/"}) {
        if (parent.ends_with(programs)) {
            return true;
        }
    }
    return name.find(".so.") != std::string::npos ||
           std::any_of(std::begin(kLibraryEndings), std::end(kLibraryEndings),
                       [&](std::string_view ending) { return name.ends_with(ending); });
}

bool in_package_directory(std::string_view path) {
    for (size_t start = 1; start < path.size();) {
        const size_t slash = std::min(path.find('/', start), path.size());
        if (is_package_directory(path.substr(start, slash - start))) {
            return true;
        }
        start = slash + 1;
    }
    return false;
}

}  // namespace

bool is_system_place(std::string_view path) { return under_any(path, kSystemPrefixes); }

bool holds_data_below_programs(std::string_view path) { return under_any(path, kDataBelowProgramPrefixes); }

bool is_program_place(std::string_view path) {
    return under_any(path, kProgramPrefixes) && !holds_data_below_programs(path);
}

bool is_package_directory(std::string_view name) {
    return std::find(std::begin(kPackageDirectories), std::end(kPackageDirectories), name) !=
               std::end(kPackageDirectories) ||
           is_python_library(name) || name.ends_with(".dist-info");
}

std::string_view known_place(std::string_view path) {
    std::string_view place = longest(path, kSystemPrefixes, {});
    place = longest(path, kProgramPrefixes, place);
    place = longest(path, kDataBelowProgramPrefixes, place);
    place = longest(path, kSharedPlaces, place);
    return longest(path, kStatePlaces, place);
}

bool is_installed(std::string_view path) {
    return is_system_place(path) || is_program_place(path) || in_package_directory(path);
}

bool is_part_of_program(std::string_view path, uint64_t size) {
    if (!is_installed(path)) {
        return false;
    }
    const bool shared = under_any(path, kSharedPlaces);
    if (under_any(path, kStatePlaces) || is_library(path) || (is_system_place(path) && !shared)) {
        return true;
    }
    return size < kLargeFile && (!shared || in_package_directory(path));
}

}  // namespace reprise
