// SPDX-License-Identifier: MIT
// Where libcufile is looked for, and which opened files are told of.
#include "capture/cufile_libraries.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "capture/library_probes.h"
#include "formats/oplog/syscall_numbers.h"
#include "tests/formats/assemble/recording/raw_builder.h"

using namespace reprise;
using namespace reprise::test;

TEST_CASE("libcufile: libraries by their names") {
    CHECK(probed_library("/usr/lib/libcufile.so.0") == ProbedLibrary::cufile);
    CHECK(probed_library("libcufile.so.1.14.1") == ProbedLibrary::cufile);
    CHECK(probed_library("/x/libcufile_rdma.so.1") == ProbedLibrary::none);
    CHECK(probed_library("/x/libcuda.so.1") == ProbedLibrary::cuda);
    CHECK(probed_library("/x/libcudart.so.12") == ProbedLibrary::cuda);
    CHECK(probed_library("/dev/nvidia-fs3") == ProbedLibrary::driver);
    CHECK(probed_library("/libcufile.so.0/other") == ProbedLibrary::none);
    CHECK(probed_functions(ProbedLibrary::cufile).size() == 9);
    CHECK(probed_functions(ProbedLibrary::driver).empty());
}

TEST_CASE("libcufile: found where a job from here may load it, each file once") {
    const TempDir dir;
    const auto make = [&](const std::string& path) {
        std::filesystem::create_directories((dir / path).parent_path());
        std::ofstream(dir / path) << "x";
        return std::filesystem::canonical(dir / path);
    };
    const auto plain = make("lib/libcufile.so.0"),
               wheel = make("env/lib/python3.11/site-packages/nvidia/cufile/lib/libcufile.so.0");
    std::filesystem::create_symlink("libcufile.so.0", dir / "lib/libcufile.so");
    ::setenv("LD_LIBRARY_PATH", ("/nowhere:" + (dir / "lib").string()).c_str(), 1);
    const auto found = cufile_libraries((dir / "env/bin/python").string());
    ::unsetenv("LD_LIBRARY_PATH");
    CHECK(std::count(found.begin(), found.end(), plain) == 1);
    CHECK(std::count(found.begin(), found.end(), wheel) == 1);
    const auto none = cufile_libraries("");
    CHECK(std::count(none.begin(), none.end(), plain) == 0);
}

TEST_CASE("libcufile: opens of such files, as they come out of the ring") {
    RawJob job;
    const auto opened = [](RawBytes& record) { return opened_library({record.bytes().data(), record.bytes().size()}); };
    const auto found = opened(job.open("/opt/libcufile.so.0", 3, 0xf1, 7));
    REQUIRE(found);
    CHECK(found->pid == 100);
    CHECK(found->library == ProbedLibrary::cufile);
    CHECK(found->path == "/opt/libcufile.so.0");
    CHECK(!opened(job.open("/opt/libc.so.6", 3, 0xf1, 7)));
    CHECK(!opened(job.open("/opt/libcufile.so.0", -2, 0xf1, 7)));
    CHECK(!opened(job.pread(3, 0xf1, 7, 0, 100)));
    const raw_head head{};
    CHECK(!opened_library({reinterpret_cast<const uint8_t*>(&head), sizeof head}));
}
