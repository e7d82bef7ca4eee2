// SPDX-License-Identifier: MIT
// Sections of plain I/O, open loops among them.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "formats/support/quantity.h"
#include "generate/section_words.h"

namespace reprise {
namespace {

struct Direction {
    bool reads, writes, random;
};
constexpr Choice<Direction> kDirections[] = {
    {"read", {true, false, false}},     {"write", {false, true, false}}, {"randread", {true, false, true}},
    {"randwrite", {false, true, true}}, {"rw", {true, true, false}},     {"readwrite", {true, true, false}},
    {"randrw", {true, true, true}},
};
constexpr Choice<IoJob::Engine> kEngines[] = {{"psync", IoJob::Engine::psync},
                                              {"sync", IoJob::Engine::sync},
                                              {"io_uring", IoJob::Engine::uring},
                                              {"libaio", IoJob::Engine::aio}};

void open_loop(const SectionWords& words, IoJob& job) {
    job.arrivals = open_arrivals(words, "rate_iops");
    if (!job.arrivals) {
        for (const char* word : {"runtime", "concurrency"}) {
            if (words.section().own.contains(word)) {
                words.fail(word, std::string(word) + "= is of an open loop, and this section is a closed one",
                           word == std::string("runtime")
                               ? "size=, number_ios= or loops= end it; rate_iops= makes blocks arrive"
                               : "numjobs= in its place, or rate_iops=");
            }
        }
        return;
    }
    const auto refuse = [&](const char* word, const char* why, const char* todo) {
        words.fail(word, std::string(word) + "= in an open loop: " + why, todo);
    };
    if (job.engine == IoJob::Engine::aio || job.engine == IoJob::Engine::sync) {
        refuse("ioengine", "only psync and io_uring are made", "ioengine=io_uring for requests in flight, or psync");
    }
    if (job.think_ns != 0) {
        refuse("thinktime", "blocks arrive when they are due", "leave it out");
    }
    const bool uring = job.engine == IoJob::Engine::uring;
    if (uring && words.section().own.contains("concurrency")) {
        refuse("concurrency", "io_uring needs no threads", "iodepth= bounds what is in flight");
    }
    job.servers = uring ? 1 : words.count("concurrency", 1, 4096);
    constexpr uint64_t kDepth = 256;
    job.depth = uring && !words.given("iodepth") ? kDepth : job.depth;
    if (job.arrivals->runtime_ns && !words.given("loops")) {
        job.loops = kMostCount;
    }
}

/// Bytes with fio's prefixes (kb_base=1024): k, kb and KB are 1024. So is KiB here; see unit_notes().
std::optional<int64_t> fio_bytes(std::string text) {
    const auto lower = [&](size_t from_end) {
        return text.size() < from_end
                   ? '\0'
                   : static_cast<char>(std::tolower(static_cast<unsigned char>(text[text.size() - from_end])));
    };
    constexpr std::string_view kPrefixes = "kmgtp";
    if (lower(1) == 'b' && kPrefixes.find(lower(2)) != kPrefixes.npos) {
        text.pop_back();
    }
    return read_bytes(text);
}

int64_t size_of(const SectionWords& words, const char* word) {
    const auto value = fio_bytes(words.text(word));
    if (!value || *value < 1) {
        words.wrong(word, "a size such as 4k, 1m or 2g");
    }
    return *value;
}

}  // namespace

void use_whole_blocks(IoJob& job) {
    const int64_t used = job.file_size / job.bs_least * job.bs_least;
    job.size = std::min(job.size, used * static_cast<int64_t>(job.files));
}

std::vector<std::string> unit_notes(const SectionWords& words) {
    std::vector<std::string> notes;
    for (const char* const word : {"bs", "bsrange", "size", "filesize"}) {
        if (!words.given(word)) {
            continue;
        }
        const std::string text = words.text(word);
        const size_t at = text.find_first_of("iI");
        if (at != text.npos) {
            notes.push_back("[" + words.section().name + "] " + word + "=" + escape_line(text) +
                            ": powers of 1024 here, of 1000 in fio (kb_base=1024), where 4k and 4kb are 4096");
        }
    }
    return notes;
}

std::optional<Arrivals> open_arrivals(const SectionWords& words, const char* rate) {
    const std::string how = words.text("arrivals");
    Arrivals out;
    out.kind = how == "fixed"     ? Arrivals::Kind::fixed
               : how == "poisson" ? Arrivals::Kind::poisson
                                  : Arrivals::Kind::listed;
    const std::string rate_word = std::string(rate) + "=";
    if (out.kind == Arrivals::Kind::listed) {
        if (words.given(rate)) {
            words.fail(rate, rate_word + " beside arrivals=" + escape_line(how) + ", a file",
                       "arrivals=poisson or fixed, or leave " + rate_word + " out: the file has the times");
        }
        out.file = std::filesystem::path(words.file()).parent_path() / how;
        out.list = read_arrivals(out.file);
    } else if (words.given(rate)) {
        out.per_second = words.rate(rate);
    } else if (words.section().own.contains("arrivals")) {
        words.fail("arrivals", "arrivals= without " + rate_word, "e.g. " + rate_word + "100");
    } else {
        return std::nullopt;
    }
    if (words.given("runtime")) {
        out.runtime_ns = words.time("runtime", 1e9);
    }
    return out;
}

IoJob io_job(const SectionWords& words) {
    IoJob job;
    const Direction way = words.choice("rw", kDirections);
    job.reads = way.reads;
    job.writes = way.writes;
    job.random = way.random;
    job.engine = words.choice("ioengine", kEngines);
    const char* const bs = words.given("bsrange") ? "bsrange" : "bs";
    if (words.given("bsrange") && words.given("bs")) {
        words.fail("bsrange", "bs= and bsrange= both say how large blocks are", "leave out one of them");
    }
    const std::string range = words.text(bs);
    const size_t dash = range.find('-');
    const auto least = fio_bytes(range.substr(0, dash));
    const auto most = dash == range.npos ? least : fio_bytes(range.substr(dash + 1));
    const bool reversed = least && most && *most > 0 && *most < *least;
    if (reversed) {
        words.wrong(bs, "the smaller size comes first: " + escape_line(range.substr(dash + 1)) + "-" +
                            escape_line(range.substr(0, dash)));
    }
    if (!least || !most || *least < 1 || *most < *least) {
        words.wrong(bs, "a size such as 4k, or a range such as 4k-64k");
    }
    job.bs_least = *least;
    job.bs_most = *most;
    job.files = words.count("nrfiles", 1, 10'000'000);
    job.jobs = words.count("numjobs", 1, 100'000);
    job.loops = words.count("loops", 1);
    job.threads = words.yes("thread");
    job.direct = words.yes("direct");
    job.end_fsync = words.yes("end_fsync");
    job.number_ios = words.maybe_count("number_ios");
    job.read_percent = words.count("rwmixread", 0, 100);
    job.depth = words.count("iodepth", 1, 4096);
    job.think_ns = words.time("thinktime", 1e3);
    job.think_blocks = words.count("thinktime_blocks", 1);
    job.fsync = words.count("fsync", 0);
    job.fdatasync = words.count("fdatasync", 0);
    if (words.given("filesize")) {
        job.file_size = size_of(words, "filesize");
        job.size = words.given("size") ? size_of(words, "size") : job.file_size * static_cast<int64_t>(job.files);
    } else {
        words.require("size", "bytes that each job reads and writes, e.g. size=1g");
        job.size = size_of(words, "size");
        job.file_size = job.size / static_cast<int64_t>(job.files);
    }
    if (static_cast<double>(job.file_size) * static_cast<double>(job.files) > kMostBytes ||
        static_cast<double>(job.size) > kMostBytes || job.files * job.jobs > kMostFiles) {
        words.fail("size", "more bytes or files than a log can name", "fewer nrfiles= or numjobs=, or a smaller size=");
    }
    if (job.file_size < job.bs_most) {
        words.fail("size", "a file of " + format_bytes(static_cast<uint64_t>(job.file_size)) + " is smaller than bs=",
                   "a larger size=, fewer nrfiles=, or a smaller bs=");
    }
    use_whole_blocks(job);
    constexpr double kMostRequests = 1e11;
    const double requests = job.number_ios ? static_cast<double>(*job.number_ios)
                                           : static_cast<double>(job.size) / static_cast<double>(job.bs_least);
    if (!words.given("rate_iops") && !words.given("arrivals") &&
        requests * static_cast<double>(job.loops) * static_cast<double>(job.jobs) > kMostRequests) {
        words.fail("size", "more than 100 G reads and writes, which a log would take days to hold",
                   "a smaller size=, a larger bs=, or number_ios=");
    }
    const bool asynchronous = job.engine == IoJob::Engine::uring || job.engine == IoJob::Engine::aio;
    if (job.depth > 1 && !asynchronous) {
        words.fail("iodepth", "iodepth= above 1 needs requests in flight, which psync and sync do not have",
                   "ioengine=io_uring or ioengine=libaio, or numjobs= in its place");
    }
    if (asynchronous && (job.fsync != 0 || job.fdatasync != 0)) {
        words.fail(job.fsync != 0 ? "fsync" : "fdatasync", "fsync= beside requests in flight is not made yet",
                   "end_fsync=1, or ioengine=psync");
    }
    open_loop(words, job);
    if (job.direct && job.bs_least % 512 != 0) {
        words.fail("bs", "direct=1 needs a bs= of whole sectors", "a multiple of 512");
    }
    return job;
}

std::string resolved_io(const SectionWords& words, const IoJob& io, std::string_view word) {
    if (word == "iodepth") {
        return std::to_string(io.depth);
    }
    if (word == "arrivals" || word == "concurrency") {
        const bool of_it = io.arrivals && (word == "arrivals" || io.engine == IoJob::Engine::psync);
        return of_it ? words.text(word.data()) : "";
    }
    if (word == "loops" && io.loops == kMostCount) {
        return "";
    }
    if (word == (words.given("bsrange") ? "bs" : "bsrange")) {
        return "";
    }
    return word == "filesize"                                ? std::to_string(io.file_size)
           : word == "rwmixread" && !(io.reads && io.writes) ? ""
           : word == "thinktime_blocks" && io.think_ns == 0  ? ""
                                                             : words.text(word.data());
}

}  // namespace reprise
