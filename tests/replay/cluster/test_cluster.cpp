// SPDX-License-Identifier: MIT
// Jobs whose time on a cluster follows by hand.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "formats/support/error.h"
#include "replay/cluster/cluster.h"
#include "tests/support.h"
#include "tests/units.h"

using namespace reprise;
using namespace reprise::test;

namespace {

/// A loader that fetches `bytes` in 10 ms a step, and a trainer that waits for it and computes for 20 ms. The loader is
/// two batches ahead at most.
JobProfile training(int steps, double bytes, int64_t step_ns = 20 * kMs) {
    JobProfile p;
    p.tasks.resize(2);
    p.streams = p.accelerators = 1;
    p.tasks[0].at_start = p.tasks[1].at_start = true;
    for (int i = 0; i < steps; ++i) {
        Segment load;
        load.fetch_ns = 10e6;
        load.fetch_requests = 10;
        load.fetch_bytes = bytes;
        load.published = static_cast<uint32_t>(i) + 1;
        load.alike = 1;
        if (i >= 2) {
            load.first_wait = static_cast<uint32_t>(p.waits.size());
            load.waits = 1;
            p.waits.push_back({1, static_cast<uint32_t>(i) - 1});
        }
        p.tasks[0].segments.push_back(load);
        Segment take;
        take.inside = true;
        take.first_wait = static_cast<uint32_t>(p.waits.size());
        take.waits = 1;
        p.waits.push_back({0, static_cast<uint32_t>(i) + 1});
        take.published = static_cast<uint32_t>(i) + 1;
        Segment submit, drain;
        submit.stream = drain.stream = 0;
        submit.busy_ns = step_ns;
        submit.published = drain.published = take.published;
        submit.alike = 2;
        drain.drain = drain.step_end = true;
        p.tasks[1].segments.insert(p.tasks[1].segments.end(), {take, submit, drain});
    }
    return p;
}

ClusterOptions on(uint64_t accelerators, uint64_t hosts, double bytes_per_s = 0) {
    ClusterOptions options;
    options.accelerators = accelerators;
    options.hosts = hosts;
    options.storage.read = {{4096, 0}};
    options.storage.parallelism = 1 << 20;
    options.storage.shared.read_bytes_per_s = bytes_per_s > 0 ? bytes_per_s : 1e18;
    options.scatter = false;
    return options;
}

}  // namespace

TEST_CASE("without limits each copy takes as long as alone") {
    const JobProfile job = training(10, 1e6);
    for (const uint64_t n : {1, 3, 1000}) {
        const ClusterResult r = simulate_cluster(job, on(n, n));
        CHECK(r.elapsed_s == doctest::Approx(0.010 + 10 * 0.020));
        CHECK(r.au == doctest::Approx(0.2 / 0.21));
        CHECK(r.au_mlperf == doctest::Approx(1));
        CHECK(r.fetched_bytes == doctest::Approx(static_cast<double>(n) * 10e6));
        CHECK(r.bound == "accelerators");
    }
}

TEST_CASE("bandwidth that all share is divided") {
    // 100 copies of 1 MB a step are 100 MB; at 1 GB/s that is 100 ms a step.
    const ClusterResult r = simulate_cluster(training(50, 1e6), on(100, 10, 1e9));
    CHECK(r.elapsed_s == doctest::Approx(50 * 0.1 + 0.02).epsilon(0.01));
    CHECK(r.step_s == doctest::Approx(0.1).epsilon(0.01));
    CHECK(r.bytes_per_s() == doctest::Approx(1e9).epsilon(0.01));
    CHECK(r.bound == "storage bandwidth");
}

TEST_CASE("limits of a host are those of its ranks") {
    ClusterOptions options = on(100, 25);
    options.network.storage_bytes_per_s = 40e6;  // four ranks: 4 MB a step in 100 ms
    const ClusterResult r = simulate_cluster(training(50, 1e6), options);
    CHECK(r.step_s == doctest::Approx(0.1).epsilon(0.01));
    CHECK(r.bound == "network of a host");
    options = on(100, 25);
    options.storage.shared.client_reads_per_s = 400;  // 40 requests a step in 100 ms
    const ClusterResult requests = simulate_cluster(training(50, 1e6), options);
    CHECK(requests.step_s == doctest::Approx(0.1).epsilon(0.01));
    CHECK(requests.bound == "storage client of a host");
}

TEST_CASE("names and decoding have limits of their own") {
    JobProfile job = training(50, 1e6);
    for (Segment& s : job.tasks[0].segments) {
        s.names = 10;
    }
    ClusterOptions options = on(100, 1);
    options.storage.shared.names_per_s = 10'000;  // 1000 a step
    const ClusterResult names = simulate_cluster(job, options);
    CHECK(names.step_s == doctest::Approx(0.1).epsilon(0.02));
    CHECK(names.bound == "metadata rate");
    job = training(50, 1e6);
    for (Segment& s : job.tasks[0].segments) {
        s.compute_ns = 10e6;
    }
    options = on(100, 10);
    options.cpus = 1;  // ten ranks decode 10 ms each
    const ClusterResult decoding = simulate_cluster(job, options);
    CHECK(decoding.step_s == doctest::Approx(0.1).epsilon(0.02));
    CHECK(decoding.bound == "processors of a host");
}

TEST_CASE("an all-reduce is added to each step") {
    ClusterOptions options = on(16, 4);
    options.network.latency_us = 100;
    options.network.host_bytes_per_s = 1e9;
    options.network.gradient_bytes = 10e6;
    // 6 messages of 100 us, and 1.5 times 10 MB at 1 GB/s.
    CHECK(options.network.all_reduce_ns(16, 4) == doctest::Approx(600e3 + 15e6));
    const ClusterResult r = simulate_cluster(training(10, 1e6), options);
    CHECK(r.step_s == doctest::Approx(0.02 + 0.0156));
    CHECK(r.bound == "all-reduce");
    options.network.algorithm = NetworkModel::Algorithm::tree;
    CHECK(options.network.all_reduce_ns(16, 4) == doctest::Approx(400e3 + 20e6));
    options.network.fabric_bytes_per_s = 2e9;  // half of what the hosts have
    CHECK(options.network.all_reduce_ns(16, 4) == doctest::Approx(400e3 + 40e6));
    options.network.overlap = 0.75;
    CHECK(options.network.all_reduce_ns(16, 4) == doctest::Approx(10.1e6));
    CHECK(options.network.all_reduce_ns(1, 1) == 0);
    options.in_step = false;
    CHECK(simulate_cluster(training(10, 1e6), options).step_s == doctest::Approx(0.02));
}

TEST_CASE("in step all wait for the slowest, and the same seed draws the same") {
    JobProfile job = training(100, 1e6);
    for (size_t i = 0; i < 100; ++i) {  // one step of four takes 40 ms
        job.tasks[1].segments[3 * i + 1].busy_ns = i % 4 == 0 ? 40 * kMs : 20 * kMs;
    }
    ClusterOptions options = on(64, 8);
    options.scatter = true;
    const ClusterResult r = simulate_cluster(job, options);
    CHECK(r.step_s == doctest::Approx(0.04).epsilon(0.02));  // some rank is slow nearly always
    CHECK(r.au_mlperf == doctest::Approx(25.0 / 40).epsilon(0.05));
    CHECK(r.bound == "the slowest rank of each step");
    CHECK(simulate_cluster(job, options).elapsed_s == r.elapsed_s);
    options.in_step = false;
    CHECK(simulate_cluster(job, options).step_s == doctest::Approx(0.025).epsilon(0.05));
    options.seed = 2;
    CHECK(simulate_cluster(job, options).elapsed_s != r.elapsed_s);
}

TEST_CASE("what the log writes, the first copy writes, or all do") {
    JobProfile job = training(10, 1e6);
    job.writes = true;
    Segment& sync = job.tasks[1].segments.back();  // begins when the last step does, 190 ms after the job
    sync.sync_ns = 50e6;
    sync.sync_bytes = 50e6;
    ClusterOptions options = on(10, 1);
    options.storage.shared.write_bytes_per_s = 1e9;
    CHECK(simulate_cluster(job, options).elapsed_s == doctest::Approx(0.19 + 0.05));
    options.all_write = true;
    CHECK(simulate_cluster(job, options).elapsed_s == doctest::Approx(0.19 + 0.5).epsilon(0.01));
}

TEST_CASE("accelerators that do not divide are refused") {
    JobProfile job = training(2, 1e6);
    CHECK_THROWS_WITH_AS(simulate_cluster(job, on(10, 4)), doctest::Contains("do not divide evenly over --hosts 4"),
                         Error);
    CHECK_THROWS_AS(simulate_cluster(job, on(0, 1)), Error);
    CHECK_THROWS_AS(simulate_cluster(job, on(1, 0)), Error);
    job.accelerators = 4;
    CHECK_THROWS_WITH_AS(simulate_cluster(job, on(10, 1)), doctest::Contains("no multiple of the 4"), Error);
}

TEST_CASE("tasks that wait in a circle are refused, not waited for") {
    JobProfile job = training(2, 1e6);
    job.waits[0] = {0, 2};  // the trainer waits for a batch that waits for it
    job.tasks[0].segments[1].first_wait = static_cast<uint32_t>(job.waits.size());
    job.tasks[0].segments[1].waits = 1;
    job.waits.push_back({1, 2});
    CHECK_THROWS_WITH_AS(simulate_cluster(job, on(2, 1)), doctest::Contains("circle"), Error);
}

TEST_CASE("a network model is read, and what is wrong in it is named") {
    const TempDir dir;
    const auto read = [&](const std::string& text) {
        write_file(dir / "net.json", text);
        return read_network_model(dir / "net.json");
    };
    const NetworkModel m = read(R"({"network_model": 1, "algorithm": "tree", "latency_us": 4, "gradient_bytes": 1e8})");
    CHECK(m.algorithm == NetworkModel::Algorithm::tree);
    CHECK(m.latency_us == 4);
    CHECK(m.gradient_bytes == 1e8);
    for (const auto& [text, says] : {std::pair{R"({"network_model": 1, "latency": 4})", "did you mean latency_us"},
                                     {R"({"network_model": 2})", "version"},
                                     {R"({"network_model": 1, "overlap": 1.5})", "from 0 to 1"},
                                     {R"({"network_model": 1, "latency_us": -1})", "from 0 on"},
                                     {R"({"network_model": 1, "latency_us": "4"})", "not a number"},
                                     {R"({"network_model": 1, "algorithm": "rings"})", "neither"},
                                     {R"({"latency_us": 4})", "is not a network model"},
                                     {R"({"network_model": 1)", "is not a network model"},
                                     {"", "is not a network model"}}) {
        CHECK_THROWS_WITH_AS(read(text), doctest::Contains(says), Error);
    }
    CHECK_THROWS_AS(read_network_model(dir / "none.json"), Error);
    CHECK_THROWS_AS(read_network_model(dir.path()), Error);
}
