// SPDX-License-Identifier: MIT
// Little-endian bytes, varints and zigzag: the small change of the op log's sections.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace reprise {

using Bytes = std::vector<uint8_t>;
using ByteView = std::span<const uint8_t>;

constexpr uint64_t zigzag(int64_t value) {
    return (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
}
constexpr int64_t unzigzag(uint64_t value) { return static_cast<int64_t>((value >> 1) ^ (~(value & 1) + 1)); }

/// Differences wrap around, so that any pair of values has one.
constexpr int64_t wrapping_sub(int64_t a, int64_t b) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
constexpr int64_t wrapping_add(int64_t a, int64_t b) {
    return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

/// Damage found while decoding. The reader turns it into an Error that names the file and position.
class Corrupt : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

inline void put_varint(Bytes& out, uint64_t value) {
    while (value >= 0x80) {
        out.push_back(static_cast<uint8_t>(value) | 0x80);
        value >>= 7;
    }
    out.push_back(static_cast<uint8_t>(value));
}

inline void put_signed(Bytes& out, int64_t value) { put_varint(out, zigzag(value)); }

inline void put_string(Bytes& out, std::string_view text) {
    put_varint(out, text.size());
    out.insert(out.end(), text.begin(), text.end());
}

template <class T>
void put_fixed(Bytes& out, T value) {
    const auto* from = reinterpret_cast<const uint8_t*>(&value);
    out.insert(out.end(), from, from + sizeof value);
}

/// Reads what the put_ functions wrote; throws Corrupt rather than pass the end.
class ByteReader {
public:
    explicit ByteReader(ByteView bytes) : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

    size_t left() const { return static_cast<size_t>(end_ - at_); }

    uint8_t byte() {
        if (at_ == end_) {
            throw Corrupt("ends early");
        }
        return *at_++;
    }

    uint64_t varint() {
        uint64_t value = 0;
        for (unsigned shift = 0; shift < 64; shift += 7) {
            const uint8_t next = byte();
            value |= static_cast<uint64_t>(next & 0x7f) << shift;
            if (next < 0x80) {
                if (shift == 63 && next > 1) {
                    break;
                }
                return value;
            }
        }
        throw Corrupt("a number is longer than 64 bits");
    }

    int64_t signed_varint() { return unzigzag(varint()); }

    /// A count of things that each take at least `each` bytes of what is left.
    size_t count(size_t limit) {
        const uint64_t value = varint();
        if (value > limit) {
            throw Corrupt("a count of " + std::to_string(value) + ", expected at most " + std::to_string(limit));
        }
        return static_cast<size_t>(value);
    }

    ByteView take(size_t n) {
        if (n > left()) {
            throw Corrupt("ends early");
        }
        ByteView taken{at_, n};
        at_ += n;
        return taken;
    }

    std::string_view string() {
        const ByteView view = take(count(left()));
        return {reinterpret_cast<const char*>(view.data()), view.size()};
    }

    template <class T>
    T fixed() {
        T value;
        std::memcpy(&value, take(sizeof value).data(), sizeof value);
        return value;
    }

private:
    const uint8_t* at_;
    const uint8_t* end_;
};

}  // namespace reprise
