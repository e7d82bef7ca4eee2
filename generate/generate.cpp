// SPDX-License-Identifier: MIT
#include "generate/generate.h"

#include "generate/section_writer.h"

namespace reprise {

ProcessId LogPlace::add_process(ProcessId parent, std::string_view command) {
    return log.add_process({.pid = ++processes, .parent = parent, .command = log.intern(command)});
}

TaskId LogPlace::add_task(ProcessId process, std::string_view name) {
    ++result.tasks;
    return log.add_task({.process = process, .tid = ++processes, .name = log.intern(name)});
}

namespace {

GenerateResult write_sections(const Job& job, LogWriter& log, const GenerateOptions& options) {
    GenerateResult result;
    LogPlace place{.log = log, .result = result, .progress = {}};
    std::vector<TaskMoment> above;  // ends of all sections so far
    std::vector<TaskMoment> after;
    for (size_t i = 0; i < job.sections.size(); ++i) {
        const JobSection& section = job.sections[i];
        if (section.stonewall) {
            after = above;
        }
        place.progress = [&, i](double share) {
            if (options.progress) {
                options.progress((static_cast<double>(i) + share) / static_cast<double>(job.sections.size()));
            }
        };
        place.progress(0);
        if (const auto* const training = std::get_if<TrainingJob>(&section.what)) {
            write_training(place, section, *training, after, above);
        } else {
            write_io(place, section, std::get<IoJob>(section.what), after, above);
        }
    }
    log.finish();
    return result;
}

}  // namespace

GenerateResult generate(const Job& job, const std::filesystem::path& output, const GenerateOptions& options) {
    Header header;
    header.clock = "virtual";
    header.source = "generate";
    header.tool = options.tool;
    header.command = options.command;
    LogWriter log(output, header, options.writer);
    try {
        return write_sections(job, log, options);
    } catch (...) {
        log.discard();  // it can be made again, as a whole
        throw;
    }
}

}  // namespace reprise
