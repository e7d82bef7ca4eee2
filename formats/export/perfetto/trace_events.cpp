// SPDX-License-Identifier: MIT
#include "formats/export/perfetto/trace_events.h"

#include <cmath>
#include <cstdio>

#include "formats/oplog/op_fields.h"
#include "formats/support/escape.h"

namespace reprise {
namespace {

// ns as microseconds with three decimals.
void append_us(std::string& out, int64_t ns) {
    const bool negative = ns < 0;
    const uint64_t size = negative ? 0 - static_cast<uint64_t>(ns) : static_cast<uint64_t>(ns);
    if (negative) {
        out += '-';
    }
    append_number(out, size / 1000);
    const auto part = static_cast<unsigned>(size % 1000);
    if (part == 0) {
        return;
    }
    out += '.';
    out += static_cast<char>('0' + part / 100);
    out += static_cast<char>('0' + part / 10 % 10);
    out += static_cast<char>('0' + part % 10);
}

}  // namespace

void TraceEvents::member(std::string_view key) {
    if (!first_) {
        out_.text += ',';
    }
    first_ = false;
    out_.text += '"';
    out_.text += key;
    out_.text += "\":";
}

void TraceEvents::event(std::string_view phase, int64_t pid, int64_t tid) {
    if (any_) {
        out_.text += ",\n";
    }
    any_ = true;
    out_.text += '{';
    first_ = true;
    text("ph", phase);
    number("pid", pid);
    number("tid", tid);
}

void TraceEvents::text(std::string_view key, std::string_view value) {
    member(key);
    append_json(out_.text, value);
}

void TraceEvents::number(std::string_view key, int64_t value) {
    member(key);
    append_number(out_.text, value);
}

void TraceEvents::time(int64_t ns) {
    member("ts");
    append_us(out_.text, end_of(ns, shift_));
}

void TraceEvents::duration(int64_t ns) {
    member("dur");
    append_us(out_.text, ns);
}

void TraceEvents::args() {
    member("args");
    out_.text += '{';
    first_ = true;
}

void TraceEvents::args_end() {
    out_.text += '}';
    first_ = false;
}

void TraceEvents::end() {
    out_.text += '}';
    out_.drain();
}

void TraceEvents::name(std::string_view what, int64_t pid, int64_t tid, std::string_view name) {
    event("M", pid, tid);
    text("name", what);
    args();
    text("name", name);
    args_end();
    end();
}

void TraceEvents::counter(int64_t pid, std::string_view name, std::string_view unit, int64_t ns, double value) {
    event("C", pid, 0);
    text("name", name);
    time(ns);
    args();
    member(unit);
    char digits[40];
    std::snprintf(digits, sizeof digits, "%.3f", std::isfinite(value) ? value : 0.0);
    out_.text += digits;
    args_end();
    end();
}

}  // namespace reprise
