// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "fit/fit.h"
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
        return of.kind == Distribution::Kind::uniform ? of.b - of.a : of.kind == Distribution::Kind::constant ? 0 : of.b;
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
    check("gpus", a.gpus == b.gpus);
    check("ranks", a.ranks == b.ranks);
    if (a.ranks > 1) {
        check("sync", a.sync == b.sync);
    }
    drawn("compute", a.compute, b.compute);
    const auto saves = [](const TrainingJob& of) {
        const uint64_t epoch = of.steps_per_epoch();
        return of.checkpoint_steps != 0 ? of.all_steps() / of.checkpoint_steps
               : of.checkpoint_epochs != 0 ? of.all_steps() / epoch / of.checkpoint_epochs
                                           : 0;
    };
    if (saves(a) != 0) {
        check("checkpoint_every", a.checkpoint_steps == b.checkpoint_steps && a.checkpoint_epochs == b.checkpoint_epochs);
        check("checkpoint_size", a.checkpoint_size == b.checkpoint_size);
        check("checkpoint_mode", a.checkpoint_mode == b.checkpoint_mode);
        check("checkpoint_bs", a.checkpoint_bs == b.checkpoint_bs);
        check("checkpoint_copy", a.checkpoint_mode != TrainingJob::Checkpoint::async ||
                                     a.checkpoint_copy_ns == b.checkpoint_copy_ns);
    }
    return out;
}

}  // namespace

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
        for (const std::string& wrong : compare(text, fitted)) {
            FAIL_CHECK("seed " << seed << ": " << wrong << "\n" << text << "---\n" << fitted.text("job.oplog"));
        }
    }
    for (const auto& [word, count] : seen) {
        MESSAGE(word << " seen in " << count.first << " of " << count.second);
    }
}
