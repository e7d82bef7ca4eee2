// SPDX-License-Identifier: MIT
#include "cli/run_files.h"

#include <fcntl.h>

#include "formats/oplog/header_facts.h"
#include "formats/support/error.h"
#include "formats/support/unique_fd.h"
#include "replay/prepare/root_marker.h"

namespace reprise::cli {
namespace {

UniqueFd folder(const std::filesystem::path& root) {
    UniqueFd fd(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!fd.valid()) {
        throw machine_error("cannot open " + escape_line(root.string()), "is it mounted?");
    }
    return fd;
}

}  // namespace

RunFiles::RunFiles(const std::filesystem::path& recording, const std::filesystem::path& run_log,
                   const std::filesystem::path& root)
    : recording_(recording) {
    const UniqueFd fd = folder(root);
    const std::optional<Marker> marker = read_marker(fd.get(), root.string());
    const LogReader run(run_log);
    const OpFilter filter = OpFilter::parse(read_fact(run.header(), fact::filter).value_or(""));
    if (!marker || read_fact(run.header(), fact::recording_fingerprint) != log_fingerprint(recording_)) {
        throw usage_error(escape_line(run_log.string()) + " is no run of " + escape_line(recording.string()),
                          "give a run and its recording");
    }
    plan_ = make_plan(recording_, filter, marker->maps);
    prepared_.emplace(plan_, filter, marker->listing_entries);
    origin_ = run.header().origin_unix_ns;
    // The run's log has the kept ops of the recording, in their order.
    for (TaskId task = 1; task < recording_.tables().tasks.size(); ++task) {
        std::vector<uint64_t> numbers;
        recording_.for_each(task, [&](const Op& op, uint64_t number) {
            if (plan_.selector->keeps(op)) {
                numbers.push_back(number);
            }
        });
        run.for_each(task, [&](const Op& op, uint64_t number) {
            if (number < numbers.size()) {
                add_shaping(ops_, task, numbers[number], op);
            }
        });
    }
    sort_by_time(ops_);
}

FileModel RunFiles::begin() const {
    FileModel model(plan_);
    prepared_->add_to(model);
    return model;
}

TreeCheck RunFiles::check(const std::filesystem::path& root) const {
    FileModel model = begin();
    for (const TimedOp& one : ops_) {
        model.apply(one.task, one.number, one.op);
    }
    TreeCheckOptions options;
    options.content = true;
    options.ignored = prepared_->ignored();
    return check_tree(folder(root).get(), model, options);
}

}  // namespace reprise::cli
