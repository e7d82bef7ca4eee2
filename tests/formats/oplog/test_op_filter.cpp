// SPDX-License-Identifier: MIT
// Which ops a filter keeps, and that it survives being written down.
#include "formats/oplog/op_filter.h"

#include "formats/support/error.h"
#include "tests/samples.h"
#include "tests/support.h"

using namespace reprise;

namespace {

Tables three_files() {
    Tables tables;
    const auto add = [&](std::string_view path, Role role) {
        FileRow row;
        row.path = tables.strings.intern(path);
        row.role = role;
        tables.files.push_back(row);
    };
    add("/data/a.h5", Role::dataset);     // 1
    add("/usr/lib/x.so", Role::program);  // 2
    add("/logs/a.tmp", Role::log);        // 3
    add("", Role::ipc);                   // 4: anonymous
    HandleRow handle;
    handle.file = 2;
    tables.handles.push_back(handle);  // 1
    return tables;
}

}  // namespace

TEST_CASE("the default filter leaves out program and system files, and what is on them") {
    const Tables tables = three_files();
    const OpFilter filter;
    CHECK(filter.keeps_file(tables, 0));
    CHECK(filter.keeps_file(tables, 1));
    CHECK_FALSE(filter.keeps_file(tables, 2));
    CHECK(filter.keeps_file(tables, 4));
    CHECK(filter.keeps_file(tables, 999));  // not in the table: a hostile log
    Op op;
    op.kind = OpKind::read;
    op.handle = 1;
    CHECK_FALSE(filter.keeps(tables, op));
    op.kind = OpKind::sendfile;
    op.handle = 0;
    op.handle2 = 1;
    CHECK_FALSE(filter.keeps(tables, op));
    // What the job writes is its own, wherever that came from.
    Tables copied = three_files();
    HandleRow data;
    data.file = 1;
    copied.handles.push_back(data);  // 2
    op.handle = 1;
    op.handle2 = 2;
    CHECK(filter.keeps(copied, op));
    op.handle2 = 0;  // a pipe
    CHECK_FALSE(filter.keeps(copied, op));
    op = {};
    op.kind = OpKind::rename;
    op.file = 1;
    op.file2 = 2;
    CHECK_FALSE(filter.keeps(tables, op));
    op.kind = OpKind::exec;  // descriptors end here, whatever the program is
    CHECK(filter.keeps(tables, op));
    op = {};
    op.kind = OpKind::gpu_submit;
    CHECK(filter.keeps(tables, op));
}

TEST_CASE("a memfd, which has no file, is kept where ipc is and no path is asked for") {
    Tables tables = three_files();
    HandleRow memory;
    memory.kind = HandleKind::memfd;
    tables.handles.push_back(memory);  // 2
    HandleRow pipe;
    pipe.kind = HandleKind::pipe;
    tables.handles.push_back(pipe);  // 3
    const auto kept = [&](const std::vector<std::string>& only, const std::vector<std::string>& leave) {
        const OpFilter filter = OpFilter::from_words(only, leave);
        CHECK(filter.keeps_handle(tables, 3));
        return filter.keeps_handle(tables, 2);
    };
    CHECK(kept({}, {}));
    CHECK(kept({"all"}, {}));
    CHECK(kept({"ipc"}, {}));
    CHECK(kept({}, {"/logs"}));
    CHECK_FALSE(kept({"/data"}, {}));
    CHECK_FALSE(kept({"dataset"}, {}));
    CHECK_FALSE(kept({"dataset", "/data"}, {}));
    CHECK_FALSE(kept({}, {"ipc"}));
    CHECK(OpFilter().keeps_handle(tables, 999));
}

TEST_CASE("words choose roles and paths") {
    const Tables tables = three_files();
    const OpFilter dataset = OpFilter::from_words({"dataset"}, {});
    CHECK(dataset.keeps_file(tables, 1));
    CHECK_FALSE(dataset.keeps_file(tables, 3));
    const OpFilter path = OpFilter::from_words({"/usr/*"}, {});
    CHECK_FALSE(path.keeps_file(tables, 1));
    CHECK(path.keeps_file(tables, 2));        // naming a path is a choice
    CHECK_FALSE(path.keeps_file(tables, 4));  // no path matches no glob
    const OpFilter no_temporary = OpFilter::from_words({"all"}, {"*.tmp", "dataset"});
    CHECK_FALSE(no_temporary.keeps_file(tables, 1));
    CHECK(no_temporary.keeps_file(tables, 2));
    CHECK_FALSE(no_temporary.keeps_file(tables, 3));
    CHECK(OpFilter::from_words({}, {}) == OpFilter());
}

TEST_CASE("roles and paths together select what has either, and --not takes from that") {
    const Tables tables = three_files();
    const OpFilter either = OpFilter::from_words({"dataset,/logs/"}, {});
    CHECK(either.keeps_file(tables, 1));
    CHECK(either.keeps_file(tables, 3));
    CHECK_FALSE(either.keeps_file(tables, 2));
    CHECK(either == OpFilter::from_words({"/logs/", "dataset"}, {}));
    const OpFilter less = OpFilter::from_words({"dataset,/logs/,/usr/"}, {"log", "*.so"});
    CHECK(less.keeps_file(tables, 1));
    CHECK_FALSE(less.keeps_file(tables, 2));
    CHECK_FALSE(less.keeps_file(tables, 3));
    CHECK(OpFilter::from_words({"all,/usr/"}, {}) == OpFilter::all());
    for (const OpFilter& filter : {either, less}) {
        CHECK(OpFilter::parse(filter.to_string()) == filter);
    }
}

TEST_CASE("words are apart by commas, and a path includes what lies below it") {
    CHECK(OpFilter::from_words({"log,cache", "dataset"}, {}) == OpFilter::from_words({"log", "cache", "dataset"}, {}));
    CHECK(split_words({"a,b\\,c", "d"}) == std::vector<std::string>{"a", "b,c", "d"});
    CHECK(split_words({"a,,b,"}) == std::vector<std::string>{"a", "", "b", ""});
    CHECK(split_words({"\\d\\"}) == std::vector<std::string>{"\\d\\"});
    using Globs = std::vector<std::string>;
    CHECK(OpFilter::from_words({"/data"}, {"/x//"}).only_paths == Globs{"/data", "/data/*"});
    CHECK(OpFilter::from_words({"/data"}, {"/x//"}).not_paths == Globs{"/x", "/x/*"});
    CHECK(OpFilter::from_words({"/data/*"}, {"/"}).only_paths == Globs{"/data/*"});
    CHECK(OpFilter::from_words({"/data/*"}, {"/"}).not_paths == Globs{"/*"});
    const Tables tables = three_files();
    CHECK(OpFilter::from_words({"/data/"}, {}).keeps_file(tables, 1));
    CHECK_FALSE(OpFilter::from_words({"/dat"}, {}).keeps_file(tables, 1));
}

TEST_CASE("a word that is neither a role nor a path is refused with the nearest role") {
    const auto refusal = [](const std::vector<std::string>& only, const std::vector<std::string>& leave) {
        try {
            OpFilter::from_words(only, leave);
        } catch (const Error& error) {
            CHECK(error.code() == ExitCode::usage);
            return std::string(error.what());
        }
        return std::string();
    };
    CHECK(refusal({"datset"}, {}).find("--only 'datset' is neither a role nor a path; did you mean dataset?\n") == 0);
    CHECK(refusal({}, {"dataset,xyzzy"}).find("--not 'xyzzy' is neither a role nor a path\n  roles: all, ") == 0);
    for (const std::vector<std::string>& empty : {std::vector<std::string>{""}, {"a/,"}, {","}}) {
        CHECK(refusal(empty, {}).find("--only is empty\n") == 0);
        CHECK(refusal({}, empty).find("--not is empty\n") == 0);
    }
}

TEST_CASE("whether a word selects any file") {
    const Tables tables = three_files();
    for (const char* word : {"all", "dataset", "ipc", "/data", "/data/", "*.tmp", "/usr/lib/x.so"}) {
        CAPTURE(word);
        CHECK(selects_any(word, tables));
    }
    for (const char* word : {"checkpoint", "/dat", "/data/a", "*.temp", "/data/a.h5/x"}) {
        CAPTURE(word);
        CHECK_FALSE(selects_any(word, tables));
    }
    CHECK_FALSE(selects_any("all", Tables()));
}

TEST_CASE("a filter survives to_string and parse") {
    OpFilter odd;
    odd.leave_out = {Role::log, Role::unknown};
    odd.only_paths = {"/a b;c=d,%\n\xff*[x]?", "/data/*"};
    odd.not_paths = {"*.tmp"};
    for (const OpFilter& filter : {OpFilter(), OpFilter::all(), odd}) {
        const std::string text = filter.to_string();
        CHECK(OpFilter::parse(text) == filter);
        for (const char c : text) {
            CHECK((c >= 0x20 && c < 0x7f));
        }
    }
    CHECK(OpFilter().to_string() == "leave=program,system");
    for (const char* bad :
         {"", "x", "leave=nothing", "only=/a", "leave=;only=%4", "leave=;only=%zz", "leave=;color=red"}) {
        INFO(bad);
        CHECK_THROWS_AS(OpFilter::parse(bad), Error);
    }
}

TEST_CASE("the selector decides ops on mappings by the file that was mapped") {
    const test::TempDir dir;
    test::write_sample(dir / "a.oplog");
    const LogReader log(dir / "a.oplog");
    const OpSelector selector(log, OpFilter());
    uint64_t dropped = 0, dropped_by_op = 0;
    for (TaskId task = 1; task <= 3; ++task) {
        log.for_each(task, [&](const Op& op, uint64_t) {
            dropped += !selector.keeps(op);
            dropped_by_op += !OpFilter().keeps(log.tables(), op);
        });
    }
    CHECK(dropped_by_op == 3);  // open, mmap, close
    CHECK(dropped == 5);        // touch and munmap too
    CHECK(OpSelector(log, OpFilter::all()).keeps_everything());
}
