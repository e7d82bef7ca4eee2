// SPDX-License-Identifier: MIT
// Plain reads and writes, as fio makes them.
#include <linux/aio_abi.h>
#include <linux/io_uring.h>

#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "generate/sample_order.h"
#include "generate/section_writer.h"

namespace reprise {
namespace {

// What is drawn apart from each other.
constexpr uint64_t kBlocks = 1, kSizes = 2, kDirections = 3, kArrivals = 4;

class IoTask {
public:
    IoTask(LogPlace& place, const JobSection& section, const IoJob& job, uint64_t number, TaskWriter task,
           ProcessId process, Descriptors& descriptors)
        : place_(place),
          job_(job),
          number_(number),
          seed_(mixed_bits(section.seed, number)),
          task_(std::move(task)),
          process_(process),
          descriptors_(descriptors),
          request_name_(job.arrivals ? place.log.intern("request") : 0) {
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
        if (job_.arrivals) {
            ArrivalTimes arrivals(*job_.arrivals, mixed_bits(seed_, kArrivals));
            is_asynchronous() ? arrive_queued(arrivals) : arrive_at_servers(arrivals);
        } else if (is_asynchronous()) {
            queued();
        } else {
            while (const auto block = next()) {
                sync_due(task_);
                one(*block, task_);
                pause();
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
    uint64_t requests() const { return requests_; }

private:
    struct File {
        FileId id = 0;
        OpenFile opened;
        std::array<int64_t, 2> at{};  // sequential: next byte to read, and to write
        uint64_t block = 0;           // random: how many of its blocks were used in this round
        uint64_t round = 0;
        std::optional<Permutation> order = {};
    };
    struct Due {
        const File* file = nullptr;
        OpKind kind = OpKind::fsync;
    };
    struct Block {
        const File* file = nullptr;
        int64_t offset = 0, bytes = 0;
        bool reads = true;
    };

    bool is_asynchronous() const { return job_.engine == IoJob::Engine::uring || job_.engine == IoJob::Engine::aio; }

    /// The next block of the job; none at its end.
    std::optional<Block> next() {
        if (loop_ >= job_.loops) {
            return std::nullopt;
        }
        if (moved_ >= job_.size || (job_.number_ios && made_ - loop_began_ >= *job_.number_ios)) {
            moved_ = 0;
            loop_began_ = made_;
            if (++loop_ >= job_.loops) {
                return std::nullopt;
            }
            for (File& file : files_) {
                file.at = {};
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
        block.reads = job_.reads && (!job_.writes || mixed_bits(seed_ + kDirections, made_) % 100 < job_.read_percent);
        if (job_.random) {
            if (!file.order || file.block == blocks_) {
                const auto number = static_cast<uint64_t>(&file - files_.data());
                file.order.emplace(blocks_, mixed_bits(seed_ + kBlocks, file.round++ * files_.size() + number));
                file.block = 0;
            }
            block.offset = static_cast<int64_t>((*file.order)(file.block++)) * job_.bs_least;
            block.bytes = std::min(block.bytes, used_ - block.offset);
        } else {
            int64_t& at = file.at[block.reads ? 0 : 1];
            if (at >= used_) {
                at = 0;
            }
            block.bytes = std::min(block.bytes, used_ - at);
            block.offset = at;
            at += block.bytes;
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

    void one(const Block& block, TaskWriter& task) {
        const bool positioned = job_.engine == IoJob::Engine::sync;
        if (positioned && (job_.random || job_.files > 1)) {
            task.put({.kind = OpKind::lseek,
                      .result = block.offset,
                      .handle = block.file->opened.handle,
                      .fd = block.file->opened.fd,
                      .offset = block.offset},
                     NominalTime::attributes);
        }
        task.move(
            block.reads ? (positioned ? OpKind::read : OpKind::pread) : (positioned ? OpKind::write : OpKind::pwrite),
            block.file->opened, block.offset, block.bytes);
        if (!block.reads) {
            ++written_;
            const auto is_due = [&](uint64_t every) { return every != 0 && written_ % every == 0; };
            if (is_due(job_.fsync)) {
                due_ = {block.file, OpKind::fsync};
            } else if (is_due(job_.fdatasync)) {
                due_ = {block.file, OpKind::fdatasync};
            }
        }
    }

    /// As fio makes it: one sync for a write, before the next block, so none behind the last one.
    void sync_due(TaskWriter& task) {
        if (due_.file != nullptr) {
            task.sync(due_.kind, due_.file->opened);
            due_ = {};
        }
    }

    void pause() {
        if (job_.think_ns != 0 && made_ % job_.think_blocks == 0) {
            task_.sleep(job_.think_ns);
        }
    }

    // --- requests in flight: the first are made together, each later one when one is done

    void open_ring() {
        if (job_.engine == IoJob::Engine::uring) {
            ring_fd_ = 1'000'000;  // below no file's
            ring_ = place_.log.add_handle(
                {.kind = HandleKind::other, .inherited = true, .process = process_, .fd = ring_fd_});
        }
    }

    /// `result`: an op that reports one, which the job had taken before.
    void submit(const Block& block, std::optional<uint64_t> result = {}) {
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
        const Edge taken{task_.task(), EdgeKind::reaped, 100, result.value_or(0)};
        if (result) {
            op.edges = {&taken, 1};
        }
        task_.put(op, 0);
        task_.moved(block.reads ? block.bytes : 0, block.reads ? 0 : block.bytes);
        flying_.push_back(flying);
    }

    void enter(int64_t submitted, int64_t until, int64_t least = 1) {
        const int64_t waits = std::max<int64_t>(until - task_.now(), 0);
        if (job_.engine == IoJob::Engine::uring) {
            task_.put({.kind = OpKind::uring_enter,
                       .result = submitted,
                       .handle = ring_,
                       .fd = ring_fd_,
                       .size = submitted,
                       .arg = least},
                      waits);
        } else {
            task_.put({.kind = OpKind::aio_reap, .result = 1, .size = 1, .arg = 1}, waits);
        }
    }

    void queued() {
        open_ring();
        int64_t submitted = 0;
        for (uint64_t i = 0; i < job_.depth; ++i) {
            if (const auto block = next()) {
                submit(*block);
                ++submitted;
            }
        }
        while (!flying_.empty()) {
            enter(submitted, flying_.front().done);
            take();
            pause();
            submitted = 0;
            if (const auto block = next()) {
                submit(*block);
                submitted = 1;
            }
        }
    }

    // --- an open loop: each request when it is due, whether or not those before it are done

    void arrive(TaskWriter& task, int64_t due) {
        task.wait_until(due);
        task.mark(request_name_, ++requests_, MarkerPhase::begin);
    }

    /// Threads that take the arrivals in turn.
    void arrive_at_servers(ArrivalTimes& arrivals) {
        std::vector<TaskWriter> servers;
        for (uint64_t i = 0; i < job_.servers; ++i) {
            const TaskId id = place_.add_task(process_, "server-" + std::to_string(i));
            task_.spawn(id, true);
            servers.emplace_back(place_.log, id, descriptors_, task_.now());
            servers.back().begin_loop();
        }
        while (const auto due = arrivals.next()) {
            const auto block = next();
            if (!block) {
                break;
            }
            TaskWriter& server = servers[requests_ % servers.size()];
            arrive(server, due->ns);
            one(*block, server);
            sync_due(server);  // a part of the request
            server.mark(request_name_, requests_, MarkerPhase::end);
        }
        for (TaskWriter& server : servers) {
            server.exit();
            task_.join(server.last());
            task_.add(server);
        }
    }

    /// Requests in flight, of which nobody waits for but who needs a free place in the ring.
    void arrive_queued(ArrivalTimes& arrivals) {
        open_ring();
        task_.begin_loop();
        auto block = next();
        auto due = arrivals.next();
        uint64_t done = 0;
        std::deque<uint64_t> results;  // ops of those that no request needed yet
        while (block && due) {
            const Block at_hand = *block;
            const int64_t at = due->ns;
            if ((due = arrivals.next())) {
                block = next();
            }
            task_.wait_until(at);
            while (!flying_.empty() && (flying_.front().done <= task_.now() || flying_.size() >= job_.depth)) {
                if (flying_.front().done > task_.now()) {
                    enter(0, flying_.front().done);
                }
                results.push_back(take());
            }
            task_.mark(request_name_, ++requests_, MarkerPhase::begin);
            // As many results as make a free place. Without such edges the replay would have the order of the log: the
            // last request has one at least.
            const uint64_t needs = requests_ > job_.depth ? requests_ - job_.depth : 0;
            const bool last = !block || !due;
            std::optional<uint64_t> result;
            while (done < needs || (last && !result && !results.empty())) {
                result = results.front();
                results.pop_front();
                ++done;
            }
            submit(at_hand, result);
            enter(1, 0, 0);
            task_.mark(request_name_, requests_, MarkerPhase::end);
        }
        drain(results);
    }

    /// Until all are done.
    void drain(const std::deque<uint64_t>& results) {
        if (flying_.empty()) {
            return;
        }
        const auto left = static_cast<int64_t>(flying_.size());
        Edge all{task_.task(), EdgeKind::reaped, 100, results.empty() ? 0 : results.back()};
        Op wait{.kind = OpKind::uring_enter, .handle = ring_, .fd = ring_fd_, .arg = left};
        wait.edges = results.empty() ? std::span<const Edge>() : std::span<const Edge>(&all, 1);
        task_.put(wait, std::max<int64_t>(flying_.back().done - task_.now(), 0));
        while (!flying_.empty()) {
            take();
        }
    }

    /// The result of the request that was made first; its op.
    uint64_t take() {
        const Flying done = flying_.front();
        flying_.pop_front();
        task_.put({.kind = job_.engine == IoJob::Engine::uring ? OpKind::uring_complete : OpKind::aio_complete,
                   .result = done.block.bytes,
                   .size = done.block.bytes,
                   .request = done.request},
                  0);
        return task_.last().op;
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
    Descriptors& descriptors_;
    StringId request_name_;
    uint64_t requests_ = 0;  // of an open loop
    std::vector<File> files_;
    const uint64_t blocks_ = static_cast<uint64_t>(job_.file_size / job_.bs_least);  // of a file
    size_t turn_ = 0;                                                                // in files_
    const int64_t used_ = static_cast<int64_t>(blocks_) * job_.bs_least;             // bytes of a file
    uint64_t made_ = 0, loop_ = 0, written_ = 0;
    uint64_t loop_began_ = 0;  // made_ when it did
    int64_t moved_ = 0;        // bytes of this loop
    Due due_;
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
        IoTask one(place, section, job, number, task, process, *descriptors.back());
        one.write();
        out.requests += one.requests();
        place.count(one.task());
        ends.push_back(one.task().last());
        out.end = std::max(out.end, one.task().now());
    }
    place.result.sections.push_back(out);
}

}  // namespace reprise
