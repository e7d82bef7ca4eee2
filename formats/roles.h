// SPDX-License-Identifier: MIT
// Roles of files by simple rules (docs/roles.md lists them); the one place that decides them.
#pragma once

#include <string_view>

#include "formats/tables.h"

namespace reprise {

// What is known of a file when the recording has been read to its end.
struct RoleFacts {
    std::string_view path;
    FileType type = FileType::unknown;
    bool written = false;       // data written, truncated or created by the recording
    bool read = false;          // data read or mapped
    bool renamed_into = false;  // the target of a rename: how checkpoints are put in place
    bool synced = false;
    uint64_t bytes_written = 0;
};

// First matching rule wins: /dev/shm and anonymous memory are ipc; /proc /sys /dev /etc /run are system; shared
// libraries, interpreters, /usr /bin /lib /opt, site-packages, *.py, *.pyc, *.so are program; written files are
// checkpoint, log or cache by name and size; files that are only read are dataset.
Role classify(const RoleFacts& facts);

}  // namespace reprise
