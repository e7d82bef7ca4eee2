// SPDX-License-Identifier: MIT
#include "calibrate/other_io.h"

namespace reprise {
namespace {

constexpr uint64_t kLittle = 4 << 20;    // bytes: what a machine at rest reads and logs meanwhile
constexpr uint64_t kWrites = 256 << 10;  // bytes; from here on this process wrote
constexpr uint64_t kPart = 10;           // one in ten

uint64_t less(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

/// Whether `others` of all that was moved decides how long calls took.
bool is_much(uint64_t others, uint64_t all) { return others > kLittle && others > all / kPart; }

}  // namespace

std::optional<MovedBytes> OtherIo::now(const std::filesystem::path& directory) {
    const std::optional<DeviceCounter> device = read_disk_counter(directory);
    const std::optional<DeviceCounter> own = read_own_counter();
    return device && own ? std::optional<MovedBytes>({*device, *own}) : std::nullopt;
}

void OtherIo::next(const std::optional<MovedBytes>& moved) {
    if (moved && last_) {
        const uint64_t read = less(moved->device.read_bytes, last_->device.read_bytes),
                       written = less(moved->device.write_bytes, last_->device.write_bytes),
                       own_read = less(moved->own.read_bytes, last_->own.read_bytes),
                       own_written = less(moved->own.write_bytes, last_->own.write_bytes);
        const uint64_t all = read + written;
        const uint64_t theirs = own_written > kWrites ? 0 : less(written, unwritten_);
        unwritten_ = less(unwritten_ + own_written, written);
        const uint64_t others = less(read, own_read) + theirs;
        ++counted_;
        disturbed_ += is_much(others, all) ? 1 : 0;
    }
    last_ = moved;
}

}  // namespace reprise
