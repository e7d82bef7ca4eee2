// SPDX-License-Identifier: MIT
#include "formats/oplog/section_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "formats/oplog/layout.h"
#include "formats/oplog/unfinished.h"
#include "formats/support/error.h"
#include "formats/support/limits.h"
#include "formats/support/new_file.h"

namespace reprise {

SectionFile::SectionFile(std::filesystem::path path) : path_(std::move(path)), partial_(unfinished_log(path_)) {
    // The final rename would put a file in the place of a device, a pipe or a folder.
    std::error_code ignored;
    if (const auto there = std::filesystem::status(path_, ignored);
        std::filesystem::exists(there) && !std::filesystem::is_regular_file(there)) {
        throw machine_error(path_.string() + " is not a regular file, and a log cannot be written there",
                            "name a file that may be made or replaced");
    }
    check_unfinished_log(path_);
    {
        const EndsHeld held;
        fd_ = create_new_file(partial_);
        unfinished_ = fd_.valid() ? unfinished_file(partial_) : UndoneAtEnd();
    }
    if (!fd_.valid() && errno == EBUSY) {
        throw machine_error(path_.string() + " is being written by another reprise",
                            "wait until that is done, or choose another file");
    }
    if (!fd_.valid()) {
        fail("cannot be created", "choose a folder that exists and may be written to");
    }
    try {
        const FileHead head;
        write({reinterpret_cast<const uint8_t*>(&head), sizeof head});
    } catch (...) {
        ::unlink(partial_.c_str());  // nobody has a file to discard
        throw;
    }
}

void SectionFile::fail(const char* what, const char* todo) const {
    const int error = errno;
    throw machine_error(path_.string() + ": " + what + ": " + reason(error), remedy(error, todo));
}

void SectionFile::write(ByteView bytes) {
    while (!bytes.empty()) {
        const ssize_t n = ::write(fd_.get(), bytes.data(), bytes.size());
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            fail("cannot be written", "check the disk it lies on");
        }
        bytes = bytes.subspan(static_cast<size_t>(n));
        offset_ += static_cast<uint64_t>(n);
    }
}

void SectionFile::section(SectionType type, ByteView payload) {
    stored_section(type, payload, section_checksum(static_cast<uint8_t>(type), payload));
}

void SectionFile::stored_section(SectionType type, ByteView payload, uint64_t checksum) {
    SectionHead head;
    head.type = static_cast<uint8_t>(type);
    head.size = static_cast<uint32_t>(payload.size());
    head.checksum = checksum;
    if (type != SectionType::ops) {
        sections_.emplace_back(type, offset_);
    }
    write({reinterpret_cast<const uint8_t*>(&head), sizeof head});
    write(payload);
}

uint64_t SectionFile::seal(Compressor& compressor) {
    FileEnd end;
    end.index_offset = offset_;
    section(SectionType::index, index(compressor));
    write({reinterpret_cast<const uint8_t*>(&end), sizeof end});
    return end.index_offset;
}

void SectionFile::unseal(uint64_t index) {
    const auto at = static_cast<off_t>(index);
    if (::ftruncate(fd_.get(), at) != 0 || ::lseek(fd_.get(), at, SEEK_SET) != at) {
        fail("cannot be written", "check the disk it lies on");
    }
    offset_ = index;
    sections_.pop_back();  // the index
}

Bytes SectionFile::index(Compressor& compressor) const {
    Bytes raw;
    put_varint(raw, sections_.size());
    uint64_t last = 0;
    for (const auto& [type, at] : sections_) {
        raw.push_back(static_cast<uint8_t>(type));
        put_varint(raw, at - last);
        last = at;
    }
    put_varint(raw, blocks_.size());
    BlockInfo before;
    for (const BlockInfo& block : blocks_) {
        put_varint(raw, block.task);
        put_varint(raw, block.ops);
        put_varint(raw, block.first);
        put_varint(raw, block.file_offset - before.file_offset);
        put_varint(raw, block.stored_bytes);
        put_varint(raw, block.start);
        put_signed(raw, wrapping_sub(block.begin, before.begin));
        put_signed(raw, wrapping_sub(block.end, block.begin));
        before = block;
    }
    Bytes out;
    put_blob(out, raw, compressor);
    return out;
}

void SectionFile::finish(bool sync) {
    if (sync && ::fsync(fd_.get()) != 0 && errno != EINVAL) {
        fail("cannot be flushed", "check the disk it lies on");
    }
    if (::close(fd_.release()) != 0) {
        fail("cannot be closed", "check the disk it lies on");
    }
    if (::rename(partial_.c_str(), path_.c_str()) != 0) {
        fail("cannot be renamed to its final name", "choose another name with -o");
    }
    unfinished_.forget();
    finished_ = true;
}

void SectionFile::discard() {
    if (finished_) {
        return;
    }
    fd_.reset();
    ::unlink(partial_.c_str());
    unfinished_.forget();
    finished_ = true;
}

}  // namespace reprise
