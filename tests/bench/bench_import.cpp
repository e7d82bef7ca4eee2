// SPDX-License-Identifier: MIT
// Events per second of the DFTracer importer, whole and by stage: cutting lines, parsing events, all with the log
// written; and of the Darshan importer. On the recorded traces where they are found ($REPRISE_TRACES or
// ../shared/traces), and on a made-up one.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "formats/import/darshan/lines.h"
#include "formats/import/dftracer/lines.h"
#include "formats/import/importer.h"
#include "formats/support/input.h"

namespace {

namespace fs = std::filesystem;
using namespace reprise;

// `count` events of one training process, like those of the dialect of 2023: 8 reads per open file.
std::string made_up(int count) {
    std::string text = "[\n";
    for (int i = 0; i < count; ++i) {
        const int file = i / 10, step = i % 10;
        const std::string path = "/lustre/project/dataset/train/sample_" + std::to_string(file) + ".h5";
        std::string name = "pread", args = "\"ret\":\"131072\",\"offset\":\"" + std::to_string(131072 * step) +
                                           "\",\"count\":\"131072\",\"fd\":80";
        if (step == 0) {
            name = "open";
            args = "\"ret\":80,\"flags\":0";
        } else if (step == 9) {
            name = "close";
            args = "\"ret\":0,\"fd\":80";
        }
        text += "{\"id\":\"" + std::to_string(i) + "\",\"name\":\"" + name +
                "\",\"cat\":\"POSIX\",\"pid\":\"100\",\"tid\":\"100\",\"ts\":\"" +
                std::to_string(1719854993920558 + 37LL * i) + "\",\"dur\":\"" + std::to_string(5 + i % 17) +
                "\",\"ph\":\"X\",\"args\":{\"hostname\":\"x3012c0s7b1n0\",\"p_idx\":-1,\"level\":1," + args +
                ",\"fname\":\"" + path + "\"}}\n";
    }
    return text;
}

struct Input {
    std::string name;
    std::vector<fs::path> files;
};

fs::path scratch() {
    static const fs::path folder = [] {
        std::string pattern = (fs::temp_directory_path() / "bench_import.XXXXXX").string();
        if (!mkdtemp(pattern.data())) {
            std::abort();
        }
        return fs::path(pattern);
    }();
    return folder;
}

void unpack(const fs::path& from, const fs::path& to) {
    LineReader reader(from);
    std::FILE* out = std::fopen(to.c_str(), "w");
    for (std::string_view line; out && reader.next(line);) {
        std::fwrite(line.data(), 1, line.size(), out);
        std::fputc('\n', out);
    }
    if (out) {
        std::fclose(out);
    }
}

fs::path traces_folder() {
    const char* variable = std::getenv("REPRISE_TRACES");
    return variable ? variable : "../shared/traces";
}

std::vector<Input> inputs() {
    std::vector<Input> all;
    const fs::path traces = traces_folder() / "dftracer";
    if (fs::exists(traces / "era5_training_1.pfw.gz")) {
        all.push_back({"era5_1.gz", {traces / "era5_training_1.pfw.gz"}});
        unpack(traces / "era5_training_1.pfw.gz", scratch() / "era5_1.pfw");
        all.push_back({"era5_1", {scratch() / "era5_1.pfw"}});
        all.push_back({"era5_1+3.gz", {traces / "era5_training_1.pfw.gz", traces / "era5_training_3.pfw.gz"}});
        all.push_back({"unet3d_npz.gz", {traces / "dlio_unet3d_npz_lustre.pfw.gz"}});
    } else {
        std::fprintf(stderr, "SKIPPED: no recorded traces; set REPRISE_TRACES\n");
    }
    const fs::path made = scratch() / "made_up.pfw";
    std::ofstream(made) << made_up(1'000'000);
    all.push_back({"made_up", {made}});
    return all;
}

std::vector<Input> darshan_inputs() {
    std::vector<Input> all;
    const fs::path packed = traces_folder() / "darshan/cosmictagger.dxt.txt.zst";
    if (fs::exists(packed)) {
        all.push_back({"cosmictagger.zst", {packed}});
        unpack(packed, scratch() / "cosmictagger");
        all.push_back({"cosmictagger", {scratch() / "cosmictagger"}});
    }
    return all;
}

uint64_t count_calls(const Input& input) {
    darshan::Lines lines;
    for (const auto& file : input.files) {
        lines.read(file, file, {});
    }
    return lines.rows.size();
}

uint64_t count_events(const Input& input) {
    dftracer::Lines lines;
    for (const auto& file : input.files) {
        lines.read(file, {});
    }
    return lines.events.size();
}

void report(benchmark::State& state, uint64_t events) {
    state.counters["events/s"] =
        benchmark::Counter(static_cast<double>(events), benchmark::Counter::kIsIterationInvariantRate);
}

void register_import(const std::string& kind, const Input& input, uint64_t events) {
    benchmark::RegisterBenchmark((kind + input.name).c_str(), [&input, events](benchmark::State& state) {
        ImportOptions options;
        options.writer.sync = false;
        for (auto _ : state) {
            find_importer(input.files, {}).import(input.files, scratch() / "out.oplog", options);
        }
        report(state, events);
    })->Unit(benchmark::kMillisecond);
}

}  // namespace

int main(int argc, char** argv) {
    benchmark::Initialize(&argc, argv);
    const std::vector<Input> all = inputs();
    for (const Input& input : all) {
        const uint64_t events = count_events(input);
        benchmark::RegisterBenchmark(("lines/" + input.name).c_str(), [&input, events](benchmark::State& state) {
            for (auto _ : state) {
                for (const auto& file : input.files) {
                    LineReader reader(file);
                    for (std::string_view line; reader.next(line);) {
                        benchmark::DoNotOptimize(line.data());
                    }
                }
            }
            report(state, events);
        })->Unit(benchmark::kMillisecond);
        benchmark::RegisterBenchmark(("parse/" + input.name).c_str(), [&input, events](benchmark::State& state) {
            for (auto _ : state) {
                benchmark::DoNotOptimize(count_events(input));
            }
            report(state, events);
        })->Unit(benchmark::kMillisecond);
        register_import("import/", input, events);
    }
    const std::vector<Input> darshan = darshan_inputs();
    for (const Input& input : darshan) {
        const uint64_t calls = count_calls(input);
        benchmark::RegisterBenchmark(("parse_darshan/" + input.name).c_str(), [&input, calls](benchmark::State& state) {
            for (auto _ : state) {
                benchmark::DoNotOptimize(count_calls(input));
            }
            report(state, calls);
        })->Unit(benchmark::kMillisecond);
        register_import("import_darshan/", input, calls);
    }
    benchmark::RunSpecifiedBenchmarks();
    fs::remove_all(scratch());
}
