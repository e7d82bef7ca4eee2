// SPDX-License-Identifier: MIT
// Whether others use a device while it is measured.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "calibrate/mounted.h"

namespace reprise {

/// What a device moved since it was set up, and what this process had devices move since it began; bytes.
struct MovedBytes {
    DeviceCounter device, own;
};

/// Of several measurements one after the other, those in which others moved more than a tenth of what the device moved,
/// and more than 4 MiB. Where this process writes, only reads are looked at; what it wrote may reach the device later.
class OtherIo {
public:
    /// The device of a directory, and /proc/self/io. None where one of them is not known.
    static std::optional<MovedBytes> now(const std::filesystem::path& directory);

    /// A measurement is over, and the next one begins. Not counted where something is not known.
    void next(const std::optional<MovedBytes>& moved);

    int disturbed() const { return disturbed_; }
    /// Of all that were counted; 0: none were.
    double share() const { return counted_ == 0 ? 0 : static_cast<double>(disturbed_) / counted_; }

private:
    std::optional<MovedBytes> last_;
    uint64_t unwritten_ = 0;  // bytes that this process wrote, and the device perhaps not yet
    int counted_ = 0, disturbed_ = 0;
};

}  // namespace reprise
