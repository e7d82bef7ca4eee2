// SPDX-License-Identifier: MIT
#include "capture/probe.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstddef>
#include <ctime>
#include <functional>
#include <vector>

namespace reprise {
namespace {

constexpr size_t kPage = 4096, kHuge = size_t{2} << 20, kAround = 65536;
constexpr int kBatches = 16, kFewest = 3;
constexpr double kLongest = 10e6;  // ns that one kind may take: on a busy processor all of them take long

double now_ns() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

// The lower quarter: neither interrupts and other tasks, nor the luckiest moment.
double lower_quarter(std::vector<double>& values) {
    if (values.empty()) {
        return 0;
    }
    const auto at = values.begin() + static_cast<ptrdiff_t>(values.size() / 4);
    std::nth_element(values.begin(), at, values.end());
    return *at;
}

/// `once` gives the time of `events` of them; a first one warms up.
template <class F>
double each_of(int events, const F& once) {
    std::vector<double> times;
    once();
    const double begin = now_ns();
    for (int i = 0; i < kBatches && (i < kFewest || now_ns() - begin < kLongest); ++i) {
        times.push_back(once() / events);
    }
    return lower_quarter(times);
}

class Mapping {
public:
    Mapping(size_t bytes, int fd) : bytes_(bytes) {
        memory_ = ::mmap(nullptr, bytes, fd < 0 ? PROT_READ | PROT_WRITE : PROT_READ,
                         MAP_PRIVATE | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);
    }
    ~Mapping() {
        if (there()) {
            ::munmap(memory_, bytes_);
        }
    }
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;
    bool there() const { return memory_ != MAP_FAILED; }
    volatile char* at(size_t offset) const { return static_cast<volatile char*>(memory_) + offset; }
    void advise(int advice) const { ::madvise(memory_, bytes_, advice); }

private:
    size_t bytes_;
    void* memory_;
};

// --- the events

double calls(const std::function<void()>& call) {
    constexpr int kCalls = 100;
    return each_of(kCalls, [&] {
        const double begin = now_ns();
        for (int i = 0; i < kCalls; ++i) {
            call();
        }
        return now_ns() - begin;
    });
}

double anonymous_pages() {
    const Mapping memory(Probe::kPagesOfRun * kPage, -1);
    if (!memory.there()) {
        return 0;
    }
    memory.advise(MADV_NOHUGEPAGE);
    return each_of(Probe::kPagesOfRun, [&] {
        const double begin = now_ns();
        for (int i = 0; i < Probe::kPagesOfRun; ++i) {
            *memory.at(static_cast<size_t>(i) * kPage) = 1;
        }
        const double took = now_ns() - begin;
        memory.advise(MADV_DONTNEED);  // a call: tells of the faults before it
        return took;
    });
}

// Only for the records: how long they take is not asked.
void huge_pages() {
    const Mapping memory(4 * kHuge, -1);
    if (!memory.there()) {
        return;
    }
    memory.advise(MADV_HUGEPAGE);
    const size_t first = kHuge - reinterpret_cast<uintptr_t>(memory.at(0)) % kHuge;
    for (int i = 0; i < 6; ++i) {
        for (size_t page = 0; page < 3; ++page) {
            *memory.at(first + page * kHuge) = 1;
            ::sched_yield();
            static_cast<void>(::access("/", F_OK));  // a recorded call: each is told by itself
        }
        memory.advise(MADV_DONTNEED);
    }
}

double file_faults() {
    const UniqueFd file(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
    struct stat found {};
    if (!file.valid() || ::fstat(file.get(), &found) != 0 || static_cast<size_t>(found.st_size) < 4 * kAround) {
        return 0;
    }
    const int faults = static_cast<int>(std::min<size_t>(static_cast<size_t>(found.st_size) / kAround, 32));
    const Mapping memory(static_cast<size_t>(faults) * kAround, file.get());
    if (!memory.there()) {
        return 0;
    }
    return each_of(faults, [&] {
        const double begin = now_ns();
        for (int i = 0; i < faults; ++i) {
            static_cast<void>(*memory.at(static_cast<size_t>(i) * kAround));
        }
        const double took = now_ns() - begin;
        memory.advise(MADV_DONTNEED);
        return took;
    });
}

// Of a file in memory with so many pages: each goes on its own.
double truncations(int pages) {
    const UniqueFd file(::memfd_create("reprise-probe", MFD_CLOEXEC));
    if (!file.valid()) {
        return 0;
    }
    const std::array<char, kPage> page{};
    constexpr int kTimes = 8;
    return each_of(kTimes, [&] {
        double took = 0;
        for (int i = 0; i < kTimes; ++i) {
            for (int written = 0; written < pages; ++written) {
                if (::pwrite(file.get(), page.data(), kPage, written * off_t{kPage}) < 0) {
                    return 0.0;
                }
            }
            const double begin = now_ns();
            if (::ftruncate(file.get(), 0) != 0) {
                return 0.0;
            }
            took += now_ns() - begin;
        }
        return took;
    });
}

void stay_here() {
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET(static_cast<unsigned>(std::max(::sched_getcpu(), 0)), &here);
    ::sched_setaffinity(0, sizeof here, &here);
}

void reap(pid_t child) {
    while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
}

// Two processes on one processor hand it to each other: the time for both to have had it.
double yields() {
    constexpr int kYields = 30;
    int stop[2];
    if (::pipe2(stop, O_CLOEXEC | O_NONBLOCK) != 0) {
        return 0;
    }
    const UniqueFd of_child(stop[0]);
    UniqueFd of_parent(stop[1]);
    const pid_t child = ::fork();
    if (child == 0) {
        of_parent.reset();
        char nothing = 0;
        do {
            for (int i = 0; i < kYields; ++i) {
                ::sched_yield();
            }
        } while (::read(stop[0], &nothing, 1) < 0);
        ::_exit(0);
    }
    if (child < 0) {
        return 0;
    }
    std::vector<double> times;
    const double start = now_ns();
    for (int batch = 0; batch < kBatches && now_ns() - start < kLongest; ++batch) {
        rusage before{}, after{};
        ::getrusage(RUSAGE_SELF, &before);
        const double begin = now_ns();
        for (int i = 0; i < kYields; ++i) {
            ::sched_yield();
        }
        const double took = now_ns() - begin;
        ::getrusage(RUSAGE_SELF, &after);
        const long switches = after.ru_nvcsw + after.ru_nivcsw - before.ru_nvcsw - before.ru_nivcsw;
        if (switches >= kYields / 2) {
            times.push_back(took / static_cast<double>(switches));
        }
    }
    of_parent.reset();
    reap(child);
    return lower_quarter(times);
}

// A byte there and back: four calls, two wakes, two switches.
double round_trips() {
    constexpr int kTrips = 20;
    int there[2], back[2];
    if (::pipe2(there, O_CLOEXEC) != 0 || ::pipe2(back, O_CLOEXEC) != 0) {
        return 0;
    }
    const UniqueFd read_there(there[0]), write_back(back[1]), read_back(back[0]);
    UniqueFd write_there(there[1]);
    const pid_t child = ::fork();
    char byte = 0;
    if (child == 0) {
        write_there.reset();
        while (::read(there[0], &byte, 1) == 1 && ::write(back[1], &byte, 1) == 1) {
        }
        ::_exit(0);
    }
    if (child < 0) {
        return 0;
    }
    const double took = each_of(kTrips, [&] {
        const double begin = now_ns();
        for (int i = 0; i < kTrips; ++i) {
            if (::write(there[1], &byte, 1) != 1 || ::read(back[0], &byte, 1) != 1) {
                return 0.0;
            }
        }
        return now_ns() - begin;
    });
    write_there.reset();
    reap(child);
    return took;
}

void measure(ProbeTimes& times) {
    const UniqueFd zero(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
    char byte = 0;
    times.call = calls([&] { static_cast<void>(::pread(zero.get(), &byte, 1, 0)); });
    times.truncate = truncations(0);
    times.truncate_page = truncations(1);
    times.truncate_pages = truncations(Probe::kPagesOfRun);
    times.anonymous = anonymous_pages();
    huge_pages();
    times.file_fault = file_faults();
    times.yield = yields();
    times.round_trip = round_trips();
}

[[noreturn]] void serve(int from, int to, ProbeTimes& times) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    stay_here();
    char word = 0;
    while (::read(from, &word, 1) == 1) {
        measure(times);
        if (::write(to, &word, 1) != 1) {
            break;
        }
    }
    ::_exit(0);
}

double least(double a, double b) { return a > 0 && b > 0 ? std::min(a, b) : std::max(a, b); }

ProbeTimes least(const ProbeTimes& a, const ProbeTimes& b) {
    ProbeTimes out;
    out.call = least(a.call, b.call);
    out.truncate = least(a.truncate, b.truncate);
    out.truncate_page = least(a.truncate_page, b.truncate_page);
    out.truncate_pages = least(a.truncate_pages, b.truncate_pages);
    out.yield = least(a.yield, b.yield);
    out.round_trip = least(a.round_trip, b.round_trip);
    out.anonymous = least(a.anonymous, b.anonymous);
    out.file_fault = least(a.file_fault, b.file_fault);
    return out;
}

int64_t difference(double with, double without, double less = 0) {
    constexpr double kMost = 10'000;  // ns; more is a disturbance, not the recorder
    if (with <= 0 || without <= 0) {
        return 0;
    }
    return std::lround(std::clamp(with - without - less, 0.0, kMost));
}

}  // namespace

Probe::Probe() {
    int to[2], from[2];
    if (::pipe2(to, O_CLOEXEC) != 0) {
        return;
    }
    UniqueFd read_here(to[0]);
    to_.reset(to[1]);
    if (::pipe2(from, O_CLOEXEC) != 0) {
        return;
    }
    UniqueFd write_here(from[1]);
    from_.reset(from[0]);
    void* memory = ::mmap(nullptr, sizeof *times_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return;
    }
    times_ = static_cast<ProbeTimes*>(memory);
    const pid_t child = ::fork();
    if (child == 0) {
        to_.reset();
        from_.reset();
        serve(read_here.get(), write_here.get(), *times_);
    }
    pid_ = std::max<pid_t>(child, 0);
}

Probe::~Probe() {
    end();
    if (times_) {
        ::munmap(times_, sizeof *times_);
    }
}

ProbeTimes Probe::run() {
    const ProbeTimes first = once();
    return least(first, once());
}

ProbeTimes Probe::once() {
    char word = 1;
    if (pid_ == 0 || ::write(to_.get(), &word, 1) != 1) {
        return {};
    }
    ssize_t n = 0;
    do {
        n = ::read(from_.get(), &word, 1);
    } while (n < 0 && errno == EINTR);
    return n == 1 ? *times_ : ProbeTimes{};
}

void Probe::end() {
    to_.reset();
    if (pid_ != 0) {
        reap(pid_);
        pid_ = 0;
    }
}

RecorderCosts costs_of(const ProbeTimes& without, const ProbeTimes& with, double unseen) {
    RecorderCosts out;
    out.call = difference(with.call, without.call);
    out.fault = difference(with.anonymous, without.anonymous);
    out.file_fault = difference(with.file_fault, without.file_fault, static_cast<double>(out.fault));
    // Both tasks yield, and both leave the processor.
    out.off = difference(with.yield / 2, without.yield / 2, unseen);
    out.wake = difference(with.round_trip / 2, without.round_trip / 2, static_cast<double>(2 * out.call + out.off));
    constexpr double kMore = Probe::kPagesOfRun - 1;
    out.folio = difference((with.truncate_pages - with.truncate_page) / kMore,
                           (without.truncate_pages - without.truncate_page) / kMore);
    out.folio_run = difference(with.truncate_page - with.truncate, without.truncate_page - without.truncate,
                               static_cast<double>(out.folio));
    return out;
}

void PageTimes::see(const raw_head& record, pid_t of) {
    constexpr raw_u32 kPagesOfHuge = kHuge / kPage, kFewest = 32;
    if (record.type != RAW_FAULTS || record.pid != static_cast<raw_u32>(of)) {
        return;
    }
    const auto& faults = reinterpret_cast<const raw_faults&>(record);
    const auto took = static_cast<double>(faults.dear_ns);
    if (faults.dear >= kPagesOfHuge) {
        huge_.push_back(took * kPagesOfHuge / faults.dear);
    } else if (faults.dear >= kFewest) {
        base_.push_back(took / faults.dear);
    }
}

int64_t PageTimes::base() const { return usual(base_); }
int64_t PageTimes::huge() const { return usual(huge_); }

int64_t PageTimes::usual(std::vector<double> times) { return std::lround(lower_quarter(times)); }

}  // namespace reprise
