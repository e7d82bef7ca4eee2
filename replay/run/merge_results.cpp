// SPDX-License-Identifier: MIT
#include "replay/run/merge_results.h"

#include <sys/sysmacros.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "calibrate/mounted.h"
#include "formats/support/error.h"
#include "formats/support/quantity.h"

namespace reprise {
namespace {

using Ranks = std::vector<RankRun>;

template <class T, size_t N>
void add(std::array<T, N>& into, const std::array<T, N>& from) {
    for (size_t i = 0; i < N; ++i) {
        into[i] += from[i];
    }
}

void add(std::vector<Histogram>& into, const std::vector<Histogram>& from) {
    into.resize(std::max(into.size(), from.size()));
    for (size_t i = 0; i < from.size(); ++i) {
        into[i].merge(from[i]);
    }
}

/// Known where either is.
void add_known(std::optional<uint64_t>& into, const std::optional<uint64_t>& from) {
    if (from) {
        into = into.value_or(0) + *from;
    }
}

/// Unknown where either is.
void add_if_known(std::optional<uint64_t>& into, const std::optional<uint64_t>& from) {
    into = into && from ? std::optional(*into + *from) : std::nullopt;
}

uint64_t less(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

/// What ops did.
void add_ops(ReplayResult& into, const ReplayResult& from) {
    into.ops += from.ops;
    into.bytes_read += from.bytes_read;
    into.bytes_written += from.bytes_written;
    into.errors += from.errors;
    into.mismatches += from.mismatches;
    into.no_space += from.no_space;
    into.refused += from.refused;
    into.recorded_bytes += from.recorded_bytes;
    into.missing_bytes += from.missing_bytes;
    into.recorded_name_waits += from.recorded_name_waits;
    into.name_waits += from.name_waits;
    into.edges += from.edges;
    into.edge_waits += from.edge_waits;
    into.tasks += from.tasks;
    into.processes += from.processes;
    add(into.mismatches_by_kind, from.mismatches_by_kind);
    add(into.left_out, from.left_out);
    add(into.left_out_ns, from.left_out_ns);
    add(into.left_out_io, from.left_out_io);
    add(into.bytes_by_kind, from.bytes_by_kind);
    add(into.access_counts.values, from.access_counts.values);
    into.rank_waits.resize(std::max(into.rank_waits.size(), from.rank_waits.size()));
    for (size_t rank = 0; rank < from.rank_waits.size(); ++rank) {
        into.rank_waits[rank] += from.rank_waits[rank];
    }
    add(into.latency, from.latency);
    into.lateness.merge(from.lateness);
}

/// What is of the plan, the recording or the machine, and is as large as on the rank where it is largest.
void take_most(ReplayResult& into, const ReplayResult& from) {
    into.elapsed_ns = std::max(into.elapsed_ns, from.elapsed_ns);
    into.recorded_ns = std::max(into.recorded_ns, from.recorded_ns);
    into.recorded_memory = std::max(into.recorded_memory, from.recorded_memory);
    into.recorded_holes = std::max(into.recorded_holes, from.recorded_holes);
    into.names_cached_ns = std::max(into.names_cached_ns, from.names_cached_ns);
    into.name_walk_ns = std::max(into.name_walk_ns, from.name_walk_ns);
    into.rank_wait_ns = std::max(into.rank_wait_ns, from.rank_wait_ns);
    into.async_depth = std::max(into.async_depth, from.async_depth);
    into.unseen_writes = std::max(into.unseen_writes, from.unseen_writes);
    into.compute_peak = std::max(into.compute_peak, from.compute_peak);
    into.accelerators = std::max(into.accelerators, from.accelerators);
    into.harness_ns_per_op = std::max(into.harness_ns_per_op, from.harness_ns_per_op);
    into.plan_ns = std::max(into.plan_ns, from.plan_ns);
    into.collect_ns = std::max(into.collect_ns, from.collect_ns);
    into.cpu_speed.uncertainty = std::max(into.cpu_speed.uncertainty, from.cpu_speed.uncertainty);
    into.one_place |= from.one_place;
    into.requests_at_once |= from.requests_at_once;
    into.reads_direct |= from.reads_direct;
    into.content_compresses &= from.content_compresses;
    if (from.free_memory) {
        into.free_memory = std::min(into.free_memory.value_or(UINT64_MAX), *from.free_memory);
    }
    for (const Counter& counter : from.counters) {
        const auto same = std::find_if(into.counters.begin(), into.counters.end(),
                                       [&](const Counter& each) { return each.name == counter.name; });
        if (same == into.counters.end()) {
            into.counters.push_back(counter);
        } else {
            same->value = std::max(same->value, counter.value);
        }
    }
}

void add_fidelity(Fidelity& into, const Fidelity& from) {
    into.delay_error.merge(from.delay_error);
    into.delays_asked_ns += from.delays_asked_ns;
    into.computing_asked_ns += from.computing_asked_ns;
    into.computing_took_ns += from.computing_took_ns;
    into.after_waits_ns += from.after_waits_ns;
    into.recorded_run_queue_ns = std::max(into.recorded_run_queue_ns, from.recorded_run_queue_ns);
    into.own_cpus = from.own_cpus < 0 ? into.own_cpus : std::max(into.own_cpus, 0.0) + from.own_cpus;
}

void add_loops(std::vector<OpenLoop>& into, const std::vector<OpenLoop>& from) {
    for (const OpenLoop& loop : from) {
        auto at = std::lower_bound(into.begin(), into.end(), loop,
                                   [](const OpenLoop& a, const OpenLoop& b) { return a.name < b.name; });
        if (at == into.end() || at->name != loop.name) {
            into.insert(at, loop);
            continue;
        }
        at->requests += loop.requests;
        at->late += loop.late;
        at->unfinished += loop.unfinished;
        at->late_by.merge(loop.late_by);
        at->from_due.merge(loop.from_due);
        at->from_begin.merge(loop.from_begin);
    }
}

void add_memory(std::optional<LimitedMemory>& into, const std::optional<LimitedMemory>& from) {
    if (!into || !from) {
        into = into ? into : from;
        return;
    }
    into->limit += from->limit;
    into->data += from->data;
    into->group.used += from->group.used;
    into->group.peak += from->group.peak;
    into->group.reached += from->group.reached;
    into->group.killed += from->group.killed;
    into->job_known &= from->job_known;
    into->stood_in &= from->stood_in;
    into->job_peak += from->job_peak;
    into->held_peak += from->held_peak;
    into->held_error = std::max(into->held_error, from->held_error);
    into->cut = std::max(into->cut, from->cut);
    into->ballast_died |= from->ballast_died;
    into->may_swap |= from->may_swap;
}

void add_verified(std::optional<VerifyReport>& into, const std::optional<VerifyReport>& from) {
    if (!into || !from) {
        into.reset();  // of a part nobody knows
        return;
    }
    into->reads += from->reads;
    into->read_bytes += from->read_bytes;
    into->unchecked_reads += from->unchecked_reads;
    into->tree.files += from->tree.files;
    into->tree.bytes += from->tree.bytes;
    into->tree.unchecked += from->tree.unchecked;
    for (const VerifyFinding& finding : from->tree.findings) {
        if (into->tree.findings.size() < TreeCheck::kMost) {
            into->tree.findings.push_back(finding);
        }
    }
    into->tree.count += from->tree.count;
    for (const auto& [reason, files] : from->unchecked) {
        into->unchecked[reason] += files;
    }
}

/// Who waited for whom in the end.
void merge_holds(const Ranks& ranks, ReplayResult& out) {
    std::vector<RankHolds> holds;
    for (const RankRun& rank : ranks) {
        holds.push_back({rank.place.row.rank, rank.result.rank_waiter, rank.result.rank_holds});
    }
    pass_on(holds, out.rank_waits);
    out.rank_waiter = 0;
    out.rank_holds.clear();
}

/// The first of each kind, in the order of tasks, as of a run without ranks.
void merge_examples(const Ranks& ranks, ReplayResult& out) {
    size_t most = 0;
    out.examples.clear();
    for (const RankRun& rank : ranks) {
        std::map<OpKind, size_t> of_kind;
        for (const Mismatch& one : rank.result.examples) {
            most = std::max(most, ++of_kind[one.kind]);
        }
        out.examples.insert(out.examples.end(), rank.result.examples.begin(), rank.result.examples.end());
    }
    std::stable_sort(out.examples.begin(), out.examples.end(), [](const Mismatch& a, const Mismatch& b) {
        return std::tie(a.kind, a.task, a.op) < std::tie(b.kind, b.task, b.op);
    });
    std::map<OpKind, size_t> kept;
    std::erase_if(out.examples, [&](const Mismatch& one) { return ++kept[one.kind] > most; });
}

// --- What ranks of one kernel share.

std::string kernel_of(const RankRun& rank) { return rank.place.boot.empty() ? rank.place.row.host : rank.place.boot; }
std::string device_of(const RankRun& rank) { return kernel_of(rank) + " " + rank.place.device; }

/// Counters of the devices below the roots, and what ranks without one made dirty.
void merge_devices(const Ranks& ranks, ReplayResult& out) {
    std::map<std::string, DeviceCounter> counters;
    std::optional<uint64_t> written_without;
    out.device_read_bytes.reset();
    out.dirtied_bytes.reset();
    for (const RankRun& rank : ranks) {
        const ReplayResult& from = rank.result;
        add_known(out.device_read_bytes, from.device_read_bytes);
        add_known(out.dirtied_bytes, from.dirtied_bytes);
        if (!from.device_counter) {
            add_known(written_without, from.device_write_bytes);
            continue;
        }
        DeviceCounter& counter = counters[device_of(rank)];  // ranks look at about the same times
        counter.read_bytes = std::max(counter.read_bytes, from.device_counter->read_bytes);
        counter.write_bytes = std::max(counter.write_bytes, from.device_counter->write_bytes);
    }
    out.device_counter.reset();
    out.device_write_bytes = written_without;
    for (const auto& [device, counter] : counters) {
        out.device_counter =
            DeviceCounter{(out.device_counter ? out.device_counter->read_bytes : 0) + counter.read_bytes,
                          (out.device_counter ? out.device_counter->write_bytes : 0) + counter.write_bytes};
        add_known(out.device_write_bytes, counter.write_bytes);
    }
}

std::string hosts_of(const Ranks& ranks) {
    constexpr size_t kShown = 4;
    std::vector<std::string> hosts;
    for (const RankRun& rank : ranks) {
        if (std::find(hosts.begin(), hosts.end(), rank.place.row.host) == hosts.end()) {
            hosts.push_back(rank.place.row.host);
        }
    }
    std::string text;
    for (size_t i = 0; i < std::min(hosts.size(), kShown); ++i) {
        text += (i == 0 ? "" : ", ") + hosts[i];
    }
    return hosts.size() > kShown ? text + " and " + std::to_string(hosts.size() - kShown) + " more" : text;
}

/// Processors and memory of all kernels together.
void merge_machines(const Ranks& ranks, ReplayResult& out) {
    struct Kernel {
        int cpus = 0;
        uint64_t memory = 0;
        double others = -1, stolen = -1;
    };
    std::map<std::string, Kernel> kernels;
    for (const RankRun& rank : ranks) {
        Kernel& kernel = kernels[kernel_of(rank)];
        kernel.cpus = std::max(kernel.cpus, rank.result.machine.cpus);
        kernel.memory = std::max(kernel.memory, rank.result.machine.memory_bytes);
        kernel.others = std::max(kernel.others, rank.result.fidelity.other_cpus);
        kernel.stolen = std::max(kernel.stolen, rank.result.fidelity.stolen_cpus);
        out.machine.free_bytes = std::min(out.machine.free_bytes, rank.result.machine.free_bytes);
    }
    out.machine.host = hosts_of(ranks);
    out.machine.cpus = 0;
    out.machine.memory_bytes = 0;
    out.fidelity.other_cpus = out.fidelity.stolen_cpus = -1;
    const auto add_cpus = [](double& into, double more) { into = more < 0 ? into : std::max(into, 0.0) + more; };
    for (const auto& [name, kernel] : kernels) {
        out.machine.cpus += kernel.cpus;
        out.machine.memory_bytes += kernel.memory;
        add_cpus(out.fidelity.other_cpus, kernel.others);
        add_cpus(out.fidelity.stolen_cpus, kernel.stolen);
    }
}

/// Every rank looks at all files of the run: one of each kernel says what its memory holds.
void merge_cache(const Ranks& ranks, ReplayResult& out) {
    std::map<std::string, const CacheReport*> kernels;
    for (const RankRun& rank : ranks) {
        if (rank.result.cache) {
            kernels.try_emplace(kernel_of(rank), &*rank.result.cache);
        }
    }
    if (kernels.empty()) {
        return;
    }
    const auto most = std::max_element(kernels.begin(), kernels.end(), [](const auto& a, const auto& b) {
        return a.second->before.value_or(0) < b.second->before.value_or(0);
    });
    const auto served = [](const CacheReport& report) { return report.data_bytes; };
    std::optional<uint64_t> data = uint64_t{0};
    for (const auto& [name, report] : kernels) {
        add_if_known(data, served(*report));
    }
    out.cache = *most->second;
    out.cache->data_bytes = data;
}

void merge_epochs(const Ranks& ranks, ReplayResult& out) {
    size_t most = 0;
    for (const RankRun& rank : ranks) {
        most = std::max(most, rank.result.epochs.size());
    }
    out.epochs.assign(most, {});
    int64_t end = 0;
    for (size_t at = 0; at < most; ++at) {
        EpochProof& epoch = out.epochs[at];
        epoch.begin_ns = INT64_MAX;
        std::map<std::string, uint64_t> devices;
        std::vector<double> before, after;
        for (const RankRun& rank : ranks) {
            if (at >= rank.result.epochs.size()) {
                continue;
            }
            const EpochProof& from = rank.result.epochs[at];
            epoch.accesses = std::max(epoch.accesses, from.accesses);
            epoch.begin_ns = std::min(epoch.begin_ns, from.begin_ns);
            end = std::max(end, from.end_ns());
            add_known(epoch.own_bytes, from.own_bytes);
            if (from.device_bytes) {
                uint64_t& device = devices[device_of(rank)];
                device = std::max(device, *from.device_bytes);
            }
            if (from.resident_before) {
                before.push_back(*from.resident_before);
            }
            if (from.resident_after) {
                after.push_back(*from.resident_after);
            }
        }
        for (const auto& [device, bytes] : devices) {
            add_known(epoch.device_bytes, bytes);
        }
        // The kernel that has most in memory proves least.
        const auto greatest = [](const std::vector<double>& shares) {
            return shares.empty() ? std::nullopt : std::optional(*std::max_element(shares.begin(), shares.end()));
        };
        epoch.resident_before = greatest(before);
        epoch.resident_after = greatest(after);
    }
    for (size_t at = 0; at < most; ++at) {
        const int64_t until = at + 1 < most ? out.epochs[at + 1].begin_ns : end;
        out.epochs[at].elapsed_ns = std::max<int64_t>(until - out.epochs[at].begin_ns, 0);
    }
}

/// What the other ranks of its kernel used is no other program's. A rank does not know that while it judges itself.
void forgive_neighbours(Ranks& ranks) {
    struct Used {
        double cpus = 0;
        uint64_t read = 0, dirtied = 0;
    };
    std::map<std::string, Used> kernels, devices;
    std::map<std::string, int> count;
    for (const RankRun& rank : ranks) {
        ++count[kernel_of(rank)];
        kernels[kernel_of(rank)].cpus += std::max(rank.result.fidelity.own_cpus, 0.0);
        devices[device_of(rank)].read += rank.result.device_read_bytes.value_or(0);
        devices[device_of(rank)].dirtied += rank.result.dirtied_bytes.value_or(0);
    }
    for (RankRun& rank : ranks) {
        ReplayResult& result = rank.result;
        Fidelity& fidelity = result.fidelity;
        if (count[kernel_of(rank)] == 1) {
            continue;
        }
        const double neighbours = kernels[kernel_of(rank)].cpus - std::max(fidelity.own_cpus, 0.0);
        fidelity.other_cpus = fidelity.other_cpus < 0 ? -1 : std::max(fidelity.other_cpus - neighbours, 0.0);
        fidelity.failures.clear();
        judge(fidelity, result.lateness, result.elapsed_ns, result.machine.cpus);
        const std::optional<DeviceCounter> whole = result.device_counter;
        if (whole) {
            const Used& used = devices[device_of(rank)];
            result.device_counter->read_bytes =
                less(whole->read_bytes, less(used.read, result.device_read_bytes.value_or(0)));
            result.device_counter->write_bytes =
                less(whole->write_bytes, less(used.dirtied, result.dirtied_bytes.value_or(0)));
        }
        result.trust = trust_in(result);
        doubt_wide_interval(result);
        result.device_counter = whole;
    }
}

// --- Words.

/// Two sentences that differ in their numbers only are one.
std::string without_numbers(const std::string& sentence) {
    std::string out;
    for (const char c : sentence) {
        const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
        if (!digit) {
            out += c;
        } else if (out.empty() || out.back() != '#') {
            out += '#';
        }
    }
    return out;
}

using Sentences = std::function<std::vector<std::string>(const ReplayResult&)>;

std::vector<std::string> merge_sentences(const Ranks& ranks, const Sentences& of) {
    struct Group {
        const RankPlace* first = nullptr;
        std::string text;
        std::set<uint32_t> ranks;
        bool same = true;
    };
    std::vector<Group> groups;
    std::map<std::string, size_t> known;
    for (const RankRun& rank : ranks) {
        for (const std::string& sentence : of(rank.result)) {
            const auto [at, fresh] = known.try_emplace(without_numbers(sentence), groups.size());
            if (fresh) {
                groups.push_back({&rank.place, sentence, {}, true});
            }
            Group& group = groups[at->second];
            group.ranks.insert(rank.place.row.rank);
            group.same &= group.text == sentence;
        }
    }
    std::vector<std::string> out;
    for (const Group& group : groups) {
        if (group.same && group.ranks.size() == ranks.size()) {
            out.push_back(group.text);
            continue;
        }
        const size_t more = group.ranks.size() - 1;
        out.push_back(rank_name(*group.first) + (more == 0 ? "" : " and " + counted(more, "other rank")) + ": " +
                      group.text);
    }
    return out;
}

void merge_words(const Ranks& ranks, ReplayResult& out) {
    out.notes = merge_sentences(ranks, [](const ReplayResult& result) { return result.notes; });
    out.not_same_job = merge_sentences(ranks, [](const ReplayResult& result) { return result.not_same_job; });
    out.fidelity.failures = merge_sentences(ranks, [](const ReplayResult& result) { return result.fidelity.failures; });
    const auto first_of = [&](std::string ReplayResult::*member) {
        const std::vector<std::string> all = merge_sentences(ranks, [&](const ReplayResult& result) {
            return (result.*member).empty() ? std::vector<std::string>{} : std::vector{result.*member};
        });
        return all.empty() ? std::string() : all.front();
    };
    out.lost_io_limits = first_of(&ReplayResult::lost_io_limits);
    out.output_lost = first_of(&ReplayResult::output_lost);
    out.access = first_of(&ReplayResult::access);
    if (std::any_of(ranks.begin(), ranks.end(), [&](const RankRun& rank) { return rank.result.delay != out.delay; })) {
        out.notes.push_back("Ranks passed compute in different ways (--delay sets one for all).");
    }
}

/// Those that another rank brought down say which. Where none does, the one that stopped first did.
void merge_end(const Ranks& ranks, ReplayResult& out) {
    constexpr std::string_view kInterrupted = "interrupted: ", kOther = "interrupted: rank ";
    const RankRun* first = nullptr;
    bool same = true;
    for (const RankRun& rank : ranks) {
        const std::string& ended = rank.result.ended;
        same &= ended == ranks.front().result.ended;
        if (ended == "complete") {
            continue;
        }
        if (ended.starts_with(kOther)) {
            out.ended = ended;
            return;
        }
        first = first == nullptr || rank.result.elapsed_ns < first->result.elapsed_ns ? &rank : first;
    }
    out.ended = first == nullptr || same ? ranks.front().result.ended : first->result.ended;
    if (first != nullptr && !same) {
        const bool why = out.ended.starts_with(kInterrupted);
        out.ended = std::string(kInterrupted) + rank_name(first->place) + ": " +
                    out.ended.substr(why ? kInterrupted.size() : 0);
    }
}

/// Of those that are worst, the one that was furthest behind.
void merge_trust(const Ranks& ranks, ReplayResult& out) {
    const auto worst = std::max_element(ranks.begin(), ranks.end(), [](const RankRun& a, const RankRun& b) {
        const auto key = [](const RankRun& rank) {
            return std::pair{rank.result.trust.level, rank.result.lateness.percentile(0.99)};
        };
        return key(a) < key(b);
    });
    out.trust = worst->result.trust;
    const bool same = std::all_of(ranks.begin(), ranks.end(), [&](const RankRun& rank) {
        return rank.result.trust.level == out.trust.level && rank.result.trust.reason == out.trust.reason;
    });
    if (!same) {
        out.trust.reason = rank_name(worst->place) + ": " + out.trust.reason;
    }
    if (out.trust.level == Trust::Level::poor) {
        out.interval.reset();
        out.no_interval = out.no_interval.empty() ? "trust POOR" : out.no_interval;
    }
}

}  // namespace

std::string rank_name(const RankPlace& place) {
    return "rank " + std::to_string(place.row.rank) + " on host " + escape_line(place.row.host);
}

ReplayResult merge_results(std::vector<RankRun> ranks) {
    if (ranks.size() == 1) {
        return std::move(ranks.front().result);
    }
    std::sort(ranks.begin(), ranks.end(),
              [](const RankRun& a, const RankRun& b) { return a.place.row.rank < b.place.row.rank; });
    forgive_neighbours(ranks);
    ReplayResult out = ranks.front().result;
    for (size_t i = 1; i < ranks.size(); ++i) {
        const ReplayResult& from = ranks[i].result;
        add_ops(out, from);
        take_most(out, from);
        add_fidelity(out.fidelity, from.fidelity);
        add_loops(out.open_loops, from.open_loops);
        add_memory(out.memory, from.memory);
        add_verified(out.verified, from.verified);
    }
    const ReplayResult& last = std::max_element(ranks.begin(), ranks.end(), [](const RankRun& a, const RankRun& b) {
                                   return a.result.elapsed_ns < b.result.elapsed_ns;
                               })->result;
    out.path = last.path;
    out.interval = last.interval;
    out.no_interval = last.no_interval;
    out.errors_from = last.errors_from;
    out.fidelity.added_ns = last.fidelity.added_ns;
    out.helpers = last.helpers;
    out.serial_writers = last.serial_writers;
    out.slept_through = last.slept_through;
    merge_holds(ranks, out);
    merge_examples(ranks, out);
    merge_devices(ranks, out);
    merge_machines(ranks, out);
    merge_cache(ranks, out);
    merge_epochs(ranks, out);
    merge_words(ranks, out);
    merge_end(ranks, out);
    merge_trust(ranks, out);
    return out;
}

std::string boot_id() {
    std::ifstream in("/proc/sys/kernel/random/boot_id");
    std::string id;
    std::getline(in, id);
    return id;
}

std::string device_number(const std::filesystem::path& root) {
    const std::optional<dev_t> disk = root.empty() ? std::nullopt : disk_of(root);
    return disk ? std::to_string(major(*disk)) + ":" + std::to_string(minor(*disk)) : std::string();
}

}  // namespace reprise
