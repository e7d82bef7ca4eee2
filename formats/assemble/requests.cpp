// SPDX-License-Identifier: MIT
// Asynchronous requests: what they do to the tables.
#include <algorithm>

#include "formats/assemble/assembler_impl.h"
#include "formats/oplog/async_request.h"

namespace reprise {
namespace {

constexpr int64_t kAppend = 02000;

}  // namespace

// What it writes counts when it is asked for, what it reads when it is done.
void Assembler::Impl::request(Task& task, const RawCall& raw, Op& op) {
    const AsyncRequest asked = async_request(raw.kind, raw.arg);
    const bool reads = asked.reads(), writes = asked.writes();
    if (!raw.path.empty()) {
        op.file = files.id(named(absolute(*task.process, raw, LastPart::followed), raw));
        op.fd = -1;
        return add(task, op);
    }
    if (raw.fd < 0 && raw.fd2 >= 0) {
        op.fd = raw.fd2;
    }
    const bool known = raw.fd >= 0 || (raw.seen && raw.seen->key);
    if (!known) {
        return add(task, op);
    }
    const auto evidence = reads || writes ? Evidence::file : Evidence::none;
    const auto instance = for_call(*task.process, raw, raw.fd, raw.fd_path, evidence, raw.seen);
    if (!instance) {
        return;
    }
    op.handle = instance->id;
    if (instance->file && reads) {
        instance->file->read = instance->file->followed = true;
        if (raw.request != 0 && op.offset >= 0) {
            reads_in_flight[raw.request] = {instance->file, op.offset, raw.size};
        }
    }
    if (instance->file && writes) {
        bool at_unknown_end = false;
        const bool appends = (instance->flags & kAppend) != 0;
        const int64_t at = appends ? place(*instance, std::nullopt, appends, at_unknown_end) : op.offset;
        files.did_write(*instance->file, at, raw.size, at_unknown_end);
    }
    add(task, op);
}

// A file that was open before the recording may be known by its reads only: it is as long as they reach.
void Assembler::Impl::completed(Task& task, const RawCall& raw, Op& op) {
    if (const auto found = reads_in_flight.find(raw.request); found != reads_in_flight.end()) {
        const ReadInFlight read = found->second;
        reads_in_flight.erase(found);
        files.did_read(*read.file, read.offset, read.size, raw.result, true);
    }
    add(task, op);
}

}  // namespace reprise
