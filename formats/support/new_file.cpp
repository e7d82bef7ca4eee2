// SPDX-License-Identifier: MIT
#include "formats/support/new_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>

#include "formats/support/error.h"
#include "formats/support/limits.h"

namespace reprise {
UndoneAtEnd unfinished_file(const std::filesystem::path& path) {
    return UndoneAtEnd([](const char* left, const char*) { ::unlink(left); }, path);
}

namespace {

/// Whether a writer holds the lock of create_new_file().
bool in_the_making(const std::filesystem::path& path) {
    const UniqueFd there(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    return there.valid() && ::flock(there.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

}  // namespace

UniqueFd create_new_file(const std::filesystem::path& path, mode_t mode) {
    constexpr int kTries = 10;  // somebody may put a link there again and again
    for (int i = 0; i < kTries; ++i) {
        UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
        if (file.valid() || errno != EEXIST) {
            if (file.valid()) {
                ::flock(file.get(), LOCK_EX | LOCK_NB);  // not everywhere; then as if nobody else wrote it
            }
            return file;
        }
        struct stat there {};
        if (::lstat(path.c_str(), &there) != 0) {
            continue;
        }
        if (!S_ISREG(there.st_mode) && !S_ISLNK(there.st_mode)) {
            return UniqueFd(::open(path.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC));
        }
        if (S_ISREG(there.st_mode) && in_the_making(path)) {
            errno = EBUSY;
            return UniqueFd();
        }
        if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
            return UniqueFd();
        }
    }
    errno = EEXIST;
    return UniqueFd();
}

void check_output(const std::filesystem::path& path, bool overwrite) {
    using std::filesystem::file_type;
    if (path.empty()) {
        throw usage_error("the output has no name", "name a file with -o");
    }
    std::error_code ignored;
    const file_type type = path == "-" ? file_type::not_found : std::filesystem::status(path, ignored).type();
    if (type == file_type::directory) {
        throw usage_error("the output is a directory: " + escape_line(path.native()), "name a file with -o");
    }
    if (type == file_type::regular && !overwrite) {
        throw usage_error(escape_line(path.native()) + " exists",
                          "use --force to overwrite it, or choose another file with -o");
    }
}

ScratchDir::ScratchDir() {
    std::string name = (std::filesystem::temp_directory_path() / "reprise-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
        throw machine_error("cannot make a directory like " + escape_line(name) + ": " + reason(errno),
                            remedy(errno, "set TMPDIR to a directory that this user may write to"));
    }
    path_ = name;
}

ScratchDir::~ScratchDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

}  // namespace reprise
