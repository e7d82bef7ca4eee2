// SPDX-License-Identifier: MIT
#include "replay/prepare/renamed_types.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

namespace reprise {
namespace {

class Finder {
public:
    Finder(const Tables& tables, LogFacts& facts) : tables_(tables), facts_(facts) {}

    void run() {
        for (const RenameFact& rename : facts_.renames) {
            if (!is_known(rename.from) || !is_known(rename.to)) {
                names_[tables_.path(rename.from)];
                names_[tables_.path(rename.to)];
            }
        }
        names_.erase(std::string_view());
        if (names_.empty()) {
            return;
        }
        for (const RenameFact& rename : facts_.renames) {
            for (const FileId file : {rename.from, rename.to}) {
                if (const auto name = names_.find(tables_.path(file)); name != names_.end()) {
                    name->second.renames.push_back(rename.time);
                }
            }
        }
        for (FileId file = 1; file < facts_.files.size(); ++file) {
            const FileFacts& of = facts_.files[file];
            if (const int64_t time = std::min(of.made, of.used); time != FileFacts::kNever) {
                use(tables_.path(file), time);
            }
        }
        for (auto& [path, name] : names_) {
            std::sort(name.uses.begin(), name.uses.end());
        }
        // What is known of one rename may be so of the next, and of the one before.
        std::for_each(facts_.renames.begin(), facts_.renames.end(), [&](const RenameFact& one) { look(one); });
        std::for_each(facts_.renames.rbegin(), facts_.renames.rend(), [&](const RenameFact& one) { look(one); });
    }

private:
    struct Name {
        std::vector<int64_t> renames, uses;  // of what lies below
    };

    bool is_known(FileId file) const {
        return file >= tables_.files.size() || tables_.files[file].type != FileType::unknown ||
               facts_.files[file].directory;
    }

    void use(std::string_view path, int64_t time) {
        for (size_t slash = path.rfind('/'); slash != std::string_view::npos && slash != 0; slash = path.rfind('/')) {
            path = path.substr(0, slash);
            if (const auto name = names_.find(path); name != names_.end()) {
                name->second.uses.push_back(time);
            }
        }
    }

    /// Whether something below the name was used just before a rename, or just after.
    bool used_before(const Name& name, int64_t time) const {
        const auto next = std::lower_bound(name.renames.begin(), name.renames.end(), time);
        const int64_t since = next == name.renames.begin() ? std::numeric_limits<int64_t>::min() : *(next - 1);
        return any_use(name, since, time);
    }
    bool used_after(const Name& name, int64_t time) const {
        const auto next = std::upper_bound(name.renames.begin(), name.renames.end(), time);
        return any_use(name, time, next == name.renames.end() ? FileFacts::kNever : *next);
    }
    static bool any_use(const Name& name, int64_t from, int64_t to) {
        const auto use = std::lower_bound(name.uses.begin(), name.uses.end(), from);
        return use != name.uses.end() && *use < to;
    }

    void look(const RenameFact& rename) {
        moved(rename, rename.from, rename.to);
        if (rename.exchanged) {
            moved(rename, rename.to, rename.from);
        }
    }
    /// What had the name of `from` has that of `to`.
    void moved(const RenameFact& rename, FileId from, FileId to) {
        const auto is_other = [&](FileId file) {
            return file >= facts_.files.size() ||
                   (tables_.files[file].type != FileType::unknown && tables_.files[file].type != FileType::directory);
        };
        if (is_other(from) || to >= facts_.files.size() || (!rename.exchanged && is_other(to))) {
            return;
        }
        const auto old_name = names_.find(tables_.path(from)), new_name = names_.find(tables_.path(to));
        if (old_name == names_.end() || new_name == names_.end()) {
            return;
        }
        bool directory = is_directory(from) || used_before(old_name->second, rename.time) ||
                         used_after(new_name->second, rename.time);
        // Of an exchange, a row is what had its name at first.
        directory = directory || (!rename.exchanged && is_directory(to));
        if (!directory) {
            return;
        }
        mark(from);
        if (!rename.exchanged) {
            mark(to);
        }
        use_at(old_name->second, rename.time - 1);
        use_at(new_name->second, rename.time);
    }
    bool is_directory(FileId file) const {
        return tables_.files[file].type == FileType::directory ||
               (tables_.files[file].type == FileType::unknown && facts_.files[file].directory);
    }
    void mark(FileId file) {
        if (tables_.files[file].type == FileType::unknown) {
            facts_.files[file].directory = true;
        }
    }
    /// For the renames before and after.
    static void use_at(Name& name, int64_t time) {
        const auto place = std::lower_bound(name.uses.begin(), name.uses.end(), time);
        if (place == name.uses.end() || *place != time) {
            name.uses.insert(place, time);
        }
    }

    const Tables& tables_;
    LogFacts& facts_;
    std::map<std::string_view, Name> names_;
};

}  // namespace

void find_renamed_directories(const Tables& tables, LogFacts& facts) { Finder(tables, facts).run(); }

}  // namespace reprise
