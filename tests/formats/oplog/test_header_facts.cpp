// SPDX-License-Identifier: MIT
// Facts of the header: strict values, the bytes of version 1, and what a log with a bad one says.
#include "formats/oplog/header_facts.h"

#include <doctest/doctest.h>

#include "formats/oplog/oplog.h"
#include "tests/support.h"

using namespace reprise;
using reprise::test::TempDir;

TEST_CASE("header facts: what is written is read, as the text that version 1 has") {
    Header header;
    write_fact(header, fact::call_gap, 370);
    write_fact(header, fact::accelerator_offset, -5);
    write_fact(header, fact::time_scale, 0.5);
    write_fact(header, fact::filter, "roles=dataset");
    write_fact(header, fact::read_only, true);
    write_fact(header, fact::accelerator_nvml, 3, "12 %");
    CHECK(header.extra == std::map<std::string, std::string>{{"accelerator.nvml.3", "12 %"},
                                                             {"accelerator.offset_ns", "-5"},
                                                             {"capture.call_gap_ns", "370"},
                                                             {"filter", "roles=dataset"},
                                                             {"read_only", "yes"},
                                                             {"time_scale", "0.500000"}});
    CHECK(read_fact(header, fact::call_gap) == 370);
    CHECK(read_fact(header, fact::accelerator_offset) == -5);
    CHECK(read_fact(header, fact::time_scale) == 0.5);
    CHECK(read_fact(header, fact::filter) == "roles=dataset");
    CHECK(read_fact(header, fact::read_only) == true);
    CHECK_FALSE(read_fact(header, fact::run_queue));
    CHECK(unreadable_facts(header) == 0);
    write_fact(header, fact::read_only, false);
    CHECK_FALSE(header.extra.contains("read_only"));
}

TEST_CASE("header facts: a value that is not whole is none") {
    for (const char* bad : {"", " 370", "370 ", "370ns", "0x10", "3.5", "-1", "99999999999999999999", "+3"}) {
        CAPTURE(bad);
        Header header;
        header.extra["capture.call_gap_ns"] = bad;
        CHECK_FALSE(read_fact(header, fact::call_gap));
        CHECK(unreadable_facts(header) == 1);
    }
    for (const char* bad : {"", "nan", "inf", "1,5", "1.5x"}) {
        CAPTURE(bad);
        Header header;
        header.extra["time_scale"] = bad;
        CHECK_FALSE(read_fact(header, fact::time_scale));
    }
    Header header;
    header.extra["read_only"] = "no";
    header.extra["context"] = "{";
    header.extra["capture.other"] = "whatever";
    CHECK_FALSE(read_fact(header, fact::read_only));
    CHECK_FALSE(read_fact(header, fact::context));
    CHECK(unreadable_facts(header) == 2);
}

TEST_CASE("header facts: a log with bad values says so, once, also after it was copied") {
    const TempDir dir;
    Header header;
    header.extra["capture.call_gap_ns"] = "1e3";
    header.extra["capture.cpus"] = "-4";
    LogWriter writer(dir / "a.oplog", header);
    writer.finish();
    const LogReader log(dir / "a.oplog");
    REQUIRE(log.tables().counters.size() == 1);
    CHECK(log.tables().counters[0].name == "header_values_unreadable");
    CHECK(log.tables().counters[0].severity == Severity::warning);
    CHECK(log.tables().counters[0].value == 2);
    LogWriter again(dir / "b.oplog", log.header());
    for (const Counter& counter : log.tables().counters) {
        again.count(counter);
    }
    again.finish();
    CHECK(LogReader(dir / "b.oplog").tables().counters == log.tables().counters);
}
