// SPDX-License-Identifier: MIT
#include "formats/raw/dump.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "formats/oplog/sockets.h"
#include "formats/oplog/syscalls.h"
#include "formats/support/error.h"

namespace reprise {
namespace {

__attribute__((format(printf, 2, 3))) void put(std::string& out, const char* format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    out += text;
}

void put_time(std::string& out, uint64_t ns) {
    put(out, "%llu.%09llu", static_cast<unsigned long long>(ns / 1'000'000'000),
        static_cast<unsigned long long>(ns % 1'000'000'000));
}

std::string which_name(unsigned which) {
    if (which < 6) {
        return std::to_string(which);
    }
    if (which == RAW_WHICH_RESULT) {
        return "=";
    }
    if (which == RAW_WHICH_RESULT2) {
        return "=2";
    }
    if (which >= RAW_WHICH_SENT) {
        return "sent" + std::to_string(which - RAW_WHICH_SENT);
    }
    if (which >= RAW_WHICH_RECEIVED) {
        return "received" + std::to_string(which - RAW_WHICH_RECEIVED);
    }
    return "?" + std::to_string(which);
}

void put_fd(std::string& out, const raw_fd& fd) {
    if (fd.file == 0) {
        put(out, "{%d none}", fd.fd);
        return;
    }
    put(out, "{%d file=%llx inode=%u:%u:%llu.%u size=%llu pos=%lld flags=0%o mode=0%o", fd.fd,
        static_cast<unsigned long long>(fd.file), fd.device >> 20, fd.device & 0xfffff,
        static_cast<unsigned long long>(fd.inode), fd.generation, static_cast<unsigned long long>(fd.size),
        static_cast<long long>(fd.position), fd.flags, fd.mode);
    if (fd.info & RAW_FD_CACHED) {
        put(out, " cached=%llu", static_cast<unsigned long long>(fd.peer_or_pages));
    } else if (fd.peer_or_pages) {
        put(out, " peer=%llu", static_cast<unsigned long long>(fd.peer_or_pages));
    }
    static constexpr const char* kInfo[] = {"created", "cloexec", "eventfd", "epoll", "uring",
                                            "memfd",   "cached",  "sparse",  "tmpfs"};
    for (unsigned bit = 0; bit < std::size(kInfo); ++bit) {
        if (fd.info >> bit & 1) {
            put(out, " %s", kInfo[bit]);
        }
    }
    out += "}";
}

void put_part(std::string& out, const raw_part& part) {
    static const char* const names[] = {"?", "fd", "path", "string", "list", "stat", "values", "iocb", "event"};
    out += " ";
    out += part.type < std::size(names) ? names[part.type] : names[0];
    out += which_name(part.which) + "=";
    const void* data = raw_part_data(part);
    switch (part.type) {
        case RAW_PART_FD: put_fd(out, *static_cast<const raw_fd*>(data)); break;
        case RAW_PART_PATH:
        case RAW_PART_STRING: out += "\"" + escape_line(raw_part_text(part)) + "\""; break;
        case RAW_PART_LIST:
        case RAW_PART_VALUES: {
            out += "[";
            const char* between = "";
            for (const raw_s64 number : raw_part_numbers(part)) {
                put(out, "%s%lld", between, static_cast<long long>(number));
                between = " ";
            }
            out += "]";
            break;
        }
        case RAW_PART_STAT: {
            const auto& stat = *static_cast<const raw_stat*>(data);
            put(out, "{inode=%llu:%llu:%llu size=%llu mode=0%o links=%u}",
                static_cast<unsigned long long>(stat.device >> 20),
                static_cast<unsigned long long>(stat.device & 0xfffff), static_cast<unsigned long long>(stat.inode),
                static_cast<unsigned long long>(stat.size), stat.mode, stat.links);
            break;
        }
        case RAW_PART_IOCB: {
            const auto& block = *static_cast<const raw_iocb*>(data);
            put(out, "{%llx op=%u fd=%d offset=%lld length=%llu buffer=%llx}",
                static_cast<unsigned long long>(block.iocb), block.opcode, block.fd,
                static_cast<long long>(block.offset), static_cast<unsigned long long>(block.length),
                static_cast<unsigned long long>(block.buffer));
            break;
        }
        case RAW_PART_EVENT: {
            const auto& event = *static_cast<const raw_aio_event*>(data);
            put(out, "{%llx result=%lld}", static_cast<unsigned long long>(event.iocb),
                static_cast<long long>(event.result));
            break;
        }
        default: break;
    }
}

template <class T>
const T& as(const raw_head& head) {
    return *reinterpret_cast<const T*>(&head);
}

void put_call(std::string& out, const raw_call& call) {
    out += " " + raw_call_name(call.nr) + "(";
    for (int i = 0; i < 6; ++i) {
        const auto value = static_cast<int64_t>(call.args[i]);
        put(out, value > -4096 && value < 1'000'000'000 ? "%s%lld" : "%s0x%llx", i ? ", " : "",
            static_cast<long long>(value));
    }
    put(out, ") = %lld enter=", static_cast<long long>(call.result));
    put_time(out, call.enter);
    if (call.own_ns) {
        put(out, " own=%u", call.own_ns);
    }
}

void put_switch(std::string& out, const raw_switch& record) {
    static const char* const states[] = {"runnable", "sleeping", "uninterruptible"};
    out += " off=";
    put_time(out, record.off);
    put(out, " %s", record.state < 3 ? states[record.state] : "?");
    if (record.nr != 0xffff) {
        out += " in " + raw_call_name(record.nr);
    }
    if (record.in_iowait) {
        out += " iowait";
    }
    if (record.wake) {
        out += " wake=";
        put_time(out, record.wake);
    }
    if (record.waker_tid) {
        put(out, " by %u/%u in %s", record.waker_pid, record.waker_tid, raw_call_name(record.waker_nr).c_str());
    }
    if (record.head.flags & RAW_FLAG_DEFERRED) {
        out += " deferred";
    }
}

void put_uring(std::string& out, const raw_uring& record) {
    put(out, " ring=%llx request=%llx data=%llx op=%u", static_cast<unsigned long long>(record.ring),
        static_cast<unsigned long long>(record.request), static_cast<unsigned long long>(record.user_data),
        record.opcode);
    if (record.head.type == RAW_URING_SUBMIT) {
        put(out, " fd=%d offset=%lld length=%u address=%llx buffer=%u flags=%x%s", record.fd,
            static_cast<long long>(record.offset), record.length, static_cast<unsigned long long>(record.address),
            record.buffer, record.flags, record.sqpoll ? " sqpoll" : "");
        if (record.behind != 0) {
            put(out, " behind=%u", record.behind);
        }
    } else {
        put(out, " result=%d flags=%x", record.result, record.flags);
    }
    put(out, " file=%llx taken=%u completed=%u", static_cast<unsigned long long>(record.file), record.taken,
        record.completed);
}

void put_socket(std::string& out, const raw_socket& record) {
    Endpoint local, remote;
    std::copy_n(record.local, local.address.size(), local.address.begin());
    std::copy_n(record.remote, remote.address.size(), remote.address.begin());
    local.port = record.local_port;
    remote.port = record.remote_port;
    put(out, " inode=%llu peer=%llx %s -> ", static_cast<unsigned long long>(record.inode),
        static_cast<unsigned long long>(record.peer), to_text(local).c_str());
    put(out, "%s sent=%llu received=%llu retransmits=%u rtt=%u", to_text(remote).c_str(),
        static_cast<unsigned long long>(record.sent), static_cast<unsigned long long>(record.received),
        record.retransmits, record.rtt_us);
}

void put_cufile(std::string& out, const raw_cufile& record) {
    static constexpr const char* kKinds[] = {"?",         "enter", "registered", "deregistered", "moved",  "asked",
                                             "submitted", "done",  "taken",      "forgotten",    "opened", "driver"};
    static_assert(std::size(kKinds) == RAW_CUFILE_DRIVER + 1, "every kind has a name");
    put(out, " %s%s%s", record.kind < std::size(kKinds) ? kKinds[record.kind] : kKinds[0],
        record.how & RAW_CUFILE_WRITES ? " write" : "", record.how & RAW_CUFILE_STREAM ? " stream" : "");
    put(out, " handle=%llx stream=%llx request=%llx offset=%lld size=%llu result=%lld enter=",
        static_cast<unsigned long long>(record.handle), static_cast<unsigned long long>(record.stream),
        static_cast<unsigned long long>(record.request), static_cast<long long>(record.offset),
        static_cast<unsigned long long>(record.size), static_cast<long long>(record.result));
    put_time(out, record.enter);
    if (record.fd.file != 0) {
        out += " fd=";
        put_fd(out, record.fd);
    }
}

void put_body(std::string& out, const raw_head& head) {
    switch (head.type) {
        case RAW_CALL: put_call(out, as<raw_call>(head)); break;
        case RAW_SPAWN: {
            const auto& record = as<raw_spawn>(head);
            put(out, " %u/%u flags=%llx name=%.16s", record.child_pid, record.child_tid,
                static_cast<unsigned long long>(record.flags), record.name);
            break;
        }
        case RAW_EXEC: put(out, " old=%u name=%.16s", as<raw_exec>(head).old_tid, as<raw_exec>(head).name); break;
        case RAW_EXIT: {
            const auto& record = as<raw_exit>(head);
            put(out, " code=%d%s", record.code, record.last ? " last" : "");
            if (record.held != 0) {
                put(out, " held=%llu", static_cast<unsigned long long>(record.held));
            }
            break;
        }
        case RAW_SWITCH: put_switch(out, as<raw_switch>(head)); break;
        case RAW_FAULT: {
            const auto& record = as<raw_fault>(head);
            put(out, " %llx inode=%u:%u:%llu offset=%llu%s%s", static_cast<unsigned long long>(record.address),
                record.device >> 20, record.device & 0xfffff, static_cast<unsigned long long>(record.inode),
                static_cast<unsigned long long>(record.offset), record.write & RAW_FAULT_WRITES ? " write" : "",
                record.major ? " major" : "");
            break;
        }
        case RAW_TOUCH: {
            const auto& record = as<raw_touch>(head);
            put(out, " %llx pages=%u busy=%llu%s%s", static_cast<unsigned long long>(record.address), record.pages,
                static_cast<unsigned long long>(record.busy), record.write & RAW_FAULT_WRITES ? " write" : "",
                record.write & RAW_FAULT_FOLIO ? " folio" : "");
            break;
        }
        case RAW_STOLEN: put(out, " stolen=%llu", static_cast<unsigned long long>(as<raw_stolen>(head).stolen)); break;
        case RAW_FAULTS: {
            const auto& record = as<raw_faults>(head);
            put(out, " faults=%u dear=%u ns=%llu", record.faults, record.dear,
                static_cast<unsigned long long>(record.dear_ns));
            break;
        }
        case RAW_BACKING: {
            const auto& record = as<raw_backing>(head);
            put(out, " inode=%u:%u:%llu below=%u:%u:%llu", record.device >> 20, record.device & 0xfffff,
                static_cast<unsigned long long>(record.inode), record.device_below >> 20, record.device_below & 0xfffff,
                static_cast<unsigned long long>(record.below));
            break;
        }
        case RAW_URING_SUBMIT:
        case RAW_URING_COMPLETE: put_uring(out, as<raw_uring>(head)); break;
        case RAW_PAGE_CACHE: {
            const auto& record = as<raw_page_cache>(head);
            put(out, " %s inode=%u:%u:%llu offset=%llu bytes=%llu", record.evicted ? "evicted" : "added",
                record.device >> 20, record.device & 0xfffff, static_cast<unsigned long long>(record.inode),
                static_cast<unsigned long long>(record.offset), static_cast<unsigned long long>(record.bytes));
            put(out, " folios=%u first=%llu last=%llu", record.folios, static_cast<unsigned long long>(record.first),
                static_cast<unsigned long long>(record.last));
            if (record.after != 0) {
                put(out, " after=%llu", static_cast<unsigned long long>(record.after));
            }
            if (record.in_nr != 0xffff) {
                out += " in " + raw_call_name(record.in_nr);
            }
            break;
        }
        case RAW_BLOCK: {
            const auto& record = as<raw_block>(head);
            put(out, " %s %u:%u sector=%llu bytes=%u issued=", record.write ? "write" : "read", record.device >> 20,
                record.device & 0xfffff, static_cast<unsigned long long>(record.sector), record.bytes);
            put_time(out, record.issued);
            break;
        }
        case RAW_MEMORY: {
            const auto& record = as<raw_memory>(head);
            put(out, " anonymous=%llu shared=%llu", static_cast<unsigned long long>(record.anonymous),
                static_cast<unsigned long long>(record.shared));
            break;
        }
        case RAW_USES:
            out += " from=";
            put_time(out, as<raw_uses>(head).from);
            break;
        case RAW_RANK: {
            const auto& record = as<raw_rank>(head);
            put(out, " rank=%u world=%u", record.rank, record.world);
            break;
        }
        case RAW_SOCKET: put_socket(out, as<raw_socket>(head)); break;
        case RAW_CUFILE: put_cufile(out, as<raw_cufile>(head)); break;
        case RAW_HOLES: {
            const auto& record = as<raw_holes>(head);
            put(out, " inode=%u:%u:%llu size=%llu", record.device >> 20, record.device & 0xfffff,
                static_cast<unsigned long long>(record.inode), static_cast<unsigned long long>(record.size));
            break;
        }
        case RAW_PRESSURE: {
            const auto& record = as<raw_pressure>(head);
            put(out, " cpu=%llu memory=%llu io=%llu", static_cast<unsigned long long>(record.cpu_some),
                static_cast<unsigned long long>(record.memory_some), static_cast<unsigned long long>(record.io_some));
            break;
        }
        case RAW_SEED_TASK: {
            const auto& record = as<raw_seed_task>(head);
            put(out, " parent=%u name=%.16s", record.parent_pid, record.name);
            break;
        }
        case RAW_SEED_MAP: {
            const auto& record = as<raw_seed_map>(head);
            put(out, " %llx size=%llu offset=%llu prot=%u flags=%u", static_cast<unsigned long long>(record.address),
                static_cast<unsigned long long>(record.size), static_cast<unsigned long long>(record.offset),
                record.prot, record.flags);
            break;
        }
        case RAW_LOSS: {
            const auto& record = as<raw_loss>(head);
            put(out, " lost=%llu missed=%llu untracked=%llu lag=%llu",
                static_cast<unsigned long long>(record.failed_reserves),
                static_cast<unsigned long long>(record.recursion_misses),
                static_cast<unsigned long long>(record.untracked), static_cast<unsigned long long>(record.most_lag_ns));
            break;
        }
        default: break;
    }
}

}  // namespace

const char* raw_type_name(uint8_t type) {
    static const char* const names[] = {"?",        "META",  "CALL",      "SPAWN",    "EXEC",       "EXIT",
                                        "SWITCH",   "FAULT", "SUBMIT",    "COMPLETE", "PAGE_CACHE", "BLOCK",
                                        "PRESSURE", "CLOCK", "SEED_TASK", "SEED_FD",  "SEED_MAP",   "LOSS",
                                        "GPU",      "TOUCH", "STOLEN",    "FAULTS",   "BACKING",    "MEMORY",
                                        "USES",     "RANK",  "SOCKET",    "CUFILE",   "HOLES"};
    static_assert(std::size(names) == RAW_HOLES + 1, "every record type has a name");
    return type < std::size(names) ? names[type] : names[0];
}

std::string raw_call_name(unsigned nr) {
    if (const Syscall* call = find_syscall(nr)) {
        return std::string(call->name);
    }
    return "call_" + std::to_string(nr);
}

std::string raw_line(const raw_head& head) {
    std::string out = raw_type_name(head.type);
    out += " ";
    put_time(out, head.time);
    put(out, " %u/%u #%u", head.pid, head.tid, head.sequence);
    if (head.type == RAW_META) {
        const std::string text(reinterpret_cast<const char*>(&head + 1), head.size - sizeof head);
        return out + " " + escape_line(text.c_str());
    }
    put_body(out, head);
    for (const raw_part& part : RawParts(head)) {
        put_part(out, part);
    }
    if (head.flags & RAW_FLAG_UNFINISHED) {
        out += " UNFINISHED";
    }
    if (head.flags & RAW_FLAG_TRUNCATED) {
        out += " TRUNCATED";
    }
    if (head.flags & RAW_FLAG_UNREADABLE) {
        out += " UNREADABLE";
    }
    return out;
}

}  // namespace reprise
