// SPDX-License-Identifier: MIT
// Reading text that may be compressed: the three byte sources and the line buffer above them.
#include "formats/support/input.h"

#include <fcntl.h>
#include <isa-l/igzip_lib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "formats/support/error.h"
#include "formats/support/limits.h"
#include "formats/support/unique_fd.h"

namespace reprise {
namespace {

constexpr size_t kFileChunk = size_t{256} << 10;    // bytes read from the file at a time
constexpr size_t kFirstBuffer = size_t{256} << 10;  // small enough to stay in a core's cache
constexpr size_t kLongestLine = size_t{256} << 20;
constexpr size_t kPadding = 64;

// Thrown by a source inside this file; LineReader decides whether it ends the command or only the input.
struct Damage {
    uint64_t position;  // in the file as stored on disk
    std::string what;
};

// An open file, read from front to back.
class RawFile {
public:
    explicit RawFile(const std::filesystem::path& path) : path_(path), fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
        if (!fd_.valid()) {
            fail(errno, "cannot open");
        }
        struct stat status {};
        if (::fstat(fd_.get(), &status) == 0 && S_ISDIR(status.st_mode)) {
            throw bad_input(path.native(), "is a directory, expected a file", {});
        }
        ::posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
    }

    // Bytes read, 0 at the end.
    size_t read(char* into, size_t room) {
        for (;;) {
            const ssize_t got = ::read(fd_.get(), into, room);
            if (got >= 0) {
                position_ += static_cast<uint64_t>(got);
                return static_cast<size_t>(got);
            }
            if (errno != EINTR) {
                fail(errno, "cannot read");
            }
        }
    }
    uint64_t position() const { return position_; }

private:
    [[noreturn]] void fail(int error, std::string_view what) const {
        const std::string text = std::string(what) + ": " + reason(error);
        if (error == ENOENT || error == ENOTDIR) {
            throw bad_input(path_.native(), text, "check the path");
        }
        throw machine_error(escape_line(path_.native()) + ": " + text, remedy(error, {}));
    }

    std::filesystem::path path_;
    UniqueFd fd_;
    uint64_t position_ = 0;
};

// A source of decompressed bytes over a window of the file.
class Source {
public:
    explicit Source(RawFile& file) : file_(file), window_(kFileChunk) {}
    virtual ~Source() = default;
    Source(const Source&) = delete;
    Source& operator=(const Source&) = delete;

    // Up to `room` bytes; 0 at the end. Throws Damage.
    virtual size_t read(char* into, size_t room) = 0;
    // Bytes of the file used so far.
    uint64_t used() const { return file_.position() - (end_ - begin_); }
    // Looks at the first bytes without using them.
    std::string_view peek(size_t length) {
        while (end_ - begin_ < length && refill()) {
        }
        return {window_.data() + begin_, std::min(length, end_ - begin_)};
    }
    void give_window(Source& to) {
        to.window_.swap(window_);
        std::swap(to.begin_, begin_);
        std::swap(to.end_, end_);
    }

protected:
    const char* data() const { return window_.data() + begin_; }
    size_t left() const { return end_ - begin_; }
    void use(size_t bytes) { begin_ += bytes; }
    // Reads more behind what is left; false at the end of the file.
    bool refill() {
        if (begin_ > 0) {
            std::memmove(window_.data(), data(), left());
            end_ -= begin_;
            begin_ = 0;
        }
        const size_t got = file_.read(window_.data() + end_, window_.size() - end_);
        end_ += got;
        return got > 0;
    }

private:
    RawFile& file_;
    std::vector<char> window_;
    size_t begin_ = 0, end_ = 0;
};

class PlainSource final : public Source {
public:
    using Source::Source;
    size_t read(char* into, size_t room) override {
        if (left() == 0 && !refill()) {
            return 0;
        }
        const size_t bytes = std::min(room, left());
        std::memcpy(into, data(), bytes);
        use(bytes);
        return bytes;
    }
};

// RFC 1952; a file may hold many members one after the other, and zeros behind the last.
class GzipSource final : public Source {
public:
    explicit GzipSource(RawFile& file) : Source(file), state_(std::make_unique<inflate_state>()) { reset(); }

    size_t read(char* into, size_t room) override {
        state_->next_out = reinterpret_cast<uint8_t*>(into);
        const auto asked = static_cast<uint32_t>(std::min(room, size_t{1} << 30));
        state_->avail_out = asked;
        while (state_->avail_out == asked) {
            const bool more = left() > 0 || refill();
            if (between_members_ && (!more || (started_ && !next_member()))) {
                return 0;
            }
            // The decoder may still hold output after the last byte of input.
            if (!step() && !more) {
                throw Damage{used(), "the gzip stream ends too early"};
            }
        }
        return asked - state_->avail_out;
    }

private:
    void reset() {
        isal_inflate_init(state_.get());
        state_->crc_flag = ISAL_GZIP;  // header and trailer are checked, too
    }
    // After a member: true if another follows, false at the end of the file.
    bool next_member() {
        if (static_cast<unsigned char>(*data()) == 0x1f) {
            return true;
        }
        do {
            const char* end = data() + left();
            if (const char* other = std::find_if(data(), end, [](char c) { return c != 0; }); other != end) {
                throw Damage{used() + static_cast<uint64_t>(other - data()),
                             "bytes that are not gzip follow the gzip stream"};
            }
            use(left());
        } while (refill());
        return false;
    }
    // Decodes once; true if that came further.
    bool step() {
        const size_t before = left();
        const uint32_t room = state_->avail_out;
        uint8_t* const out = state_->next_out;
        if (std::exchange(between_members_, false) && started_) {
            reset();
            state_->next_out = out;
            state_->avail_out = room;
        }
        started_ = true;
        state_->next_in = reinterpret_cast<uint8_t*>(const_cast<char*>(data()));
        state_->avail_in = static_cast<uint32_t>(before);
        const int status = isal_inflate(state_.get());
        use(before - state_->avail_in);
        if (status != ISAL_DECOMP_OK && status != ISAL_END_INPUT) {
            throw Damage{used(), status == ISAL_INCORRECT_CHECKSUM ? "the gzip stream is damaged: wrong checksum"
                                                                   : "the gzip stream is damaged"};
        }
        between_members_ = state_->block_state == ISAL_BLOCK_FINISH;
        return between_members_ || left() < before || state_->avail_out < room;
    }

    std::unique_ptr<inflate_state> state_;  // some 80 KiB
    bool started_ = false;
    bool between_members_ = true;
};

// RFC 8878; frames may follow each other.
class ZstdSource final : public Source {
public:
    explicit ZstdSource(RawFile& file) : Source(file), stream_(ZSTD_createDStream()) {
        if (!stream_) {
            throw std::bad_alloc();
        }
    }
    ~ZstdSource() override { ZSTD_freeDStream(stream_); }

    size_t read(char* into, size_t room) override {
        ZSTD_outBuffer out{into, room, 0};
        while (out.pos == 0) {
            // Output may be pending in the decoder after the last input byte.
            if (left() == 0 && !refill() && (frame_done_ || !pending_)) {
                if (frame_done_) {
                    return 0;
                }
                throw Damage{used(), "the zstd stream ends too early"};
            }
            ZSTD_inBuffer in{data(), left(), 0};
            const size_t status = ZSTD_decompressStream(stream_, &out, &in);
            use(in.pos);
            if (ZSTD_isError(status)) {
                throw Damage{used(), std::string("the zstd stream is damaged: ") + ZSTD_getErrorName(status)};
            }
            frame_done_ = status == 0;
            pending_ = out.pos == out.size;
        }
        return out.pos;
    }

private:
    ZSTD_DStream* stream_;
    bool frame_done_ = true;
    bool pending_ = false;
};

std::unique_ptr<Source> open_source(RawFile& file) {
    auto plain = std::make_unique<PlainSource>(file);
    const std::string_view head = plain->peek(4);
    const auto byte = [&](size_t i) { return i < head.size() ? static_cast<unsigned char>(head[i]) : 0u; };
    std::unique_ptr<Source> source;
    if (byte(0) == 0x1f && byte(1) == 0x8b) {
        source = std::make_unique<GzipSource>(file);
    } else if ((byte(0) == 0x28 && byte(1) == 0xb5 && byte(2) == 0x2f && byte(3) == 0xfd) ||
               ((byte(0) & 0xf0) == 0x50 && byte(1) == 0x2a && byte(2) == 0x4d && byte(3) == 0x18)) {
        source = std::make_unique<ZstdSource>(file);  // the second is a skippable frame
    } else {
        return plain;
    }
    plain->give_window(*source);
    return source;
}

}  // namespace

struct LineReader::Impl {
    explicit Impl(std::filesystem::path given)
        : path(std::move(given)), file(path), source(open_source(file)), buffer(kFirstBuffer + kPadding) {}

    std::filesystem::path path;
    RawFile file;
    std::unique_ptr<Source> source;
    // [begin, end) is decompressed and not yet returned; kPadding bytes behind `end` are always there.
    std::vector<char> buffer;
    size_t begin = 0, end = 0;
    uint64_t lines = 0, bytes = 0;
    bool ended = false, truncated_ok = false, truncated = false, in_line = false;

    std::string where() const { return at(path.native(), lines); }

    // More bytes behind `end`; false at the end of the input.
    bool fill() {
        if (ended) {
            return false;
        }
        if (begin > 0) {
            std::memmove(buffer.data(), buffer.data() + begin, end - begin);
            end -= begin;
            begin = 0;
        }
        if (end + kPadding == buffer.size()) {
            if (end >= kLongestLine) {
                throw bad_input(at(path.native(), lines + 1), "the line is longer than 256 MiB; expected text",
                                "check that this is a text trace and not something else");
            }
            buffer.resize(end * 2 + kPadding);
        }
        size_t got = 0;
        try {
            got = source->read(buffer.data() + end, buffer.size() - kPadding - end);
        } catch (const Damage& damage) {
            if (!truncated_ok) {
                throw bad_input(path.native(),
                                damage.what + " (at byte " + std::to_string(damage.position) +
                                    " of the file, after line " + std::to_string(lines) + ")",
                                "copy the file again");
            }
            truncated = true;
        }
        end += got;
        bytes += got;
        ended = got == 0;
        return !ended;
    }
};

LineReader::LineReader(std::filesystem::path path) : impl_(std::make_unique<Impl>(std::move(path))) {}
LineReader::~LineReader() = default;

bool LineReader::next(std::string_view& line) {
    Impl& my = *impl_;
    size_t searched = 0;
    for (;;) {
        const char* start = my.buffer.data() + my.begin;
        const size_t length = my.end - my.begin;
        if (const void* found = length > searched ? std::memchr(start + searched, '\n', length - searched) : nullptr) {
            line = {start, static_cast<size_t>(static_cast<const char*>(found) - start)};
            my.begin += line.size() + 1;
            ++my.lines;
            return true;
        }
        searched = length;
        if (my.fill()) {
            continue;
        }
        if (length == 0) {
            return false;
        }
        // fill() moved the rest to the front and it ends the input.
        line = {my.buffer.data() + my.begin, my.end - my.begin};
        my.begin = my.end;
        my.in_line = true;
        ++my.lines;
        return true;
    }
}

uint64_t LineReader::line_number() const { return impl_->lines; }
uint64_t LineReader::bytes() const { return impl_->bytes - (impl_->end - impl_->begin); }
uint64_t LineReader::file_bytes() const { return impl_->source->used(); }
bool LineReader::truncated() const { return impl_->truncated; }
bool LineReader::ends_in_line() const { return impl_->in_line; }
void LineReader::set_truncated_ok(bool ok) { impl_->truncated_ok = ok; }
const std::filesystem::path& LineReader::path() const { return impl_->path; }
std::string LineReader::where() const { return impl_->where(); }

std::string read_head(const std::filesystem::path& path, size_t limit) {
    RawFile file(path);
    const auto source = open_source(file);
    std::string head(limit, '\0');
    size_t length = 0;
    try {
        while (length < limit) {
            const size_t got = source->read(head.data() + length, limit - length);
            if (got == 0) {
                break;
            }
            length += got;
        }
    } catch (const Damage&) {
        // What could be read is enough to recognise a format; the importer says what is wrong.
    }
    head.resize(length);
    return head;
}

std::optional<std::string> read_small_file(const std::filesystem::path& path, size_t most) {
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.valid()) {
        return std::nullopt;
    }
    std::string bytes;
    for (;;) {
        constexpr size_t kPiece = size_t{64} << 10;
        const size_t before = bytes.size();
        bytes.resize(before + kPiece);
        const ssize_t got = ::read(file.get(), bytes.data() + before, kPiece);
        if (got < 0 && errno != EINTR) {
            return std::nullopt;
        }
        bytes.resize(before + static_cast<size_t>(std::max<ssize_t>(got, 0)));
        if (got == 0 || bytes.size() > most) {
            bytes.resize(std::min(bytes.size(), most + 1));
            return bytes;
        }
    }
}

}  // namespace reprise
