// SPDX-License-Identifier: MIT
// Loading a model: each rank opens safetensors files, reads their headers and then tensors, or the parts of them that
// are its own.
#include <memory>

#include "generate/section_writer.h"

namespace reprise {
namespace {

class ModelLoad {
public:
    ModelLoad(LogPlace& place, const JobSection& section, const ModelLoadJob& job)
        : place_(place), section_(section), job_(job) {}

    void write(const std::vector<TaskMoment>& after, std::vector<TaskMoment>& ends) {
        GeneratedSection out;
        out.name = section_.name;
        out.files = job_.files;
        for (const TaskMoment& each : after) {
            out.begin = std::max(out.begin, each.time);
        }
        add_files();
        for (uint64_t rank = 0; rank < job_.ranks; ++rank) {
            const std::string name = section_.name + (job_.ranks == 1 ? "" : "-" + std::to_string(rank));
            Descriptors descriptors;
            TaskWriter task(place_.log, place_.add_task(place_.add_process(0, name), name), descriptors, out.begin);
            task.wait_for(after);
            for (uint64_t file = 0; file < job_.files; ++file) {
                if (job_.split != ModelLoadJob::Split::files || file % job_.ranks == rank) {
                    load(task, file, rank);
                }
            }
            task.exit();
            place_.count(task);
            ends.push_back(task.last());
            out.end = std::max(out.end, task.now());
            place_.progress(static_cast<double>(rank + 1) / static_cast<double>(job_.ranks));
        }
        for (uint64_t file = 0; file < job_.files; ++file) {
            out.file_bytes += size_of(file);
        }
        place_.result.sections.push_back(out);
    }

private:
    int64_t size_of(uint64_t file) const { return job_.header_size() + job_.data_size(file); }

    void add_files() {
        for (uint64_t i = 0; i < job_.files; ++i) {
            FileRow row;
            // As they are named where a model has several: from 1 on, and of how many.
            const auto padded = [](uint64_t number) {
                std::string digits = std::to_string(number);
                return std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0') + digits;
            };
            row.path = place_.log.intern(section_.directory + "/" + section_.name +
                                         (job_.files == 1 ? "" : "-" + padded(i + 1) + "-of-" + padded(job_.files)) +
                                         ".safetensors");
            row.size = static_cast<uint64_t>(size_of(i));
            row.size_exact = true;
            row.type = FileType::regular;
            row.role = Role::checkpoint;
            row.origin = Origin::existed;
            row.mode = 0644;
            const FileId id = place_.log.add_file(row);
            first_file_ = i == 0 ? id : first_file_;
        }
    }

    void load(TaskWriter& task, uint64_t file, uint64_t rank) {
        const OpenFile opened =
            task.open(first_file_ + static_cast<FileId>(file), O_RDONLY | O_CLOEXEC | (job_.direct ? O_DIRECT : 0));
        task.fstat(opened);
        switch (job_.by) {
            case ModelLoadJob::By::eager: pieces(task, opened, 0, size_of(file)); break;
            case ModelLoadJob::By::read: {
                constexpr int64_t kLength = 8;
                task.move(OpKind::pread, opened, 0, kLength);
                task.move(OpKind::pread, opened, kLength, job_.header_size() - kLength);
                tensors(file, rank, [&](int64_t at, int64_t bytes) { pieces(task, opened, at, bytes); });
                break;
            }
            case ModelLoadJob::By::mmap: {
                const uint32_t map = task.map(opened, size_of(file), ++place_.maps);
                task.close(opened);
                task.touch(map, 0, job_.header_size());
                tensors(file, rank, [&](int64_t at, int64_t bytes) { task.touch(map, at, bytes); });
                task.unmap(map, size_of(file));
                return;
            }
        }
        task.close(opened);
    }

    template <class Each>
    void tensors(uint64_t file, uint64_t rank, const Each& each) const {
        const int64_t all = job_.data_size(file);
        const auto place = [](int64_t bytes, uint64_t part, uint64_t parts) {
            const auto of = static_cast<int64_t>(parts);
            return bytes / of * static_cast<int64_t>(part) + std::min(bytes % of, static_cast<int64_t>(part));
        };
        const bool slices = job_.split == ModelLoadJob::Split::slices;
        for (uint64_t i = 0; i < job_.tensors; ++i) {
            int64_t from = place(all, i, job_.tensors), to = place(all, i + 1, job_.tensors);
            if (slices) {
                const int64_t bytes = to - from, begin = from;
                from = begin + place(bytes, rank, job_.ranks);
                to = begin + place(bytes, rank + 1, job_.ranks);
            }
            if (to > from) {
                each(job_.header_size() + from, to - from);
            }
        }
    }

    void pieces(TaskWriter& task, const OpenFile& opened, int64_t at, int64_t bytes) const {
        constexpr int64_t kMost = 0x7ffff000;  // of one read in Linux
        const int64_t step = job_.bs == 0 ? kMost : job_.bs;
        for (const int64_t end = at + bytes; at < end; at += step) {
            task.move(OpKind::pread, opened, at, std::min(step, end - at), job_.direct ? step : 0);
        }
    }

    LogPlace& place_;
    const JobSection& section_;
    const ModelLoadJob& job_;
    FileId first_file_ = 0;
};

}  // namespace

void write_model_load(LogPlace& place, const JobSection& section, const ModelLoadJob& job,
                      const std::vector<TaskMoment>& after, std::vector<TaskMoment>& ends) {
    ModelLoad(place, section, job).write(after, ends);
}

}  // namespace reprise
