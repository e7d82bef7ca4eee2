// SPDX-License-Identifier: MIT
#include "capture/contents.h"

#include <fcntl.h>
#include <lz4.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "formats/oplog/contents.h"
#include "formats/support/compress.h"
#include "formats/support/unique_fd.h"

namespace reprise {
namespace {

constexpr size_t kMostFiles = 25;               // of a class
constexpr size_t kMostBytes = size_t{8} << 20;  // of a class, of its files alike
// Of a file that is not read whole. In all more than 256 KiB: for less, zstd -1 has other parameters than for the large
// file that they stand for.
constexpr size_t kLeastPiece = size_t{64} << 10, kLeastPieces = 5, kMostPieces = 8;
constexpr size_t kLeastOfFile = kLeastPieces * kLeastPiece;
constexpr int kLevel = 1;  // of zstd
constexpr auto kMost = std::chrono::seconds(2);

/// Whether it is a file that `prepare` writes.
bool is_written(const FileRow& row) {
    return row.type == FileType::regular && row.origin != Origin::created && row.origin != Origin::absent &&
           row.role != Role::program && row.role != Role::system && row.role != Role::ipc && row.size != 0;
}

size_t lz4_size(ByteView raw, Bytes& compressed) {
    const auto size = static_cast<int>(raw.size());
    compressed.resize(static_cast<size_t>(LZ4_compressBound(size)));
    const int n =
        LZ4_compress_default(reinterpret_cast<const char*>(raw.data()),  // NOLINT: an interface of C
                             reinterpret_cast<char*>(compressed.data()), size, static_cast<int>(compressed.size()));
    return n > 0 ? static_cast<size_t>(n) : raw.size();
}

/// Where to read a file of `size` bytes, at most about `most` of it: whole, or a piece of each of several equal parts.
/// Where in its part differs from file to file, so that those of a class cover all places alike.
std::vector<std::pair<uint64_t, size_t>> pieces_of(uint64_t size, size_t most, size_t number) {
    if (size <= most) {
        return {{0, static_cast<size_t>(size)}};
    }
    constexpr double kGolden = 0.618033988749895;
    const double place = std::fmod(0.5 + kGolden * static_cast<double>(number), 1.0);
    const size_t count = std::clamp(most / (size_t{1} << 20), kLeastPieces, kMostPieces), piece = most / count;
    const double part = static_cast<double>(size - piece) / static_cast<double>(count);
    std::vector<std::pair<uint64_t, size_t>> pieces;
    for (size_t i = 0; i < count; ++i) {
        pieces.emplace_back(static_cast<uint64_t>(part * (static_cast<double>(i) + place)), piece);
    }
    return pieces;
}

/// Adds one file, the `number`th of its class, of which `most` bytes may be read.
void sample(const std::string& path, const FileRow& row, size_t most, size_t number, Compressor& compressor,
            ContentSample& out) {
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
    struct stat status {};
    if (!fd.valid() || ::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_ino != row.inode) {
        return;
    }
    Bytes raw, compressed;
    for (const auto& [from, size] : pieces_of(static_cast<uint64_t>(status.st_size), most, number)) {
        const size_t before = raw.size();
        raw.resize(before + size);
        const ssize_t n = ::pread(fd.get(), raw.data() + before, size, static_cast<off_t>(from));
        raw.resize(before + static_cast<size_t>(std::max<ssize_t>(n, 0)));
        if (n <= 0) {
            break;
        }
    }
    if (raw.empty()) {
        return;
    }
    out.bytes += raw.size();
    out.compressed += std::min(compressor.compress(raw, compressed), raw.size());
    out.lz4 += std::min(lz4_size(raw, compressed), raw.size());
}

}  // namespace

void note_contents(LogWriter& writer) {
    const Tables& tables = writer.tables();
    std::map<std::string, std::vector<FileId>> classes;
    for (FileId file = 1; file < tables.files.size(); ++file) {
        if (is_written(tables.files[file])) {
            classes[content_class(tables.path(file))].push_back(file);
        }
    }
    Contents contents;
    Compressor compressor(kLevel);
    const auto end = std::chrono::steady_clock::now() + kMost;
    // One file of each class after the other, so that no class stays unknown where the time runs out.
    for (size_t turn = 0; turn < kMostFiles; ++turn) {
        for (const auto& [name, files] : classes) {
            const size_t most = std::min(files.size(), kMostFiles);
            if (turn < most && std::chrono::steady_clock::now() < end) {
                const FileId file = files[turn * files.size() / most];
                sample(std::string(tables.path(file)), tables.files[file], std::max(kLeastOfFile, kMostBytes / most),
                       turn, compressor, contents[name]);
            }
        }
    }
    std::erase_if(contents, [](const auto& one) { return one.second.bytes == 0; });
    if (!contents.empty()) {
        keep_contents(contents, writer);
    }
}

}  // namespace reprise
