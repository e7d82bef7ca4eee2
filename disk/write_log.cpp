// SPDX-License-Identifier: MIT
// The file: a magic number, then records of five numbers in the machine's byte order, each followed by its data.
#include "disk/write_log.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "formats/support/error.h"
#include "formats/support/limits.h"

namespace reprise {
namespace {

constexpr uint64_t kMagic = 0x31676f6c6b736964;  // "disklog1"

struct Record {
    uint64_t kind = 0, offset = 0, bytes = 0;
    int64_t arrived = 0;
    uint64_t data = 0;  // bytes that follow
};

Error cannot(const char* what, const std::filesystem::path& path) {
    return machine_error(std::string("cannot ") + what + " " + escape_line(path.string()) + ": " + reason(errno),
                         remedy(errno, ""));
}

}  // namespace

WriteLogWriter::WriteLogWriter(const std::filesystem::path& path)
    : file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600)) {
    if (!file_.valid() || ::write(file_.get(), &kMagic, sizeof kMagic) != ssize_t{sizeof kMagic}) {
        throw cannot("write", path);
    }
}

int WriteLogWriter::add(DiskWrite write, std::span<const std::byte> data) {
    Record record{static_cast<uint64_t>(write.kind), write.offset, write.bytes, write.arrived, data.size()};
    const iovec parts[] = {{&record, sizeof record}, {const_cast<std::byte*>(data.data()), data.size()}};
    errno = ENOSPC;  // where less is written
    return ::writev(file_.get(), parts, 2) == static_cast<ssize_t>(sizeof record + data.size()) ? 0 : errno;
}

WriteLog::WriteLog(const std::filesystem::path& path) : file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    uint64_t magic = 0;
    if (!file_.valid()) {
        throw cannot("read", path);
    }
    if (::pread(file_.get(), &magic, sizeof magic, 0) != ssize_t{sizeof magic} || magic != kMagic) {
        throw bad_input(path.string(), "this is not a log of a disk's writes", "name what `reprise disk` wrote");
    }
    const auto size = static_cast<uint64_t>(::lseek(file_.get(), 0, SEEK_END));
    uint64_t at = sizeof magic;
    for (Record record;
         ::pread(file_.get(), &record, sizeof record, static_cast<off_t>(at)) == ssize_t{sizeof record};) {
        at += sizeof record;
        if (record.data > size - std::min(at, size)) {
            break;
        }
        if (record.kind < 1 || record.kind > 3 || (record.kind == 1 && record.data != record.bytes)) {
            throw bad_input(path.string(), "damaged at byte " + std::to_string(at), "make it anew");
        }
        writes_.push_back({static_cast<DiskWrite::Kind>(record.kind), record.offset, record.bytes, record.arrived, at});
        at += record.data;
    }
}

void WriteLog::apply(const DiskWrite& write, int image) const {
    if (write.kind == DiskWrite::Kind::flush) {
        return;
    }
    std::vector<std::byte> data(std::min<uint64_t>(write.bytes, uint64_t{1} << 20));
    for (uint64_t done = 0; done < write.bytes;) {
        const auto bytes = static_cast<size_t>(std::min<uint64_t>(data.size(), write.bytes - done));
        const bool read = write.kind == DiskWrite::Kind::zero ||
                          ::pread(file_.get(), data.data(), bytes, static_cast<off_t>(write.data_at + done)) ==
                              static_cast<ssize_t>(bytes);
        errno = read ? ENOSPC : EIO;
        if (!read || ::pwrite(image, data.data(), bytes, static_cast<off_t>(write.offset + done)) !=
                         static_cast<ssize_t>(bytes)) {
            throw machine_error("cannot write an image: " + reason(errno),
                                remedy(errno, "choose another folder with -o"));
        }
        done += bytes;
    }
}

}  // namespace reprise
