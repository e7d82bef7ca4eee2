// SPDX-License-Identifier: MIT
#include "replay/run/verify_run.h"

#include "formats/support/error.h"
#include "formats/support/quantity.h"

namespace reprise {

std::unique_ptr<Verification> verify_run(Plan& plan, ReplayOptions& options, const std::optional<Marker>& marker) {
    if (options.verify == Verify::none) {
        return nullptr;
    }
    if (options.read_only || options.engine != EngineKind::posix || options.access.any()) {
        throw usage_error("--verify checks the job as recorded", "leave out --read-only, --engine and other access");
    }
    if (!marker || marker->state != MarkerState::complete) {
        throw usage_error("--verify requires a root as reprise prepare left it",
                          marker ? "restore it: reprise prepare LOG --root DIR --reset"
                                 : "prepare it: reprise prepare LOG --root DIR");
    }
    if (options.verify == Verify::content && marker->content != Content::random) {
        throw usage_error("--verify content requires random content, and the root has content " +
                              std::string(content_name(marker->content)),
                          "reprise prepare LOG --root DIR --reset --content random");
    }
    auto out = std::make_unique<Verification>(plan, PreparedFiles(plan, options.filter, marker->listing_entries),
                                              options.verify);
    options.observe = [own = out.get(), more = options.observe](const ObservedOp& op) {
        if (op.performed) {
            own->see(op.task, op.number, op.here);
        }
        if (more) {
            more(op);
        }
    };
    plan.verify = out->plan();
    return out;
}

void add_verified(VerifyReport report, ReplayResult& result) {
    const TreeCheck& tree = report.tree;
    if (tree.count != 0) {
        result.not_same_job.push_back(counted(tree.count, "thing") + " in files " + (tree.count == 1 ? "is" : "are") +
                                      " not as it should be: " + tree.findings.front().sentence() +
                                      (tree.count > 1 ? "; and " + counted(tree.count - 1, "other") : "") +
                                      " (--json lists them).");
    }
    std::string text = "Checked: " + counted(tree.files, "file");
    if (report.how == Verify::content) {
        text += ", " + format_bytes(tree.bytes) + " of content, " + counted(report.reads, "read") + " of " +
                format_bytes(report.read_bytes);
    }
    if (tree.unchecked != 0 || report.unchecked_reads != 0) {
        text += "; not checked: " + format_bytes(tree.unchecked) + " and " + counted(report.unchecked_reads, "read");
        for (const auto& [reason, files] : report.unchecked) {
            text += ", " + counted(files, "file") + " " + reason;
        }
    }
    result.notes.insert(result.notes.begin(), text + ".");
    result.verified = std::move(report);
}

}  // namespace reprise
