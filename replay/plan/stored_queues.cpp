// SPDX-License-Identifier: MIT
#include "replay/plan/stored_queues.h"

#include <algorithm>
#include <utility>

#include "formats/oplog/stored_derived.h"

namespace reprise {
namespace {

constexpr std::string_view kName = "queues";

void put_tasks(Bytes& out, const std::vector<TaskId>& tasks) {
    put_varint(out, tasks.size());
    for (const TaskId task : tasks) {
        put_varint(out, task);
    }
}

void put_queue(Bytes& out, const InferredQueue& queue) {
    out.push_back(static_cast<uint8_t>(queue.by));
    put_varint(out, queue.consumer);
    put_tasks(out, queue.readers);
    put_varint(out, queue.wakes);
    put_varint(out, queue.waits);
    put_signed(out, queue.bytes);
    put_signed(out, queue.capacity_bytes);
    put_fixed(out, queue.bytes_per_s);
    out.push_back(queue.confidence);
    put_varint(out, queue.edges);
}

// An edge of an op: distances from the edge before.
struct EdgeState {
    uint64_t op = 0, source = 0;
};

void put_edge(Bytes& out, EdgeState& last, uint64_t op, const Edge& edge) {
    put_varint(out, op - last.op);
    put_varint(out, edge.task);
    out.push_back(edge.confidence);
    put_signed(out, static_cast<int64_t>(edge.op - last.source));
    last = {op, edge.op};
}

class Decoder {
public:
    Decoder(ByteView bytes, const LogReader& log) : in_(bytes), log_(log) {}

    QueueInference run() {
        QueueInference queues;
        for (size_t n = in_.count(in_.left()); n > 0; --n) {
            queues.queues.push_back(queue());
        }
        for (size_t n = in_.count(in_.left()); n > 0; --n) {
            const TaskId consumer = task();
            if (!queues.edges.emplace(consumer, edges(consumer)).second) {
                throw Corrupt("two lists of edges of one task");
            }
        }
        queues.feed_nobody = tasks();
        queues.event_loops = tasks();
        for (size_t n = in_.count(in_.left()); n > 0; --n) {
            SharedWork work{tasks(), in_.varint(), in_.varint()};
            work.parent = static_cast<TaskId>(in_.count(log_.tables().tasks.size() - 1));
            queues.shared.push_back(std::move(work));
        }
        if (in_.left()) {
            throw Corrupt("bytes are left over at its end");
        }
        return queues;
    }

private:
    TaskId task() {
        const auto id = static_cast<TaskId>(in_.count(log_.tables().tasks.size() - 1));
        if (id == 0) {
            throw Corrupt("a task that is none");
        }
        return id;
    }

    std::vector<TaskId> tasks() {
        std::vector<TaskId> all(in_.count(in_.left()));
        std::generate(all.begin(), all.end(), [&] { return task(); });
        return all;
    }

    InferredQueue queue() {
        InferredQueue queue;
        const uint8_t by = in_.byte();
        if (by > static_cast<uint8_t>(InferredQueue::By::conservation)) {
            throw Corrupt("a queue inferred in an unknown way");
        }
        queue.by = static_cast<InferredQueue::By>(by);
        queue.consumer = task();
        queue.readers = tasks();
        queue.wakes = in_.varint();
        queue.waits = in_.varint();
        queue.bytes = in_.signed_varint();
        queue.capacity_bytes = in_.signed_varint();
        queue.bytes_per_s = in_.fixed<double>();
        queue.confidence = in_.byte();
        queue.edges = in_.varint();
        return queue;
    }

    std::vector<std::pair<uint64_t, Edge>> edges(TaskId consumer) {
        std::vector<std::pair<uint64_t, Edge>> all(in_.count(in_.left()));
        EdgeState last;
        for (auto& [op, edge] : all) {
            const uint64_t ops = log_.op_count(consumer);
            op = last.op + in_.count(ops - std::min(ops, last.op));
            edge.task = task();
            edge.kind = EdgeKind::queue;
            edge.confidence = in_.byte();
            edge.op = last.source + static_cast<uint64_t>(in_.signed_varint());
            if (op >= ops || edge.op >= log_.op_count(edge.task)) {
                throw Corrupt("an edge of an op that is not in the log");
            }
            last = {op, edge.op};
        }
        return all;
    }

    ByteReader in_;
    const LogReader& log_;
};

}  // namespace

Bytes encode_queues(const QueueInference& queues) {
    Bytes out;
    put_varint(out, queues.queues.size());
    for (const InferredQueue& queue : queues.queues) {
        put_queue(out, queue);
    }
    std::vector<TaskId> consumers;
    for (const auto& [consumer, edges] : queues.edges) {
        consumers.push_back(consumer);
    }
    std::sort(consumers.begin(), consumers.end());
    put_varint(out, consumers.size());
    for (const TaskId consumer : consumers) {
        const auto& edges = queues.edges.at(consumer);
        put_varint(out, consumer);
        put_varint(out, edges.size());
        EdgeState last;
        for (const auto& [op, edge] : edges) {
            put_edge(out, last, op, edge);
        }
    }
    put_tasks(out, queues.feed_nobody);
    put_tasks(out, queues.event_loops);
    put_varint(out, queues.shared.size());
    for (const SharedWork& work : queues.shared) {
        put_tasks(out, work.tasks);
        put_varint(out, work.least);
        put_varint(out, work.most);
        put_varint(out, work.parent);
    }
    return out;
}

QueueInference decode_queues(ByteView bytes, const LogReader& log) { return Decoder(bytes, log).run(); }

Derived stored_queues(const QueueInference& queues) {
    return Derived{std::string(kName), kInferenceVersion, encode_queues(queues)};
}

std::optional<Derived> derive_queues(const LogReader& log) {
    if (log.op_count() > kMostOpsDerived) {
        return std::nullopt;
    }
    return stored_queues(infer_queues(log));
}

QueueInference queues_of(const LogReader& log, const std::function<void(uint64_t)>& progress) {
    auto stored = stored_derived(log, kName, kInferenceVersion, "the queues it holds", "import or capture again",
                                 [&](ByteView bytes) { return decode_queues(bytes, log); });
    QueueInference queues = stored ? std::move(*stored) : infer_queues(log, progress);
    if (log.header().source == "generate") {
        queues.feed_nobody.clear();  // who waits for whom is as the job file says
    }
    return queues;
}

}  // namespace reprise
