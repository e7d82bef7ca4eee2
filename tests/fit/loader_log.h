// SPDX-License-Identifier: MIT
// A log as a recorded PyTorch DataLoader leaves it, without marks: in each epoch new worker processes, asked for each
// batch by a message; a thread of each sends what it loaded, late, through one queue, and another one hands descriptors
// over by a connection on which both sides talk.
#pragma once

#include <fcntl.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "formats/oplog/oplog.h"

namespace reprise::test {

struct LoaderJob {
    uint64_t samples = 60, batch = 6, workers = 2, epochs = 3;
    bool asks = true;         // else the workers know what to load
    bool lengths = false;     // each message comes as its length, and then itself
    uint64_t last_epoch = 0;  // batches of it; 0: all
    uint64_t prefetch = 3;    // asked of each worker before the first batch is taken
    int reads = 1;            // of each sample
    uint64_t saves = 0;       // a checkpoint after so many batches of all; 0: none
};

class LoaderLog {
public:
    LoaderLog(const std::filesystem::path& path, const LoaderJob& job) : job_(job), out_(path, header()) {
        trainer_ = process(0);
        main_ = task(trainer_);
        for (uint64_t i = 0; i < job_.samples; ++i) {
            FileRow row;
            row.path = out_.intern("/data/set/s" + std::to_string(1000 + i) + ".jpg");
            row.origin = Origin::existed;
            row.role = Role::dataset;
            row.type = FileType::regular;
            row.size = 30'000;
            files_.push_back(out_.add_file(row));
        }
        for (uint64_t epoch = 0; epoch < job_.epochs; ++epoch) {
            add_epoch(epoch);
        }
        for (TaskId id = 1; id < ends_.size(); ++id) {
            add(id, {.kind = OpKind::exit});
        }
        out_.finish();
    }

private:
    static constexpr int64_t kMs = 1'000'000;

    static Header header() {
        Header made;
        made.source = "capture";
        return made;
    }
    ProcessId process(ProcessId parent) {
        ProcessRow row;
        row.pid = next_id_++;
        row.parent = parent;
        return out_.add_process(row);
    }
    TaskId task(ProcessId of) {
        TaskRow row;
        row.process = of;
        row.tid = next_id_++;
        const TaskId made = out_.add_task(row);
        ends_.resize(made + 1, now_);
        return made;
    }
    HandleId channel(HandleKind kind) {
        HandleRow row;
        row.kind = kind;
        return out_.add_handle(row);
    }
    /// Not before the task's last one ended.
    uint64_t add(TaskId by, Op op) {
        op.begin = std::max(op.begin, ends_[by]);
        op.duration = std::max<int64_t>(op.duration, 1'000);
        ends_[by] = op.begin + op.duration;
        return out_.append(by, op);
    }
    void wait(TaskId by, int64_t until) {
        add(by, {.kind = OpKind::wait, .begin = ends_[by], .duration = until - ends_[by], .arg = 1});
    }
    uint64_t send(TaskId by, HandleId to, int64_t begin, int64_t bytes) {
        return add(by, {.kind = OpKind::send, .begin = begin, .result = bytes, .handle = to, .fd = 5, .size = bytes});
    }
    void receive(TaskId by, HandleId from, TaskId source, uint64_t op, int64_t bytes) {
        const std::vector<Edge> edges = {{source, EdgeKind::message, 100, op}};
        Op made{
            .kind = OpKind::receive, .begin = ends_[source], .result = bytes, .handle = from, .fd = 6, .size = bytes};
        made.edges = edges;
        add(by, made);
    }
    void message(TaskId from, HandleId out, TaskId to, HandleId in, int64_t begin, int64_t bytes) {
        uint64_t sent = send(from, out, begin, job_.lengths ? 4 : 4 + bytes);
        receive(to, in, from, sent, 4);
        sent = job_.lengths ? send(from, out, begin, bytes) : sent;
        receive(to, in, from, sent, bytes);
    }

    struct Worker {
        TaskId loads = 0, sends = 0, shares = 0, asks = 0;
        HandleId asked_out = 0, asked_in = 0;
    };
    void add_epoch(uint64_t epoch) {
        const HandleId queue_in = channel(HandleKind::pipe), queue_out = channel(HandleKind::pipe);
        std::vector<Worker> workers(job_.workers);
        for (Worker& each : workers) {
            const ProcessId of = process(trainer_);
            each.loads = task(of);
            each.sends = task(of);
            each.shares = task(of);
            each.asks = task(trainer_);
            each.asked_in = channel(HandleKind::pipe);
            each.asked_out = channel(HandleKind::pipe);
            add(main_, {.kind = OpKind::spawn, .begin = now_, .result = 1, .peer = each.loads});
        }
        const uint64_t all = (job_.samples + job_.batch - 1) / job_.batch;
        const uint64_t batches = epoch + 1 == job_.epochs && job_.last_epoch != 0 ? job_.last_epoch : all;
        const uint64_t first = job_.prefetch * job_.workers;
        for (uint64_t batch = 0; batch < batches; ++batch) {
            Worker& by = workers[batch % workers.size()];
            if (job_.asks) {  // the first ones at once, then one for each that was taken
                const int64_t time = batch < first ? now_ : taken_[batch - first];
                wait(by.asks, time);
                message(by.asks, by.asked_out, by.loads, by.asked_in, time, 55);
            }
            const int64_t begin = ends_[by.loads];
            for (uint64_t i = batch * job_.batch; i < std::min((batch + 1) * job_.batch, job_.samples); ++i) {
                load(by.loads, files_[i * 11 % files_.size()]);
            }
            const int64_t loaded = ends_[by.loads];
            // The thread that sends comes late: the next batch has begun.
            const int64_t sent = loaded + (loaded - begin) / 3 + static_cast<int64_t>(batch % 3) * kMs;
            wait(by.sends, sent);
            message(by.sends, queue_out, main_, queue_in, sent, 345);
            taken_.push_back(ends_[main_]);
            const HandleId theirs = channel(HandleKind::socket), ours = channel(HandleKind::socket);
            for (int turn = 0; turn < 3; ++turn) {
                message(by.shares, theirs, main_, ours, ends_[main_] + kMs, 31);
                message(main_, ours, by.shares, theirs, ends_[main_], 20);
            }
            add(main_, {.kind = OpKind::compute, .begin = ends_[main_], .duration = 5 * kMs, .flags = 3});
            if (job_.saves != 0 && ++steps_ % job_.saves == 0) {
                save();
            }
        }
        taken_.clear();
        now_ = ends_[main_] + kMs;
        for (const Worker& each : workers) {
            if (job_.asks) {  // to end
                message(each.asks, each.asked_out, each.loads, each.asked_in, now_, 4 + 16);
            }
            now_ = std::max(now_, ends_[each.loads] + kMs);
        }
    }
    void save() {
        FileRow file;
        file.path = out_.intern("/out/" + std::to_string(steps_) + ".pt");
        file.origin = Origin::created;
        file.role = Role::checkpoint;
        file.type = FileType::regular;
        HandleRow row;
        row.file = out_.add_file(file);
        row.flags = O_WRONLY | O_CREAT;
        const HandleId handle = out_.add_handle(row);
        add(main_, {.kind = OpKind::open,
                    .begin = ends_[main_],
                    .result = 9,
                    .handle = handle,
                    .fd = -1,
                    .file = row.file,
                    .flags = O_WRONLY | O_CREAT,
                    .mode = 0644});
        add(main_, {.kind = OpKind::write,
                    .begin = ends_[main_],
                    .result = 500'000,
                    .handle = handle,
                    .fd = 9,
                    .size = 500'000});
        add(main_, {.kind = OpKind::close, .begin = ends_[main_], .handle = handle, .fd = 9});
    }
    void load(TaskId by, FileId file) {
        HandleRow row;
        row.file = file;
        const HandleId handle = out_.add_handle(row);
        add(by, {.kind = OpKind::open, .begin = ends_[by], .result = 7, .handle = handle, .fd = -1, .file = file});
        for (int i = 0; i < job_.reads; ++i) {
            add(by, {.kind = OpKind::read,
                     .begin = ends_[by],
                     .result = 30'000,
                     .handle = handle,
                     .fd = 7,
                     .size = 30'001});
        }
        add(by, {.kind = OpKind::close, .begin = ends_[by], .handle = handle, .fd = 7});
        add(by, {.kind = OpKind::compute, .begin = ends_[by], .duration = kMs, .flags = 3});
    }

    LoaderJob job_;
    LogWriter out_;
    ProcessId trainer_ = 0;
    TaskId main_ = 0;
    std::vector<FileId> files_;
    std::vector<int64_t> ends_ = {0};  // of tasks
    std::vector<int64_t> taken_;       // in the epoch, when
    uint64_t steps_ = 0;
    int64_t now_ = kMs;
    int32_t next_id_ = 100;
};

}  // namespace reprise::test
