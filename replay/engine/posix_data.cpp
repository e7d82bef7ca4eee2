// SPDX-License-Identifier: MIT
// Vectored calls, and copies inside the kernel.
#include <linux/fs.h>
#include <unistd.h>
#include <algorithm>
#include <climits>
#include <cstring>
#include <utility>

#include "replay/engine/posix.h"

namespace reprise {

int PosixEngine::pieces(std::span<const int64_t> sizes, int64_t total, std::byte* base, size_t most) {
    iov_.clear();
    size_t used = 0;
    const auto add = [&](int64_t size) {
        const size_t bytes = std::min(static_cast<size_t>(std::max<int64_t>(size, 0)), most - used);
        iov_.push_back({base + used, bytes});
        used += bytes;
    };
    if (sizes.empty()) {
        add(total);
    }
    for (const int64_t size : sizes.first(std::min<size_t>(sizes.size(), IOV_MAX))) {
        add(size);
    }
    return static_cast<int>(iov_.size());
}

int64_t PosixEngine::vectored(const OpBlock& b, size_t i, OpKind kind) {
    int64_t refusal = 0;
    const int fd = descriptor(b.handle[i], &refusal);
    if (refusal != 0) {
        return refusal;
    }
    const bool reads = kind == OpKind::readv || kind == OpKind::preadv;
    std::byte* const base = reads ? buffer_ : outgoing(b.handle[i], write_size(b.size[i]));
    const size_t off = off_by(b, i), most = (reads ? buffer_bytes_ : worker_.pattern.size()) - off;
    const int count = pieces(b.list_of(i), b.size[i], base + off, most);
    const bool moves = at_position(kind);
    const int64_t offset = moves ? -1 : b.offset[i];
    const int64_t rwf = b.flags[i] & 0xffffffff;
    const auto make = [&](int64_t flags) {
        if (moves && flags == 0) {
            return sys::call(reads ? SYS_readv : SYS_writev, fd, iov_.data(), count);
        }
        if (flags == 0) {
            return sys::call(reads ? SYS_preadv : SYS_pwritev, fd, iov_.data(), count, offset, 0);
        }
        return sys::call(reads ? SYS_preadv2 : SYS_pwritev2, fd, iov_.data(), count, offset, 0, flags);
    };
    int64_t result = make(rwf);
    // What the job had at once has to come from the storage here, and nothing later in the log asks for it.
    const bool less = result == -EAGAIN || (result >= 0 && !moves && result < b.result[i]);
    if ((rwf & RWF_NOWAIT) != 0 && b.result[i] > 0 && less) {
        const int64_t first = std::exchange(result, make(rwf & ~int64_t{RWF_NOWAIT}));
        counts_[AccessCount::waited] += result > first ? 1 : 0;  // else the file ends there
    }
    return result == -EINVAL ? in_whole_blocks(b, i, kind, fd) : result;
}

void PosixEngine::count_part(BlockRange asked, int64_t result, int64_t fetched) {
    if (result < 0) {
        return;
    }
    using enum AccessCount;
    const bool reads = fetched >= 0;
    ++counts_[reads ? part_reads : part_writes];
    counts_[reads ? part_asked : part_written] += static_cast<uint64_t>(std::min(result, asked.size));
    counts_[part_fetched] += static_cast<uint64_t>(std::max<int64_t>(fetched, 0));
}

// What was asked for lies at the beginning of `buffer_` afterwards, as with other reads, where somebody looks.
int64_t PosixEngine::read_part(int fd, BlockRange asked, int64_t expected, int64_t block) {
    if (!blocks_) {
        blocks_ = std::make_unique<ReadBuffer>(buffer_bytes_ + 2 * static_cast<size_t>(kMostBlock), false);
    }
    const BlockRead read = read_whole_blocks(fd, blocks_->data(), asked, expected, block);
    count_part(asked, read.result, read.fetched);
    if (worker_.plan.verify != nullptr && read.result > 0) {
        std::memcpy(buffer_, blocks_->data() + (asked.offset & (block - 1)), static_cast<size_t>(read.result));
    }
    return read.result;
}

int64_t PosixEngine::in_whole_blocks(const OpBlock& b, size_t i, OpKind kind, int fd) {
    const bool reads = info(kind).is(Trait::reads);
    const bool moves = at_position(kind);
    const int64_t block = b.result[i] >= 0 && is_direct(b.handle[i]) ? stated_block(fd).value_or(kUsualBlock) : 0;
    const BlockRange asked{
        moves ? sys::aside(SYS_lseek, fd, 0, SEEK_CUR) : b.offset[i],
        static_cast<int64_t>(reads ? read_size(b.size[i]) : write_size(std::max<int64_t>(b.result[i], 0)))};
    if (!asked.is_part(block)) {
        return -EINVAL;
    }
    sys::call_ticks.reset();
    int64_t result = 0;
    if (reads) {
        result = read_part(fd, asked, b.result[i], block);
        if (result > 0 && moves) {
            sys::aside(SYS_lseek, fd, asked.offset + result, SEEK_SET);
        }
    } else {
        const auto size = static_cast<size_t>(asked.size);
        result = write_around_direct(fd, outgoing(b.handle[i], size), moves ? -1 : asked.offset, asked.size);
        count_part(asked, result, -1);
    }
    return result;
}

bool PosixEngine::open_pipe() {
    if (pipe_[0] < 0) {
        if (pipe2(pipe_, O_CLOEXEC | O_NONBLOCK) != 0) {
            pipe_[0] = pipe_[1] = -1;
            return false;
        }
        ::fcntl(pipe_[1], F_SETPIPE_SZ, 1 << 20);
    }
    if (null_ < 0) {
        null_ = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    }
    return null_ >= 0;
}

// Whether a copy gives its offset. Where the log does not tell and the offset is where the instance stands, the call is
// taken to have used its position and moved it: one that gives the position itself is mostly followed by no use of it.
bool PosixEngine::gives_offset(int fd, int64_t offset, bool told) {
    return offset >= 0 && (told || sys::aside(SYS_lseek, fd, 0, SEEK_CUR) != offset);
}

int64_t PosixEngine::into_nothing(int fd, int64_t offset, bool by_offset, size_t bytes) {
    if (!open_pipe()) {
        return -EMFILE;
    }
    size_t done = 0;
    while (done < bytes) {
        int64_t* const at = by_offset ? &offset : nullptr;
        const int64_t in = sys::call(SYS_splice, fd, at, pipe_[1], nullptr, bytes - done, 0);
        if (in <= 0) {
            return done > 0 ? static_cast<int64_t>(done) : in;
        }
        for (int64_t rest = in; rest > 0;) {
            const int64_t out = sys::call(SYS_splice, pipe_[0], nullptr, null_, nullptr, rest, 0);
            if (out <= 0) {
                return out < 0 ? out : static_cast<int64_t>(done);
            }
            rest -= out;
        }
        done += static_cast<size_t>(in);
    }
    return static_cast<int64_t>(done);
}

int64_t PosixEngine::from_nothing(HandleId handle, int fd, int64_t offset, bool by_offset, size_t bytes) {
    if (!open_pipe() || worker_.pattern.size() == 0) {
        return -EMFILE;
    }
    size_t done = 0;
    while (done < bytes) {
        const size_t most = std::min(bytes - done, std::min(worker_.pattern.size(), size_t{1} << 16));
        const int64_t in = sys::call(SYS_write, pipe_[1], outgoing(handle, most), most);
        if (in <= 0) {
            return done > 0 ? static_cast<int64_t>(done) : in;
        }
        for (int64_t rest = in; rest > 0;) {
            int64_t* const at = by_offset ? &offset : nullptr;
            const int64_t out = sys::call(SYS_splice, pipe_[0], nullptr, fd, at, rest, 0);
            if (out <= 0) {
                // What is left in the pipe belongs to no later op.
                while (sys::call(SYS_splice, pipe_[0], nullptr, null_, nullptr, 1 << 20, 0) > 0) {
                }
                return done > 0 ? static_cast<int64_t>(done) : out;
            }
            rest -= out;
            done += static_cast<size_t>(out);
        }
    }
    return static_cast<int64_t>(done);
}

// Shares the blocks where the storage can, and copies them where it cannot, as cp does.
int64_t PosixEngine::clone(int from, int64_t offset, int to, int64_t offset2, size_t bytes) {
    file_clone_range range{};
    range.src_fd = from;
    range.src_offset = static_cast<uint64_t>(offset);
    range.src_length = bytes;
    range.dest_offset = static_cast<uint64_t>(offset2);
    if (bytes == 0 || sys::call(SYS_ioctl, to, FICLONERANGE, &range) == 0) {
        return static_cast<int64_t>(bytes);
    }
    size_t done = 0;
    while (done < bytes) {
        const int64_t copied = sys::call(SYS_copy_file_range, from, &offset, to, &offset2, bytes - done, 0);
        if (copied <= 0) {
            return done > 0 ? static_cast<int64_t>(done) : copied;
        }
        done += static_cast<size_t>(copied);
    }
    return static_cast<int64_t>(done);
}

// Whether a call failed in the recording because of where its two places were: on two file systems, or on storage that
// cannot share blocks. In the root both are on one, which may do more; the job's own way around follows in the log.
bool PosixEngine::storage_refused(const OpBlock& b, size_t i, OpKind kind) {
    const int64_t result = b.result[i];
    if (kind != OpKind::copy_file_range) {
        return result == -EXDEV;
    }
    const bool clones = (b.flags[i] & kCopyClones) != 0;
    return result == -EXDEV || result == -EOPNOTSUPP || result == -ENOSYS ||
           (clones && (result == -EINVAL || result == -ENOTTY));
}

int64_t PosixEngine::copy(const OpBlock& b, size_t i, OpKind kind) {
    int64_t from_refusal = 0, to_refusal = 0;
    const int from = descriptor(b.handle[i], &from_refusal);
    const int to = descriptor(b.handle2[i], &to_refusal);
    const auto bytes = static_cast<size_t>(std::clamp<int64_t>(b.size[i], 0, kMostBytes));
    const bool from_told = (b.flags[i] & kCopyFromOffset) != 0, to_told = (b.flags[i] & kCopyToOffset) != 0;
    // Of what is left out, such as a program, nothing is read; what the job made of it is written.
    if (from_refusal == not_performed(LeftOut::filter) && to_refusal == 0 && b.handle2[i] != 0) {
        const auto moved = static_cast<size_t>(std::max<int64_t>(b.result[i], 0));
        const bool by_offset = kind != OpKind::sendfile && gives_offset(to, b.offset2[i], to_told);
        return b.result[i] <= 0 ? b.result[i] : from_nothing(b.handle2[i], to, b.offset2[i], by_offset, moved);
    }
    const bool from_pipe = b.handle[i] == 0 || from_refusal == not_performed(LeftOut::not_a_file);
    const bool to_pipe = b.handle2[i] == 0 || to_refusal == not_performed(LeftOut::not_a_file);
    if (from_pipe && to_pipe) {
        return not_performed(LeftOut::not_a_file);
    }
    if (from_pipe) {
        if (to_refusal != 0) {
            return to_refusal;
        }
        const bool by_offset = kind == OpKind::splice && gives_offset(to, b.offset2[i], to_told);
        return from_nothing(b.handle2[i], to, b.offset2[i], by_offset, bytes);
    }
    if (to_pipe) {
        if (from_refusal != 0) {
            return from_refusal;
        }
        return into_nothing(from, b.offset[i], gives_offset(from, b.offset[i], from_told), bytes);
    }
    if (from_refusal != 0 || to_refusal != 0) {
        return from_refusal != 0 ? from_refusal : to_refusal;
    }
    if (storage_refused(b, i, kind)) {
        return b.result[i];
    }
    if (kind == OpKind::copy_file_range && (b.flags[i] & kCopyClones) != 0) {
        return clone(from, b.offset[i], to, b.offset2[i], static_cast<size_t>(std::max<int64_t>(b.size[i], 0)));
    }
    int64_t offset = b.offset[i], offset2 = b.offset2[i];
    int64_t* const in = gives_offset(from, offset, from_told) ? &offset : nullptr;
    if (kind == OpKind::sendfile) {
        return sys::call(SYS_sendfile, to, from, in, bytes);
    }
    int64_t* const out = gives_offset(to, offset2, to_told) ? &offset2 : nullptr;
    if (kind == OpKind::splice) {
        // Fails, as for the job (pv tries it first); what it did then follows in the log.
        return sys::call(SYS_splice, from, in, to, out, bytes, 0);
    }
    return sys::call(SYS_copy_file_range, from, in, to, out, bytes, 0);
}

}  // namespace reprise
