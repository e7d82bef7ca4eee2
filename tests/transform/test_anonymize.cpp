// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>

#include "formats/export/dump.h"
#include "formats/oplog/installed_paths.h"
#include "tests/samples.h"
#include "tests/support.h"
#include "transform/anonymize.h"

using namespace reprise;
using namespace reprise::test;

namespace {

constexpr const char* kSecrets[] = {"aliceco",    "projectx",   "bobhost",    "trainsecret",   "hiddenmodel",
                                    "stolen",     "privattr",   "ourkernel",  "mythread",      "gemmsecret",
                                    "secretmark", "linktarget", "procsecret", "countersecret", "Countersecret"};

void write_secrets(const std::filesystem::path& path) {
    Header header;
    header.host = "bobhost";
    header.kernel = "Linux 6.1.0-ourkernel";
    header.command = "/home/aliceco/bin/trainsecret --data=/srv/projectx/x stolen";
    header.source = "capture";
    header.extra["capture.user"] = "aliceco";
    header.extra["capture.rings"] = "[1,2,3]";
    header.extra["capture.profile"] =
        R"({"identity":4711,"cpus":2,"integer":1.0,"inflate":2.0,"memcpy":3.0,"boot":88,"measured_unix_s":99})";
    header.extra["capture.words"] = R"({"a":["stolen"]})";
    LogWriter log(path, header);
    const ProcessId process = log.add_process({10, 0, log.intern(header.command), log.intern("bobhost")});
    const TaskId task = log.add_task({process, 10, log.intern("mythread")});
    const auto file = [&](std::string_view name, StringId target = 0) {
        FileRow row;
        row.path = log.intern(name);
        row.target = target;
        row.role = Role::dataset;
        row.size = 12345;
        row.origin = Origin::existed;
        return log.add_file(row);
    };
    const FileId image = file("/home/aliceco/projectx/img.tar.gz");
    const FileId again = file("/srv/projectx/aliceco/hiddenmodel.pt");
    file("/proc/self/maps");
    file("/dev/shm/stolen");
    file("/srv/projectx/l", log.intern("../linktarget/hiddenmodel.pt"));
    const auto op = [&](OpKind kind, FileId on, std::string_view text) {
        Op made;
        made.kind = kind;
        made.file = on;
        made.text = text.empty() ? 0 : log.intern(text);
        log.append(task, made);
    };
    op(OpKind::stat, image, "");
    op(OpKind::getxattr, again, "user.privattr");
    op(OpKind::symlink, again, "linktarget/x");
    op(OpKind::gpu_submit, 0, "gemmsecret_128x128");
    op(OpKind::marker, 0, "secretmark");
    op(OpKind::marker, 0, "batch.2");
    file("/proc/self/root/srv/procsecret");
    log.count(Count::clock_set_back, 1, "54.0 us at countersecret/x.out:395");
    log.count(Count::dropped, 2, "epoll_wait");
    log.count(Count::dropped, 2, "Family/Countersecret");
    log.count(Counter{"of_another_version", Severity::note, 3, "seen in countersecret"});
    log.finish();
}

std::string bytes_of(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    std::stringstream all;
    all << in.rdbuf();
    return all.str();
}

// Every string of the log, whoever refers to it.
std::vector<std::string> strings_of(const LogReader& log) {
    std::vector<std::string> all{log.header().host, log.header().kernel, log.header().command};
    for (const auto& [key, value] : log.header().extra) {
        all.push_back(key + "=" + value);
    }
    for (StringId id = 1; id < log.tables().strings.size(); ++id) {
        all.emplace_back(log.tables().strings[id]);
    }
    for (const Counter& counter : log.tables().counters) {
        all.push_back(counter.name + " " + counter.meaning);
    }
    return all;
}

std::vector<std::string> components(std::string_view path) {
    std::vector<std::string> out(1);
    for (const char c : path) {
        if (c == '/') {
            out.emplace_back();
        } else {
            out.back() += c;
        }
    }
    return out;
}

}  // namespace

TEST_CASE("anonymize: no name is left anywhere in the file") {
    const TempDir dir;
    write_secrets(dir.path() / "in.oplog");
    const LogReader before(dir.path() / "in.oplog");
    for (const char* key : {"", "a key of twenty bytes"}) {
        const auto out = dir.path() / "out.oplog";
        const AnonymizeResult result = anonymize(before, out, {.key = key, .keep = {}});
        CHECK(result.ops == 6);
        const LogReader after(out);
        const std::string raw = bytes_of(out);
        for (const std::string_view secret : kSecrets) {
            CAPTURE(secret);
            // The test can fail: the name is in the original.
            const auto said_before = strings_of(before);
            CHECK(std::any_of(said_before.begin(), said_before.end(),
                              [&](const std::string& text) { return text.find(secret) != std::string::npos; }));
            for (const std::string& text : strings_of(after)) {
                CAPTURE(text);
                CHECK(text.find(secret) == std::string::npos);
            }
            CHECK(raw.find(secret) == std::string::npos);
        }
        const auto counted = [&](std::string_view name) {
            const auto& all = after.tables().counters;
            return std::count_if(all.begin(), all.end(), [&](const Counter& each) { return each.name == name; });
        };
        for (const char* name : {"clock_set_back", "dropped_epoll_wait", "dropped_other", "of_another_version"}) {
            CHECK(counted(name) == 1);
        }
        CHECK(after.header().kernel == "6.1.0");
        CHECK(after.header().extra == std::map<std::string, std::string>{
                                          {"capture.profile", R"({"cpus":2,"integer":1.0,"inflate":2.0,"memcpy":3.0})"},
                                          {"capture.rings", "[1,2,3]"}});
        std::filesystem::remove(out);
    }
}

TEST_CASE("anonymize: devices keep the kernel's names, not those that people gave") {
    NameTokens names({});
    for (const char* kept : {"/dev/null", "/dev/urandom", "/dev/pts/3", "/dev/nvidia0", "/dev/nvidia-uvm",
                             "/dev/dri/card0", "/dev/loop12", "/dev/sda", "/dev/sdab3", "/dev/vda1", "/dev/nvme0n1p2",
                             "/dev/dm-3", "/sys/block/sda/queue/rotational", "/proc/self/maps"}) {
        CHECK(names.path(kept) == kept);
    }
    CHECK(names.size() == 0);
    for (const char* named : {"/dev/vgAcme/lvPatients", "/dev/mapper/vgAcme-lvPatients", "/dev/zvol/tank/Patients",
                              "/dev/serial/by-id/usb-Acme", "/sys/fs/cgroup/acme.slice/job-Patients", "/dev/sdpatients",
                              "/dev/nvme0nPatients", "/dev/loopAcme", "/dev/sda/Patients"}) {
        const std::string path = names.path(named);
        CAPTURE(path);
        CHECK(path.find("Patients") == std::string::npos);
        CHECK(path.find("patients") == std::string::npos);
        CHECK(path.find("cme") == std::string::npos);
    }
}

TEST_CASE("anonymize: below /proc and /sys only the kernel's own names stay") {
    NameTokens names({});
    for (const char* kept :
         {"/proc", "/proc/cpuinfo", "/proc/self/maps", "/proc/4711/task/4712/status", "/proc/thread-self/stat",
          "/proc/self/fd/17", "/proc/self/fdinfo/3", "/proc/self/cwd", "/proc/self/ns/mnt", "/proc/net/tcp",
          "/proc/self/map_files/7f00-7f01", "/proc/sys/vm/drop_caches", "/proc/sys/fs/binfmt_misc", "/dev/fd/3",
          "/proc/pressure/io", "/sys/devices/system/cpu/online", "/sys/kernel/mm/transparent_hugepage/enabled"}) {
        CHECK(names.path(kept) == kept);
    }
    CHECK(names.size() == 0);
    for (const char* named : {"/proc/self/cwd/secret",
                              "/proc/self/root/srv/secret",
                              "/proc/17/cwd/secret",
                              "/proc/self/exe/secret",
                              "/proc/self/fd/3/secret",
                              "/proc/self/map_files/7f00-7f01/secret",
                              "/proc/self/task/18/cwd/secret",
                              "/proc/thread-self/root/secret",
                              "/dev/fd/3/secret",
                              "/proc/secret",
                              "/proc/self/secret",
                              "/proc/self/fd/secret",
                              "/proc/sys/fs/binfmt_misc/secret",
                              "/proc/sys/net/ipv4/conf/secret/mtu",
                              "/proc/net/vlan/secret",
                              "/proc/spl/kstat/zfs/secret/io",
                              "/sys/fs/cgroup/secret",
                              "/sys/class/net/secret",
                              "/sys/devices/virtual/net/secret/mtu",
                              "/sys/kernel/config/secret",
                              "/proc/sys/kernel/../../secret",
                              "/dev/pts/secret",
                              "/dev/dri/secret",
                              "/proc/self/cwd/../secret",
                              "/proc/selfsecret/x",
                              "proc/self/secret"}) {
        const std::string path = names.path(named);
        CAPTURE(path);
        CHECK(path.find("secret") == std::string::npos);
    }
    CHECK(names.path("/proc/self/root/srv/secret/a.jpg").starts_with("/proc/self/root/srv/n"));
}

TEST_CASE("anonymize: attributes keep their namespace, and the kernel's their names") {
    const TempDir dir;
    const auto path = dir.path() / "in.oplog";
    {
        Header header;
        header.source = "test";
        LogWriter log(path, header);
        const TaskId task = log.add_task({log.add_process({10, 0, log.intern("job"), 0}), 10, 0});
        for (const char* name : {"user.project", "trusted.project", "security.project", "system.project",
                                 "security.capability", "system.posix_acl_access"}) {
            Op op;
            op.kind = OpKind::getxattr;
            op.text = log.intern(name);
            log.append(task, op);
        }
        log.finish();
    }
    anonymize(LogReader(path), dir.path() / "out.oplog", {});
    const LogReader after(dir.path() / "out.oplog");
    std::string names;
    after.for_each(1, [&](const Op& op, uint64_t) { names += std::string(after.tables().strings[op.text]) + " "; });
    CHECK(names.find("project") == std::string::npos);
    for (const char* part :
         {"user.n", "trusted.n", "security.n", "system.n", "security.capability ", "system.posix_acl_access "}) {
        CHECK(names.find(part) != std::string::npos);
    }
}

TEST_CASE("anonymize: depth, endings, equality, sizes and ops stay") {
    const TempDir dir;
    write_sample((dir.path() / "in.oplog").string());
    const LogReader before(dir.path() / "in.oplog");
    anonymize(before, dir.path() / "out.oplog", {});
    const LogReader after(dir.path() / "out.oplog");
    const Tables &a = before.tables(), &b = after.tables();
    REQUIRE(a.files.size() == b.files.size());
    std::map<std::string, std::string> forth, back;
    for (FileId id = 1; id < a.files.size(); ++id) {
        const auto old = components(a.path(id)), made = components(b.path(id));
        REQUIRE(old.size() == made.size());
        for (size_t i = 0; i < old.size(); ++i) {
            CHECK(old[i].empty() == made[i].empty());
            CHECK(forth.emplace(old[i], made[i]).first->second == made[i]);
            CHECK(back.emplace(made[i], old[i]).first->second == old[i]);
        }
        FileRow row = b.files[id];
        row.path = a.files[id].path;
        row.target = a.files[id].target;
        CHECK(row == a.files[id]);
    }
    CHECK(a.handles == b.handles);
    REQUIRE(before.op_count() == after.op_count());
    for (TaskId task = 1; task < a.tasks.size(); ++task) {
        std::vector<std::string> x, y;
        const auto show = [](std::vector<std::string>& into) {
            return [&into](const Op& op, uint64_t) {
                std::ostringstream out;
                out << static_cast<int>(op.kind) << ' ' << op.begin << ' ' << op.duration << ' ' << op.result << ' '
                    << op.file << ' ' << op.handle << ' ' << op.offset << ' ' << op.size << ' ' << op.flags << ' '
                    << op.arg << ' ' << op.map << ' ' << op.peer << ' ' << (op.text != 0);
                for (const int64_t each : op.list) {
                    out << ' ' << each;
                }
                for (const Edge& edge : op.edges) {
                    out << " <" << edge.task << ':' << edge.op;
                }
                into.push_back(out.str());
            };
        };
        before.for_each(task, show(x));
        after.for_each(task, show(y));
        CHECK(x == y);
    }
}

TEST_CASE("anonymize: whether a file is a program's does not depend on what is replaced") {
    NameTokens names({});
    const std::vector<std::string> paths = {"/usr/lib/locale/locale-archive",
                                            "/usr/lib/locale/C.utf8/LC_CTYPE",
                                            "/usr/lib/x86_64-linux-gnu/libselinux.so.1",
                                            "/usr/lib/x86_64-linux-gnu/gconv/gconv-modules.cache",
                                            "/usr/share/zoneinfo/Europe/Berlin",
                                            "/usr/share/ours/index",
                                            "/usr/libexec/ours/tool",
                                            "/usr/local/include/ours/x",
                                            "/usr/local/cuda-13.0/bin/nvcc",
                                            "/var/lib/dpkg/status",
                                            "/var/lib/ours/table.db",
                                            "/opt/ml/input/x",
                                            "/opt/ours/data.bin",
                                            "/home/me/venv/lib/python3.11/site-packages/ours/w.bin",
                                            "/home/me/env/lib/python3.11/x",
                                            "/home/me/ours-1.0.dist-info/RECORD",
                                            "/home/me/libours.so.1.2",
                                            "/home/me/data.bin",
                                            "/etc/ours.conf",
                                            "/run/user/0/x",
                                            "/dev/shm/ours"};
    for (const std::string& path : paths) {
        const std::string other = names.path(path);
        CAPTURE(path);
        CAPTURE(other);
        CHECK(other.find("ours") == std::string::npos);
        CHECK(other.find("/me/") == std::string::npos);
        CHECK(is_installed(other) == is_installed(path));
        CHECK(is_system_place(other) == is_system_place(path));
        CHECK(is_program_place(other) == is_program_place(path));
        CHECK(holds_data_below_programs(other) == holds_data_below_programs(path));
        for (const uint64_t size : {uint64_t{1}, uint64_t{1} << 30}) {
            CHECK(is_part_of_program(other, size) == is_part_of_program(path, size));
        }
    }
    CHECK(names.path("/usr/lib/locale/libx.so.6") == names.path("/usr/lib/locale/libx.so") + ".6");
}

TEST_CASE("anonymize: tokens of names") {
    NameTokens numbers({});
    CHECK(numbers.path("/data/cats/a.jpg") == "/data/n1/n2.jpg");
    CHECK(numbers.path("/data/cats/a.json") == "/data/n1/n2.json");
    CHECK(numbers.path("cats/../b.tar.gz") == "n1/../n3.tar.gz");
    CHECK(numbers.path("/usr/lib/python3/dist-packages/ours/x.py") == "/usr/lib/python3/dist-packages/n4/n5.py");
    CHECK(numbers.path("/proc/self/status") == "/proc/self/status");
    CHECK(numbers.path("/x/.ours/") == "/n5/.n4/");
    CHECK(numbers.path("/v1.2.3-custom_build") == "/n6");
    CHECK(numbers.path("/") == "/");
    CHECK(numbers.words("cats  /data/cats") == "n1  /data/n1");

    NameTokens kept({.key = "", .keep = {"/data/public"}});
    CHECK(kept.path("/data/public/x y") == "/data/public/x y");
    CHECK(kept.path("/data/publicity") == "/data/n1");

    NameTokens one({.key = "0123456789abcdef", .keep = {}}), same({.key = "0123456789abcdef", .keep = {}}),
        other({.key = "0123456789abcdeg", .keep = {}});
    same.path("/something/else/first");
    CHECK(one.path("/data/cats/a.jpg") == same.path("/data/cats/a.jpg"));
    CHECK(one.path("/data/cats/a.jpg") != other.path("/data/cats/a.jpg"));
    CHECK(one.name("cats").size() == 17);
}
