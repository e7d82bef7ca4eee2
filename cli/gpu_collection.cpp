// SPDX-License-Identifier: MIT
#include "cli/gpu_collection.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <optional>

#include "analyze/summary.h"
#include "capture/gpu/nvml.h"
#include "cli/units.h"
#include "formats/import/profile/gpu_buffer.h"
#include "formats/import/profile/profile_log.h"
#include "formats/oplog/header_facts.h"
#include "formats/support/error.h"
#include "replay/plan/stored_queues.h"
#include "transform/graft.h"

namespace reprise::cli {
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
    fs::path output, folder;
    int64_t clock_at_begin = 0;
    std::optional<NvmlSampler> check;

    std::vector<std::string> graft_onto_log(const std::function<void(Header&)>& amend) const {
        kineto::Events events;
        const uint64_t files = read_gpu_buffers(folder, events);
        if (events.work.empty() && events.malformed != 0) {
            return {"what was collected cannot be read; the first fault is at byte " + events.first_malformed};
        }
        if (events.work.empty()) {
            return {files == 0 ? "no process of the job loaded CUDA: no accelerator work was collected"
                               : "the job's CUDA did no work: none was collected"};
        }
        const fs::path profile = folder / "profile.oplog", whole = folder / "whole.oplog";
        ImportOptions how;
        how.writer.sync = false;
        // Both sides went by the wall clock, at two moments: off by what it moved against the recorder's in between.
        int64_t residual = 0;
        for (const int64_t difference : events.clock_differences) {
            residual = std::max(residual, std::abs(difference - clock_at_begin));
        }
        write_profile_log(events, "cupti", profile, how);
        GraftOptions graft_how;
        graft_how.writer.derive = derive_queues;
        graft_how.amend = [&](Header& header) {
            write_fact(header, fact::accelerator_residual, std::to_string(residual));
            amend(header);
        };
        const GraftResult result = graft(LogReader(output), LogReader(profile), GraftBy::clock, whole, graft_how);
        fs::rename(whole, output);
        return {format_count(result.submissions) + " pieces of accelerator work and " + format_count(result.waits) +
                " waits for them, of " + format_count(files) + (files == 1 ? " process" : " processes") +
                "; the clocks agree within " + format_duration(residual)};
    }
};

GpuCollection::GpuCollection(const fs::path& output) : impl_(std::make_unique<Impl>()) {
    const auto library = collector();
    if (!library) {
        throw machine_error(
            std::string("--gpu: the collector ") + kName + " is not here; this reprise was built without CUPTI",
            "build it where cupti.h of the CUDA toolkit is found, or record without --gpu, profile with torch.profiler "
            "or nsys, and see reprise graft --help");
    }
    impl_->output = output;
    impl_->clock_at_begin = clock_difference();
    impl_->folder = output.string() + ".gpu";
    std::error_code error;
    fs::remove_all(impl_->folder, error);
    if (!fs::create_directory(impl_->folder, error)) {
        throw machine_error(
            "--gpu: cannot make the folder " + escape_line(impl_->folder.native()) + ": " + error.message(),
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

std::vector<std::string> GpuCollection::finish() {
    std::vector<std::string> said;
    std::vector<std::pair<size_t, std::string>> used;  // by device
    const std::vector<NvmlSampler::Device> devices = impl_->check->finish();
    if (!impl_->check->absent().empty()) {
        said.push_back("no check by NVML: " + impl_->check->absent());
    }
    for (size_t i = 0; i < devices.size(); ++i) {
        if (devices[i].samples == 0) {
            continue;
        }
        const std::string percent = format_share(devices[i].percent / 100);
        used.emplace_back(i, percent);
        said.push_back("NVML: device " + std::to_string(i) + " was in use " + percent + " of the time, by " +
                       format_count(devices[i].samples) + " samples");
    }
    try {
        const std::vector<std::string> more = impl_->graft_onto_log([&](Header& header) {
            for (const auto& [device, percent] : used) {
                write_fact(header, fact::accelerator_nvml, device, percent);
            }
        });
        said.insert(said.end(), more.begin(), more.end());
    } catch (const Error& error) {
        said.push_back("what the accelerators did is not in the log, but in " + escape_line(impl_->folder.native()) +
                       ": " + error.what());
        return said;
    }
    for (const DeviceUtilisation& device : summarize(LogReader(impl_->output)).devices) {
        said.push_back("collected: device " + std::to_string(device.device) + " was busy " +
                       format_share(device.au().value_or(0)) + " of the time");
    }
    std::error_code ignored;
    fs::remove_all(impl_->folder, ignored);
    return said;
}

}  // namespace reprise::cli
