// SPDX-License-Identifier: MIT
#include "capture/library_probes.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "capture/context_records.h"
#include "formats/oplog/syscall_numbers.h"
#include "formats/support/error.h"

namespace reprise {
namespace {

namespace fs = std::filesystem;

/// A path of a process as the recorder sees it; its own where the process has ended.
fs::path seen_from_here(pid_t pid, const std::string& path) {
    const std::string process = "/proc/" + std::to_string(pid);
    const fs::path there = process + (path.starts_with('/') ? "/root" : "/cwd/") + path;
    std::error_code error;
    return fs::exists(there, error) ? there : fs::path(path);
}

void tell(RawWriter& to, raw_cufile_kind kind, pid_t pid, uint64_t time, uint64_t since, int error, int64_t cost) {
    raw_cufile record{};
    record.head.size = sizeof record;
    record.head.type = RAW_CUFILE;
    record.head.pid = record.head.tid = static_cast<raw_u32>(pid);
    record.head.time = time;
    record.kind = kind;
    record.enter = since;
    record.result = -error;
    record.size = static_cast<raw_u64>(std::max<int64_t>(cost, 0));
    record.fd.fd = -1;
    to.append({reinterpret_cast<const uint8_t*>(&record), sizeof record});
}

}  // namespace

std::optional<OpenedLibrary> opened_library(ByteView bytes) {
    raw_head head{};
    if (bytes.size() < sizeof(raw_call)) {
        return std::nullopt;
    }
    std::memcpy(&head, bytes.data(), sizeof head);
    const auto* call = reinterpret_cast<const raw_call*>(bytes.data());
    const bool opens = call->nr == SYS_openat || call->nr == SYS_open || call->nr == SYS_openat2;
    if (head.type != RAW_CALL || !opens || call->result < 0 || head.size > bytes.size()) {
        return std::nullopt;
    }
    for (const raw_part& part : RawParts(call->head)) {
        if (part.type != RAW_PART_PATH) {
            continue;
        }
        const std::string_view path = raw_part_text(part);
        if (const ProbedLibrary library = probed_library(path); library != ProbedLibrary::none) {
            return OpenedLibrary{static_cast<pid_t>(head.pid), head.time, library, std::string(path)};
        }
        break;
    }
    return std::nullopt;
}

LibraryProbes::Attached LibraryProbes::attach(const fs::path& file, ProbedLibrary library) {
    struct stat stat {};
    if (::stat(file.c_str(), &stat) != 0) {
        return {0, errno};
    }
    const std::pair<uint64_t, uint64_t> key{stat.st_dev, stat.st_ino};
    const auto found = std::find_if(known_.begin(), known_.end(), [&](const auto& each) { return each.first == key; });
    if (found != known_.end()) {
        return found->second;
    }
    if (stopped_) {
        return {0, ECANCELED};
    }
    Attached attached;
    bool any = false;
    for (const ProbedFunction& each : probed_functions(library)) {
        const int error = programs_.probe(file.c_str(), each.name, each.function);
        any = any || error == 0;
        if (error != 0 && (each.required || error != ENOENT)) {
            attached.error = error;
            break;
        }
    }
    if (attached.error == 0 && any) {
        cost_ = cost_ < 0 ? programs_.probed_call_ns() : cost_;
        attached.since = monotonic_ns();
    }
    known_.emplace_back(key, attached);
    return attached;
}

void LibraryProbes::attach_named(const std::vector<fs::path>& files) {
    for (const fs::path& file : files) {
        if (std::error_code error; !fs::is_regular_file(file, error)) {
            throw usage_error("--cufile: there is no file " + escape_line(file.string()),
                              "name the library itself: libcufile.so.0");
        }
        const bool cuda = probed_library(file.native()) == ProbedLibrary::cuda;
        const Attached attached = attach(file, cuda ? ProbedLibrary::cuda : ProbedLibrary::cufile);
        if (attached.error == ENOENT || attached.error == EINVAL || (cuda && attached.since == 0)) {
            throw usage_error(
                "--cufile: " + escape_line(file.string()) + " has no functions of " + (cuda ? "CUDA" : "libcufile"),
                "name the library itself: libcufile.so.0");
        }
        if (attached.since == 0) {
            throw machine_error(
                "functions of " + escape_line(file.string()) + " cannot be probed: " + std::strerror(attached.error),
                "record without --cufile; --check shows what this machine allows");
        }
    }
}

void LibraryProbes::attach_found(const std::vector<fs::path>& files) {
    for (const fs::path& file : files) {
        attach(file, ProbedLibrary::cufile);
    }
}

void LibraryProbes::attach_mapped(pid_t pid, RawWriter& to) {
    std::ifstream in("/proc/" + std::to_string(pid) + "/maps");
    std::set<std::string> seen;
    for (std::string line; std::getline(in, line);) {
        const size_t at = line.find('/');
        if (at == std::string::npos || !seen.insert(line.substr(at)).second) {
            continue;
        }
        const std::string path = line.substr(at);
        if (const ProbedLibrary library = probed_library(path); library != ProbedLibrary::none) {
            opened({pid, monotonic_ns(), library, path}, to);
        }
    }
    std::error_code error;
    for (fs::directory_iterator at("/proc/" + std::to_string(pid) + "/fd", error), end; !error && at != end;
         at.increment(error)) {
        std::error_code gone;
        const std::string path = fs::read_symlink(at->path(), gone).string();
        if (probed_library(path) == ProbedLibrary::driver) {
            opened({pid, 1, ProbedLibrary::driver, path}, to);  // long ago
        }
    }
}

void LibraryProbes::opened(const OpenedLibrary& what, RawWriter& to) {
    switch (what.library) {
        case ProbedLibrary::none: return;
        case ProbedLibrary::driver: return tell(to, RAW_CUFILE_DRIVER, what.pid, what.time, 0, 0, 0);
        case ProbedLibrary::cuda: {
            const fs::path file = seen_from_here(what.pid, what.path);
            if (used_) {
                attach(file, ProbedLibrary::cuda);
            } else {
                cuda_.insert(file);
            }
            return;
        }
        case ProbedLibrary::cufile: {
            const Attached attached = attach(seen_from_here(what.pid, what.path), ProbedLibrary::cufile);
            tell(to, RAW_CUFILE_OPENED, what.pid, what.time, attached.since, attached.error, cost_);
            used_ = true;
            for (const fs::path& file : cuda_) {
                attach(file, ProbedLibrary::cuda);
            }
            cuda_.clear();
            return;
        }
    }
}

}  // namespace reprise
