// SPDX-License-Identifier: MIT
// The strace importer against the recorded traces and against what the installed strace writes today.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <set>
#include <thread>

#include "tests/formats/import/strace/strace_fixture.h"

namespace reprise::test {
namespace {

// The recorded program: this binary again, with the folder to work in as this variable.
constexpr const char* kChildVariable = "REPRISE_STRACE_CHILD";

void must(bool good) {
    if (!good) {
        _exit(9);
    }
}

void recorded_program(const char* folder) {
    must(chdir(folder) == 0);
    char buffer[8192] = {};
    const int out = open("data.tmp", O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0640);
    must(write(out, buffer, 100) == 100);
    const int twin = dup(out);
    must(write(twin, buffer, 50) == 50);
    must(pwrite(out, buffer, 10, 1000) == 10);
    must(fsync(out) == 0);
    must(rename("data.tmp", "data.final") == 0);
    must(close(out) == 0 && close(twin) == 0);

    const int in = open("in", O_RDONLY);
    must(read(in, buffer, 1000) == 1000);
    const pid_t child = fork();
    if (child == 0) {
        must(read(in, buffer, 500) == 500);
        _exit(3);
    }
    int status = 0;
    must(waitpid(child, &status, 0) == child);
    must(read(in, buffer, 700) == 700);
    must(lseek(in, -100, SEEK_END) == 4900);
    must(read(in, buffer, 4096) == 100);
    void* mapped = mmap(nullptr, 5000, PROT_READ, MAP_SHARED, in, 0);
    must(mapped != MAP_FAILED);
    must(madvise(static_cast<char*>(mapped) + 4096, 100, MADV_WILLNEED) == 0);
    must(munmap(mapped, 5000) == 0);

    int ends[2];
    must(pipe(ends) == 0);
    std::thread other([&] {
        const int second = open("new\nline", O_RDONLY);
        must(second >= 0 && read(second, buffer + 4096, 10) == 7);
        must(close(second) == 0);
        must(write(ends[1], "message", 7) == 7);
    });
    must(read(ends[0], buffer, 100) == 7);
    other.join();
    must(symlink("in", "link") == 0);
    must(unlink("link") == 0);
    must(access("missing", F_OK) != 0);
    _exit(0);
}

struct RunAsRecorded {
    RunAsRecorded() {
        if (const char* folder = std::getenv(kChildVariable)) {
            recorded_program(folder);
        }
    }
} run_as_recorded;

bool strace_works() {
    return std::system("strace -f -o /dev/null true >/dev/null 2>&1") == 0;  // NOLINT: a fixed command
}

std::vector<Op> in_file(const AssembledLog& log, OpKind kind, const std::string& path) {
    std::vector<Op> out;
    for (const Op& op : log.of_kind(kind)) {
        if (log.path_of(op) == path) {
            out.push_back(op);
        }
    }
    return out;
}

std::map<std::string, uint64_t> by_kind(const AssembledLog& log) {
    std::map<std::string, uint64_t> out;
    for (const auto& [task, rows] : log.rows) {
        for (const auto& row : rows) {
            ++out[std::string(info(row.op.kind).name)];
        }
    }
    return out;
}

void check_recorded_program(const AssembledLog& log, const std::string& folder) {
    const auto path = [&](const char* name) { return folder + "/" + name; };
    const auto writes = in_file(log, OpKind::write, path("data.tmp"));
    REQUIRE(writes.size() == 2);
    CHECK(writes[0].offset == 0);
    CHECK(writes[1].offset == 100);  // through the twin
    CHECK(writes[0].handle == writes[1].handle);
    CHECK(writes[0].fd != writes[1].fd);
    CHECK(in_file(log, OpKind::pwrite, path("data.tmp")).at(0).offset == 1000);
    CHECK(log.file(path("data.tmp")).origin == Origin::created);
    CHECK(log.file(path("data.tmp")).mode == 0640);
    CHECK(log.file(path("data.final")).origin == Origin::created);

    const auto reads = in_file(log, OpKind::read, path("in"));
    REQUIRE(reads.size() == 4);
    std::set<int64_t> offsets;
    for (const Op& op : reads) {
        offsets.insert(op.offset);
        CHECK(op.handle == reads[0].handle);
    }
    CHECK(offsets == std::set<int64_t>{0, 1000, 1500, 4900});
    CHECK(log.file(path("in")).size == 5000);
    CHECK(log.file(path("in")).size_exact);
    CHECK(log.file(path("in")).origin == Origin::existed);
    const auto seeks = in_file(log, OpKind::lseek, path("in"));
    REQUIRE(seeks.size() == 1);
    CHECK(seeks[0].result == 4900);

    const auto maps = in_file(log, OpKind::mmap, path("in"));
    REQUIRE(maps.size() == 1);
    std::vector<Op> advice;
    for (const Op& op : log.of_kind(OpKind::madvise)) {
        if (op.map == maps[0].map) {
            advice.push_back(op);
        }
    }
    REQUIRE(advice.size() == 1);
    CHECK(advice[0].offset == 4096);

    CHECK(in_file(log, OpKind::read, path("new\nline")).size() == 1);
    auto sent = log.of_kind(OpKind::send);
    // A sanitizer's run-time probes memory by writing it into a pipe of its own.
    std::erase_if(sent, [](const Op& op) { return op.size != 7; });
    REQUIRE(sent.size() == 1);
    const auto received = log.of_kind(OpKind::receive);
    REQUIRE(received.size() == 1);
    CHECK(received[0].result == 7);
    CHECK(log.tables().processes.size() == 3);
    CHECK(log.tables().tasks.size() == 4);
    const auto spawns = log.of_kind(OpKind::spawn);
    REQUIRE(spawns.size() == 2);
    const auto joins = log.of_kind(OpKind::join);
    REQUIRE(joins.size() == 1);
    CHECK(joins[0].peer == spawns[0].peer);
    CHECK(log.file(path("missing")).origin == Origin::absent);
    CHECK(log.file(path("link")).type == FileType::symlink);
    CHECK(log.counter("unrecognized_lines") == 0);
    CHECK(log.counter("symbols_unknown") == 0);
    CHECK(log.counter("descriptors_corrected") == 0);
    CHECK(log.tables().losses() == 0);
}

}  // namespace

TEST_CASE("strace as installed: one program under every set of options") {
    if (!strace_works()) {
        REPRISE_SKIP("strace is not installed or may not trace here");
    }
    const std::vector<std::string> options = {"-f -ttt -T -yy", "-f -ttt -T -y",      "-f -ttt -T",
                                              "-f -tt -T -yy",  "-f -ttt -yy",        "-ff -ttt -T -yy",
                                              "-ff -ttt -T",    "-f -ttt -T -xx -yy", "-f -ttt -T -v -s 4096"};
    for (const std::string& option : options) {
        CAPTURE(option);
        const TempDir dir;
        const std::string folder = std::filesystem::canonical(dir.path()).string();
        write_file(dir / "in", std::string(5000, 'x'));
        write_file(dir / "new\nline", "content");
        std::filesystem::create_directory(dir / "traces");
        const std::string self = std::filesystem::canonical("/proc/self/exe").string();
        const std::string command = "strace " + option + " -o '" + folder + "/traces/t' -E " + kChildVariable + "='" +
                                    folder + "' '" + self + "' >/dev/null 2>&1";
        REQUIRE(std::system(command.c_str()) == 0);  // NOLINT: the test's own paths
        std::vector<std::filesystem::path> inputs;
        for (const auto& entry : std::filesystem::directory_iterator(dir / "traces")) {
            inputs.push_back(entry.path());
        }
        CHECK(inputs.size() == (option.starts_with("-ff") ? 3 : 1));
        import_strace.import(inputs, dir / "out.oplog", {});
        check_recorded_program(AssembledLog(dir / "out.oplog"), folder);
    }
}

// The numbers below were counted by a script of a few lines over the text: halves joined by pid, calls by name, bytes
// by the number behind the last "=".
TEST_CASE("strace of a PyTorch epoch: 2 000 JPEGs") {
    REPRISE_TRACE(path, "strace/pytorch_resnet18_2workers.strace.zst");
    StraceImported log(path);
    std::set<std::string> images;
    uint64_t opens = 0, reads = 0, bytes = 0;
    const auto is_image = [&](const Op& op) {
        return log->path_of(op).starts_with("/data/wl/data/train/") && log->path_of(op).ends_with(".jpg");
    };
    for (const Op& op : log->of_kind(OpKind::open)) {
        if (op.result < 0 || !is_image(op)) {
            continue;
        }
        ++opens;
        images.insert(log->path_of(op));
        const FileRow& row = log->tables().files[op.file];
        CHECK(row.role == Role::dataset);
        CHECK(row.origin == Origin::existed);
        CHECK(row.size_exact);
    }
    for (const Op& op : log->of_kind(OpKind::read)) {
        if (!is_image(op)) {
            continue;
        }
        ++reads;
        bytes += static_cast<uint64_t>(data_bytes(op));
    }
    CHECK(opens == 2000);
    CHECK(images.size() == 2000);
    CHECK(reads == 8134);
    CHECK(bytes == 201'206'749);
    uint64_t files = 0;
    for (const FileRow& row : log->tables().files) {
        files += row.role == Role::dataset && row.type == FileType::regular;
    }
    CHECK(files == 2000);

    auto kinds = by_kind(*log);
    CHECK(kinds["open"] == 3915);
    CHECK(kinds["lseek"] == 6212);
    CHECK(kinds["stat"] + kinds["fstat"] == 10425);
    CHECK(kinds["read"] + kinds["receive"] == 12945);
    CHECK(kinds["dup"] + kinds["fcntl"] == 388 + 126);
    CHECK(kinds["spawn"] == 9);
    CHECK(log->counter("dropped_ioctl") == 255);
    CHECK(log->counter("unrecognized_lines") == 0);
    CHECK(log->tables().losses() == 0);
    CHECK(log->file("/data/wl/data/ckpt0.pt").role == Role::checkpoint);
}

TEST_CASE("strace of a Python loader, with and without descriptors' names") {
    REPRISE_TRACE(plain_path, "strace/py_loader_4workers.strace-f-ttt-T.log");
    REPRISE_TRACE(named_path, "strace/py_loader_4workers.strace-f-ttt-T-yy.log");
    StraceImported plain(plain_path), named(named_path);
    for (StraceImported* log : {&plain, &named}) {
        auto kinds = by_kind(**log);
        const bool with_names = log == &named;
        CAPTURE(with_names);
        CHECK(kinds["open"] == (with_names ? 1493 : 1494));
        CHECK(kinds["stat"] + kinds["fstat"] == 2076);
        CHECK(kinds["access"] == 111 + 6);
        CHECK(kinds["lseek"] == 1085);
        CHECK(kinds["write"] + kinds["send"] == 231);
        CHECK(kinds["pwrite"] == 4);
        CHECK(kinds["pread"] == 78);
        CHECK(kinds["exec"] == 253);
        CHECK(kinds["spawn"] == 44 + 5);
        CHECK(kinds["pipe"] == 37);
        CHECK(kinds["rename"] == 2);
        CHECK(kinds["fsync"] == 2);
        CHECK((*log)->tables().tasks.size() == 50 + 1);
        CHECK((*log)->counter("unrecognized_lines") == 0);
        CHECK((*log)->counter("descriptors_corrected") == 0);
        CHECK((*log)->tables().losses() == 0);
        uint64_t read = 0;
        for (const OpKind kind : {OpKind::read, OpKind::receive}) {
            for (const Op& op : (*log)->of_kind(kind)) {
                read += static_cast<uint64_t>(std::max<int64_t>(op.result, 0));
            }
        }
        CHECK(read == (with_names ? 104'142'114 : 104'352'278));
    }
    // The JPEG-sized files are written first and read by the workers: every offset must fit the file.
    for (const Op& op : plain->of_kind(OpKind::read)) {
        if (op.result > 0 && plain->path_of(op).ends_with(".npz")) {
            CHECK(static_cast<uint64_t>(op.offset + op.result) <=
                  plain->tables().files[plain->tables().file_of(op)].size);
        }
    }
}

TEST_CASE("strace: names of descriptors change neither offsets nor handles") {
    REPRISE_TRACE(path, "strace/py_loader_4workers.strace-f-ttt-T-yy.log");
    const std::string named_text = read_file(path);
    std::string plain_text;  // as strace would have written it without -yy
    for (size_t i = 0; i < named_text.size(); ++i) {
        const char before = i ? named_text[i - 1] : '\n';
        const char after = i + 1 < named_text.size() ? named_text[i + 1] : '\n';
        const bool digit_before = (before >= '0' && before <= '9') || before == 'D';
        const bool names = named_text[i] == '<' && digit_before && (after == '/' || (after >= 'a' && after <= 'z'));
        if (!names) {
            plain_text += named_text[i];
            continue;
        }
        int depth = 0;
        for (;; ++i) {
            if (named_text[i] == '<') {
                ++depth;
            }
            if (named_text[i] == '>' && --depth == 0) {
                break;
            }
        }
        constexpr std::string_view kDeleted = "(deleted)";
        if (named_text.compare(i + 1, kDeleted.size(), kDeleted) == 0) {
            i += kDeleted.size();
        }
    }
    REQUIRE(plain_text.find("</data") == std::string::npos);
    REQUIRE(plain_text.size() < named_text.size());
    StraceImported named(named_text), plain(plain_text);
    REQUIRE(named->tables().tasks.size() == plain->tables().tasks.size());
    // Per task the file ops must be the same calls, at the same offsets, on handles that correspond one to one.
    std::map<HandleId, HandleId> match;
    size_t compared = 0, different = 0;
    for (TaskId task = 1; task < named->tables().tasks.size(); ++task) {
        const auto files_only = [](const AssembledLog& log, TaskId t) {
            std::vector<Op> out;
            for (const Op& op : log.ops(t)) {
                if (op.kind == OpKind::send || op.kind == OpKind::receive || op.kind == OpKind::fcntl) {
                    continue;
                }
                if (op.handle && log.tables().handles[op.handle].inherited) {
                    continue;  // a guess without names
                }
                out.push_back(op);
            }
            return out;
        };
        const auto a = files_only(*named, task), b = files_only(*plain, task);
        CHECK(a.size() == b.size());
        for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
            ++compared;
            const bool same_handle = match.try_emplace(a[i].handle, b[i].handle).first->second == b[i].handle;
            different += a[i].kind != b[i].kind || a[i].offset != b[i].offset || a[i].size != b[i].size ||
                         a[i].result != b[i].result || !same_handle;
        }
    }
    CHECK(compared > 7000);
    CHECK(different == 0);
}

}  // namespace reprise::test
