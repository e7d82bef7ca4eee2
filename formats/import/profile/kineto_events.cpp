// SPDX-License-Identifier: MIT
#include "formats/import/profile/kineto_events.h"

#include <simdjson.h>

#include <charconv>
#include <limits>

#include "formats/support/error.h"
#include "formats/support/input.h"
#include "formats/support/json_token.h"

namespace reprise::kineto {
namespace {

namespace od = simdjson::ondemand;

// Greatest time and duration taken, us, and base, ns: sums of some of them in ns still fit 64 bits.
constexpr uint64_t kLatest = INT64_MAX / 1000 / 4;
constexpr int64_t kLatestBase = INT64_MAX / 4;
constexpr int64_t kMostIds = 1'000'000;  // of devices and streams

template <class T>
bool to_integer(std::string_view token, T& into) {
    const char* end = token.data() + token.size();
    const auto [stop, error] = std::from_chars(token.data(), end, into);
    return error == std::errc() && stop == end;
}

// "stream 7" and "7".
bool to_stream(std::string_view token, int64_t& into) {
    const size_t space = token.rfind(' ');
    return to_integer(space == token.npos ? token : token.substr(space + 1), into);
}

struct Fields {
    std::string_view phase, category, name, ts, duration, pid, tid;
    std::string_view device, stream, correlation;  // in args
};

bool is_work(std::string_view category) {
    return category == "kernel" || category == "Kernel" || category == "gpu_memcpy" || category == "Memcpy" ||
           category == "gpu_memset" || category == "Memset";
}
bool is_call(std::string_view category) {
    return category == "cuda_runtime" || category == "Runtime" || category == "cuda_driver" ||
           category == "hip_runtime";
}

void read_args(od::object args, Fields& fields) {
    for (auto field : args) {
        const std::string_view key = field.unescaped_key();
        od::value value = field.value();
        if (key == "device") {
            fields.device = token_of(value);
        }
        if (key == "stream") {
            fields.stream = token_of(value);
        }
        if (key == "correlation") {
            fields.correlation = token_of(value);
        }
    }
}

Fields read_fields(od::object event) {
    Fields fields;
    for (auto field : event) {
        const std::string_view key = field.unescaped_key();
        od::value value = field.value();
        if (key == "ph") {
            fields.phase = token_of(value);
        } else if (key == "cat") {
            fields.category = token_of(value);
        } else if (key == "name") {
            fields.name = token_of(value);
        } else if (key == "ts") {
            fields.ts = token_of(value);
        } else if (key == "dur") {
            fields.duration = token_of(value);
        } else if (key == "pid") {
            fields.pid = token_of(value);
        } else if (key == "tid") {
            fields.tid = token_of(value);
        } else if (key == "args" && value.type() == od::json_type::object) {
            read_args(value.get_object(), fields);
        }
    }
    return fields;
}

// False where a field that is needed is missing or wrong.
bool take(const Fields& fields, Events& into) {
    constexpr std::string_view kStep = "ProfilerStep#";
    const bool work = is_work(fields.category), call = is_call(fields.category);
    const bool step = fields.name.starts_with(kStep) && fields.category.find("gpu") == std::string_view::npos;
    if (fields.phase != "X" || !(work || call || step)) {
        return true;
    }
    Span span;
    if (!microseconds_to_ns(fields.ts, span.begin) || !microseconds_to_ns(fields.duration, span.duration)) {
        return false;
    }
    if (span.duration < 0) {
        return false;
    }
    uint64_t correlation = 0;
    if (!fields.correlation.empty() && !to_integer(fields.correlation, correlation)) {
        return false;
    }
    if (work) {
        Work one{span, 0, 0, correlation, into.name_of(fields.name)};
        if (!to_integer(fields.device.empty() ? fields.pid : fields.device, one.device) ||
            !to_stream(fields.stream.empty() ? fields.tid : fields.stream, one.stream)) {
            return false;
        }
        if (one.device < 0 || one.device > kMostIds || one.stream < 0 || one.stream > kMostIds) {
            return false;
        }
        into.work.push_back(one);
        return true;
    }
    int32_t pid = 0, tid = 0;
    if (!to_integer(fields.pid, pid) || !to_integer(fields.tid, tid)) {
        return false;
    }
    if (call) {
        HostCall one{span, pid, tid, correlation, into.name_of(fields.name), -1};
        if (!fields.stream.empty() && !to_stream(fields.stream, one.stream)) {
            return false;
        }
        into.calls.push_back(one);
        return true;
    }
    Step one{span, pid, tid, 0};
    if (!to_integer(fields.name.substr(kStep.size()), one.number)) {
        return false;
    }
    into.steps.push_back(one);
    return true;
}

// Adds the events of `text`; nullptr, or why it is not JSON at all. Where the text is cut later, the events before the
// cut are kept.
const char* parse(const std::filesystem::path& path, std::string& text, Events& into, int64_t& base) {
    const size_t length = text.size();
    text.resize(length + simdjson::SIMDJSON_PADDING);
    const auto malformed = [&](const char* position) {
        if (into.malformed++ == 0) {
            into.first_malformed = at(path.native(), static_cast<unsigned long long>(position - text.data()));
        }
    };
    bool found = false;
    const char* problem = nullptr;
    od::parser parser;
    try {
        od::document document = parser.iterate(text.data(), length, text.size());
        for (auto field : document.get_object()) {
            const std::string_view key = field.unescaped_key();
            od::value value = field.value();
            if (key == "baseTimeNanoseconds") {
                const char* const position = value.raw_json_token().data();
                if (!to_integer(token_of(value), base) || base < 0 || base > kLatestBase) {
                    base = 0;
                    malformed(position);
                }
            } else if (key == "host_name") {
                into.host = token_of(value);
            } else if (key == "traceEvents") {
                found = true;
                for (auto element : value.get_array()) {
                    od::value event = element.value();
                    ++into.events;
                    const char* const position = event.raw_json_token().data();
                    if (event.type() != od::json_type::object || !take(read_fields(event.get_object()), into)) {
                        malformed(position);
                    }
                }
            }
        }
    } catch (const simdjson::simdjson_error& error) {
        if (found) {
            into.cut = true;
        } else {
            problem = simdjson::error_message(error.error());
        }
    }
    text.resize(length);
    if (!found && problem == nullptr) {
        throw bad_input(path.native(), "this JSON has no list traceEvents", "expected what torch.profiler exports");
    }
    return problem;
}

}  // namespace

uint32_t Events::name_of(std::string_view name) {
    const auto [at, fresh] = ids_.try_emplace(std::string(name), static_cast<uint32_t>(names.size()));
    if (fresh) {
        names.emplace_back(name);
    }
    return at->second;
}

bool microseconds_to_ns(std::string_view text, int64_t& ns) {
    const bool negative = text.starts_with('-');
    if (negative) {
        text.remove_prefix(1);
    }
    const size_t point = text.find('.');
    const std::string_view whole = text.substr(0, point);
    uint64_t us = 0;
    if (whole.empty() || !to_integer(whole, us) || us > kLatest) {
        return false;
    }
    int64_t fraction = 0;
    if (point != text.npos) {
        const std::string_view digits = text.substr(point + 1);
        if (digits.empty()) {
            return false;
        }
        for (size_t i = 0; i < digits.size(); ++i) {
            if (digits[i] < '0' || digits[i] > '9') {
                return false;
            }
            if (i < 3) {
                fraction = fraction * 10 + (digits[i] - '0');
            }
            if (i == 3 && digits[i] >= '5') {
                ++fraction;
            }
        }
        for (size_t i = digits.size(); i < 3; ++i) {
            fraction *= 10;
        }
    }
    ns = static_cast<int64_t>(us) * 1000 + fraction;
    if (negative) {
        ns = -ns;
    }
    return true;
}

void read_events(const std::filesystem::path& path, Events& into, const std::function<void(uint64_t)>& progress) {
    std::string text;
    {
        LineReader reader(path);
        reader.set_truncated_ok(true);
        uint64_t reported = 0;
        for (std::string_view line; reader.next(line);) {
            text.append(line);
            text += '\n';
            if (progress && text.size() - reported > (4u << 20)) {
                progress(reader.file_bytes()), reported = text.size();
            }
        }
        into.cut |= reader.truncated();
        if (progress) {
            progress(reader.file_bytes());
        }
    }
    if (text.size() > std::numeric_limits<uint32_t>::max()) {
        throw bad_input(path.native(), "the profile is larger than 4 GiB of JSON", "record fewer steps");
    }
    const size_t first_work = into.work.size(), first_call = into.calls.size(), first_step = into.steps.size();
    int64_t base = 0;
    if (const char* error = parse(path, text, into, base); error != nullptr) {
        // A file cut inside a string is not even scanned: end it behind its last whole event.
        const size_t last = text.rfind("},");
        if (last == text.npos || text.find("\"traceEvents\"") > last) {
            throw bad_input(path.native(), std::string("this is not a PyTorch profile: ") + error,
                            "expected JSON with a list traceEvents, as torch.profiler exports it");
        }
        text.resize(last + 1);
        text += "]}";
        into.cut = true;
        if ((error = parse(path, text, into, base)) != nullptr) {
            throw bad_input(path.native(), std::string("this is not a PyTorch profile: ") + error,
                            "expected JSON with a list traceEvents, as torch.profiler exports it");
        }
    }
    for (size_t i = first_work; i < into.work.size(); ++i) {
        into.work[i].begin += base;
    }
    for (size_t i = first_call; i < into.calls.size(); ++i) {
        into.calls[i].begin += base;
    }
    for (size_t i = first_step; i < into.steps.size(); ++i) {
        into.steps[i].begin += base;
    }
}

}  // namespace reprise::kineto
