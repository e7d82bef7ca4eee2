// SPDX-License-Identifier: MIT
#include "replay/plan/queues.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "replay/plan/queue_survey.h"

namespace reprise {
namespace {

constexpr uint64_t kLeastOfRelay = 4;   // of them by one task on behalf of another
constexpr size_t kMostRelays = 4;       // one after another
constexpr uint64_t kMostParts = 4;      // messages that one order becomes
constexpr size_t kLeastStretch = 8;     // of them, while the queue is full, to tell its capacity
constexpr double kCarried = 0.5;        // messages for each wake: the data comes by them
constexpr size_t kMostEdges = 1 << 20;  // between steps

/// A consumer, those that pass its wakes on (relay: on whose behalf), and who reads for it.
struct Party {
    TaskId consumer = 0;
    std::map<TaskId, TaskId> relays;
    std::set<TaskId> readers;
    uint64_t wakes = 0;
};

/// One consumer and its readers.
class Queue {
public:
    Queue(const LogReader& log, const QueueSurvey& survey, const std::vector<std::vector<BlockInfo>>& blocks,
          Party party, std::set<TaskId> feeders)
        : log_(log), survey_(survey), blocks_(blocks), relays_(std::move(party.relays)), feeders_(std::move(feeders)) {
        queue_.consumer = party.consumer;
        queue_.readers.assign(party.readers.begin(), party.readers.end());
    }

    std::optional<InferredQueue> by_back_pressure(std::vector<std::pair<uint64_t, Edge>>& edges) {
        read();
        if (!capacity()) {
            return std::nullopt;
        }
        make_edges(edges);
        return queue_;
    }

    std::optional<InferredQueue> by_conservation(std::vector<std::pair<uint64_t, Edge>>& edges) {
        read();
        std::erase_if(steps_, [](const Step& step) { return !step.submits; });
        if (steps_.size() < kLeastWakes) {
            return std::nullopt;
        }
        const double share = static_cast<double>(queue_.bytes) / static_cast<double>(steps_.size());
        uint64_t contradicted = 0;
        for (size_t k = 0; k < steps_.size(); ++k) {
            const auto wanted = static_cast<int64_t>(share * static_cast<double>(k + 1));
            contradicted += read_by(steps_[k].begin) < wanted ? 1 : 0;
        }
        if (contradicted * 20 > steps_.size()) {
            return std::nullopt;
        }
        queue_.by = InferredQueue::By::conservation;
        queue_.wakes = steps_.size();
        queue_.confidence = 40;
        for (size_t k = 0; k < steps_.size(); ++k) {
            need(edges, steps_[k].op, steps_[k].begin, share * static_cast<double>(k + 1));
        }
        return queue_;
    }

private:
    struct Read {
        int64_t end = 0, bytes = 0, sum = 0;
        TaskId task = 0;
        uint64_t op = 0;
    };
    /// A moment of the consumer that tells how much it has taken.
    struct Moment {
        uint64_t op = 0;
        int64_t time = 0;   // ns
        int64_t busy = 0;   // ns, of the consumer, without its waits for data
        bool full = false;  // or empty
        int64_t read = 0;   // bytes that the readers have read by then
    };
    struct Step {
        uint64_t op = 0;
        int64_t begin = 0, busy = 0;
        bool submits = false;
    };

    /// Which op of its master each op of a relay follows.
    void read_relay(TaskId relay, TaskId master) {
        auto& orders = orders_[relay];
        OpBlock b;
        for (const BlockInfo& where : blocks_[relay]) {
            log_.decode(where, b);
            for (size_t i = 0; i < b.count(); ++i) {
                for (const Edge& edge : b.has_edges() ? b.edges_of(i) : std::span<const Edge>{}) {
                    const bool order = edge.kind == EdgeKind::wake || edge.kind == EdgeKind::message;
                    if (order && edge.task == master) {
                        orders.emplace_back(b.first + i, edge.op);
                    }
                }
            }
            log_.forget(where);
        }
    }

    /// The consumer's op behind op `op` of `task`, if it is the consumer's or a relay's.
    std::optional<uint64_t> behind(TaskId task, uint64_t op) const {
        for (size_t turn = 0; turn <= kMostRelays; ++turn) {
            if (task == queue_.consumer) {
                return op;
            }
            const auto relay = relays_.find(task);
            if (relay == relays_.end()) {
                return std::nullopt;
            }
            const auto& orders = orders_.at(task);
            const auto after = std::upper_bound(orders.begin(), orders.end(), std::pair{op, UINT64_MAX});
            if (after == orders.begin()) {
                return std::nullopt;
            }
            op = std::prev(after)->second;
            task = relay->second;
        }
        return std::nullopt;
    }

    void read() {
        for (const auto& [relay, master] : relays_) {
            read_relay(relay, master);
        }
        for (const TaskId reader : queue_.readers) {
            read_reader(reader);
        }
        std::sort(progress_.begin(), progress_.end(), [](const Read& a, const Read& b) { return a.end < b.end; });
        int64_t sum = 0;
        for (Read& read : progress_) {
            read.sum = sum += read.bytes;
        }
        queue_.bytes = sum;
        std::sort(no_room_.begin(), no_room_.end());
        int64_t until = INT64_MIN;
        for (const auto& [begin, end] : no_room_) {
            full_until_.push_back(until = std::max(until, end));
        }
        read_consumer();
    }

    void read_reader(TaskId reader) {
        OpBlock b;
        for (const BlockInfo& where : blocks_[reader]) {
            log_.decode(where, b);
            for (size_t i = 0; i < b.count(); ++i) {
                if (const int64_t bytes = data_read(survey_, b, i); bytes > 0) {
                    progress_.push_back({end_of(b, i), bytes, 0, reader, b.first + i});
                }
                for (const Edge& edge : b.has_edges() ? b.edges_of(i) : std::span<const Edge>{}) {
                    const bool back = edge.kind == EdgeKind::wake || edge.kind == EdgeKind::message;
                    if (!back) {
                        continue;
                    }
                    if (const auto op = behind(edge.task, edge.op)) {
                        room_.emplace(*op, b.begin[i]);
                        if (end_of(b, i) - b.begin[i] >= kLeastWait) {
                            no_room_.emplace_back(b.begin[i], end_of(b, i));
                        }
                    }
                }
            }
            log_.forget(where);
        }
    }

    /// A reader waited for room then, so that the queue was not empty: the consumer waited for something else, or for
    /// another reader's part.
    bool was_full(int64_t time) const {
        const auto after = std::upper_bound(no_room_.begin(), no_room_.end(), std::pair{time, INT64_MAX});
        return after != no_room_.begin() && full_until_[static_cast<size_t>(after - no_room_.begin()) - 1] > time;
    }

    int64_t read_by(int64_t time) const {
        const auto after = std::upper_bound(progress_.begin(), progress_.end(), time,
                                            [](int64_t t, const Read& read) { return t < read.end; });
        return after == progress_.begin() ? 0 : std::prev(after)->sum;
    }

    void read_consumer() {
        OpBlock b;
        int64_t waited = 0, first = INT64_MAX;
        for (const BlockInfo& where : blocks_[queue_.consumer]) {
            log_.decode(where, b);
            for (size_t i = 0; i < b.count(); ++i) {
                const uint64_t op = b.first + i;
                first = std::min(first, b.begin[i]);
                const auto kind = static_cast<OpKind>(b.kind[i]);
                const bool waits = kind == OpKind::wait || kind == OpKind::receive || kind == OpKind::idle;
                bool fed = false;
                for (const Edge& edge : b.has_edges() ? b.edges_of(i) : std::span<const Edge>{}) {
                    fed = fed || (edge.kind != EdgeKind::lifecycle && feeders_.count(edge.task) != 0);
                }
                const int64_t end = end_of(b, i);
                if (waits && fed) {
                    waited += end - b.begin[i];
                    if (end - b.begin[i] >= kLeastWait && !was_full(b.begin[i])) {
                        moments_.push_back({op, end, end - first - waited, false, read_by(end)});
                        ++queue_.waits;
                    }
                }
                // A reader waited for room before the consumer made it: the queue was full.
                if (const auto found = room_.find(op); found != room_.end() && found->second < b.begin[i]) {
                    moments_.push_back({op, b.begin[i], b.begin[i] - first - waited, true, read_by(b.begin[i])});
                    ++queue_.wakes;
                }
                if (info(kind).is(Trait::cause) || info(kind).is(Trait::accelerator)) {
                    const bool submits = kind == OpKind::gpu_submit;
                    if (steps_.size() < kMostEdges) {
                        steps_.push_back({op, b.begin[i], b.begin[i] - first - waited, submits});
                    }
                }
            }
            log_.forget(where);
        }
        std::stable_sort(moments_.begin(), moments_.end(),
                         [](const Moment& a, const Moment& b2) { return a.op < b2.op; });
    }

    /// The longest stretch of a full queue tells how fast the consumer takes data, and with the moment of an empty
    /// queue before it, how far ahead the readers were.
    bool capacity() {
        if (queue_.wakes < kLeastWakes) {
            return false;
        }
        size_t best = 0, best_begin = 0;
        for (size_t begin = 0; begin < moments_.size();) {
            size_t end = begin;
            while (end < moments_.size() && moments_[end].full) {
                ++end;
            }
            if (end - begin > best) {
                best = end - begin;
                best_begin = begin;
            }
            begin = end + 1;
        }
        if (best < kLeastStretch) {
            return false;
        }
        const Moment& from = moments_[best_begin];
        const Moment& to = moments_[best_begin + best - 1];
        if (to.busy <= from.busy || to.read <= from.read) {
            return false;
        }
        rate_ = static_cast<double>(to.read - from.read) / static_cast<double>(to.busy - from.busy);
        Moment anchor;  // nothing taken when the consumer begins
        const bool anchored = best_begin > 0;
        if (anchored) {
            anchor = moments_[best_begin - 1];
        }
        std::vector<double> leads;
        for (size_t i = best_begin; i < best_begin + best; ++i) {
            const double taken =
                static_cast<double>(anchor.read) + rate_ * static_cast<double>(moments_[i].busy - anchor.busy);
            leads.push_back(std::max(static_cast<double>(moments_[i].read) - taken, 0.0));
        }
        std::sort(leads.begin(), leads.end());
        const double median = leads[leads.size() / 2];
        queue_.capacity_bytes = static_cast<int64_t>(median);
        queue_.bytes_per_s = rate_ * 1e9;
        const double spread = leads[leads.size() * 9 / 10] - leads[leads.size() / 10];
        const bool steady = spread < 0.25 * median + 2 * unit();
        queue_.confidence = static_cast<uint8_t>(50 + (anchored ? 20 : 0) + (steady ? 20 : 0));
        return true;
    }

    /// Bytes that the consumer takes between two wakes.
    double unit() const { return static_cast<double>(queue_.bytes) / static_cast<double>(queue_.wakes + queue_.waits); }

    /// `need` bytes must have been read before `op`, which began at `begin`.
    void need(std::vector<std::pair<uint64_t, Edge>>& edges, uint64_t op, int64_t begin, double bytes) {
        const auto wanted = static_cast<int64_t>(bytes);
        if (wanted <= needed_) {
            return;
        }
        // Whole reads only: what is half read is not needed yet.
        const auto last = std::upper_bound(progress_.begin(), progress_.end(), wanted,
                                           [](int64_t w, const Read& read) { return w < read.sum; });
        std::map<TaskId, uint64_t> sources;
        for (auto it = last; it != progress_.begin() && sources.size() < queue_.readers.size();) {
            --it;
            if (it->end <= begin) {
                sources.emplace(it->task, it->op);
            }
        }
        for (const auto& [task, source] : sources) {
            auto& known = last_source_[task];
            if (known > source) {
                continue;
            }
            known = source + 1;
            edges.emplace_back(op, Edge{task, EdgeKind::queue, queue_.confidence, source});
            ++queue_.edges;
        }
        needed_ = wanted;
    }

    /// Every moment says what is needed; between two of them, and after the last, the consumer takes at its rate.
    void make_edges(std::vector<std::pair<uint64_t, Edge>>& edges) {
        size_t step = 0;
        std::optional<Moment> last;
        double taken = 0;
        const auto steps_until = [&](uint64_t op, double most) {
            for (; step < steps_.size() && steps_[step].op < op; ++step) {
                if (!last || steps_[step].op <= last->op) {
                    continue;
                }
                const double bytes = taken + rate_ * static_cast<double>(steps_[step].busy - last->busy);
                if (bytes - static_cast<double>(needed_) < unit()) {
                    continue;
                }
                need(edges, steps_[step].op, steps_[step].begin, std::min(bytes, most));
            }
        };
        for (const Moment& moment : moments_) {
            const double here = static_cast<double>(moment.full ? moment.read - queue_.capacity_bytes : moment.read);
            steps_until(moment.op, here);
            if (moment.full) {
                need(edges, moment.op, moment.time, here);
            } else {
                needed_ = std::max(needed_, moment.read);  // its own edge says so
            }
            last = moment;
            taken = here;
        }
        steps_until(UINT64_MAX, static_cast<double>(queue_.bytes));
    }

    static constexpr int64_t kLeastWait = 20'000;  // ns; shorter ones may be contention

    const LogReader& log_;
    const QueueSurvey& survey_;
    const std::vector<std::vector<BlockInfo>>& blocks_;
    std::map<TaskId, TaskId> relays_;
    std::map<TaskId, std::vector<std::pair<uint64_t, uint64_t>>> orders_;  // of relays: their op, their master's
    std::set<TaskId> feeders_;
    InferredQueue queue_;
    std::vector<Read> progress_;                  // of all readers, by time
    std::unordered_map<uint64_t, int64_t> room_;  // op of the consumer that made room; when the reader began to wait
    std::vector<std::pair<int64_t, int64_t>> no_room_;  // when a reader waited for room
    std::vector<int64_t> full_until_;                   // greatest end so far
    std::vector<Moment> moments_;                       // by op
    std::vector<Step> steps_;
    double rate_ = 0;  // bytes per busy ns
    int64_t needed_ = 0;
    std::map<TaskId, uint64_t> last_source_;  // one past it
};

/// The tasks that data of the readers reaches by messages, themselves included.
std::set<TaskId> fed_by(const QueueSurvey& survey, const std::vector<TaskId>& readers, TaskId consumer) {
    std::set<TaskId> fed(readers.begin(), readers.end());
    std::vector<TaskId> open = readers;
    while (!open.empty()) {
        const TaskId from = open.back();
        open.pop_back();
        for (auto it = survey.pairs.lower_bound({from, 0}); it != survey.pairs.end() && it->first.first == from; ++it) {
            const TaskId to = it->first.second;
            if (to != consumer && it->second.carried() + it->second.wakes >= kLeastWakes / 2 && fed.insert(to).second) {
                open.push_back(to);
            }
        }
    }
    return fed;
}

/// Those who make room for readers, each with the one that it acts for: PyTorch's loop hands indices to a thread of its
/// own, which sends them to the worker.
std::map<TaskId, Party> find_parties(const QueueSurvey& survey) {
    const auto some = static_cast<int64_t>(kSomeData * static_cast<double>(survey.bytes));
    const auto reads = [&](TaskId task) { return survey.tasks[task].bytes > some; };
    std::vector<TaskId> readers;
    for (TaskId task = 1; task < survey.tasks.size(); ++task) {
        if (reads(task)) {
            readers.push_back(task);
        }
    }
    std::map<TaskId, uint64_t> makers;  // wakes of readers
    for (const auto& [tasks, pair] : survey.pairs) {
        if (!reads(tasks.first) && reads(tasks.second)) {
            makers[tasks.first] += pair.all();
        }
    }
    std::erase_if(makers, [](const auto& maker) { return maker.second < kLeastOfRelay; });
    std::map<TaskId, Party> parties;
    for (const auto& [maker, wakes] : makers) {
        // Back along the orders; whoever of them works most is the consumer, the others only pass on.
        std::vector<TaskId> chain{maker};
        while (chain.size() <= kMostRelays) {
            TaskId master = 0;
            uint64_t orders = 0;
            for (const auto& [tasks, pair] : survey.pairs) {
                const bool known = reads(tasks.first) || std::count(chain.begin(), chain.end(), tasks.first) != 0;
                if (tasks.second == chain.back() && !known && pair.all() > orders) {
                    master = tasks.first;
                    orders = pair.all();
                }
            }
            if (master == 0 || kMostParts * orders < wakes) {
                break;
            }
            chain.push_back(master);
        }
        const auto most = std::max_element(chain.begin(), chain.end(), [&](TaskId x, TaskId y) {
            return survey.tasks[x].busy < survey.tasks[y].busy;
        });
        const TaskId consumer = *most;
        std::map<TaskId, TaskId> relays;
        for (auto it = chain.begin(); it != most; ++it) {
            relays.emplace(*it, *std::next(it));
        }
        Party& party = parties[consumer];
        party.consumer = consumer;
        party.wakes += wakes;
        party.relays.insert(relays.begin(), relays.end());
        for (const TaskId reader : readers) {
            if (survey.pair(maker, reader).all() != 0) {
                party.readers.insert(reader);
            }
        }
    }
    return parties;
}

void find_queues(const LogReader& log, const QueueSurvey& survey, const std::vector<std::vector<BlockInfo>>& blocks,
                 QueueInference& result) {
    for (auto& [consumer, party] : find_parties(survey)) {
        if (party.wakes < kLeastWakes) {
            continue;
        }
        const std::set<TaskId> feeders = fed_by(survey, {party.readers.begin(), party.readers.end()}, consumer);
        uint64_t carried = 0;
        for (const TaskId feeder : feeders) {
            carried += survey.pair(feeder, consumer).carried();
        }
        if (static_cast<double>(carried) >= kCarried * static_cast<double>(party.wakes)) {
            continue;
        }
        std::vector<std::pair<uint64_t, Edge>> edges;
        Queue queue(log, survey, blocks, party, feeders);
        if (const std::optional<InferredQueue> found = queue.by_back_pressure(edges)) {
            result.queues.push_back(*found);
            result.edges.emplace(consumer, std::move(edges));
        }
    }
}

/// Readers that nothing leads away from, and one task that feeds an accelerator.
void conserve(const LogReader& log, const QueueSurvey& survey, const std::vector<std::vector<BlockInfo>>& blocks,
              QueueInference& result) {
    const auto some = static_cast<int64_t>(kSomeData * static_cast<double>(survey.bytes));
    Party party;
    party.readers.insert(result.feed_nobody.begin(), result.feed_nobody.end());
    for (TaskId task = 1; task < survey.tasks.size(); ++task) {
        if (survey.tasks[task].submits < kLeastWakes) {
            continue;
        }
        if (party.consumer != 0 || survey.tasks[task].bytes > some || result.edges.count(task) != 0) {
            return;
        }
        party.consumer = task;
    }
    if (party.consumer == 0 || party.readers.empty()) {
        return;
    }
    std::vector<std::pair<uint64_t, Edge>> edges;
    const TaskId consumer = party.consumer;
    Queue queue(log, survey, blocks, party, party.readers);
    if (const std::optional<InferredQueue> found = queue.by_conservation(edges)) {
        result.queues.push_back(*found);
        result.edges.emplace(consumer, std::move(edges));
        result.feed_nobody.clear();
    }
}

}  // namespace

double QueueInference::doubt(TaskId task) const {
    uint8_t least = 100;
    for (const InferredQueue& queue : queues) {
        if (queue.consumer == task ||
            std::find(queue.readers.begin(), queue.readers.end(), task) != queue.readers.end()) {
            least = std::min(least, queue.confidence);
        }
    }
    return 1 - least / 100.0;
}

std::string QueueInference::shared_work() const {
    if (shared.empty()) {
        return {};
    }
    const SharedWork& work = *std::max_element(
        shared.begin(), shared.end(), [](const SharedWork& a, const SharedWork& b) { return a.most < b.most; });
    if (work.parent != 0) {
        return "task " + std::to_string(work.parent) + " starts " + std::to_string(work.tasks.size()) +
               " children as others end: on other storage others would run at once";
    }
    return std::to_string(work.tasks.size()) + " tasks take work as they get free (" + std::to_string(work.least) +
           " to " + std::to_string(work.most) + " reads each): on other storage they would share it otherwise";
}

bool QueueInference::shares_otherwise(int64_t elapsed_ns, int64_t recorded_ns) {
    constexpr double kOther = 1.5;
    const auto elapsed = static_cast<double>(elapsed_ns), recorded = static_cast<double>(recorded_ns);
    return elapsed > kOther * recorded || recorded > kOther * elapsed;
}

QueueInference infer_queues(const LogReader& log, const std::function<void(uint64_t)>& progress) {
    QueueInference result;
    std::vector<std::vector<BlockInfo>> blocks(log.tables().tasks.size());
    size_t tasks = 0;
    for (const BlockInfo& block : log.blocks()) {
        if (block.task >= blocks.size()) {
            return result;  // the planner says what is wrong
        }
        tasks += blocks[block.task].empty() ? 1 : 0;
        blocks[block.task].push_back(block);
    }
    if (tasks < 2) {
        return result;
    }
    const QueueSurvey survey = take_queue_survey(log, blocks, progress);
    if (survey.bytes == 0) {
        return result;
    }
    find_queues(log, survey, blocks, result);
    find_doubts(survey, result);
    find_shared_work(log.tables(), survey, result);
    conserve(log, survey, blocks, result);
    return result;
}

}  // namespace reprise
