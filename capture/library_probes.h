// SPDX-License-Identifier: MIT
// Probes on functions of libraries, as long as somebody recorded may call them: libcufile's from the start where it is
// found, else as soon as a recorded process opens it; those of CUDA that wait, only once one has opened libcufile.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "capture/cufile_libraries.h"
#include "capture/loader.h"
#include "formats/raw/log.h"

namespace reprise {

/// A recorded process opened a file that probed_library() knows.
struct OpenedLibrary {
    pid_t pid = 0;
    uint64_t time = 0;  ///< CLOCK_MONOTONIC ns
    ProbedLibrary library = ProbedLibrary::none;
    std::string path;  ///< as the process gave it
};
/// Of a record as it comes out of the ring; none of what is not an open of such a file that worked.
std::optional<OpenedLibrary> opened_library(ByteView record);

class LibraryProbes {
public:
    explicit LibraryProbes(BpfPrograms& programs) : programs_(programs) {}

    /// Of libcufile, and of CUDA by the name of the file. Throws Error (usage) where it is neither, Error (machine)
    /// where it cannot be probed.
    void attach_named(const std::vector<std::filesystem::path>& files);
    /// What is found and refused shows when somebody opens it.
    void attach_found(const std::vector<std::filesystem::path>& files);
    /// What a process that is followed from now on has mapped.
    void attach_mapped(pid_t pid, RawWriter& to);
    void opened(const OpenedLibrary& what, RawWriter& to);
    /// Nothing is probed from now on.
    void stop() { stopped_ = true; }

private:
    struct Attached {
        uint64_t since = 0;  ///< ns; 0: it could not be
        int error = 0;
    };
    Attached attach(const std::filesystem::path& file, ProbedLibrary library);

    BpfPrograms& programs_;
    std::vector<std::pair<std::pair<uint64_t, uint64_t>, Attached>> known_;  // by device and inode
    bool stopped_ = false;
    int64_t cost_ = -1;                     // ns, of a probed call; below 0: not measured
    bool used_ = false;                     // somebody has opened libcufile
    std::set<std::filesystem::path> cuda_;  // to be probed once that is so
};

}  // namespace reprise
