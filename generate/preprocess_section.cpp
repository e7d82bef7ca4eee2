// SPDX-License-Identifier: MIT
// Pre-processing: many small files into few packed ones, text into tokens, and decoded samples that are kept.
#include <memory>
#include <optional>

#include "generate/sample_order.h"
#include "generate/section_writer.h"

namespace reprise {
namespace {

// What is drawn apart from each other.
constexpr uint64_t kSizes = 1, kDecode = 2, kOrder = 3;

class Preprocess {
public:
    Preprocess(LogPlace& place, const JobSection& section, const PreprocessJob& job)
        : place_(place), section_(section), job_(job), epoch_name_(place.log.intern("epoch")) {}

    void write(const std::vector<TaskMoment>& after, std::vector<TaskMoment>& ends) {
        GeneratedSection out;
        out.name = section_.name;
        out.files = job_.samples;
        for (const TaskMoment& each : after) {
            out.begin = std::max(out.begin, each.time);
        }
        for (uint64_t i = 0; i < job_.samples; ++i) {
            const FileId id = add_file(i, extension(), Origin::existed, size_of(i));
            first_input_ = i == 0 ? id : first_input_;
            out.file_bytes += size_of(i, &sizes_below_);
        }
        if (job_.kind == PreprocessJob::Kind::decode_cache) {
            for (uint64_t i = 0; i < job_.samples; ++i) {
                const FileId id = add_file(i, ".decoded", Origin::created, output_of(size_of(i)));
                first_cached_ = i == 0 ? id : first_cached_;
            }
        }
        const ProcessId process = place_.add_process(0, section_.name);
        TaskWriter main(place_.log, place_.add_task(process, section_.name), descriptors_, out.begin);
        main.wait_for(after);
        for (uint64_t i = 0; i < job_.workers; ++i) {
            const TaskId id = place_.add_task(process, "worker-" + std::to_string(i));
            main.spawn(id, true);
            workers_.emplace_back(place_.log, id, descriptors_, main.now());
        }
        for (uint64_t epoch = 0; epoch < job_.epochs; ++epoch) {
            one_epoch(main, epoch);
        }
        for (TaskWriter& worker : workers_) {
            worker.exit();
            main.join(worker.last());
            main.add(worker);
        }
        main.exit();
        place_.count(main);
        ends.push_back(main.last());
        out.end = main.now();
        out.drew("sample_size", job_.sample_size, sizes_below_, job_.samples);
        out.drew("decode", job_.decode, decodes_below_, decoded_);
        place_.result.sections.push_back(out);
    }

private:
    std::string extension() const { return job_.kind == PreprocessJob::Kind::tokenize ? ".txt" : ".bin"; }
    int64_t size_of(uint64_t sample, uint64_t* below = nullptr) const {
        return job_.sample_size.draw(mixed_bits(section_.seed, kSizes), sample, below);
    }
    int64_t output_of(int64_t bytes) const {
        return std::max<int64_t>(bytes / 100 * static_cast<int64_t>(job_.output_percent) +
                                     bytes % 100 * static_cast<int64_t>(job_.output_percent) / 100,
                                 1);
    }

    FileId add_file(uint64_t number, const std::string& extension, Origin origin, int64_t bytes) {
        FileRow row;
        row.path =
            place_.log.intern(section_.directory + "/" + section_.name + "-" + std::to_string(number) + extension);
        row.size = static_cast<uint64_t>(bytes);
        row.size_exact = origin == Origin::existed;
        row.type = FileType::regular;
        row.role = Role::dataset;
        row.origin = origin;
        row.mode = 0644;
        return place_.log.add_file(row);
    }

    /// Workers take files, or packed outputs, in turn.
    void one_epoch(TaskWriter& main, uint64_t epoch) {
        const uint64_t key = mixed_bits(mixed_bits(section_.seed, kOrder), epoch);
        const Permutation drawn(job_.samples, key);
        const auto sample = [&](uint64_t at) { return job_.shuffled ? drawn(at) : at; };
        main.mark(epoch_name_, epoch + 1, MarkerPhase::begin);
        const TaskMoment begins = main.last();
        const bool packs = job_.kind != PreprocessJob::Kind::decode_cache;
        const uint64_t units = packs ? job_.outputs() : job_.samples;
        for (uint64_t unit = 0; unit < units; ++unit) {
            TaskWriter& worker = workers_[unit % workers_.size()];
            if (epoch != 0 && unit < workers_.size()) {
                worker.wait_for(begins);
            }
            if (packs) {
                pack(worker, unit, sample);
            } else {
                epoch == 0 ? keep(worker, sample(unit)) : read_kept(worker, sample(unit));
            }
            place_.progress((static_cast<double>(epoch) + static_cast<double>(unit) / static_cast<double>(units)) /
                            static_cast<double>(job_.epochs));
        }
        std::vector<TaskMoment> all;
        for (size_t i = 0; i < std::min<uint64_t>(workers_.size(), units); ++i) {
            all.push_back(workers_[i].last());
        }
        main.wait_for(all);
        main.mark(epoch_name_, epoch + 1, MarkerPhase::end);
    }

    /// What is written in pieces of bs=, with what is left at the end.
    struct Output {
        OpenFile file;
        int64_t at = 0, waits = 0;  // bytes: written, and to be
    };
    Output begin_output(TaskWriter& task, FileId file) {
        return {task.open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)};
    }
    void put(TaskWriter& task, Output& out, int64_t bytes) const {
        for (out.waits += bytes; out.waits >= job_.bs; out.waits -= job_.bs) {
            task.move(OpKind::write, out.file, out.at, job_.bs);
            out.at += job_.bs;
        }
    }
    void end_output(TaskWriter& task, Output& out) const {
        if (out.waits != 0) {
            task.move(OpKind::write, out.file, out.at, out.waits);
        }
        if (job_.end_fsync) {
            task.sync(OpKind::fsync, out.file);
        }
        task.close(out.file);
    }

    int64_t compute_of(uint64_t sample) {
        ++decoded_;
        return job_.decode.draw(mixed_bits(section_.seed, kDecode), sample, &decodes_below_);
    }

    /// The whole of a file, with one read.
    void read_whole(TaskWriter& task, FileId file, int64_t bytes) {
        const OpenFile opened = task.open(file, O_RDONLY | O_CLOEXEC);
        task.fstat(opened);
        task.move(OpKind::pread, opened, 0, bytes);
        task.close(opened);
    }

    template <class Sample>
    void pack(TaskWriter& task, uint64_t unit, const Sample& sample) {
        const bool tokens = job_.kind == PreprocessJob::Kind::tokenize;
        const uint64_t first = unit * job_.samples_per_file;
        const uint64_t last = std::min(first + job_.samples_per_file, job_.samples);
        int64_t bytes = 0;
        for (uint64_t i = first; i < last; ++i) {
            bytes += output_of(size_of(sample(i))) + (tokens ? 0 : kRecordHead);
        }
        Output out = begin_output(task, add_file(unit, tokens ? ".tokens" : ".packed", Origin::created, bytes));
        for (uint64_t i = first; i < last; ++i) {
            const uint64_t from = sample(i);
            if (tokens) {
                read_text(task, from, out);
            } else {
                read_whole(task, first_input_ + static_cast<FileId>(from), size_of(from));
                task.compute(compute_of(from));
                put(task, out, output_of(size_of(from)) + kRecordHead);
            }
        }
        end_output(task, out);
        if (tokens) {
            constexpr int64_t kPlace = 20;  // of a document: size, offset, number
            const auto index = static_cast<int64_t>(last - first) * kPlace;
            Output places = begin_output(task, add_file(unit, ".idx", Origin::created, index));
            put(task, places, index);
            end_output(task, places);
        }
    }

    /// From front to back; each piece is made into tokens, which are written as they come.
    void read_text(TaskWriter& task, uint64_t number, Output& out) {
        const int64_t size = size_of(number), compute = compute_of(number), result = output_of(size);
        const OpenFile opened = task.open(first_input_ + static_cast<FileId>(number), O_RDONLY | O_CLOEXEC);
        const auto part = [&](int64_t of, int64_t at) {
            return static_cast<int64_t>(static_cast<double>(of) *
                                        (static_cast<double>(at) / static_cast<double>(size)));
        };
        for (int64_t at = 0; at < size; at += job_.bs) {
            const int64_t end = std::min(at + job_.bs, size);
            task.move(OpKind::read, opened, at, end - at, job_.bs);
            task.compute(part(compute, end) - part(compute, at));
            put(task, out, (end == size ? result : part(result, end)) - part(result, at));
        }
        task.close(opened);
    }

    void keep(TaskWriter& task, uint64_t sample) {
        read_whole(task, first_input_ + static_cast<FileId>(sample), size_of(sample));
        task.compute(compute_of(sample));
        Output out = begin_output(task, first_cached_ + static_cast<FileId>(sample));
        put(task, out, output_of(size_of(sample)));
        end_output(task, out);
    }
    void read_kept(TaskWriter& task, uint64_t sample) {
        read_whole(task, first_cached_ + static_cast<FileId>(sample), output_of(size_of(sample)));
    }

    static constexpr int64_t kRecordHead = 512;  // of tar

    LogPlace& place_;
    const JobSection& section_;
    const PreprocessJob& job_;
    StringId epoch_name_;
    Descriptors descriptors_;
    FileId first_input_ = 0, first_cached_ = 0;
    uint64_t sizes_below_ = 0, decodes_below_ = 0, decoded_ = 0;
    std::vector<TaskWriter> workers_;
};

}  // namespace

void write_preprocess(LogPlace& place, const JobSection& section, const PreprocessJob& job,
                      const std::vector<TaskMoment>& after, std::vector<TaskMoment>& ends) {
    Preprocess(place, section, job).write(after, ends);
}

}  // namespace reprise
