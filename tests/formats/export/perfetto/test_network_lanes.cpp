// SPDX-License-Identifier: MIT
// Network waits on a timeline: whom each task waited for, and that it adds up to what `info` says.
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "analyze/network.h"
#include "formats/export/exporter.h"
#include "formats/oplog/ranks.h"
#include "tests/support.h"

using namespace reprise;
using Json = nlohmann::json;

namespace {

Json export_json(const std::filesystem::path& folder, const std::filesystem::path& log_path) {
    const LogReader log(log_path);
    find_exporter("perfetto").write(log, folder / "out.json", {});
    return Json::parse(test::read_file(folder / "out.json"));
}

int64_t ns(const Json& us) { return std::llround(us.get<double>() * 1000); }

Op call(OpKind kind, int64_t begin, int64_t duration) {
    Op op;
    op.kind = kind;
    op.begin = begin;
    op.duration = duration;
    return op;
}

}  // namespace

TEST_CASE("network waits have a lane for each task, which names the peer and adds up to what `info` says") {
    const test::TempDir dir;
    {
        Header header;
        LogWriter log(dir / "a.oplog", header);
        std::vector<TaskId> tasks;
        std::vector<HandleId> handles;
        for (int i = 0; i < 2; ++i) {
            const ProcessId process = log.add_process({.pid = 100 + i});
            tasks.push_back(log.add_task({.process = process, .tid = 100 + i}));
        }
        for (int i = 0; i < 3; ++i) {
            handles.push_back(log.add_handle({.kind = HandleKind::socket}));
        }
        write_ranks(log.header(), log.tables(), std::vector<uint32_t>{kNoRank, 0, 1});
        const auto endpoint = [](uint8_t host, uint16_t port) {
            return Endpoint{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, host}, port};
        };
        SocketEnd to_one, to_zero, to_store;
        to_one.local = to_zero.remote = endpoint(1, 40'000);
        to_one.remote = to_zero.local = endpoint(2, 29'500);
        to_store.local = endpoint(2, 40'001);
        to_store.remote = endpoint(9, 9'000);
        log.keep(encode_sockets({{handles[0], to_one}, {handles[1], to_zero}, {handles[2], to_store}}));
        const auto add = [&](size_t task, OpKind kind, int64_t begin, int64_t duration, HandleId handle, int64_t result,
                             int64_t arg = 0) {
            Op op = call(kind, begin, duration);
            op.handle = handle;
            op.fd = handle == 0 ? -1 : 4;
            op.result = op.size = result;
            op.arg = arg;
            log.append(tasks[task], op);
        };
        add(0, OpKind::send, 1'000, 2'000, handles[0], 5'000);
        add(0, OpKind::receive, 4'000, 6'000, handles[0], 20);
        add(1, OpKind::wait, 500, 3'000, 0, 1, kWaitEpoll);
        add(1, OpKind::receive, 3'600, 100, handles[1], 5'000);
        add(1, OpKind::wait, 4'000, 1'000, 0, -EINTR, kWaitEpoll);  // waited for nothing that came
        add(1, OpKind::send, 9'000, 500, handles[1], 20);
        add(1, OpKind::receive, 10'000, 7'000, handles[2], 65'536);
        add(1, OpKind::wait, 20'000, 900, 0, 1, kWaitFutex);
        log.finish();
    }
    const Json trace = export_json(dir.path(), dir / "a.oplog");
    std::map<int64_t, std::string> lanes;
    std::map<std::string, std::vector<std::string>> drawn;
    std::map<std::string, int64_t> waits, sends, received;
    for (const Json& event : trace["traceEvents"]) {
        if (event["ph"] == "M" && event["name"] == "thread_name") {
            lanes[event["tid"].get<int64_t>()] = event["args"]["name"];
        }
    }
    for (const Json& event : trace["traceEvents"]) {
        if (event.value("cat", "") != "network") {
            continue;
        }
        const Json& args = event["args"];
        const std::string name = event["name"], kind = args["kind"];
        drawn[lanes[event["tid"].get<int64_t>()]].push_back(name + ", " + std::to_string(args["bytes"].get<int64_t>()) +
                                                            " B in " + args["in"].get<std::string>());
        (args["in"] == "send" ? sends : waits)[kind] += ns(event["dur"]);
        received[kind] += args["in"] == "receive" ? args["bytes"].get<int64_t>() : 0;
    }
    using Lines = std::vector<std::string>;
    REQUIRE(drawn.size() == 2);
    CHECK(drawn["network of task 100"] == Lines{"send to rank 1, 5000 B in send", "wait for rank 1, 20 B in receive"});
    CHECK(drawn["network of task 101"] == Lines{"wait for rank 0, 5000 B in a poll before the receive",
                                                "wait for rank 0, 5000 B in receive", "send to rank 0, 20 B in send",
                                                "wait for storage 10.0.0.9:9000, 65536 B in receive"});
    const NetworkUse use = network_use(LogReader(dir / "a.oplog"));
    for (const PeerKind kind : {PeerKind::rank, PeerKind::storage}) {
        const std::string name(peer_kind_name(kind));
        CHECK(waits[name] == use.total(kind).wait_ns);
        CHECK(sends[name] == use.total(kind).send_ns);
        CHECK(received[name] == static_cast<int64_t>(use.total(kind).bytes_received));
    }
    CHECK(waits["rank"] == 9'100);
}

TEST_CASE("a log that knows no connections has no network lanes") {
    const test::TempDir dir;
    {
        LogWriter log(dir / "a.oplog", Header());
        log.add_task({.process = log.add_process({.pid = 100}), .tid = 100});
        Op op = call(OpKind::receive, 1'000, 50);
        op.handle = log.add_handle({.kind = HandleKind::socket});
        op.fd = 4;
        op.result = 10;
        log.append(1, op);
        log.finish();
    }
    const Json trace = export_json(dir.path(), dir / "a.oplog");
    for (const Json& event : trace["traceEvents"]) {
        CHECK(event.value("cat", "") != "network");
    }
}
