// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <string>

#include "formats/support/error.h"
#include "generate/job.h"
#include "generate/job_text.h"

using namespace reprise;

namespace {

std::string error_of(const std::string& text) {
    try {
        parse_job(text, "job.ini");
    } catch (const Error& error) {
        CHECK(error.code() == ExitCode::bad_input);
        return error.what();
    }
    return "none";
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

constexpr const char* kKv = "[k]\nworkload=kv-cache\nnum_hidden_layers=2\nnum_key_value_heads=1\nkv_capacity=1GiB\n";
constexpr const char* kTraining = "[t]\nformat=npz\nsamples=100\nsample_size=1MiB\n";

}  // namespace

TEST_CASE("a job file: global words, sections, comments, words without a value") {
    const Job job = parse_job(
        "; a comment\n[global]\ndirectory=/d/\nbs=8k\n\n[a]\nrw=randread ; why\nsize=1m\nthread\n"
        "[b]\nrw=write\nbs=4k-16k\nsize=2m\nnrfiles=2\nstonewall\n",
        "job.ini");
    REQUIRE(job.sections.size() == 2);
    const auto& a = std::get<IoJob>(job.sections[0].what);
    CHECK(job.sections[0].directory == "/d");
    CHECK(a.reads);
    CHECK(!a.writes);
    CHECK(a.random);
    CHECK(a.threads);
    CHECK(a.bs_least == 8192);
    const auto& b = std::get<IoJob>(job.sections[1].what);
    CHECK(job.sections[1].stonewall);
    CHECK(b.bs_least == 4096);
    CHECK(b.bs_most == 16384);
    CHECK(b.file_size == 1 << 20);
}

TEST_CASE("a training job has the defaults of its format") {
    const Job job = parse_job(std::string(kTraining) + "batch=4\ngpus=2\ncompute=normal(10ms,1ms)\n", "job.ini");
    const auto& training = std::get<TrainingJob>(job.sections[0].what);
    CHECK(training.ranks == 2);
    CHECK(training.extension == ".npz");
    CHECK(training.steps_per_epoch() == 12);
    CHECK(training.bs == 0);
    CHECK(training.compute.mean() == 10e6);
    const Job stream = parse_job("[s]\nformat=tfrecord\nsamples=10\nsample_size=1k\n", "job.ini");
    CHECK(std::get<TrainingJob>(stream.sections[0].what).bs == 256 << 10);
    CHECK(std::get<TrainingJob>(stream.sections[0].what).samples_per_file == 10);
}

TEST_CASE("what --show prints is the same job") {
    for (const char* text :
         {"[t]\nformat=tfrecord\nsamples=100\nsample_size=normal(1MiB,1k)\ncheckpoint_every=2epochs\ncheckpoint_size="
          "1g\n"
          "checkpoint_mode=async\nshuffle=10\n",
          "[e]\nformat=npz\nsamples=100\nsample_size=1k\nsteps=250\n",
          "[n]\nformat=none\nsteps=7\ngpus=4\nranks=2\ncompute=1\n",
          "[i]\nrw=randrw\nsize=1m\nnrfiles=3\nioengine=io_uring\niodepth=8\n",
          "[o]\nrw=read\nsize=1m\nrate_iops=2.5\nruntime=3\n",
          "[u]\nrw=read\nsize=1m\nrate_iops=2.5\nioengine=io_uring\n",
          "[k]\nworkload=kv-cache\nnum_hidden_layers=2\nnum_key_value_heads=1\nkv_capacity=1GiB\nrequests=3\n"
          "request_rate=1\nprompt_tokens=9\nioengine=io_uring\n",
          "[m]\nworkload=model-load\nmodel_size=1g\nload_by=eager\n",
          "[c]\nworkload=convert\nsamples=9\nsample_size=1k\n",
          "[d]\nworkload=decode-cache\nsamples=9\nsample_size=1k\n",
          "[p]\nformat=parquet\nsamples=100\nsample_size=100\nsamples_per_file=30\nrow_group=10\n"}) {
        CAPTURE(text);
        const std::string shown = show_job(parse_job(text, "job.ini"));
        CHECK(show_job(parse_job(shown, "shown.ini")) == shown);
    }
}

TEST_CASE("every word of the table is taken somewhere, and in the other kind of section refused") {
    for (const WordInfo& word : all_words()) {
        CAPTURE(word.name);
        CHECK(!word.meaning.empty());
        if (word.name == "rw" || word.name == "format" || word.name == "workload" || word.place == WordPlace::both) {
            continue;
        }
        const std::string other = !fits(word.place, WordPlace::training) ? kTraining
                                  : !fits(word.place, WordPlace::io)     ? "[s]\nrw=read\nsize=1m\n"
                                                                         : "[s]\nworkload=model-load\n";
        CHECK(has(error_of(other + std::string(word.name) + "=1\n"), "does not belong in"));
    }
}

TEST_CASE("figures of several accelerators: one of them is taken, the file's or another") {
    const std::string text =
        "[global]\naccelerator=H100\ncompute.H100=323ms\ncompute.A100=636ms\n"
        "[t]\nformat=npz\nsamples=100\nsample_size=1k\nbatch=7\nbatch.V100=4\ncompute.V100=1.36s\n"
        "[own]\nformat=npz\nsamples=100\nsample_size=1k\ncompute=5ms\n";
    const auto steps = [&](std::string_view accelerator) {
        const Job job = parse_job(text, "job.ini", accelerator);
        const auto& first = std::get<TrainingJob>(job.sections.at(0).what);
        const auto& second = std::get<TrainingJob>(job.sections.at(1).what);
        // What a section says itself holds for every accelerator.
        CHECK(second.compute.mean() == 5e6);
        CHECK(show_job(parse_job(show_job(job), "shown.ini")) == show_job(job));
        return std::pair(first.compute.mean(), first.batch);
    };
    CHECK(steps("") == std::pair(323e6, uint64_t{7}));
    CHECK(steps("A100") == std::pair(636e6, uint64_t{7}));
    CHECK(steps("V100") == std::pair(1.36e9, uint64_t{4}));
    const auto error = [&](const std::string& job, std::string_view accelerator = {}) -> std::string {
        try {
            parse_job(job, "job.ini", accelerator);
        } catch (const Error& wrong) {
            return wrong.what();
        }
        return "";
    };
    CHECK(has(error(text, "a100"), "job.ini:5: [t] has no figures of --accelerator a100; did you mean A100"));
    const std::string job = "[t]\nformat=npz\nsamples=9\nsample_size=1k\n";
    CHECK(has(error(job + "accelerator=B20\ncompute.B200=1ms\n"), "job.ini:5: [t] has no figures of accelerator=B20"));
    CHECK(has(error(job + "compute.B200=1ms\n"), "job.ini:5: compute.B200= in a section that does not say which"));
    CHECK(has(error(job + "accelerator=B200\ncompute.A100=1ms\nbatch.B200=2\n"),
              "job.ini:6: compute= is given, but not for B200"));
    CHECK(has(error(job + "compute.=1ms\n"), "'compute.' is no word of an accelerator"));
    CHECK(has(error(job + "compue.A100=1ms\n"), "'compue.A100' is not known; did you mean compute"));
    CHECK(has(error(job + "accelerator=A100\ncompute.A100=1ms\nrwmixread.A100=4\n"), "does not belong in [t]"));
    CHECK(has(error(job, "A100"), "has no figures of an accelerator: --accelerator A100"));
}

TEST_CASE("what may not be what was meant is noted") {
    const auto notes = [](const std::string& text) {
        std::string all;
        for (const std::string& note : parse_job(text, "job.ini").notes) {
            all += note + '\n';
        }
        return all;
    };
    const std::string training = "[t]\nformat=npz\nsamples=100\nsample_size=1k\n";
    CHECK(notes(training + "batch=10\ncompute=50ms\n").empty());
    CHECK(notes(training + "batch=30\n") ==
          "[t] 10 of 100 samples are not read in an epoch: they fill no step of 30\n");
    CHECK(notes(training + "compute=50\n") == "[t] compute=50: seconds, as it has no unit\n");
    CHECK(notes(training + "compute=0\n").empty());
    const std::string stream = "[t]\nformat=tar\nsamples=100\nsample_size=1k\nsamples_per_file=10\n";
    CHECK(notes(stream + "shuffle=full\n").empty());
    CHECK(has(notes(stream + "shuffle=20\n"), "shuffle=20: as full, files are shuffled"));
    CHECK(notes(training + "shuffle=20\n").empty());
    // [global] says it for the open loop alone, and so does what is shown.
    const Job both =
        parse_job("[global]\nruntime=10\n[a]\nrw=read\nsize=1m\n[b]\nrw=read\nsize=1m\nrate_iops=5\n", "job.ini");
    CHECK(both.notes.empty());
    CHECK(show_job(parse_job(show_job(both), "shown.ini")) == show_job(both));
}

TEST_CASE("errors name the line, what is wrong and what to do") {
    struct Case {
        std::string text;
        const char* says;
    };
    const std::string io = "[s]\nrw=read\nsize=1m\n", training = kTraining;
    const Case cases[] = {
        {"", "no section"},
        {"size=1\n", "job.ini:1: 'size=1' is in no section"},
        {"[s\nrw=read\n", "has no ]"},
        {"[a b]\n", "is not a name"},
        {io + "[s]\n", "a second [s]"},
        {io + "size=2m\n", "job.ini:4: a second size="},
        {training + "shuffle=yes\n", "none, full, or a buffer of so many samples"},
        {io + "sise=2m\n", "'sise' is not known; did you mean size"},
        {io + "batch\n", "batch has no value"},
        {io + "bs=\n", "bs= has no value"},
        {io + "bs=8k-4k\n", "the smaller size comes first: 4k-8k"},
        {io + "bs=8k-x\n", "a range such as 4k-64k"},
        {io + "rw read\n", "job.ini:4: 'rw read' has no ="},
        {io + "blocksise=4k\n", "did you mean blocksize"},
        {io + "rwmixwrite=30\n", "write rwmixread="},
        {io + "sync=1\n", "fsync=1 syncs after each write"},
        {io + "stonewall=no\n", "0 or 1"},
        {io + "directory=/a/../../x\n", "a path without .."},
        {"[global]\nruntime=10\n" + io, "job.ini:2: runtime= is of an open loop, and no section is one"},
        {"[s]\nrw=read\nsize=1p\n", "more than 100 G reads and writes"},
        {training + "compute=normal(110ms)\n", "two times: a mean and a deviation"},
        {training + "compute=uniform(4ms,2ms)\n", "the smaller time comes first"},
        {io + "bs=2m\n", "is smaller than bs="},
        {io + "runtime=60\n", "runtime= is of an open loop"},
        {io + "concurrency=6\n", "concurrency= is of an open loop"},
        {io + "time_based=1\n", "time_based= is not supported"},
        {io + "arrivals=fixed\n", "arrivals= without rate_iops="},
        {io + "arrivals=none.csv\nrate_iops=3\n", "rate_iops= beside arrivals=none.csv, a file"},
        {io + "rate_iops=0\n", "how many a second"},
        {io + "rate_iops=fast\n", "how many a second"},
        {io + "rate_iops=9\nthinktime=3\n", "thinktime= in an open loop"},
        {io + "rate_iops=9\nioengine=libaio\n", "ioengine= in an open loop"},
        {io + "rate_iops=9\nioengine=io_uring\nconcurrency=3\n", "io_uring needs no threads"},
        {io + "rate_iops=9\niodepth=4\n", "iodepth= above 1 needs requests in flight"},
        {io + "iodepth=4\n", "iodepth= above 1 needs requests in flight"},
        {io + "ioengine=iouring\n", "did you mean io_uring"},
        {io + "numjobs=0\n", "a whole number from 1"},
        {io + "thread=yes\n", "thread= cannot be 'yes'"},
        {io + "directory=data\n", "a path from the root"},
        {io + "direct=1\nbs=1000\n", "whole sectors"},
        {io + "format=npz\n", "has both rw= and format="},
        {"[s]\nsize=1m\n", "has neither rw= nor format="},
        {"[global]\nbatch=3\n" + io, "no section of this file takes batch= of [global]"},
        {"[s]\nrw=read\n", "has no size="},
        {"[s]\nformat=npz\nsamples=3\n", "has no sample_size="},
        {"[s]\nformat=none\n", "has no steps="},
        {"[s]\nformat=none\nsteps=3\nsamples=3\n", "samples= beside format=none"},
        {training + "samples_per_file=3\n", "a file for each sample"},
        {training + "batch=200\n", "an epoch has no step"},
        {training + "gpus=3\nranks=2\n", "cannot be shared evenly"},
        {training + "sample_size=gauss(1,2)\n", "a second sample_size="},
        {training + "compute=fast\n", "250ms, normal(250ms,20ms)"},
        {training + "decode=normal(1ms,10ms)\n",
         "decode=normal(1ms,10ms) is below 0 in 46.0 % of all draws, which would become 0"},
        {"[s]\nformat=npz\nsamples=30\nsample_size=normal(1k,10k)\n", "a smaller deviation, or lognormal"},
        {"[s]\nformat=npz\nsamples=30\nsample_size=0\n", "4: sample_size=0 is less than 1"},
        {"[c]\nworkload=convert\nsamples=3\nsample_size=0k\n", "sample_size=0k is less than 1"},
        {std::string(kKv) + "request_rate=3\nruntime=9\nprompt_tokens=0\n", "prompt_tokens=0 is less than 1"},
        {training + "checkpoint_size=1m\n", "checkpoint_size= without checkpoint_every="},
        {training + "checkpoint_every=3x\n", "so many steps or epochs"},
        {training + "checkpoint_every=3\n", "has no checkpoint_size="},
        {training + "columns=3\n", "are of format=parquet"},
        {training + "shuffle=1\n", "shuffle= cannot be '1'"},
        {training + "direct=1\nbs=1000\n", "direct=1 needs reads of whole sectors"},
        {"[s]\nformat=cvs\n", "format= cannot be 'cvs'"},
        {"[s]\nworkload=kv\n", "workload= cannot be 'kv'"},
        {"[s]\nworkload=kv-cache\nrw=read\n", "has both rw= and workload="},
        {"[s]\nworkload=kv-cache\n", "has no num_hidden_layers="},
        {std::string(kKv) + "rate_iops=3\n", "rate_iops= does not belong in [k]"},
        {std::string(kKv) + "bs=4k\n", "a block follows from the model's dimensions"},
        {kKv, "has no request_rate="},
        {std::string(kKv) + "request_rate=3\n", "has no runtime="},
        {std::string(kKv) + "request_rate=3\nruntime=9\n", "has no prompt_tokens="},
        {std::string(kKv) + "request_rate=3\nruntime=9\nprompt_tokens=many\n", "so many tokens"},
        {std::string(kKv) + "block_tokens=100000\ndtype_bytes=8\nhead_dim=100000\n", "a block of more than 2 GiB"},
        {std::string(kKv) + "block_tokens=100000\nhead_dim=2560\n", "kv_capacity= is of 0 blocks"},
        {std::string(kKv) + "ioengine=libaio\n", "psync or io_uring"},
        {std::string(kKv) + "iodepth=4\n", "iodepth= above 1 needs requests in flight"},
        {std::string(kKv) + "prefill=2s\n", "more than a second for a token"},
        {std::string(kKv) + "kv_layout=raw\n", "one of: slots, files"},
        {"[m]\nworkload=model-load\n", "has no model_size="},
        {"[m]\nworkload=model-load\nmodel_size=1g\nload_by=eager\nload_split=slices\n", "reads whole files"},
        {"[m]\nworkload=model-load\nmodel_size=1g\ndirect=1\n", "direct=1 needs reads of whole sectors"},
        {"[m]\nworkload=model-load\nmodel_size=1g\nbs=4k\n", "pages are touched, not read"},
        {"[c]\nworkload=convert\nsamples=3\n", "has no sample_size="},
        {"[c]\nworkload=convert\nsamples=3\nsample_size=1k\nepochs=2\n", "epochs= is of workload=decode-cache"},
        {"[c]\nworkload=convert\nsamples=3\nsample_size=1k\nshuffle=9\n", "none or full"},
        {"[c]\nworkload=convert\nsamples=3\nsample_size=1k\ndirect=1\n", "what is written has any size"},
        {"[c]\nworkload=decode-cache\nsamples=3\nsample_size=1k\nsamples_per_file=2\n", "a file of its own"},
    };
    for (const Case& each : cases) {
        CAPTURE(each.text);
        const std::string error = error_of(each.text);
        CAPTURE(error);
        CHECK(has(error, each.says));
        CHECK(has(error, "job.ini:"));
        CHECK(has(error, "\n  "));
    }
}

TEST_CASE("a shrunk job keeps its steps and says what became smaller") {
    Job job = parse_job(
        "[t]\nformat=tfrecord\nsamples=1000000\nsamples_per_file=1000\nsample_size=normal(1MiB,1k)\nbatch=10\n"
        "checkpoint_every=5\ncheckpoint_size=1GiB\n[i]\nrw=read\nsize=1g\nbs=1m\n",
        "job.ini");
    shrink(job, 1000);
    const auto& training = std::get<TrainingJob>(job.sections[0].what);
    CHECK(training.samples == 1000);
    CHECK(training.sample_size.a == 1 << 20);
    CHECK(training.checkpoint_size == 1073742);
    CHECK(training.files() >= training.workers);
    CHECK(std::get<IoJob>(job.sections[1].what).size == 1048576);
    REQUIRE(job.notes.size() == 2);
    CHECK(has(job.notes[0], "1,000,000 samples of 1.00 MiB in 1,000 files became 1,000"));
    const Job shown = parse_job(show_job(job), "shown.ini");
    CHECK(std::get<TrainingJob>(shown.sections[0].what).samples == 1000);
    shrink(job, 1000);
    const auto& again = std::get<TrainingJob>(job.sections[0].what);
    CHECK(again.steps_per_epoch() == 8);
    CHECK(again.sample_size.a < 20'000);
    CHECK(has(job.notes[2], "an easier job than the real one's"));
}
