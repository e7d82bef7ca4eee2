// SPDX-License-Identifier: MIT
// What each op says of the files it names or acts on.
#include "replay/prepare/facts.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mman.h>

#include <cerrno>

#include "tests/replay/prepare/prepare_fixture.h"

namespace reprise::test {
namespace {

/// A log of one op on /a (open for reading and writing where it acts on a descriptor) and /b.
struct Facts {
    explicit Facts(FileType of_a = FileType::regular) : type(of_a) {}
    const FileType type;
    TempDir dir;
    LogBuilder log{dir / "log"};
    FileId a = log.file("/a", 0, Origin::existed, type), b = log.file("/b");
    HandleId on_a = log.handle({.file = a, .flags = O_RDONLY}), on_b = log.handle({.file = b, .flags = O_RDWR});

    LogFacts gather() { return gather_facts(log.finish()); }
    /// "made used changed 4..8 reach 9 ...", without what an op has not said.
    static std::string text(const FileFacts& file) {
        std::string out;
        const auto number = [](uint64_t value) {
            return value == FileFacts::kEnd ? std::string("end") : std::to_string(value);
        };
        out += file.made != FileFacts::kNever ? "made " + std::to_string(file.made) + " " : "";
        out += file.used != FileFacts::kNever ? "used " + std::to_string(file.used) + " " : "";
        out += file.changed_to || file.changed_from != FileFacts::kEnd
                   ? "changed " + number(file.changed_from) + ".." + number(file.changed_to) + " "
                   : "";
        out += file.reach ? "reach " + std::to_string(file.reach) + " " : "";
        out += std::string(file.opened ? "opened " : "") + (file.directory ? "directory " : "") +
               (file.gone ? "gone " : "") + (file.attributes() ? "attributes " : "") +
               (file.nameless ? "nameless " : "") + (file.was_runnable() ? "runnable " : "") +
               (file.not_empty ? "full " : "");
        return out;
    }
};

/// What the op says of /a, and after " | " of /b.
std::string facts_of(Op op, int64_t result = 0, FileType type = FileType::regular) {
    Facts facts(type);
    op.file = op.file ? facts.a : 0;
    op.file2 = op.file2 ? facts.b : 0;
    op.handle = op.handle == 1 ? facts.on_a : op.handle == 2 ? facts.on_b : 0;
    op.handle2 = op.handle2 ? facts.on_b : 0;
    facts.log.add(op, result);
    const LogFacts all = facts.gather();
    std::string out = Facts::text(all.files[facts.a]) + "| " + Facts::text(all.files[facts.b]);
    for (const RenameFact& each : all.renames) {
        out += "; " + std::to_string(each.from) + " to " + std::to_string(each.to) + " at " + std::to_string(each.time);
    }
    return out;
}

}  // namespace

TEST_CASE("a rename of two names of one file, which the log gives as one, leaves both") {
    Facts facts(FileType::regular);
    facts.log.add({.kind = OpKind::rename, .file = facts.a, .file2 = facts.a}, 0);
    const LogFacts all = facts.gather();
    CHECK(Facts::text(all.files[facts.a]) == "used 1000 ");
    CHECK(all.renames.empty());
}

TEST_CASE("opens: found, made, cut, followed, without a name") {
    const auto open = [](int64_t flags, int64_t result = 3) {
        return facts_of({.kind = OpKind::open, .file = 1, .flags = flags}, result);
    };
    CHECK(open(O_RDONLY) == "used 1000 opened | ");
    CHECK(open(O_RDWR | O_CREAT) == "made 1000 opened | ");
    CHECK(open(O_WRONLY | O_TRUNC) == "used 1000 changed 0..end opened | ");
    CHECK(open(O_RDWR | O_TRUNC) == "used 1000 changed 0..end opened | ");
    CHECK(open(O_RDONLY | O_TRUNC) == "used 1000 opened | ");
    CHECK(open(O_RDONLY | O_DIRECTORY) == "used 1000 opened directory | ");
    CHECK(open(O_RDONLY | O_NOFOLLOW) == "used 1000 | ");
    CHECK(open(O_PATH) == "used 1000 | ");
    CHECK(open(O_TMPFILE | O_RDWR) == "nameless | ");
    CHECK(open(O_RDWR | O_CREAT | O_EXCL, -EEXIST) == "used 1000 | ");
    CHECK(open(O_RDWR, -ENOENT) == "| ");
}

TEST_CASE("names: what each op says, and what its failure says") {
    const auto named = [](OpKind kind, int64_t result = 0) { return facts_of({.kind = kind, .file = 1}, result); };
    CHECK(named(OpKind::stat) == "used 1000 | ");
    CHECK(named(OpKind::stat, -ENOENT) == "| ");
    CHECK(named(OpKind::access) == "used 1000 | ");
    const auto access = [](int64_t mode, int64_t result = 0) {
        return facts_of({.kind = OpKind::access, .file = 1, .mode = mode}, result);
    };
    CHECK(access(X_OK) == "used 1000 runnable | ");
    CHECK(access(R_OK | W_OK | X_OK) == "used 1000 runnable | ");
    CHECK(access(R_OK | W_OK) == "used 1000 | ");
    CHECK(access(X_OK, -EACCES) == "| ");
    CHECK(named(OpKind::mkdir) == "made 1000 | ");
    CHECK(named(OpKind::mkdir, -EEXIST) == "used 1000 | ");  // a file is in the way
    for (const FileType type : {FileType::unknown, FileType::directory}) {
        CHECK(facts_of({.kind = OpKind::mkdir, .file = 1}, -EEXIST, type) == "used 1000 directory | ");
    }
    CHECK(named(OpKind::symlink) == "made 1000 | ");
    CHECK(named(OpKind::symlink, -EEXIST) == "used 1000 | ");
    CHECK(named(OpKind::unlink) == "used 1000 changed 0..end gone | ");
    CHECK(named(OpKind::unlink, -EPERM) == "| ");
    CHECK(named(OpKind::rmdir) == "used 1000 changed 0..end directory gone | ");
    CHECK(named(OpKind::chmod) == "used 1000 attributes | ");
    CHECK(named(OpKind::chmod, -EPERM) == "| ");
    CHECK(named(OpKind::setxattr) == "used 1000 attributes | ");
    CHECK(named(OpKind::removexattr) == "used 1000 attributes | ");
    CHECK(named(OpKind::getxattr) == "used 1000 | ");
    CHECK(named(OpKind::utimens) == "used 1000 | ");
    const auto two = [](OpKind kind, int64_t result = 0) {
        return facts_of({.kind = kind, .file = 1, .file2 = 1}, result, FileType::unknown);
    };
    CHECK(two(OpKind::rename) == "used 1000 changed 0..end gone | made 1000 changed 0..end ; 1 to 2 at 1000");
    // Both were there.
    CHECK(two(OpKind::rename, -ENOTDIR) == "used 1000 directory | used 1000 ");
    CHECK(two(OpKind::rename, -EISDIR) == "used 1000 | used 1000 directory ");
    CHECK(two(OpKind::rename, -ENOTEMPTY) == "used 1000 directory | used 1000 directory full ");
    CHECK(two(OpKind::rename, -EEXIST) == "used 1000 directory | used 1000 directory full ");  // as XFS says it
    CHECK(facts_of({.kind = OpKind::rename, .file = 1, .file2 = 1, .flags = RENAME_NOREPLACE}, -EEXIST,
                   FileType::unknown) == "used 1000 | used 1000 ");
    CHECK(two(OpKind::rename, -ENOENT) == "| ");
    CHECK(facts_of({.kind = OpKind::rename, .file = 1, .file2 = 1}, -ENOTDIR, FileType::regular) == "| ");
    CHECK(facts_of({.kind = OpKind::rename, .file = 1, .file2 = 1, .flags = RENAME_EXCHANGE}) ==
          "used 1000 changed 0..end gone | used 1000 changed 0..end gone ; 1 to 2 at 1000");
    CHECK(two(OpKind::link) == "used 1000 changed 0..end | made 1000 ");
    CHECK(two(OpKind::link, -EEXIST) == "used 1000 | used 1000 ");
    CHECK(two(OpKind::link, -ENOTDIR) == "| ");
    CHECK(named(OpKind::rmdir, -ENOTEMPTY) == "used 1000 directory full | ");
    CHECK(named(OpKind::unlink, -EISDIR) == "used 1000 directory | ");
}

TEST_CASE("data: what is read, what may be changed") {
    const auto data = [](OpKind kind, int64_t offset, int64_t size, int64_t result) {
        return facts_of({.kind = kind, .handle = 1, .offset = offset, .size = size}, result);
    };
    CHECK(data(OpKind::pread, 100, 50, 30) == "reach 130 | ");
    CHECK(data(OpKind::read, 100, 50, 0) == "reach 100 | ");
    CHECK(data(OpKind::pread, 100, 50, -EIO) == "| ");
    CHECK(data(OpKind::pwrite, 100, 50, 30) == "changed 100..150 reach 130 | ");
    CHECK(data(OpKind::write, 100, 0, 30) == "changed 100..130 reach 130 | ");
    CHECK(data(OpKind::writev, -5, 50, 50) == "changed 0..50 reach 50 | ");
    const auto copy = [](OpKind kind) {
        return facts_of({.kind = kind, .handle = 1, .handle2 = 1, .offset = 10, .offset2 = 1000, .size = 9}, 5);
    };
    CHECK(copy(OpKind::copy_file_range) == "reach 15 | changed 1000..1009 reach 1005 ");
    CHECK(copy(OpKind::sendfile) == "reach 15 | changed 1000..1009 reach 1005 ");
    CHECK(copy(OpKind::splice) == "reach 15 | changed 1000..1009 reach 1005 ");
}

TEST_CASE("sizes and ranges by path and descriptor") {
    CHECK(facts_of({.kind = OpKind::truncate, .file = 1, .size = 70}) == "used 1000 changed 70..end | ");
    CHECK(facts_of({.kind = OpKind::ftruncate, .handle = 2, .size = 70}) == "| changed 70..end ");
    CHECK(facts_of({.kind = OpKind::ftruncate, .handle = 2, .size = 70}, -EINVAL) == "| ");
    const auto allocate = [](int64_t flags) {
        return facts_of({.kind = OpKind::fallocate, .handle = 1, .offset = 10, .size = 20, .flags = flags});
    };
    CHECK(allocate(0) == "changed 10..30 | ");
    CHECK(allocate(FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE) == "changed 10..30 | ");
    CHECK(allocate(FALLOC_FL_COLLAPSE_RANGE) == "changed 10..end | ");
    CHECK(allocate(FALLOC_FL_INSERT_RANGE) == "changed 10..end | ");
    CHECK(facts_of({.kind = OpKind::getdents, .handle = 1}) == "directory | ");
    CHECK(facts_of({.kind = OpKind::chmod, .handle = 1}) == "attributes | ");
    CHECK(facts_of({.kind = OpKind::fsync, .handle = 1}) == "| ");
}

TEST_CASE("mappings change a file only where they are shared and can be written") {
    const auto map = [](uint32_t handle, int64_t protection, int64_t flags) {
        return facts_of({.kind = OpKind::mmap,
                         .handle = handle,
                         .offset = 4096,
                         .size = 8192,
                         .flags = flags,
                         .mode = protection,
                         .map = 1});
    };
    CHECK(map(1, PROT_READ, MAP_SHARED) == "| ");
    CHECK(map(1, PROT_READ | PROT_WRITE, MAP_SHARED) == "changed 4096..12288 | ");
    CHECK(map(1, PROT_READ | PROT_WRITE, MAP_PRIVATE) == "| ");
    CHECK(map(2, PROT_READ, MAP_SHARED) == "| changed 4096..12288 ");  // may become writable
    CHECK(map(2, PROT_READ, MAP_PRIVATE) == "| ");
    CHECK(map(0, PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS) == "| ");
}

TEST_CASE("asynchronous requests") {
    const auto on_file = [](OpKind kind, int64_t code) {
        return facts_of({.kind = kind, .handle = 1, .offset = 10, .size = 20, .arg = code, .request = 1});
    };
    CHECK(on_file(OpKind::uring_submit, 22) == "| ");                 // IORING_OP_READ
    CHECK(on_file(OpKind::uring_submit, 23) == "changed 10..30 | ");  // IORING_OP_WRITE
    CHECK(on_file(OpKind::uring_submit, 3) == "| ");                  // IORING_OP_FSYNC
    CHECK(on_file(OpKind::uring_submit, 17) == "changed 0..end | ");  // IORING_OP_FALLOCATE
    CHECK(on_file(OpKind::uring_submit, 30) == "changed 0..end | ");  // IORING_OP_SPLICE
    CHECK(on_file(OpKind::aio_submit, 0) == "| ");                    // IOCB_CMD_PREAD
    CHECK(on_file(OpKind::aio_submit, 1) == "changed 10..30 | ");     // IOCB_CMD_PWRITE
    const auto by_path = [](int64_t code) {
        return facts_of({.kind = OpKind::uring_submit, .file = 1, .arg = code, .request = 1});
    };
    CHECK(by_path(18) == "used 1000 | ");            // IORING_OP_OPENAT
    CHECK(by_path(21) == "used 1000 | ");            // IORING_OP_STATX
    CHECK(by_path(37) == "made 1000 | ");            // IORING_OP_MKDIRAT
    CHECK(by_path(36) == "changed 0..end gone | ");  // IORING_OP_UNLINKAT
}

TEST_CASE("the first op counts, the furthest byte, and all changes") {
    Facts facts;
    const HandleId inherited = facts.log.handle({.file = facts.a, .inherited = true, .process = 1, .fd = 3});
    const HandleId directory = facts.log.handle({.file = facts.b, .kind = HandleKind::directory});
    static_cast<void>(directory);
    for (const int64_t offset : {500, 100, 300}) {
        facts.log.add({.kind = OpKind::pwrite, .handle = inherited, .offset = offset, .size = 10}, 10);
    }
    facts.log.named(OpKind::stat, facts.b);
    facts.log.named(OpKind::stat, facts.b);
    facts.log.add({.kind = OpKind::stat, .file = 0});
    facts.log.named(OpKind::rename, facts.b, facts.a);
    facts.log.named(OpKind::rename, facts.a, facts.b);
    const LogFacts all = facts.gather();
    CHECK(Facts::text(all.files[facts.a]) ==
          "made 7000 used " + std::to_string(INT64_MIN) + " changed 0..end reach 510 gone ");
    CHECK(Facts::text(all.files[facts.b]) == "made 8000 used 4000 changed 0..end directory gone ");
    REQUIRE(all.renames.size() == 2);
    CHECK(all.renames[0].from == facts.b);
    CHECK(all.renames[1].from == facts.a);
    CHECK(all.renames[1].time == 8000);
}

}  // namespace reprise::test
