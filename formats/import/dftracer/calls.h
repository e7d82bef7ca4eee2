// SPDX-License-Identifier: MIT
// DFTracer calls to the assembler's: what each name's arguments mean, and what is assumed where one is not recorded.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/assemble/assembler.h"
#include "formats/import/dftracer/lines.h"
#include "formats/import/dftracer/processes.h"

namespace reprise::dftracer {

class Calls {
public:
    /// `origin`: microseconds of log time 0. All arguments outlive this.
    Calls(const Lines& lines, const Processes& processes, Assembler& assembler, int64_t origin)
        : lines_(lines),
          processes_(processes),
          assembler_(assembler),
          origin_(origin),
          of_thread_(lines.threads.size()) {}

    /// In the order of effect.
    void feed(const Event& event);
    void count(LogWriter& writer) const;

private:
    /// Descriptors of a process as far as paths are known, and its open FILEs.
    struct Descriptors {
        std::vector<StringId> path;                      // per number; 0: not open
        std::map<StringId, std::vector<int32_t>> files;  // numbers made up for FILEs, per path
        std::vector<int32_t> free;
        int32_t next = 100'000;  // far above what processes use
    };

    void feed_posix(const Event& event, Call call, RawCall& raw);
    void feed_stdio(const Event& event, Call call, RawCall& raw);
    void opened(const Event& event, RawCall& raw);
    void on_descriptor(const Event& event, RawCall& raw, OpKind kind);
    void by_path(const Event& event, RawCall& raw, OpKind kind);
    void by_two_paths(const Event& event, RawCall& raw, OpKind kind);
    void control_descriptor(const Event& event, RawCall& raw);
    void duplicate(const Event& event, RawCall& raw);
    void map_file(const Event& event, RawCall& raw);
    void make_symlink(const Event& event, RawCall& raw);
    void list_directory(const Event& event, RawCall& raw);
    void fork(const Event& event, RawCall& raw);
    void send(RawCall& raw, bool result_known);
    std::string_view text(StringId id) const { return lines_.strings[id]; }
    int32_t take_number();
    int32_t file_number(StringId path, bool release, std::string_view& fd_path);

    const Lines& lines_;
    const Processes& processes_;
    Assembler& assembler_;
    int64_t origin_;
    std::unordered_map<int32_t, Descriptors> of_process_;
    std::vector<Descriptors*> of_thread_;  // per row of threads; null: not looked up yet
    Descriptors* mine_ = nullptr;          // of the event's process
    uint64_t stdio_ = 0, results_assumed_ = 0, errno_assumed_ = 0, incomplete_ = 0, unknown_ = 0, ignored_ = 0;
    uint64_t directories_ = 0, protections_ = 0, relative_ = 0;
};

}  // namespace reprise::dftracer
