// SPDX-License-Identifier: MIT
#include "generate/generate.h"

#include <cmath>

#include "formats/support/error.h"
#include "formats/support/quantity.h"
#include "generate/section_writer.h"

namespace reprise {

ProcessId LogPlace::add_process(ProcessId parent, std::string_view command) {
    return log.add_process({.pid = ++processes, .parent = parent, .command = log.intern(command)});
}

TaskId LogPlace::add_task(ProcessId process, std::string_view name) {
    ++result.tasks;
    return log.add_task({.process = process, .tid = ++processes, .name = log.intern(name)});
}

void LogPlace::count(const TaskWriter& task) {
    result.ops += task.ops();
    result.read_bytes += task.read_bytes();
    result.touched_bytes += task.touched_bytes();
    result.written_bytes += task.written_bytes();
}

namespace {

/// Writes a section of each kind.
struct SectionVisitor {
    LogPlace& place;
    const JobSection& section;
    const std::vector<TaskMoment>& after;
    std::vector<TaskMoment>& ends;

    void operator()(const IoJob& job) const { write_io(place, section, job, after, ends); }
    void operator()(const TrainingJob& job) const { write_training(place, section, job, after, ends); }
    void operator()(const KvCacheJob& job) const { write_kv_cache(place, section, job, after, ends); }
    void operator()(const ModelLoadJob& job) const { write_model_load(place, section, job, after, ends); }
    void operator()(const PreprocessJob& job) const { write_preprocess(place, section, job, after, ends); }
};

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
        std::visit(SectionVisitor{place, section, after, above}, section.what);
    }
    log.finish();
    return result;
}

}  // namespace

void GeneratedSection::drew(const std::string& word, const Distribution& from, uint64_t below, uint64_t drawn) {
    if (below != 0) {
        clipped.push_back({word + "=" + from.text, below, drawn, std::llround(from.least)});
    }
}

std::vector<std::string> notes_of(const GenerateResult& result) {
    std::vector<std::string> notes;
    for (const GeneratedSection& section : result.sections) {
        const std::string name = "[" + escape_line(section.name) + "] ";
        for (const ClippedDraws& each : section.clipped) {
            const std::string least = std::to_string(each.least);
            notes.push_back(name + escape_line(each.word) + ": " + format_count(each.below) + " of " +
                            counted(each.drawn, "draw") + (each.below == 1 ? " was" : " were") + " below " + least +
                            " and became " + least);
        }
        for (const std::string& less : {section.fewer_steps, section.no_checkpoint}) {
            if (!less.empty()) {
                notes.push_back(name + less);
            }
        }
    }
    return notes;
}

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
