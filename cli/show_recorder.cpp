// SPDX-License-Identifier: MIT
#include "cli/show_recorder.h"

#include <optional>

#include "cli/units.h"
#include "formats/oplog/header_facts.h"
#include "formats/raw/costs.h"

namespace reprise::cli {
namespace {

RecorderCosts costs_of(const Header& header) {
    return RecorderCosts::of(read_fact(header, fact::event_costs).value_or(std::string()));
}

}  // namespace

std::string dear_memory_sentence(const Header& header) {
    constexpr int64_t kLeast = 1'000'000;
    const int64_t pages = read_fact(header, fact::dear_pages).value_or(0),
                  more = read_fact(header, fact::dear).value_or(0);
    const int64_t usual = costs_of(header).page, compute = read_fact(header, fact::compute).value_or(0);
    if (pages <= 0 || more < kLeast) {
        return {};
    }
    return counted(static_cast<uint64_t>(pages), "new page") + " of memory took " + format_duration(more / pages) +
           " more than the usual " + format_duration(usual) +
           ", as memory does that a host took back: " + format_duration(more) + " left out of compute, " +
           format_share(static_cast<double>(more) / static_cast<double>(compute + more)) + " of it";
}

std::string taken_off_sentence(const Header& header) {
    const std::optional<int64_t> own = read_fact(header, fact::taken_off);
    return own ? format_duration(*own) + " of the recorder's own between calls, left out of compute" : std::string();
}

void put_recorder_facts(Json& json, const Header& header) {
    json["dear_pages"] = read_fact(header, fact::dear_pages).value_or(0);
    json["dear_ns"] = read_fact(header, fact::dear).value_or(0);
    json["usual_page_ns"] = costs_of(header).page;
    json["compute_ns"] = read_fact(header, fact::compute).value_or(0);
    json["taken_off_ns"] = read_fact(header, fact::taken_off).value_or(0);
}

}  // namespace reprise::cli
