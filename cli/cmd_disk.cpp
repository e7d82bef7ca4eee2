// SPDX-License-Identifier: MIT
// `reprise disk`: serves a disk image whose writes are logged; what `regress --verify` cuts the power of.
#include <string>

#include "cli/command.h"
#include "disk/logged_disk.h"

namespace reprise::cli::disk_command {
namespace {

int run(const po::variables_map& values) {
    return serve_disk(values["image"].as<std::string>(), values["log"].as<std::string>(),
                      values["folder"].as<std::string>());
}

const Registration registration{{
    .name = "disk",
    .group = Group::hidden,
    .summary = "serve a disk image, logging its writes",
    .help =
        "Serves IMAGE as DIR/disk until DIR is unmounted. Every write goes to LOG, too, from which `regress --verify` "
        "makes the disk as it was at any moment.",
    .examples = {{"reprise disk image writes mnt", "then: losetup --find --show mnt/disk"}},
    .positionals = {{.name = "image", .label = "IMAGE"},
                    {.name = "log", .label = "LOG"},
                    {.name = "folder", .label = "DIR"}},
    .run = run,
}};

}  // namespace
}  // namespace reprise::cli::disk_command
