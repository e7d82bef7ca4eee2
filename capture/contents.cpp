// SPDX-License-Identifier: MIT
#include "capture/contents.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "formats/oplog/contents.h"
#include "formats/support/compress.h"
#include "formats/support/unique_fd.h"

namespace reprise {
namespace {

constexpr size_t kMostFiles = 32;     // of a class
constexpr uint64_t kMostSamples = 4;  // of a file
constexpr int kLevel = 1;             // of zstd
constexpr auto kMost = std::chrono::seconds(2);

/// Whether it is a file that `prepare` writes.
bool is_written(const FileRow& row) {
    return row.type == FileType::regular && row.origin != Origin::created && row.origin != Origin::absent &&
           row.role != Role::program && row.role != Role::system && row.role != Role::ipc && row.size != 0;
}

/// Evenly over the file; a small one whole.
void sample(const std::string& path, const FileRow& row, Compressor& compressor, ContentSample& out) {
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
    struct stat status {};
    if (!fd.valid() || ::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_ino != row.inode) {
        return;
    }
    const auto size = static_cast<uint64_t>(status.st_size);
    const uint64_t samples = std::clamp<uint64_t>(size / kContentSample, 1, kMostSamples);
    Bytes raw(kContentSample), compressed;
    for (uint64_t i = 0; i < samples; ++i) {
        const uint64_t from = samples == 1 ? 0 : (size - kContentSample) / (samples - 1) * i / 4096 * 4096;
        const ssize_t n = ::pread(fd.get(), raw.data(), raw.size(), static_cast<off_t>(from));
        if (n <= 0) {
            return;
        }
        compressed.clear();
        const auto bytes = static_cast<size_t>(n);
        out.bytes += bytes;
        out.compressed += std::min(compressor.compress(ByteView(raw).first(bytes), compressed), bytes);
    }
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
                sample(std::string(tables.path(file)), tables.files[file], compressor, contents[name]);
            }
        }
    }
    std::erase_if(contents, [](const auto& one) { return one.second.bytes == 0; });
    if (!contents.empty()) {
        writer.keep(encode_contents(contents));
    }
}

}  // namespace reprise
