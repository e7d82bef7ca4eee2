// SPDX-License-Identifier: MIT
// Data and descriptors: the whole line each call makes in the log, and what it does to positions and tables.
#include "tests/formats/assemble/assemble_fixture.h"

namespace reprise::test {
namespace {

constexpr int64_t kCreate = 0100, kExclusive = 0200, kTruncate = 01000, kAppend = 02000, kCloseOnExec = 02000000;
constexpr int64_t kWriteOnly = 1, kReadWrite = 2;
constexpr int64_t kBadDescriptor = -9;
constexpr uint32_t kRegular = 0100644;

struct DataFeeder : Feeder {
    using Feeder::Feeder;
    CallEffect data(OpKind kind, int32_t fd, int64_t result, int64_t size, std::optional<int64_t> offset = {},
                    std::optional<int64_t> position = {}, int64_t flags = 0) {
        RawCall call = raw(kind, result);
        call.fd = fd;
        call.size = size;
        call.offset = offset;
        call.position = position;
        call.flags = flags;
        return assembler.call(call);
    }
    void seek_unknown(int32_t fd, int64_t whence, std::optional<int64_t> offset) {
        RawCall call = raw(OpKind::lseek, 0);
        call.result_known = false;
        call.fd = fd;
        call.arg = whence;
        call.offset = offset;
        assembler.call(call);
    }
    void pair(int64_t kind, int32_t fd, int32_t fd2, int64_t flags = 0) {
        RawCall call = raw(OpKind::pipe, 0);
        call.arg = kind;
        call.fd = fd;
        call.fd2 = fd2;
        call.flags = flags;
        assembler.call(call);
    }
    void control(int32_t fd, int64_t command, int64_t argument, int64_t result = 0) {
        RawCall call = raw(OpKind::fcntl, result);
        call.fd = fd;
        call.arg = command;
        call.flags = argument;
        assembler.call(call);
    }
    void duplicate(int32_t fd, int64_t result, int32_t wanted, int64_t arg, int64_t flags = 0) {
        RawCall call = raw(OpKind::dup, result);
        call.fd = fd;
        call.fd2 = wanted;
        call.arg = arg;
        call.flags = flags;
        assembler.call(call);
    }
    void map(int32_t fd, uint64_t address, int64_t size, int64_t protection, int64_t flags, int64_t result = 1,
             int64_t offset = 0) {
        RawCall call = raw(OpKind::mmap, result);
        call.fd = fd;
        call.address = address;
        call.size = size;
        call.mode = protection;
        call.flags = flags;
        call.offset = offset;
        assembler.call(call);
    }
    void memory(OpKind kind, uint64_t address, int64_t size, int64_t result = 0) {
        RawCall call = raw(kind, result);
        call.address = address;
        call.size = size;
        assembler.call(call);
    }
    void remap(uint64_t address, int64_t old_size, int64_t new_size, uint64_t to, int64_t flags = 1,
               int64_t result = 1) {
        RawCall call = raw(OpKind::mremap, result);
        call.address = address;
        call.arg = old_size;
        call.size = new_size;
        call.address2 = to;
        call.flags = flags;
        assembler.call(call);
    }
};

}  // namespace

TEST_CASE("positions: given, followed, at the end, and vectored calls at -1") {
    DataFeeder f;
    f.open("/d/a", 3, kReadWrite);
    f.data(OpKind::read, 3, 10, 10, {}, 500);
    f.data(OpKind::read, 3, 10, 10);
    f.data(OpKind::preadv, 3, 5, 8, -1);
    f.data(OpKind::pwritev, 3, 6, 6, -1, 700);
    f.data(OpKind::preadv, 3, 4, 4, 2000);
    f.data(OpKind::pread, 3, -22, 4, -1);
    f.data(OpKind::readv, 3, 0, 4);
    f.data(OpKind::read, 3, 3, 4, 4000);
    f.data(OpKind::write, 3, 2, 2);
    f.open("/d/new", 4, kCreate | kExclusive | kWriteOnly | kAppend);
    f.data(OpKind::write, 4, 100, 100);
    f.data(OpKind::pwrite, 4, 50, 50, 300);
    f.data(OpKind::writev, 4, 7, 7);
    f.open("/d/old", 5, kReadWrite | kAppend);
    f.data(OpKind::read, 5, 8, 8);
    f.data(OpKind::write, 5, 100, 100);
    f.data(OpKind::read, 5, 0, 8);
    f.data(OpKind::write, 5, 20, 20);
    const auto log = f.finish();
    CHECK(log.text() ==
          "open /d/a handle=1 flags=2 = 3\n"
          "read handle=1 fd=3 offset=500 size=10 = 10\n"
          "read handle=1 fd=3 offset=510 size=10 = 10\n"
          "readv handle=1 fd=3 offset=520 size=8 = 5\n"
          "writev handle=1 fd=3 offset=700 size=6 = 6\n"
          "preadv handle=1 fd=3 offset=2000 size=4 = 4\n"
          "pread handle=1 fd=3 offset=-1 size=4 = -22\n"
          "readv handle=1 fd=3 offset=706 size=4 = 0\n"
          "read handle=1 fd=3 offset=4000 size=4 = 3\n"
          "write handle=1 fd=3 offset=4003 size=2 = 2\n"
          "open /d/new handle=2 flags=1217 = 4\n"
          "write handle=2 fd=4 size=100 = 100\n"
          "pwrite handle=2 fd=4 offset=300 size=50 = 50\n"
          "writev handle=2 fd=4 offset=150 size=7 = 7\n"  // O_APPEND: the pwrite went to the end, too
          "open /d/old handle=3 flags=1026 = 5\n"
          "read handle=3 fd=5 size=8 = 8\n"
          "write handle=3 fd=5 size=100 = 100\n"
          "read handle=3 fd=5 offset=100 size=8 = 0\n"
          "write handle=3 fd=5 offset=100 size=20 = 20\n");
    CHECK(log.counters_text().find("append_offsets_unknown 2\n") != std::string::npos);
}

TEST_CASE("results that the source does not know follow from the request") {
    DataFeeder f;
    f.open("/d/a", 3, kReadWrite);
    RawCall call = f.raw(OpKind::read, 0);
    call.fd = 3;
    call.size = 64;
    call.result_known = false;
    f.assembler.call(call);
    f.seek_unknown(3, 1, 6);
    f.data(OpKind::read, 3, 1, 1);
    f.seek_unknown(3, 0, 1000);
    f.data(OpKind::read, 3, 1, 1);
    f.seek_unknown(3, 0, {});
    f.data(OpKind::read, 3, 1, 1);
    f.seek_unknown(3, 2, -1);  // the furthest byte used is 1001
    f.open("/d/new", 4, kCreate | kExclusive | kWriteOnly);
    f.data(OpKind::write, 4, 30, 30);
    f.seek_unknown(4, 2, -10);
    f.data(OpKind::write, 4, 1, 1);
    f.lseek(3, 5, 0, -22);
    f.lseek(3, -100, 2, 4000);
    f.data(OpKind::read, 3, 1, 1);
    const auto log = f.finish();
    CHECK(log.text() ==
          "open /d/a handle=1 flags=2 = 3\n"
          "read handle=1 fd=3 size=64 = 64\n"
          "lseek handle=1 fd=3 offset=6 arg=1 = 70\n"
          "read handle=1 fd=3 offset=70 size=1 = 1\n"
          "lseek handle=1 fd=3 offset=1000 = 1000\n"
          "read handle=1 fd=3 offset=1000 size=1 = 1\n"
          "lseek handle=1 fd=3 = 0\n"
          "read handle=1 fd=3 size=1 = 1\n"
          "lseek handle=1 fd=3 offset=-1 arg=2 = 1000\n"
          "open /d/new handle=2 flags=193 = 4\n"
          "write handle=2 fd=4 size=30 = 30\n"
          "lseek handle=2 fd=4 offset=-10 arg=2 = 20\n"
          "write handle=2 fd=4 offset=20 size=1 = 1\n"
          "lseek handle=1 fd=3 offset=5 = -22\n"
          "lseek handle=1 fd=3 offset=-100 arg=2 = 4000\n"
          "read handle=1 fd=3 offset=4000 size=1 = 1\n");
    CHECK(log.counter("results_assumed") == 1);
    CHECK(log.counter("offsets_assumed") == 0);
    CHECK(log.file("/d/a").size == 4100);
    CHECK(log.file("/d/a").size_exact);
}

TEST_CASE("messages: bytes by channel, a look takes nothing, others' time on the processor is not the sender's") {
    DataFeeder f;
    f.pair(1, 3, 4);
    f.pair(2, 5, 6);
    f.pair(3, 7, -1);
    const CallEffect sent = f.data(OpKind::write, 4, 10, 10);
    CHECK(sent.ops == 1);
    CHECK(sent.sent.channel != 0);
    CHECK(sent.sent.from == 0);
    CHECK(sent.sent.to == 10);
    CHECK(sent.sent.counts_bytes);
    CHECK(sent.received.channel == 0);
    const CallEffect got = f.data(OpKind::read, 3, 4, 4);
    CHECK(got.received.channel == sent.sent.channel);
    CHECK(got.received.to == 4);
    CHECK(got.sent.channel == 0);
    CHECK(f.data(OpKind::receive, 3, 6, 6, {}, {}, 2).received.to == 4);
    CHECK(f.data(OpKind::receive, 3, 6, 6, {}, {}, 1).received.to == 10);
    CHECK(f.data(OpKind::send, 5, 3, 3, {}, {}, 2).sent.to == 3);
    CHECK(f.data(OpKind::write, 5, kBadDescriptor, 3).sent.to == 3);
    const CallEffect counted = f.data(OpKind::write, 7, 8, 8);
    CHECK_FALSE(counted.sent.counts_bytes);
    CHECK(f.data(OpKind::read, 7, 8, 8).received.channel == counted.sent.channel);
    for (const OpKind kind : {OpKind::write, OpKind::send, OpKind::read, OpKind::receive}) {
        RawCall call = f.raw(kind, 1);
        call.fd = kind == OpKind::write || kind == OpKind::send ? 4 : 3;
        call.size = 1;
        call.preempted = 60;
        f.assembler.call(call);
    }
    const auto log = f.finish();
    const auto all = log.ops();
    REQUIRE(all.size() == 15);
    CHECK(all[11].duration == 40);
    CHECK(all[12].duration == 40);
    CHECK(all[13].duration == 100);
    CHECK(all[14].duration == 100);
    CHECK(log.text() ==
          "pipe handle=1 fd=3 handle2=2 fd2=4 arg=1 = 0\n"
          "pipe handle=3 fd=5 handle2=4 fd2=6 arg=2 = 0\n"
          "pipe handle=5 fd=7 arg=3 = 0\n"
          "send handle=2 fd=4 size=10 = 10\n"
          "receive handle=1 fd=3 size=4 = 4\n"
          "receive handle=1 fd=3 offset=4 size=6 = 6\n"
          "receive handle=1 fd=3 offset=4 size=6 = 6\n"
          "send handle=3 fd=5 size=3 = 3\n"
          "send handle=3 fd=5 offset=3 size=3 = -9\n"
          "send handle=5 fd=7 size=8 = 8\n"
          "receive handle=5 fd=7 size=8 = 8\n"
          "send handle=2 fd=4 offset=10 size=1 = 1\n"
          "send handle=2 fd=4 offset=11 size=1 = 1\n"
          "receive handle=1 fd=3 offset=10 size=1 = 1\n"
          "receive handle=1 fd=3 offset=11 size=1 = 1\n");
    CHECK(log.handles_text() ==
          "1 pipe -\n"
          "2 pipe -\n"
          "3 socket -\n"
          "4 socket -\n"
          "5 eventfd -\n");
}

TEST_CASE("copies: offsets given or followed on either side, into pipes, refused") {
    DataFeeder f;
    f.open("/d/a", 3);
    f.open("/d/b", 4, kCreate | kExclusive | kReadWrite);
    f.pair(1, 5, 6);
    const auto copy = [&](OpKind kind, int32_t from, int32_t to, int64_t result, std::optional<int64_t> offset,
                          std::optional<int64_t> offset2) {
        RawCall call = f.raw(kind, result);
        call.fd = from;
        call.fd2 = to;
        call.size = 100;
        call.offset = offset;
        call.offset2 = offset2;
        f.assembler.call(call);
    };
    copy(OpKind::sendfile, 3, 4, 10, {}, {});
    copy(OpKind::sendfile, 3, 4, 20, 50, {});
    copy(OpKind::copy_file_range, 3, 4, 30, {}, 500);
    copy(OpKind::copy_file_range, 3, 4, -5, 7, 8);
    copy(OpKind::splice, 3, 6, 11, {}, {});
    copy(OpKind::splice, 5, 4, 11, {}, {});
    copy(OpKind::splice, 3, 6, -11, {}, {});
    copy(OpKind::sendfile, 3, 77, kBadDescriptor, {}, {});
    copy(OpKind::sendfile, 78, 4, kBadDescriptor, {}, {});
    f.data(OpKind::read, 4, 1, 1);
    const auto log = f.finish();
    CHECK(log.text() ==
          "open /d/a handle=1 = 3\n"
          "open /d/b handle=2 flags=194 = 4\n"
          "pipe handle=3 fd=5 handle2=4 fd2=6 arg=1 = 0\n"
          "sendfile handle=1 fd=3 handle2=2 fd2=4 size=100 = 10\n"
          "sendfile handle=1 fd=3 handle2=2 fd2=4 offset=50 offset2=10 size=100 = 20\n"
          "copy_file_range handle=1 fd=3 handle2=2 fd2=4 offset=10 offset2=500 size=100 flags=8589934592 = 30\n"
          "copy_file_range handle=1 fd=3 handle2=2 fd2=4 offset=7 offset2=8 size=100 flags=12884901888 = -5\n"
          "splice handle=1 fd=3 handle2=4 fd2=6 offset=40 size=100 = 11\n"
          "splice handle=3 fd=5 handle2=2 fd2=4 offset2=30 size=100 = 11\n"
          "splice handle=1 fd=3 handle2=4 fd2=6 offset=51 offset2=11 size=100 = -11\n"
          "read handle=2 fd=4 offset=41 size=1 = 1\n");
    CHECK(log.counter("calls_on_bad_descriptors") == 2);
    CHECK(log.file("/d/a").size == 70);
    CHECK(log.file("/d/b").size == 530);
}

TEST_CASE("fstat tells what an unknown descriptor is") {
    DataFeeder f;
    const std::pair<int32_t, uint32_t> seen[] = {{10, 0100600}, {11, 0040700}, {12, 0010600},
                                                 {13, 0140777}, {14, 0020620}, {15, 0060660}};
    for (const auto& [fd, mode] : seen) {
        f.data(OpKind::flock, fd, 0, 0);
        RawCall call = f.raw(OpKind::fstat, 0);
        call.fd = fd;
        call.stat_mode = mode;
        call.stat_size = 5;
        f.assembler.call(call);
        f.data(OpKind::read, fd, 1, 1, 40);
    }
    RawCall call = f.raw(OpKind::fstat, kBadDescriptor);
    call.fd = 16;
    f.assembler.call(call);
    f.data(OpKind::getdents, 17, 48, 4096);
    f.data(OpKind::syncfs, -1, 0, 0);
    const auto log = f.finish();
    CHECK(log.handles_text() ==
          "1 file /unnamed/pid-100-fd-10-1 inherited 1:10\n"
          "2 directory /unnamed/pid-100-fd-11-2 inherited 1:11\n"
          "3 pipe - inherited 1:12\n"
          "4 socket - inherited 1:13\n"
          "5 other - inherited 1:14\n"
          "6 other - inherited 1:15\n"
          "7 directory /unnamed/pid-100-fd-17-3 inherited 1:17\n");
    CHECK(log.files_text() ==
          "/unnamed/pid-100-fd-10-1 regular existed 5! 0600\n"
          "/unnamed/pid-100-fd-11-2 directory existed 0700\n"
          "/unnamed/pid-100-fd-17-3 directory existed\n");
    CHECK(log.counters_text() ==
          "calls_on_bad_descriptors 1\n"
          "descriptors_adopted 7\n"
          "files_without_name 3\n");
}

TEST_CASE("calls on open files: what they leave of the file") {
    DataFeeder f;
    f.open("/d/cut", 3, kReadWrite);
    f.data(OpKind::ftruncate, 3, 0, 4444);
    f.lseek(3, 0, 2, 4444);
    f.open("/d/kept", 4, kReadWrite);
    f.data(OpKind::ftruncate, 4, -22, 9);
    f.open("/d/grown", 5, kReadWrite);
    f.data(OpKind::fallocate, 5, 0, 1000, 0);
    f.open("/d/refused", 6, kReadWrite);
    f.data(OpKind::fallocate, 6, -95, 1000, 0);
    f.open("/d/dir", 7);
    f.data(OpKind::getdents, 7, 48, 4096);
    f.open("/d/read_as_dir", 8);
    f.data(OpKind::getdents, 8, -20, 4096);
    f.open("/d/ahead", 9);
    f.data(OpKind::readahead, 9, 0, 4096, 8192);
    f.data(OpKind::sync_file_range, 9, 0, 4096, 8192, {}, 7);
    const auto log = f.finish();
    CHECK(log.handles_text() ==
          "1 file /d/cut flags 2\n"
          "2 file /d/kept flags 2\n"
          "3 file /d/grown flags 2\n"
          "4 file /d/refused flags 2\n"
          "5 directory /d/dir\n"
          "6 file /d/read_as_dir\n"
          "7 file /d/ahead\n");
    const auto role = [&](const char* path) { return std::string(role_name(log.file(path).role)); };
    CHECK(role("/d/cut") == "log");
    CHECK(role("/d/kept") == "unknown");
    CHECK(role("/d/grown") == "log");
    CHECK(role("/d/refused") == "unknown");
    CHECK(log.text().find("readahead handle=7 fd=9 offset=8192 size=4096 = 0\n"
                          "sync_file_range handle=7 fd=9 offset=8192 size=4096 flags=7 = 0\n") != std::string::npos);
}

TEST_CASE("a write of some size that was synced is a checkpoint") {
    for (const OpKind kind : {OpKind::fsync, OpKind::fdatasync, OpKind::flock}) {
        DataFeeder f;
        f.open("/d/data", 3, kCreate | kExclusive | kWriteOnly);
        f.data(OpKind::write, 3, 2 << 20, 2 << 20);
        f.data(kind, 3, 0, 0);
        CHECK(f.finish().file("/d/data").role == (kind == OpKind::flock ? Role::log : Role::checkpoint));
    }
}

TEST_CASE("asynchronous requests: reads and writes by either interface, by path, of fixed files") {
    DataFeeder f;
    const auto request = [&](OpKind kind, int32_t fd, int64_t code, std::string_view path = {}, int32_t fixed = -1) {
        RawCall call = f.raw(kind, 0);
        call.fd = fd;
        call.fd2 = fixed;
        call.arg = code;
        call.size = 16;
        call.offset = 32;
        call.path = path;
        call.request = static_cast<uint32_t>(f.now / 1000);
        f.assembler.call(call);
    };
    int32_t fd = 3;
    const std::pair<OpKind, int64_t> kinds[] = {
        {OpKind::aio_submit, 0},   {OpKind::aio_submit, 1},   {OpKind::aio_submit, 7},    {OpKind::aio_submit, 8},
        {OpKind::aio_submit, 2},   {OpKind::aio_submit, 5},   {OpKind::uring_submit, 1},  {OpKind::uring_submit, 2},
        {OpKind::uring_submit, 4}, {OpKind::uring_submit, 5}, {OpKind::uring_submit, 22}, {OpKind::uring_submit, 23},
        {OpKind::uring_submit, 3}, {OpKind::uring_submit, 7}, {OpKind::uring_submit, 0}};
    std::string roles;
    for (const auto& [kind, code] : kinds) {
        f.open("/q/" + std::to_string(fd), fd, kReadWrite);
        request(kind, fd++, code);
    }
    f.data(OpKind::flock, 0, 0, 0);
    request(OpKind::uring_submit, 0, 22);  // descriptor 0 is one, too
    request(OpKind::uring_submit, -1, 18, "/q/path");
    request(OpKind::uring_submit, -1, 22, {}, 0);  // a fixed file of which nothing is known
    request(OpKind::uring_submit, -1, 22, {}, 6);
    request(OpKind::uring_submit, 3, 22, {}, 6);
    request(OpKind::uring_submit, 0, 22, {}, 6);
    const auto log = f.finish();
    for (int32_t each = 3; each < fd; ++each) {
        roles += std::string(role_name(log.file("/q/" + std::to_string(each)).role)) + " ";
    }
    CHECK(roles ==
          "dataset log dataset log unknown unknown "
          "dataset log dataset log dataset log unknown unknown unknown ");
    const std::string text = log.text();
    CHECK(text.substr(text.find("flock")) ==
          "flock handle=16 fd=0 = 0\n"
          "uring_submit handle=16 fd=0 offset=32 size=16 arg=22 request=32 = 0\n"
          "uring_submit /q/path offset=32 size=16 arg=18 request=33 = 0\n"
          "uring_submit fd=0 offset=32 size=16 arg=22 request=34 = 0\n"
          "uring_submit fd=6 offset=32 size=16 arg=22 request=35 = 0\n"
          "uring_submit handle=1 fd=3 offset=32 size=16 arg=22 request=36 = 0\n"
          "uring_submit handle=16 fd=0 offset=32 size=16 arg=22 request=37 = 0\n");
    CHECK(log.handles_text().find("16 file /unnamed/pid-100-fd-0-1 inherited 1:0\n") != std::string::npos);
}

TEST_CASE("mappings that write make the file one that is written") {
    const auto role = [](int64_t protection, int64_t flags, int64_t result) {
        DataFeeder f;
        f.open("/d/a", 0, kReadWrite);
        f.map(0, 0x10000, 0x2000, protection, flags, result);
        return std::string(role_name(f.finish().file("/d/a").role));
    };
    CHECK(role(3, 1, 1) == "cache");  // read and written
    CHECK(role(3, 3, 1) == "cache");
    CHECK(role(1, 1, 1) == "dataset");
    CHECK(role(5, 1, 1) == "dataset");
    CHECK(role(3, 2, 1) == "dataset");  // private
    CHECK(role(3, 1, -12) == "unknown");
    CHECK(role(3, 0x21, 1) == "unknown");  // anonymous, whatever the descriptor
}

TEST_CASE("calls on memory: each mapping it hits, what fails changes nothing") {
    DataFeeder f;
    f.open("/d/a", 3);
    f.map(3, 0x10000, 0x3000, 1, 2, 1, 0x4000);
    f.map(3, 0x13000, 0x2800, 1, 2, 1);
    f.map(3, 0x20000, 0x1000, 1, 2, -12);
    f.memory(OpKind::munmap, 0x12000, 0x2000, -22);
    f.memory(OpKind::mprotect, 0x12000, 0x2000);
    f.memory(OpKind::munmap, 0x12000, 0x2000);
    f.memory(OpKind::madvise, 0x10000, 0x10000);
    f.map(-1, 0x15000, 0x1000, 3, 0x22);  // anonymous memory over the last page
    f.memory(OpKind::madvise, 0x14000, 0x4000);
    f.map(3, 0x15000, 0x1000, 3, 0x22, -12);
    f.remap(0x10000, 0x1000, 0x8000, 0x40000, 1, -12);
    f.remap(0x90000, 0x1000, 0x8000, 0xa0000);
    f.remap(0x11000, 0x1000, 0x8000, 0x50000);
    f.memory(OpKind::madvise, 0x10000, 0x1000);
    f.memory(OpKind::madvise, 0x11000, 0x1000);
    f.memory(OpKind::madvise, 0x57000, 0x2000);
    f.remap(0x50000, 0, 0x1000, 0x70000);  // old size 0: a second mapping of the same pages
    f.memory(OpKind::madvise, 0x50000, 0x1000);
    f.memory(OpKind::madvise, 0x70000, 0x1000);
    f.on_path(OpKind::exec, "/bin/x", 0);
    f.memory(OpKind::madvise, 0x70000, 0x1000);
    const auto log = f.finish();
    CHECK(log.text() ==
          "open /d/a handle=1 = 3\n"
          "mmap handle=1 fd=3 offset=16384 size=12288 flags=2 mode=1 map=1 = 0\n"
          "mmap handle=1 fd=3 size=10240 flags=2 mode=1 map=2 = 0\n"
          "mmap handle=1 fd=3 size=4096 flags=2 mode=1 = -12\n"
          "munmap offset=8192 size=4096 map=1 = -22\n"
          "munmap size=4096 map=2 = -22\n"
          "mprotect offset=8192 size=4096 map=1 = 0\n"
          "mprotect size=4096 map=2 = 0\n"
          "munmap offset=8192 size=4096 map=1 = 0\n"
          "munmap size=4096 map=2 = 0\n"
          "madvise size=8192 map=1 = 0\n"
          "madvise offset=4096 size=8192 map=2 = 0\n"
          "madvise offset=4096 size=4096 map=2 = 0\n"
          "mremap size=32768 flags=1 arg=4096 map=1 = -12\n"
          "mremap offset=4096 size=32768 flags=1 arg=4096 map=1 = 0\n"
          "madvise size=4096 map=1 = 0\n"
          "madvise offset=32768 size=4096 map=1 = 0\n"
          "mremap offset=4096 size=4096 flags=1 map=1 = 0\n"
          "madvise offset=4096 size=4096 map=1 = 0\n"
          "madvise offset=4096 size=4096 map=1 = 0\n"
          "exec /bin/x = 0\n");
    const auto unmaps = log.of_kind(OpKind::munmap);
    REQUIRE(unmaps.size() == 4);
    CHECK(unmaps[2].duration == 100);
    CHECK(unmaps[3].duration == 0);
    CHECK(unmaps[3].begin == unmaps[2].begin + 100);
    CHECK(log.file("/d/a").size == 0x7000);
}

TEST_CASE("duplicates: numbers asked for, the same number, failures, and close-on-exec") {
    DataFeeder f;
    f.open("/d/a", 0);
    f.duplicate(0, 5, -1, 1);
    f.duplicate(0, 6, 6, 3, kCloseOnExec);
    f.duplicate(0, 0, 0, 2);
    f.duplicate(0, -24, -1, 1);
    f.control(0, 0, 20, 20);
    f.control(0, 1030, 21, 21);
    f.control(0, 1030, int64_t{1} << 40, -22);
    f.control(0, 0, -5, -22);
    f.control(5, 2, 1);
    f.control(5, 2, 0);
    f.control(20, 2, 1, -9);
    f.control(0, 4, 02000 | 04000 | 0100000);
    f.control(0, 3, 0, 06000);
    f.on_path(OpKind::exec, "/bin/x", -2);
    f.on_fd(OpKind::close, 6, 0);
    f.duplicate(0, 6, 6, 3, kCloseOnExec);
    f.on_path(OpKind::exec, "/bin/x", 0);
    for (const int32_t fd : {0, 5, 6, 20, 21}) {
        f.on_fd(OpKind::close, fd, fd == 6 || fd == 21 ? kBadDescriptor : 0);
    }
    f.on_fd(OpKind::close, 0, 0);
    const auto log = f.finish();
    CHECK(log.text() ==
          "open /d/a handle=1 = 0\n"
          "dup handle=1 fd=0 arg=1 = 5\n"
          "dup handle=1 fd=0 fd2=6 flags=524288 arg=3 = 6\n"
          "dup handle=1 fd=0 fd2=0 arg=2 = 0\n"
          "dup handle=1 fd=0 arg=1 = -24\n"
          "dup handle=1 fd=0 fd2=20 arg=4 = 20\n"
          "dup handle=1 fd=0 fd2=21 flags=524288 arg=4 = 21\n"
          "dup handle=1 fd=0 fd2=2147483647 flags=524288 arg=4 = -22\n"
          "dup handle=1 fd=0 fd2=0 arg=4 = -22\n"
          "fcntl handle=1 fd=5 flags=1 arg=2 = 0\n"
          "fcntl handle=1 fd=5 arg=2 = 0\n"
          "fcntl handle=1 fd=20 flags=1 arg=2 = -9\n"
          "fcntl handle=1 fd=0 flags=35840 arg=4 = 0\n"
          "fcntl handle=1 fd=0 arg=3 = 3072\n"
          "exec /bin/x = -2\n"
          "close handle=1 fd=6 = 0\n"
          "dup handle=1 fd=0 fd2=6 flags=524288 arg=3 = 6\n"
          "exec /bin/x = 0\n"
          "close handle=1 fd=0 = 0\n"
          "close handle=1 fd=5 = 0\n"
          "close handle=1 fd=20 = 0\n");
    CHECK(log.counter("calls_on_bad_descriptors") == 2);
    CHECK(log.counter("closes_of_unknown_descriptors") == 1);
}

TEST_CASE("O_APPEND set later counts from then on") {
    DataFeeder f;
    f.open("/d/new", 3, kCreate | kExclusive | kWriteOnly);
    f.data(OpKind::write, 3, 10, 10);
    f.lseek(3, 0, 0, 0);
    f.control(3, 4, kAppend);
    f.data(OpKind::write, 3, 5, 5);
    f.lseek(3, 0, 0, 0);
    f.control(3, 4, kAppend, -1);
    f.control(3, 4, 0);
    f.data(OpKind::write, 3, 2, 2);
    const auto writes = f.finish().of_kind(OpKind::write);
    REQUIRE(writes.size() == 3);
    CHECK(writes[1].offset == 10);
    CHECK(writes[2].offset == 0);
}

TEST_CASE("close-on-exec of pipes, memfds and what comes without a call") {
    DataFeeder f;
    f.pair(1, 3, 4, kCloseOnExec);
    f.pair(1, 5, 6);
    f.pair(4, 7, -1, 1);  // MFD_CLOEXEC
    f.pair(4, 8, -1, 2);
    f.pair(3, 9, -1, kCloseOnExec);
    f.assembler.adopt(100, 10, HandleKind::socket, kCloseOnExec);
    f.assembler.adopt(100, 11, HandleKind::epoll);
    f.assembler.adopt(100, -1, HandleKind::epoll);
    f.assembler.adopt(100, 12, HandleKind::file, 0, "/d/sent");
    RawCall failed = f.raw(OpKind::pipe, -24);
    failed.arg = 1;
    f.assembler.call(failed);
    f.on_path(OpKind::exec, "/bin/x", 0);
    std::string open;
    for (int32_t fd = 3; fd <= 12; ++fd) {
        RawCall call = f.raw(OpKind::close, kBadDescriptor);
        call.fd = fd;
        open += f.assembler.call(call).ops ? std::to_string(fd) + " " : "";
    }
    CHECK(open == "5 6 8 11 12 ");
    const auto log = f.finish();
    CHECK(log.handles_text() ==
          "1 pipe - flags 524288\n"
          "2 pipe - flags 524288\n"
          "3 pipe -\n"
          "4 pipe -\n"
          "5 memfd - flags 1\n"
          "6 memfd - flags 2\n"
          "7 eventfd - flags 524288\n"
          "8 socket - flags 524288 inherited 1:10\n"
          "9 epoll - inherited 1:11\n"
          "10 file /d/sent inherited 1:12\n");
    CHECK(log.counter("descriptors_received") == 1);
    CHECK(log.of_kind(OpKind::pipe).back().result == -24);
}

TEST_CASE("sockets known by the same name share their bytes") {
    DataFeeder f;
    f.assembler.adopt(100, 3, HandleKind::socket, 0, "UNIX-STREAM:[1->2]");
    f.as(200, 200);
    f.assembler.adopt(200, 4, HandleKind::socket, 0, "UNIX-STREAM:[1->2]");
    f.assembler.adopt(200, 5, HandleKind::socket, 0, "UNIX-STREAM:[3->4]");
    f.assembler.adopt(200, 6, HandleKind::socket);
    f.as(100, 100);
    const uint64_t first = f.data(OpKind::send, 3, 5, 5).sent.channel;
    f.as(200, 200);
    const CallEffect second = f.data(OpKind::send, 4, 5, 5);
    CHECK(second.sent.channel == first);
    CHECK(second.sent.from == 5);
    CHECK(f.data(OpKind::send, 5, 5, 5).sent.channel != first);
    CHECK(f.data(OpKind::send, 6, 5, 5).sent.from == 0);
}

TEST_CASE("unknown descriptors with the name of one socket share its bytes") {
    DataFeeder f;
    const auto sends = [&](int32_t pid, int32_t fd, std::string_view described) {
        f.as(pid, pid);
        RawCall call = f.raw(OpKind::send, 5);
        call.fd = fd;
        call.fd_path = described;
        return f.assembler.call(call);
    };
    const CallEffect first = sends(100, 3, "UNIX-STREAM:[1->2]"), second = sends(200, 4, "UNIX-STREAM:[1->2]");
    const CallEffect other = sends(200, 5, "UNIX-STREAM:[3->4]");
    CHECK(second.sent.channel == first.sent.channel);
    CHECK(second.sent.from == 5);
    CHECK(other.sent.channel != first.sent.channel);
    CHECK(other.sent.from == 0);
    CHECK(f.finish().handles_text() ==
          "1 socket - inherited 1:3\n"
          "2 socket - inherited 2:4\n"
          "3 socket - inherited 2:5\n");
}

TEST_CASE("a file that the recording makes is as long as it ever was") {
    DataFeeder f;
    const auto makes = [&](const char* path) { f.open(path, 3, kCreate | kExclusive | kReadWrite); };
    makes("/d/written");
    f.data(OpKind::pwrite, 3, 10, 10, 90);
    f.data(OpKind::pwrite, 3, 10, 10, 0);
    makes("/d/cut");
    f.data(OpKind::pwrite, 3, 10, 10, 90);
    f.on_fd(OpKind::ftruncate, 3, 0, 20);
    makes("/d/grown");
    f.on_fd(OpKind::ftruncate, 3, 0, 200);
    f.data(OpKind::pwrite, 3, 10, 10, 0);
    makes("/d/looked_at");
    f.on_path(OpKind::stat, "/d/looked_at", 0, 300, kRegular);
    f.data(OpKind::pwrite, 3, 10, 10, 0);
    makes("/d/read");
    f.data(OpKind::pread, 3, 10, 10, 390);
    f.data(OpKind::pwrite, 3, 10, 10, 0);
    f.data(OpKind::pread, 3, 0, 10, 900);
    CHECK(f.finish().files_text() ==
          "/d/cut regular created 100\n"
          "/d/grown regular created 200\n"
          "/d/looked_at regular created 300 0644\n"
          "/d/read regular created 400\n"
          "/d/written regular created 100\n");
}

TEST_CASE("sizes: the first sight counts, whether by a call or noted by the source") {
    DataFeeder f;
    f.assembler.note_file("/d/../d/noted", 1234, 0100640);
    f.on_path(OpKind::stat, "/d/noted", 0);
    f.on_path(OpKind::stat, "/d/twice", 0, 100, kRegular);
    f.on_path(OpKind::stat, "/d/twice", 0, 200, kRegular);
    f.open("/d/end", 3);
    f.data(OpKind::read, 3, 50, 4096);
    f.on_path(OpKind::stat, "/d/end", 0, 60, kRegular);
    f.on_path(OpKind::stat, "/d/end", 0, 70, kRegular);
    f.open("/d/new", 3, kCreate | kExclusive | kWriteOnly);
    f.on_path(OpKind::stat, "/d/new", 0, 80, kRegular);
    f.open("/dev/null", 4, kWriteOnly, "/dev/null<char 1:3>");
    f.open("/dev/sda", 5, 0, "/dev/sda<block 8:0>");
    CHECK(f.finish().files_text() ==
          "/d/end regular existed 60! 0644\n"
          "/d/new regular created 80 0644\n"
          "/d/noted regular existed 1234! 0640\n"
          "/d/twice regular existed 100! 0644\n"
          "/dev/null character existed\n"
          "/dev/sda block existed\n");
}

TEST_CASE("what is below a directory that was removed again was not made by the recording") {
    DataFeeder f;
    f.on_path(OpKind::mkdir, "/d/kept", 0);
    f.on_path(OpKind::stat, "/d/kept/x", 0, 1, kRegular);
    f.on_path(OpKind::mkdir, "/d/gone", 0);
    f.on_path(OpKind::rmdir, "/d/gone", 0);
    f.on_path(OpKind::stat, "/d/gone/x", 0, 1, kRegular);
    const auto log = f.finish();
    CHECK(log.file("/d/kept/x").origin == Origin::created);
    CHECK(log.file("/d/gone/x").origin == Origin::existed);
    CHECK(log.counter("files_made_unseen") == 1);
}

TEST_CASE("opens: without a name, made or found, with the mode and a file cut to nothing") {
    DataFeeder f;
    const auto open = [&](const char* path, int64_t result, int64_t flags, int64_t mode, std::optional<bool> created) {
        RawCall call = f.raw(OpKind::open, result);
        call.path = path;
        call.flags = flags;
        call.mode = mode;
        call.created = created;
        f.assembler.call(call);
    };
    open("/d", 3, 020200000 | kReadWrite, 0600, {});  // O_TMPFILE
    open("/d/known_new", 4, kCreate | kWriteOnly, 0100640, true);
    open("/d/known_old", 5, kCreate | kWriteOnly, 0640, false);
    open("/d/guessed", 6, kCreate | kWriteOnly, 0604, {});
    open("/d/exclusive", 7, kCreate | kExclusive | kWriteOnly, 0, {});
    open("/d/cut", 8, kWriteOnly | kTruncate, 0, {});
    open("/d/dir", 9, 0200000, 0, {});
    open("/d/plain", 10, 0, 0777, {});
    open("/d/failed", -17, kCreate | kExclusive, 0600, {});
    open("/dev/null", 11, kCreate | kWriteOnly, 0600, {});
    f.data(OpKind::write, 8, 5, 5);
    f.on_path(OpKind::stat, "/d/cut", 0, 5, kRegular);
    const auto log = f.finish();
    CHECK(log.files_text() ==
          "/d directory existed\n"
          "/d/cut regular existed 0644\n"
          "/d/dir directory existed\n"
          "/d/exclusive regular created\n"
          "/d/failed existed\n"
          "/d/guessed regular created 0604\n"
          "/d/known_new regular created 0640\n"
          "/d/known_old existed\n"
          "/d/plain existed\n"
          "/dev/null existed\n");
    CHECK(log.handles_text() ==
          "1 file /d flags 4259842\n"
          "2 file /d/known_new flags 65\n"
          "3 file /d/known_old flags 65\n"
          "4 file /d/guessed flags 65\n"
          "5 file /d/exclusive flags 193\n"
          "6 file /d/cut flags 513\n"
          "7 directory /d/dir flags 65536\n"
          "8 file /d/plain\n"
          "9 file /dev/null flags 65\n");
    CHECK(log.counter("creations_guessed") == 1);
}

TEST_CASE("processes: refused spawns, shared tables that exec and close_range end, and commands") {
    DataFeeder f;
    f.assembler.set_command(100, "train");
    f.assembler.set_host(100, "node1");
    f.open("/d/a", 0);
    f.spawn(-11);
    RawCall refused = f.raw(OpKind::spawn, -11);
    refused.arg = 0;
    f.assembler.call(refused);
    f.spawn(200, 0x400);
    f.spawn(300, 0x400);
    f.as(200, 200);
    f.on_path(OpKind::exec, "/bin/x", 0);
    f.on_fd(OpKind::close, 0, 0);
    f.as(300, 300);
    RawCall range = f.raw(OpKind::close, 0);
    range.fd = 0;
    range.fd2 = INT32_MAX;
    range.flags = 2;  // CLOSE_RANGE_UNSHARE
    f.assembler.call(range);
    range.result = -22;
    range.flags = 0;
    f.assembler.call(range);
    f.data(OpKind::read, 0, kBadDescriptor, 1);
    f.as(100, 100);
    f.data(OpKind::read, 0, 1, 1);
    RawCall exec = f.raw(OpKind::exec, 0);  // execveat with AT_EMPTY_PATH
    exec.fd = 0;
    f.assembler.call(exec);
    const auto log = f.finish();
    CHECK(log.text() ==
          "open /d/a handle=1 = 0\n"
          "spawn flags=17 = -11\n"
          "spawn = -11\n"
          "spawn flags=1024 peer=2 = 200\n"
          "spawn flags=1024 peer=3 = 300\n"
          "read handle=1 fd=0 size=1 = 1\n"
          "exec /d/a = 0\n"
          "task 2: exec /bin/x = 0\n"
          "task 2: close handle=1 fd=0 = 0\n"
          "task 3: close handle=1 fd=0 = 0\n");
    CHECK(log.file("/bin/x").type == FileType::regular);
    CHECK(log.file("/d/a").type == FileType::unknown);
    const Tables& tables = log.tables();
    REQUIRE(tables.processes.size() == 4);
    for (ProcessId id = 1; id < 4; ++id) {
        CHECK(tables.strings[tables.processes[id].command] == "train");
        CHECK(tables.strings[tables.processes[id].host] == "node1");
        CHECK(tables.processes[id].parent == (id == 1 ? 0 : 1));
    }
}

TEST_CASE("a descriptor that turned out to be another file is forgotten where unknown ones are not adopted") {
    Assembler::Options options;
    options.adopt_unknown_fds = false;
    DataFeeder f(options);
    f.open("/d/a", 3, 0, "/d/a");
    f.on_fd(OpKind::read, 3, 1, 1, "/d/other");
    f.on_fd(OpKind::read, 3, 1, 1, "/d/a");
    f.on_fd(OpKind::read, 3, 1, 1);
    const auto log = f.finish();
    CHECK(log.op_count() == 1);
    CHECK(log.counter("descriptors_corrected") == 1);
    CHECK(log.counter("calls_on_unknown_descriptors") == 3);
}

TEST_CASE(
    "the two ends of a connection are one channel each way, whatever their inodes; other connections are others") {
    DataFeeder f;
    constexpr uint64_t kOne = SeenInstance::kConnection | 40, kOther = SeenInstance::kConnection | 42;
    const auto end = [&](int32_t fd, uint64_t peer, OpKind kind) {
        SeenInstance seen;
        seen.key = static_cast<uint64_t>(fd);
        seen.inode = 100 + seen.key;
        seen.kind = HandleKind::socket;
        seen.peer = peer;
        RawCall call = f.raw(kind, 8);
        call.fd = fd;
        call.size = 8;
        call.seen = &seen;
        const CallEffect effect = f.assembler.call(call);
        return kind == OpKind::send ? effect.sent.channel : effect.received.channel;
    };
    end(3, 0, OpKind::send);  // not connected yet
    const uint64_t there = end(3, kOne, OpKind::send);
    CHECK(there != 0);
    CHECK(end(4, kOne ^ 1U, OpKind::receive) == there);
    const uint64_t back = end(4, kOne ^ 1U, OpKind::send);
    CHECK(back != there);
    CHECK(end(3, kOne, OpKind::receive) == back);
    CHECK(end(5, kOther, OpKind::send) != there);
    CHECK(end(6, kOther ^ 1U, OpKind::receive) != there);
}

TEST_CASE("instances that the source tells apart: made, inherited, received, reused keys") {
    DataFeeder f;
    const auto seen = [](uint64_t key, uint64_t inode, HandleKind kind = HandleKind::file, uint32_t generation = 0) {
        SeenInstance out;
        out.key = key;
        out.inode = inode;
        out.device = 8;
        out.kind = kind;
        out.generation = generation;
        return out;
    };
    const auto read = [&](int32_t fd, const SeenInstance& as, int64_t begin = 0) {
        RawCall call = f.raw(OpKind::pread, 1);
        call.fd = fd;
        call.size = 1;
        call.offset = 0;
        call.seen = &as;
        call.begin = begin ? begin : call.begin;
        f.assembler.call(call);
    };
    using Came = Assembler::Came;
    f.assembler.adopt(100, 5, seen(0x50, 50, HandleKind::socket), {}, Came::made);
    f.data(OpKind::send, 5, 4, 4);
    f.assembler.adopt(100, 6, seen(0x60, 60), "/in/herited", Came::inherited);
    f.assembler.adopt(100, 7, seen(0x70, 70), "/re/ceived (deleted)", Came::received);
    f.assembler.adopt(100, 8, seen(0x80, 80), "", Came::received);
    f.assembler.adopt(100, 9, seen(0, 90), "/not/known", Came::received);
    f.assembler.adopt(100, 10, seen(0x60, 60), "/in/herited", Came::inherited);  // the same one again
    f.assembler.adopt(100, 11, seen(0x110, 60), "", Came::received);             // the same file, open once more
    read(6, seen(0x60, 60));
    read(10, seen(0x60, 60));
    read(6, seen(0x60, 61));  // the key is another file's by now
    read(7, seen(0x70, 70, HandleKind::file, 3));
    const int64_t before = f.now;
    for (uint64_t k = 0; k < 4; ++k) {
        RawCall open = f.raw(OpKind::open, 20);
        const SeenInstance made = seen(0x200, 200 + k);
        const std::string path = "/o/" + std::to_string(k);
        open.path = path;
        open.made = &made;
        f.assembler.call(open);
    }
    read(20, seen(0x200, 203));
    read(20, seen(0x200, 202), before + 3500);
    read(20, seen(0x200, 200), before + 1500);
    f.as(200, 200);  // a process that has no descriptor 0 yet
    RawCall below = f.raw(OpKind::stat, 0);
    const SeenInstance directory = seen(0x60, 61);
    below.path = "x";
    below.fd = 0;
    below.seen = &directory;
    f.assembler.call(below);
    CHECK(f.assembler.path_of(200, 0, nullptr).starts_with("/unnamed/inode-61-"));
    f.as(100, 100);
    CHECK(f.assembler.path_of(100, 8, nullptr).starts_with("/unnamed/inode-80-"));
    CHECK(f.assembler.path_of(100, 9, nullptr).empty());
    CHECK(f.assembler.path_of(100, 6, nullptr).starts_with("/unnamed/inode-61-"));
    CHECK(f.assembler.path_of(100, 10, nullptr) == "/in/herited");
    const auto log = f.finish();
    CHECK(log.text() ==
          "send handle=1 fd=5 size=4 = 4\n"
          "pread handle=2 fd=6 size=1 = 1\n"
          "pread handle=2 fd=10 size=1 = 1\n"
          "pread handle=6 fd=6 size=1 = 1\n"
          "pread handle=3 fd=7 size=1 = 1\n"
          "open /o/0 handle=7 = 20\n"
          "pread handle=7 fd=20 size=1 = 1\n"
          "open /o/1 handle=8 = 20\n"
          "open /o/2 handle=9 = 20\n"
          "pread handle=9 fd=20 size=1 = 1\n"
          "open /o/3 handle=10 = 20\n"
          "pread handle=10 fd=20 size=1 = 1\n"
          "task 2: stat /unnamed/inode-61-2/x = 0\n");
    CHECK(log.handles_text() ==
          "1 socket - inherited 1:5\n"
          "2 file /in/herited inherited 1:6\n"
          "3 file /re/ceived inherited 1:7\n"
          "4 file /unnamed/inode-80-1 inherited 1:8\n"
          "5 file /in/herited inherited 1:11\n"
          "6 file /unnamed/inode-61-2 inherited 1:6\n"
          "7 file /o/0\n"
          "8 file /o/1\n"
          "9 file /o/2\n"
          "10 file /o/3\n");
    CHECK(log.counters_text() ==
          "descriptors_inherited 1\n"
          "descriptors_received 4\n"
          "files_without_name 2\n"
          "sizes_inexact 9\n");
}

TEST_CASE("a file that one process makes and another finds, which comes back first, is one file") {
    const auto files = [](uint32_t generation) {
        DataFeeder f;
        for (const bool makes : {false, true}) {
            RawCall call = f.raw(OpKind::open, makes ? 3 : 4);
            SeenInstance made;
            made.key = makes ? 0x100 : 0x200;
            made.device = 8;
            made.inode = 70;
            made.generation = makes ? 9 : generation;
            call.path = "/d/journal";
            call.flags = 0102;
            call.created = makes;
            call.made = &made;
            f.assembler.call(call);
        }
        const auto log = f.finish();
        std::vector<Origin> origins;
        for (const FileRow& file : log.files("/d/journal")) {
            origins.push_back(file.origin);
        }
        return origins;
    };
    CHECK(files(9) == std::vector<Origin>{Origin::created});
    CHECK(files(8) == std::vector<Origin>{Origin::existed, Origin::created});  // the inode was used again
}

TEST_CASE("a file without its name is opened again through its descriptor, whatever has the name now") {
    DataFeeder f;
    const auto open = [&](const std::string& path, int32_t fd, uint64_t inode, int64_t flags = 0) {
        RawCall call = f.raw(OpKind::open, fd);
        SeenInstance made;
        made.key = 0x100 + static_cast<uint64_t>(fd);
        made.device = 8;
        made.inode = inode;
        call.path = path;
        call.flags = flags;
        call.made = &made;
        f.assembler.call(call);
    };
    constexpr int64_t kCreateAppend = 0102 | 02000;
    open("/d/a", 7, 70, kCreateAppend);
    open("/dev/fd/7", 8, 70);  // it has its name
    f.on_path(OpKind::unlink, "/d/a", 0);
    open("/d/a", 9, 90, kCreateAppend);
    open("/dev/fd/7", 10, 70, kCreateAppend);
    open("/proc/self/fd/10", 11, 70);
    open("/proc/100/task/100/fd/9", 12, 90);
    open("/proc/self/fd/7", 13, 71);  // not what the recording shows
    open("/d/a", 14, 90);
    const auto log = f.finish();
    std::vector<std::pair<FileId, uint32_t>> files;
    for (const Op& op : log.of_kind(OpKind::open)) {
        CHECK(log.path_of(op) == "/d/a");
        files.emplace_back(op.file, log.tables().files[op.file].generation);
    }
    const FileId first = files[0].first, second = files[2].first, nameless = files[3].first;
    CHECK(files == std::vector<std::pair<FileId, uint32_t>>{{first, 0},
                                                            {first, 0},
                                                            {second, 1},
                                                            {nameless, 2},
                                                            {nameless, 2},
                                                            {second, 1},
                                                            {files[6].first, 3},
                                                            {files[7].first, 4}});
    CHECK(log.tables().files[nameless].inode == 70);
    CHECK(log.tables().files[nameless].origin == Origin::existed);
}

TEST_CASE("an op that begins before the one before it is moved where ops come in order") {
    Assembler::Options options;
    options.in_order = true;
    DataFeeder f(options);
    Op op;
    op.kind = OpKind::compute;
    const std::pair<int64_t, int64_t> spans[] = {{100, 50}, {90, 60}, {80, 10}, {300, -5}};
    for (const auto& [begin, duration] : spans) {
        op.begin = begin;
        op.duration = duration;
        f.assembler.op(100, 100, op);
    }
    CHECK(f.assembler.op_count(1) == 4);
    CHECK(f.assembler.add_edge(1, 3, {1, EdgeKind::wake, 100, 0}));
    std::string times;
    for (const Op& each : f.finish().ops()) {
        times += std::to_string(each.begin) + "+" + std::to_string(each.duration) + " ";
    }
    CHECK(times == "100+50 100+50 100+0 300+0 ");
}

TEST_CASE("a range of one descriptor is closed or marked, descriptor 0 too") {
    DataFeeder f;
    f.open("/d/a", 0);
    f.open("/d/b", 1);
    const auto range = [&](int32_t first, int32_t last, int64_t flags) {
        RawCall call = f.raw(OpKind::close, 0);
        call.fd = first;
        call.fd2 = last;
        call.flags = flags;
        return f.assembler.call(call).ops;
    };
    CHECK(range(0, 0, 4) == 0);  // CLOSE_RANGE_CLOEXEC
    f.data(OpKind::read, 0, 1, 1);
    CHECK(range(0, 0, 0) == 1);
    CHECK(range(0, 0, 0) == 0);
    CHECK(range(0, 1, 0) == 1);
    CHECK(f.finish().text() ==
          "open /d/a handle=1 = 0\n"
          "open /d/b handle=2 = 1\n"
          "read handle=1 fd=0 size=1 = 1\n"
          "close handle=1 fd=0 = 0\n"
          "close handle=2 fd=1 = 0\n");
}

TEST_CASE("a thread that gets another number leaves its own to whoever comes next") {
    DataFeeder f;
    f.as(100, 101);
    f.open("/d/a", 3);
    f.assembler.rename_task(100, 101, 100);
    f.data(OpKind::read, 3, 1, 1);  // another thread 101
    f.as(100, 100);
    f.data(OpKind::read, 3, 2, 2);
    CHECK(f.finish().text() ==
          "open /d/a handle=1 = 3\n"
          "read handle=1 fd=3 offset=1 size=2 = 2\n"
          "task 2: read handle=1 fd=3 size=1 = 1\n");
}

TEST_CASE("bytes up to the greatest offset there is count, beyond it they do not") {
    const auto size = [](OpKind kind, int64_t offset) {
        DataFeeder f;
        f.open("/d/a", 3, kReadWrite);
        f.open("/d/new", 4, kCreate | kExclusive | kReadWrite);
        f.data(kind, kind == OpKind::pread ? 3 : 4, 10, 10, offset);
        return f.finish().file(kind == OpKind::pread ? "/d/a" : "/d/new").size;
    };
    for (const OpKind kind : {OpKind::pread, OpKind::pwrite}) {
        CHECK(size(kind, INT64_MAX - 10) == INT64_MAX);
        CHECK(size(kind, INT64_MAX - 9) == 0);
        CHECK(size(kind, -1) == 0);
    }
}

}  // namespace reprise::test
