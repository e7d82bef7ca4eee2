// SPDX-License-Identifier: MIT
#include "formats/import/dftracer/names.h"

#include <fcntl.h>

#include <algorithm>
#include <iterator>

namespace reprise::dftracer {
namespace {

struct CallRow {
    std::string_view name;
    Call call;
};

// The names DFTracer gives to calls of category POSIX (those it wraps and their relatives); a suffix 64 is cut off
// first.
constexpr CallRow kPosix[] = {
    {"open", Call::open},
    {"creat", Call::creat},
    {"openat", Call::openat},
    {"close", Call::close},
    {"read", Call::read},
    {"write", Call::write},
    {"pread", Call::pread},
    {"pwrite", Call::pwrite},
    {"readv", Call::readv},
    {"writev", Call::writev},
    {"lseek", Call::lseek},
    {"stat", Call::stat},
    {"lstat", Call::lstat},
    {"__xstat", Call::stat},
    {"__lxstat", Call::lstat},
    {"__fxstatat", Call::stat},
    {"fstatat", Call::stat},
    {"fstat", Call::fstat},
    {"__fxstat", Call::fstat},
    {"access", Call::access},
    {"faccessat", Call::access},
    {"mkdir", Call::mkdir},
    {"mkdirat", Call::mkdir},
    {"rmdir", Call::rmdir},
    {"unlink", Call::unlink},
    {"unlinkat", Call::unlink},
    {"remove", Call::unlink},
    {"rename", Call::rename},
    {"renameat", Call::rename},
    {"link", Call::link},
    {"linkat", Call::link},
    {"symlink", Call::symlink},
    {"symlinkat", Call::symlink},
    {"readlink", Call::readlink},
    {"readlinkat", Call::readlink},
    {"chmod", Call::chmod},
    {"fchmod", Call::fchmod},
    {"utime", Call::utime},
    {"chdir", Call::chdir},
    {"truncate", Call::truncate},
    {"ftruncate", Call::ftruncate},
    {"fsync", Call::fsync},
    {"fdatasync", Call::fdatasync},
    {"fcntl", Call::fcntl},
    {"dup", Call::dup},
    {"dup2", Call::dup},
    {"dup3", Call::dup},
    {"mmap", Call::mmap},
    {"munmap", Call::munmap},
    {"msync", Call::msync},
    {"opendir", Call::opendir},
    {"fdopendir", Call::ignored},
    {"closedir", Call::ignored},
    {"readdir", Call::ignored},
    {"rewinddir", Call::ignored},
    {"fork", Call::fork},
    {"vfork", Call::fork},
    {"umask", Call::ignored},
    {"getcwd", Call::ignored},
    {"chown", Call::ignored},
    {"lchown", Call::ignored},
};

constexpr CallRow kStdio[] = {
    {"fopen", Call::fopen},         {"fclose", Call::fclose},        {"fread", Call::fread},
    {"fwrite", Call::fwrite},       {"fgets", Call::fgets},          {"fputs", Call::fputs},
    {"fseek", Call::fseek},         {"fseeko", Call::fseek},         {"rewind", Call::rewind},
    {"ftell", Call::ignored},       {"feof", Call::ignored},         {"ferror", Call::ignored},
    {"clearerr", Call::ignored},    {"setvbuf", Call::ignored},      {"flockfile", Call::ignored},
    {"funlockfile", Call::ignored}, {"ftrylockfile", Call::ignored}, {"fgetpos", Call::ignored},
    {"fflush", Call::ignored},      {"ungetc", Call::ignored},
};

Call find_call(const CallRow* begin, const CallRow* end, std::string_view name) {
    if (name.size() > 2 && name.ends_with("64")) {
        name.remove_suffix(2);
    }
    const CallRow* row = std::find_if(begin, end, [&](const CallRow& r) { return r.name == name; });
    return row == end ? Call::unknown : row->call;
}

bool contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

// Names of spans are conventions of DLIO, of DFTracer's own AI categories and of the traces that were published.
Span find_span(std::string_view category, std::string_view name) {
    if (category == "ai_framework" && name.ends_with(".compute")) {
        return Span::compute;  // DLIO
    }
    if (category == "compute" && name == "compute") {
        return Span::compute;  // DFTracer's AI categories
    }
    if (name == "fetch.block") {
        return Span::compute_or_step;
    }
    if (name == "fetch.iter") {
        return Span::fetch;
    }
    if (name == "DLIOBenchmark._train" || name == "epoch" || name == "epoch.block") {
        return Span::epoch;
    }
    const bool loader = category == "data_loader" || category == "dataloader" || category == "IO";
    if (loader && name.ends_with(".iter")) {
        return Span::fetch;
    }
    if (loader && name.ends_with(".yield")) {
        return Span::step;
    }
    if (name.ends_with(".checkpoint") || name.ends_with("save_checkpoint")) {
        return Span::checkpoint;
    }
    if (contains(category, "comput")) {
        return Span::host_compute;
    }
    return Span::other;
}

}  // namespace

Name make_name(std::string_view category, std::string_view name) {
    Name out{std::string(category), std::string(name), Call::span, Span::other, 0};
    if (category == "POSIX") {
        out.call = find_call(std::begin(kPosix), std::end(kPosix), name);
    } else if (category == "STDIO") {
        out.call = find_call(std::begin(kStdio), std::end(kStdio), name);
    } else if (category == "dftracer") {
        out.call = Call::meta;
    } else {
        out.span = find_span(category, name);
    }
    return out;
}

int32_t fopen_flags(std::string_view mode) {
    const bool both = contains(mode, "+");
    int32_t flags = both ? O_RDWR : O_RDONLY;
    if (mode.starts_with("w")) {
        flags = (both ? O_RDWR : O_WRONLY) | O_CREAT | O_TRUNC;
    }
    if (mode.starts_with("a")) {
        flags = (both ? O_RDWR : O_WRONLY) | O_CREAT | O_APPEND;
    }
    if (contains(mode, "e")) {
        flags |= O_CLOEXEC;
    }
    if (contains(mode, "x")) {
        flags |= O_EXCL;
    }
    return flags;
}

}  // namespace reprise::dftracer
