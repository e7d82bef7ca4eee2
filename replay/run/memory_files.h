// SPDX-License-Identifier: MIT
// Keeps in memory what the job kept in /dev/shm, wherever the root lies.
#pragma once

#include <filesystem>
#include <string>

#include "replay/plan/plan.h"

namespace reprise {

/// A tmpfs on the place of /dev/shm below the root, for as long as this lives. PyTorch's loaders hand every batch to
/// the trainer through /dev/shm; on the storage below the root that would be writes which the job does not make.
///
/// Only this process and those it starts see it (mount_namespaces(7)): the process gets a mount namespace of its own,
/// which stays. Not mounted where the plan uses no file there, where a file system in memory is there already, where a
/// rule gives /dev/shm another place, or where files of it were there before the recording.
class MemoryFiles {
public:
    MemoryFiles(const Plan& plan, const std::filesystem::path& root);
    ~MemoryFiles();
    MemoryFiles(const MemoryFiles&) = delete;
    MemoryFiles& operator=(const MemoryFiles&) = delete;

    /// Descriptors of the root from before do not see the tmpfs.
    bool mounted() const { return mounted_; }
    /// A note for the summary if such files are not in memory; otherwise empty.
    const std::string& note() const { return note_; }

private:
    std::filesystem::path place_;
    bool mounted_ = false;
    std::string note_;
};

}  // namespace reprise
