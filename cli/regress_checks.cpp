// SPDX-License-Identifier: MIT
#include "cli/regress_checks.h"

#include "cli/run_files.h"
#include "cli/run_program.h"
#include "cli/units.h"
#include "formats/support/error.h"

namespace reprise::cli {

std::vector<std::string> failures_of(const RowFile::Json& row) {
    if (const auto refused = row.at("refused").get<std::string>(); !refused.empty()) {
        return {"refused: " + refused};
    }
    return row.at("not_same_job").get<std::vector<std::string>>();
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
    if (const ProgramRun remount = run_program({"/bin/sh", "-c", cell.target->remount}); remount.code != 0) {
        out.failures.push_back("the remount command failed: " + cell.target->remount + ": " +
                               printable(remount.output));
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
