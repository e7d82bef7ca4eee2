// SPDX-License-Identifier: MIT
#include "replay/run/light_process.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "formats/support/sanitized.h"

namespace reprise {
namespace {

constexpr size_t kProcessStack = size_t{512} << 10, kThreadStack = kProcessStack + (size_t{128} << 10);
// What a thread's word says. The kernel sets it to 0 where the child process has ended.
constexpr uint32_t kStarting = 3, kAsleep = 1, kQuit = 2;

#if defined(__x86_64__) && !defined(REPRISE_ASAN) && !defined(REPRISE_TSAN)
constexpr bool kKnown = true;

/// Leaves errno alone, as a thread must whose storage is another's meanwhile.
[[gnu::always_inline]] inline void futex(std::atomic<uint32_t>& word, long what, long value) {
    long result = SYS_futex;
    register const void* no_timeout asm("r10") = nullptr;
    asm volatile("syscall"
                 : "+a"(result)
                 : "D"(&word), "S"(what), "d"(value), "r"(no_timeout)
                 : "rcx", "r11", "memory");
}
#else
constexpr bool kKnown = false;
inline void futex(std::atomic<uint32_t>&, long, long) {}
#endif

// Not private ones: the kernel's own wake-up at the end of a process is none.
inline void wait_while(std::atomic<uint32_t>& word, uint32_t value) {
    while (word.load() == value) {
        futex(word, FUTEX_WAIT, value);
    }
}

inline void change(std::atomic<uint32_t>& word, uint32_t value) {
    word.store(value);
    futex(word, FUTEX_WAKE, INT_MAX);
}

int run_body(void* body) {
    (*static_cast<const std::function<void()>*>(body))();
    _exit(1);
}

}  // namespace

struct LightProcesses::Sleeper {
    explicit Sleeper(LightProcesses& from) : processes(from) {}
    LightProcesses& processes;
    pthread_t thread = 0;
    void* storage = nullptr;  // what the processor calls the thread's
    std::byte* stack_end = nullptr;
    std::function<void()> body;
    std::atomic<uint32_t> word{kStarting};
};

LightProcesses::LightProcesses() = default;

void* LightProcesses::sleep(void* given) {
    auto& self = *static_cast<Sleeper*>(given);
    alignas(64) std::array<std::byte, kProcessStack> stack;  // NOLINT(cppcoreguidelines-pro-type-member-init)
    self.stack_end = stack.data() + stack.size();
    self.storage = __builtin_thread_pointer();
    change(self.word, kAsleep);
    for (;;) {
        wait_while(self.word, kAsleep);
        if (self.word.load() == kQuit) {
            return nullptr;
        }
        self.body = nullptr;
        const std::lock_guard guard(self.processes.lock_);
        self.word.store(kAsleep);
        self.processes.free_.push_back(&self);
    }
}

LightProcesses::Sleeper* LightProcesses::take_sleeper() {
    if (!free_.empty()) {
        Sleeper* const found = free_.back();
        free_.pop_back();
        return found;
    }
    auto made = std::make_unique<Sleeper>(*this);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, kThreadStack);
    sigset_t all, before;  // a handler would use the thread's storage
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(&made->thread, &attributes, sleep, made.get());
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    pthread_attr_destroy(&attributes);
    if (error != 0) {
        errno = error;
        return nullptr;
    }
    wait_while(made->word, kStarting);
    return all_.emplace_back(std::move(made)).get();
}

pid_t LightProcesses::start(std::function<void()> body) {
    if (!kKnown) {
        return -ENOSYS;
    }
    const std::lock_guard guard(lock_);
    Sleeper* const sleeper = take_sleeper();
    if (sleeper == nullptr) {
        return -errno;
    }
    sleeper->body = std::move(body);
    const int pid = clone(run_body, sleeper->stack_end, CLONE_VM | CLONE_SETTLS | CLONE_CHILD_CLEARTID | SIGCHLD,
                          &sleeper->body, nullptr, sleeper->storage, &sleeper->word);
    if (pid < 0) {
        const int error = errno;
        sleeper->body = nullptr;
        free_.push_back(sleeper);
        return -error;
    }
    return pid;
}

LightProcesses::~LightProcesses() {
    for (const std::unique_ptr<Sleeper>& sleeper : all_) {
        // One whose child has ended comes back to the free ones first.
        for (uint32_t asleep = kAsleep; !sleeper->word.compare_exchange_strong(asleep, kQuit); asleep = kAsleep) {
            sched_yield();
        }
        futex(sleeper->word, FUTEX_WAKE, INT_MAX);
        pthread_join(sleeper->thread, nullptr);
    }
}

}  // namespace reprise
