// SPDX-License-Identifier: MIT
#include "formats/export/fio_names.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "formats/support/path.h"

namespace reprise {
namespace {

constexpr size_t kLongestName = 255;
constexpr int64_t kExchange = 2;  // RENAME_EXCHANGE

bool can_be_named(std::string_view name) {
    return !name.empty() && name.size() <= kLongestName && std::none_of(name.begin(), name.end(), [](char c) {
        return c == '\0' || std::isspace(static_cast<unsigned char>(c)) != 0;
    });
}

bool gives_name(OpKind kind) { return kind == OpKind::rename || kind == OpKind::link; }

}  // namespace

FioNames::FioNames(const LogReader& log) : tables_(log.tables()) {
    bool renames = false;
    OpBlock block;
    for (const BlockInfo& where : log.blocks()) {
        log.decode(where, block);
        for (size_t i = 0; i < block.count(); ++i) {
            const auto kind = static_cast<OpKind>(block.kind[i]);
            renames = renames || (gives_name(kind) && block.result[i] >= 0);
            if (kind == OpKind::mkdir && block.result[i] >= 0) {
                made_.insert(path_of(block.file[i]));
            }
        }
        log.forget(where);
    }
    if (renames) {
        made_.clear();
        log.for_each_in_time([this](TaskId, const Op& op, uint64_t) { see(op); });
        moved_.clear();
    }
}

std::string FioNames::path_of(FileId file) const {
    return file < tables_.files.size() ? std::string(tables_.path(file)) : std::string();
}

void FioNames::see(const Op& op) {
    const bool names = op.kind == OpKind::open || op.kind == OpKind::mkdir || gives_name(op.kind);
    if (!names || op.result < 0) {
        return;
    }
    const std::string path = path_of(op.file);
    if (path.empty()) {
        return;
    }
    const std::string first = first_place(path);
    if (op.kind == OpKind::mkdir) {
        made_.insert(first);
    } else if (op.kind == OpKind::open) {
        if (first != path) {
            at_first_[op.handle] = first;
        }
    } else if (const std::string to = path_of(op.file2); !to.empty() && to != path) {
        if (op.kind == OpKind::rename) {
            rename(path, to, (op.flags & kExchange) != 0);
        } else if (op.flags == 0) {  // else of an instance without a name
            moved_[to] = first;
        }
    }
}

/// Where what is called so now lay first: by itself, or in the nearest directory that was moved.
std::string FioNames::first_place(const std::string& path) const {
    for (size_t end = path.size(); end != 0 && end != std::string::npos; end = path.rfind('/', end - 1)) {
        if (const auto found = moved_.find(path.substr(0, end)); found != moved_.end()) {
            return found->second + path.substr(end);
        }
    }
    return path;
}

/// What `from` and all below it are, by their names once it is called `to`.
FioNames::Moved FioNames::take(const std::string& from, const std::string& to) {
    Moved out{{to, first_place(from)}};
    for (auto at = moved_.lower_bound(from); at != moved_.end() && at->first.starts_with(from);) {
        if (lies_below(at->first, from)) {
            out[to + at->first.substr(from.size())] = at->second;
        }
        at = is_or_lies_below(at->first, from) ? moved_.erase(at) : std::next(at);
    }
    return out;
}

void FioNames::rename(const std::string& from, const std::string& to, bool exchange) {
    const Moved other = take(to, from);
    moved_.merge(take(from, to));
    if (exchange) {
        moved_.insert(other.begin(), other.end());
    }
}

uint32_t FioNames::of(const Op& op) {
    const FileId file = tables_.file_of(op);
    if (!at_first_.empty() && op.handle != 0) {
        if (const auto found = at_first_.find(op.handle); found != at_first_.end()) {
            return number_of(found->second, file);
        }
    }
    const auto [at, fresh] = by_path_.try_emplace(tables_.files[file].path);
    if (fresh) {
        at->second = number_of(path_of(file), file);
    }
    return at->second;
}

uint32_t FioNames::number_of(const std::string& path, FileId file) {
    const auto [at, fresh] = known_.try_emplace(path, static_cast<uint32_t>(names_.size()));
    if (fresh) {
        std::string text = path.substr(std::min(path.find_first_not_of('/'), path.size()));
        if (!can_be_named(text)) {
            text = "reprise-file-" + std::to_string(file);
            replaced_.emplace_back(text, path);
        }
        names_.push_back({path, std::move(text)});
    }
    return at->second;
}

std::set<std::string> FioNames::missing() const {
    std::set<std::string> out;
    for (const Name& name : names_) {
        const std::filesystem::path folder = std::filesystem::path(name.path).parent_path();
        for (std::filesystem::path at = folder; at.has_relative_path(); at = at.parent_path()) {
            if (made_.contains(at.string())) {
                out.insert(folder.relative_path().string());
                break;
            }
        }
    }
    return out;
}

}  // namespace reprise
