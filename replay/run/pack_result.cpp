// SPDX-License-Identifier: MIT
#include "replay/run/pack_result.h"

#include "formats/support/pack.h"

namespace reprise {

template <>
inline constexpr uint64_t kGreatest<Trust::Level> = static_cast<uint64_t>(Trust::Level::poor);
template <>
inline constexpr uint64_t kGreatest<LeftOut> = kLeftOutReasons - 1;
template <>
inline constexpr uint64_t kGreatest<DelayPolicy> = static_cast<uint64_t>(DelayPolicy::work);
template <>
inline constexpr uint64_t kGreatest<CpuSpeed::Source> = static_cast<uint64_t>(CpuSpeed::Source::no_profile);
template <>
inline constexpr uint64_t kGreatest<Severity> = static_cast<uint64_t>(Severity::loss);
template <>
inline constexpr uint64_t kGreatest<CacheRegime> = static_cast<uint64_t>(CacheRegime::as_is);
template <>
inline constexpr uint64_t kGreatest<CacheChoice::Why> = static_cast<uint64_t>(CacheChoice::Why::unknown);
template <>
inline constexpr uint64_t kGreatest<Verify> = static_cast<uint64_t>(Verify::content);
template <>
inline constexpr uint64_t kGreatest<VerifyFinding::What> = static_cast<uint64_t>(VerifyFinding::What::unreadable);
template <>
inline constexpr uint64_t kGreatest<InferredQueue::By> = static_cast<uint64_t>(InferredQueue::By::conservation);

namespace {

/// Changes with every field below, so that no other version is read.
constexpr uint32_t kVersion = 2;

template <class Archive>
void fields(Archive& archive, OpKind& kind) {
    auto number = static_cast<uint64_t>(kind);
    archive(number);
    if (number == 0 || number >= kOpKindLimit) {
        throw Corrupt("there is no op " + std::to_string(number));
    }
    kind = static_cast<OpKind>(number);
}

}  // namespace

template <class Archive>
void fields(Archive& archive, Mismatch& of) {
    auto& [task, op, kind, path, recorded, actual, reason] = of;
    archive(task, op);
    fields(archive, kind);
    archive(path, recorded, actual, reason);
}
template <class Archive>
void fields(Archive& archive, FilesLeftOut& of) {
    auto& [bytes, ns] = of;
    archive(bytes, ns);
}
template <class Archive>
void fields(Archive& archive, FileUse& of) {
    auto& [calls, bytes, written, syncs, ns] = of;
    archive(calls, bytes, written, syncs, ns);
}
template <class Archive>
void fields(Archive& archive, FileSystemUse& of) {
    fields(archive, static_cast<FileUse&>(of));
    archive(of.device, of.type, of.files, of.file, of.path);
}
template <class Archive>
void fields(Archive& archive, PartOfJob& of) {
    auto& [truncated, stopped_ops, lost_events, losses] = of;
    archive(truncated, stopped_ops, lost_events, losses);
}
template <class Archive>
void fields(Archive& archive, AwaitedName& of) {
    auto& [task, looks, path] = of;
    archive(task, looks, path);
}
template <class Archive>
void fields(Archive& archive, FileSystemWork& of) {
    auto& [copied_up_bytes, copied_up_ns, serves_files] = of;
    archive(copied_up_bytes, copied_up_ns, serves_files);
}
template <class Archive>
void fields(Archive& archive, RecordedDoubts& of) {
    auto& [polled_requests, looked_ns, unclear_looks_ns, requests, unreported_requests, at_once_requests, kept_bytes,
           left_out_bytes, unplaced_bytes, beside_bytes, small, programs, kept_ns, kept_ops, left_out_ops, names_ns,
           span_ns, program_bytes, program_ns, refetched_bytes, unseen_mapped_bytes, scaled_missed, lock_polls,
           range_locks, awaited, syncs_for_others, asked_syncs, sync_threads, thread_syncs, logger, logger_syncs,
           kept_directories, deep_file, flags_assumed, mpi_processes, unclear_locks, held_locks_ns, part, untimed_calls,
           unseen_children, calls_filtered, run_pace, run_without_storage, traced_ns, work, file_systems] = of;
    archive(polled_requests, looked_ns, unclear_looks_ns, requests, unreported_requests, at_once_requests, kept_bytes,
            left_out_bytes, unplaced_bytes, beside_bytes, small, programs, kept_ns, kept_ops, left_out_ops, names_ns,
            span_ns, program_bytes, program_ns, refetched_bytes, unseen_mapped_bytes, scaled_missed, lock_polls,
            range_locks, awaited, syncs_for_others, asked_syncs, sync_threads, thread_syncs, logger, logger_syncs,
            kept_directories, deep_file, flags_assumed, mpi_processes, unclear_locks, held_locks_ns, part,
            untimed_calls, unseen_children, calls_filtered, run_pace, run_without_storage, traced_ns, work,
            file_systems);
}
template <class Archive>
void fields(Archive& archive, MappedAround& of) {
    auto& [bytes, all_bytes, recorded_reach, read_ahead] = of;
    archive(bytes, all_bytes, recorded_reach, read_ahead);
}
template <class Archive>
void fields(Archive& archive, OpenLoop& of) {
    auto& [name, requests, late, late_by, from_due, from_begin, unfinished] = of;
    archive(name, requests, late, late_by, from_due, from_begin, unfinished);
}
template <class Archive>
void fields(Archive& archive, CpuSpeed& of) {
    auto& [source, ratio, uncertainty] = of;
    archive(source, ratio, uncertainty);
}
template <class Archive>
void fields(Archive& archive, Fidelity& of) {
    auto& [delay_error, delays_asked, computing_asked, computing_took, after_waits, added, path_known,
           recorded_run_queue, other_cpus, stolen_cpus, own_cpus, caches_dropped, calls_longer_ns, failures] = of;
    archive(delay_error, delays_asked, computing_asked, computing_took, after_waits, added, path_known,
            recorded_run_queue, other_cpus, stolen_cpus, own_cpus, caches_dropped, calls_longer_ns, failures);
}
template <class Archive>
void fields(Archive& archive, Trust& of) {
    auto& [level, reason] = of;
    archive(level, reason);
}
template <class Archive>
void fields(Archive& archive, PathTimes& of) {
    auto& [ns, doubtful, cut] = of;
    archive(ns, doubtful, cut);
}
template <class Archive>
void fields(Archive& archive, TimeInterval::Part& of) {
    auto& [name, down, up] = of;
    std::string text = name == nullptr ? "" : name;
    archive(text, down, up);
    name = error_source_name(text);
    if (name == nullptr) {
        throw Corrupt("there is no source of error of that name");
    }
}
template <class Archive>
void fields(Archive& archive, TimeInterval& of) {
    auto& [low, high, parts] = of;
    archive(low, high, parts);
}
template <class Archive>
void fields(Archive& archive, Scatter& of) {
    auto& [count, deviation] = of;
    archive(count, deviation);
}
template <class Archive>
void fields(Archive& archive, ErrorSources& of) {
    auto& [elapsed, shown, path, speed, after_waits, added, taken, alone, guessed, recordings, runs, predicted,
           order_open] = of;
    archive(elapsed, shown, path, speed, after_waits, added, taken, alone, guessed, recordings, runs, predicted,
            order_open);
}
template <class Archive>
void fields(Archive& archive, DeviceCounter& of) {
    auto& [read, write] = of;
    archive(read, write);
}
template <class Archive>
void fields(Archive& archive, Counter& of) {
    auto& [name, severity, value, meaning] = of;
    archive(name, severity, value, meaning);
}
template <class Archive>
void fields(Archive& archive, AccessCounts& of) {
    auto& [values] = of;
    archive(values);
}
template <class Archive>
void fields(Archive& archive, VerifyFinding& of) {
    auto& [what, path, offset, bytes, want, got, task, op, detail] = of;
    archive(what, path, offset, bytes, want, got, task, op, detail);
}
template <class Archive>
void fields(Archive& archive, TreeCheck& of) {
    auto& [files, bytes, unchecked, count, findings] = of;
    archive(files, bytes, unchecked, count, findings);
}
template <class Archive>
void fields(Archive& archive, VerifyReport& of) {
    auto& [how, reads, read_bytes, unchecked_reads, tree, unchecked] = of;
    archive(how, reads, read_bytes, unchecked_reads, tree, unchecked);
}
template <class Archive>
void fields(Archive& archive, InferredQueue& of) {
    auto& [by, consumer, readers, wakes, waits, bytes, capacity, rate, confidence, edges] = of;
    archive(by, consumer, readers, wakes, waits, bytes, capacity, rate, confidence, edges);
}
template <class Archive>
void fields(Archive& archive, SharedWork& of) {
    auto& [tasks, least, most, parent] = of;
    archive(tasks, least, most, parent);
}
template <class Archive>
void fields(Archive& archive, QueueInference& of) {
    auto& [queues, edges, feed_nobody, event_loops, shared] = of;
    static_cast<void>(edges);
    archive(queues, feed_nobody, event_loops, shared);
}
template <class Archive>
void fields(Archive& archive, HelperFindings& of) {
    auto& [beats, cut, timers, cut_share, processes, signal, limited] = of;
    archive(beats, cut, timers, cut_share, processes, signal, limited);
}
template <class Archive>
void fields(Archive& archive, SerialWriters::Findings& of) {
    auto& [tasks, together] = of;
    archive(tasks, together);
}
template <class Archive>
void fields(Archive& archive, SleptThrough::Findings& of) {
    auto& [sleeper, worker, late] = of;
    archive(sleeper, worker, late);
}
template <class Archive>
void fields(Archive& archive, MachineFacts& of) {
    auto& [host, kernel, cpu, cpus, memory, file_system, device, mount_options, free, read_ahead, loop, compresses,
           io_limits] = of;
    archive(host, kernel, cpu, cpus, memory, file_system, device, mount_options, free, read_ahead, loop, compresses,
            io_limits);
}
template <class Archive>
void fields(Archive& archive, CacheChoice& of) {
    auto& [regime, asked, why] = of;
    archive(regime, asked, why);
}
template <class Archive>
void fields(Archive& archive, RecordedCache& of) {
    auto& [read, fetched, pages_known, guessed, holes, unserved, touched, touched_in_memory, around, reach] = of;
    archive(read, fetched, pages_known, guessed, holes, unserved, touched, touched_in_memory, around, reach);
}
template <class Archive>
void fields(Archive& archive, StillCached& of) {
    auto& [path, bytes, why] = of;
    archive(path, bytes, why);
}
template <class Archive>
void fields(Archive& archive, CacheReport& of) {
    auto& [choice, recorded, dropped_all, files, bytes, found, before, after, unseen, uncached_names, memory_files,
           memory_file_bytes, stayed_files, stayed_bytes, stayed, missing, sparse_files, holes, data] = of;
    archive(choice, recorded, dropped_all, files, bytes, found, before, after, unseen, uncached_names, memory_files,
            memory_file_bytes, stayed_files, stayed_bytes, stayed, missing, sparse_files, holes, data);
}
template <class Archive>
void fields(Archive& archive, EpochProof& of) {
    auto& [accesses, begin, elapsed, device, own, before, after] = of;
    archive(accesses, begin, elapsed, device, own, before, after);
}
template <class Archive>
void fields(Archive& archive, GroupMemory& of) {
    auto& [used, peak, reached, killed] = of;
    archive(used, peak, reached, killed);
}
template <class Archive>
void fields(Archive& archive, LimitedMemory& of) {
    auto& [limit, data, version, group, job_known, stood_in, job_peak, held_peak, held_error, cut, died, swap] = of;
    archive(limit, data, version, group, job_known, stood_in, job_peak, held_peak, held_error, cut, died, swap);
}
template <class Archive>
void fields(Archive& archive, IoLimits& of) {
    auto& [read_bytes, write_bytes, reads, writes] = of;
    archive(read_bytes, write_bytes, reads, writes);
}

template <class Archive>
void fields(Archive& archive, PeerClock& of) {
    auto& [offset, uncertainty, drift, drift_known] = of;
    archive(offset, uncertainty, drift, drift_known);
}
template <class Archive>
void fields(Archive& archive, PeerRow& of) {
    auto& [rank, host, recorded, clock, late, ops, bytes_read, bytes_written, elapsed, waited, held_up, ended, code,
           why] = of;
    archive(rank, host, recorded, clock, late, ops, bytes_read, bytes_written, elapsed, waited, held_up, ended, code,
            why);
}
template <class Archive>
void fields(Archive& archive, RankPlace& of) {
    auto& [row, boot, device] = of;
    archive(row, boot, device);
}

template <class Archive>
void fields(Archive& archive, RankHold& of) {
    auto& [task, op, ns, by_rank, by, by_op] = of;
    archive(task, op, ns, by_rank, by, by_op);
}

/// A new member has to be merged, too: replay/run/merge_results.cpp.
template <class Archive>
void fields(Archive& archive, ReplayResult& of) {
    auto& [ended, not_same_job, notes, what_if, computed, content_compresses, ops, bytes_read, bytes_written,
           elapsed_ns, start_unix_ns, recorded_ns, errors, mismatches, no_space, refused, recorded_bytes, missing_bytes,
           doubts, around, recorded_holes, one_place, recorded_memory, free_memory, recorded_name_waits, name_waits,
           names_cached_ns, examples, mismatches_by_kind, left_out, left_out_ns, left_out_io, latency, bytes_by_kind,
           lateness, timed, causal, open_loops, delay, cpu_speed, fidelity, trust, path, interval, no_interval,
           errors_from, async_depth, requests_at_once, unseen_writes, pinned_tasks, pinned_cpus, compute_peak, edges,
           edge_waits, rank_wait_ns, rank_waits, rank_waiter, rank_holds, edges_by_kind, repeated_sleep_ns,
           unexplained_wait_share, harness_ns_per_op, device_read_bytes, device_write_bytes, dirtied_bytes,
           device_counter, tasks, processes, accelerators, counters, access, access_counts, reads_direct, verified,
           queues, helpers, serial_writers, slept_through, name_walk_ns, machine, cache, epochs, memory, io_limits,
           lost_io_limits, output, output_lost, plan_ns, collect_ns, peer] = of;
    archive(ended, not_same_job, notes, what_if, computed, content_compresses, ops, bytes_read, bytes_written,
            elapsed_ns, start_unix_ns, recorded_ns, errors, mismatches, no_space, refused, recorded_bytes,
            missing_bytes, doubts, around, recorded_holes, one_place, recorded_memory, free_memory, recorded_name_waits,
            name_waits, names_cached_ns, examples, mismatches_by_kind, left_out, left_out_ns, left_out_io, latency,
            bytes_by_kind, lateness, timed, causal, open_loops, delay, cpu_speed, fidelity, trust, path, interval,
            no_interval, errors_from, async_depth, requests_at_once, unseen_writes, pinned_tasks, pinned_cpus,
            compute_peak, edges, edge_waits, rank_wait_ns, rank_waits, rank_waiter, rank_holds, edges_by_kind,
            repeated_sleep_ns, unexplained_wait_share, harness_ns_per_op, device_read_bytes, device_write_bytes,
            dirtied_bytes, device_counter, tasks, processes, accelerators, counters, access, access_counts,
            reads_direct, verified, queues, helpers, serial_writers, slept_through, name_walk_ns, machine, cache,
            epochs, memory, io_limits, lost_io_limits, output, output_lost, plan_ns, collect_ns, peer);
}

void pack(const ReplayResult& result, Bytes& out) {
    put_fixed(out, kVersion);
    Packer archive(out);
    archive(const_cast<ReplayResult&>(result));  // NOLINT: packing reads only
}

ReplayResult unpack_result(ByteReader& in) {
    if (in.fixed<uint32_t>() != kVersion) {
        throw Corrupt("the result of a rank is of another version of reprise");
    }
    ReplayResult result;
    Unpacker archive(in);
    archive(result);
    if (result.latency.size() != kOpKindLimit || result.elapsed_ns < 0) {
        throw Corrupt("the result of a rank is not whole");
    }
    return result;
}

void pack(const RankPlace& place, Bytes& out) {
    put_fixed(out, kVersion);
    Packer archive(out);
    archive(const_cast<RankPlace&>(place));  // NOLINT: packing reads only
}

RankPlace unpack_place(ByteReader& in) {
    if (in.fixed<uint32_t>() != kVersion) {
        throw Corrupt("the result of a rank is of another version of reprise");
    }
    RankPlace place;
    Unpacker archive(in);
    archive(place);
    return place;
}

}  // namespace reprise
