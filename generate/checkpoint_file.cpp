// SPDX-License-Identifier: MIT
#include "generate/checkpoint_file.h"

#include <fcntl.h>

#include <algorithm>

namespace reprise {

void save_checkpoint(LogWriter& log, const TrainingJob& job, TaskWriter& task, const std::string& path, int64_t bytes) {
    const auto add = [&](const std::string& name) {
        FileRow row;
        row.path = log.intern(name);
        row.type = FileType::regular;
        row.role = Role::checkpoint;
        row.origin = Origin::created;
        row.size = static_cast<uint64_t>(bytes);
        row.mode = 0644;
        return log.add_file(row);
    };
    const FileId unfinished = add(path + ".partial"), file = add(path);
    const OpenFile opened = task.open(unfinished, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    for (int64_t at = 0; at < bytes; at += job.checkpoint_bs) {
        task.move(OpKind::write, opened, at, std::min(job.checkpoint_bs, bytes - at));
    }
    task.sync(OpKind::fsync, opened);
    task.close(opened);
    task.put({.kind = OpKind::rename, .file = unfinished, .file2 = file}, NominalTime::name);
}

}  // namespace reprise
