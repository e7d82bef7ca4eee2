// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "fit/fit.h"
#include "formats/oplog/copy_tables.h"
#include "formats/oplog/header_facts.h"
#include "formats/oplog/loader_marks.h"
#include "formats/support/error.h"
#include "generate/generate.h"
#include "tests/fit/random_job.h"
#include "tests/support.h"

using namespace reprise;
using namespace reprise::test;

namespace {

FittedJob fit_of(const std::string& text) {
    const TempDir dir;
    generate(parse_job(text, "job.ini"), dir / "job.oplog");
    return fit_job(LogReader(dir / "job.oplog"));
}

/// What is drawn: of the same kind unless another would fit as well, mean and deviation within 5 %, or within what the
/// fit itself says.
std::string differs(const Distribution& want, const Distribution& got, const FittedWord& word) {
    const auto mean = [](const Distribution& of) { return of.mean(); };
    const auto deviation = [](const Distribution& of) {
        return of.kind == Distribution::Kind::uniform    ? of.b - of.a
               : of.kind == Distribution::Kind::constant ? 0
                                                         : of.b;
    };
    const bool either = word.evidence.find("another kind") != std::string::npos;
    if (want.kind != got.kind && !either && want.varies()) {
        return "kind";
    }
    if (!want.varies() && got.varies()) {
        return "varies";
    }
    // Four standard errors: some hundred figures are compared.
    const auto far = [](double x, double y, double error) {
        return std::abs(x - y) > std::max(0.05, 2 * error) * std::abs(x) + 1;
    };
    if (far(mean(want), mean(got), word.mean_error)) {
        return "mean";
    }
    if (want.kind == got.kind && far(deviation(want), deviation(got), word.deviation_error)) {
        return "deviation";
    }
    return "";
}

/// Every word of a job that the fit does not name as unseen, and that is another than in the job.
std::vector<std::string> compare(const std::string& text, const FittedJob& fitted) {
    std::vector<std::string> out;
    const Job want = parse_job(text, "job.ini"), got = parse_job(fitted.text("job.oplog"), "fitted.ini");
    const auto& a = std::get<TrainingJob>(want.sections.at(0).what);
    const auto& b = std::get<TrainingJob>(got.sections.at(0).what);
    const auto check = [&](const char* word, bool same, const std::string& how = "") {
        if (!same && fitted.sees(word)) {
            const FittedWord* const found = fitted.find(word);
            out.push_back(std::string(word) + " is " + (found == nullptr ? "missing" : found->value) + how);
        }
    };
    const auto drawn = [&](const char* word, const Distribution& x, const Distribution& y) {
        const FittedWord* const found = fitted.find(word);
        if (found == nullptr) {
            return check(word, false);
        }
        const std::string how = differs(x, y, *found);
        check(word, how.empty(), ": " + how);
    };
    check("format", a.format == b.format && a.extension == b.extension);
    if (a.format != SampleFormat::none) {
        check("samples", a.samples == b.samples);
        check("samples_per_file", a.samples_per_file == b.samples_per_file ||
                                      (a.samples_per_file >= a.samples && b.samples_per_file >= b.samples));
        drawn("sample_size", a.sample_size, b.sample_size);
        check("batch", a.batch == b.batch);
        check("loader_workers", a.workers == b.workers);
        check("prefetch", a.prefetch == b.prefetch);
        check("shuffle", a.shuffled == b.shuffled &&
                             std::min(a.shuffle_buffer, a.samples) == std::min(b.shuffle_buffer, b.samples));
        check("bs", a.bs == b.bs);
        drawn("decode", a.decode, b.decode);
    }
    if (a.format == SampleFormat::parquet) {
        check("row_group", std::min(a.row_group, a.samples_per_file) == std::min(b.row_group, b.samples_per_file));
        check("columns", a.columns == b.columns);
    }
    check("direct", a.direct == b.direct);
    if (fitted.sees("samples")) {
        check("epochs", a.all_steps() == b.all_steps(), " with " + std::to_string(b.all_steps()) + " steps");
    }
    check("compute_on", a.on_processor == b.on_processor || a.compute.mean() == 0);
    check("gpus", a.gpus == b.gpus);
    check("ranks", a.ranks == b.ranks);
    if (a.ranks > 1) {
        check("sync", a.sync == b.sync);
    }
    drawn("compute", a.compute, b.compute);
    if (a.overhead.mean() > 0 || b.overhead.mean() > 0) {
        drawn("overhead", a.overhead, b.overhead);
    }
    const auto saves = [](const TrainingJob& of) {
        const uint64_t epoch = of.steps_per_epoch();
        return of.checkpoint_steps != 0    ? of.all_steps() / of.checkpoint_steps
               : of.checkpoint_epochs != 0 ? of.all_steps() / epoch / of.checkpoint_epochs
                                           : 0;
    };
    if (saves(a) != 0) {
        check("checkpoint_every",
              a.checkpoint_steps == b.checkpoint_steps && a.checkpoint_epochs == b.checkpoint_epochs);
        check("checkpoint_size", a.checkpoint_size == b.checkpoint_size);
        check("checkpoint_mode", a.checkpoint_mode == b.checkpoint_mode);
        check("checkpoint_bs", a.checkpoint_bs == b.checkpoint_bs);
        check("checkpoint_copy",
              a.checkpoint_mode != TrainingJob::Checkpoint::async || a.checkpoint_copy_ns == b.checkpoint_copy_ns);
    }
    return out;
}

}  // namespace

TEST_CASE("sizes that vary more than a normal may are fitted as something that can be generated") {
    const FittedJob fitted = fit_of(RandomJob(260).text());  // a normal would be negative in 27.7 % of all draws
    const auto size = std::find_if(fitted.words.begin(), fitted.words.end(),
                                   [](const FittedWord& word) { return word.word == "sample_size"; });
    REQUIRE(size != fitted.words.end());
    CHECK(size->value.starts_with("lognormal("));
}

TEST_CASE("a drawn job comes back from its log, all but what is named as unseen") {
    const char* const given = std::getenv("REPRISE_FIT_SEEDS");  // more of them: "100-200"
    const uint64_t from = given == nullptr ? 0 : std::strtoull(given, nullptr, 10);
    const char* const dash = given == nullptr ? nullptr : std::strchr(given, '-');
    const uint64_t to = dash == nullptr ? from + (given == nullptr ? 40 : 1) : std::strtoull(dash + 1, nullptr, 10);
    std::map<std::string, std::pair<int, int>> seen;  // of the words in the fitted files
    for (uint64_t seed = from; seed < to; ++seed) {
        const std::string text = RandomJob(seed).text();
        const FittedJob fitted = fit_of(text);
        for (const FittedWord& word : fitted.words) {
            ++seen[word.word].second;
            seen[word.word].first += fitted.sees(word.word) ? 1 : 0;
        }
        // Of a part of a stream that nothing tells apart, the rest is a guess.
        const bool known = fitted.sees("samples") && fitted.sees("sample_size");
        CHECK_MESSAGE((!known || fitted.differs.empty()), "seed " << seed << ": " << fitted.differs << "\n" << text);
        for (const std::string& wrong : compare(text, fitted)) {
            FAIL_CHECK("seed " << seed << ": " << wrong << "\n" << text << "---\n" << fitted.text("job.oplog"));
        }
    }
    if (given != nullptr) {
        for (const auto& [word, count] : seen) {
            MESSAGE(word << " seen in " << count.first << " of " << count.second);
        }
        return;
    }
    // What every log shows, and what most do: naming all as unseen would be no fit.
    for (const char* word : {"compute_on", "decode", "loader_workers", "ranks", "epochs", "checkpoint_every",
                             "checkpoint_size", "sync", "format", "bs", "overhead"}) {
        CHECK_MESSAGE(seen[word].first == seen[word].second, word);
        CHECK_MESSAGE(seen[word].second > 0, word);
    }
    for (const char* word :
         {"compute", "batch", "samples", "sample_size", "samples_per_file", "prefetch", "gpus", "shuffle"}) {
        CHECK_MESSAGE(seen[word].first * 5 > 2 * seen[word].second, word);
    }
}

namespace {

constexpr const char* kJob =
    "[t]\nformat=jpeg\nsamples=1600\nsample_size=normal(100k,20k)\nbatch=4\ngpus=2\nranks=1\nloader_workers=3\n"
    "prefetch=2\nshuffle=full\nepochs=2\ndecode=2ms\ncompute=20ms\ncheckpoint_every=50\ncheckpoint_size=3MiB\n";

std::string value(const FittedJob& job, std::string_view word) {
    const FittedWord* const found = job.find(word);
    return found == nullptr ? "" : found->value;
}

/// The same log with all marks renamed to what nobody knows.
void without_marks(const std::filesystem::path& from, const std::filesystem::path& to) {
    const LogReader log(from);
    LogWriter out(to, log.header());
    copy_tables(log.tables(), out);
    const StringId other = out.intern("other");
    for (TaskId task = 1; task < log.tables().tasks.size(); ++task) {
        log.for_each(task, [&](const Op& op, uint64_t) {
            Op made = op;
            made.text = op.kind == OpKind::marker ? other : op.text;
            out.append(task, made);
        });
    }
    out.finish();
}

/// The same log as from a job with a new loader in each epoch: marks of the second are named after it.
void with_new_loader(const std::filesystem::path& from, const std::filesystem::path& to) {
    const LogReader log(from);
    const Tables& tables = log.tables();
    LogWriter out(to, log.header());
    copy_tables(tables, out);
    int64_t second = 0;  // when the last epoch begins
    for (TaskId task = 1; task < tables.tasks.size(); ++task) {
        log.for_each(task, [&](const Op& op, uint64_t) {
            if (op.kind == OpKind::marker && tables.strings[op.text] == "epoch" &&
                op.flags == static_cast<int64_t>(MarkerPhase::begin)) {
                second = std::max(second, op.begin);
            }
        });
    }
    for (TaskId task = 1; task < tables.tasks.size(); ++task) {
        log.for_each(task, [&](const Op& op, uint64_t) {
            Op made = op;
            if (op.kind == OpKind::marker && op.begin >= second && loader_mark(tables.strings[op.text])) {
                made.text = out.intern(std::string(tables.strings[op.text]) + ".2");
                made.arg = tables.strings[op.text] == "epoch" ? 0 : op.arg;
            }
            out.append(task, made);
        });
    }
    out.finish();
}

}  // namespace

TEST_CASE("a new loader in each epoch is the next epoch, not another loop") {
    const TempDir dir;
    std::string text = kJob;
    text.replace(text.find("checkpoint_every=50"), 19, "checkpoint_every=1epoch");
    generate(parse_job(text, "job.ini"), dir / "job.oplog");
    with_new_loader(dir / "job.oplog", dir / "new.oplog");
    const FittedJob one = fit_job(LogReader(dir / "job.oplog")), each = fit_job(LogReader(dir / "new.oplog"));
    REQUIRE(each.find("epochs") != nullptr);
    CHECK(value(each, "epochs") == "2");
    CHECK(each.find("epochs")->evidence == "marks");
    for (const char* word : {"samples", "batch", "checkpoint_every", "checkpoint_size", "loader_workers"}) {
        CHECK_MESSAGE(value(each, word) == value(one, word), word);
    }
}

TEST_CASE("without marks, the accelerator's work tells the steps") {
    const TempDir dir;
    generate(parse_job(kJob, "job.ini"), dir / "job.oplog");
    without_marks(dir / "job.oplog", dir / "bare.oplog");
    const FittedJob job = fit_job(LogReader(dir / "bare.oplog"));
    CHECK(value(job, "batch") == "4");
    CHECK(value(job, "gpus") == "2");
    CHECK(value(job, "loader_workers") == "3");
    CHECK(value(job, "compute") == "20ms");
    CHECK(value(job, "decode") == "2ms");
    CHECK(value(job, "epochs") == "2");  // by how often samples are read
    CHECK(value(job, "checkpoint_every") == "50");
}

TEST_CASE("without marks and accelerator, the batches that are handed over are the steps") {
    const TempDir dir;
    std::string text = kJob;
    text.replace(text.find("compute=20ms"), 12, "compute=0");
    generate(parse_job(text, "job.ini"), dir / "job.oplog");
    without_marks(dir / "job.oplog", dir / "bare.oplog");
    const FittedJob job = fit_job(LogReader(dir / "bare.oplog"));
    CHECK(value(job, "batch") == "8");  // of the rank
    CHECK(!job.sees("batch"));
    CHECK(!job.sees("gpus"));
    CHECK(value(job, "loader_workers") == "3");
    CHECK(value(job, "samples") == "1600");
    CHECK(value(job, "prefetch") == "2");
    CHECK(job.sees("prefetch"));
}

TEST_CASE("what a rank does beside its accelerator is told from the accelerator's work, which may be slept") {
    const std::string text =
        "[t]\nformat=jpeg\nsamples=400\nsample_size=100k\nbatch=4\nloader_workers=3\ncompute=20ms\noverhead=1ms\n";
    const FittedJob job = fit_of(text);
    CHECK(value(job, "compute") == "20ms");
    CHECK(value(job, "overhead") == "1ms");
    // As DLIO and MLPerf Storage do.
    const TempDir dir;
    generate(parse_job(text, "job.ini"), dir / "job.oplog");
    {
        const LogReader log(dir / "job.oplog");
        LogWriter out(dir / "slept.oplog", log.header());
        copy_tables(log.tables(), out);
        for (TaskId task = 1; task < log.tables().tasks.size(); ++task) {
            log.for_each(task, [&](const Op& op, uint64_t) {
                Op made = op;
                if (op.kind == OpKind::gpu_submit) {
                    made = {.kind = OpKind::compute, .begin = op.begin};
                } else if (op.kind == OpKind::gpu_wait) {
                    made = {.kind = OpKind::wait, .begin = op.begin, .duration = op.duration, .arg = kWaitSleep};
                }
                out.append(task, made);
            });
        }
        out.finish();
    }
    const FittedJob slept = fit_job(LogReader(dir / "slept.oplog"));
    CHECK(value(slept, "compute") == "20ms");
    CHECK(value(slept, "overhead") == "1ms");
    CHECK(value(slept, "compute_on").empty());
}

TEST_CASE("a queue that was never full is named") {
    const FittedJob job = fit_of(
        "[t]\nformat=jpeg\nsamples=160\nsample_size=100k\nbatch=4\nloader_workers=2\nprefetch=50\ndecode=9ms\ncompute="
        "1ms\n");
    CHECK(!job.sees("prefetch"));
    CHECK(job.find("prefetch")->guessed);
    CHECK(job.text("x").find("; guessed: the queue was never full") != std::string::npos);
}

TEST_CASE("a stream whose records nothing tells apart is fitted batch by batch") {
    const FittedJob job = fit_of(
        "[t]\nformat=tfrecord\nsamples=4000\nsamples_per_file=400\nsample_size=100k\nbatch=8\nloader_workers="
        "2\ncompute=9ms\n");
    for (const char* word : {"samples", "sample_size", "batch", "samples_per_file"}) {
        CHECK_MESSAGE(!job.sees(word), word);
    }
    const Job again = parse_job(job.text("x"), "x");
    const auto& training = std::get<TrainingJob>(again.sections.at(0).what);
    CHECK(training.all_steps() == 500);
    const double bytes = static_cast<double>(training.samples) * training.sample_size.mean();
    CHECK(bytes == doctest::Approx(4000.0 * 102400).epsilon(0.01));
}

TEST_CASE("batches that several loaders make together are no fit") {
    const std::string text =
        "[job]\nformat=tfrecord\nsamples=64\nsamples_per_file=8\nsample_size=300k\nbatch=8\n"
        "loader_workers=4\nprefetch=2\nepochs=2\ncompute=2ms\n";
    CHECK(fit_of(text).differs.empty());
    const FittedJob job = fit_of(text + "interleave=1\n");
    CHECK(job.differs.starts_with("each batch is read by 4 tasks in turn, in the fitted job by one"));
    CHECK_FALSE(job.sees("loader_workers"));
}

TEST_CASE("what does not train is refused, and says why") {
    for (const char* text : {"[t]\nrw=randread\nsize=1m\nnumjobs=2\n", "[t]\nrw=write\nsize=1m\nfsync=4\n",
                             "[t]\nrw=randread\nsize=1m\nioengine=io_uring\niodepth=8\n"}) {
        try {
            fit_of(text);
            FAIL_CHECK(text);
        } catch (const Error& error) {
            CHECK(error.code() == ExitCode::bad_input);
            CHECK(std::string(error.what()).find("no training loop is seen") != std::string::npos);
        }
    }
}

TEST_CASE("the recorded ResNet job") {
    const FittedJob job = fit_job(LogReader(source_dir() / "examples/recorded/resnet.oplog"));
    CHECK(value(job, "format") == "jpeg");
    CHECK(value(job, "samples") == "2000");
    CHECK(value(job, "batch") == "32");
    CHECK(value(job, "loader_workers") == "2");
    CHECK(value(job, "prefetch") == "2");
    CHECK(job.sees("prefetch"));
    CHECK(value(job, "shuffle") == "full");
    CHECK(value(job, "epochs") == "1");
    CHECK(value(job, "checkpoint_every") == "1epoch");
    CHECK(value(job, "checkpoint_size") == "1469713");
    CHECK(value(job, "compute_on") == "processor");
    const auto decode = Distribution::parse(value(job, "decode"), Distribution::Unit::seconds);
    REQUIRE(decode);
    CHECK(decode->mean() == doctest::Approx(2.84e6).epsilon(0.05));
    CHECK(job.notes.size() == 2);  // the last batch, the programs loaded before
}

TEST_CASE("the recorded BERT job: pages of a mapped file") {
    const FittedJob job = fit_job(LogReader(source_dir() / "examples/recorded/bert.oplog"));
    CHECK(value(job, "format") == "arrow");
    CHECK(value(job, "batch") == "16");
    CHECK(!job.sees("batch"));
    CHECK(!job.sees("sample_size"));
    CHECK(value(job, "steps") == "200");
    CHECK(value(job, "loader_workers") == "2");
    CHECK(value(job, "prefetch") == "2");
    CHECK(value(job, "checkpoint_every") == "200");
}

TEST_CASE("recordings that tell nothing of steps are refused") {
    for (const char* name : {"pytorch_resnet18_strace", "py_loader_4workers"}) {
        const LogReader log(source_dir() / "examples/recorded" / (std::string(name) + ".oplog"));
        CHECK_THROWS_AS(fit_job(log), Error);
    }
}

TEST_CASE("a run at pace afap computed nothing, and fits no job") {
    const TempDir dir;
    Header header;
    header.source = "replay";
    write_fact(header, fact::pace, std::string("afap"));
    LogWriter(dir / "run.oplog", header).finish();
    const LogReader log(dir / "run.oplog");
    CHECK_THROWS_WITH_AS(fit_job(log), doctest::Contains("pace afap"), Error);
}
