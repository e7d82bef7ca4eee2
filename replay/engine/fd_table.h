// SPDX-License-Identifier: MIT
// The descriptors of one worker process: which real one stands for a recorded open instance. fork copies it, as
// the kernel copies the descriptors themselves.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "replay/plan/left_out.h"
#include "replay/plan/plan.h"

namespace reprise {

class DescriptorTable {
public:
    /// What get() returns where there is no descriptor.
    static constexpr int kUnknown = -1000;  // never opened in this process
    static constexpr int kClosed = -1001;
    /// Not open, and every op on it is left out for that reason.
    static constexpr int absent(LeftOut reason) { return -2000 - static_cast<int>(reason); }
    static constexpr bool is_absent(int value) { return value <= -2000; }
    static constexpr LeftOut reason(int value) { return static_cast<LeftOut>(-2000 - value); }

    /// `lock` guards everything but get() and single descriptors; the owner holds it over fork.
    DescriptorTable(const Plan& plan, std::mutex& lock);
    /// What a child process has at first. The parent's lock is held.
    DescriptorTable(const DescriptorTable& parent, std::mutex& lock);

    /// A descriptor of the instance, or a negative value as above. Handle 0 is kClosed.
    int get(HandleId handle) const { return handle < size_ ? table_[handle].load(std::memory_order_relaxed) : kClosed; }
    /// The one with that recorded number where the instance has several.
    int get(HandleId handle, int recorded) const;
    void set_absent(HandleId handle, LeftOut reason) { put(handle, absent(reason)); }
    /// The first descriptor of an instance; `recorded` is its number in the recorded process.
    void opened(HandleId handle, int real, int recorded);
    /// One more descriptor.
    void duplicated(HandleId handle, int real, int recorded);
    /// Takes the descriptor with that recorded number out; its real number, or negative as get().
    int take(HandleId handle, int recorded);
    /// Closes what is marked close-on-exec.
    void exec();

private:
    void put(HandleId handle, int value) {
        if (handle != 0 && handle < size_) {
            table_[handle].store(value, std::memory_order_relaxed);
        }
    }
    bool many(HandleId handle) const { return handle < flags_->size() && ((*flags_)[handle] & kHandleDuplicated) != 0; }

    const std::vector<uint8_t>* flags_;
    std::mutex& lock_;
    size_t size_;
    std::vector<std::atomic<int32_t>> table_;
    /// Of instances with kHandleDuplicated: (recorded, real) of each descriptor.
    std::unordered_map<HandleId, std::vector<std::pair<int, int>>> all_;
};

}  // namespace reprise
