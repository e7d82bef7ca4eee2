// SPDX-License-Identifier: MIT
// How far a prediction is to be trusted.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/falling_rate.h"
#include "formats/support/quantity.h"
#include "replay/predict/predict.h"

namespace reprise {
namespace {

std::string cached_names_of(const Prediction& p, double share) {
    const std::string names =
        p.names_cached ? cached_names("count as cached", p.doubts.names_ns, p.doubts.span_ns, share) : std::string();
    return names.empty() ? names : names + ": calibrate --storage as root measures them";
}

/// Of a part of the files of a directory: what the device reads beside depends on the others.
std::string reads_around(const Prediction& p) {
    if (scattered_ns(p) <= kSomeShare * static_cast<double>(p.elapsed_ns)) {
        return {};
    }
    return std::to_string(p.scattered_reads) + " of " + std::to_string(p.storage_reads) +
           " reads are of inodes and names that lie around those of the log: a guess from recorded inode numbers";
}

/// Of names and sizes that changed before a sync.
std::string writes_journal(const Prediction& p) {
    if (static_cast<double>(p.unknown_journal_ns) > kSomeShare * static_cast<double>(p.elapsed_ns)) {
        return "what this file system logs with syncs of new, removed and longer files is not modelled (on ext4 it "
               "would take the "
               "device " +
               format_duration(p.unknown_journal_ns) + ")";
    }
    if (static_cast<double>(p.journal_ns) <= kSomeShare * static_cast<double>(p.elapsed_ns)) {
        return {};
    }
    return format_duration(p.journal_ns) +
           " of the device's time is for the file system's journal, which syncs of new, removed and longer files "
           "write: a "
           "guess from what ext4 wrote elsewhere";
}

/// Where memory is limited, it need not keep what was fetched; nor what the job itself dropped.
uint64_t fetched_here(const Prediction& p) { return p.limit_bytes == 0 ? p.dropped_bytes : UINT64_MAX; }

/// Of pages that stay mapped a recording knows the first touch only.
std::string left_mapped(const Prediction& p, double share) {
    if (static_cast<double>(p.left_mapped_bytes) <= share * static_cast<double>(p.storage_bytes)) {
        return {};
    }
    return format_bytes(p.left_mapped_bytes) +
           " left memory while files were mapped: touches of that afterwards are not in the log";
}

/// Others used the device in more than a share of the model's measurements.
std::string disturbed_model(const Prediction& p, const StorageModel& model, double share) {
    return p.calls != CallTimes::model || model.disturbed <= share
               ? std::string()
               : "others used the storage during " + format_share(model.disturbed) +
                     " of its measurements: calibrate it again when it is idle";
}

std::string uneven_model(const Prediction& p, const StorageModel& model) {
    if (p.calls != CallTimes::model) {
        return {};
    }
    const std::string rates = falling_rate(model);
    return rates.empty() ? rates
                         : "the model has " + rates + ": the machine was busy as it was measured; calibrate again";
}

/// The model is of one storage, on which the prediction has all files.
std::string files_in_memory(const Prediction& p) {
    const std::string memory =
        p.calls == CallTimes::model ? memory_among(p.doubts.file_systems, kSomeShare) : std::string();
    return memory.empty() ? memory : memory + ": here the storage has them; leave them out with --not";
}

std::string several_places(const Prediction& p) {
    const std::string places =
        p.calls == CallTimes::model ? several_file_systems(p.doubts.file_systems, true) : std::string();
    return places.empty() ? places : places + ": the model is of one";
}

bool is_cut_otherwise(const Prediction& p) {
    return p.shares_otherwise && static_cast<double>(p.path.cut_ns) > kSomeShare * static_cast<double>(p.elapsed_ns);
}

}  // namespace

double scattered_ns(const Prediction& prediction) {
    if (prediction.storage_reads == 0) {
        return 0;
    }
    const auto device_ns = static_cast<double>(prediction.path.of(PathPart::device));
    return device_ns * static_cast<double>(prediction.scattered_reads) / static_cast<double>(prediction.storage_reads);
}

std::string says_little(const Prediction& prediction) {
    if (std::string waits = mostly_unknown_waits(prediction.path, prediction.elapsed_ns); !waits.empty()) {
        return waits;
    }
    const std::string data = left_out_data(prediction.doubts, kMostShare);
    if (!data.empty()) {
        return data + kSelectPaths;
    }
    if (std::string scaled = missed_by_scaling(prediction.doubts, kSomeShare); !scaled.empty()) {
        return scaled;
    }
    std::string programs = read_among_programs(prediction.doubts);
    return programs.empty() ? cached_names_of(prediction, kMostShare) : programs;
}

std::string poor_reason(const Prediction& prediction, const StorageModel& model) {
    std::string reason;
    for (const std::string& one :
         {nothing_left(prediction.doubts),
          says_little(prediction),
          prediction.doubts.part.sentence(),
          timeless_run(prediction.doubts),
          untimed_calls(prediction.doubts),
          unseen_children(prediction.doubts),
          stopped_at_calls(prediction.doubts, kMostShare),
          model.cold ? std::string() : std::string(kModelOfMemory),
          disturbed_model(prediction, model, kThirdShare),
          prediction.shares_otherwise ? prediction.shared_work : "",
          slept_too_short(prediction.slept_through, prediction.elapsed_ns, kSomeShare),
          prediction.shares_otherwise ? batched_syncs(prediction.doubts) : "",
          prediction.shares_otherwise || unclear_looks_decide(prediction.doubts, prediction.elapsed_ns)
              ? looks_for_results(prediction.doubts)
              : "",
          prediction.shares_otherwise ? files_in_memory(prediction) : "",
          prediction.shares_otherwise ? awaited_name(prediction.doubts) : "",
          prediction.shares_otherwise ? mpi_waits(prediction.doubts, prediction.elapsed_ns, prediction.recorded_ns)
                                      : "",
          prediction.shares_otherwise ? write_together(prediction.serial_writers, prediction.elapsed_ns) : "",
          is_cut_otherwise(prediction) ? ended_by_signal(prediction.helpers) : "",
          alone_at_work(prediction.helpers, prediction.path.of(PathPart::asleep), prediction.elapsed_ns, kMostShare),
          fetched_again(prediction.doubts, fetched_here(prediction), prediction.storage_bytes, kThirdShare),
          programs_among_data(prediction.doubts, kThirdShare),
          work_of_file_systems(prediction.doubts, kThirdShare),
          unseen_touches(prediction.doubts, kThirdShare),
          unreported_requests(prediction.doubts, kSomeShare),
          hidden_depth(prediction.doubts, prediction.elapsed_ns, prediction.recorded_ns, kMuchLonger),
          left_out_data(prediction.doubts, kMostShare).empty() ? left_out_most(prediction.doubts) : std::string(),
          hidden_touches(prediction.hidden_bytes, prediction.known_bytes, kThirdShare),
          left_mapped(prediction, kThirdShare),
          fewer_around(prediction.around, kThirdShare),
          prediction.bytes_written > prediction.bytes_read ? assumed_flags(prediction.doubts) : std::string()}) {
        reason += (reason.empty() || one.empty() ? "" : "; ") + one;
    }
    return reason;
}

std::string why_no_interval(const Prediction& prediction, const StorageModel& model) {
    return !poor_reason(prediction, model).empty()                 ? "trust POOR"
           : prediction.calls != CallTimes::model                  ? "service times of a recording"
           : !left_out_data(prediction.doubts, kSomeShare).empty() ? "data is left out"
                                                                   : "";
}

std::string fair_reason(const Prediction& prediction, const StorageModel& model) {
    std::string reason;
    for (const std::string& one :
         {disturbed_model(prediction, model, kSomeShare),
          uneven_model(prediction, model),
          guessed_after_waits(after_waits_on_path(prediction.path, static_cast<double>(prediction.after_waits_ns),
                                                  static_cast<double>(prediction.computing_ns)),
                              prediction.elapsed_ns, kSomeShare),
          unknown_waits(prediction.path, prediction.elapsed_ns, kSomeShare),
          left_out_data(prediction.doubts, kSomeShare),
          programs_among_data(prediction.doubts, kSomeShare),
          work_of_file_systems(prediction.doubts, kSomeShare),
          cached_names_of(prediction, kSomeShare),
          reads_around(prediction),
          writes_journal(prediction),
          loaded_programs(prediction.doubts, kSomeShare),
          lock_polls(prediction.doubts),
          mpi_waits(prediction.doubts, prediction.elapsed_ns, prediction.recorded_ns),
          ended_by_signal(prediction.helpers),
          alone_at_work(prediction.helpers, prediction.path.of(PathPart::asleep), prediction.elapsed_ns, kSomeShare),
          limits_rate(prediction.helpers, prediction.path.of(PathPart::asleep), prediction.elapsed_ns,
                      prediction.recorded_ns),
          write_together(prediction.serial_writers, prediction.elapsed_ns),
          slept_too_short(prediction.slept_through, prediction.elapsed_ns, 0.0),
          batched_syncs(prediction.doubts),
          looks_for_results(prediction.doubts),
          several_places(prediction),
          awaited_name(prediction.doubts),
          fetched_again(prediction.doubts, fetched_here(prediction), prediction.storage_bytes, kSomeShare),
          unseen_touches(prediction.doubts, kSomeShare),
          missed_by_scaling(prediction.doubts, kScaledShare),
          hidden_depth(prediction.doubts, prediction.elapsed_ns, prediction.recorded_ns, kSomeLonger),
          unclear_locks(prediction.doubts),
          held_locks(prediction.doubts),
          filtered_calls(prediction.doubts),
          is_of_run(prediction.doubts),
          stopped_at_calls(prediction.doubts, kSomeShare),
          hidden_touches(prediction.hidden_bytes, prediction.known_bytes, 0.0),
          assumed_flags(prediction.doubts),
          left_mapped(prediction, kSomeShare),
          fewer_around(prediction.around, 0.0),
          prediction.held_unknown
              ? std::string("the log does not say what memory the job held: here all of the limit is page cache")
              : std::string()}) {
        reason += (reason.empty() || one.empty() ? "" : "; ") + one;
    }
    return reason;
}

}  // namespace reprise
