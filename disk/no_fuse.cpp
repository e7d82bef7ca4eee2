// SPDX-License-Identifier: MIT
// In place of logged_disk.cpp where libfuse3 is not there.
#include "disk/logged_disk.h"
#include "formats/support/error.h"

namespace reprise {

bool can_serve_disks() { return false; }

int serve_disk(const std::filesystem::path&, const std::filesystem::path&, const std::filesystem::path&) {
    throw machine_error("this build cannot serve disks: it was made without libfuse3",
                        "install libfuse3-dev and build it again");
}

}  // namespace reprise
