// SPDX-License-Identifier: MIT
// Serving with a key-value cache on storage: requests load the blocks that the tier has of their prompt, the
// accelerator computes the rest (prefill), and threads beside store the new blocks while further tokens come (decode).
#include <linux/io_uring.h>

#include <deque>
#include <optional>
#include <utility>

#include "generate/kv_cache.h"
#include "generate/section_writer.h"

namespace reprise {
namespace {

// What is drawn apart from each other.
constexpr uint64_t kArrivals = 1, kPrompts = 2, kOutputs = 3, kHits = 4, kPlaces = 5;

class KvCache {
public:
    KvCache(LogPlace& place, const JobSection& section, const KvCacheJob& job)
        : place_(place),
          section_(section),
          job_(job),
          request_name_(place.log.intern("request")),
          device_(kFirstDevice + place.serving++),
          cached_(static_cast<uint32_t>(job.slots())) {}

    void write(const std::vector<TaskMoment>& after, std::vector<TaskMoment>& ends) {
        int64_t begin = 0;
        for (const TaskMoment& each : after) {
            begin = std::max(begin, each.time);
        }
        add_files();
        process_ = place_.add_process(0, section_.name);
        TaskWriter main(place_.log, place_.add_task(process_, section_.name), descriptors_, begin);
        main.wait_for(after);
        if (!job_.file_per_block) {
            tier_ = main.open(first_file_, flags(O_RDWR));
        }
        start(main);
        serve();
        finish(main);
        ends.push_back(main.last());
        place_.count(main);
        GeneratedSection& out = place_.result.sections.emplace_back();
        out.name = section_.name;
        out.files = job_.file_per_block ? job_.slots() : 1;
        out.file_bytes = static_cast<int64_t>(job_.slots()) * job_.block_bytes();
        out.requests = requests_;
        out.begin = begin;
        out.end = main.now();
        out.drew("prompt_tokens", job_.prompt_tokens, prompts_.below, prompts_.drawn);
        out.drew("output_tokens", job_.output_tokens, outputs_.below, outputs_.drawn);
    }

private:
    static constexpr int64_t kFirstDevice = 1000;  // those of training are below
    static constexpr int32_t kFirstRing = 1'000'000;

    struct Thread {
        TaskWriter task;
        HandleId ring = 0;
        int32_t ring_fd = -1;
    };
    struct Opened {
        OpenFile file;
        int64_t offset = 0;  // of the block
    };

    int64_t flags(int64_t access) const { return access | O_CLOEXEC | (job_.direct ? O_DIRECT : 0); }

    void add_files() {
        const uint64_t files = job_.file_per_block ? job_.slots() : 1;
        for (uint64_t i = 0; i < files; ++i) {
            FileRow row;
            row.path = place_.log.intern(section_.directory + "/" + section_.name +
                                         (job_.file_per_block ? "." + std::to_string(i) : "") + ".kv");
            row.size = static_cast<uint64_t>(job_.block_bytes()) * (job_.file_per_block ? 1 : job_.slots());
            row.size_exact = true;
            row.type = FileType::regular;
            row.role = Role::cache;
            row.origin = Origin::existed;
            row.mode = 0644;
            const FileId id = place_.log.add_file(row);
            first_file_ = i == 0 ? id : first_file_;
        }
    }

    Thread thread(TaskWriter& main, const std::string& name) {
        const TaskId id = place_.add_task(process_, name);
        main.spawn(id, true);
        Thread made{TaskWriter(place_.log, id, descriptors_, main.now())};
        if (job_.uring) {
            made.ring_fd = kFirstRing + rings_++;
            made.ring = place_.log.add_handle(
                {.kind = HandleKind::other, .inherited = true, .process = process_, .fd = made.ring_fd});
        }
        return made;
    }
    void start(TaskWriter& main) {
        for (uint64_t i = 0; i < job_.servers; ++i) {
            servers_.push_back(thread(main, "server-" + std::to_string(i)));
            stores_.push_back(thread(main, "store-" + std::to_string(i)));
            servers_.back().task.begin_loop();
        }
    }

    void serve() {
        ArrivalTimes arrivals(job_.arrivals, mixed_bits(section_.seed, kArrivals));
        while (!job_.requests || requests_ < *job_.requests) {
            const std::optional<Arrival> arrival = arrivals.next();
            if (!arrival) {
                return;
            }
            const size_t number = requests_ % servers_.size();
            request(*arrival, servers_[number], stores_[number]);
            if (job_.requests && requests_ % 64 == 0) {
                place_.progress(static_cast<double>(requests_) / static_cast<double>(*job_.requests));
            }
        }
    }

    void request(const Arrival& arrival, Thread& server, Thread& store) {
        const uint64_t number = requests_++;
        const auto drawn = [&](const Distribution& of, uint64_t what, Draws& draws) {
            ++draws.drawn;
            return static_cast<uint64_t>(of.draw(mixed_bits(section_.seed, what), number, &draws.below));
        };
        const uint64_t prompt = arrival.prompt_tokens != 0 ? static_cast<uint64_t>(arrival.prompt_tokens)
                                                           : drawn(job_.prompt_tokens, kPrompts, prompts_);
        const uint64_t output = arrival.new_tokens != 0 ? static_cast<uint64_t>(arrival.new_tokens)
                                                        : drawn(job_.output_tokens, kOutputs, outputs_);
        const uint64_t blocks = prompt / job_.block_tokens, loaded = hits(number, blocks);
        server.task.wait_until(arrival.ns);
        server.task.mark(request_name_, number + 1, MarkerPhase::begin);
        move_blocks(server, found(number, loaded), true);
        prefill(server.task, prompt - loaded * job_.block_tokens);
        server.task.mark(request_name_, number + 1, MarkerPhase::end);  // the first token
        store_blocks(server, store, blocks - loaded);
        const int64_t decode = job_.decode_ns * static_cast<int64_t>(output > 0 ? output - 1 : 0);
        if (decode > 0) {
            server.task.put({.kind = OpKind::compute, .flags = kComputeSleeps}, decode);
        }
        if (job_.save_decode) {
            store_blocks(server, store, (prompt + output) / job_.block_tokens - blocks);
        }
    }

    /// Of a prompt's blocks, those that the tier has: a share in the mean.
    uint64_t hits(uint64_t number, uint64_t blocks) const {
        const double part = uniform_of(mixed_bits(mixed_bits(section_.seed, kHits), number));
        const double share = static_cast<double>(blocks * job_.hit_percent) / 100.0;
        return std::min({static_cast<uint64_t>(share + 1 - part), blocks, job_.slots()});
    }
    std::vector<uint32_t> found(uint64_t number, uint64_t count) {
        std::vector<uint32_t> out;
        const uint64_t first = mixed_bits(mixed_bits(section_.seed, kPlaces), number) % job_.slots();
        for (uint64_t i = 0; i < count; ++i) {
            out.push_back(static_cast<uint32_t>((first + i) % job_.slots()));
            cached_.use(out.back());
        }
        return out;
    }

    /// The accelerator serves one prompt after the other.
    void prefill(TaskWriter& task, uint64_t tokens) {
        const int64_t busy = job_.prefill_ns * static_cast<int64_t>(tokens);
        if (busy == 0) {
            return;
        }
        task.put({.kind = OpKind::gpu_submit, .size = busy, .arg = device_}, 0);
        device_free_ = std::max(device_free_, task.now()) + busy;
        task.put({.kind = OpKind::gpu_wait, .arg = device_}, device_free_ - task.now());
    }

    /// By the thread beside, in place of those that were not used for longest.
    void store_blocks(const Thread& server, Thread& store, uint64_t count) {
        if (count == 0) {
            return;
        }
        std::vector<uint32_t> slots;
        for (uint64_t i = 0; i < count; ++i) {
            slots.push_back(cached_.replace());
        }
        store.task.wait_for(server.task.last());
        move_blocks(store, slots, false);
    }

    Opened open(TaskWriter& task, uint32_t slot, bool reads) {
        if (!job_.file_per_block) {
            return {tier_, static_cast<int64_t>(slot) * job_.block_bytes()};
        }
        return {task.open(first_file_ + slot, flags(reads ? O_RDONLY : O_WRONLY))};
    }
    void close(TaskWriter& task, const Opened& opened) const {
        if (job_.file_per_block) {
            task.close(opened.file);
        }
    }

    void move_blocks(Thread& thread, const std::vector<uint32_t>& slots, bool reads) {
        for (size_t at = 0; at < slots.size(); at += job_.depth) {
            const size_t count = std::min<size_t>(job_.depth, slots.size() - at);
            std::vector<Opened> opened;
            for (size_t i = 0; i < count; ++i) {
                opened.push_back(open(thread.task, slots[at + i], reads));
            }
            if (job_.uring) {
                in_flight(thread, opened, reads);
            } else {
                thread.task.move(reads ? OpKind::pread : OpKind::pwrite, opened[0].file, opened[0].offset,
                                 job_.block_bytes());
            }
            for (const Opened& each : opened) {
                close(thread.task, each);
            }
        }
    }

    /// All together; then the task waits for all.
    void in_flight(Thread& thread, const std::vector<Opened>& opened, bool reads) {
        const uint32_t first = place_.requests + 1;
        const int64_t bytes = job_.block_bytes(), count = static_cast<int64_t>(opened.size());
        for (const Opened& each : opened) {
            thread.task.put({.kind = OpKind::uring_submit,
                             .handle = each.file.handle,
                             .fd = each.file.fd,
                             .offset = each.offset,
                             .size = bytes,
                             .arg = reads ? IORING_OP_READ : IORING_OP_WRITE,
                             .request = ++place_.requests},
                            0);
            thread.task.moved(reads ? bytes : 0, reads ? 0 : bytes);
        }
        thread.task.put({.kind = OpKind::uring_enter,
                         .result = count,
                         .handle = thread.ring,
                         .fd = thread.ring_fd,
                         .size = count,
                         .arg = count},
                        NominalTime::request + bytes * count / 8);
        for (uint32_t request = first; request <= place_.requests; ++request) {
            thread.task.put({.kind = OpKind::uring_complete, .result = bytes, .size = bytes, .request = request}, 0);
        }
    }

    void finish(TaskWriter& main) {
        for (size_t i = 0; i < servers_.size(); ++i) {
            for (TaskWriter* const task : {&servers_[i].task, &stores_[i].task}) {
                task->exit();
                main.join(task->last());
                main.add(*task);
            }
        }
        if (!job_.file_per_block) {
            main.close(tier_);
        }
        main.exit();
    }

    LogPlace& place_;
    const JobSection& section_;
    const KvCacheJob& job_;
    StringId request_name_;
    int64_t device_, device_free_ = 0;
    LeastRecentlyUsed cached_;
    Descriptors descriptors_;
    ProcessId process_ = 0;
    FileId first_file_ = 0;
    OpenFile tier_;
    int32_t rings_ = 0;
    std::deque<Thread> servers_, stores_;
    uint64_t requests_ = 0;
    struct Draws {
        uint64_t drawn = 0, below = 0;
    };
    Draws prompts_, outputs_;
};

}  // namespace

void write_kv_cache(LogPlace& place, const JobSection& section, const KvCacheJob& job,
                    const std::vector<TaskMoment>& after, std::vector<TaskMoment>& ends) {
    KvCache(place, section, job).write(after, ends);
}

}  // namespace reprise
