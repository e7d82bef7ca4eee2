// SPDX-License-Identifier: MIT
// sample_log NAME OUT: writes one of the logs of tests/samples.h, for tests that are scripts.
#include <cstdio>
#include <string_view>

#include "tests/samples.h"

int main(int argc, char** argv) {
    using namespace reprise::test;
    if (argc != 3) {
        std::fprintf(stderr, "usage: sample_log NAME OUT\n");
        return 2;
    }
    const std::string_view name = argv[1];
    if (name == "sample") {
        write_sample(argv[2]);
    } else if (name == "run") {
        write_sample_run(argv[2]);
    } else if (name == "run-short-read") {
        write_sample_run(argv[2], {.short_read = true});
    } else if (name == "run-missing") {
        write_sample_run(argv[2], {.missing_op = true});
    } else if (name == "run-slower") {
        write_sample_run(argv[2], {.slower = 1.1});
    } else if (name == "all-ops") {
        write_all_ops(argv[2]);
    } else if (name == "fio") {
        write_fio_sample(argv[2]);
    } else if (name == "live") {
        write_live_sample(argv[2], 500);
    } else if (name == "live-long") {
        write_live_sample(argv[2], 12'000);
    } else if (name == "live-short") {
        write_live_sample(argv[2], 100);
    } else {
        return 2;
    }
    return 0;
}
