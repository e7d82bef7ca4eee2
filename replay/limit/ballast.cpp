// SPDX-License-Identifier: MIT
#include "replay/limit/ballast.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <new>
#include <string>

#include "formats/support/error.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace reprise {
namespace {

constexpr uint64_t kPage = 4096, kPiece = uint64_t{1} << 20;

/// Room of its own pages only: a fork's copies are not of the group.
void be_the_first_to_go() {
    const int fd = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        [[maybe_unused]] const ssize_t written = ::write(fd, "1000", 4);
        ::close(fd);
    }
}

bool touch(std::byte* from, uint64_t bytes) {
    if (::madvise(from, bytes, MADV_POPULATE_WRITE) == 0) {
        return true;
    }
    if (errno != EINVAL) {
        return false;  // no memory
    }
    for (uint64_t at = 0; at < bytes; at += kPage) {  // before 5.14
        const_cast<volatile std::byte*>(from)[at] = std::byte{1};
    }
    return true;
}

}  // namespace

Ballast::Ballast(const ControlGroup& group, uint64_t most) : most_((most + kPiece - 1) / kPiece * kPiece) {
    void* const at = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) {
        throw machine_error("cannot map memory: " + std::string(std::strerror(errno)), "");
    }
    shared_ = new (at) Shared;
    const pid_t self = ::getpid();
    pid_ = ::fork();
    if (pid_ == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        ::setpgid(0, 0);
        for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
            ::signal(number, SIG_IGN);  // the replay ends it
        }
        if (::getppid() != self || !group.enter()) {
            ::_exit(1);
        }
        be_the_first_to_go();
        void* const memory =
            ::mmap(nullptr, most_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) {
            ::_exit(1);
        }
        ::madvise(memory, most_, MADV_NOHUGEPAGE);  // to the page, as asked
        run(*shared_, static_cast<std::byte*>(memory), most_);
    }
    if (pid_ < 0) {
        const int error = errno;
        ::munmap(shared_, sizeof(Shared));
        throw machine_error("cannot start a process: " + std::string(std::strerror(error)), "");
    }
}

Ballast::~Ballast() {
    if (!died()) {
        ::kill(pid_, SIGKILL);
        while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
        }
    }
    ::munmap(shared_, sizeof(Shared));
}

void Ballast::want(uint64_t bytes) {
    const uint64_t whole = std::min(bytes, most_) / kPage * kPage;
    if (shared_->wanted.exchange(whole) != whole) {
        shared_->turn.fetch_add(1);
        ::syscall(SYS_futex, &shared_->turn, FUTEX_WAKE, 1, nullptr, nullptr, 0);
    }
}

bool Ballast::died() {
    if (pid_ > 0 && ::waitpid(pid_, nullptr, WNOHANG) != 0) {
        pid_ = -1;
    }
    return pid_ < 0;
}

void Ballast::run(Shared& shared, std::byte* memory, uint64_t most) {
    shared.locked.store(::syscall(SYS_mlock2, memory, most, MLOCK_ONFAULT) == 0 ? 1 : 0);
    for (;;) {
        const uint32_t turn = shared.turn.load();
        const uint64_t wanted = shared.wanted.load(), held = shared.held.load();
        if (wanted > held) {
            const uint64_t piece = std::min(wanted - held, kPiece);
            if (!touch(memory + held, piece)) {
                const timespec pause{0, 10'000'000};  // none to be had now
                ::nanosleep(&pause, nullptr);
                continue;
            }
            shared.held.store(held + piece);
        } else if (wanted < held) {
            std::byte* const from = memory + wanted;
            const uint64_t bytes = held - wanted;
            ::syscall(SYS_munlock, from, bytes);  // sanitizers take the call for themselves
            ::madvise(from, bytes, MADV_DONTNEED);
            if (shared.locked.load() != 0) {
                ::syscall(SYS_mlock2, from, bytes, MLOCK_ONFAULT);
            }
            shared.held.store(wanted);
        } else {
            ::syscall(SYS_futex, &shared.turn, FUTEX_WAIT, turn, nullptr, nullptr, 0);
        }
    }
}

}  // namespace reprise
