// SPDX-License-Identifier: MIT
#include "disk/logged_disk.h"

#define FUSE_USE_VERSION 34
#include <fcntl.h>
#include <fuse.h>
#include <linux/falloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "disk/write_log.h"
#include "formats/support/error.h"
#include "formats/support/limits.h"
#include "formats/support/unique_fd.h"

namespace reprise {
namespace {

int64_t now_unix_ns() {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

/// What a request needs. One at a time: the log is in the order in which the image was changed.
struct Disk {
    Disk(const std::filesystem::path& image_path, const std::filesystem::path& log_path)
        : image(::open(image_path.c_str(), O_RDWR | O_CLOEXEC)), log(log_path) {
        if (!image.valid()) {
            throw machine_error("cannot open " + escape_line(image_path.string()) + ": " + reason(errno), "");
        }
    }
    UniqueFd image;
    WriteLogWriter log;
    std::mutex lock;
};

Disk& disk() { return *static_cast<Disk*>(::fuse_get_context()->private_data); }
bool is_disk(const char* path) { return std::string(path) == std::string("/") + kDiskName; }

int get_attributes(const char* path, struct stat* out, fuse_file_info*) {
    *out = {};
    if (std::string(path) == "/") {
        out->st_mode = S_IFDIR | 0700;
        out->st_nlink = 2;
        return 0;
    }
    if (!is_disk(path) || ::fstat(disk().image.get(), out) != 0) {
        return is_disk(path) ? -errno : -ENOENT;
    }
    out->st_mode = S_IFREG | 0600;
    return 0;
}

int read_directory(const char* path, void* buffer, fuse_fill_dir_t fill, off_t, fuse_file_info*, fuse_readdir_flags) {
    if (std::string(path) != "/") {
        return -ENOENT;
    }
    for (const char* const name : {".", "..", kDiskName}) {
        fill(buffer, name, nullptr, 0, static_cast<fuse_fill_dir_flags>(0));
    }
    return 0;
}

int open_disk(const char* path, fuse_file_info*) { return is_disk(path) ? 0 : -ENOENT; }

int read_disk(const char*, char* out, size_t bytes, off_t offset, fuse_file_info*) {
    const ssize_t n = ::pread(disk().image.get(), out, bytes, offset);
    return n < 0 ? -errno : static_cast<int>(n);
}

int write_disk(const char*, const char* data, size_t bytes, off_t offset, fuse_file_info*) {
    const int64_t arrived = now_unix_ns();
    const std::lock_guard guard(disk().lock);
    const ssize_t n = ::pwrite(disk().image.get(), data, bytes, offset);
    if (n < 0) {
        return -errno;
    }
    const auto done = static_cast<size_t>(n);
    const int error = disk().log.add({DiskWrite::Kind::write, static_cast<uint64_t>(offset), done, arrived, 0},
                                     {reinterpret_cast<const std::byte*>(data), done});
    return error != 0 ? -error : static_cast<int>(n);
}

int sync_disk(const char*, int, fuse_file_info*) {
    const int64_t arrived = now_unix_ns();
    const std::lock_guard guard(disk().lock);
    return -disk().log.add({DiskWrite::Kind::flush, 0, 0, arrived, 0}, {});
}

int allocate(const char*, int mode, off_t offset, off_t bytes, fuse_file_info*) {
    if ((mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)) == 0) {
        return -EOPNOTSUPP;
    }
    const int64_t arrived = now_unix_ns();
    const std::lock_guard guard(disk().lock);
    if (::fallocate(disk().image.get(), mode, offset, bytes) != 0) {
        return -errno;
    }
    return -disk().log.add(
        {DiskWrite::Kind::zero, static_cast<uint64_t>(offset), static_cast<uint64_t>(bytes), arrived, 0}, {});
}

fuse_operations operations() {
    fuse_operations out{};
    out.getattr = get_attributes;
    out.readdir = read_directory;
    out.open = open_disk;
    out.read = read_disk;
    out.write = write_disk;
    out.fsync = sync_disk;
    out.fallocate = allocate;
    return out;
}

}  // namespace

bool can_serve_disks() { return true; }

int serve_disk(const std::filesystem::path& image, const std::filesystem::path& log,
               const std::filesystem::path& folder) {
    const auto served = std::make_unique<Disk>(image, log);
    const fuse_operations calls = operations();
    std::string name = "reprise", option = "-ofsname=reprise-disk,default_permissions";
    std::vector<char*> words{name.data(), option.data()};
    fuse_args arguments{static_cast<int>(words.size()), words.data(), 0};
    const std::unique_ptr<fuse, void (*)(fuse*)> session(
        ::fuse_new(&arguments, &calls, sizeof calls, served.get()),
        [](fuse* one) { one != nullptr ? ::fuse_destroy(one) : void(); });
    ::fuse_opt_free_args(&arguments);
    if (session == nullptr || ::fuse_mount(session.get(), folder.c_str()) != 0) {
        throw machine_error("cannot mount a FUSE file system at " + escape_line(folder.string()) + ": " + reason(errno),
                            "FUSE requires /dev/fuse, and root or fusermount3");
    }
    const int result = ::fuse_loop(session.get());
    ::fuse_unmount(session.get());
    return result < 0 ? 4 : 0;
}

}  // namespace reprise
