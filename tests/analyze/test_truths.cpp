// SPDX-License-Identifier: MIT
// Accelerator utilisation of a real recording against what its own tools report.
#include <array>

#include "analyze/compare.h"
#include "analyze/summary.h"
#include "formats/import/importer.h"
#include "tests/support.h"

using namespace reprise;

TEST_CASE("DLIO Unet3D on 8 ranks: counts, bytes, epochs and their AU") {
    REPRISE_TRACE(folder, "dftracer/dlio_unet3d_hdf5_8ranks");
    std::vector<std::filesystem::path> inputs;
    for (int rank = 0; rank < 8; ++rank) {
        inputs.push_back(folder / ("trace-" + std::to_string(rank) + "-of-8.pfw.gz"));
    }
    const test::TempDir dir;
    find_importer(inputs, {}).import(inputs, dir / "a.oplog", {});
    const LogReader log(dir / "a.oplog");
    const Summary summary = summarize(log);
    REQUIRE(summary.kind(OpKind::pread));
    CHECK(summary.kind(OpKind::pread)->ops == 7200);
    CHECK(summary.kind(OpKind::pread)->bytes == 117'265'568'800);
    REQUIRE(summary.kind(OpKind::gpu_submit));
    CHECK(summary.kind(OpKind::gpu_submit)->ops == 200);
    REQUIRE(summary.devices.size() == 8);

    const DeviceUtilisation& rank = summary.devices[0];
    REQUIRE(log.tables().processes[rank.process].pid == 1028567);
    const std::array au_mlperf = {45.0, 66.2, 70.9, 71.0, 70.8};       // percent, first step left out
    const std::array elapsed = {15.773, 10.312, 9.624, 9.601, 9.625};  // s, the spans DLIOBenchmark._train
    REQUIRE(rank.epochs.size() == au_mlperf.size());
    for (size_t epoch = 0; epoch < au_mlperf.size(); ++epoch) {
        const EpochUtilisation& row = rank.epochs[epoch];
        INFO("epoch ", epoch + 1);
        CHECK(row.number == static_cast<int64_t>(epoch + 1));
        CHECK(row.complete);
        CHECK(row.submits == 5);
        CHECK(std::abs(static_cast<double>(row.end - row.begin) / 1e9 - elapsed[epoch]) < 0.0006);
        REQUIRE(row.au_mlperf());
        CHECK(std::abs(*row.au_mlperf() * 100 - au_mlperf[epoch]) < 0.051);
        CHECK(*row.au() == doctest::Approx(5 * 1.36178 / elapsed[epoch]).epsilon(0.001));
    }
    for (const DeviceUtilisation& device : summary.devices) {
        CHECK(device.busy / 25 == doctest::Approx(1.36178e9).epsilon(0.0002));
    }
}

TEST_CASE("a real log agrees with itself") {
    REPRISE_TRACE(trace, "strace/pytorch_resnet18_2workers.strace.zst");
    const test::TempDir dir;
    const std::array inputs = {trace};
    find_importer(inputs, {}).import(inputs, dir / "a.oplog", {});
    const LogReader log(dir / "a.oplog");
    const Comparison same = compare(log, log);
    CHECK(same.passed());
    CHECK(same.matched == same.a.io_ops);
    CHECK(same.missing + same.extra + same.moved + same.arguments + same.results + same.results_known == 0);
    uint64_t of_roles = 0;
    for (const RoleSummary& role : same.a.roles) {
        of_roles += role.bytes_read;
    }
    CHECK(of_roles == same.a.bytes_read);
}
