// SPDX-License-Identifier: MIT
// Where programs and the system's state lie.
#include "formats/oplog/installed_paths.h"

#include <doctest/doctest.h>

using namespace reprise;

TEST_CASE("installed paths: by prefix, which ends at a component, and by directories of package managers") {
    for (const char* path : {"/usr", "/usr/lib/x.so", "/etc/passwd", "/proc/self/maps", "/opt/tool/bin/x",
                             "/home/a/env/lib/python3.11/os.py", "/srv/site-packages/torch/x.py",
                             "/home/a/x-1.0.dist-info/RECORD", "/home/a/miniconda3/bin/x", "/home/node_modules"}) {
        CAPTURE(path);
        CHECK(is_installed(path));
    }
    for (const char* path : {"/", "/usrdata/x", "/home/a/src/x.py", "/home/a/.git/objects/12/34", "/opt/data/x",
                             "/opt/ml/input/x", "/home/pythonic/x", "/data/usr/x", "/etcetera", ""}) {
        CAPTURE(path);
        CHECK(!is_installed(path));
    }
}

TEST_CASE("installed paths: what a program needs, and data that a job keeps there") {
    constexpr uint64_t kLarge = 40 << 20, kSmall = 10'000;
    for (const char* path :
         {"/usr/lib/x86_64-linux-gnu/libc.so.6", "/usr/include/c++/12/vector", "/usr/lib/gcc/x86_64-linux-gnu/12/cc1.a",
          "/opt/conda/lib/python3.11/site-packages/torch/lib/libtorch_cuda.so", "/usr/lib/locale/locale-archive",
          "/home/a/env/lib/python3.11/site-packages/torch/x.pyc", "/var/lib/dpkg/status", "/etc/large", "/proc/kcore",
          "/opt/tool/lib/x.jar", "/usr/local/bin/tool", "/home/a/node_modules/x/index.js", "/usr/share/fonts/x/y"}) {
        CAPTURE(path);
        CHECK(is_part_of_program(path, kLarge));
        CHECK(is_part_of_program(path, kSmall));
    }
    for (const char* path : {"/var/lib/mydb/a.bin", "/opt/mydata/a", "/usr/local/data/images/1.jpg", "/var/spool/x/1",
                             "/run/media/me/disk/a.csv", "/var/libdata", "/data/x", "/home/a/x.py"}) {
        CAPTURE(path);
        CHECK(!is_part_of_program(path, kLarge));
        CHECK(!is_part_of_program(path, kSmall));
    }
    for (const char* path : {"/usr/share/mydata/a.bin", "/home/a/node_modules/data/a.bin", "/home/a/conda/set/a.npy",
                             "/home/a/env/lib/python3.11/site-packages/model/weights.pt", "/nix/x.dat"}) {
        CAPTURE(path);
        CHECK(!is_part_of_program(path, kLarge));
        CHECK(is_part_of_program(path, kSmall));
    }
}
