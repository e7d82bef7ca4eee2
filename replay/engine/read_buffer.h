// SPDX-License-Identifier: MIT
// The memory that reads go into.
#pragma once

#include <cstddef>

namespace reprise {

class ReadBuffer {
public:
    /// `small`: large buffers have few bytes of memory, which lie in them again and again, so that what is read
    /// overwrites itself. Copying to where the processor's cache reaches costs two thirds of copying to memory, and a
    /// job that nobody recorded does not say where its own buffers lie. Throws Error (machine) where there is no
    /// memory.
    ReadBuffer(size_t bytes, bool small);
    ~ReadBuffer();
    ReadBuffer(const ReadBuffer&) = delete;
    ReadBuffer& operator=(const ReadBuffer&) = delete;

    std::byte* data() const { return data_; }
    /// Bytes of memory that it can take.
    size_t memory() const { return memory_; }

private:
    void repeat();

    std::byte* data_ = nullptr;
    size_t bytes_ = 0, memory_ = 0;  // whole pages
};

}  // namespace reprise
