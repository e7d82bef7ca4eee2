// SPDX-License-Identifier: MIT
// Figures from elsewhere beside a sweep.
#include "cli/sweep_beside.h"

#include <doctest/doctest.h>

#include "formats/support/error.h"
#include "tests/support.h"

namespace reprise::cli {
namespace {

using test::TempDir;
using test::write_file;

const std::vector<std::string> kColumns{"elapsed_s", "device_read_bytes"};

struct File {
    TempDir dir;
    SweepBeside read(const std::string& text) const {
        write_file(dir / "real.csv", text);
        return read_beside("real=" + (dir / "real.csv").string(), "ratio", kColumns, {"ratio", "gpu-speed"});
    }
    std::string problem(const std::string& text) const {
        try {
            read(text);
        } catch (const Error& error) {
            return error.what();
        }
        return "";
    }
};

}  // namespace

TEST_CASE("rows with the same place are runs: their median and range") {
    const SweepBeside real = File().read(
        "ratio,device_read_bytes,elapsed_s,other\r\n"
        "1,100,20,x\n1,300,10,x\n1,200,40,x\n2,7,,\n\"4\",,3.5,\n4,,4.5,\n");
    CHECK(real.name == "real");
    REQUIRE(real.find("1", "elapsed_s"));
    CHECK(real.find("1", "elapsed_s")->median == 20);
    CHECK(real.find("1", "elapsed_s")->low == 10);
    CHECK(real.find("1", "elapsed_s")->high == 40);
    CHECK(real.find("1", "elapsed_s")->runs == 3);
    CHECK(real.find("1", "device_read_bytes")->median == 200);
    CHECK(real.find("2", "device_read_bytes")->median == 7);
    CHECK(real.find("2", "elapsed_s") == nullptr);
    CHECK(real.find("4", "elapsed_s")->median == 4);
    CHECK(real.find("8", "elapsed_s") == nullptr);
}

TEST_CASE("a row may say its own interval, as the CSV of a sweep does") {
    const SweepBeside real = File().read("ratio,elapsed_s,elapsed_s_low,elapsed_s_high\n1,20,18,25\n");
    CHECK(real.find("1", "elapsed_s")->low == 18);
    CHECK(real.find("1", "elapsed_s")->high == 25);
}

TEST_CASE("what is no such file is refused with its reason") {
    const File file;
    CHECK(file.problem("memory,elapsed_s\n1,2\n").find("has no column 'ratio'") != std::string::npos);
    CHECK(file.problem("ratio,gpu-speed,elapsed_s\n1,2,2\n2,1,2\n").find("rows of different 'gpu-speed' (2, 1)") !=
          std::string::npos);
    CHECK(file.problem("ratio,gpu-speed,elapsed_s\n1,2,2\n2,2,2\n").empty());
    CHECK(file.problem("ratio,elapsed_s\n1,fast\n").find("line 2: 'fast' of column elapsed_s is no number") !=
          std::string::npos);
    CHECK(file.problem("ratio,speed\n1,2\n").find("has no row with a figure") != std::string::npos);
    CHECK(file.problem("").find("cannot be read as CSV") != std::string::npos);
    CHECK_THROWS_AS(read_beside("real.csv", "ratio", kColumns), Error);
    CHECK_THROWS_AS(read_beside("=x", "ratio", kColumns), Error);
    CHECK_THROWS_AS(read_beside("real=/nowhere/x.csv", "ratio", kColumns), Error);
}

}  // namespace reprise::cli
