// SPDX-License-Identifier: MIT
// Runs another program, or this one, and keeps what belongs to a mounted disk image: processes, loop devices, mounts.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace reprise::cli {

struct ProgramRun {
    int code = 0;        // exit code; 128 + the signal that ended it; 127: it is not there
    std::string output;  // of both streams, without the last line break
};
ProgramRun run_program(const std::vector<std::string>& words);
/// The same; throws Error (machine) where it does not return 0.
std::string must_run(const std::vector<std::string>& words);

/// A loop device on a file, as long as this lives.
class LoopDevice {
public:
    /// Throws Error (machine).
    explicit LoopDevice(const std::filesystem::path& file);
    ~LoopDevice();
    LoopDevice(const LoopDevice&) = delete;
    LoopDevice& operator=(const LoopDevice&) = delete;
    const std::string& name() const { return name_; }

private:
    std::string name_;
};

/// A device mounted at a folder, as long as this lives.
class MountedDevice {
public:
    /// `options`: of mount -o; may be empty. Throws Error (machine).
    MountedDevice(const std::string& device, std::filesystem::path folder, const std::string& options);
    ~MountedDevice();
    MountedDevice(const MountedDevice&) = delete;
    MountedDevice& operator=(const MountedDevice&) = delete;

private:
    std::filesystem::path folder_;
};

/// `reprise disk`, serving an image, as long as this lives.
class DiskServer {
public:
    /// Throws Error (machine) where it does not come up.
    DiskServer(const std::filesystem::path& image, const std::filesystem::path& log, std::filesystem::path folder);
    ~DiskServer();
    DiskServer(const DiskServer&) = delete;
    DiskServer& operator=(const DiskServer&) = delete;

private:
    std::filesystem::path folder_;
    pid_t pid_ = -1;
};

/// Unmounts what a killed process left mounted at a folder, and detaches the loop devices of a file.
void unmount_left(const std::filesystem::path& folder);
void detach_left(const std::filesystem::path& file);

}  // namespace reprise::cli
