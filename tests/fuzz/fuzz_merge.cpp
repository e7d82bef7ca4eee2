// SPDX-License-Identifier: MIT
// Two ranks' logs, merged: any bytes as one of them or as both, and logs with ranks, clocks, connections and messages
// as the bytes say. An Error that leaves nothing behind, or a log that reads back and has all ops. The first byte
// chooses.
#include "transform/merge.h"

#include <string>

#include "formats/oplog/header_facts.h"
#include "formats/oplog/sockets.h"
#include "tests/fuzz/fuzz_support.h"

namespace {

using namespace reprise;

// The input as a source of small numbers.
class Numbers {
public:
    Numbers(const uint8_t* data, size_t size) : at_(data), end_(data + size) {}
    bool empty() const { return at_ == end_; }
    uint8_t next() { return empty() ? 0 : *at_++; }

private:
    const uint8_t *at_, *end_;
};

/// Few addresses, so that the ranks' connections meet.
Endpoint endpoint(uint8_t from) {
    return {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, static_cast<uint8_t>((from & 1) != 0 ? 127 : 10), 0, 0, 1},
            static_cast<uint16_t>(1 + (from >> 1) % 3)};
}

SocketEnd socket_end(Numbers& in) {
    const uint8_t how = in.next();
    SocketEnd end;
    end.from_start = (how & 1) != 0;
    end.inode = 1 + (how >> 1) % 4;
    end.net = 1 + (how >> 3) % 2;
    if ((how & 64) != 0) {
        end.family = SocketEnd::Family::unix_socket;
        end.peer_inode = 1 + in.next() % 4;
        return end;
    }
    end.local = endpoint(in.next());
    end.remote = endpoint(in.next());
    return end;
}

void add_ops(LogWriter& writer, TaskId task, uint8_t sockets, Numbers& in) {
    int64_t now = 0;
    int64_t sent = 0, received = 0;
    for (uint8_t n = in.next() % 32; n > 0; --n) {
        const uint8_t what = in.next();
        Op op;
        op.begin = now += in.next() * int64_t{100};
        op.duration = in.next() * int64_t{100};
        op.result = op.size = in.next();
        now += (what & 128) != 0 ? 0 : op.duration;
        switch (what % 4) {
            case 0: op.kind = OpKind::compute; break;
            case 1:
                op.kind = OpKind::wait;
                op.arg = (what & 16) != 0 ? kWaitEpoll : kWaitPoll;
                break;
            default:
                op.kind = what % 4 == 2 ? OpKind::send : OpKind::receive;
                op.handle = static_cast<HandleId>(1 + (what >> 2) % sockets);
                op.fd = 3;
                int64_t& position = op.kind == OpKind::send ? sent : received;
                op.offset = (what & 64) != 0 ? in.next() : position;
                position += op.result;
        }
        writer.append(task, op);
    }
}

uint64_t write_rank(const std::filesystem::path& path, int64_t rank, Numbers& in) {
    const uint8_t how = in.next();
    Header header;
    header.tool = "reprise 1";
    header.source = "capture";
    header.clock = "monotonic";
    header.host = (how & 1) != 0 ? "one" : "host" + std::to_string(rank);
    header.origin_unix_ns = 1'000'000'000 + in.next() * int64_t{1'000};
    write_fact(header, fact::rank, (how & 2) != 0 ? int64_t{in.next() % 4} : rank);
    write_fact(header, fact::ranks_world, int64_t{(how & 4) != 0 ? in.next() % 4 : 2});
    write_fact(header, fact::ranks_source, std::string("Open MPI"));
    write_fact(header, fact::ranks_job, std::string((how & 8) != 0 ? "another job" : "job"));
    if ((how & 16) == 0) {
        write_fact(header, fact::boot, header.host);
        write_fact(header, fact::origin_monotonic, int64_t{in.next()} * 1'000);
    }
    LogWriter writer(path, header, {.sync = false});
    const ProcessId process = writer.add_process({.pid = 100});
    const uint8_t count = 1 + in.next() % 3;
    Sockets sockets;
    for (uint8_t i = 0; i < count; ++i) {
        const HandleId handle = writer.add_handle({.kind = HandleKind::socket});
        if ((how & 32) == 0) {
            sockets[handle] = socket_end(in);
        }
    }
    writer.keep(encode_sockets(sockets));
    for (int32_t tid = 100; tid < 102; ++tid) {
        add_ops(writer, writer.add_task({.process = process, .tid = tid}), count, in);
    }
    writer.finish();
    return LogReader(path).op_count();
}

/// `ops`: that both logs have; none: not known.
int merge(const std::filesystem::path& first, const std::filesystem::path& second, bool allow_missing,
          std::optional<uint64_t> ops) {
    const std::filesystem::path output = fuzz::scratch() / "merged.oplog";
    MergeOptions options;
    options.allow_missing = allow_missing;
    options.writer.sync = false;
    options.writer.memory_bytes = size_t{1} << 20;
    try {
        merge_logs({first, second}, output, options);
    } catch (const Error&) {
        fuzz::require(!std::filesystem::exists(output.native() + ".partial"), "a refusal leaves no .partial behind");
        return 0;
    }
    const LogReader merged(output);
    fuzz::read_all(merged, ops.has_value());
    fuzz::require(!ops || merged.op_count() == *ops, "the merged log has all ops");
    std::filesystem::remove(output);
    return 0;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size == 0) {
        return 0;
    }
    const bool allow_missing = (data[0] & 4) != 0;
    const auto first = fuzz::scratch() / "rank0.oplog", second = fuzz::scratch() / "rank1.oplog";
    Numbers in(data + 1, size - 1);
    if ((data[0] & 1) == 0) {
        const uint64_t ops = write_rank(first, 0, in);
        return merge(first, second, allow_missing, ops + write_rank(second, 1, in));
    }
    const fuzz::MemoryFile bytes(data + 1, size - 1);
    if ((data[0] & 2) != 0) {
        return merge(bytes.path(), bytes.path(), allow_missing, std::nullopt);
    }
    Numbers none(nullptr, 0);
    write_rank(second, 1, none);
    return merge(bytes.path(), second, allow_missing, std::nullopt);
}
