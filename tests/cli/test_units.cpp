// SPDX-License-Identifier: MIT
// Quantities as people read and write them.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "cli/units.h"
#include "formats/support/error.h"

namespace reprise::cli {

TEST_CASE("quantities are written with three digits and a unit") {
    CHECK(format_count(0) == "0");
    CHECK(format_count(999) == "999");
    CHECK(format_count(1000) == "1,000");
    CHECK(format_count(18446744073709551615ULL) == "18,446,744,073,709,551,615");

    CHECK(format_bytes(0) == "0 B");
    CHECK(format_bytes(1023) == "1023 B");
    CHECK(format_bytes(1536) == "1.50 KiB");
    CHECK(format_bytes(64ULL << 20) == "64.0 MiB");
    CHECK(format_bytes((1ULL << 20) - 1) == "1.00 MiB");
    CHECK(format_bytes(18446744073709551615ULL) == "16.0 EiB");

    CHECK(format_duration(0) == "0 ns");
    CHECK(format_duration(999) == "999 ns");
    CHECK(format_duration(1250000) == "1.25 ms");
    CHECK(format_duration(-1250000) == "-1.25 ms");
    CHECK(format_duration(999999) == "1.00 ms");
    CHECK(format_duration(12300000000) == "12.3 s");
    CHECK(format_duration(59999999999) == "1 min 00 s");
    CHECK(format_duration(185000000000) == "3 min 05 s");
    CHECK(format_duration(7380000000000) == "2 h 03 min");
    CHECK(format_duration(std::numeric_limits<std::int64_t>::min()).starts_with("-"));

    CHECK(format_rate(1.5 * 1024 * 1024) == "1.50 MiB/s");
    CHECK(format_rate(std::nan("")) == "-");
    CHECK(format_rate(-1) == "-");
    CHECK(format_count_rate(950) == "950 ops/s");
    CHECK(format_count_rate(1200000) == "1.20 M ops/s");
    CHECK(format_share(0.1234) == "12.3 %");
    CHECK(format_share(std::nan("")) == "-");
}

TEST_CASE("sizes are read in the usual spellings") {
    CHECK(parse_bytes("0", "--x") == 0);
    CHECK(parse_bytes("4096", "--x") == 4096);
    CHECK(parse_bytes("64KiB", "--x") == 65536);
    CHECK(parse_bytes("64k", "--x") == 65536);
    CHECK(parse_bytes("1.5 GiB", "--x") == 1610612736);
    CHECK(parse_bytes("2GB", "--x") == 2000000000);
    CHECK(parse_bytes("18446744073709551615", "--x") == 18446744073709551615ULL);
    for (const char* wrong :
         {"", "k", "-1", "1x", "nan", "inf", "18446744073709551616", "16777216T", "1e400", "0x10", "1,5k", " 1"}) {
        CAPTURE(wrong);
        CHECK_THROWS_AS(parse_bytes(wrong, "--size"), Error);
    }
    try {
        parse_bytes("9 bananas\n", "--size");
        FAIL("expected an error");
    } catch (const Error& error) {
        CHECK(error.code() == ExitCode::usage);
        const std::string text = error.what();
        CHECK(text.find("--size is '9 bananas\\n'") != std::string::npos);
        CHECK(text.find("64KiB") != std::string::npos);
    }
}

TEST_CASE("times are read in the usual spellings") {
    CHECK(parse_duration("250ns", "--t") == 250);
    CHECK(parse_duration("10us", "--t") == 10000);
    CHECK(parse_duration("1.5s", "--t") == 1500000000);
    CHECK(parse_duration("2", "--t") == 2000000000);
    CHECK(parse_duration("2min", "--t") == 120000000000);
    CHECK(parse_duration("1 h", "--t") == 3600000000000);
    CHECK_THROWS_AS(parse_duration("-5ms", "--t"), Error);
    CHECK_THROWS_AS(parse_duration("5 m", "--t"), Error);
    CHECK_THROWS_AS(parse_duration("9999999999999h", "--t"), Error);
}

}  // namespace reprise::cli
