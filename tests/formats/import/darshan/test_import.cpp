// SPDX-License-Identifier: MIT
// The Darshan importer: both column layouts, both modules, what it infers and counts, damage, binary logs by way of a
// stand-in for PyPI's module, and the recorded traces.
#include <cstdlib>

#include "formats/import/darshan/binary.h"
#include "formats/import/darshan/lines.h"
#include "formats/support/error.h"
#include "tests/formats/import/import_support.h"

using namespace reprise;
using namespace reprise::test;

namespace {

constexpr std::string_view kStart =
    "# darshan log version: 3.41\n# exe: ./job \n# start_time: 1700000000\n# run time: 9.0000\n"
    "# DXT_POSIX module data\n";

std::string section(std::string_view path, int rank, std::string_view rows) {
    return "# DXT, file_id: 9, file_name: " + std::string(path) + "\n# DXT, rank: " + std::to_string(rank) +
           ", hostname: h" + std::to_string(rank) + "\n" + std::string(rows);
}

std::string meaning_of(const LogReader& log, std::string_view name) {
    for (const Counter& c : log.tables().counters) {
        if (c.name == name) {
            return std::string(c.meaning);
        }
    }
    return {};
}

// For one scope: programs are looked for in `first`, Python's modules in `modules`.
class Environment {
public:
    explicit Environment(const std::vector<std::pair<std::string, std::string>>& set) {
        for (const auto& [name, value] : set) {
            const char* before = std::getenv(name.c_str());
            before_.emplace_back(name, before ? std::optional<std::string>(before) : std::nullopt);
            ::setenv(name.c_str(), value.c_str(), 1);
        }
    }
    ~Environment() {
        for (const auto& [name, value] : before_) {
            value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
        }
    }
    Environment(const Environment&) = delete;
    Environment& operator=(const Environment&) = delete;

private:
    std::vector<std::pair<std::string, std::optional<std::string>>> before_;
};

const std::string binary_log(
    "3.41\0\0\0\0"
    "75d\0\0\0\0\0"
    "whatever follows",
    32);

// A module of the functions that the script calls; what log_open does is given.
void write_module(const std::filesystem::path& folder, std::string_view log_open) {
    std::filesystem::create_directories(folder / "darshan/backend");
    write_file(folder / "darshan/__init__.py", "");
    write_file(folder / "darshan/backend/__init__.py", "");
    write_file(
        folder / "darshan/backend/cffi_backend.py",
        "import os, signal\n"
        "class ffi:\n"
        "    NULL = 0\n"
        "def log_open(name):\n"
        "    " +
            std::string(log_open) + "\n" +
            "def log_get_job(log):\n"
            "    return {'log_ver': '3.41', 'start_time_sec': 1700000000, 'start_time_nsec': 5, 'run_time': 2.25}\n"
            "def log_get_exe(log):\n"
            "    return 'python train.py'\n"
            "def log_get_modules(log):\n"
            "    return {'POSIX': {}, 'DXT_POSIX': {'partial_flag': True}}\n"
            "def log_get_name_records(log):\n"
            "    return {7: '/data/caf\\udce9\\n.h5'}\n"
            "records = [{'id': 7, 'rank': 0, 'hostname': 'h', 'write_count': 0, 'read_count': 1,\n"
            "            'write_segments': [], 'read_segments': [\n"
            "    {'offset': 512, 'length': 1 << 40, 'start_time': 0.5, 'end_time': 0.123456789 + 0.5}]}]\n"
            "def log_get_dxt_record(log, module):\n"
            "    return records.pop() if records else None\n");
}

}  // namespace

TEST_CASE("both column layouts, both modules; opens, closes and ends are added") {
    TempDir dir;
    const LogReader log = import_files(dir, {source_dir() / "tests/fuzz/corpus/darshan/small.dxt.txt"});
    CHECK(listing(log) ==
          "2 499900+0 open /data/train/a b.h5 = 3\n"
          "2 499900+600 pread /data/train/a b.h5 fd3 @0 #4096 = 4096\n"
          "1 500000+0 open /data/train/a b.h5 = 3\n"
          "1 500000+1000 pread /data/train/a b.h5 fd3 @0 #4096 = 4096\n"
          "1 501000+200 pread /data/train/a b.h5 fd3 @4096 #904 = 904\n"
          "1 501200+0 pread /data/train/a b.h5 fd3 @5000 #1 = 0\n"
          "1 501200+0 close /data/train/a b.h5 fd3 = 0\n"
          "3 600000+500 pread /data/train/a b.h5 fd3 @4096 #4096 = 4096\n"
          "3 600500+0 close /data/train/a b.h5 fd3 = 0\n"
          "1 1000000+0 open /out/model.ckpt = 4\n"
          "1 1000000+200000 pwrite /out/model.ckpt fd4 @0 #1048576 = 1048576\n"
          "4 1100000+200000 pwrite /out/model.ckpt fd4 @1048576 #1048576 = 1048576\n"
          "4 1300000+0 close /out/model.ckpt fd4 = 0\n"
          "5 2000000+0 open /out/collective.bin = 4\n"
          "5 2000000+10000 pwrite /out/collective.bin fd4 @0 #512 = 512\n"
          "5 2010000+0 close /out/collective.bin fd4 = 0\n"
          "1 2500000+0 exit arg0 = 0\n"
          "2 2500000+0 exit arg0 = 0\n");
    CHECK(counter(log, "opens_synthesised") == 4);
    CHECK(counter(log, "closes_synthesised") == 4);
    CHECK(counter(log, "ends_assumed") == 2);
    CHECK(counter(log, "requests_assumed") == 8);
    CHECK(counter(log, "metadata_calls_unseen") == 2);
    CHECK(counter(log, "causes_unseen") == 2);
    CHECK(counter(log, "times_coarse") == 16);
    CHECK(meaning_of(log, "times_coarse").find("100 us") != std::string::npos);
    CHECK(counter(log, "clocks_of_hosts") == 2);
    CHECK(counter(log, "starts_coarse") == 0);
    CHECK(counter(log, "threads_inferred") == 1);
    CHECK(counter(log, "mpiio_calls_left_out") == 1);
    CHECK(counter(log, "mpiio_calls") == 1);
    CHECK(counter(log, "creations_guessed") == 2);
    CHECK(counter(log, "calls_missing") == 0);
    CHECK(counter(log, "malformed_lines") == 0);
    CHECK(counter(log, "inputs_cut") == 0);
    CHECK(counter(log, "dataset_never_read") == 0);
    CHECK(log.header().time_unit_ns == 100'000);
    CHECK(log.header().origin_unix_ns == 1'744'147'560'000'000'000);
    CHECK(log.header().source == "darshan");
    CHECK(log.header().host == "n1");
    CHECK(log.header().command == "python train.py --data /data/train");
    CHECK(log.tables().strings[log.tables().tasks[1].name] == "rank 0");
}

TEST_CASE("bad lines are counted and left out") {
    TempDir dir;
    const std::string whole = " X_POSIX 0 read 0 0 4096 1.0 2.0 N/A\n";
    for (const std::string_view bad :
         {"X_STDIO 0 read 0 0 1 1.0 2.0\n", "X_POSIX x read 0 0 1 1.0 2.0\n", "X_POSIX 0 seek 0 0 1 1.0 2.0\n",
          "X_POSIX 0 read 0 -1 1 1.0 2.0\n", "X_POSIX 0 read 0 0 99999999999999999999 1.0 2.0\n",
          "X_POSIX 0 read 0 9223372036854775807 1 1.0 2.0\n", "X_POSIX 0 read 0 0 1 one 2.0\n",
          "X_POSIX 0 read 0 0 1 2.0 1.0\n", "X_POSIX 0 read 0 0 1 1.0\n", "X_POSIX 0 read 0 0 1 1.0 2.0 thread\n",
          "X_POSIX 0 read 0 0 1 1.0 9999999999.0\n", "X_POSIX 0 read 0 0 1 -100.0 1.0\n", "garbage\n",
          "# run time: x\n", "# start_time: -4\n", "# DXT, rank: x, hostname: y\n",
          "# DXT, write_count: 1, read_count: -1\n"}) {
        CAPTURE(bad);
        const LogReader log = import_text(dir, std::string(kStart) + section("/d/a", 0, whole + std::string(bad)));
        CHECK(counter(log, "malformed_lines") == 1);
        CHECK(meaning_of(log, "malformed_lines").find("input:9: ") != std::string::npos);
        CHECK(counter(log, "requests_assumed") == 1);
    }
    const LogReader early = import_text(dir, std::string(kStart) + whole + section("/d/a", 0, whole));
    CHECK(counter(early, "malformed_lines") == 1);
}

TEST_CASE("what a trace counts and does not list is a loss, as is what Darshan had no memory for") {
    TempDir dir;
    const std::string counted = "# DXT, write_count: 1, read_count: 3\n X_POSIX 0 read 0 0 1 1.0 2.0\n";
    CHECK(counter(import_text(dir, std::string(kStart) + section("/d/a", 0, counted)), "calls_missing") == 3);
    const LogReader log =
        import_text(dir, std::string(kStart) + "# *WARNING*: The DXT_POSIX module contains incomplete data!\n" +
                             section("/d/a", 0, counted) + section("/d/b", 1, counted));
    CHECK(counter(log, "calls_missing") == 6);
    CHECK(counter(log, "records_incomplete") == 1);
    const LogReader cut =
        import_text(dir, std::string(kStart) + section("/d/a", 0, counted) + " X_POSIX 0 read 1 1 40");
    CHECK(counter(cut, "inputs_cut") == 1);
    CHECK(counter(cut, "malformed_lines") == 0);
    CHECK(counter(cut, "calls_missing") == 3);
}

TEST_CASE("inputs without a call are refused with the reason") {
    TempDir dir;
    CHECK_THROWS_WITH_AS(import_text(dir, "# darshan log version: 3.41\nPOSIX\t0\t1\tPOSIX_OPENS\t4\t/a\t/\text4\n"),
                         doctest::Contains("DXT_ENABLE_IO_TRACE"), Error);
    CHECK_THROWS_WITH_AS(import_text(dir, kStart), doctest::Contains("lists no call"), Error);
    CHECK_THROWS_WITH_AS(import_text(dir, std::string(kStart) + "garbage\n"), doctest::Contains("input:6: expected"),
                         Error);
    CHECK_THROWS_WITH_AS(import_text(dir, "", "darshan"), doctest::Contains("is empty"), Error);
    CHECK(std::filesystem::exists(dir / "out.oplog.partial") == false);
}

TEST_CASE("files without a name and odd ones; a rank of its own ends where the run ends") {
    TempDir dir;
    const LogReader log = import_text(dir, std::string(kStart) + section("", 0, " X_POSIX 0 read 0 0 1 1.0 2.0\n") +
                                               section("/d/../e//f", 3, " X_POSIX 3 read 0 0 1 1.5 9.5\n"));
    CHECK(listing(log) ==
          "1 1000000+0 open /unnamed/darshan_9 = 3\n"
          "1 1000000+1000000 pread /unnamed/darshan_9 fd3 @0 #1 = 1\n"
          "2 1500000+0 open /e/f = 3\n"
          "2 1500000+8000000 pread /e/f fd3 @0 #1 = 1\n"
          "1 2000000+0 close /unnamed/darshan_9 fd3 = 0\n"
          "1 9000000+0 exit arg0 = 0\n"
          "2 9500000+0 close /e/f fd3 = 0\n");
    CHECK(counter(log, "ends_assumed") == 1);
}

TEST_CASE("several logs are put on one clock by their start times") {
    TempDir dir;
    const std::string rows = " X_POSIX 0 read 0 0 1 1.0000 2.0000\n";
    write_file(dir / "a", std::string(kStart) + section("/d/a", 0, rows));
    write_file(dir / "b", "# darshan log version: 3.41\n# start_time: 1699999997\n" + section("/d/b", 0, rows));
    const LogReader log = import_files(dir, {dir / "a", dir / "b"});
    CHECK(log.tables().processes.size() == 3);
    CHECK(listing(log).starts_with("2 1000000+0 open /d/b = 3\n"));
    CHECK(listing(log).find("1 4000000+0 open /d/a = 3\n") != std::string::npos);
    CHECK(counter(log, "starts_coarse") == 2);
    CHECK(log.header().origin_unix_ns == 1'699'999'997'000'000'000);
}

TEST_CASE("a job that reads no data set is told, with the place that its command names") {
    TempDir dir;
    const std::string start = "# darshan log version: 3.41\n# exe: python main.py data_folder=/p/set/data out=/p/out\n";
    const std::string row = " X_POSIX 0 read 0 0 300 1.0 2.0\n";
    const std::string program = section("/usr/lib/python3/os.py", 0, row) +
                                section("/home/u/.keras/keras.json", 0, row) + section("/home/u/run.yaml", 0, row);
    const LogReader log = import_text(dir, start + program);
    CHECK(counter(log, "dataset_never_read") == 3);
    CHECK(meaning_of(log, "dataset_never_read").find("names /p/set/data, where") != std::string::npos);
    const LogReader read = import_text(dir, start + program + section("/p/set/data/a.npz", 0, row));
    CHECK(counter(read, "dataset_never_read") == 0);
    // By the user's word.
    ImportOptions options;
    options.roles = RoleOverrides::parse({"/home/u/.keras=dataset"});
    CHECK(counter(import_text(dir, start + program, {}, options), "dataset_never_read") == 3);
    const LogReader writer = import_text(dir, start + section("/p/out/a", 0, " X_POSIX 0 write 0 0 300 1.0 2.0\n"));
    CHECK(counter(writer, "dataset_never_read") == 0);
}

TEST_CASE("times are exact to the nanosecond") {
    int64_t ns = 0;
    int decimals = 0;
    CHECK((darshan::to_time("0.0419", ns, decimals) && ns == 41'900'000 && decimals == 4));
    CHECK((darshan::to_time("12", ns, decimals) && ns == 12'000'000'000 && decimals == 0));
    CHECK((darshan::to_time("1.2345678919", ns, decimals) && ns == 1'234'567'891 && decimals == 9));
    CHECK((darshan::to_time("-0.0001", ns, decimals) && ns == -100'000));
    for (const std::string_view bad : {"", "-", ".", "1.x", "x", "9999999999", "1e9", "--1"}) {
        CAPTURE(bad);
        CHECK_FALSE(darshan::to_time(bad, ns, decimals));
    }
}

TEST_CASE("a binary log is read by the module, and its own digits are kept") {
    TempDir dir;
    if (std::system("python3 -c 0 >/dev/null 2>&1") != 0) {
        REPRISE_SKIP("no python3");
    }
    write_module(dir / "modules", "return {'handle': 1}");
    write_file(dir / "job.darshan", binary_log);
    const Environment environment({{"PYTHONPATH", (dir / "modules").native()}});
    const LogReader log = import_files(dir, {dir / "job.darshan"});
    const auto all = rows(log);
    REQUIRE(all.size() == 4);
    CHECK(all[1].op.begin == 500'000'000);
    CHECK(all[1].op.duration == 123'456'789);
    CHECK(all[1].op.result == int64_t{1} << 40);
    CHECK(all[1].path == "/data/caf\xe9\\n.h5");
    CHECK(log.header().origin_unix_ns == 1'700'000'000'000'000'005);
    CHECK(counter(log, "records_incomplete") == 1);
    CHECK(counter(log, "times_coarse") == 0);

    write_module(dir / "modules", "return {'handle': 0}");
    CHECK_THROWS_WITH_AS(import_files(dir, {dir / "job.darshan"}), doctest::Contains("cannot read this log: it is"),
                         Error);
    write_module(dir / "modules", "os.write(2, b'Error: it is cut\\n') and None; return {'handle': 1}");
    CHECK_THROWS_WITH_AS(import_files(dir, {dir / "job.darshan"}), doctest::Contains("Error: it is cut"), Error);
    write_module(dir / "modules", "os.kill(os.getpid(), signal.SIGSEGV)");
    CHECK_THROWS_WITH_AS(import_files(dir, {dir / "job.darshan"}), doctest::Contains("ended by signal 11"), Error);
}

TEST_CASE("a binary log without the module, without python3, or packed: what to install or do") {
    TempDir dir;
    write_file(dir / "job.darshan", binary_log);
    std::filesystem::create_directories(dir / "modules/darshan");
    write_file(dir / "modules/darshan/__init__.py", "raise ImportError('No module named darshan')\n");
    if (std::system("python3 -c 0 >/dev/null 2>&1") == 0) {
        const Environment environment({{"PYTHONPATH", (dir / "modules").native()}});
        CHECK_THROWS_WITH_AS(import_files(dir, {dir / "job.darshan"}), doctest::Contains("pip install darshan"), Error);
    }
    {
        const Environment environment({{"PATH", dir.path().native()}});
        CHECK_THROWS_WITH_AS(import_files(dir, {dir / "job.darshan"}), doctest::Contains("python3 cannot be run"),
                             Error);
        // Text runs nothing.
        write_file(dir / "text", std::string(kStart) + section("/d/a", 0, " X_POSIX 0 read 0 0 1 1.0 2.0\n"));
        CHECK(import_files(dir, {dir / "text"}).op_count() == 4);
    }
    ImportOptions options;
    options.run_programs = false;
    CHECK_THROWS_WITH_AS(import_files(dir, {dir / "job.darshan"}, {}, options), doctest::Contains("darshan-dxt-parser"),
                         Error);
    if (std::system(("gzip -k '" + (dir / "job.darshan").native() + "'").c_str()) == 0) {
        CHECK_THROWS_WITH_AS(import_files(dir, {dir / "job.darshan.gz"}), doctest::Contains("unpack it first"), Error);
    }
}

TEST_CASE("CosmicTagger: all calls of all ranks") {
    REPRISE_TRACE(trace, "darshan/cosmictagger.dxt.txt.zst");
    TempDir dir;
    const LogReader log = import_files(dir, {trace});
    uint64_t reads = 0, writes = 0;
    int64_t bytes = 0, end = 0;
    for (const Row& row : rows(log)) {
        reads += row.op.kind == OpKind::pread;
        writes += row.op.kind == OpKind::pwrite;
        bytes += row.op.kind == OpKind::pread ? row.op.result : 0;
        end = std::max(end, row.op.begin + row.op.duration);
    }
    CHECK(reads == 313'712);
    CHECK(writes == 160);
    CHECK(end == 988'000'000'000);
    CHECK(bytes + 293'000'000 > 1'622'047'046);
    CHECK(log.tables().processes.size() == 1 + 8);
    CHECK(counter(log, "calls_missing") == 0);
    CHECK(counter(log, "malformed_lines") == 0);
    CHECK(counter(log, "dataset_never_read") == 0);
    CHECK(counter(log, "clocks_of_hosts") == 8);
}

TEST_CASE("Unet3D on A100: the forked loaders are missing, and the import says so") {
    REPRISE_TRACE(trace, "darshan/unet3d_a100_missing_loader_reads.dxt.txt");
    TempDir dir;
    const LogReader log = import_files(dir, {trace});
    CHECK(counter(log, "dataset_never_read") == 1'952);
    CHECK(meaning_of(log, "dataset_never_read").find("/unet3d_a100_npz_168/data") != std::string::npos);
    CHECK(counter(log, "requests_assumed") == 1'953);
    CHECK(counter(log, "clocks_of_hosts") == 0);
    CHECK(counter(log, "malformed_lines") == 0);
}
