// SPDX-License-Identifier: MIT
// Job files that are drawn, the same for the same seed.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "generate/distribution.h"

namespace reprise::test {

class RandomJob {
public:
    explicit RandomJob(uint64_t seed) : seed_(seed) {}

    std::string text() {
        static constexpr const char* kFormats[] = {"npz",     "jpeg",    "files", "tfrecord", "tar", "hdf5",
                                                   "indexed", "parquet", "arrow", "lmdb",     "none"};
        const std::string format = kFormats[seed_ % 11];
        const bool none = format == "none", files = seed_ % 11 < 3,
                   stream = format == "tfrecord" || format == "tar" || format == "parquet";
        const uint64_t ranks = one_of({1, 1, 2, 4}), gpus = ranks * one_of({1, 1, 2});
        const uint64_t batch = one_of({1, 2, 4, 8}), workers = one_of({0, 1, 2, 3, 4});
        const uint64_t step = batch * gpus, steps = one_of({40, 75, 130});
        const uint64_t samples = std::max<uint64_t>(step * steps + below(step), 1200 / step * step);
        add("format", format);
        if (none) {
            add("steps", std::to_string(steps));
            add("gpus", std::to_string(gpus));
            add("ranks", std::to_string(ranks));
            add("compute", one_of_text({"50ms", "normal(80ms,10ms)", "lognormal(40ms,10ms)"}));
            checkpoints();
            return "[job]\n" + text_;
        }
        add("samples", std::to_string(samples));
        add("sample_size",
            one_of_text(
                files ? std::vector<std::string>{"150k", "normal(100k,20k)", "lognormal(200k,80k)", "uniform(20k,300k)"}
                : stream
                    ? std::vector<std::string>{"200000", "1MiB", "normal(2MiB,400KiB)", "300k"}
                    : std::vector<std::string>{"100000", "512KiB", "normal(600KiB,100KiB)", "uniform(300KiB,900KiB)"}));
        if (!files && below(3) != 0) {
            add("samples_per_file", std::to_string(one_of({16, 25, 100})));
        }
        if (format == "parquet") {
            add("row_group", std::to_string(one_of({5, 8, 12})));
            add("columns", std::to_string(one_of({1, 4, 9})));
        }
        if (format == "tfrecord" || format == "tar") {
            add("bs", one_of_text({"64k", "256k"}));
        } else if (!stream && (files || format == "hdf5") && below(2) == 0) {
            add("bs", "32k");
            if (files && below(2) == 0) {
                add("direct", "1");
            }
        }
        add("batch", std::to_string(batch));
        add("loader_workers", std::to_string(workers));
        add("prefetch", std::to_string(one_of({1, 2, 3, 5, 50})));
        add("shuffle", one_of_text({"none", "full", "64", "150"}));
        add("epochs", std::to_string(one_of({1, 2, 3})));
        if (below(4) == 0) {
            add("steps", std::to_string(steps * 2 / 3));
        }
        add("decode", one_of_text({"0", "2ms", "normal(5ms,1ms)", "lognormal(3ms,1ms)", "uniform(1ms,4ms)"}));
        add("compute", one_of_text({"0", "50ms", "normal(80ms,10ms)", "uniform(20ms,60ms)", "lognormal(40ms,10ms)"}));
        const bool works = !text_.ends_with("compute=0\n");
        if (gpus == ranks && workers != 0 && below(4) == 0) {
            add("compute_on", "processor");
        } else if (works && below(3) == 0) {
            add("overhead", one_of_text({"1ms", "lognormal(4ms,1ms)", "uniform(2ms,6ms)"}));
        }
        add("gpus", std::to_string(gpus));
        add("ranks", std::to_string(ranks));
        add("sync", one_of_text({"step", "step", "epoch", "none"}));
        checkpoints();
        add("seed", std::to_string(seed_ + 1));
        return "[job]\n" + text_;
    }

private:
    void checkpoints() {
        if (below(3) != 0) {
            add("checkpoint_every", one_of_text({"7", "13", "1epoch", "20"}));
            add("checkpoint_size", one_of_text({"10MiB", "7000000"}));
            add("checkpoint_mode", one_of_text({"blocking", "async", "sharded"}));
            add("checkpoint_bs", one_of_text({"1MiB", "256KiB"}));
        }
    }
    uint64_t below(uint64_t end) { return mixed_bits(seed_, draws_++) % end; }
    uint64_t one_of(std::vector<uint64_t> values) { return values[below(values.size())]; }
    std::string one_of_text(std::vector<std::string> values) { return values[below(values.size())]; }
    void add(const std::string& word, const std::string& value) { text_ += word + "=" + value + "\n"; }

    uint64_t seed_, draws_ = 0;
    std::string text_;
};

}  // namespace reprise::test
