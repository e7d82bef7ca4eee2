// SPDX-License-Identifier: MIT
// Processes that cost as little as threads.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace reprise {

/// Child processes that have this one's memory and copies of its descriptors. fork copies the page tables of all memory
/// and the end of the process takes them apart, 0.6 ms each for a worker; recorded programs are smaller.
///
/// C's library keeps things per thread (errno, what malloc has at hand) and can make them only with a thread. So each
/// child process takes those of a thread of this process that sleeps until the child has ended.
class LightProcesses {
public:
    LightProcesses();
    /// Of a process that had others fork from it: waits until what `body` held is freed. All of them must have ended.
    ~LightProcesses();
    LightProcesses(const LightProcesses&) = delete;
    LightProcesses& operator=(const LightProcesses&) = delete;

    /// Starts one that runs `body`, which must not return but end by _exit. What `body` holds is freed when the process
    /// has ended. Its number, or -errno; -ENOSYS under sanitizers, which do not know such processes, and on processors
    /// other than x86-64.
    pid_t start(std::function<void()> body);

private:
    struct Sleeper;
    static void* sleep(void* given);
    Sleeper* take_sleeper();

    std::mutex lock_;
    std::vector<std::unique_ptr<Sleeper>> all_;
    std::vector<Sleeper*> free_;
};

}  // namespace reprise
