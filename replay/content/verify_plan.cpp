// SPDX-License-Identifier: MIT
#include "replay/content/verify_plan.h"

#include "formats/oplog/op_fields.h"

namespace reprise {
namespace {

bool reads_only(const OpInfo& row) {
    return row.is(Trait::reads) && !row.is(Trait::writes) && !row.is(Trait::submits) && row.has(Field::offset);
}

bool as_prepared(const std::vector<Extent>& extents) {
    return extents.size() == 1 && extents[0].source.is == Source::Is::prepared && extents[0].source.shift == 0;
}

}  // namespace

std::vector<Extent> VerifyPlan::expected(TaskId task, uint64_t op, HandleId handle, uint64_t from, uint64_t to) const {
    if (const auto found = reads.find(key(task, op)); found != reads.end()) {
        std::vector<Extent> out;
        for (Extent one : found->second) {
            one.from = std::max(one.from, from);
            one.to = std::min(one.to, to);
            if (one.from < one.to) {
                out.push_back(one);
            }
        }
        return out;
    }
    if (handle >= prepared.size() || prepared[handle] == 0) {
        return {};
    }
    return {{from, to, {Source::Is::prepared, prepared[handle], 0, 0, 0, INT64_MIN}}};
}

VerifyPlan plan_verification(const Plan& plan, const BeginModel& begin) {
    VerifyPlan out;
    out.prepared.resize(plan.log->tables().handles.size());
    FileModel model(plan);
    begin(model);
    plan.log->for_each_in_time([&](TaskId task, const Op& op, uint64_t number) {
        if (!plan.selector->keeps(op)) {
            return;
        }
        model.apply(task, number, op);
        if (!reads_only(info(op.kind)) || op.result <= 0 || op.handle >= out.prepared.size()) {
            return;
        }
        const ModelFilePointer file = model.of(op.handle);
        if (file == nullptr || op.offset < 0) {
            return;
        }
        const auto from = static_cast<uint64_t>(op.offset);
        std::vector<Extent> extents = file->extents.of(from, from + static_cast<uint64_t>(op.result));
        uint64_t& seed = out.prepared[op.handle];
        if (file->unordered) {
            extents.clear();
        } else if (as_prepared(extents) && (seed == 0 || seed == extents[0].source.seed)) {
            seed = extents[0].source.seed;
            return;
        }
        out.reads[VerifyPlan::key(task, number)] = std::move(extents);
    });
    return out;
}

}  // namespace reprise
