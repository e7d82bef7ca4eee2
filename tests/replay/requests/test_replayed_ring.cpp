// SPDX-License-Identifier: MIT
// Requests given to the kernel and taken back: by io_uring, by libaio, and by threads in their place.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "calibrate/clock.h"
#include "replay/requests/replayed_ring.h"
#include "tests/support.h"

using namespace reprise;
using namespace reprise::test;

namespace {

using Does = AsyncRequest::Does;

constexpr int64_t kSlice = 10'000'000;       // ns
constexpr int64_t kInVain = 10'000'000'000;  // ns, of a wait that nothing ends

struct OpenFile {
    explicit OpenFile(const std::filesystem::path& path, int flags) : fd(::open(path.c_str(), flags, 0600)) {
        REQUIRE(fd >= 0);
    }
    ~OpenFile() { ::close(fd); }
    OpenFile(const OpenFile&) = delete;
    OpenFile& operator=(const OpenFile&) = delete;
    const int fd;
};

struct Queues {
    TempDir dir;
    Queues() { write_file(dir / "in", std::string(20'000, 'a')); }
    const OpenFile in{dir / "in", O_RDONLY | O_CREAT};

    static RequestCall read(uint32_t id, int fd, int64_t offset, int64_t size, std::byte* to) {
        RequestCall call;
        call.asked.does = Does::read;
        call.asked.offset = offset;
        call.asked.size = size;
        call.fd = fd;
        call.id = id;
        call.buffer = to;
        call.bytes = static_cast<size_t>(size);
        return call;
    }
};

void wait_for(ReplayedRing& ring, uint64_t count, uint32_t id = 0) {
    while (!ring.has(count, id)) {
        ring.wait(kSlice, count, {count, id});
    }
}

int64_t result_of(ReplayedRing& ring, uint32_t id) {
    wait_for(ring, 0, id);
    int64_t result = INT64_MIN;
    bool known = false;
    uint64_t tick = 0;
    CHECK(ring.claim(id, &result, &tick, &known));
    CHECK(known);
    return result;
}

/// Whether a wait that may take kInVain ended before.
bool ends(const std::function<void()>& wait) {
    const int64_t begin = monotonic_ns();
    wait();
    return monotonic_ns() - begin < kInVain;
}

/// Without a CHECK, for threads.
bool has_result(ReplayedRing& ring, uint32_t id, int64_t expected) {
    int64_t result = 0;
    bool known = false;
    uint64_t tick = 0;
    return ring.claim(id, &result, &tick, &known) && result == expected;
}

/// The test runs once for each.
RingOptions of_each_kind_shared() {
    RingOptions options;
    options.queue.depth = 64;
    options.shared = true;
    SUBCASE("io_uring") {}
    SUBCASE("libaio") { options.aio = true; }
    return options;
}

}  // namespace

TEST_CASE_FIXTURE(Queues, "requests: each kind of queue does what is asked, and tells each result once") {
    RingOptions options;
    options.queue.depth = 4;
    options.buffer_bytes = 8192;
    SUBCASE("io_uring") {}
    SUBCASE("io_uring, shared") { options.shared = true; }
    SUBCASE("libaio") { options.aio = true; }
    SUBCASE("libaio, shared") { options.aio = options.shared = true; }
    ReplayedRing ring(options);
    REQUIRE(ring.refused() == 0);
    ring.add(read(1, in.fd, 19'900, 200, ring.buffer()));
    ring.add(read(2, in.fd, 0, 8192, ring.buffer()));
    ring.add(read(3, -1, 0, 100, ring.buffer()));
    // The lowest bits of its number are those of request 1.
    ring.add(read(1 + 1024, in.fd, 100, 300, ring.buffer()));
    CHECK_FALSE(ring.has(1, 0));
    int64_t result = 0;
    bool known = false;
    uint64_t tick = 0;
    CHECK_FALSE(ring.claim(2, &result, &tick, &known));
    CHECK(known);
    ring.submit();
    wait_for(ring, 4);
    CHECK(ring.has_claimed());
    CHECK(result_of(ring, 2) == 8192);
    CHECK_FALSE(ring.has_claimed());
    CHECK(result_of(ring, 1025) == 300);
    CHECK(result_of(ring, 1) == 100);
    CHECK(result_of(ring, 3) == -EBADF);
    CHECK_FALSE(ring.claim(1, &result, &tick, &known));
    CHECK_FALSE(known);
    CHECK(ring.in_flight() == 0);
    CHECK_FALSE(ring.has(5, 0));
    ring.skip(1);  // one that was not made
    CHECK(ring.has(5, 0));
}

TEST_CASE_FIXTURE(Queues, "requests: each vectored one keeps its own pieces until the kernel takes it") {
    RingOptions options;
    options.queue.depth = 4;
    options.buffer_bytes = 8192;
    SUBCASE("io_uring") {}
    SUBCASE("io_uring, polled") { options.queue.polled = true; }
    SUBCASE("libaio") { options.aio = true; }
    ReplayedRing ring(options);
    REQUIRE(ring.refused() == 0);
    std::array<iovec, 2> pieces{};  // of the request at hand, as the engine's
    const auto add = [&](uint32_t id, int64_t from, size_t first, size_t second) {
        RequestCall call = read(id, in.fd, from, static_cast<int64_t>(first + second), ring.buffer());
        call.asked.vectored = true;
        pieces = {iovec{call.buffer, first}, iovec{call.buffer + first, second}};
        call.pieces = std::span(pieces).first(second == 0 ? 1 : 2);
        ring.add(call);
    };
    for (uint32_t round = 0; round < 300; ++round) {  // the entries of the ring come again
        const uint32_t id = 1 + round * 4;
        add(id, 0, 14, 0);
        add(id + 1, 100, 200, 86);
        add(id + 2, 500, 1, 0);
        add(id + 3, 900, 4096, 4);
        pieces = {};
        ring.submit();
        CHECK(result_of(ring, id) == 14);
        CHECK(result_of(ring, id + 1) == 286);
        CHECK(result_of(ring, id + 2) == 1);
        CHECK(result_of(ring, id + 3) == 4100);
    }
}

TEST_CASE_FIXTURE(Queues, "requests: each is seen when it is done, also while several are waited for") {
    std::array<int, 2> early{}, late{};
    REQUIRE(pipe2(early.data(), O_CLOEXEC) == 0);
    REQUIRE(pipe2(late.data(), O_CLOEXEC) == 0);
    RingOptions options;
    options.queue.depth = 4;
    ReplayedRing ring(options);
    REQUIRE(ring.refused() == 0);
    ring.add(read(1, early[0], -1, 1, ring.buffer()));
    ring.add(read(2, late[0], -1, 1, ring.buffer()));
    ring.submit_and_wait(kSlice, 2, {});
    CHECK_FALSE(ring.has(1, 0));
    std::thread writer([&] {
        CHECK(write(early[1], "a", 1) == 1);
        while (ring.in_flight() == 2) {
            std::this_thread::yield();
        }
        CHECK(write(late[1], "b", 1) == 1);
    });
    for (int turns = 0; turns < 1000 && !ring.has(2, 0); ++turns) {
        ring.wait(10 * kSlice, 0, {});
    }
    CHECK(ring.has(2, 0));
    writer.join();
    std::array<uint64_t, 2> seen{};
    for (uint32_t id = 1; id <= 2; ++id) {
        int64_t result = 0;
        bool known = false;
        CHECK(ring.claim(id, &result, &seen[id - 1], &known));
        CHECK(result == 1);
    }
    CHECK(seen[0] < seen[1]);
    for (const int fd : {early[0], early[1], late[0], late[1]}) {
        ::close(fd);
    }
}

TEST_CASE_FIXTURE(Queues, "requests: of a read that takes whole blocks, what was asked for counts") {
    RingOptions options;
    options.queue.depth = 4;
    options.buffer_bytes = 8192;
    SUBCASE("io_uring") {}
    SUBCASE("libaio") { options.aio = true; }
    ReplayedRing ring(options);
    REQUIRE(ring.refused() == 0);
    const auto blocks = [&](uint32_t id, int64_t from, size_t bytes, uint32_t head, int64_t wanted, int fd) {
        RequestCall call = read(id, fd, from, bytes, ring.buffer());
        call.head = head;
        call.wanted = wanted;
        ring.add(call);
    };
    blocks(1, 0, 4096, 512, 1024, in.fd);
    blocks(2, 16'384, 4096, 3000, 1000, in.fd);  // the file ends at 20,000
    blocks(3, 16'384, 4096, 3700, 396, in.fd);   // behind its end
    blocks(4, 0, 4096, 512, 1024, -1);
    ring.submit();
    CHECK(result_of(ring, 1) == 1024);
    CHECK(result_of(ring, 2) == 616);
    CHECK(result_of(ring, 3) == 0);
    CHECK(result_of(ring, 4) == -EBADF);
}

TEST_CASE_FIXTURE(Queues, "requests: more in line than a ring has room for, and more at a time than it was made for") {
    RingOptions options;
    options.queue.depth = 1;
    SUBCASE("io_uring") {}
    SUBCASE("libaio") { options.aio = true; }
    ReplayedRing ring(options);
    REQUIRE(ring.refused() == 0);
    constexpr uint32_t kCount = 500;
    for (uint32_t id = 1; id <= kCount; ++id) {
        ring.add(read(id, in.fd, id, 10, ring.buffer()));
    }
    ring.submit();
    wait_for(ring, kCount);
    for (uint32_t id = 1; id <= kCount; ++id) {
        CHECK(result_of(ring, id) == 10);
    }
}

TEST_CASE_FIXTURE(Queues,
                  "requests: of registered files, more than a ring keeps, and of a number that means another file") {
    constexpr uint32_t kFiles = 600;
    QueueOptions options;
    options.depth = 1024;  // all of them in line at once
    const MadeQueue made = make_uring(options);
    REQUIRE(made.queue);
    RequestQueue& queue = *made.queue;
    std::vector<std::array<char, 8>> into(2 * kFiles);
    size_t done = 0;
    const auto take = [&] {
        std::array<RequestDone, 64> came;
        const size_t count = queue.take(came, kSlice, 1);
        for (size_t i = 0; i < count; ++i) {
            CHECK(came[i].result == 4);
        }
        done += count;
    };
    const auto ask = [&](uint32_t id, uint64_t handle, int fd) {
        RequestCall call = read(id + 1, fd, 0, 4, reinterpret_cast<std::byte*>(into[id].data()));
        call.order = IOSQE_FIXED_FILE;
        call.handle = handle;
        while (!queue.prepare(call)) {
            queue.submit();
            take();
        }
    };
    const auto text = [](uint32_t n) { return std::to_string(1000 + n); };
    {
        std::vector<std::unique_ptr<OpenFile>> files;
        for (uint32_t n = 0; n < kFiles; ++n) {
            write_file(dir / ("f" + text(n)), text(n));
            files.push_back(std::make_unique<OpenFile>(dir / ("f" + text(n)), O_RDONLY));
            ask(n, 1 + n, files[n]->fd);
        }
        queue.submit();
    }
    // The numbers are free again, and name the files in another order; one handle has another number now.
    std::vector<std::unique_ptr<OpenFile>> files;
    for (uint32_t n = 0; n < kFiles; ++n) {
        files.push_back(std::make_unique<OpenFile>(dir / ("f" + text(kFiles - 1 - n)), O_RDONLY));
        ask(kFiles + n, n == 7 ? kFiles : kFiles + 1 + n, files[n]->fd);
    }
    queue.submit();
    while (done < size_t{2} * kFiles) {
        take();
    }
    for (uint32_t n = 0; n < kFiles; ++n) {
        CHECK(std::string(into[n].data(), 4) == text(n));
        CHECK(std::string(into[kFiles + n].data(), 4) == text(kFiles - 1 - n));
    }
}

TEST_CASE_FIXTURE(Queues, "requests: writes, syncs and allocations arrive, whoever makes them") {
    const OpenFile out(dir / "out", O_RDWR | O_CREAT);
    std::string text(3000, 'x');
    std::vector<iovec> pieces{{text.data(), 1000}, {text.data(), 500}};
    QueueOptions options;
    options.depth = 3;
    std::unique_ptr<RequestQueue> queue;
    bool allocates = true;
    SUBCASE("io_uring") { queue = make_uring(options).queue; }
    SUBCASE("libaio") {
        queue = make_aio(options).queue;
        allocates = false;
    }
    SUBCASE("threads") { queue = make_threads(options); }
    REQUIRE(queue);
    RequestCall call;
    call.fd = out.fd;
    const auto one = [&](uint32_t id) {
        call.id = id;
        REQUIRE(queue->prepare(call));
        CHECK(queue->submit() == 1);
        std::vector<RequestDone> done(8);
        size_t count = 0;
        while (count == 0) {
            count = queue->take(done, kSlice, 1);
        }
        CHECK(count == 1);
        CHECK(done[0].id == id);
        return done[0].result;
    };
    call.asked.does = Does::write;
    call.asked.offset = 100;
    call.asked.vectored = true;
    call.pieces = pieces;
    CHECK(one(1) == 1500);
    call.asked.vectored = false;
    call.asked.offset = 5000;
    call.buffer = reinterpret_cast<std::byte*>(text.data());
    call.bytes = 30;
    CHECK(one(2) == 30);
    call.asked = {};
    call.asked.does = Does::sync;
    CHECK(one(3) == 0);
    call.asked.does = Does::sync_data;
    CHECK(one(4) == 0);
    if (allocates) {
        call.asked.does = Does::allocate;
        call.asked.offset = 0;
        call.asked.size = 9000;
        CHECK(one(5) == 0);
        call.asked.does = Does::advise;
        CHECK(one(6) == 0);
        call.asked.own_flags = 99;  // no such advice
        CHECK(one(7) == -EINVAL);
    }
    CHECK(std::filesystem::file_size(dir / "out") == (allocates ? 9000 : 5030));
    CHECK(read_file(dir / "out").substr(100, 1500) == std::string(1500, 'x'));
}

TEST_CASE_FIXTURE(Queues,
                  "requests: linked ones of io_uring are made in their order, and what follows a failure is not") {
    RingOptions options;
    options.queue.depth = 4;
    ReplayedRing ring(options);
    REQUIRE(ring.refused() == 0);
    RequestCall bad = read(1, -1, 0, 10, ring.buffer());
    bad.order = IOSQE_IO_LINK;
    ring.add(bad);
    ring.add(read(2, in.fd, 0, 10, ring.buffer()));
    ring.submit();
    wait_for(ring, 2);
    CHECK(result_of(ring, 1) == -EBADF);
    CHECK(result_of(ring, 2) == -ECANCELED);
}

TEST_CASE("requests: those that do not go through the ring count as done, and wake who waits for them") {
    RingOptions options;
    options.shared = true;
    ReplayedRing ring(options);
    std::thread other([&] {
        for (int i = 0; i < 100; ++i) {
            ring.skip(2);
        }
    });
    while (!ring.has(200, 0)) {
        ring.wait_for_skips(ring.done());
    }
    other.join();
    CHECK_FALSE(ring.has(201, 0));
    CHECK(ring.in_flight() == 0);
}

TEST_CASE_FIXTURE(Queues, "requests: threads that share a ring wait for each other's") {
    ReplayedRing ring(of_each_kind_shared());
    REQUIRE(ring.refused() == 0);
    constexpr uint32_t kThreads = 4, kEach = 500;
    std::vector<std::thread> threads;
    std::vector<int> wrong(kThreads);
    for (uint32_t t = 0; t < kThreads; ++t) {
        threads.emplace_back([&, t] {
            for (uint32_t i = 0; i < kEach; ++i) {
                ring.add(read(1 + i * kThreads + t, in.fd, i, 8, ring.buffer()));
                ring.submit();
            }
            // All of everybody.
            while (!ring.has(kThreads * kEach, 0)) {
                ring.wait(kSlice, 0, {kThreads * kEach, 0});
            }
            for (uint32_t i = 0; i < kEach; ++i) {
                wrong[t] += has_result(ring, 1 + i * kThreads + t, 8) ? 0 : 1;
            }
        });
    }
    for (std::thread& each : threads) {
        each.join();
    }
    CHECK(wrong == std::vector<int>(kThreads));
}

// Whoever looks takes what is done, of all; a thread that goes on to wait for it would wait in vain.
TEST_CASE_FIXTURE(Queues, "requests: a thread that shares a ring does not wait for what another one has taken") {
    ReplayedRing ring(of_each_kind_shared());
    REQUIRE(ring.refused() == 0);
    constexpr uint32_t kThreads = 3, kEach = 3000;
    std::atomic<uint32_t> over{0};
    std::vector<std::thread> threads;
    std::vector<uint32_t> in_time(kThreads);
    for (uint32_t t = 0; t < kThreads; ++t) {
        threads.emplace_back([&, t] {
            for (uint32_t i = 0; i < kEach && in_time[t] == i; ++i) {
                const uint32_t id = 1 + i * kThreads + t;
                ring.add(read(id, in.fd, i, 8, ring.buffer()));
                const bool ended = ends([&] { ring.submit_and_wait(kInVain, 0, {0, id}); });
                in_time[t] += ended && has_result(ring, id, 8) ? 1 : 0;
            }
            ++over;
        });
    }
    threads.emplace_back([&] {
        while (over != kThreads) {
            ring.look();
        }
    });
    for (std::thread& each : threads) {
        each.join();
    }
    CHECK(in_time == std::vector<uint32_t>(kThreads, kEach));
}

TEST_CASE_FIXTURE(Queues, "requests: what others see done still ends a wait in the kernel, and is told once") {
    QueueOptions options;
    options.depth = 4;
    const std::unique_ptr<RequestQueue> queue = make_uring(options).queue;
    REQUIRE(queue);
    std::array<std::byte, 8> into{};
    std::array<RequestDone, 4> done{};
    const auto ask = [&](uint32_t id) {
        REQUIRE(queue->prepare(read(id, in.fd, 0, 8, into.data())));
        CHECK(queue->submit() == 1);
        CHECK(ends([&] { CHECK(queue->wait_beside(done, kInVain) == 0); }));
    };
    ask(1);
    REQUIRE(queue->look_beside(done) == 1);
    CHECK(done[0].id == 1);
    CHECK(queue->look_beside(done) == 0);
    CHECK(ends([&] { CHECK(queue->wait_beside(done, kInVain) == 0); }));
    ask(2);
    REQUIRE(queue->look_beside(std::span(done).first(1)) == 1);
    CHECK(done[0].id == 2);
    ask(3);
    REQUIRE(queue->take(done, kSlice, 1) == 1);
    CHECK(done[0].id == 3);
    CHECK(queue->take(done, 0, 1) == 0);
}

TEST_CASE("requests: of threads that share a ring, one after the other waits in the kernel for all") {
    constexpr uint32_t kThreads = 4;
    std::array<std::array<int, 2>, kThreads> pipes{};
    RingOptions options;
    options.queue.depth = 2 * kThreads;
    options.shared = true;
    ReplayedRing ring(options);
    REQUIRE(ring.refused() == 0);
    std::vector<std::thread> threads;
    std::array<std::atomic<bool>, kThreads> had{};
    for (uint32_t t = 0; t < kThreads; ++t) {
        REQUIRE(::pipe(pipes[t].data()) == 0);
        ring.add(Queues::read(1 + t, pipes[t][0], -1, 1, ring.buffer()));
        ring.submit();
        threads.emplace_back([&, t] {
            bool there = false;
            had[t] = ends([&] { there = ring.wait(kInVain, 0, {0, 1 + t}); }) && there;
        });
        std::this_thread::sleep_for(std::chrono::milliseconds(20));  // it waits by then, nearly always
    }
    // The first one is in the kernel: it wakes another, then passes its place on, and so on.
    for (const uint32_t t : {2, 0, 3, 1}) {
        CHECK_FALSE(ring.has(0, 1 + t));
        CHECK(::write(pipes[t][1], "x", 1) == 1);
        threads[t].join();
        CHECK(had[t]);
    }
    // None of them is left: one that comes later waits by itself.
    CHECK_FALSE(ring.wait(1000, 0, {kThreads + 1, 0}));
    for (const auto& [in, out] : pipes) {
        ::close(in);
        ::close(out);
    }
}

// Where the kernel makes no ring: the requests of a pipe without data end in the order in which it gets some, which
// needs them all in flight.
TEST_CASE("requests: threads have as many in flight as the recording had") {
    constexpr uint32_t kDepth = 64;
    std::vector<std::array<int, 2>> pipes(kDepth);
    std::vector<std::byte> memory(kDepth);
    QueueOptions options;
    options.depth = kDepth;
    const std::unique_ptr<RequestQueue> queue = make_threads(options);
    for (uint32_t i = 0; i < kDepth; ++i) {
        REQUIRE(::pipe(pipes[i].data()) == 0);
        RequestCall call = Queues::read(i + 1, pipes[i][0], -1, 1, &memory[i]);
        REQUIRE(queue->prepare(call));
    }
    CHECK(queue->submit() == kDepth);
    for (uint32_t i = kDepth; i-- > 0;) {
        REQUIRE(::write(pipes[i][1], "x", 1) == 1);
        std::vector<RequestDone> done(8);
        size_t count = 0;
        for (int tries = 0; count == 0 && tries < 1000; ++tries) {
            count = queue->take(done, kSlice, 1);
        }
        REQUIRE(count == 1);
        CHECK(done[0].id == i + 1);
        CHECK(done[0].result == 1);
    }
    for (const auto& [in, out] : pipes) {
        ::close(in);
        ::close(out);
    }
}

TEST_CASE_FIXTURE(Queues,
                  "requests: what a queue tells of a request whose number is used again is not taken for the other") {
    RingOptions options;
    options.queue.depth = 8;
    SUBCASE("io_uring") {}
    SUBCASE("libaio") { options.aio = true; }
    ReplayedRing ring(options);
    REQUIRE(ring.refused() == 0);
    RequestCall silent = read(1, -1, 0, 10, ring.buffer());
    silent.order = IOSQE_CQE_SKIP_SUCCESS;  // fails, and so tells
    CHECK(ring.add(silent));
    CHECK(ring.add(read(1, in.fd, 0, 10, ring.buffer())));
    CHECK_FALSE(ring.add(read(1, in.fd, 0, 20, ring.buffer())));
    ring.submit();
    CHECK(result_of(ring, 1) == 10);
    CHECK(ring.add(read(1, in.fd, 0, 20, ring.buffer())));
    ring.submit();
    CHECK(result_of(ring, 1) == 20);
}

TEST_CASE_FIXTURE(Queues, "requests: threads make calls on names as a ring does") {
    QueueOptions options;
    std::unique_ptr<RequestQueue> queue;
    SUBCASE("io_uring") { queue = make_uring(options).queue; }
    SUBCASE("threads") { queue = make_threads(options); }
    REQUIRE(queue);
    const OpenFile root(dir.path(), O_PATH | O_DIRECTORY);
    uint32_t id = 0;
    const auto one = [&](NameCall name) {
        name.directory = name.directory2 = root.fd;
        REQUIRE(queue->makes(name.code));
        RequestCall call;
        call.id = ++id;
        call.name = &name;
        REQUIRE(queue->prepare(call));
        queue->submit();
        std::vector<RequestDone> done(8);
        while (queue->take(done, kSlice, 1) == 0) {
        }
        CHECK(done[0].id == id);
        return done[0].result;
    };
    CHECK(one({.code = IORING_OP_MKDIRAT, .name = "sub", .mode = 0700}) == 0);
    CHECK(one({.code = IORING_OP_MKDIRAT, .name = "sub", .mode = 0700}) == -EEXIST);
    CHECK(one({.code = IORING_OP_SYMLINKAT, .name = "sub", .name2 = "soft"}) == 0);
    CHECK(one({.code = IORING_OP_LINKAT, .name = "in", .name2 = "sub/hard"}) == 0);
    CHECK(one({.code = IORING_OP_RENAMEAT, .name = "in", .name2 = "moved"}) == 0);
    CHECK(one({.code = IORING_OP_STATX, .name = "moved", .mask = STATX_SIZE}) == 0);
    CHECK(one({.code = IORING_OP_STATX, .name = "in"}) == -ENOENT);
    NameCall open{.code = IORING_OP_OPENAT2, .name = "sub/hard"};
    const int64_t fd = one(open);
    REQUIRE(fd >= 0);
    CHECK(one({.code = IORING_OP_CLOSE, .fd = static_cast<int>(fd)}) == 0);
    CHECK(::fcntl(static_cast<int>(fd), F_GETFD) == -1);
    CHECK(one({.code = IORING_OP_UNLINKAT, .name = "sub/hard"}) == 0);
    CHECK(one({.code = IORING_OP_UNLINKAT, .name = "sub", .flags = AT_REMOVEDIR}) == 0);
    CHECK(std::filesystem::file_size(dir / "moved") == 20'000);
    CHECK(std::filesystem::is_symlink(std::filesystem::symlink_status(dir / "soft")));
    CHECK_FALSE(std::filesystem::exists(dir / "sub"));
}
