// SPDX-License-Identifier: MIT
// Plain reads and writes, as fio makes them.
#include <linux/aio_abi.h>
#include <linux/io_uring.h>

#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "generate/sample_order.h"
#include "generate/section_writer.h"

namespace reprise {
namespace {

// What is drawn apart from each other.
constexpr uint64_t kBlocks = 1, kSizes = 2, kDirections = 3;

class IoTask {
public:
    IoTask(LogPlace& place, const JobSection& section, const IoJob& job, uint64_t number, TaskWriter task,
           ProcessId process)
        : place_(place),
          job_(job),
          number_(number),
          seed_(mixed_bits(section.seed, number)),
          task_(std::move(task)),
          process_(process) {
        for (uint64_t i = 0; i < job.files; ++i) {
            FileRow row;
            row.path = place.log.intern(section.directory + "/" + section.name + "." + std::to_string(number) + "." +
                                        std::to_string(i));
            row.size = static_cast<uint64_t>(job.file_size);
            row.size_exact = true;
            row.type = FileType::regular;
            row.role = Role::dataset;
            row.origin = Origin::existed;
            row.mode = 0644;
            files_.push_back({.id = place.log.add_file(row), .opened = {}});
        }
    }

    void write() {
        const int64_t access = !job_.writes ? O_RDONLY : job_.reads ? O_RDWR : O_WRONLY;
        for (File& file : files_) {
            file.opened = task_.open(file.id, access | O_CLOEXEC | (job_.direct ? O_DIRECT : 0));
        }
        if (is_asynchronous()) {
            queued();
        } else {
            while (const auto block = next()) {
                one(*block);
            }
        }
        for (File& file : files_) {
            if (job_.end_fsync && job_.writes) {
                task_.sync(OpKind::fsync, file.opened);
            }
            task_.close(file.opened);
        }
        task_.exit();
    }
    const TaskWriter& task() const { return task_; }

private:
    struct File {
        FileId id = 0;
        OpenFile opened;
        int64_t at = 0;      // sequential: next byte
        uint64_t block = 0;  // random: how many of its blocks were used in this round
        uint64_t round = 0;
        std::optional<Permutation> order = {};
    };
    struct Block {
        const File* file = nullptr;
        int64_t offset = 0, bytes = 0;
        bool reads = true;
    };

    bool is_asynchronous() const { return job_.engine == IoJob::Engine::uring || job_.engine == IoJob::Engine::aio; }

    /// The next block of the job; none at its end.
    std::optional<Block> next() {
        if (loop_ >= job_.loops || (job_.number_ios && made_ >= *job_.number_ios)) {
            return std::nullopt;
        }
        if (moved_ >= job_.size) {
            moved_ = 0;
            if (++loop_ >= job_.loops) {
                return std::nullopt;
            }
        }
        File& file = files_[turn_];
        turn_ = turn_ + 1 == files_.size() ? 0 : turn_ + 1;
        Block block;
        block.file = &file;
        block.bytes = job_.bs_least;
        if (job_.bs_most > job_.bs_least) {
            const auto steps = static_cast<uint64_t>((job_.bs_most - job_.bs_least) / job_.bs_least) + 1;
            block.bytes *= static_cast<int64_t>(1 + mixed_bits(seed_ + kSizes, made_) % steps);
        }
        block.bytes = std::min(block.bytes, job_.size - moved_);
        block.reads = job_.reads && (!job_.writes || mixed_bits(seed_ + kDirections, made_) % 100 < job_.read_percent);
        if (job_.random) {
            if (!file.order || file.block == blocks_) {
                const auto number = static_cast<uint64_t>(&file - files_.data());
                file.order.emplace(blocks_, mixed_bits(seed_ + kBlocks, file.round++ * files_.size() + number));
                file.block = 0;
            }
            block.offset = static_cast<int64_t>((*file.order)(file.block++)) * job_.bs_least;
            block.bytes = std::min(block.bytes, job_.file_size - block.offset);
        } else {
            if (file.at >= job_.file_size) {
                file.at = 0;
            }
            block.bytes = std::min(block.bytes, job_.file_size - file.at);
            block.offset = file.at;
            file.at += block.bytes;
        }
        moved_ += block.bytes;
        ++made_;
        constexpr uint64_t kReport = 1 << 16;
        if (made_ % kReport == 0) {
            const double loops =
                static_cast<double>(loop_) + static_cast<double>(moved_) / static_cast<double>(job_.size);
            place_.progress((static_cast<double>(number_) + loops / static_cast<double>(job_.loops)) /
                            static_cast<double>(job_.jobs));
        }
        return block;
    }

    void one(const Block& block) {
        const bool positioned = job_.engine == IoJob::Engine::sync;
        if (positioned && (job_.random || job_.files > 1)) {
            task_.put({.kind = OpKind::lseek,
                       .result = block.offset,
                       .handle = block.file->opened.handle,
                       .fd = block.file->opened.fd,
                       .offset = block.offset},
                      NominalTime::attributes);
        }
        task_.move(
            block.reads ? (positioned ? OpKind::read : OpKind::pread) : (positioned ? OpKind::write : OpKind::pwrite),
            block.file->opened, block.offset, block.bytes);
        if (!block.reads) {
            ++written_;
            if (job_.fsync != 0 && written_ % job_.fsync == 0) {
                task_.sync(OpKind::fsync, block.file->opened);
            }
            if (job_.fdatasync != 0 && written_ % job_.fdatasync == 0) {
                task_.sync(OpKind::fdatasync, block.file->opened);
            }
        }
        pause();
    }

    void pause() {
        if (job_.think_ns != 0 && made_ % job_.think_blocks == 0) {
            task_.sleep(job_.think_ns);
        }
    }

    // --- requests in flight: the first are made together, each later one when one is done

    void submit(const Block& block) {
        const bool uring = job_.engine == IoJob::Engine::uring;
        Flying flying{++place_.requests, task_.now() + NominalTime::request, block};
        Op op{.kind = uring ? OpKind::uring_submit : OpKind::aio_submit,
              .handle = block.file->opened.handle,
              .fd = block.file->opened.fd,
              .offset = block.offset,
              .size = block.bytes,
              .request = flying.request};
        if (uring) {
            op.arg = block.reads ? IORING_OP_READ : IORING_OP_WRITE;
        } else {
            op.arg = block.reads ? IOCB_CMD_PREAD : IOCB_CMD_PWRITE;
        }
        task_.put(op, 0);
        task_.moved(block.reads ? block.bytes : 0, block.reads ? 0 : block.bytes);
        flying_.push_back(flying);
    }

    void enter(int64_t submitted, int64_t until) {
        const int64_t waits = std::max<int64_t>(until - task_.now(), 0);
        if (job_.engine == IoJob::Engine::uring) {
            task_.put({.kind = OpKind::uring_enter,
                       .result = submitted,
                       .handle = ring_,
                       .fd = ring_fd_,
                       .size = submitted,
                       .arg = 1},
                      waits);
        } else {
            task_.put({.kind = OpKind::aio_reap, .result = 1, .size = 1, .arg = 1}, waits);
        }
    }

    void queued() {
        if (job_.engine == IoJob::Engine::uring) {
            ring_fd_ = 1'000'000;  // below no file's
            ring_ = place_.log.add_handle(
                {.kind = HandleKind::other, .inherited = true, .process = process_, .fd = ring_fd_});
        }
        int64_t submitted = 0;
        for (uint64_t i = 0; i < job_.depth; ++i) {
            if (const auto block = next()) {
                submit(*block);
                ++submitted;
            }
        }
        while (!flying_.empty()) {
            enter(submitted, flying_.front().done);
            const Flying done = flying_.front();
            flying_.pop_front();
            task_.put({.kind = job_.engine == IoJob::Engine::uring ? OpKind::uring_complete : OpKind::aio_complete,
                       .result = done.block.bytes,
                       .size = done.block.bytes,
                       .request = done.request},
                      0);
            pause();
            submitted = 0;
            if (const auto block = next()) {
                submit(*block);
                submitted = 1;
            }
        }
    }

    struct Flying {
        uint32_t request = 0;
        int64_t done = 0;  // ns
        Block block;
    };

    LogPlace& place_;
    const IoJob& job_;
    const uint64_t number_, seed_;
    TaskWriter task_;
    ProcessId process_;
    std::vector<File> files_;
    const uint64_t blocks_ = static_cast<uint64_t>(job_.file_size / job_.bs_least);  // of a file
    size_t turn_ = 0;                                                                // in files_
    uint64_t made_ = 0, loop_ = 0, written_ = 0;
    int64_t moved_ = 0;  // bytes of this loop
    HandleId ring_ = 0;
    int32_t ring_fd_ = -1;
    std::deque<Flying> flying_;
};

}  // namespace

void write_io(LogPlace& place, const JobSection& section, const IoJob& job, const std::vector<TaskMoment>& after,
              std::vector<TaskMoment>& ends) {
    int64_t begin = 0;
    for (const TaskMoment& each : after) {
        begin = std::max(begin, each.time);
    }
    GeneratedSection out;
    out.name = section.name;
    out.files = job.files * job.jobs;
    out.file_bytes = job.file_size * static_cast<int64_t>(out.files);
    out.begin = begin;
    std::vector<std::unique_ptr<Descriptors>> descriptors;
    ProcessId process = 0;
    for (uint64_t number = 0; number < job.jobs; ++number) {
        const std::string name = section.name + "." + std::to_string(number);
        if (process == 0 || !job.threads) {
            process = place.add_process(0, section.name);
        }
        // Threads of a process have theirs open at the same time.
        const uint64_t others = job.threads ? number * job.files : 0;
        descriptors.push_back(std::make_unique<Descriptors>(static_cast<int32_t>(3 + others)));
        TaskWriter task(place.log, place.add_task(process, name), *descriptors.back(), begin);
        task.wait_for(after);
        IoTask one(place, section, job, number, task, process);
        one.write();
        place.result.ops += one.task().ops();
        place.result.read_bytes += one.task().read_bytes();
        place.result.written_bytes += one.task().written_bytes();
        ends.push_back(one.task().last());
        out.end = std::max(out.end, one.task().now());
    }
    place.result.sections.push_back(out);
}

}  // namespace reprise
