// SPDX-License-Identifier: MIT
#include "capture/gpu/collection.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <optional>

#include "formats/import/profile/gpu_buffer.h"
#include "formats/import/profile/profile_log.h"
#include "formats/oplog/header_facts.h"
#include "formats/support/error.h"

namespace reprise {
namespace {

namespace fs = std::filesystem;

constexpr const char* kName = "libreprise_cupti.so";

/// Installed beside this program (../lib/reprise), or in the build folder.
std::optional<fs::path> collector() {
    std::error_code error;
    if (const char* given = std::getenv("REPRISE_CUPTI_LIBRARY"); given && *given) {
        return fs::is_regular_file(given, error) ? std::optional(fs::path(given)) : std::nullopt;
    }
    const fs::path self = fs::read_symlink("/proc/self/exe", error).parent_path();
    for (const fs::path& path : {self / kName, self.parent_path() / "lib/reprise" / kName}) {
        if (fs::is_regular_file(path, error)) {
            return path;
        }
    }
    return std::nullopt;
}

/// The wall clock less the recorder's.
int64_t clock_difference() {
    timespec wall{}, own{};
    clock_gettime(CLOCK_MONOTONIC, &own);
    clock_gettime(CLOCK_REALTIME, &wall);
    return (int64_t{wall.tv_sec} - own.tv_sec) * 1'000'000'000 + wall.tv_nsec - own.tv_nsec;
}

}  // namespace

struct GpuCollection::Impl {
    fs::path folder;
    int64_t clock_at_begin = 0;
    std::optional<NvmlSampler> check;
    kineto::Events events;
    Collected collected;

    /// Both sides went by the wall clock, at two moments: off by what it moved against the recorder's in between.
    int64_t residual() const {
        int64_t most = 0;
        for (const int64_t difference : events.clock_differences) {
            most = std::max(most, std::abs(difference - clock_at_begin));
        }
        return most;
    }
};

GpuCollection::GpuCollection(const fs::path& output) : impl_(std::make_unique<Impl>()) {
    const auto library = collector();
    if (!library) {
        throw machine_error(
            std::string("--gpu: the collector ") + kName + " was not found; this reprise was built without CUPTI",
            "build it where cupti.h of the CUDA toolkit is found, or record without --gpu, profile with torch.profiler "
            "or nsys, and see reprise graft --help");
    }
    impl_->clock_at_begin = clock_difference();
    impl_->folder = output.string() + ".gpu";
    std::error_code error;
    fs::remove_all(impl_->folder, error);
    if (!fs::create_directory(impl_->folder, error)) {
        throw machine_error(
            "--gpu: cannot create the directory " + escape_line(impl_->folder.native()) + ": " + error.message(),
            "write the log where folders can be made");
    }
    // The job may run as somebody else.
    ::chmod(impl_->folder.c_str(), S_ISVTX | 0777);
    ::setenv("CUDA_INJECTION64_PATH", fs::absolute(*library).c_str(), 1);
    ::setenv("REPRISE_GPU_DIR", fs::absolute(impl_->folder).c_str(), 1);
    const char* nvml = std::getenv("REPRISE_NVML_LIBRARY");
    impl_->check.emplace(nvml != nullptr ? nvml : "libnvidia-ml.so.1");
}

GpuCollection::~GpuCollection() = default;

std::string GpuCollection::folder() const { return fs::absolute(impl_->folder).lexically_normal().native(); }

const GpuCollection::Collected& GpuCollection::collect() {
    Collected& found = impl_->collected;
    found.devices = impl_->check->finish();
    found.no_check = impl_->check->absent();
    found.files = read_gpu_buffers(impl_->folder, impl_->events);
    found.work = !impl_->events.work.empty();
    found.malformed = impl_->events.malformed != 0 ? impl_->events.first_malformed : std::string();
    return found;
}

GpuCollection::Written GpuCollection::write(const fs::path& output,
                                            const std::function<void(const fs::path&, const WriterOptions&)>& assemble,
                                            const GraftOptions& options) {
    const fs::path profile = impl_->folder / "profile.oplog", recording = impl_->folder / "recording.oplog";
    Written written;
    written.residual_ns = impl_->residual();
    ImportOptions scratch;
    scratch.writer.sync = false;
    write_profile_log(impl_->events, "cupti", profile, scratch);
    assemble(recording, scratch.writer);
    GraftOptions how = options;
    how.amend = [&](Header& header) {
        write_fact(header, fact::accelerator_residual, std::to_string(written.residual_ns));
        if (options.amend) {
            options.amend(header);
        }
    };
    written.graft = graft(LogReader(recording), LogReader(profile), GraftBy::clock, output, how);
    return written;
}

void GpuCollection::remove() {
    std::error_code ignored;
    fs::remove_all(impl_->folder, ignored);
}

}  // namespace reprise
