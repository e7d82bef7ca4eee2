// SPDX-License-Identifier: MIT
#include "replay/engine/mappings.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstring>

namespace reprise {
namespace {

thread_local sigjmp_buf* touching = nullptr;

void on_fault(int signal) {
    if (touching != nullptr) {
        // The jump leaves the handler: what it blocks must not stay blocked.
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGBUS);
        sigaddset(&set, SIGSEGV);
        pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
        siglongjmp(*touching, signal);
    }
    // Not a touch: a bug. Die of it as usual.
    std::signal(signal, SIG_DFL);
    raise(signal);
}

size_t page_size() {
    static const auto size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    return size;
}

size_t whole_pages(size_t bytes) { return (bytes + page_size() - 1) / page_size() * page_size(); }

}  // namespace

void install_touch_guard() {
    struct sigaction action {};
    action.sa_handler = on_fault;
    sigaction(SIGBUS, &action, nullptr);
    sigaction(SIGSEGV, &action, nullptr);
}

namespace {

[[gnu::noinline]] void touch_all(std::byte* at, size_t bytes, bool write) {
    const size_t page = page_size();
    const std::byte* const end = at + bytes;
    for (std::byte* byte = at; byte < end; byte += page - (reinterpret_cast<uintptr_t>(byte) & (page - 1))) {
        if (write) {
            rewrite_byte(byte);
        } else {
            // Atomic: other threads may touch the same page.
            static_cast<void>(__atomic_load_n(reinterpret_cast<volatile unsigned char*>(byte), __ATOMIC_RELAXED));
        }
    }
}

/// Uses memory whose file may have become shorter. 0, or -EFAULT.
template <class Use>
int guarded(const Use& use) {
    sigjmp_buf here;
    if (sigsetjmp(here, 0) != 0) {
        touching = nullptr;
        return -EFAULT;
    }
    touching = &here;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    use();
    std::atomic_signal_fence(std::memory_order_seq_cst);
    touching = nullptr;
    return 0;
}

}  // namespace

int touch_pages(std::byte* at, size_t bytes, bool write) {
    return guarded([&] { touch_all(at, bytes, write); });
}

int fill_pages(std::span<std::byte> memory, const std::function<void(std::span<std::byte>)>& fill) {
    return guarded([&] { fill(memory); });
}

MappingTable::Pieces::const_iterator MappingTable::find(const Pieces& pieces, uint64_t offset) {
    const auto found = std::find_if(pieces.rbegin(), pieces.rend(),
                                    [&](const Piece& piece) { return piece.offset <= offset && offset < piece.end(); });
    return found == pieces.rend() ? pieces.end() : std::prev(found.base());
}

MappingTable::Range MappingTable::range(uint32_t map, int64_t offset, int64_t bytes) const {
    const std::lock_guard guard(lock_);
    if (map >= pieces_.size() || offset < 0 || bytes <= 0) {
        return {};
    }
    const auto at = static_cast<uint64_t>(offset);
    const auto piece = find(pieces_[map], at);
    if (piece == pieces_[map].end()) {
        return {};
    }
    return {piece->at + (at - piece->offset), std::min<size_t>(static_cast<size_t>(bytes), piece->end() - at)};
}

bool MappingTable::has(uint32_t map) const {
    const std::lock_guard guard(lock_);
    return map < pieces_.size() && !pieces_[map].empty();
}

bool MappingTable::of_file(uint32_t map) const {
    const std::lock_guard guard(lock_);
    return map < of_file_.size() && of_file_[map];
}

MappingTable::Place MappingTable::place(uint32_t map) const {
    const std::lock_guard guard(lock_);
    return map < places_.size() ? places_[map] : Place{};
}

void MappingTable::put(uint32_t map, Range range, bool of_file, Place place) {
    const std::lock_guard guard(lock_);
    if (map == 0 || map >= limit_) {
        munmap(range.at, range.bytes);
        return;
    }
    if (map >= pieces_.size()) {
        pieces_.resize(std::min<size_t>(limit_, std::max<size_t>(map + 1, pieces_.size() * 2)));
    }
    for (const Piece& piece : pieces_[map]) {
        munmap(piece.at, piece.bytes);
    }
    pieces_[map] = {{0, range.at, whole_pages(range.bytes)}};
    of_file_.resize(pieces_.size());
    of_file_[map] = of_file;
    places_.resize(pieces_.size());
    places_[map] = place;
}

// Takes [from, to) out of a piece that holds all of it.
void MappingTable::cut(Pieces& pieces, Pieces::const_iterator of, uint64_t from, uint64_t to) {
    const Piece piece = *of;
    auto next = pieces.erase(of);
    if (to < piece.end()) {
        next = pieces.insert(next, {to, piece.at + (to - piece.offset), piece.end() - to});
    }
    if (from > piece.offset) {
        pieces.insert(next, {piece.offset, piece.at, from - piece.offset});
    }
}

// Makes one of the last piece and those it continues, or that continue it, in the mapping and in memory.
void MappingTable::join(Pieces& pieces) {
    Piece last = pieces.back();
    pieces.pop_back();
    const auto joins = [&](const Piece& before, const Piece& after) {
        return before.end() == after.offset && before.at + before.bytes == after.at;
    };
    for (auto piece = pieces.begin(); piece != pieces.end();) {
        if (joins(*piece, last)) {
            last = {piece->offset, piece->at, piece->bytes + last.bytes};
        } else if (joins(last, *piece)) {
            last.bytes += piece->bytes;
        } else {
            ++piece;
            continue;
        }
        piece = pieces.erase(piece);
    }
    pieces.push_back(last);
}

int MappingTable::unmap(uint32_t map, int64_t offset, int64_t bytes) {
    const std::lock_guard guard(lock_);
    uint64_t end = 0;
    if (map >= pieces_.size() || offset < 0 || bytes <= 0 || static_cast<size_t>(offset) % page_size() != 0 ||
        __builtin_add_overflow(static_cast<uint64_t>(offset), whole_pages(static_cast<size_t>(bytes)), &end)) {
        return -EINVAL;
    }
    Pieces& pieces = pieces_[map];
    for (auto at = static_cast<uint64_t>(offset); at < end;) {
        const auto piece = find(pieces, at);
        if (piece == pieces.end()) {
            // Nothing here: on to what follows the hole.
            uint64_t next = end;
            for (const Piece& each : pieces) {
                if (each.offset > at) {
                    next = std::min(next, each.offset);
                }
            }
            at = next;
            continue;
        }
        // As far as no newer piece stands before it.
        uint64_t to = std::min(end, piece->end());
        for (auto newer = std::next(piece); newer != pieces.end(); ++newer) {
            if (newer->offset > at) {
                to = std::min(to, newer->offset);
            }
        }
        if (munmap(piece->at + (at - piece->offset), to - at) != 0) {
            return -errno;
        }
        cut(pieces, piece, at, to);
        at = to;
    }
    return 0;
}

int MappingTable::remap(uint32_t map, int64_t offset, int64_t old_bytes, int64_t bytes, int64_t flags) {
    const std::lock_guard guard(lock_);
    if (map >= pieces_.size() || offset < 0) {
        return -EFAULT;
    }
    if (bytes <= 0 || old_bytes < 0 || static_cast<size_t>(offset) % page_size() != 0) {
        return -EINVAL;
    }
    Pieces& pieces = pieces_[map];
    const auto from = static_cast<uint64_t>(offset);
    const auto piece = find(pieces, from);
    if (piece == pieces.end()) {
        return -EFAULT;
    }
    const size_t old_size = std::min<size_t>(whole_pages(static_cast<size_t>(old_bytes)), piece->end() - from);
    const size_t size = whole_pages(static_cast<size_t>(bytes));
    // The recorded call may have grown in place; here its neighbours are others, so what grows may move. Where the job
    // chose the place, any will do.
    const int64_t how =
        (flags & (MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP)) | (size > old_size ? MREMAP_MAYMOVE : 0);
    void* to = nullptr;
    if ((how & MREMAP_FIXED) != 0) {
        to = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (to == MAP_FAILED) {
            return -errno;
        }
    }
    void* const at = mremap(piece->at + (from - piece->offset), old_size, size, static_cast<int>(how), to);
    if (at == MAP_FAILED) {
        const int error = errno;
        if (to != nullptr) {
            munmap(to, size);
        }
        return -error;
    }
    if ((how & MREMAP_DONTUNMAP) == 0 && old_size != 0) {
        cut(pieces, piece, from, from + old_size);
    }
    pieces.push_back({from, static_cast<std::byte*>(at), size});
    join(pieces);
    return 0;
}

void MappingTable::set_absent(uint32_t map, LeftOut reason) {
    const std::lock_guard guard(lock_);
    absent_[map] = reason;
}

LeftOut MappingTable::absent_reason(uint32_t map) const {
    const std::lock_guard guard(lock_);
    const auto found = absent_.find(map);
    return found == absent_.end() ? LeftOut::not_open : found->second;
}

bool MappingTable::empty() const {
    return std::all_of(pieces_.begin(), pieces_.end(), [](const Pieces& pieces) { return pieces.empty(); });
}

void MappingTable::clear() {
    const std::lock_guard guard(lock_);
    absent_.clear();
    for (Pieces& pieces : pieces_) {
        for (const Piece& piece : pieces) {
            munmap(piece.at, piece.bytes);
        }
        pieces.clear();
    }
}

}  // namespace reprise
