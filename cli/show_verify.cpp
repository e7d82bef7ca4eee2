// SPDX-License-Identifier: MIT
#include "cli/show_verify.h"

#include <string>

namespace reprise::cli {

void add_verify_option(po::options_description& options) {
    options.add_options()("verify", po::value<std::string>()->value_name("WHAT"),
                          "check the files afterwards: tree: names, types and sizes; content: also every byte that is "
                          "read, and all files, of content that tells who wrote it");
}

Verify wanted_verify(const po::variables_map& values) {
    if (values.count("verify") == 0) {
        return Verify::none;
    }
    return values["verify"].as<std::string>() == "tree" ? Verify::tree : Verify::content;  // one of the choices
}

Json findings_json(const TreeCheck& tree) {
    Json findings = Json::array();
    for (const VerifyFinding& one : tree.findings) {
        Json row = {
            {"what", what_name(one.what)}, {"path", printable("/" + one.path)}, {"says", printable(one.sentence())}};
        const bool bytes = one.what == VerifyFinding::What::content || one.what == VerifyFinding::What::read;
        if (bytes) {
            row["offset"] = one.offset;
            row["bytes"] = one.bytes;
        }
        if (bytes || one.what == VerifyFinding::What::size) {
            row["expected"] = one.want;
            row["found"] = one.got;
        }
        if (one.task != 0) {
            row["task"] = one.task;
            row["op"] = one.op;
        }
        findings.push_back(std::move(row));
    }
    return findings;
}

Json verify_json(const VerifyReport& report) {
    Json unchecked = Json::object();
    for (const auto& [reason, files] : report.unchecked) {
        unchecked[reason] = files;
    }
    return {{"what", report.how == Verify::tree ? "tree" : "content"},
            {"files", report.tree.files},
            {"bytes", report.tree.bytes},
            {"unchecked_bytes", report.tree.unchecked},
            {"unchecked_files", std::move(unchecked)},
            {"reads", report.reads},
            {"read_bytes", report.read_bytes},
            {"unchecked_reads", report.unchecked_reads},
            {"found", report.tree.count},
            {"findings", findings_json(report.tree)}};
}

}  // namespace reprise::cli
