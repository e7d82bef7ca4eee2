// SPDX-License-Identifier: MIT
// What the (category, name) pairs of DFTracer events mean: which call, or which kind of span of the application.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace reprise::dftracer {

/// Calls this importer can tell apart; several names of libc map to one.
enum class Call : uint8_t {
    unknown,  // a POSIX or STDIO call without a row in the table
    span,     // no call
    meta,     // DFTracer's own: start, end
    ignored,  // has no counterpart in a log and moves no data
    open,
    creat,
    openat,
    close,
    read,
    write,
    pread,
    pwrite,
    readv,
    writev,
    lseek,
    stat,
    lstat,
    fstat,
    access,
    mkdir,
    rmdir,
    unlink,
    rename,
    link,
    symlink,
    readlink,
    chmod,
    fchmod,
    utime,
    chdir,
    truncate,
    ftruncate,
    fsync,
    fdatasync,
    fcntl,
    dup,
    mmap,
    munmap,
    msync,
    opendir,
    closedir,
    fork,
    fopen,
    fclose,
    fread,
    fwrite,
    fgets,
    fputs,
    fseek,
    rewind,
};

enum class Span : uint8_t {
    other,
    epoch,
    step,
    fetch,  // the training loop waits for a batch
    checkpoint,
    host_compute,     // a computation that may or may not keep an accelerator busy
    compute,          // the accelerator is busy
    compute_or_step,  // used as compute where the run has no better span
};

struct Name {
    std::string category, name;
    Call call = Call::unknown;
    Span span = Span::other;
    uint64_t events = 0;
};

/// Never fails: unknown calls are Call::unknown, unknown spans Span::other.
Name make_name(std::string_view category, std::string_view name);

/// Flags (O_*) of a mode of fopen.
int32_t fopen_flags(std::string_view mode);

}  // namespace reprise::dftracer
