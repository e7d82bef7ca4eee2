// SPDX-License-Identifier: MIT
// Small logs with known contents, for tests of whatever reads logs. tests/programs/sample_log.cpp writes them for the
// scripts under tests/cli.
#pragma once

#include <filesystem>

namespace reprise::test {

/// Two processes, three tasks (one without ops), hostile file names, a left-out library that is mapped, a failed open,
/// an accelerator with two epochs: epoch 0 is 100 ms with 60 ms busy (AU 60 %, MLPerf's 40 ms of 60), epoch 1 the same
/// from 200 ms.
void write_sample(const std::filesystem::path& path);

struct RunChanges {
    bool short_read = false;  // one result differs
    bool missing_op = false;  // one op is not there
    bool extra_op = false;    // one op too many
    bool swapped = false;     // two ops change places
    bool other_size = false;  // a read asks for less
    double slower = 1;        // durations and times
};
/// A replay of the sample that left out program and system files (header extra "filter"), with other descriptor
/// numbers.
void write_sample_run(const std::filesystem::path& path, const RunChanges& changes = {});

/// Every op of the table once, every field of its schema with a value that no other field has.
void write_all_ops(const std::filesystem::path& path);

/// Reads and writes of /data/one and /data/two by two tasks, which fio can replay: 6 reads, 2 writes, 40960 and 8192
/// bytes.
void write_fio_sample(const std::filesystem::path& path);

/// Some seconds for those who watch a run: a loader that reads /data/one, and a trainer that waits for it, gives an
/// accelerator 6 ms of work in each of `steps` steps of 10 ms, and saves to /data/ckpt.
void write_live_sample(const std::filesystem::path& path, int steps);

}  // namespace reprise::test
