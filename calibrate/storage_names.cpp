// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include "calibrate/mounted.h"
#include "calibrate/storage_folder.h"
#include "formats/support/percentile.h"
#include "formats/support/unique_fd.h"

namespace reprise {
namespace {

int64_t closing(const StorageFolder& in) {
    const std::string path = in.folder() + "/closed";
    constexpr size_t kTimes = 200;
    std::vector<int64_t> took;
    for (size_t i = 0; i < kTimes; ++i) {
        UniqueFd file(::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
        char byte = 0;
        if (!file.valid() || (i == 0 && ::write(file.get(), "x", 1) != 1) || ::pread(file.get(), &byte, 1, 0) < 0) {
            in.failed("cannot create a file");
        }
        const int64_t begin = monotonic_ns();
        file.reset();
        took.push_back(monotonic_ns() - begin);
        in.check();
    }
    ::unlink(path.c_str());
    return median(std::move(took));
}

/// Reading changes a time stamp, which some file systems then ask their server for.
int64_t attributes(const StorageFolder& in) {
    const std::string path = in.folder() + "/read";
    const UniqueFd file(::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
    char byte = 'x';
    if (!file.valid() || ::write(file.get(), &byte, 1) != 1 || ::fsync(file.get()) != 0) {
        in.failed("cannot create a file");
    }
    constexpr size_t kTimes = 50;
    std::vector<int64_t> took;
    for (size_t i = 0; i < kTimes; ++i) {
        (void)::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
        struct stat st {};
        if (::pread(file.get(), &byte, 1, 0) != 1) {
            in.failed("cannot read a file");
        }
        const int64_t begin = monotonic_ns();
        (void)::fstat(file.get(), &st);
        took.push_back(monotonic_ns() - begin);
        in.check();
    }
    ::unlink(path.c_str());
    return median(std::move(took));
}

/// Of many files' first opens, each: file systems fetch what they know of several files at once. 0 where names
/// cannot be dropped.
int64_t cold_names(const StorageFolder& in, const StorageModel& m) {
    constexpr int kNames = 256;
    const std::string inside = in.folder() + "/names";
    if (::geteuid() != 0 || ::mkdir(inside.c_str(), 0700) != 0) {
        return 0;
    }
    const auto path = [&](int i) { return inside + "/name" + std::to_string(i); };
    for (int i = 0; i < kNames; ++i) {
        const UniqueFd file(::open(path(i).c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
        if (!file.valid() || ::write(file.get(), "x", 1) != 1) {
            in.failed("cannot create a file");
        }
    }
    const bool dropped = drop_names(inside);
    const int64_t begin = monotonic_ns();
    for (int i = 0; i < kNames && dropped; ++i) {
        ::close(::open(path(i).c_str(), O_RDONLY | O_CLOEXEC));
    }
    const int64_t each = (monotonic_ns() - begin) / kNames - m.call_ns;  // less the close
    for (int i = 0; i < kNames; ++i) {
        ::unlink(path(i).c_str());
    }
    ::rmdir(inside.c_str());
    return dropped ? std::max(each, m.open_ns) : 0;
}

struct Listing {
    int64_t first_ns = 0, end_ns = 0;  // of the first call, of the one that returns nothing
    int64_t all_ns = 0;
    int names = 0;
};

Listing list(const std::string& directory) {
    const UniqueFd dir(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    alignas(std::max_align_t) std::array<char, 32'768> text{};
    Listing out;
    for (bool first = true;; first = false) {
        const int64_t begin = monotonic_ns();
        const long got = ::syscall(SYS_getdents64, dir.get(), text.data(), text.size());
        const int64_t took = monotonic_ns() - begin;
        out.all_ns += took;
        if (first) {
            out.first_ns = took;
        }
        if (got <= 0) {
            out.end_ns = took;
            return out;
        }
        for (long at = 0; at < got; ++out.names) {
            uint16_t length = 0;  // d_reclen of struct linux_dirent64
            std::memcpy(&length, text.data() + at + 16, sizeof length);
            at += length;
        }
    }
}

/// `made` names are in the folder.
void listings(const StorageFolder& in, int made, StorageModel& m) {
    constexpr int kTimes = 25, kDirectories = 32;
    std::vector<int64_t> end, name;
    for (int i = 0; i < kTimes; ++i) {
        const Listing found = list(in.folder());
        end.push_back(found.end_ns);
        name.push_back((found.all_ns - found.end_ns) / std::max(found.names, 1));
        in.check();
    }
    m.list_ns = median(std::move(end));
    m.list_name_ns = made > 0 ? median(std::move(name)) : 0;
    const std::string inside = in.folder() + "/listed";
    if (::geteuid() != 0 || ::mkdir(inside.c_str(), 0700) != 0) {
        return;
    }
    const auto directory = [&](int i) { return inside + "/" + std::to_string(i); };
    for (int i = 0; i < kDirectories; ++i) {
        const std::string path = directory(i);
        if (::mkdir(path.c_str(), 0700) != 0 ||
            !UniqueFd(::open((path + "/name").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600)).valid()) {
            in.failed("cannot create a file");
        }
    }
    const bool dropped = drop_names(inside);
    std::vector<int64_t> cold, again;
    for (std::vector<int64_t>* took : {&cold, &again}) {
        for (int i = 0; i < kDirectories && dropped; ++i) {
            took->push_back(list(directory(i)).first_ns);
        }
    }
    for (int i = 0; i < kDirectories; ++i) {
        ::unlink((directory(i) + "/name").c_str());
        ::rmdir(directory(i).c_str());
    }
    ::rmdir(inside.c_str());
    m.list_cold_ns = dropped ? std::max<int64_t>(median(std::move(cold)) - median(std::move(again)), 0) : 0;
}

/// Writes of a page and a half: every other one begins within a page. Some file systems make two requests of those.
int64_t parts_of_pages(const StorageFolder& in, const std::string& path) {
    constexpr size_t kBytes = 4096 + 2048;
    const UniqueFd file(::open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600));
    const StorageBuffer buffer(8192);
    std::array<std::vector<int64_t>, 2> took;
    for (size_t i = 0; i < 200; ++i) {
        const int64_t begin = monotonic_ns();
        if (::write(file.get(), buffer.data, kBytes) != static_cast<ssize_t>(kBytes)) {
            in.failed("cannot write a file");
        }
        took[i % 2].push_back(monotonic_ns() - begin);
        in.check();
    }
    const int64_t whole = median(std::move(took[0])), part = median(std::move(took[1]));
    return part > whole + whole / 4 ? part - whole : 0;  // less is no second request
}

}  // namespace

void measure_names(const StorageFolder& in, StorageModel& m) {
    int made = 0;
    const auto path = [&](int i) { return in.folder() + "/name" + std::to_string(i); };
    m.make_ns = median(in.timed(
        [&] {
            const UniqueFd file(::open(path(made).c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
            if (!file.valid()) {
                in.failed("cannot create a file");
            }
            ++made;
        },
        500));
    int at = 0;
    m.open_ns =
        median(in.timed([&] { ::close(::open(path(at++ % std::max(made, 1)).c_str(), O_RDONLY | O_CLOEXEC)); }, 1'000));
    m.open_ns = std::max<int64_t>(m.open_ns - m.call_ns, 0);  // less the close
    struct stat st {};
    m.stat_ns = median(in.timed([&] { (void)::stat(path(at++ % std::max(made, 1)).c_str(), &st); }, 1'000));
    constexpr std::array<timespec, 2> kTimes{{{1'000'000'000, 0}, {1'000'000'000, 0}}};
    m.change_ns = median(in.timed(
        [&] {
            const std::string name = path(at++ % std::max(made, 1));
            if (at % 2 == 0) {
                (void)::chmod(name.c_str(), 0640);
            } else {
                (void)::utimensat(AT_FDCWD, name.c_str(), kTimes.data(), 0);
            }
        },
        500));
    listings(in, made, m);
    int removed = 0;
    m.remove_ns = median(in.timed([&] { ::unlink(path(removed++).c_str()); }, static_cast<size_t>(made)));
    m.open_cold_ns = cold_names(in, m);
    m.close_ns = closing(in);
    m.fstat_ns = attributes(in);
    const UniqueFd asked(::open(in.folder().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    m.ioctl_ns = median(in.timed([&] { (void)::isatty(asked.get()); }, 200));
}

void measure_small_writes(const StorageFolder& in, StorageModel& m) {
    const std::string path = in.folder() + "/written";
    for (const int64_t bytes : {int64_t{4} << 10, int64_t{64} << 10, int64_t{1} << 20}) {
        constexpr int64_t kAll = int64_t{8} << 20;  // of each size
        const UniqueFd file(::open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600));
        const StorageBuffer buffer(static_cast<size_t>(bytes));
        std::vector<int64_t> took;
        for (int64_t at = 0; at < kAll && took.size() < 256; at += bytes) {
            const int64_t begin = monotonic_ns();
            if (::pwrite(file.get(), buffer.data, static_cast<size_t>(bytes), at) != bytes) {
                in.failed("cannot write a file");
            }
            took.push_back(monotonic_ns() - begin);
            in.check();
        }
        m.write.push_back({bytes, median(std::move(took))});
    }
    for (size_t i = 1; i < m.write.size(); ++i) {
        m.write[i].ns = std::max(m.write[i].ns, m.write[i - 1].ns);
    }
    m.write_part_ns = parts_of_pages(in, path);
    ::unlink(path.c_str());
}

}  // namespace reprise
