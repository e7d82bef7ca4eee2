// SPDX-License-Identifier: MIT
#include "replay/run/verification.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <tuple>

#include "formats/oplog/op_fields.h"
#include "formats/oplog/touched.h"
#include "formats/support/error.h"
#include "formats/support/limits.h"

namespace reprise {
namespace {

UniqueFd findings_file() {
    UniqueFd fd(::memfd_create("reprise-findings", MFD_CLOEXEC));
    if (!fd.valid() || ::fcntl(fd.get(), F_SETFL, O_APPEND) != 0) {
        throw machine_error("cannot make a file in memory: " + reason(errno), "free memory");
    }
    return fd;
}

std::string parent_of(const std::string& path) {
    const size_t slash = path.rfind('/');
    return slash == std::string::npos ? "" : path.substr(0, slash);
}

/// What a read should return by the order of the run, at one of its ends.
struct ReadState {
    std::vector<Extent> extents;
    std::string path;
    bool known = false;
};

bool agree(const std::vector<Extent>& a, const std::vector<Extent>& b, int64_t begin) {
    if (a.size() != b.size() || a.empty()) {
        return false;
    }
    for (size_t i = 0; i < a.size(); ++i) {
        const bool races = a[i].source.end > begin || b[i].source.end > begin;
        if (a[i].from != b[i].from || a[i].to != b[i].to || !a[i].source.same_bytes(b[i].source) || races ||
            a[i].source.is == Source::Is::unknown) {
            return false;
        }
    }
    return true;
}

bool shapes_files(const Op& op) {
    const OpInfo& row = info(op.kind);
    return op.result >= 0 && row.is(Trait::io) &&
           (row.is(Trait::changes) || row.is(Trait::makes_handle) || row.is(Trait::syncs) || row.is(Trait::submits) ||
            row.is(Trait::writes) || op.kind == OpKind::syncfs || op.kind == OpKind::mmap || op.kind == OpKind::fcntl ||
            (op.kind == OpKind::touch && op.flags == kTouchWrites));
}

}  // namespace

void add_shaping(std::vector<TimedOp>& ops, TaskId task, uint64_t number, const Op& op) {
    if (!shapes_files(op)) {
        return;
    }
    TimedOp made{task, number, op};
    made.op.list = {};
    made.op.edges = {};
    if (op.kind != OpKind::touch) {
        ops.push_back(made);
        return;
    }
    each_touched(op.offset, op.size, op.list, [&](int64_t offset, int64_t bytes) {
        made.op.offset = offset;
        made.op.size = bytes;
        ops.push_back(made);
    });
}

void sort_by_time(std::vector<TimedOp>& ops) {
    std::sort(ops.begin(), ops.end(), [](const TimedOp& a, const TimedOp& b) {
        return std::tie(a.op.begin, a.task, a.number) < std::tie(b.op.begin, b.task, b.number);
    });
}

PreparedFiles::PreparedFiles(const Plan& plan, const OpFilter& filter, bool listing_entries)
    : layout_(make_layout(*plan.log, filter, plan.maps, listing_entries ? ListingEntries::add : ListingEntries::none)) {
    const std::vector<FileRow>& rows = plan.log->tables().files;
    for (FileId file = 1; file < rows.size() && file < plan.paths.size(); ++file) {
        if (FileModel::in_memory(rows[file]) && plan.paths[file].relative != nullptr) {
            ignored_.push_back(parent_of(plan.paths[file].relative));
        }
    }
    std::sort(ignored_.begin(), ignored_.end());
    ignored_.erase(std::unique(ignored_.begin(), ignored_.end()), ignored_.end());
}

void PreparedFiles::add_to(FileModel& model) const {
    const auto in_memory = [&](const std::string& path) {
        return std::any_of(ignored_.begin(), ignored_.end(),
                           [&](const std::string& folder) { return path == folder || path.starts_with(folder + "/"); });
    };
    for (uint32_t i = 0; i < layout_.entries.size(); ++i) {
        const LayoutEntry& entry = layout_.entries[i];
        if (!entry.initial || entry.type == FileType::unknown || in_memory(entry.path)) {
            continue;
        }
        if (const auto first = layout_.hard_links.find(i); first != layout_.hard_links.end()) {
            model.add_link(entry.path, layout_.entries[first->second].path);
            continue;
        }
        model.add(entry.path, entry.type, entry.type == FileType::regular ? entry.size : 0, entry.target);
        if (const auto holes = layout_.holes.find(i); holes != layout_.holes.end()) {
            for (const auto& [from, to] : holes->second.ranges()) {
                model.add_hole(entry.path, from, to);
            }
        }
    }
}

Verification::Verification(const Plan& plan, PreparedFiles prepared, Verify how)
    : plan_(plan), prepared_(std::move(prepared)), how_(how) {
    if (how_ != Verify::content) {
        return;
    }
    findings_ = findings_file();
    verify_ =
        std::make_shared<VerifyPlan>(plan_verification(plan, [this](FileModel& model) { prepared_.add_to(model); }));
    verify_->findings = findings_.get();
}

std::vector<VerifyRow> Verification::rows() const {
    std::vector<VerifyRow> out;
    VerifyRow row;
    for (off_t at = 0; findings_.valid() && ::pread(findings_.get(), &row, sizeof row, at) == ssize_t{sizeof row};
         at += sizeof row) {
        out.push_back(row);
    }
    return out;
}

void Verification::see(TaskId task, uint64_t number, const Op& op) {
    if (findings_.valid() && read_ops_.empty()) {
        for (const VerifyRow& row : rows()) {
            if (row.op != VerifyRow::kSums) {
                read_ops_[VerifyPlan::key(row.task, row.op)] = {};
            }
        }
        read_ops_[UINT64_MAX] = {};  // looked
    }
    if (const auto found = read_ops_.find(VerifyPlan::key(task, number)); found != read_ops_.end()) {
        found->second = op;
        found->second.list = {};
    }
    add_shaping(ops_, task, number, op);
}

/// What engines found is by the recording's order: it counts where the run's order says the same.
void Verification::check_reads(std::vector<VerifyRow> rows, VerifyReport& report) {
    std::vector<std::pair<int64_t, size_t>> moments;  // when to look for which row; twice each
    for (size_t i = 0; i < rows.size(); ++i) {
        if (rows[i].op == VerifyRow::kSums) {
            report.reads += rows[i].reads;
            report.read_bytes += rows[i].bytes;
            report.unchecked_reads += rows[i].unchecked;
            continue;
        }
        const Op& op = read_ops_[VerifyPlan::key(rows[i].task, rows[i].op)];
        moments.emplace_back(op.begin, i);
        moments.emplace_back(op.end(), i);
    }
    std::sort(moments.begin(), moments.end());
    FileModel model(plan_);
    prepared_.add_to(model);
    std::map<size_t, ReadState> first;
    size_t next = 0;
    for (const auto& [time, i] : moments) {
        for (; next < ops_.size() && ops_[next].op.begin <= time; ++next) {
            model.apply(ops_[next].task, ops_[next].number, ops_[next].op);
        }
        const VerifyRow& row = rows[i];
        const ModelFilePointer file = model.of(row.handle);
        ReadState now;
        if (file != nullptr && !file->unordered) {
            now = {file->extents.of(row.offset, row.offset + row.bytes), file->path, true};
        }
        const auto before = first.find(i);
        if (before == first.end()) {
            first[i] = std::move(now);
            continue;
        }
        const std::vector<Extent> expected =
            verify_->expected(row.task, row.op, row.handle, row.offset, row.offset + row.bytes);
        const Op& op = read_ops_[VerifyPlan::key(row.task, row.op)];
        if (now.known && before->second.known && agree(now.extents, before->second.extents, op.begin) &&
            agree(now.extents, expected, INT64_MAX)) {
            report.tree.add(
                {VerifyFinding::What::read, now.path, row.offset, row.bytes, row.want, row.got, row.task, row.op, {}});
        } else {
            ++report.unchecked_reads;
        }
    }
}

VerifyReport Verification::finish(int root) {
    VerifyReport report;
    report.how = how_;
    sort_by_time(ops_);
    check_reads(rows(), report);
    FileModel model(plan_);
    prepared_.add_to(model);
    for (const TimedOp& one : ops_) {
        model.apply(one.task, one.number, one.op);
    }
    TreeCheckOptions options;
    options.content = how_ == Verify::content;
    options.ignored = prepared_.ignored();
    TreeCheck tree = check_tree(root, model, options);
    for (VerifyFinding& finding : report.tree.findings) {
        tree.add(std::move(finding));
    }
    tree.count += report.tree.count - report.tree.findings.size();
    report.tree = std::move(tree);
    report.unchecked = model.unchecked();
    return report;
}

}  // namespace reprise
