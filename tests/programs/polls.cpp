// SPDX-License-Identifier: MIT
// A helper thread that waits with time-outs of 20, 40 and 80 ms and then until it is told to end, after 300 ms.
// usage: polls [FILE]  With FILE it writes a line there after each time-out.
#include <fcntl.h>

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

int main(int argc, char** argv) {
    using namespace std::chrono_literals;
    const int fd = argc > 1 ? ::open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0644) : -1;
    std::mutex mutex;
    std::condition_variable told;
    bool end = false;
    std::thread helper([&] {
        std::unique_lock lock(mutex);
        for (auto wait = 20ms; wait <= 80ms; wait *= 2) {
            if (told.wait_for(lock, wait, [&] { return end; })) {
                return;
            }
            if (fd >= 0 && ::write(fd, "still here\n", 11) != 11) {
                return;
            }
        }
        told.wait(lock, [&] { return end; });
    });
    std::this_thread::sleep_for(300ms);
    {
        const std::scoped_lock lock(mutex);
        end = true;
    }
    told.notify_one();
    helper.join();
    return 0;
}
