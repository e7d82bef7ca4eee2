// What rank 0 does at the end of a run of many ranks, with made up results and logs:
//   logs     LogJoin of N logs of M ops each, of which one is written and the others copied from it with another task;
//            beside two copies of the same bytes into one file: reading and writing as cat does, and copy_file_range
//   results  N packed results and sums of M ops each, unpacked and merged
// in turn, medians, each in a process of its own, whose greatest memory is taken. Files stay in the page cache as far
// as it reaches, and nothing is synced on either side. Usage: bench_ranks [--dir DIR] [--ranks N] [--ops M] [--rounds
// N] [--json FILE]. DIR ($TMPDIR by default) holds twice the logs (64 of 10,000,000 ops: 2 x 4 GB), removed at the end.
// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): mkdtemp
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "analyze/run_sums.h"
#include "calibrate/clock.h"
#include "formats/oplog/join.h"
#include "replay/run/merge_results.h"
#include "replay/run/pack_result.h"
#include "tests/bench/in_child.h"
#include "tests/bench/rank_logs.h"

namespace {

namespace fs = std::filesystem;
using namespace reprise;
using namespace reprise::bench;

double timed(const std::function<void()>& work) {
    const int64_t begin = monotonic_ns();
    work();
    return static_cast<double>(monotonic_ns() - begin) / 1e9;
}

double join(const Setup& setup, const fs::path& output) {
    return timed([&] {
        LogJoin join(output, {.sync = false});
        for (uint32_t rank = 0; rank < setup.ranks; ++rank) {
            join.add("rank " + std::to_string(rank), file_source(setup.part(rank)));
        }
        join.finish();
        if (join.ops() != setup.ops * setup.ranks) {
            throw std::runtime_error("the joined log lacks ops");
        }
    });
}

/// All parts, one behind the other.
double copy(const Setup& setup, const fs::path& output, bool in_kernel) {
    constexpr size_t kBuffer = size_t{128} << 10;  // as cat of coreutils
    std::vector<char> buffer(kBuffer);
    return timed([&] {
        const int to = ::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        for (uint32_t rank = 0; rank < setup.ranks; ++rank) {
            const int from = ::open(setup.part(rank).c_str(), O_RDONLY | O_CLOEXEC);
            ::posix_fadvise(from, 0, 0, POSIX_FADV_SEQUENTIAL);
            for (;;) {
                ssize_t got = 0;
                if (in_kernel) {
                    got = ::copy_file_range(from, nullptr, to, nullptr, size_t{1} << 30, 0);
                } else {
                    got = ::read(from, buffer.data(), kBuffer);
                    if (got > 0 && ::write(to, buffer.data(), static_cast<size_t>(got)) != got) {
                        got = -1;
                    }
                }
                if (got < 0) {
                    throw std::runtime_error("cannot copy " + setup.part(rank).string());
                }
                if (got == 0) {
                    break;
                }
            }
            ::close(from);
        }
        ::close(to);
    });
}

/// What a rank sends: a result and the sums of both sides, with the latencies of M ops of eight kinds.
Bytes packed_rank(const Setup& setup, uint32_t rank, const Tables& tables) {
    constexpr OpKind kKinds[] = {OpKind::open,  OpKind::close, OpKind::read,   OpKind::pread,
                                 OpKind::fstat, OpKind::lseek, OpKind::pwrite, OpKind::compute};
    std::mt19937_64 random(rank + 1);
    RankPlace place;
    place.row.rank = rank;
    place.row.host = "node" + std::to_string(rank / 8);
    place.boot = place.row.host;
    ReplayResult result;
    result.latency.resize(kOpKindLimit);
    FigureCounter recorded(tables), here(tables);
    AcceleratorObserver recorded_use(tables), here_use(tables);
    RunSums sums{sums_of(recorded, recorded_use), sums_of(here, here_use), {1, 2, 3}};
    // Buckets are what takes memory and time; most ops are added as many at a time.
    constexpr uint64_t kValues = 200'000;
    for (uint64_t i = 0; i < kValues; ++i) {
        const uint64_t bits = random();
        const auto kind = static_cast<size_t>(kKinds[bits % std::size(kKinds)]);
        const auto ns = static_cast<int64_t>(100 + (bits >> 8 & ((uint64_t{1} << (8 + (bits >> 40) % 24)) - 1)));
        const uint64_t times = setup.ops / kValues;
        result.latency[kind].add(ns, times);
        result.lateness.add(ns / 2, times);
        sums.recorded.latency[kind].add(ns * 2, times);
        sums.here.latency[kind].add(ns, times);
        result.ops += times;
    }
    result.elapsed_ns = 1'000'000'000 + rank;
    Bytes out;
    pack(place, out);
    pack(result, out);
    pack(sums, out);
    return out;
}

double reduce(const Setup& setup, const std::vector<Bytes>& packed, const Tables& tables) {
    return timed([&] {
        std::vector<RankRun> ranks;
        std::optional<RunSums> sums;
        for (const Bytes& bytes : packed) {
            ByteReader in(bytes);
            RankRun rank;
            rank.place = unpack_place(in);
            rank.result = unpack_result(in);
            RunSums one = unpack_sums(in, tables);
            if (sums) {
                merge(*sums, one);
            } else {
                sums = std::move(one);
            }
            ranks.push_back(std::move(rank));
        }
        const ReplayResult merged = merge_results(std::move(ranks));
        uint64_t counted = 0;
        for (const Histogram& counts : merged.latency) {
            counted += counts.count();
        }
        if (counted != merged.ops || merged.ops != setup.ops / 200'000 * 200'000 * setup.ranks) {
            throw std::runtime_error("the merged result lacks ops");
        }
    });
}

nlohmann::json measure(const Setup& setup) {
    in_child([&] { return write_first(setup), 0.0; });
    for (uint32_t rank = 1; rank < setup.ranks; ++rank) {
        in_child([&] { return copy_for(setup, rank), 0.0; });
    }
    double bytes = 0;
    for (uint32_t rank = 0; rank < setup.ranks; ++rank) {
        bytes += static_cast<double>(fs::file_size(setup.part(rank)));
    }
    ::sync();
    const fs::path output = setup.top / "run.oplog";
    std::vector<double> joined, read_written, in_kernel, join_cpu, copy_cpu;
    double join_peak = 0;
    for (int round = 0; round < setup.rounds; ++round) {
        const auto settle = [&] {
            fs::remove(output);
            ::sync();
        };
        const auto one = [&] {
            const Measured now = in_child([&] { return join(setup, output); });
            joined.push_back(now.value);
            join_cpu.push_back(now.cpu_s);
            join_peak = std::max(join_peak, now.peak_mib);
            settle();
        };
        const auto others = [&] {
            const Measured now = in_child([&] { return copy(setup, output, false); });
            read_written.push_back(now.value);
            copy_cpu.push_back(now.cpu_s);
            settle();
            in_kernel.push_back(in_child([&] { return copy(setup, output, true); }).value);
            settle();
        };
        round % 2 == 0 ? (one(), others()) : (others(), one());
        std::fprintf(stderr, "round %d: joined in %.2f s; read and written in %.2f s, copy_file_range %.2f s\n",
                     round + 1, joined.back(), read_written.back(), in_kernel.back());
    }
    const LogReader first(setup.part(0));
    std::vector<Bytes> packed;
    double result_bytes = 0;
    for (uint32_t rank = 0; rank < setup.ranks; ++rank) {
        packed.push_back(packed_rank(setup, rank, first.tables()));
        result_bytes += static_cast<double>(packed.back().size());
    }
    const double before = in_child([] { return 0.0; }).peak_mib;
    std::vector<double> reduced;
    double reduce_peak = 0;
    for (int round = 0; round < setup.rounds; ++round) {
        const Measured now = in_child([&] { return reduce(setup, packed, first.tables()); });
        reduced.push_back(now.value);
        reduce_peak = std::max(reduce_peak, now.peak_mib);
    }
    return {{"ranks", setup.ranks},
            {"ops", setup.ops},
            {"rounds", setup.rounds},
            {"log_bytes", bytes},
            {"join_s", median(joined)},
            {"join_cpu_s", median(join_cpu)},
            {"join_peak_mib", join_peak},
            {"copy_s", median(read_written)},
            {"copy_cpu_s", median(copy_cpu)},
            {"copy_in_kernel_s", median(in_kernel)},
            {"result_bytes", result_bytes},
            {"reduce_s", median(reduced)},
            {"reduce_mib", reduce_peak - before}};
}

}  // namespace

int main(int argc, char** argv) {
    const char* const tmp = std::getenv("TMPDIR");
    std::string directory = tmp != nullptr ? tmp : "/tmp", json;
    Setup setup;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string word = argv[i], value = argv[i + 1];
        if (word == "--dir") {
            directory = value;
        } else if (word == "--ranks") {
            setup.ranks = static_cast<uint32_t>(std::max(2, std::atoi(value.c_str())));
        } else if (word == "--ops") {
            setup.ops = std::max<uint64_t>(200'000, std::strtoull(value.c_str(), nullptr, 10));
        } else if (word == "--rounds") {
            setup.rounds = std::max(1, std::atoi(value.c_str()));
        } else if (word == "--json") {
            json = value;
        } else {
            give_up("unknown option " + word);
        }
    }
    directory += "/reprise-bench-XXXXXX";
    if (::mkdtemp(directory.data()) == nullptr) {
        give_up("cannot make " + directory);
    }
    setup.top = directory;
    const nlohmann::json found = measure(setup);
    fs::remove_all(setup.top);
    const auto number = [&](const char* key) { return found[key].get<double>(); };
    const auto rate = [&](const char* key) { return number("log_bytes") / number(key) / 1e9; };
    std::printf("%u ranks, %llu ops each, %d rounds\n", setup.ranks, static_cast<unsigned long long>(setup.ops),
                setup.rounds);
    std::printf(
        "  logs      %.2f GB joined at %.2f GB/s, %.0f MiB; read and written %.2f GB/s, copy_file_range %.2f GB/s\n",
        number("log_bytes") / 1e9, rate("join_s"), number("join_peak_mib"), rate("copy_s"), rate("copy_in_kernel_s"));
    std::printf("            processor time %.2f s, of reading and writing %.2f s\n", number("join_cpu_s"),
                number("copy_cpu_s"));
    std::printf("  results   %.1f MB merged in %.3f s, %.0f MiB beside them\n", number("result_bytes") / 1e6,
                number("reduce_s"), number("reduce_mib"));
    if (!json.empty()) {
        std::ofstream(json) << found.dump(1) << "\n";
    }
    return 0;
}
