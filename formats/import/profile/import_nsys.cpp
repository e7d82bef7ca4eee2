// SPDX-License-Identifier: MIT
// The importer of Nsight Systems' SQLite exports: accelerator work, the host's waits for it, and its steps.
#include "formats/import/profile/nsys_events.h"
#include "formats/import/profile/profile_log.h"
#include "formats/support/error.h"

namespace reprise {
namespace {

bool sniff(std::string_view head) { return head.starts_with(std::string_view("SQLite format 3\0", 16)); }

void import(std::span<const std::filesystem::path> inputs, const std::filesystem::path& output,
            const ImportOptions& options) {
    kineto::Events events;
    for (const auto& input : inputs) {
        nsys::read_events(input, events);
    }
    if (events.work.empty()) {
        throw bad_input(inputs.front().native(), "this export holds no accelerator work",
                        "profile with --trace=cuda, and the steps of the job, not only its start");
    }
    write_profile_log(events, "nsys", output, options);
}

}  // namespace

extern const Importer import_nsys;
const Importer import_nsys{"nsys",
                           "Nsight Systems SQLite exports (nsys export --type sqlite): accelerator work and steps",
                           sniff, import, true};

}  // namespace reprise
