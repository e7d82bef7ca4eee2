// SPDX-License-Identifier: MIT
// DFTracer's text, all three dialects, to flat events. Owns the JSON, the names behind hashes, and hosts, processes
// and threads as the source numbers them. What an event means is import_dftracer.cpp's business.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/import/dftracer/names.h"
#include "formats/oplog/tables.h"

namespace reprise::dftracer {

/// One complete event ("X"), packed: a run may have many millions. Times are microseconds of the wall clock.
struct Event {
    int64_t begin = 0;
    int64_t duration = 0;
    int64_t result = 0;   // `ret`; of fgets `ret_len`
    int64_t offset = 0;   // calls: offset; spans: epoch
    int64_t size = 0;     // calls: count, length, bufsize, num; spans: step
    uint32_t id = 0;      // of bigger numbers a hash
    uint32_t thread = 0;  // row of Lines::threads
    StringId path = 0;    // of Lines::strings
    StringId path2 = 0;   // newpath, path2
    int32_t fd = -1;
    int32_t flags = 0;   // flags; whence; cmd
    int32_t mode = 0;    // permission bits; of fread and fwrite the size of an item; of fopen its flags
    uint16_t name = 0;   // row of Lines::names
    uint16_t known = 0;  // bits of Known
};
static_assert(sizeof(Event) == 72);

/// Grows without moving what is there: doubling would touch, and the kernel clear, twice the memory.
class Events {
public:
    size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    void push_back(const Event& event) {
        if (size_ % kChunk == 0) {
            chunks_.push_back(std::make_unique_for_overwrite<Chunk>());
        }
        (*chunks_.back())[size_++ % kChunk] = event;
    }
    Event& operator[](size_t i) { return (*chunks_[i / kChunk])[i % kChunk]; }
    const Event& operator[](size_t i) const { return (*chunks_[i / kChunk])[i % kChunk]; }
    template <typename Visit>
    void for_each(Visit&& visit) const {
        for (size_t i = 0; i < size_; ++i) {
            visit((*this)[i]);
        }
    }

private:
    static constexpr size_t kChunk = 4096;
    using Chunk = std::array<Event, kChunk>;
    std::vector<std::unique_ptr<Chunk>> chunks_;
    size_t size_ = 0;
};

enum Known : uint16_t { kResult = 1, kFd = 2, kOffset = 4, kSize = 8, kFlags = 16, kMode = 32, kPathUnsure = 64 };

struct Thread {
    StringId host = 0;  // 0: not recorded
    int64_t pid = 0;
    int64_t tid = 0;
};

/// What a `start` event says of its process.
struct Start {
    uint32_t thread = 0;
    StringId command = 0;
    StringId directory = 0;
    int64_t parent = 0;
};

/// Everything read so far. Feed it all files of a run.
class Lines {
public:
    Lines();
    ~Lines();
    Lines(const Lines&) = delete;
    Lines& operator=(const Lines&) = delete;

    void read(const std::filesystem::path& path, const std::function<void(uint64_t)>& progress);

    Events events;  // in the order of the files
    std::vector<Name> names;
    std::vector<Thread> threads;
    std::vector<Start> starts;
    StringTable strings;  // paths, hosts, commands: raw bytes

    /// For messages and counters.
    uint64_t malformed = 0;
    std::string first_malformed;   // file:line: what is wrong
    uint64_t aggregated = 0;       // records that sum up many calls
    std::string first_aggregated;  // file:line
    uint64_t hash_collisions = 0;
    uint64_t names_missing = 0;
    uint64_t truncated_files = 0;
    int64_t version = 0;  // of DFTracer, where it says so

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace reprise::dftracer
