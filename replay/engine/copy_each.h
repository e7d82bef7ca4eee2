// SPDX-License-Identifier: MIT
// Copies tables of atomics, as fork does.
#pragma once

#include <atomic>
#include <cstddef>
#include <vector>

namespace reprise {

/// `to` is as long as `from`. Others may change single entries meanwhile: the copy has each before or after.
template <class T>
void copy_each(const std::vector<std::atomic<T>>& from, std::vector<std::atomic<T>>& to) {
    for (size_t i = 0; i < from.size(); ++i) {
        to[i].store(from[i].load(std::memory_order_relaxed), std::memory_order_relaxed);
    }
}

}  // namespace reprise
