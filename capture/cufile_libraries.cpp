// SPDX-License-Identifier: MIT
#include "capture/cufile_libraries.h"

#include <glob.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "capture/bpf/shared.h"

namespace reprise {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kLibrary = "libcufile.so";

constexpr ProbedFunction kCufile[] = {
    {"cuFileHandleRegister", CUFILE_REGISTER, true},
    {"cuFileHandleDeregister", CUFILE_DEREGISTER, true},
    {"cuFileRead", CUFILE_READ, true},
    {"cuFileWrite", CUFILE_WRITE, true},
    {"cuFileReadAsync", CUFILE_READ_ASYNC, false},
    {"cuFileWriteAsync", CUFILE_WRITE_ASYNC, false},
    {"cuFileBatchIOSubmit", CUFILE_BATCH_SUBMIT, false},
    {"cuFileBatchIOGetStatus", CUFILE_BATCH_STATUS, false},
    {"cuFileBatchIODestroy", CUFILE_BATCH_DESTROY, false},
};
constexpr ProbedFunction kCuda[] = {
    {"cuStreamSynchronize", CUDA_SYNC_STREAM, false},   {"cuStreamSynchronize_ptsz", CUDA_SYNC_STREAM, false},
    {"cuCtxSynchronize", CUDA_SYNC_ALL, false},         {"cuEventSynchronize", CUDA_SYNC_SOME, false},
    {"cudaStreamSynchronize", CUDA_SYNC_STREAM, false}, {"cudaDeviceSynchronize", CUDA_SYNC_ALL, false},
    {"cudaEventSynchronize", CUDA_SYNC_SOME, false},
};

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? std::string() : value;
}

void add_matches(std::vector<fs::path>& to, const std::string& pattern) {
    glob_t found{};
    if (::glob(pattern.c_str(), 0, nullptr, &found) == 0) {
        to.insert(to.end(), found.gl_pathv, found.gl_pathv + found.gl_pathc);
    }
    ::globfree(&found);
}

void add_in(std::vector<fs::path>& to, const std::string& folder) {
    if (!folder.empty()) {
        add_matches(to, folder + "/" + std::string(kLibrary) + "*");
    }
}

void add_in_all(std::vector<fs::path>& to, const std::string& folders) {
    for (size_t at = 0; at < folders.size();) {
        const size_t end = std::min(folders.find(':', at), folders.size());
        add_in(to, folders.substr(at, end - at));
        at = end + 1;
    }
}

/// The loader's cache holds the paths of all libraries, each with a zero behind it.
void add_cached(std::vector<fs::path>& to) {
    std::ifstream in("/etc/ld.so.cache", std::ios::binary);
    const std::string all{std::istreambuf_iterator<char>(in), {}};
    for (size_t at = all.find(kLibrary); at != std::string::npos; at = all.find(kLibrary, at + 1)) {
        const size_t before = all.rfind('\0', at), end = all.find('\0', at);
        const std::string path = all.substr(before + 1, end - before - 1);
        if (before != std::string::npos && end != std::string::npos && path.starts_with('/')) {
            to.emplace_back(path);
        }
    }
}

/// Folder above that of a program in PATH: /usr of /usr/bin/python3.
std::string prefix_of(const std::string& program) {
    std::error_code error;
    if (program.find('/') != std::string::npos) {
        return fs::absolute(program, error).parent_path().parent_path().string();
    }
    const std::string path = variable("PATH");
    for (size_t at = 0; !program.empty() && at < path.size();) {
        const size_t end = std::min(path.find(':', at), path.size());
        const fs::path file = fs::path(path.substr(at, end - at)) / program;
        if (::access(file.c_str(), X_OK) == 0) {
            return file.parent_path().parent_path().string();
        }
        at = end + 1;
    }
    return {};
}

void add_wheels(std::vector<fs::path>& to, const std::string& prefix) {
    if (prefix.empty()) {
        return;
    }
    for (const char* folder :
         {"/lib/python3*/site-packages", "/lib/python3*/dist-packages", "/lib/python3/dist-packages"}) {
        add_matches(to, prefix + folder + "/nvidia/*/lib/" + std::string(kLibrary) + "*");
    }
}

}  // namespace

ProbedLibrary probed_library(std::string_view path) {
    const std::string_view name = path.substr(path.rfind('/') + 1);
    if (name.starts_with(kLibrary)) {
        return ProbedLibrary::cufile;
    }
    if (name.starts_with("libcuda.so") || name.starts_with("libcudart.so")) {
        return ProbedLibrary::cuda;
    }
    return name.starts_with("nvidia-fs") ? ProbedLibrary::driver : ProbedLibrary::none;
}

std::span<const ProbedFunction> probed_functions(ProbedLibrary library) {
    switch (library) {
        case ProbedLibrary::cufile: return kCufile;
        case ProbedLibrary::cuda: return kCuda;
        case ProbedLibrary::none:
        case ProbedLibrary::driver: return {};
    }
    return {};
}

std::vector<fs::path> cufile_libraries(const std::string& program) {
    std::vector<fs::path> all;
    add_in_all(all, variable("LD_LIBRARY_PATH"));
    add_cached(all);
    for (const char* home : {"CUDA_HOME", "CUDA_PATH"}) {
        if (const std::string folder = variable(home); !folder.empty()) {
            add_in(all, folder + "/lib64");
            add_in(all, folder + "/targets/x86_64-linux/lib");
        }
    }
    add_in(all, "/usr/local/cuda*/lib64");
    add_in(all, "/usr/local/cuda*/targets/x86_64-linux/lib");
    add_in(all, "/usr/lib/x86_64-linux-gnu");
    add_wheels(all, variable("VIRTUAL_ENV"));
    add_wheels(all, variable("CONDA_PREFIX"));
    add_wheels(all, prefix_of(program));
    add_wheels(all, prefix_of("python3"));
    add_wheels(all, prefix_of("python"));
    const std::string home = variable("HOME");
    add_wheels(all, home.empty() ? home : home + "/.local");
    add_wheels(all, "/usr/local");
    std::vector<fs::path> out;
    std::error_code error;
    for (const fs::path& path : all) {
        const fs::path file = fs::canonical(path, error);
        if (!error && fs::is_regular_file(file, error) && std::find(out.begin(), out.end(), file) == out.end()) {
            out.push_back(file);
        }
    }
    return out;
}

}  // namespace reprise
