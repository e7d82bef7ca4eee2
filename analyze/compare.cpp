// SPDX-License-Identifier: MIT
#include "analyze/compare.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "analyze/align.h"
#include "formats/oplog/header_facts.h"
#include "formats/support/error.h"
#include "formats/support/escape.h"
#include "formats/support/read_quantity.h"

namespace reprise {
namespace {

using Json = nlohmann::ordered_json;

struct CheckInfo {
    std::string_view name;
    Check::Unit unit;
    bool fails_by_default;  // on any difference
};

// In the order they are shown. Times differ between any two runs, so they fail only on request.
constexpr CheckInfo kChecks[] = {
    {"ops", Check::Unit::count, true},  // missing and extra
    {"bytes", Check::Unit::bytes, true},   {"results", Check::Unit::count, true},
    {"errors", Check::Unit::count, false},  // calls that failed
    {"order", Check::Unit::count, true},   {"arguments", Check::Unit::count, true},
    {"elapsed", Check::Unit::ns, false},   {"throughput", Check::Unit::bytes_per_s, false},
    {"latency", Check::Unit::ns, false},  // mean over all io ops
    {"au", Check::Unit::share, false},     {"au_mlperf", Check::Unit::share, false},
    {"stall", Check::Unit::ns, false},
};

std::string check_names() {
    std::string names;
    for (const CheckInfo& check : kChecks) {
        names += (names.empty() ? "" : ", ") + std::string(check.name);
    }
    return names;
}

// Mean time in a call over the ops with trait io (ns).
std::optional<double> mean_latency(const Summary& summary) {
    double time = 0;
    uint64_t ops = 0;
    for (const KindSummary& row : summary.kinds) {
        if (!info(row.kind).is(Trait::io)) {
            continue;
        }
        time += row.time;
        ops += row.ops;
    }
    if (ops == 0) {
        return std::nullopt;
    }
    return time / static_cast<double>(ops);
}

bool within(const Check& check, const Tolerance& tolerance) {
    if (!check.a || !check.b) {
        return !check.a && !check.b;
    }
    double most = tolerance.value;
    if (tolerance.percent) {
        most = check.unit == Check::Unit::share ? tolerance.value / 100 : std::abs(*check.a) * tolerance.value / 100;
    }
    return check.difference <= most * (1 + 1e-12);
}

class Checks {
public:
    Checks(const CompareOptions& options, Comparison& comparison) : options_(options), comparison_(comparison) {}

    void run() {
        const Summary &a = comparison_.a, &b = comparison_.b;
        const auto number = [](auto value) { return std::optional<double>(static_cast<double>(value)); };
        add(number(a.io_ops), number(b.io_ops), static_cast<double>(comparison_.missing + comparison_.extra));
        add(number(a.bytes() - comparison_.not_performed_bytes), number(b.bytes()), -1);
        add(number(0), number(comparison_.results), -1);
        add(number(a.errors), number(b.errors), -1);
        add(number(0), number(comparison_.moved), -1);
        add(number(0), number(comparison_.arguments), -1);
        add(number(a.elapsed()), number(b.elapsed()), -1);
        add(number(a.bytes_per_second()), number(b.bytes_per_second()), -1);
        add(mean_latency(a), mean_latency(b), -1);
        add(a.au(), b.au(), -1);
        add(a.au_mlperf(), b.au_mlperf(), -1);
        const bool stalls = !a.devices.empty() || !b.devices.empty();
        add(stalls ? number(a.stall()) : std::nullopt, stalls ? number(b.stall()) : std::nullopt, -1);
    }

private:
    // difference below 0: that of the two values.
    void add(std::optional<double> a, std::optional<double> b, double difference) {
        const CheckInfo& about = kChecks[comparison_.checks.size()];
        Check check;
        check.name = about.name;
        check.unit = about.unit;
        check.a = a;
        check.b = b;
        check.difference = difference >= 0 ? difference : a && b ? std::abs(*b - *a) : 0;
        if (about.fails_by_default) {
            check.tolerance = Tolerance{};
        }
        if (const auto given = options_.tolerances.find(check.name); given != options_.tolerances.end()) {
            check.tolerance = given->second;
        }
        check.ok = !check.tolerance || within(check, *check.tolerance);
        comparison_.checks.push_back(std::move(check));
    }

    const CompareOptions& options_;
    Comparison& comparison_;
};

// The filters both logs were made with, one after the other.
std::vector<OpFilter> filters_of(const LogReader& a, const LogReader& b) {
    std::vector<OpFilter> filters;
    for (const LogReader* log : {&a, &b}) {
        const std::optional<std::string> text = read_fact(log->header(), fact::filter);
        if (!text) {
            continue;
        }
        const OpFilter filter = OpFilter::parse(*text);
        if (filters.empty() || !(filters[0] == filter)) {
            filters.push_back(filter);
        }
    }
    return filters;
}

// One filter that leaves out what any of them leaves out.
OpFilter all_of(const std::vector<OpFilter>& filters) {
    if (filters.size() == 1) {
        return filters[0];
    }
    const auto refuse = [&] {
        return usage_error(
            "the two runs replayed different paths (" + filters[0].to_string() + " and " + filters[1].to_string() + ")",
            "compare each with the recording");
    };
    OpFilter out = OpFilter::all();
    for (const OpFilter& filter : filters) {
        if (!filter.also_paths.empty()) {
            throw refuse();
        }
        for (const Role role : filter.leave_out) {
            if (std::find(out.leave_out.begin(), out.leave_out.end(), role) == out.leave_out.end()) {
                out.leave_out.push_back(role);
            }
        }
        out.not_paths.insert(out.not_paths.end(), filter.not_paths.begin(), filter.not_paths.end());
        if (filter.only_paths.empty()) {
            continue;
        }
        if (!out.only_paths.empty() && out.only_paths != filter.only_paths) {
            throw refuse();
        }
        out.only_paths = filter.only_paths;
    }
    return out;
}

// As replay counts it: a run begins when its first op is due.
void begin_with_run(Summary& summary, const Header& header) {
    if (const std::optional<int64_t> begin = read_fact(header, fact::run_begin); begin && *begin < summary.begin) {
        summary.begin = *begin;
    }
}

// A check that was asked for and that neither log has a value for must not pass.
void refuse_empty_checks(const CompareOptions& options, const Comparison& comparison) {
    for (const Check& check : comparison.checks) {
        const auto given = options.tolerances.find(check.name);
        if (check.a || check.b || given == options.tolerances.end() || !given->second) {
            continue;
        }
        const bool accelerators = !comparison.a.devices.empty() || !comparison.b.devices.empty();
        const bool of_accelerators = check.name == "au" || check.name == "au_mlperf" || check.name == "stall";
        throw usage_error("--tolerance " + check.name + ": neither log has " +
                              (of_accelerators && !accelerators ? "accelerators" : "a value for it"),
                          "leave out this check");
    }
}

std::string_view unit_name(Check::Unit unit) {
    switch (unit) {
        case Check::Unit::count: return "count";
        case Check::Unit::bytes: return "bytes";
        case Check::Unit::ns: return "ns";
        case Check::Unit::bytes_per_s: return "bytes/s";
        case Check::Unit::share: return "share";
    }
    return "?";
}

Json check_json(const Check& check) {
    const auto value = [](const std::optional<double>& number) { return number ? Json(*number) : Json(nullptr); };
    Json out = {{"check", check.name},
                {"unit", unit_name(check.unit)},
                {"a", value(check.a)},
                {"b", value(check.b)},
                {"difference", check.difference}};
    if (check.tolerance) {
        out["tolerance"] = {{"value", check.tolerance->value}, {"percent", check.tolerance->percent}};
    } else {
        out["tolerance"] = nullptr;
    }
    out["ok"] = check.ok;
    return out;
}

}  // namespace

Tolerance Tolerance::parse(std::string_view text, std::string_view option, bool takes_none) {
    Tolerance out;
    std::string_view digits = text;
    if (digits.ends_with('%')) {
        out.percent = true;
        digits.remove_suffix(1);
    }
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out.value);
    if (error != std::errc() || end != digits.data() + digits.size() || !std::isfinite(out.value) || out.value < 0) {
        throw usage_error(std::string(option) + ": '" + escape_line(text) + "' is not a tolerance",
                          takes_none ? "expected a number such as 0 or 12, a share such as 5%, or none"
                                     : "expected a number such as 0 or 12, or a share such as 5%");
    }
    return out;
}

namespace {

/// "5ms" of times, "4KiB" of bytes; a bare time other than 0 could be of any unit.
Tolerance with_unit(std::string_view text, const std::string& option, Check::Unit unit) {
    const bool time = unit == Check::Unit::ns;
    const bool bare = text.find_first_not_of("0123456789.") == std::string_view::npos;
    const ReadQuantity read = time ? read_time_quantity(text, 1) : read_byte_quantity(text);
    if (text.empty() || read.wrong != nullptr || (bare && time && read.value != 0)) {
        throw usage_error(option + ": '" + escape_line(text) + "' is not a tolerance",
                          std::string("expected a ") + (time ? "time such as 5ms" : "size such as 4KiB") +
                              ", a share such as 5%, 0, or none");
    }
    return {read.value, false};
}

}  // namespace

void add_tolerance(CompareOptions& options, std::string_view text) {
    const size_t equals = text.find('=');
    const std::string_view name = text.substr(0, equals);
    const auto* const known = std::find_if(std::begin(kChecks), std::end(kChecks),
                                           [&](const CheckInfo& check) { return check.name == name; });
    if (equals == std::string_view::npos || known == std::end(kChecks)) {
        throw usage_error("--tolerance '" + escape_line(text) + "' is not CHECK=TOLERANCE",
                          "checks are: " + check_names());
    }
    const std::string_view value = text.substr(equals + 1);
    const std::string option = "--tolerance " + std::string(name);
    const bool sized =
        known->unit == Check::Unit::ns || known->unit == Check::Unit::bytes || known->unit == Check::Unit::bytes_per_s;
    options.tolerances[std::string(name)] = value == "none"                  ? std::optional<Tolerance>()
                                            : sized && !value.ends_with('%') ? with_unit(value, option, known->unit)
                                                                             : Tolerance::parse(value, option, true);
}

std::string_view difference_name(DifferenceKind kind) {
    switch (kind) {
        case DifferenceKind::result: return "result";
        case DifferenceKind::missing: return "missing";
        case DifferenceKind::extra: return "extra";
        case DifferenceKind::moved: return "order";
        case DifferenceKind::arguments: return "arguments";
    }
    return "?";
}

bool Comparison::passed() const {
    return std::all_of(checks.begin(), checks.end(), [](const Check& check) { return check.ok; });
}

/// "--gpu-speed 2" of B, where A is a recording; else of each.
std::string what_ifs_of(const Header& a, const Header& b) {
    const std::string of_a = read_fact(a, fact::what_if).value_or(std::string());
    std::string of_b = read_fact(b, fact::what_if).value_or(std::string());
    if (of_a.empty()) {
        return of_b;
    }
    return "A " + of_a + ", B " + (of_b.empty() ? "none" : of_b);
}

Comparison compare(const LogReader& a, const LogReader& b, const CompareOptions& options) {
    const OpFilter filter = all_of(filters_of(a, b));
    Comparison out;
    out.filter = filter.to_string();
    out.ended = read_fact(b.header(), fact::ended).value_or(out.ended);
    out.what_if = what_ifs_of(a.header(), b.header());
    out.a = summarize(a, filter);
    out.b = summarize(b, filter);
    begin_with_run(out.a, a.header());
    begin_with_run(out.b, b.header());
    out.left_out_ops = out.a.left_out_ops;
    out.left_out_bytes = out.a.left_out_bytes;
    align(a, OpSelector(a, filter), b, OpSelector(b, filter), options, out);
    Checks(options, out).run();
    refuse_empty_checks(options, out);
    return out;
}

nlohmann::ordered_json to_json(const Comparison& comparison, const Tables& tables_a, const Tables& tables_b) {
    Json out = {{"passed", comparison.passed()},
                {"filter", comparison.filter},
                {"ended", comparison.ended},
                {"matched", comparison.matched},
                {"missing", comparison.missing},
                {"extra", comparison.extra},
                {"moved", comparison.moved},
                {"arguments", comparison.arguments},
                {"results", comparison.results},
                {"results_known", comparison.results_known},
                {"not_performed", comparison.not_performed},
                {"left_out_ops", comparison.left_out_ops},
                {"left_out_bytes", comparison.left_out_bytes}};
    Json checks = Json::array();
    for (const Check& check : comparison.checks) {
        checks.push_back(check_json(check));
    }
    out["checks"] = std::move(checks);
    Json differences = Json::array();
    for (const Difference& row : comparison.differences) {
        std::string path;
        append_escaped(path, row.path);
        Json object = {
            {"what", difference_name(row.what)}, {"task", row.task}, {"kind", info(row.kind).name}, {"path", path}};
        if (row.what != DifferenceKind::extra) {
            object["op_a"] = row.op_a, object["result_a"] = row.result_a;
        }
        if (row.what != DifferenceKind::missing) {
            object["op_b"] = row.op_b, object["result_b"] = row.result_b;
        }
        differences.push_back(std::move(object));
    }
    out["differences"] = std::move(differences);
    out["a"] = to_json(comparison.a, tables_a);
    out["b"] = to_json(comparison.b, tables_b);
    return out;
}

}  // namespace reprise
