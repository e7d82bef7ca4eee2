// SPDX-License-Identifier: MIT
// What each submission and each wait of a ring needs done before it.
#include <algorithm>
#include <map>
#include <utility>

#include "formats/support/sums.h"
#include "replay/plan/edges_rules.h"
#include "replay/plan/plan.h"
#include "replay/plan/request_ring.h"

namespace reprise {
namespace {

/// Of the waits of a ring that was kept full, so many began with it full. The rest are ends of files and of batches.
constexpr double kMostlyFull = 0.95;
/// Of what would be in flight in a ring that was kept full and polled, so much is to be seen in the mean.
constexpr double kPolledFull = 0.8;
/// The kernel may end a wait before the recorder sees the last of its results, ns.
constexpr int64_t kJustAfter = 100'000;
/// A ring of so few waits shows nothing.
constexpr size_t kLeastWaits = 8;
/// Of requests that were made one by one: so few waits for them are none, and so many were done before the next.
constexpr double kHardlyAny = 0.1, kMostlyAlone = 0.9;

}  // namespace

// The number of the completion that op `op` less 1 of the task reports, among those of its ring; 0: none.
uint64_t RequestScan::number_of(TaskId task, uint64_t op, uint32_t ring) const {
    const auto found =
        std::lower_bound(completed_.begin(), completed_.end(), std::pair{task, op - 1}, [](const Completed& a, auto b) {
            return std::pair{a.task, a.op} < b;
        });
    const bool is = op != 0 && found != completed_.end() && found->task == task && found->op == op - 1;
    return is && found->ring == ring ? found->number : 0;
}

// How many results of the ring the job had taken when an op began. `done`: how many were there, from call to call.
template <class At>
uint64_t RequestScan::taken(const RequestRing& facts, uint32_t number, const Ring& ring, const At& at,
                            uint64_t& done) const {
    while (done < ring.completed.size() && by_time(*ring.completed[done], at)) {
        ++done;
    }
    return facts.exact && !facts.aio ? std::min(number_of(at.task, at.reaped, number), done) : done;
}

void RequestScan::count(RequestRing& facts, uint32_t number, Ring& ring) {
    const auto order = [](auto& list) {
        std::sort(list.begin(), list.end(), [](const auto* a, const auto* b) { return by_time(*a, *b); });
    };
    order(ring.submitted);
    order(ring.completed);
    order(ring.waits);
    facts.requests = ring.submitted.size();
    uint64_t at = 0;
    for (Completed* const each : ring.completed) {
        each->ring = number;
        each->number = ++at;
    }
    facts.exact = facts.aio || std::any_of(ring.submitted.begin(), ring.submitted.end(), [&](const Submitted* each) {
                      return number_of(each->task, each->reaped, number) != 0;
                  });
    uint64_t done = 0, had = 0, made = 0;
    for (Submitted* const each : ring.submitted) {
        each->had = had = std::max(had, taken(facts, number, ring, *each, done));
        ++made;
        facts.depth = std::max(facts.depth, static_cast<uint32_t>(made - std::min(had, made - 1)));
    }
    done = had = made = 0;
    for (Wait* const each : ring.waits) {
        while (made < ring.submitted.size() && by_time(*ring.submitted[made], *each)) {
            had = std::max(had, ring.submitted[made++]->had);
        }
        each->made = made;
        each->had = had = std::max(had, taken(facts, number, ring, *each, done));
    }
}

RequestScan::Takes RequestScan::takes_of(const RequestRing& facts, const Ring& ring) {
    Takes takes;
    for (uint64_t s = 1; s < ring.submitted.size(); ++s) {
        const uint64_t before = ring.submitted[s - 1]->had, had = ring.submitted[s]->had;
        if (had > before) {
            const uint64_t in_flight = s - std::min(before, s);
            ++takes.all;
            takes.full += in_flight >= facts.depth ? 1 : 0;
            takes.drain += had >= s ? 1 : 0;
            takes.in_flight += in_flight;
        }
    }
    return takes;
}

// A job whose requests a polling thread of the kernel takes may look for results in memory all the time, and never
// wait.
bool RequestScan::only_looks(const RequestRing& facts, const Ring& ring) { return facts.polled && ring.waits.empty(); }

// Kept full: that is how waits begin, and what results are taken from.
bool RequestScan::kept_full(const RequestRing& facts, const Ring& ring) {
    const Takes takes = takes_of(facts, ring);
    if (only_looks(facts, ring) && facts.exact) {
        // It takes a result between two requests, so that one is missing now and then.
        return takes.all >= kLeastWaits && takes.drain * 2 < takes.all &&
               static_cast<double>(takes.in_flight) >= kPolledFull * facts.depth * static_cast<double>(takes.all);
    }
    size_t waits = 0, full_waits = 0;
    for (const Wait* each : ring.waits) {
        if (each->made < ring.submitted.size()) {
            ++waits;
            full_waits += each->made - std::min(each->had, each->made) >= facts.depth ? 1 : 0;
        }
    }
    const auto mostly = [](size_t share, size_t of) {
        return static_cast<double>(share) >= kMostlyFull * static_cast<double>(of);
    };
    return std::max(waits, takes.all) >= kLeastWaits && mostly(full_waits, waits) && mostly(takes.full, takes.all);
}

/// RequestRing::at_once. libaio's calls on files in the page cache return only when all is done, on any storage. What
/// a polling thread takes has a doubt of its own.
uint64_t RequestScan::made_at_once(const Plan& plan, const RequestRing& facts, const Ring& ring) {
    uint64_t made = 0, alone = 0, counted = 0;
    for (const Submitted* each : ring.submitted) {
        if (!facts.aio || plan.is_direct(each->handle)) {
            ++counted;
            alone += each->had >= made ? 1 : 0;
        }
        ++made;
    }
    const auto all = static_cast<double>(counted);
    return !facts.polled && static_cast<double>(alone) >= kMostlyAlone * all &&
                   static_cast<double>(ring.waits.size()) < kHardlyAny * all
               ? counted
               : 0;
}

/// Of the ring's results, those that were there at `time`, ns.
uint64_t RequestScan::done_by(const Ring& ring, int64_t time) {
    const auto later = std::upper_bound(ring.completed.begin(), ring.completed.end(), time,
                                        [](int64_t at, const Completed* done) { return at < done->begin; });
    return static_cast<uint64_t>(later - ring.completed.begin());
}

void RequestScan::need_at_submissions(Plan& plan, uint32_t number, const Ring& ring) {
    RequestRing& facts = plan.rings[number];
    const auto need = [&](const Submitted& each, const RequestNeed& what) {
        if (what.count != 0 || what.request != 0) {
            plan.tasks[each.task].requests.needs.push_back(what);
        }
    };
    const bool looks = only_looks(facts, ring);  // going round, which looks like any other pause
    uint64_t last = 0;
    for (uint64_t s = 0; s < ring.submitted.size(); ++s) {
        const Submitted& each = *ring.submitted[s];
        const uint64_t room = s + 1 - std::min<uint64_t>(facts.depth, s + 1);
        // Nothing was in flight, the job did something else, and then made several in a row: a batch was over.
        const bool batch =
            !looks && each.paused && each.had == s && s + 1 < ring.submitted.size() && !ring.submitted[s + 1]->paused;
        const uint64_t least = facts.full && !batch ? std::min(room, each.had) : each.had;
        if (each.look != 0) {
            const RingLook& look = looks_.looks()[each.look - 1];
            need(each, {looks_.ops()[look.first + look.count - 1], least, number, 0, true, true});
        }
        if (each.after != 0) {
            // What others submit between that call and the pause may wait for what the task does there.
            const int64_t until = facts.shared ? std::min(each.entered, each.pause) : each.pause;
            need(each, {each.after - 1, std::min(least, done_by(ring, until)), number, 0, true});
        }
        if (least > last || (facts.shared && least != 0)) {
            need(each, {each.op, least, number, 0, false});
            ++plan.edges_by_kind[static_cast<size_t>(EdgeKind::reaped)];
            last = std::max(last, least);
        }
        for (const uint64_t data : each.needs) {
            if (const uint64_t done = number_of(each.task, data, number); done != 0) {
                need(each, {each.op, 0, number, ring.completed[done - 1]->request, false});
                ++facts.data_edges;
                ++plan.edges_by_kind[static_cast<size_t>(EdgeKind::resource)];
            }
        }
    }
}

/// Returns how many requests the waits need done.
uint64_t RequestScan::need_in_waits(Plan& plan, uint32_t number, const Ring& ring) {
    const RequestRing& facts = plan.rings[number];
    uint64_t most = 0;
    for (const Wait* each : ring.waits) {
        const uint64_t room = each->made - std::min<uint64_t>(facts.depth, each->made);
        // More than the ring has in flight nobody waits for; requests that no replay makes would have ended the wait.
        uint64_t want = std::min<uint64_t>(
            {(facts.full ? std::max(each->had, room) : each->had) + static_cast<uint64_t>(each->least), each->made,
             ring.completed.size()});
        if (!facts.aio) {
            // It ended with fewer where a signal or its time-out came before.
            want = std::min(want, done_by(ring, OpRef::end_of(each->end, kJustAfter)));
        }
        if (want != 0) {
            plan.tasks[each->task].requests.needs.push_back({each->op, want, number, 0, true});
            most = std::max(most, want);
        }
    }
    return most;
}

/// The last results of a ring, of reads, that are more than the `waited` for which the job waited: where the recording
/// had them at once, nothing shows that it needed them before it went on. It hardly read what it did not need.
void RequestScan::need_last(Plan& plan, uint32_t number, const Ring& ring, uint64_t waited) {
    const uint64_t all = ring.completed.size();
    if (ring.submitted.empty() || all != ring.submitted.size() || waited >= all || plan.rings[number].polled) {
        return;
    }
    const Submitted& made = *ring.submitted.back();
    const Completed& done = *ring.completed.back();
    if (made.reads && done.task == made.task) {
        plan.tasks[done.task].requests.needs.push_back({done.op, all, number, 0, true});
    }
}

/// Leaves Submitted::look where that was a wait. Only a recording says when results came: others have them where the
/// job got to them.
void RequestScan::find_looks(Plan& plan) {
    looks_.finish();
    if (plan.log->header().source != "capture") {
        for (Submitted& each : submitted_) {
            each.look = 0;
        }
        for (RequestRing& ring : plan.rings) {
            ring.unclear_looks_ns = 0;
        }
        return;
    }
    const std::vector<RingLook>& looks = looks_.looks();
    std::map<std::pair<TaskId, uint32_t>, LookEvidence> evidence;
    for (const Submitted& each : submitted_) {
        if (each.look != 0) {
            evidence[{each.task, each.ring}].add(looks[each.look - 1]);
        }
    }
    for (auto& [of, found] : evidence) {
        found.decide();
        sum(plan.rings[of.second].unclear_looks_ns, found.unclear_ns());
    }
    const auto waited = [&](const Submitted& made, const RingLook& look) {
        const auto found = evidence.find({made.task, made.ring});
        if (found == evidence.end() || !found->second.waited(look)) {
            return false;
        }
        RequestRing& ring = plan.rings[made.ring];
        sum(ring.looked_ns, look.looked_ns);
        for (size_t i = look.first; i < look.first + look.count; ++i) {
            plan.tasks[made.task].requests.looks.push_back({looks_.ops()[i], 0});
        }
        return true;
    };
    for (Submitted& each : submitted_) {
        if (each.look != 0 && !waited(each, looks[each.look - 1])) {
            each.look = 0;
        }
    }
    // What ended without a request waited for the results of the requests before.
    for (const RingLook& look : looks) {
        const auto next = std::upper_bound(submitted_.begin(), submitted_.end(), std::pair{look.task, look.op},
                                           [](auto at, const Submitted& made) {
                                               return at < std::pair{made.task, made.op};
                                           });
        if (look.requests || next == submitted_.begin() || (next - 1)->task != look.task ||
            !waited(*(next - 1), look)) {
            continue;
        }
        if (const uint64_t count = number_of(look.task, look.op + 1, (next - 1)->ring); count != 0) {
            const uint64_t op = looks_.ops()[look.first + look.count - 1];
            plan.tasks[look.task].requests.needs.push_back({op, count, (next - 1)->ring, 0, true, true});
        }
    }
    for (TaskPlan& task : plan.tasks) {
        std::sort(task.requests.looks.begin(), task.requests.looks.end(),
                  [](const RingWait& a, const RingWait& b) { return a.op < b.op; });
    }
}

}  // namespace reprise
