// SPDX-License-Identifier: MIT
#include "replay/run/check_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <set>

#include "formats/support/error.h"
#include "formats/support/limits.h"
#include "formats/support/unique_fd.h"
#include "replay/content/differences.h"
#include "replay/plan/paths.h"

namespace reprise {
namespace {

constexpr size_t kPiece = size_t{1} << 20;

FileType type_of(mode_t mode) {
    if (S_ISREG(mode)) {
        return FileType::regular;
    }
    if (S_ISDIR(mode)) {
        return FileType::directory;
    }
    if (S_ISLNK(mode)) {
        return FileType::symlink;
    }
    return S_ISFIFO(mode) ? FileType::fifo : FileType::unknown;
}

std::string hex(uint64_t byte) {
    char text[8];
    std::snprintf(text, sizeof text, "0x%02x", static_cast<unsigned>(byte));
    return text;
}

/// Runs of bytes that differ in one piece.
void compare_piece(const std::string& path, uint64_t at, const Source& source, std::span<const std::byte> got,
                   std::span<const std::byte> want, TreeCheck& out) {
    each_difference(got, want, TreeCheck::kMost, [&](size_t begin, size_t end) {
        out.add({VerifyFinding::What::content,
                 path,
                 at + begin,
                 end - begin,
                 static_cast<uint64_t>(want[begin]),
                 static_cast<uint64_t>(got[begin]),
                 source.task,
                 source.op,
                 {}});
    });
}

class TreeWalk {
public:
    TreeWalk(int root, const FileModel& model, const TreeCheckOptions& options)
        : root_(root), model_(model), options_(options) {}

    TreeCheck run() {
        walk("");
        for (const auto& [path, file] : model_.names()) {
            if (!seen_.contains(path)) {
                const Source last = last_of(*file);
                out_.add({VerifyFinding::What::missing, path, 0, 0, 0, 0, last.task, last.op, {}});
            }
        }
        return std::move(out_);
    }

private:
    static Source last_of(const ModelFile& file) {
        const std::vector<Extent> extents = file.extents.of(0, std::max<uint64_t>(file.size, 1));
        return extents.back().source;
    }

    void walk(const std::string& directory) {  // NOLINT(misc-no-recursion): as deep as the tree
        const int fd =
            open_beneath(root_, directory.empty() ? "." : directory.c_str(), O_RDONLY | O_DIRECTORY, 0, Links::refuse);
        DIR* const stream = fd < 0 ? nullptr : ::fdopendir(fd);
        if (stream == nullptr) {
            const int error = fd < 0 ? -fd : errno;
            out_.add({VerifyFinding::What::unreadable, directory.empty() ? "." : directory, 0, 0, 0, 0, 0, 0,
                      reason(error)});
            return;
        }
        const std::unique_ptr<DIR, int (*)(DIR*)> closes(stream, ::closedir);
        std::vector<std::string> names;
        errno = 0;
        while (const dirent* const entry = ::readdir(stream)) {
            const std::string name = entry->d_name;
            if (name != "." && name != ".." && !(directory.empty() && name.starts_with(kMarkerName))) {
                names.push_back(name);
            }
        }
        if (errno != 0) {
            out_.add({VerifyFinding::What::unreadable, directory.empty() ? "." : directory, 0, 0, 0, 0, 0, 0,
                      reason(errno)});
        }
        for (const std::string& name : names) {
            entry(fd, directory.empty() ? name : directory + "/" + name, name);
        }
    }

    void entry(int parent, const std::string& path, const std::string& name) {  // NOLINT(misc-no-recursion): as above
        struct stat status {};
        if (::fstatat(parent, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
            out_.add({VerifyFinding::What::unreadable, path, 0, 0, 0, 0, 0, 0, reason(errno)});
            return;
        }
        const FileType type = type_of(status.st_mode);
        const ModelFilePointer file = model_.find(path);
        if (file == nullptr) {
            const bool ignored =
                std::find(options_.ignored.begin(), options_.ignored.end(), path) != options_.ignored.end();
            if (!ignored) {
                leads_to_known(path) ? walk(path) : out_.add({VerifyFinding::What::extra, path, 0, 0, 0, 0, 0, 0, {}});
            }
            return;
        }
        seen_.insert(path);
        ++out_.files;
        if (type != file->type) {
            out_.add({VerifyFinding::What::type,
                      path,
                      0,
                      0,
                      static_cast<uint64_t>(file->type),
                      static_cast<uint64_t>(type),
                      0,
                      0,
                      {}});
        } else if (type == FileType::directory) {
            walk(path);
        } else if (type == FileType::regular) {
            regular(path, *file, static_cast<uint64_t>(status.st_size));
        } else if (type == FileType::symlink) {
            link(parent, path, name, *file);
        }
    }

    /// Directories above what the log names need not be in it.
    bool leads_to_known(const std::string& path) const {
        const auto below = model_.names().lower_bound(path + "/");
        return below != model_.names().end() && below->first.starts_with(path + "/");
    }

    void link(int parent, const std::string& path, const std::string& name, const ModelFile& file) {
        std::string target(4096, '\0');
        const ssize_t n = ::readlinkat(parent, name.c_str(), target.data(), target.size());
        target.resize(n > 0 ? static_cast<size_t>(n) : 0);
        if (!file.unordered && target != file.target) {
            out_.add({VerifyFinding::What::target, path, 0, 0, 0, 0, 0, 0,
                      "'" + target + "', expected '" + file.target + "'"});
        }
    }

    void regular(const std::string& path, const ModelFile& file, uint64_t size) {
        if (file.unordered) {
            out_.unchecked += size;
            return;
        }
        if (size != file.size) {
            const Source last = last_of(file);
            out_.add({VerifyFinding::What::size, path, 0, 0, file.size, size, last.task, last.op, {}});
        }
        if (!options_.content) {
            return;
        }
        const UniqueFd fd(open_beneath(root_, path.c_str(), O_RDONLY | O_NOFOLLOW, 0, Links::refuse));
        if (!fd.valid()) {
            out_.add({VerifyFinding::What::unreadable, path, 0, 0, 0, 0, 0, 0, reason(-fd.get())});
            return;
        }
        check_bytes(
            fd.get(), path, file.extents.of(0, std::min(size, file.size)),
            [](const Source& source) { return source.is != Source::Is::unknown; }, out_);
        if (options_.progress) {
            options_.progress(out_.bytes);
        }
    }

    int root_;
    const FileModel& model_;
    const TreeCheckOptions& options_;
    TreeCheck out_;
    std::set<std::string> seen_;
};

}  // namespace

std::string_view what_name(VerifyFinding::What what) {
    switch (what) {
        case VerifyFinding::What::missing: return "missing";
        case VerifyFinding::What::extra: return "extra";
        case VerifyFinding::What::type: return "type";
        case VerifyFinding::What::size: return "size";
        case VerifyFinding::What::target: return "target";
        case VerifyFinding::What::content: return "content";
        case VerifyFinding::What::read: return "read";
        case VerifyFinding::What::unreadable: return "unreadable";
    }
    return "?";
}

std::string VerifyFinding::sentence() const {
    const std::string name = "/" + escape_line(path);
    const std::string by = task == 0 ? "as prepared" : "op " + std::to_string(op) + " of task " + std::to_string(task);
    switch (what) {
        case What::missing: return name + " is not there" + (task == 0 ? "" : "; last written by " + by);
        case What::extra: return name + " should not be there";
        case What::type: return name + " is of another type";
        case What::size:
            return name + " has " + std::to_string(got) + " bytes, expected " + std::to_string(want) +
                   (task == 0 ? "" : "; last written by " + by);
        case What::target: return name + " is a link to " + escape_line(detail);
        case What::content:
        case What::read: break;
        case What::unreadable: return name + " cannot be read: " + detail;
    }
    const std::string where = bytes == 1 ? "byte " + std::to_string(offset)
                                         : std::to_string(bytes) + " bytes from " + std::to_string(offset) + " on";
    const std::string values = (bytes == 1 ? " is " : " differ: first ") + hex(got) + ", expected " + hex(want);
    return name + ": " + where + values +
           (what == What::read ? ", read by " + by
            : task == 0        ? ", as prepared"
                               : ", as written by " + by) +
           (detail.empty() ? "" : "; " + detail);
}

void TreeCheck::add(VerifyFinding finding) {
    ++count;
    if (findings.size() < kMost) {
        findings.push_back(std::move(finding));
    }
}

void check_bytes(int fd, const std::string& path, const std::vector<Extent>& extents,
                 const std::function<bool(const Source&)>& allowed, TreeCheck& out) {
    std::vector<std::byte> got(kPiece), want(kPiece);
    for (const Extent& extent : extents) {
        if (!allowed(extent.source)) {
            out.unchecked += extent.to - extent.from;
            continue;
        }
        for (uint64_t at = extent.from; at < extent.to;) {
            const auto bytes = static_cast<size_t>(std::min<uint64_t>(kPiece, extent.to - at));
            const ssize_t n = ::pread(fd, got.data(), bytes, static_cast<off_t>(at));
            if (n <= 0) {
                if (n < 0 && errno == EINTR) {
                    continue;
                }
                out.add({n == 0 ? VerifyFinding::What::size : VerifyFinding::What::unreadable, path, at, 0, extent.to,
                         at, extent.source.task, extent.source.op, n == 0 ? "" : reason(errno)});
                return;
            }
            const std::span<std::byte> wanted(want.data(), static_cast<size_t>(n));
            fill_from(extent.source, at, wanted);
            if (std::memcmp(got.data(), want.data(), wanted.size()) != 0) {
                compare_piece(path, at, extent.source, {got.data(), wanted.size()}, wanted, out);
            }
            out.bytes += wanted.size();
            at += wanted.size();
        }
    }
}

TreeCheck check_tree(int root, const FileModel& model, const TreeCheckOptions& options) {
    return TreeWalk(root, model, options).run();
}

}  // namespace reprise
