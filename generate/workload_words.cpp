// SPDX-License-Identifier: MIT
// Sections with workload=: a key-value cache, loading a model, pre-processing.
#include <algorithm>

#include "formats/support/quantity.h"
#include "generate/section_words.h"

namespace reprise {
namespace {

void refuse(const SectionWords& words, const char* word, const std::string& why, const std::string& todo) {
    if (words.section().own.contains(word)) {
        words.fail(word, std::string(word) + "= beside workload=" + words.text("workload") + ": " + why, todo);
    }
}

Distribution tokens(const SectionWords& words, const char* word) {
    auto value = Distribution::parse(words.text(word), Distribution::Unit::bytes);
    if (!value) {
        words.wrong(word, "so many tokens: 2000, lognormal(2000,3000), uniform(1k,32k)");
    }
    value->least = 1;
    words.check_draws(word, *value);
    return *value;
}

/// Where the file of arrivals has no tokens, the words must.
void requests_of(const SectionWords& words, KvCacheJob& job) {
    const auto arrivals = open_arrivals(words, "request_rate");
    if (!arrivals) {
        words.require("request_rate", "requests that arrive each second, e.g. request_rate=2, or arrivals=FILE");
    }
    job.arrivals = *arrivals;
    job.requests = words.maybe_count("requests");
    const bool listed = job.arrivals.kind == Arrivals::Kind::listed;
    if (!listed && !job.requests && !job.arrivals.runtime_ns) {
        words.require("runtime", "requests would arrive forever: runtime=60, or requests=1000");
    }
    const auto& list = job.arrivals.list;
    const bool has_prompts =
        listed && std::all_of(list.begin(), list.end(), [](const Arrival& each) { return each.prompt_tokens != 0; });
    if (!has_prompts) {
        words.require("prompt_tokens", "tokens of a prompt, e.g. prompt_tokens=lognormal(2000,3000)");
    }
    if (words.given("prompt_tokens")) {
        job.prompt_tokens = tokens(words, "prompt_tokens");
    }
    job.output_tokens = tokens(words, "output_tokens");
}

constexpr Choice<bool> kLayouts[] = {{"slots", false}, {"files", true}};
constexpr Choice<ModelLoadJob::By> kWays[] = {
    {"mmap", ModelLoadJob::By::mmap}, {"read", ModelLoadJob::By::read}, {"eager", ModelLoadJob::By::eager}};
constexpr Choice<ModelLoadJob::Split> kSplits[] = {
    {"all", ModelLoadJob::Split::all}, {"files", ModelLoadJob::Split::files}, {"slices", ModelLoadJob::Split::slices}};
constexpr Choice<PreprocessJob::Kind> kKinds[] = {{"convert", PreprocessJob::Kind::convert},
                                                  {"tokenize", PreprocessJob::Kind::tokenize},
                                                  {"decode-cache", PreprocessJob::Kind::decode_cache}};

}  // namespace

KvCacheJob kv_cache_job(const SectionWords& words) {
    KvCacheJob job;
    refuse(words, "bs", "a block follows from the model's dimensions", "leave it out; block_tokens= makes it larger");
    words.require("num_hidden_layers", "of the model, as its config.json has it, e.g. 32");
    words.require("num_key_value_heads", "of the model, as its config.json has it, e.g. 8");
    words.require("kv_capacity", "bytes of the storage tier, e.g. kv_capacity=100GiB");
    constexpr uint64_t kMostOf = 100'000;
    job.layers = words.count("num_hidden_layers", 1, kMostOf);
    job.kv_heads = words.count("num_key_value_heads", 1, kMostOf);
    job.head_dim = words.count("head_dim", 1, kMostOf);
    job.dtype_bytes = words.count("dtype_bytes", 1, 8);
    job.block_tokens = words.count("block_tokens", 1, kMostOf);
    job.direct = words.yes("direct");
    job.capacity = words.bytes("kv_capacity");
    constexpr double kMostBlock = 0x7ffff000;  // of one read in Linux
    const double block = 2.0 * static_cast<double>(job.layers) * static_cast<double>(job.kv_heads) *
                         static_cast<double>(job.head_dim) * static_cast<double>(job.dtype_bytes) *
                         static_cast<double>(job.block_tokens);
    if (block > kMostBlock) {
        words.fail("num_hidden_layers", "a block of more than 2 GiB", "fewer block_tokens=");
    }
    constexpr uint64_t kMostSlots = 100'000'000;
    if (job.slots() < 1 || job.slots() > kMostSlots) {
        words.fail("kv_capacity",
                   "kv_capacity= is of " + counted(job.slots(), "block") + " of " +
                       format_bytes(static_cast<uint64_t>(job.block_bytes())),
                   "from 1 to " + format_count(kMostSlots) + " blocks");
    }
    job.file_per_block = words.choice("kv_layout", kLayouts);
    job.hit_percent = words.count("hit_rate", 0, 100);
    job.prefill_ns = words.time("prefill", 1e9);
    job.decode_ns = words.time("decode_step", 1e9);
    constexpr int64_t kLongest = 1'000'000'000;  // so that a prompt's cannot overflow
    if (job.prefill_ns > kLongest || job.decode_ns > kLongest) {
        words.fail(job.prefill_ns > kLongest ? "prefill" : "decode_step", "more than a second for a token",
                   "a time such as 100us");
    }
    job.save_decode = words.yes("save_decode_cache");
    const std::string engine = words.text("ioengine");
    if (engine != "psync" && engine != "io_uring") {
        words.wrong("ioengine", "psync or io_uring");
    }
    job.uring = engine == "io_uring";
    constexpr uint64_t kDepth = 32;
    job.depth = words.section().own.contains("iodepth") || job.uring ? words.count("iodepth", 1, 4096) : 1;
    job.depth = job.uring && !words.given("iodepth") ? kDepth : job.depth;
    if (job.depth > 1 && !job.uring) {
        words.fail("iodepth", "iodepth= above 1 needs requests in flight, which psync does not have",
                   "ioengine=io_uring");
    }
    job.servers = words.count("concurrency", 1, 4096);
    requests_of(words, job);
    return job;
}

ModelLoadJob model_load_job(const SectionWords& words) {
    ModelLoadJob job;
    words.require("model_size", "bytes of all tensors, e.g. model_size=16GB");
    job.model_size = words.bytes("model_size", 4096);
    job.files = words.count("model_files", 1, 1'000'000);
    job.tensors = words.count("tensors", 1, 1'000'000);
    job.by = words.choice("load_by", kWays);
    job.split = words.choice("load_split", kSplits);
    job.ranks = words.given("ranks") ? words.count("ranks", 1, 100'000) : 1;
    job.bs = words.given("bs") ? words.bytes("bs") : 0;
    job.direct = words.yes("direct");
    if (static_cast<double>(job.model_size) > kMostBytes) {
        words.fail("model_size", "more bytes than a log can name", "a smaller model");
    }
    if (job.by == ModelLoadJob::By::eager && !words.given("bs")) {
        constexpr int64_t kRead = 16 << 20;
        job.bs = kRead;
    }
    if (job.by == ModelLoadJob::By::eager && job.split == ModelLoadJob::Split::slices) {
        words.fail("load_split", "load_by=eager reads whole files", "load_split=files or all, or load_by=read");
    }
    if (job.direct && (job.by != ModelLoadJob::By::eager || job.bs % 512 != 0)) {
        words.fail("direct", "direct=1 needs reads of whole sectors",
                   "load_by=eager, and a bs= that is a multiple of 512");
    }
    if (job.by == ModelLoadJob::By::mmap) {
        refuse(words, "bs", "pages are touched, not read", "load_by=read or eager");
    }
    return job;
}

PreprocessJob preprocess_job(const SectionWords& words) {
    PreprocessJob job;
    job.kind = words.choice("workload", kKinds);
    const bool keeps = job.kind == PreprocessJob::Kind::decode_cache;
    words.require("samples", "files that are read, e.g. samples=10000");
    words.require("sample_size", "bytes of each of them, e.g. sample_size=150k");
    refuse(words, "direct", "what is written has any size", "leave it out; replay has --direct");
    job.samples = words.count("samples", 1, kMostFiles);
    job.sample_size = words.drawn("sample_size", Distribution::Unit::bytes, 1);
    job.samples_per_file = words.given("samples_per_file") && !keeps ? words.count("samples_per_file", 1)
                           : keeps                                   ? 1
                                                                     : job.samples;
    if (keeps) {
        refuse(words, "samples_per_file", "each sample is kept in a file of its own", "leave it out");
    } else if (words.section().own.contains("epochs")) {
        words.fail("epochs", "epochs= is of workload=decode-cache", "leave it out");
    }
    job.decode = words.drawn("decode", Distribution::Unit::seconds, 0);
    job.output_percent = words.count("output_ratio", 1, 100'000);
    job.workers = words.count("workers", 1, 4096);
    job.epochs = keeps ? words.count("epochs", 1, 1'000'000) : 1;
    const std::string shuffle = words.text("shuffle");
    if (shuffle != "none" && shuffle != "full") {
        words.wrong("shuffle", "none or full");
    }
    job.shuffled = shuffle == "full";
    if (words.given("bs")) {
        job.bs = words.bytes("bs");
    }
    job.end_fsync = words.yes("end_fsync");
    const double bytes = static_cast<double>(job.samples) * job.sample_size.mean();
    if (bytes > kMostBytes || bytes * static_cast<double>(job.output_percent) / 100 > kMostBytes) {
        words.fail("samples", "more bytes than a log can name", "fewer samples=, or a smaller sample_size=");
    }
    return job;
}

std::string resolved_workload(const SectionWords& words, const JobSection& section, std::string_view word) {
    if (const auto* const kv = std::get_if<KvCacheJob>(&section.what)) {
        return word == "bs"         ? ""
               : word == "iodepth"  ? std::to_string(kv->depth)
               : word == "arrivals" ? words.text("arrivals")
                                    : words.text(word.data());
    }
    if (const auto* const load = std::get_if<ModelLoadJob>(&section.what)) {
        return word == "bs"      ? (load->bs == 0 ? "" : std::to_string(load->bs))
               : word == "ranks" ? std::to_string(load->ranks)
                                 : words.text(word.data());
    }
    const auto& job = std::get<PreprocessJob>(section.what);
    const bool keeps = job.kind == PreprocessJob::Kind::decode_cache;
    return word == "bs"                 ? std::to_string(job.bs)
           : word == "samples_per_file" ? (keeps ? "" : std::to_string(job.samples_per_file))
           : word == "direct"           ? ""
           : word == "epochs" && !keeps ? ""
                                        : words.text(word.data());
}

}  // namespace reprise
