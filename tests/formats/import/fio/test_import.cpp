// SPDX-License-Identifier: MIT
// The fio importer: both versions, several jobs, odd lines, and the recorded logs.
#include "formats/support/error.h"
#include "tests/formats/import/import_support.h"

using namespace reprise;
using namespace reprise::test;

TEST_CASE("version 3: stamps in microseconds, all actions") {
    TempDir dir;
    const LogReader log = import_text(dir,
                                      "fio version 3 iolog\n"
                                      "25 /d/a file add\n"
                                      "30 /d/b add\n"
                                      "100 /d/a file open\n"
                                      "110 /d/b open\n"
                                      "200 /d/a file read 4096 8192\n"
                                      "300 /d/b write 0 512\n"
                                      "310 /d/b sync 0 0\n"
                                      "320 /d/b datasync 0 0\n"
                                      "330 /d/b trim 1024 2048\n"
                                      "340 /d/b wait 5 0\n"
                                      "400 /d/b close\n");
    CHECK(listing(log) ==
          "1 100+0 open /d/a file = 3\n"
          "1 110+0 open /d/b = 4\n"
          "1 200+0 pread /d/a file fd3 @4096 #8192 = 8192\n"
          "1 300+0 pwrite /d/b fd4 @0 #512 = 512\n"
          "1 310+0 fsync /d/b fd4 = 0\n"
          "1 320+0 fdatasync /d/b fd4 = 0\n"
          "1 330+0 fallocate /d/b fd4 @1024 #2048 = 0\n"
          "1 400+0 close /d/b fd4 = 0\n");
    CHECK(rows(log)[0].op.flags == 0);  // only read
    CHECK(rows(log)[1].op.flags == 2);  // read-write
    CHECK(counter(log, "waits_ignored") == 1);
    CHECK(counter(log, "durations_unknown") == 8);  // of calls: `add` is none
    CHECK(counter(log, "results_not_recorded") == 8);
    CHECK(log.header().source == "fio");
}

TEST_CASE("a last line without a newline was cut") {
    TempDir dir;
    const LogReader log = import_text(dir, "fio version 3 iolog\n25 /d/a add\n30 /d/a open\n35 /d/a read 0 40");
    CHECK(listing(log) == "1 30+0 open /d/a = 3\n");
    CHECK(counter(log, "inputs_cut") == 1);
}

TEST_CASE("version 2: time passes in waits") {
    TempDir dir;
    const LogReader log = import_text(dir,
                                      "fio version 2 iolog\n/d/a add\n/d/a open\n/d/a read 0 4096\n/d/a wait 1500 "
                                      "0\n/d/a read 4096 4096\nwait 200\n/d/a close\n");
    CHECK(listing(log) ==
          "1 0+0 open /d/a = 3\n"
          "1 0+0 pread /d/a fd3 @0 #4096 = 4096\n"
          "1 0+1500 wait arg3 = 0\n"
          "1 1500+0 pread /d/a fd3 @4096 #4096 = 4096\n"
          "1 1500+200 wait arg3 = 0\n"
          "1 1700+0 close /d/a fd3 = 0\n");
    CHECK(counter(log, "durations_unknown") == 4);  // a wait has one
}

TEST_CASE("a relative name without an open is a file, not a socket") {
    TempDir dir;
    const LogReader log = import_text(dir, "fio version 2 iolog\nd/./a read 0 4096\nd/a write 4096 4096\n");
    CHECK(listing(log) ==
          "1 0+0 pread /d/a fd3 @0 #4096 = 4096\n"
          "1 0+0 pwrite /d/a fd4 @4096 #4096 = 4096\n");
    CHECK(counter(log, "relative_paths_assumed") == 2);
}

TEST_CASE("each log is a job, and so is each header inside one log") {
    TempDir dir;
    write_file(dir / "one",
               "fio version 3 iolog\n1 /d/a add\n2 /d/a open\n3 /d/a read 0 1\nfio version 3 iolog\n1 /d/b add\n2 /d/b "
               "open\n4 /d/a read 1 1\n5 /d/b read 0 1\n");
    write_file(dir / "two", "fio version 2 iolog\n/d/c add\n/d/c open\n/d/c read 0 1\n");
    const LogReader log = import_files(dir, {dir / "one", dir / "two"});
    CHECK(log.tables().processes.size() == 4);
    std::string order;
    for (const Row& row : rows(log)) {
        if (row.op.kind == OpKind::pread) {
            order += std::to_string(log.tables().tasks[row.task].tid) + row.path + " ";
        }
    }
    CHECK(order == "3/d/c 1/d/a 1/d/a 2/d/b ");
}

TEST_CASE("bad lines are counted, bad files refused") {
    TempDir dir;
    const std::string head = "fio version 3 iolog\n10 /d/a add\n20 /d/a open\n";
    for (const std::string_view bad :
         {"x /d/a read 0 1\n", "30 /d/a read 0\n", "30 /d/a fly 0 1\n", "30 /d/a read 0 99999999999999999999\n",
          "30 /d/a read 9223372036854775807 1\n", "99999999999999999999 /d/a read 0 1\n", "30\n", "30 read 0 1\n",
          "30 /d/a read -5 1\n"}) {
        CAPTURE(bad);
        const LogReader log = import_text(dir, head + std::string(bad) + "40 /d/a close\n");
        CHECK(counter(log, "malformed_lines") == 1);
        CHECK(log.op_count() == 2);
    }
    CHECK_THROWS_WITH_AS(import_text(dir, "fio version 1 iolog\n0, 1, 2\n"), doctest::Contains("versions 2 and 3"),
                         Error);
    CHECK_THROWS_WITH_AS(import_text(dir, "0, 1, 2\n", "fio"), doctest::Contains("input:1: expected"), Error);
    CHECK_THROWS_WITH_AS(import_text(dir, "", "fio"), doctest::Contains("is empty"), Error);
}

TEST_CASE("the recorded fio logs come in whole") {
    REPRISE_TRACE(mixed, "fio/fio_randrw.v3.iolog");
    REPRISE_TRACE(sequential, "fio/fio_seqread_4files.v3.iolog");
    TempDir dir;
    const LogReader log = import_files(dir, {mixed, sequential});
    CHECK(log.tables().processes.size() == 3);
    CHECK(log.tables().files.size() == 1 + 5);
    CHECK(counter(log, "malformed_lines") == 0);
    uint64_t reads = 0, writes = 0;
    for (const Row& row : rows(log)) {
        reads += row.op.kind == OpKind::pread;
        writes += row.op.kind == OpKind::pwrite;
    }
    MESSAGE(reads << " reads, " << writes << " writes");
    CHECK(reads + writes + 10 == log.op_count());
}
