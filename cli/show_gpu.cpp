// SPDX-License-Identifier: MIT
#include "cli/show_gpu.h"

#include "analyze/summary.h"
#include "cli/units.h"
#include "formats/oplog/header_facts.h"

namespace reprise::cli {
namespace {

std::string percent(const NvmlSampler::Device& device) { return format_share(device.percent / 100); }

}  // namespace

std::vector<std::string> gpu_check_sentences(const GpuCollection::Collected& collected) {
    std::vector<std::string> said;
    if (!collected.no_check.empty()) {
        said.push_back("NVML not available: " + collected.no_check);
    }
    for (size_t i = 0; i < collected.devices.size(); ++i) {
        const NvmlSampler::Device& device = collected.devices[i];
        if (device.samples != 0) {
            said.push_back("NVML: device " + std::to_string(i) + " utilisation " + percent(device) + ", " +
                           counted(device.samples, "sample"));
        }
    }
    return said;
}

std::function<void(Header&)> gpu_check_facts(const GpuCollection::Collected& collected) {
    return [&collected](Header& header) {
        for (size_t i = 0; i < collected.devices.size(); ++i) {
            if (collected.devices[i].samples != 0) {
                write_fact(header, fact::accelerator_nvml, i, percent(collected.devices[i]));
            }
        }
    };
}

std::string no_gpu_sentence(const GpuCollection::Collected& collected) {
    if (!collected.malformed.empty()) {
        return "cannot read the GPU events; first error at " + collected.malformed;
    }
    return collected.files == 0 ? "no process loaded CUDA, so there are no GPU events"
                                : "CUDA did no work, so there are no GPU events";
}

std::string gpu_sentence(const GpuCollection::Collected& collected, const GpuCollection::Written& written) {
    return counted(written.graft.submissions, "GPU submission") + " and " + counted(written.graft.waits, "wait") +
           " in " + counted(collected.files, "process", "processes") + ", clock residual " +
           format_duration(written.residual_ns);
}

std::vector<std::string> gpu_use_sentences(const LogReader& log) {
    std::vector<std::string> said;
    for (const DeviceUtilisation& device : summarize(log).devices) {
        said.push_back("collected: device " + std::to_string(device.device) + " busy " +
                       format_share(device.au().value_or(0)) + " of the time");
    }
    return said;
}

}  // namespace reprise::cli
