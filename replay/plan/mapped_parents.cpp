// SPDX-License-Identifier: MIT
#include "replay/plan/mapped_parents.h"

#include "formats/support/path.h"

namespace reprise {

void drop_parents_of_mapped(Plan& plan, const PathMap& maps) {
    if (maps.rules().empty()) {
        return;
    }
    const Tables& tables = plan.log->tables();
    const auto laid_out = [&](FileId file) {
        const FileRow& row = tables.files[file];
        return (row.origin == Origin::existed || row.origin == Origin::created) &&
               (row.type != FileType::unknown || !maps.is_above_rule(tables.path(file)));
    };
    for (FileId file = 1; file < plan.paths.size(); ++file) {
        RootPath& path = plan.paths[file];
        if (path.relative == nullptr || !maps.is_above_rule(tables.path(file)) || laid_out(file)) {
            continue;
        }
        bool there = false;
        for (FileId other = 1; other < plan.paths.size() && !there; ++other) {
            const char* const place = plan.paths[other].relative;
            there = place != nullptr && laid_out(other) && is_or_lies_below(place, path.relative);
        }
        if (!there) {
            path = {};
            plan.count(Count::paths_without_place);
        }
    }
}

}  // namespace reprise
