// SPDX-License-Identifier: MIT
#include "cli/regress_checks.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "cli/run_files.h"
#include "cli/run_program.h"
#include "cli/units.h"
#include "formats/support/error.h"
#include "formats/support/limits.h"
#include "formats/support/unique_fd.h"

namespace reprise::cli {
namespace {

/// Whether the file system of a directory is unmounted while this lives: everywhere, so that nothing of it stays in
/// memory. Numbers of mounts and devices do not tell: they come again.
class UnmountWatch {
public:
    explicit UnmountWatch(const std::filesystem::path& folder) : events_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
        if (!events_.valid() || ::inotify_add_watch(events_.get(), folder.c_str(), IN_DELETE_SELF | IN_ONLYDIR) < 0) {
            throw machine_error(
                "cannot watch whether " + escape_line(folder.string()) + " is unmounted: " + reason(errno),
                "raise fs.inotify.max_user_instances and max_user_watches, or leave the target's remount out");
        }
    }
    bool seen() const {
        alignas(inotify_event) std::array<char, 4096> events{};
        bool seen = false;
        ssize_t size = 0;
        while ((size = ::read(events_.get(), events.data(), events.size())) > 0) {
            for (ssize_t at = 0; at < size;) {
                inotify_event event{};
                std::memcpy(&event, events.data() + at, sizeof event);
                seen = seen || (event.mask & IN_UNMOUNT) != 0;
                at += static_cast<ssize_t>(sizeof event + event.len);
            }
        }
        return seen;
    }

private:
    UniqueFd events_;
};

}  // namespace

std::vector<std::string> failures_of(const RowFile::Json& row) {
    if (const auto refused = row.at("refused").get<std::string>(); !refused.empty()) {
        return {"refused: " + refused};
    }
    return row.at("not_same_job").get<std::vector<std::string>>();
}

std::vector<std::string> doubts_of_times(const RowFile::Json& row, bool late_may) {
    std::vector<std::string> out;
    if (!failures_of(row).empty()) {
        return out;  // which says more
    }
    if (const auto found = row.find("not_measured"); found != row.end() && found->is_string()) {
        out.push_back("NOT MEASURED: " + found->get<std::string>());
    }
    if (const auto found = row.find("not_faithful"); found != row.end() && !late_may) {
        for (const auto& failure : *found) {
            out.push_back("NOT FAITHFUL: " + failure.get<std::string>());
        }
    }
    return out;
}

std::vector<CheckedThing> checks_of(const RowFile::Json& row) {
    CheckedThing results{"results of calls", {}, ""}, content{"files and their content", {}, ""};
    if (!row.contains("verify") || row["verify"].is_null()) {
        results.failures = failures_of(row);
        content.skipped = "the run did not come to its end";
        return {results, content};
    }
    const auto& verify = row["verify"];
    content.note = counted(verify.at("files").get<uint64_t>(), "file") + ", " +
                   format_bytes(verify.at("bytes").get<uint64_t>()) + ", and " +
                   counted(verify.at("reads").get<uint64_t>(), "read") + " of " +
                   format_bytes(verify.at("read_bytes").get<uint64_t>());
    if (const auto unchecked = verify.at("unchecked_bytes").get<uint64_t>(); unchecked != 0) {
        content.note += "; not checked: " + format_bytes(unchecked);
    }
    for (const auto& finding : verify.at("findings")) {
        content.failures.push_back(finding.at("says").get<std::string>());
    }
    for (const std::string& failure : failures_of(row)) {
        const bool of_files = !content.failures.empty() && failure.find(" in files ") != std::string::npos;
        if (!of_files) {
            results.failures.push_back(failure);
        }
    }
    return {results, content};
}

CheckedThing check_after_remount(const RegressCell& cell, const std::filesystem::path& run_log) {
    CheckedThing out{"content after a remount", {}, ""};
    if (cell.target->remount.empty()) {
        out.skipped = "[target " + cell.target->name + "] has no remount command";
        return out;
    }
    const RunFiles files(cell.job->log, run_log, cell.root);  // reads the root's marker: before it goes
    const UnmountWatch watch(cell.root);
    if (const ProgramRun remount = run_program({"/bin/sh", "-c", cell.target->remount}); remount.code != 0) {
        out.failures.push_back("the remount command failed: " + cell.target->remount + ": " +
                               printable(remount.output));
        return out;
    }
    if (!watch.seen()) {
        out.failures.push_back("the remount command unmounted nothing, so nothing is known of what the device keeps: " +
                               cell.target->remount + "; it has to unmount the file system of " +
                               printable(cell.target->folder.string()) +
                               " everywhere and to mount it again, e.g. umount DIR && mount DEVICE DIR");
        return out;
    }
    const TreeCheck tree = files.check(cell.root);
    out.note = counted(tree.files, "file") + ", " + format_bytes(tree.bytes);
    for (const VerifyFinding& finding : tree.findings) {
        out.failures.push_back(printable(finding.sentence()));
    }
    return out;
}

RowFile::Json to_json(const std::vector<CheckedThing>& things) {
    RowFile::Json out = RowFile::Json::array();
    for (const CheckedThing& one : things) {
        out.push_back({{"name", one.name}, {"failures", one.failures}, {"skipped", one.skipped}, {"note", one.note}});
    }
    return out;
}

std::vector<CheckedThing> checks_from(const RowFile::Json& json) {
    std::vector<CheckedThing> out;
    for (const auto& one : json) {
        out.push_back({one.at("name").get<std::string>(), one.at("failures").get<std::vector<std::string>>(),
                       one.at("skipped").get<std::string>(), one.at("note").get<std::string>()});
    }
    return out;
}

}  // namespace reprise::cli
