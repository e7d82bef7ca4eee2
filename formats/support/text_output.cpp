// SPDX-License-Identifier: MIT
#include "formats/support/text_output.h"

#include <isa-l/igzip_lib.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <vector>

#include "formats/support/error.h"
#include "formats/support/limits.h"
#include "formats/support/new_file.h"

namespace reprise {
namespace {

// A stream of gzip, fed in pieces.
class Packer {
public:
    Packer() : level_(ISAL_DEF_LVL2_DEFAULT) {
        isal_deflate_init(&stream_);
        stream_.level = 2;
        stream_.level_buf = level_.data();
        stream_.level_buf_size = static_cast<uint32_t>(level_.size());
        stream_.gzip_flag = IGZIP_GZIP;
    }

    // Calls write(bytes) with what is ready; false where that failed.
    template <class Write>
    bool add(std::string_view bytes, bool last, Write write) {
        stream_.next_in = reinterpret_cast<uint8_t*>(const_cast<char*>(bytes.data()));  // only read
        stream_.avail_in = static_cast<uint32_t>(bytes.size());
        stream_.end_of_stream = last;
        do {
            stream_.next_out = out_.data();
            stream_.avail_out = static_cast<uint32_t>(out_.size());
            if (isal_deflate(&stream_) != COMP_OK) {
                return false;
            }
            const size_t ready = out_.size() - stream_.avail_out;
            if (ready > 0 && !write(std::string_view(reinterpret_cast<const char*>(out_.data()), ready))) {
                return false;
            }
        } while (stream_.avail_out == 0);
        return true;
    }

private:
    isal_zstream stream_{};
    std::vector<uint8_t> level_;
    std::array<uint8_t, 1 << 16> out_{};
};

Error cannot_write(const std::string& file) {
    const int error = errno ? errno : EIO;
    if (error == EBUSY) {
        return machine_error(escape_line(file) + " is being written by another reprise",
                             "wait until that is done, or choose another file");
    }
    return machine_error("cannot write " + (file == "-" ? "standard output" : escape_line(file)) + ": " + reason(error),
                         remedy(error, "check that the folder exists and is writable"));
}

}  // namespace

struct TextOutput::Sink {
    std::string name;  // of what is written: while `renames`, a .partial file that finish() renames
    bool renames = false;
    std::FILE* file = nullptr;
    UndoneAtEnd unfinished;
    std::unique_ptr<Packer> packer;  // where the output is compressed
};

TextOutput::TextOutput(std::filesystem::path path) : path_(std::move(path)), sink_(std::make_unique<Sink>()) {
    if (path_ == "-") {
        sink_->file = stdout;
        return;
    }
    std::error_code ignored;
    const auto type = std::filesystem::status(path_, ignored).type();
    using std::filesystem::file_type;
    sink_->renames = type != file_type::character && type != file_type::block && type != file_type::fifo &&
                     type != file_type::socket;
    sink_->name = path_.string() + (sink_->renames ? ".partial" : "");
    errno = 0;
    if (sink_->renames) {
        UniqueFd file;
        {
            const EndsHeld held;
            file = create_new_file(sink_->name);
            if (file.valid()) {
                sink_->unfinished = unfinished_file(sink_->name);
            }
        }
        sink_->file = file.valid() ? ::fdopen(file.get(), "wb") : nullptr;
        if (sink_->file) {
            (void)file.release();
        }
    } else {
        sink_->file = std::fopen(sink_->name.c_str(), "wbe");
    }
    if (!sink_->file) {
        throw cannot_write(path_.string());
    }
    if (path_.extension() == ".gz") {
        sink_->packer = std::make_unique<Packer>();
    }
}

TextOutput::~TextOutput() {
    if (sink_->file && sink_->file != stdout) {
        std::fclose(sink_->file);
    }
    if (sink_->renames) {
        std::remove(sink_->name.c_str());
    }
}

void TextOutput::write_out(bool last) {
    errno = 0;
    const auto write = [&](std::string_view bytes) {
        return std::fwrite(bytes.data(), 1, bytes.size(), sink_->file) == bytes.size();
    };
    if (!(sink_->packer ? sink_->packer->add(text, last, write) : write(text))) {
        throw cannot_write(path_.string());
    }
    text.clear();
}

void TextOutput::finish() {
    write_out(true);
    errno = 0;
    const bool done = sink_->file == stdout ? std::fflush(stdout) == 0 : std::fclose(sink_->file) == 0;
    sink_->file = nullptr;
    if (!done) {
        throw cannot_write(path_.string());
    }
    if (!sink_->renames) {
        return;
    }
    if (std::rename(sink_->name.c_str(), path_.c_str()) != 0) {
        throw cannot_write(path_.string());
    }
    sink_->renames = false;
    sink_->unfinished.forget();
}

}  // namespace reprise
