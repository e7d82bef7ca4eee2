// SPDX-License-Identifier: MIT
// One import of strace output: what is known of its calls while they are read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <queue>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "formats/assemble/assembler.h"
#include "formats/import/importer.h"
#include "formats/import/strace/source.h"
#include "formats/oplog/syscalls.h"

namespace reprise {

class StraceImport {
public:
    StraceImport(std::span<const std::filesystem::path> inputs, const std::filesystem::path& output,
                 const ImportOptions& options);
    void run();

private:
    void feed(const StraceSource& source);
    void feed_call(const StraceRecord& record, const Syscall& row);
    void feed_end(const StraceRecord& record);
    // False: the call cannot become an op.
    bool fill(const Syscall& row, RawCall& raw);
    void fill_stat(std::string_view text, bool is_statx, RawCall& raw);
    void fill_buffers(std::string_view text, RawCall& raw, bool is_message);
    void fill_messages(std::string_view text, RawCall& raw);
    bool fill_path(std::string_view text, std::string_view& path);
    std::string_view about(const StraceFd& fd);
    void fill_directory(std::string_view text, RawCall& raw, bool second);
    std::vector<StraceFd> descriptors_in(std::string_view list, std::string& keep);
    bool is_clone() const;
    bool asks_terminal() const;
    void fill_clone(RawCall& raw);
    bool act(const Syscall& row, RawCall& raw);
    void adopt_received(const RawCall& raw);
    void spawned(RawCall& raw);
    void executed(const Syscall& row, int32_t pid);
    void correct(const Syscall& row, RawCall& raw);
    int64_t number(std::string_view text);
    int64_t packed_lock(std::string_view text);
    int64_t flags(std::string_view text);
    int32_t process_of(int32_t tid) const;
    void drop(std::string_view name);
    void count_faults();
    void count_unseen();

    std::vector<std::filesystem::path> inputs_;
    const ImportOptions& options_;
    StraceLineFaults faults_;
    bool any_exit_ = false;
    bool any_exited_ = false, any_exit_call_ = false, any_exec_ = false, any_map_ = false, any_sync_ = false;
    std::unordered_set<int32_t> started_, tids_seen_;  // by calls that start tasks; with a line of their own
    std::unordered_set<int32_t> processes_seen_;       // up to the first exit
    std::vector<std::unique_ptr<StraceSource>> sources_;
    std::unique_ptr<LogWriter> writer_;
    std::unique_ptr<Assembler> assembler_;
    int64_t origin_ = 0;
    StraceCall call_;
    StraceStrings strings_;
    std::vector<int64_t> list_;
    std::unordered_map<int32_t, int32_t> thread_group_;   // tid to pid, threads only
    std::unordered_map<int32_t, std::string> directory_;  // by tid, as last decorated
    std::unordered_set<int32_t> ended_;
    std::unordered_map<int32_t, bool> locks_all_;  // by pid: mlockall(MCL_FUTURE)
    std::map<std::string, uint64_t, std::less<>> dropped_;
    std::string header_command_;
    uint64_t symbols_unknown_ = 0, numbers_too_large_ = 0, errors_unknown_ = 0, durations_unknown_ = 0, calls_ = 0;
};

}  // namespace reprise
