// SPDX-License-Identifier: MIT
// Loading a model before it serves or trains.
#pragma once

#include <cstdint>

namespace reprise {

/// A section with workload=model-load: safetensors files, read by each rank.
struct ModelLoadJob {
    int64_t model_size = 0;            // bytes of all tensors
    uint64_t files = 1, tensors = 32;  // of each file
    enum class By : uint8_t { mmap, read, eager } by = By::mmap;
    enum class Split : uint8_t { all, files, slices } split = Split::all;
    uint64_t ranks = 1;
    int64_t bs = 0;  // bytes of each read; 0: a tensor as a whole
    bool direct = false;

    /// Of file `number`, bytes of its tensors.
    int64_t data_size(uint64_t number) const {
        const auto of = static_cast<int64_t>(files);
        return model_size / of + (static_cast<int64_t>(number) < model_size % of ? 1 : 0);
    }
    /// The length of the header, then the header: names, types, shapes and places of the tensors.
    int64_t header_size() const {
        constexpr int64_t kEach = 112, kLength = 8;
        return kLength + (kEach * static_cast<int64_t>(tensors) + 7) / 8 * 8;
    }
};

}  // namespace reprise
