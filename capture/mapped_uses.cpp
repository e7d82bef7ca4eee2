// SPDX-License-Identifier: MIT
#include "capture/mapped_uses.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <set>
#include <string>

#include "capture/context_records.h"
#include "formats/support/bytes.h"
#include "formats/support/error.h"
#include "formats/support/unique_fd.h"

namespace reprise {
namespace {

constexpr uint64_t kPage = 4096, kTable = uint64_t{2} << 20;  // addresses of a page, and of a table of pages
constexpr uint64_t kLeast = 64 << 10;  // bytes of a mapping: one fault brings all of a smaller one

[[noreturn]] void refuse(const std::string& why) {
    throw machine_error("--with mapped-uses: " + why, "record without it");
}

/// Clears the marks of all mapped files of a process. False: it is gone, or not ours.
bool clear_marks(pid_t pid) {
    const UniqueFd file(::open(("/proc/" + std::to_string(pid) + "/clear_refs").c_str(), O_WRONLY | O_CLOEXEC));
    return file.valid() && ::write(file.get(), "3", 1) == 1;
}

/// A page of the tool's own program, mapped for as long as this lives.
struct OwnPage {
    void* at = MAP_FAILED;
    OwnPage() {
        const UniqueFd file(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
        at = file.valid() ? ::mmap(nullptr, kPage, PROT_READ, MAP_PRIVATE, file.get(), 0) : MAP_FAILED;
    }
    ~OwnPage() {
        if (at != MAP_FAILED) {
            ::munmap(at, kPage);
        }
    }
    OwnPage(const OwnPage&) = delete;
    OwnPage& operator=(const OwnPage&) = delete;
    uint64_t address() const { return reinterpret_cast<uint64_t>(at); }
    void use() const { static_cast<void>(*static_cast<const volatile char*>(at)); }
};

/// Its physical address; 0: not told.
uint64_t frame_of(uint64_t address) {
    constexpr uint64_t kFrameBits = (uint64_t{1} << 55) - 1, kThere = uint64_t{1} << 63;
    const UniqueFd file(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
    uint64_t entry = 0;
    const bool read = file.valid() && ::pread(file.get(), &entry, sizeof entry,
                                              static_cast<off_t>(address / kPage * sizeof entry)) == sizeof entry;
    return read && (entry & kThere) != 0 ? (entry & kFrameBits) * kPage : 0;
}

bool bit(const std::vector<uint64_t>& bits, uint64_t i) { return i / 64 < bits.size() && (bits[i / 64] >> i % 64 & 1); }

/// A line of /proc/PID/maps.
struct MapsLine {
    unsigned long long begin = 0, end = 0, offset = 0, inode = 0;
    char rights[8] = "";
    unsigned major = 0, minor = 0;
    int name = 0;
    bool parse(const std::string& line) {
        return std::sscanf(line.c_str(), "%llx-%llx %7s %llx %x:%x %llu %n", &begin, &end, rights, &offset, &major,
                           &minor, &inode, &name) >= 7;
    }
    /// Of a file that may be data.
    bool may_be_data(const std::string& line) const {
        const std::string_view path = std::string_view(line).substr(static_cast<size_t>(name));
        return inode != 0 && rights[0] == 'r' && rights[2] != 'x' && end - begin >= kLeast && path.starts_with('/') &&
               !path.starts_with("/dev/") && !path.starts_with("/memfd:") && !path.starts_with("/SYSV");
    }
};

}  // namespace

MappedUses::MappedUses(BpfPrograms& bpf) : bpf_(bpf) { find_base(); }

bool MappedUses::finds(uint64_t base, uint32_t levels, const page_root& self, uint64_t address, uint64_t frame) {
    const page_tables* const found = bpf_.read_page_tables({self.table, base, address / kTable * kTable, 1, levels});
    if (found == nullptr) {
        refuse("the kernel refuses to run the program that reads page tables");
    }
    const page_table& table = found->slots[0];
    const uint64_t entry = table.entries[address / kPage % PAGE_ENTRIES];
    return table.kind == PAGE_TABLE_PAGES && (entry & PAGE_PRESENT) != 0 && (entry & PAGE_FRAME) == frame;
}

/// Kernels place their view of memory at random, in steps of a GiB: the one is right by which a page of our own is
/// found where the kernel says that it is.
void MappedUses::find_base() {
    constexpr uint64_t kStep = uint64_t{1} << 30, kMost = 65536;  // 64 TiB
    const OwnPage page;
    if (page.at == MAP_FAILED) {
        refuse("its own program cannot be mapped");
    }
    page.use();
    const uint64_t frame = frame_of(page.address());
    if (frame == 0) {
        refuse("/proc/self/pagemap does not tell where pages lie (CAP_SYS_ADMIN)");
    }
    const std::vector<page_root> roots = bpf_.page_roots();
    const auto self = std::find_if(roots.begin(), roots.end(),
                                   [](const page_root& root) { return root.pid == static_cast<uint32_t>(::getpid()); });
    if (self == roots.end()) {
        refuse("the kernel does not tell where page tables lie; this works outside of PID namespaces only");
    }
    for (uint64_t i = 0; i < kMost; ++i) {
        for (const uint32_t levels : {4U, 5U}) {
            const uint64_t base = self->table / kStep * kStep - i * kStep;
            if (finds(base, levels, *self, page.address(), frame)) {
                base_ = base;
                levels_ = levels;
                return check_marks(page.address());
            }
        }
    }
    refuse("page tables are not where they are expected");
}

bool MappedUses::is_used(uint64_t root, uint64_t address) {
    const page_tables* const found = bpf_.read_page_tables({root, base_, address / kTable * kTable, 1, levels_});
    return found != nullptr && found->slots[0].kind == PAGE_TABLE_PAGES &&
           (found->slots[0].entries[address / kPage % PAGE_ENTRIES] & PAGE_USED) != 0;
}

/// Marks that are cleared are set again by the next use, once the processor has forgotten the page.
void MappedUses::check_marks(uint64_t address) {
    uint64_t root = 0;
    for (const page_root& one : bpf_.page_roots()) {
        root = one.pid == static_cast<uint32_t>(::getpid()) ? one.table : root;
    }
    constexpr int kTries = 1000;  // where other programs have the processors it takes its time
    bool cleared = false;
    for (int i = 0; i < kTries; ++i) {
        if (!clear_marks(::getpid())) {
            refuse("/proc/PID/clear_refs cannot be written (CONFIG_PROC_PAGE_MONITOR)");
        }
        cleared = cleared || !is_used(root, address);
        const timespec wait{0, 1'000'000};
        ::nanosleep(&wait, nullptr);
        static_cast<void>(*reinterpret_cast<const volatile char*>(address));
        if (cleared && is_used(root, address)) {
            return;
        }
    }
    refuse(cleared ? "the processor does not mark pages that are used" : "marks of used pages are not cleared");
}

/// Mappings of files that have no code in this process. False: the process is gone.
bool MappedUses::find_ranges(pid_t pid, Process& process) const {
    std::ifstream in("/proc/" + std::to_string(pid) + "/maps");
    std::set<std::pair<uint64_t, uint64_t>> code;  // device and inode
    struct Found {
        MapsLine line;
        std::pair<uint64_t, uint64_t> file;
    };
    std::vector<Found> found;
    bool any = false;
    for (std::string text; std::getline(in, text);) {
        MapsLine line;
        if (!line.parse(text)) {
            continue;
        }
        any = true;
        const std::pair<uint64_t, uint64_t> file{uint64_t{line.major} << 32 | line.minor, line.inode};
        if (line.rights[2] == 'x') {
            code.insert(file);
        } else if (line.may_be_data(text)) {
            found.push_back({line, file});
        }
    }
    for (const Found& one : found) {
        if (code.contains(one.file)) {
            continue;
        }
        Range& range = process.ranges[one.line.begin];
        if (range.end != one.line.end || range.inode != one.line.inode || range.offset != one.line.offset) {
            range = {one.line.end, one.line.inode, one.line.offset, {}, 0};
        }
        range.sample = samples_;
    }
    std::erase_if(process.ranges, [&](const auto& entry) { return entry.second.sample != samples_; });
    return any;
}

/// A page that was not there at the last sample has had a fault since, which is recorded; the marks of its neighbours,
/// which the fault mapped, say nothing.
void MappedUses::look(uint64_t root, uint64_t begin, Range& range, Found& found) {
    std::vector<uint64_t> there((range.end - begin) / kPage / 64 + 1);
    uint64_t run = 0, length = 0;  // address, pages
    const auto put = [&] {
        if (length != 0) {
            found.runs.push_back(static_cast<int64_t>(run | (length - 1)));
        }
        length = 0;
    };
    const auto see = [&](uint64_t address, uint64_t entry) {
        if (address < begin || address >= range.end || (entry & PAGE_PRESENT) == 0) {
            return;
        }
        const uint64_t i = (address - begin) / kPage;
        found.any = true;
        there[i / 64] |= uint64_t{1} << i % 64;
        if ((entry & PAGE_USED) == 0 || !bit(range.there, i)) {
            return;
        }
        if (length == 0 || address != run + length * kPage || length == kPage) {
            put();
            run = address;
        }
        ++length;
    };
    for (uint64_t at = begin / kTable * kTable; at < range.end; at += PAGE_TABLES * kTable) {
        const auto count =
            static_cast<uint32_t>(std::min<uint64_t>((range.end - at + kTable - 1) / kTable, PAGE_TABLES));
        const page_tables* const tables = bpf_.read_page_tables({root, base_, at, count, levels_});
        for (uint32_t i = 0; tables != nullptr && i < count; ++i) {
            const page_table& table = tables->slots[i];
            found.huge = found.huge || (table.kind == PAGE_TABLE_HUGE && (table.entries[0] & PAGE_USED) != 0);
            for (uint64_t page = 0; table.kind == PAGE_TABLE_PAGES && page < PAGE_ENTRIES; ++page) {
                see(at + i * kTable + page * kPage, table.entries[page]);
            }
        }
    }
    put();
    range.there = std::move(there);
}

void MappedUses::tell(pid_t pid, uint64_t from, uint64_t until, const Found& found, RawWriter& to) {
    constexpr size_t kMost = 4096;  // runs of a record
    const std::vector<int64_t>& runs = found.runs;
    for (size_t at = 0; at < runs.size() || (at == 0 && found.huge); at += kMost) {
        const size_t count = std::min(kMost, runs.size() - at);
        raw_uses record{};
        raw_part part{};
        part.type = RAW_PART_LIST;
        part.length = static_cast<raw_u16>(count);
        part.size = static_cast<raw_u16>(sizeof part + count * sizeof(raw_s64));
        record.head.type = RAW_USES;
        record.head.flags = found.huge ? RAW_FLAG_TRUNCATED : 0;
        record.head.size = static_cast<raw_u16>(sizeof record + part.size);
        record.head.pid = record.head.tid = static_cast<raw_u32>(pid);
        record.head.time = until;
        record.from = from;
        Bytes bytes;
        put_fixed(bytes, record);
        put_fixed(bytes, part);
        const auto* const first = reinterpret_cast<const uint8_t*>(runs.data() + at);
        bytes.insert(bytes.end(), first, first + count * sizeof(raw_s64));
        to.append(bytes);
    }
}

void MappedUses::sample(const page_root& root, RawWriter& to) {
    const auto pid = static_cast<pid_t>(root.pid);
    Process& process = processes_[pid];
    process.sample = samples_;
    if (!find_ranges(pid, process) || process.ranges.empty()) {
        process.since = 0;
        return;
    }
    const uint64_t until = monotonic_ns();
    Found found;
    for (auto& [begin, range] : process.ranges) {
        look(root.table, begin, range, found);
    }
    if (process.since != 0) {
        tell(pid, process.since, until, found, to);
    }
    // Clearing goes through all files of the process: not for those that use none of these pages.
    process.since = !found.any || clear_marks(pid) ? monotonic_ns() : 0;
}

void MappedUses::sample(RawWriter& to) {
    const uint64_t begin = monotonic_ns();
    if (begin < due_) {
        return;
    }
    ++samples_;
    for (const page_root& root : bpf_.page_roots()) {
        if (root.pid != static_cast<uint32_t>(::getpid())) {
            sample(root, to);
        }
    }
    std::erase_if(processes_, [&](const auto& entry) { return entry.second.sample != samples_; });
    const uint64_t took = monotonic_ns() - begin;
    spent_ns_ += took;
    due_ = begin + std::max(kInterval, took * kOneIn);
}

}  // namespace reprise
