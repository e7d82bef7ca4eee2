// SPDX-License-Identifier: MIT
#include "generate/diagram.h"

#include <algorithm>
#include <vector>

#include "formats/support/quantity.h"

namespace reprise {
namespace {

constexpr int kLeastWidth = 205, kHeight = 92, kGap = 62, kMargin = 24, kLine = 17, kHead = 42;

std::string escaped(const std::string& text) {
    std::string out;
    for (const char c : text) {
        out += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : std::string(1, c);
    }
    return out;
}

struct Box {
    std::string title;
    std::vector<std::string> lines;
    std::string arrow;  // on the way to the next box
};

std::string size_of(double bytes) { return format_bytes(static_cast<uint64_t>(bytes)); }

std::string drawn(const Distribution& what, const std::string& mean) {
    return what.varies() ? mean + " in the mean" : mean;
}

std::string each_time(const Distribution& time) {
    return drawn(time, format_duration(static_cast<int64_t>(time.mean())));
}

std::vector<Box> boxes_of(const JobSection& section, const TrainingJob& job) {
    std::vector<Box> out;
    std::string format, accelerator;
    for (const auto& [word, value] : section.words) {
        format = word == "format" ? value : format;
        accelerator = word == "accelerator" ? " (" + value + ")" : accelerator;
    }
    if (job.format != SampleFormat::none) {
        out.push_back({counted(job.files(), "file"),
                       {section.directory, format + ", " + counted(job.samples, "sample"),
                        drawn(job.sample_size, size_of(job.sample_size.mean())) + " each"},
                       is_mapped(job.format) ? "page faults" : "reads"});
        std::vector<std::string> lines = {job.shuffled ? job.shuffle_buffer == 0
                                                             ? "shuffled"
                                                             : "shuffle buffer of " + format_count(job.shuffle_buffer)
                                                       : "in order"};
        if (job.decode.mean() > 0) {
            lines.push_back("decode " + each_time(job.decode));
        }
        if (job.workers == 0) {
            lines.emplace_back("by the rank itself");
            out.push_back({"read", lines, ""});
        } else {
            lines.push_back("ahead by " + counted(job.prefetch, "batch", "batches") +
                            (job.interleave ? " together" : " each"));
            const std::string per = job.ranks == 1 ? "" : ", each rank";
            out.push_back({counted(job.workers, "loader thread") + per, lines,
                           "batches of " + format_count(job.batch * job.gpus_per_rank())});
        }
    }
    const char* const sync = job.ranks == 1                         ? ""
                             : job.sync == TrainingJob::Sync::step  ? "wait for each other each step"
                             : job.sync == TrainingJob::Sync::epoch ? "wait for each other each epoch"
                                                                    : "do not wait for each other";
    out.push_back(
        {counted(job.gpus, "accelerator") + accelerator + (job.ranks == 1 ? "" : ", " + counted(job.ranks, "rank")),
         {"step " + each_time(job.compute) + (job.overhead.mean() > 0 ? ", " + each_time(job.overhead) + " more" : ""),
          counted(job.all_steps(), "step") + ", " + counted(job.epochs, "epoch"), sync},
         job.checkpoint_size == 0                                ? ""
         : job.checkpoint_mode == TrainingJob::Checkpoint::async ? "copies, goes on"
                                                                 : "waits"});
    if (job.checkpoint_size != 0) {
        const std::string every =
            job.checkpoint_steps != 0 ? counted(job.checkpoint_steps, "step") : counted(job.checkpoint_epochs, "epoch");
        const char* const who = job.checkpoint_mode == TrainingJob::Checkpoint::sharded ? "each rank writes its part"
                                : job.checkpoint_mode == TrainingJob::Checkpoint::async ? "a thread of rank 0 writes"
                                                                                        : "rank 0 writes";
        out.push_back({"checkpoint " + size_of(static_cast<double>(job.checkpoint_size)),
                       {"every " + every, who, "write, fsync, rename"},
                       ""});
    }
    return out;
}

std::vector<Box> boxes_of(const JobSection& section, const IoJob& job) {
    const std::string what = job.reads && job.writes ? format_count(job.read_percent) + " % reads"
                             : job.reads             ? "reads"
                                                     : "writes";
    const std::string block = job.bs_least == job.bs_most ? size_of(static_cast<double>(job.bs_least))
                                                          : size_of(static_cast<double>(job.bs_least)) + " to " +
                                                                size_of(static_cast<double>(job.bs_most));
    Box jobs{counted(job.jobs, "job"),
             {what + (job.random ? ", random" : ", in order"), block + (job.direct ? ", O_DIRECT" : "")},
             ""};
    if (job.arrivals) {
        const Arrivals& arrivals = *job.arrivals;
        jobs.lines.push_back(arrivals.kind == Arrivals::Kind::listed
                                 ? counted(arrivals.list.size(), "arrival")
                                 : format_count_rate(arrivals.per_second, "requests") +
                                       (arrivals.kind == Arrivals::Kind::fixed ? "" : ", Poisson"));
        jobs.lines.push_back(job.depth > 1 ? "at most " + counted(job.depth, "request") + " in flight"
                                           : counted(job.servers, "thread"));
        return {{counted(job.files * job.jobs, "file"),
                 {section.directory, size_of(static_cast<double>(job.file_size)) + " each"},
                 job.reads && job.writes ? "both ways" : what},
                jobs};
    }
    jobs.lines.push_back(job.depth > 1 ? counted(job.depth, "request") + " in flight" : "one at a time");
    return {{counted(job.files * job.jobs, "file"),
             {section.directory, size_of(static_cast<double>(job.file_size)) + " each"},
             job.reads && job.writes ? "both ways" : what},
            jobs};
}

std::vector<Box> boxes_of(const JobSection& section, const KvCacheJob& job) {
    const std::string files = job.file_per_block ? counted(job.slots(), "file") : "1 file";
    const std::string rate = job.arrivals.kind == Arrivals::Kind::listed
                                 ? counted(job.arrivals.list.size(), "arrival")
                                 : format_count_rate(job.arrivals.per_second, "requests");
    return {
        {files,
         {section.directory, counted(job.slots(), "block") + " of " + size_of(static_cast<double>(job.block_bytes())),
          job.direct ? "O_DIRECT" : ""},
         format_count(job.hit_percent) + " % hit"},
        {counted(job.servers, "server thread"),
         {rate, "prefill " + format_duration(job.prefill_ns) + " a token",
          "decode " + format_duration(job.decode_ns) + " a token"},
         "new blocks"},
        {"store", {"a thread for each server", "in place of the least recent"}, ""}};
}

std::vector<Box> boxes_of(const JobSection& section, const ModelLoadJob& job) {
    const char* const by = job.by == ModelLoadJob::By::mmap   ? "page faults"
                           : job.by == ModelLoadJob::By::read ? "tensor by tensor"
                                                              : "whole files";
    const char* const split = job.split == ModelLoadJob::Split::all     ? "each reads all"
                              : job.split == ModelLoadJob::Split::files ? "each its files"
                                                                        : "each its part of a tensor";
    return {{counted(job.files, "file"),
             {section.directory, "safetensors, " + size_of(static_cast<double>(job.model_size)),
              counted(job.tensors, "tensor") + " each"},
             by},
            {counted(job.ranks, "rank"), {job.ranks == 1 ? "" : split}, ""}};
}

std::vector<Box> boxes_of(const JobSection& section, const PreprocessJob& job) {
    const bool keeps = job.kind == PreprocessJob::Kind::decode_cache;
    return {{counted(job.samples, "file"),
             {section.directory, drawn(job.sample_size, size_of(job.sample_size.mean())) + " each"},
             "reads"},
            {counted(job.workers, "thread"),
             {job.decode.mean() > 0 ? each_time(job.decode) + " a file" : "", job.shuffled ? "shuffled" : "in order"},
             "writes"},
            {counted(keeps ? job.samples : job.outputs(), "file"),
             {format_count(job.output_percent) + " % of the bytes", keeps ? counted(job.epochs, "epoch") : ""},
             ""}};
}

std::string text(int x, int y, const char* of, const std::string& words) {
    return "<text class=\"" + std::string(of) + "\" x=\"" + std::to_string(x) + "\" y=\"" + std::to_string(y) + "\">" +
           escaped(words) + "</text>\n";
}

/// That its words fit into, whatever font of the usual width they are drawn in.
int width_of(const Box& box) {
    constexpr int kTitleLetter = 9, kLetter = 7, kInside = 20;
    size_t longest = box.title.size() * kTitleLetter;
    for (const std::string& line : box.lines) {
        longest = std::max(longest, line.size() * kLetter);
    }
    return std::max(kLeastWidth, static_cast<int>(longest) + kInside);
}

/// One section's boxes from left to right, its top at `y`.
std::string row_of(const std::vector<Box>& boxes, const std::string& name, int y, int width) {
    std::string out = text(kMargin, y + 16, "name", name);
    int x = kMargin;
    for (size_t i = 0; i < boxes.size(); ++i) {
        const Box& box = boxes[i];
        const int top = y + kHead;
        out += "<rect x=\"" + std::to_string(x) + "\" y=\"" + std::to_string(top) + "\" width=\"" +
               std::to_string(width) + "\" height=\"" + std::to_string(kHeight) + "\" rx=\"6\"/>\n";
        out += text(x + 10, top + 22, "title", box.title);
        int at = top + 22;
        for (const std::string& line : box.lines) {
            out += line.empty() ? "" : text(x + 10, at += kLine, "line", line);
        }
        if (i + 1 < boxes.size()) {
            const int from = x + width, middle = top + kHeight / 2;
            out += "<path d=\"M" + std::to_string(from + 4) + " " + std::to_string(middle) + " h" +
                   std::to_string(kGap - 12) + "\" marker-end=\"url(#arrow)\"/>\n";
            out += text(from + kGap / 2, top - 6, "on", box.arrow);
        }
        x += width + kGap;
    }
    return out;
}

}  // namespace

std::string diagram_of(const Job& job) {
    constexpr int kRow = kHead + kHeight + 26;
    std::vector<std::vector<Box>> all;
    size_t most = 1;
    int box = kLeastWidth;
    for (const JobSection& section : job.sections) {
        all.push_back(std::visit([&](const auto& what) { return boxes_of(section, what); }, section.what));
        most = std::max(most, all.back().size());
        for (const Box& each : all.back()) {
            box = std::max(box, width_of(each));
        }
    }
    std::string rows;
    int y = kMargin;
    for (size_t i = 0; i < all.size(); ++i) {
        const JobSection& section = job.sections[i];
        rows += row_of(all[i], "[" + section.name + "]" + (section.stonewall ? " after those above" : ""), y, box);
        y += kRow;
    }
    const int width = 2 * kMargin + static_cast<int>(most) * box + (static_cast<int>(most) - 1) * kGap;
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + std::to_string(width) + " " +
           std::to_string(y) + "\" width=\"" + std::to_string(width) + "\" height=\"" + std::to_string(y) +
           "\" role=\"img\"><title>What the job does</title>\n"
           "<style>svg{background:#fff;font-family:sans-serif}rect{fill:#eef3fa;stroke:#4a6fa5}text{fill:#1c2733;font-"
           "size:12px}"
           ".title,.name{font-weight:bold;font-size:13px}.on{font-size:10px;text-anchor:middle}path{stroke:#4a6fa5;"
           "fill:none;stroke-width:1.5}"
           "#arrow "
           "path{fill:#4a6fa5;stroke:none}@media(prefers-color-scheme:dark){svg{background:#14181d}rect{fill:#1f2a37;"
           "stroke:#7fa3d6}"
           "text{fill:#e5eaf0}path{stroke:#7fa3d6}#arrow path{fill:#7fa3d6}}</style>\n"
           "<defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" "
           "orient=\"auto\">"
           "<path d=\"M0 0L8 4L0 8z\"/></marker></defs>\n" +
           rows + "</svg>\n";
}

}  // namespace reprise
