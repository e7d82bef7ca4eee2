// SPDX-License-Identifier: MIT
// Structures as bytes and back, for other processes of the same reprise. One list of a structure's fields serves both
// directions:
//
//   template <class Archive>
//   void fields(Archive& archive, Point& point) {
//       auto& [x, y] = point;  // a new member does not compile until it is in the list
//       archive(x, y);
//   }
//
// in the namespace of the structure. Unpacking trusts nothing: whatever is not what packing makes throws Corrupt.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "formats/support/bytes.h"
#include "formats/support/histogram.h"

namespace reprise {

/// The greatest value of an enumeration that is packed; each says its own.
template <class Enum>
inline constexpr uint64_t kGreatest = [] {
    static_assert(sizeof(Enum) == 0, "say the greatest value of this enumeration");
    return uint64_t{0};
}();

class Packer {
public:
    explicit Packer(Bytes& out) : out_(out) {}
    static constexpr bool packs = true;

    template <class... Fields>
    void operator()(Fields&... all) {
        (put(all), ...);
    }

private:
    template <class T>
    void put(T& value) {
        using Plain = std::remove_const_t<T>;
        if constexpr (std::is_enum_v<Plain> || std::unsigned_integral<Plain>) {
            put_varint(out_, static_cast<uint64_t>(value));
        } else if constexpr (std::signed_integral<Plain>) {
            put_signed(out_, value);
        } else if constexpr (std::floating_point<Plain>) {
            put_fixed(out_, static_cast<double>(value));
        } else {
            fields(*this, value);
        }
    }
    void put(std::string& text) { put_string(out_, text); }
    void put(std::filesystem::path& path) { put_string(out_, path.native()); }
    void put(Histogram& counts) { counts.pack(out_); }
    template <class T>
    void put(std::optional<T>& value) {
        out_.push_back(value ? 1 : 0);
        if (value) {
            put(*value);
        }
    }
    template <class T>
    void put(std::vector<T>& values) {
        put_varint(out_, values.size());
        for (T& value : values) {
            put(value);
        }
    }
    template <class T, size_t N>
    void put(std::array<T, N>& values) {
        for (T& value : values) {
            put(value);
        }
    }
    template <class A, class B>
    void put(std::pair<A, B>& pair) {
        put(pair.first);
        put(pair.second);
    }
    template <class V>
    void put(std::map<std::string, V>& values) {
        put_varint(out_, values.size());
        for (auto& [key, value] : values) {
            put_string(out_, key);
            put(value);
        }
    }

    Bytes& out_;
};

class Unpacker {
public:
    explicit Unpacker(ByteReader& in) : in_(in) {}
    static constexpr bool packs = false;

    template <class... Fields>
    void operator()(Fields&... all) {
        (get(all), ...);
    }

private:
    template <class T>
    void get(T& value) {
        if constexpr (std::is_enum_v<T>) {
            value = static_cast<T>(in_.count(kGreatest<T>));
        } else if constexpr (std::same_as<T, bool>) {
            value = in_.count(1) != 0;
        } else if constexpr (std::unsigned_integral<T>) {
            value = static_cast<T>(in_.count(std::numeric_limits<T>::max()));
        } else if constexpr (std::signed_integral<T>) {
            const int64_t whole = in_.signed_varint();
            value = static_cast<T>(whole);
            if (value != whole) {
                throw Corrupt("the number " + std::to_string(whole) + " is out of range");
            }
        } else if constexpr (std::floating_point<T>) {
            value = in_.fixed<double>();
        } else {
            fields(*this, value);
        }
    }
    void get(std::string& text) { text = in_.string(); }
    void get(std::filesystem::path& path) { path = std::string(in_.string()); }
    void get(Histogram& counts) { counts = Histogram::unpack(in_); }
    template <class T>
    void get(std::optional<T>& value) {
        value.reset();
        if (in_.count(1) != 0) {
            get(value.emplace());
        }
    }
    template <class T>
    void get(std::vector<T>& values) {
        values.clear();
        for (size_t n = in_.count(in_.left()); n > 0; --n) {  // each takes a byte or more
            get(values.emplace_back());
        }
    }
    template <class T, size_t N>
    void get(std::array<T, N>& values) {
        for (T& value : values) {
            get(value);
        }
    }
    template <class A, class B>
    void get(std::pair<A, B>& pair) {
        get(pair.first);
        get(pair.second);
    }
    template <class V>
    void get(std::map<std::string, V>& values) {
        values.clear();
        for (size_t n = in_.count(in_.left()); n > 0; --n) {
            std::string key(in_.string());
            get(values[std::move(key)]);
        }
    }

    ByteReader& in_;
};

}  // namespace reprise
