// SPDX-License-Identifier: MIT
// Where libraries lie whose functions are probed: libcufile, and CUDA's that wait for what it was asked.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace reprise {

struct ProbedFunction {
    const char* name;
    uint32_t function;  ///< enum probed_function (capture/bpf/shared.h)
    bool required;      ///< a library without it is not the one that is meant
};

enum class ProbedLibrary : uint8_t { none, cufile, cuda, driver };
/// By the name of an opened file: libcufile.so*, libcuda.so* and libcudart.so*, or the driver that moves data past
/// system calls (nvidia-fs*).
ProbedLibrary probed_library(std::string_view path);
std::span<const ProbedFunction> probed_functions(ProbedLibrary library);

/// The places of libcufile that a job started from here may load: LD_LIBRARY_PATH, the cache of the loader, CUDA's
/// usual folders, wheels of the Python that `program` (or the one in PATH) belongs to. Each file once.
std::vector<std::filesystem::path> cufile_libraries(const std::string& program);

}  // namespace reprise
