// SPDX-License-Identifier: MIT
#include "formats/support/new_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "formats/support/error.h"
#include "formats/support/limits.h"

namespace reprise {
namespace {

// Fixed, as a signal handler reads it.
struct Slot {
    std::atomic<pid_t> owner{0};  // 0: free; kTaken: its path is being written
    std::array<char, PATH_MAX> path{};
};
constexpr pid_t kTaken = -1;
std::array<Slot, 16> slots;

void end_by(int signal) {
    remove_unfinished_files();
    std::signal(signal, SIG_DFL);
    ::raise(signal);
}

// What somebody else handles or ignores stays so.
void watch_signals() {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
        struct sigaction action {};
        if (::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_DFL) {
            std::signal(signal, end_by);
        }
    }
}

}  // namespace

UnfinishedFile::UnfinishedFile(const std::filesystem::path& path) {
    if (path.native().size() >= PATH_MAX) {
        return;
    }
    for (size_t i = 0; i < slots.size() && slot_ < 0; ++i) {
        pid_t none = 0;
        if (slots[i].owner.compare_exchange_strong(none, kTaken)) {
            std::memcpy(slots[i].path.data(), path.c_str(), path.native().size() + 1);
            slots[i].owner.store(::getpid());
            slot_ = static_cast<int>(i);
        }
    }
    watch_signals();
}

UnfinishedFile& UnfinishedFile::operator=(UnfinishedFile&& other) noexcept {
    if (this != &other) {
        forget();
        slot_ = std::exchange(other.slot_, -1);
    }
    return *this;
}

void UnfinishedFile::forget() {
    if (slot_ >= 0) {
        slots[static_cast<size_t>(slot_)].owner.store(0);
        slot_ = -1;
    }
}

void remove_unfinished_files() {
    for (const Slot& slot : slots) {
        if (slot.owner.load() == ::getpid()) {
            ::unlink(slot.path.data());
        }
    }
}

UniqueFd create_new_file(const std::filesystem::path& path, mode_t mode) {
    constexpr int kTries = 10;  // somebody may put a link there again and again
    for (int i = 0; i < kTries; ++i) {
        UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
        if (file.valid() || errno != EEXIST) {
            return file;
        }
        struct stat there {};
        if (::lstat(path.c_str(), &there) != 0) {
            continue;
        }
        if (!S_ISREG(there.st_mode) && !S_ISLNK(there.st_mode)) {
            return UniqueFd(::open(path.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC));
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
