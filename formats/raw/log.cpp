// SPDX-License-Identifier: MIT
#include "formats/raw/log.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <xxhash.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "formats/support/compress.h"
#include "formats/support/error.h"
#include "formats/support/limits.h"
#include "formats/support/new_file.h"

namespace reprise {
namespace {

uint64_t chunk_hash(const RawChunkHead& head, ByteView stored) {
    return XXH64(stored.data(), stored.size(), uint64_t{head.codec} << 32 | head.raw);
}

// Whether a part holds what its type and length say.
bool part_whole(const raw_part& part) {
    const size_t data = part.size - sizeof(raw_part);
    switch (part.type) {
        case RAW_PART_FD: return data >= sizeof(raw_fd);
        case RAW_PART_PATH:
        case RAW_PART_STRING: return data >= part.length;
        case RAW_PART_LIST:
        case RAW_PART_VALUES: return data >= part.length * sizeof(raw_s64);
        case RAW_PART_STAT: return data >= sizeof(raw_stat);
        case RAW_PART_IOCB: return data >= sizeof(raw_iocb);
        case RAW_PART_EVENT: return data >= sizeof(raw_aio_event);
        default: return false;
    }
}

}  // namespace

size_t raw_struct_bytes(uint8_t type) {
    switch (type) {
        case RAW_META: return sizeof(raw_head);
        case RAW_CALL: return sizeof(raw_call);
        case RAW_SPAWN: return sizeof(raw_spawn);
        case RAW_EXEC: return sizeof(raw_exec);
        case RAW_EXIT: return sizeof(raw_exit);
        case RAW_SWITCH: return sizeof(raw_switch);
        case RAW_FAULT: return sizeof(raw_fault);
        case RAW_URING_SUBMIT:
        case RAW_URING_COMPLETE: return sizeof(raw_uring);
        case RAW_PAGE_CACHE: return sizeof(raw_page_cache);
        case RAW_BLOCK: return sizeof(raw_block);
        case RAW_PRESSURE: return sizeof(raw_pressure);
        case RAW_CLOCK: return sizeof(raw_clock);
        case RAW_SEED_TASK: return sizeof(raw_seed_task);
        case RAW_SEED_FD: return sizeof(raw_head);
        case RAW_SEED_MAP: return sizeof(raw_seed_map);
        case RAW_LOSS: return sizeof(raw_loss);
        case RAW_GPU: return sizeof(raw_gpu);
        case RAW_TOUCH: return sizeof(raw_touch);
        case RAW_STOLEN: return sizeof(raw_stolen);
        case RAW_FAULTS: return sizeof(raw_faults);
        case RAW_BACKING: return sizeof(raw_backing);
        case RAW_MEMORY: return sizeof(raw_memory);
        case RAW_USES: return sizeof(raw_uses);
        case RAW_RANK: return sizeof(raw_rank);
        case RAW_SOCKET: return sizeof(raw_socket);
        case RAW_HOLES: return sizeof(raw_holes);
        default: return 0;
    }
}

bool raw_records_whole(ByteView records) {
    while (!records.empty()) {
        if (records.size() < sizeof(raw_head)) {
            return false;
        }
        const auto& head = *reinterpret_cast<const raw_head*>(records.data());
        const size_t fixed = raw_struct_bytes(head.type);
        if (fixed == 0 || head.size < fixed || head.size % 8 != 0 || head.size > records.size()) {
            return false;
        }
        if (head.type != RAW_META) {
            size_t left = head.size - fixed;
            while (left != 0) {
                if (left < sizeof(raw_part)) {
                    return false;
                }
                const auto& part = *reinterpret_cast<const raw_part*>(records.data() + (head.size - left));
                if (part.size < sizeof(raw_part) || part.size % 8 != 0 || part.size > left) {
                    return false;
                }
                if (!part_whole(part)) {
                    return false;
                }
                left -= part.size;
            }
        }
        records = records.subspan(head.size);
    }
    return true;
}

// --- writer

namespace {

Error in_use(const std::filesystem::path& path) {
    return usage_error("another recording is writing " + escape_line(path.native()), "choose another file with -o");
}

}  // namespace

struct RawWriter::Impl {
    std::filesystem::path path;
    Options options;
    UniqueFd fd;
    Bytes current;  // being filled by append()

    std::mutex mutex;
    std::condition_variable work, room;
    std::deque<Bytes> queue;
    std::vector<Bytes> spare;  // buffers to fill again
    std::exception_ptr failure;
    bool stopping = false;
    uint64_t written = 0;
    std::thread thread;

    // Of the helper thread.
    Compressor compressor{-1};  // half the time of level 1 for 1 to 3 % more bytes
    Bytes packed;

    // Of the helper's priority; with the mutex held, but for the atomic.
    bool low = false, may_be_low = false;
    int own_priority = 0;
    std::atomic<id_t> helper = 0;  // 0: never low

    // In the helper, at its start.
    void may_give_way() {
        const auto self = static_cast<id_t>(::syscall(SYS_gettid));
        own_priority = ::getpriority(PRIO_PROCESS, self);
        rlimit limit{};
        // 20 - nice is the least that may be set again without the right to.
        const bool returns = ::geteuid() == 0 || (::getrlimit(RLIMIT_NICE, &limit) == 0 &&
                                                  static_cast<int64_t>(limit.rlim_cur) >= 20 - own_priority);
        may_be_low = options.gives_way && returns;
        helper = may_be_low ? self : 0;
    }

    // The helper may have been put aside with the mutex.
    std::unique_lock<std::mutex> lock_soon() {
        std::unique_lock lock(mutex, std::try_to_lock);
        if (!lock.owns_lock()) {
            if (const id_t thread = helper; thread != 0) {
                ::setpriority(PRIO_PROCESS, thread, own_priority);
            }
            lock.lock();
            low = low && ::setpriority(PRIO_PROCESS, helper, own_priority) != 0;  // again: it may have lowered it since
        }
        return lock;
    }

    // Where many chunks wait memory runs short, and records would be lost next.
    void set_priority() {
        constexpr int kLow = 19;
        const size_t most = options.pending_chunks / 4;
        const bool wanted = may_be_low && !stopping && queue.size() <= (low ? most : most / 4);
        if (wanted != low && ::setpriority(PRIO_PROCESS, helper, wanted ? kLow : own_priority) == 0) {
            low = wanted;
        }
    }

    [[noreturn]] void fail(const char* what, int error) const {
        throw machine_error(escape_line(path.string()) + ": " + what + ": " + reason(error),
                            remedy(error, "choose a folder that exists and may be written to"));
    }

    void write(ByteView bytes, uint64_t begin) const {
        while (!bytes.empty()) {
            const ssize_t n = ::write(fd.get(), bytes.data(), bytes.size());
            if (n < 0 && errno == EINTR) {
                continue;
            }
            if (n < 0) {
                const int error = errno;
                // Half a chunk is of no use; without it there is a little room again.
                if (::ftruncate(fd.get(), static_cast<off_t>(begin)) == 0) {
                    ::lseek(fd.get(), static_cast<off_t>(begin), SEEK_SET);
                }
                fail("cannot be written", error);
            }
            bytes = bytes.subspan(static_cast<size_t>(n));
        }
    }

    void write_chunk(ByteView raw) {
        packed.assign(sizeof(RawChunkHead), 0);
        RawChunkHead head;
        head.raw = static_cast<uint32_t>(raw.size());
        ByteView stored = raw;
        if (options.compress && !raw.empty()) {
            const size_t n = compressor.compress(raw, packed);
            if (n < raw.size()) {
                head.codec = 1;
                stored = ByteView(packed).subspan(sizeof head);
            }
        }
        if (head.codec == 0) {
            packed.resize(sizeof head);
            packed.insert(packed.end(), raw.begin(), raw.end());
            stored = ByteView(packed).subspan(sizeof head);
        }
        head.stored = static_cast<uint32_t>(stored.size());
        head.hash = chunk_hash(head, stored);
        std::memcpy(packed.data(), &head, sizeof head);
        write(packed, written);
        const std::lock_guard lock(mutex);
        written += packed.size();
    }

    void run() {
        std::unique_lock lock(mutex);
        may_give_way();
        while (true) {
            work.wait(lock, [&] { return stopping || !queue.empty(); });
            if (queue.empty()) {
                return;
            }
            Bytes chunk = std::move(queue.front());
            queue.pop_front();
            set_priority();
            if (!failure) {
                lock.unlock();
                std::exception_ptr error;
                try {
                    write_chunk(chunk);
                } catch (...) {
                    error = std::current_exception();
                }
                lock.lock();
                failure = error;
            }
            chunk.clear();
            spare.push_back(std::move(chunk));
            room.notify_one();
        }
    }

    void push() {
        if (current.empty()) {
            return;
        }
        std::unique_lock lock = lock_soon();
        room.wait(lock, [&] { return queue.size() < options.pending_chunks || failure; });
        if (failure) {
            std::rethrow_exception(failure);
        }
        queue.push_back(std::move(current));
        current = Bytes();
        if (!spare.empty()) {
            current = std::move(spare.back());
            spare.pop_back();
        }
        set_priority();
        lock.unlock();
        work.notify_one();
        current.reserve(kRawChunkBytes);
    }

    void stop() {
        if (!thread.joinable()) {
            return;
        }
        {
            const std::lock_guard lock(mutex);
            stopping = true;
            set_priority();
        }
        work.notify_one();
        thread.join();
    }
};

RawWriter::RawWriter(const std::filesystem::path& path, std::string_view meta, Options options)
    : impl_(std::make_unique<Impl>()) {
    Impl& impl = *impl_;
    impl.path = path;
    impl.options = options;
    if (meta.size() > 60000) {
        throw std::logic_error("RAW_META is too long");
    }
    if (raw_in_use(path)) {
        throw in_use(path);
    }
    impl.fd = create_new_file(path);
    if (!impl.fd.valid()) {
        impl.fail("cannot be created", errno);
    }
    // Not all file systems lock. Between the two calls another writer may have put its own file there.
    struct stat mine {
    }, there{};
    const bool lost = ::fstat(impl.fd.get(), &mine) == 0 && ::stat(path.c_str(), &there) == 0 &&
                      S_ISREG(mine.st_mode) && (mine.st_ino != there.st_ino || mine.st_dev != there.st_dev);
    if ((::flock(impl.fd.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) || lost) {
        throw in_use(path);
    }
    impl.write({reinterpret_cast<const uint8_t*>(kRawMagic), sizeof kRawMagic}, 0);
    impl.written = sizeof kRawMagic;
    raw_head head{};
    head.size = static_cast<raw_u16>((sizeof head + meta.size() + 7) / 8 * 8);
    head.type = RAW_META;
    impl.current.reserve(kRawChunkBytes);
    put_fixed(impl.current, head);
    impl.current.insert(impl.current.end(), meta.begin(), meta.end());
    impl.current.resize(head.size, 0);
    impl.thread = std::thread([&impl] { impl.run(); });
    // A recorder killed at once leaves a log that says what it was.
    flush();
}

RawWriter::~RawWriter() { impl_->stop(); }

UniqueFd RawWriter::lock() const { return UniqueFd(::fcntl(impl_->fd.get(), F_DUPFD_CLOEXEC, 0)); }

bool raw_in_use(const std::filesystem::path& path) {
    const UniqueFd file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    return file.valid() && ::flock(file.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

void RawWriter::append(ByteView records) {
    if (impl_->current.size() + records.size() > kRawChunkBytes) {
        impl_->push();
    }
    impl_->current.insert(impl_->current.end(), records.begin(), records.end());
}

void RawWriter::flush() { impl_->push(); }

void RawWriter::finish() {
    Impl& impl = *impl_;
    impl.push();
    impl.stop();
    if (impl.failure) {
        std::rethrow_exception(impl.failure);
    }
    impl.write_chunk({});
    // Some file systems cannot sync and say EINVAL; what they hold is as safe as it gets.
    if (::fsync(impl.fd.get()) != 0 && errno != EINVAL) {
        impl.fail("cannot be synced", errno);
    }
    if (::close(impl.fd.release()) != 0) {
        impl.fail("cannot be closed", errno);
    }
}

uint64_t RawWriter::bytes() const {
    const std::lock_guard lock(impl_->mutex);
    return impl_->written;
}

// --- reader

struct RawReader::Impl {
    std::filesystem::path path;
    UniqueFd fd;
    uint64_t offset = 0, size = 0;
    bool ended = false;
    std::string cut, meta;
    Bytes stored, raw;
    Decompressor decompressor;

    // false where the file ends before `n` bytes.
    bool read(void* to, size_t n) {
        auto* at = static_cast<uint8_t*>(to);
        while (n != 0) {
            const ssize_t got = ::pread(fd.get(), at, n, static_cast<off_t>(offset));
            if (got < 0 && errno == EINTR) {
                continue;
            }
            if (got < 0) {
                throw bad_input(reprise::at(path.string(), offset),
                                std::string("cannot be read: ") + std::strerror(errno),
                                "copy the file to a sound disk first");
            }
            if (got == 0) {
                return false;
            }
            at += got;
            n -= static_cast<size_t>(got);
            offset += static_cast<uint64_t>(got);
        }
        return true;
    }

    // What follows cannot be used; the log ends where it began.
    ByteView end_at(uint64_t chunk, const std::string& why) {
        ended = true;
        offset = size;
        cut = why + " at byte " + std::to_string(chunk) + "; " + std::to_string(size - chunk) + " bytes are not read";
        return {};
    }

    ByteView next() {
        if (ended) {
            return {};
        }
        const uint64_t begin = offset;
        if (begin >= size) {
            return end_at(begin, "the recorder did not end it: no end mark");
        }
        RawChunkHead head;
        if (!read(&head, sizeof head)) {
            return end_at(begin, "it ends inside a chunk");
        }
        if (head.magic != RawChunkHead::kMagic || head.codec > 1 || head.raw > kRawChunkBytes ||
            head.stored > head.raw || (head.codec == 0 && head.stored != head.raw)) {
            return end_at(begin, "damaged chunk");
        }
        if (head.stored > size - offset) {
            return end_at(begin, "it ends inside a chunk");
        }
        stored.resize(head.stored);
        if (!read(stored.data(), stored.size())) {
            return end_at(begin, "it ends inside a chunk");
        }
        if (chunk_hash(head, stored) != head.hash) {
            return end_at(begin, "the checksum of a chunk differs");
        }
        if (head.raw == 0) {
            ended = true;
            return {};
        }
        if (head.codec == 0) {
            raw.swap(stored);
        } else {
            raw.resize(head.raw);
            try {
                decompressor.decompress(stored, raw);
            } catch (const Corrupt&) {
                return end_at(begin, "a chunk cannot be unpacked");
            }
        }
        if (!raw_records_whole(raw)) {
            return end_at(begin, "a chunk holds something else than records");
        }
        return raw;
    }
};

RawReader::RawReader(const std::filesystem::path& path) : impl_(std::make_unique<Impl>()) {
    Impl& impl = *impl_;
    impl.path = path;
    impl.fd.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat stat {};
    if (!impl.fd.valid() || ::fstat(impl.fd.get(), &stat) != 0) {
        throw bad_input(path.string(), std::string("cannot be opened: ") + std::strerror(errno),
                        "name a raw log of reprise capture");
    }
    impl.size = static_cast<uint64_t>(stat.st_size);
    uint8_t magic[sizeof kRawMagic];
    if (!impl.read(magic, sizeof magic) || !sniff(magic)) {
        throw bad_input(path.string(), "is not a raw log of reprise capture", "name the .raw file that capture left");
    }
    if (std::memcmp(magic, kRawMagic, sizeof magic) != 0) {
        throw bad_input(
            path.string(),
            "is a raw log of version " + std::to_string(magic[6]) + ", expected " + std::to_string(RAW_VERSION),
            "read it with the version of reprise that recorded it");
    }
    const uint64_t begin = impl.offset;
    const ByteView first = impl.next();
    const auto* head = reinterpret_cast<const raw_head*>(first.data());
    if (first.empty() || head->type != RAW_META) {
        throw bad_input(path.string(), "holds no records" + (impl.cut.empty() ? "" : ": " + impl.cut),
                        "the recorder was killed before it wrote anything; record again");
    }
    impl.meta.assign(reinterpret_cast<const char*>(head + 1), head->size - sizeof *head);
    while (!impl.meta.empty() && impl.meta.back() == '\0') {
        impl.meta.pop_back();
    }
    impl.offset = begin;
}

RawReader::~RawReader() = default;
ByteView RawReader::next() { return impl_->next(); }
const std::string& RawReader::meta() const { return impl_->meta; }
const std::string& RawReader::cut() const { return impl_->cut; }
uint64_t RawReader::offset() const { return impl_->offset; }
uint64_t RawReader::file_bytes() const { return impl_->size; }
const std::filesystem::path& RawReader::path() const { return impl_->path; }

bool RawReader::sniff(ByteView first_bytes) {
    return first_bytes.size() >= sizeof kRawMagic && std::memcmp(first_bytes.data(), kRawMagic, 6) == 0;
}

}  // namespace reprise
