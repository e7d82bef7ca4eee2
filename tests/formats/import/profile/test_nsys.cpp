// SPDX-License-Identifier: MIT
// The importer of Nsight Systems' exports.
#include <algorithm>

#include "formats/import/profile/nsys_events.h"
#include "formats/support/error.h"
#include "tests/formats/import/import_support.h"
#include "tests/formats/import/profile/nsys_file.h"

using namespace reprise;
using namespace reprise::test;

namespace {

LogReader import_sql(const TempDir& dir, const std::string& sql) {
    write_sqlite(dir / "report.sqlite", sql);
    const std::vector<std::filesystem::path> inputs{dir / "report.sqlite"};
    const Importer& importer = find_importer(inputs, {});
    CHECK(importer.name == "nsys");
    importer.import(inputs, dir / "out.oplog", {});
    return LogReader(dir / "out.oplog");
}

std::string work(const LogReader& log) {
    std::string text;
    for (const Row& row : rows(log)) {
        text += std::to_string(log.tables().tasks[row.task].tid) + " " + std::to_string(row.op.begin) + "+" +
                std::to_string(row.op.duration) + " " + std::string(info(row.op.kind).name) + " " +
                std::to_string(row.op.arg) + "/" + std::to_string(row.op.flags) + " #" + std::to_string(row.op.size) +
                " " + std::string(log.tables().strings[row.op.text]) + "\n";
    }
    return text;
}

const std::string kThread = nsys_tid(20, 21), kProcess = nsys_tid(20, 0);

std::string launch(int start, int end, int correlation, int name = 2) {
    return "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (" + std::to_string(start) + "," + std::to_string(end) +
           "," + kThread + "," + std::to_string(correlation) + "," + std::to_string(name) + ",0);\n";
}
std::string kernel(int start, int end, int correlation, int stream, int device = 0) {
    return "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (" + std::to_string(start) + "," + std::to_string(end) + "," +
           std::to_string(device) + ",1," + std::to_string(stream) + "," + std::to_string(correlation) + "," +
           kProcess + ",1,1);\n";
}

}  // namespace

TEST_CASE("kernels, copies and fills of streams and devices are submitted where they were launched") {
    TempDir dir;
    const LogReader log = import_sql(
        dir, nsys_tables() + launch(1000, 1100, 1) + launch(2000, 2100, 2) + launch(3000, 3100, 3) +
                 launch(4000, 4100, 4) + launch(500'000, 500'100, 5) + kernel(5000, 105'000, 1, 7) +
                 kernel(6000, 56'000, 2, 13) + kernel(7000, 207'000, 3, 7, 1) + kernel(106'000, 120'000, 4, 7) +
                 "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (501000,502000,0,7,5," + kProcess + ",100,1);\n" +
                 "INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (600000,602000,0,7,0," + kProcess + ",100);\n");
    CHECK(work(log) ==
          "21 0+0 gpu_submit 0/7 #115000 gemm\n"
          "21 1000+0 gpu_submit 0/13 #50000 gemm\n"
          "21 2000+0 gpu_submit 1/7 #200000 gemm\n"
          "21 499000+0 gpu_submit 0/7 #1000 memcpy\n"
          "8 599000+0 gpu_submit 0/7 #2000 memset\n");
    CHECK(counter(log, "work_merged") == 1);
    CHECK(counter(log, "work_without_launch") == 1);
    CHECK(log.header().origin_unix_ns == 1'000'001'000);
    CHECK(log.header().source == "nsys");
    CHECK(log.header().extra.at("accelerator.source") == "nsys");
}

TEST_CASE("calls that synchronise wait for their stream, or for every stream of the device that works") {
    TempDir dir;
    const LogReader log =
        import_sql(dir, nsys_tables() + launch(1000, 1100, 1) + launch(2000, 2100, 2) + launch(2500, 2600, 3) +
                            kernel(5000, 105'000, 1, 7) + kernel(6000, 206'000, 2, 13) + kernel(2700, 2800, 3, 20) +
                            launch(3000, 106'000, 8, 4) +
                            "INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (3000,106000,0,7,8," + kProcess +
                            ",3);\n" + launch(107'000, 207'000, 9, 3));
    CHECK(work(log) ==
          "21 0+0 gpu_submit 0/7 #100000 gemm\n"
          "21 1000+0 gpu_submit 0/13 #200000 gemm\n"
          "21 1500+0 gpu_submit 0/20 #100 gemm\n"
          "21 2000+103000 gpu_wait 0/7 #0 \n"
          "21 106000+100000 gpu_wait 0/13 #0 \n");
}

TEST_CASE("steps come from NVTX ranges, waits from the system's libraries") {
    TempDir dir;
    const LogReader log = import_sql(
        dir, nsys_tables() + launch(1000, 1100, 1) + kernel(2000, 3000, 1, 7) +
                 "INSERT INTO NVTX_EVENTS VALUES (900,5000,59,NULL," + kThread + ",7),(5000,6000,59,'step 13'," +
                 kThread + ",NULL),(100,200,59,'forward'," + kThread + ",NULL),(300,NULL,34,'step 1'," + kThread +
                 ",NULL);\n" + "INSERT INTO OSRT_API VALUES (3500,4500," + kThread + ",5,0),(4600,4700," + kThread +
                 ",6,0),(3600,3700," + kThread + ",5,1);\n");
    CHECK(work(log) ==
          "21 0+0 marker 12/1 #0 step\n"
          "21 100+0 gpu_submit 0/7 #1000 gemm\n"
          "21 2600+1000 wait 0/0 #0 \n"
          "21 4100+0 marker 12/2 #0 step\n"
          "21 4100+0 marker 13/1 #0 step\n"
          "21 5100+0 marker 13/2 #0 step\n");
    CHECK(counter(log, "os_calls_left_out") == 1);
    CHECK(counter(log, "malformed_events") == 1);
}

TEST_CASE("work that overlaps on one stream counts once; rows that cannot be are counted") {
    TempDir dir;
    const LogReader log =
        import_sql(dir, nsys_tables() + launch(1000, 1100, 1) + launch(1200, 1300, 2) + kernel(5000, 105'000, 1, 7) +
                            kernel(50'000, 125'000, 2, 7) + kernel(9000, 8000, 0, 7) + kernel(9000, 9500, 0, -7));
    CHECK(work(log) == "21 0+0 gpu_submit 0/7 #120000 gemm\n");
    CHECK(counter(log, "work_overlapping") == 1);
    CHECK(counter(log, "malformed_events") == 2);
}

TEST_CASE("what is no export of Nsight Systems, or holds no work, is refused in plain words") {
    TempDir dir;
    CHECK_THROWS_WITH_AS(import_sql(dir, nsys_tables()), doctest::Contains("no accelerator work"), Error);
    TempDir other;
    CHECK_THROWS_WITH_AS(import_sql(other, "CREATE TABLE t (a);"), doctest::Contains("no table StringIds"), Error);
    // Tables of such a name that are views of something else are not looked at.
    TempDir view;
    CHECK_THROWS_WITH_AS(import_sql(view, "CREATE TABLE t (id, value); CREATE VIEW StringIds AS SELECT * FROM t;"),
                         doctest::Contains("no table StringIds"), Error);
    write_file(dir / "cut.sqlite", std::string("SQLite format 3\0", 16) + std::string(200, 'x'));
    kineto::Events events;
    CHECK_THROWS_WITH_AS(nsys::read_events(dir / "cut.sqlite", events), doctest::Contains("SQLite"), Error);
}

TEST_CASE("a real export: the start of a job, with calls of the system's libraries") {
    REPRISE_TRACE(path, "nsys/startup_osrt.sqlite");
    kineto::Events events;
    nsys::read_events(path, events);
    CHECK(events.malformed == 0);
    CHECK(events.calls.size() == 23);
    REQUIRE(events.work.size() == 1);
    CHECK(events.names[events.work[0].name] == "memset");
    CHECK(events.work[0].stream == 13);
    CHECK(events.work[0].begin == 1763851018220901611 + 554351169);
    CHECK(events.work[0].duration == 554352641 - 554351169);
    CHECK(events.os_calls + events.blocked.size() == 698);
    CHECK(events.host == "vengeance");
}
