// SPDX-License-Identifier: MIT
// How a loader's task reads samples: the calls of each format.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "generate/data_set.h"
#include "generate/task_writer.h"

namespace reprise {

/// What one task has open. Mappings are numbered per log: `maps` counts them.
class SampleReader {
public:
    SampleReader(const TrainingJob& job, const DataSet& data, uint32_t& maps) : job_(job), data_(data), maps_(maps) {}

    /// A format whose samples are chosen.
    void read(TaskWriter& task, uint64_t sample);
    /// A stream: the next sample of file `file`, which is sample number `sample` of the data set. Samples of a file
    /// come in their order.
    void read_on(TaskWriter& task, uint64_t sample);
    /// Whether read_on() will read, not take what is there.
    bool will_read(uint64_t sample) const;
    /// Of a stream that is read in pieces: a file that comes later is opened and its first piece is read, unless it is
    /// open. read_on() goes on from there.
    void look_ahead(TaskWriter& task, uint64_t file);
    void close(TaskWriter& task);

private:
    static constexpr uint64_t kNone = UINT64_MAX;
    struct Mapped {
        uint64_t file = kNone;
        uint32_t map = 0, index = 0;
    };

    void open(TaskWriter& task, uint64_t file);
    void piece_of_stream(TaskWriter& task, const OpenFile& opened, int64_t at, int64_t file_size);
    void read_file(TaskWriter& task, const SamplePlace& place);
    void pieces(TaskWriter& task, int64_t from, int64_t to);
    void touch(TaskWriter& task, uint64_t sample, const SamplePlace& place);
    const Mapped& mapped(TaskWriter& task, uint64_t file);
    void stream(TaskWriter& task, uint64_t sample);
    void row_group(TaskWriter& task, uint64_t sample);

    const TrainingJob& job_;
    const DataSet& data_;
    uint32_t& maps_;
    uint64_t file_ = kNone;  // that is open
    OpenFile opened_;
    int64_t at_ = 0;  // of a stream: bytes read; where the next record begins
    int64_t record_ = 0;
    uint64_t next_ = 0;                                 // of a stream: the sample that comes next in its file
    uint64_t group_ = kNone;                            // row group that was read
    std::vector<std::pair<uint64_t, OpenFile>> ahead_;  // files of which look_ahead() read the first piece
    std::vector<Mapped> maps_of_file_;
};

}  // namespace reprise
