// SPDX-License-Identifier: MIT
// What `capture --gpu` says of what it collected, as sentences.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "capture/gpu/collection.h"

namespace reprise::cli {

std::vector<std::string> gpu_check_sentences(const GpuCollection::Collected& collected);
/// Writes the check's shares into a header.
std::function<void(Header&)> gpu_check_facts(const GpuCollection::Collected& collected);
/// Why there is no work to put into the log.
std::string no_gpu_sentence(const GpuCollection::Collected& collected);
std::string gpu_sentence(const GpuCollection::Collected& collected, const GpuCollection::Written& written);
/// How busy the devices of the log were.
std::vector<std::string> gpu_use_sentences(const LogReader& log);

}  // namespace reprise::cli
