// SPDX-License-Identifier: MIT
// Calls on names, descriptors and memory that the job sent through its ring go through the ring here, too. Paths are
// resolved beneath the root before: the ring gets the descriptor of the directory and the last component, which none of
// these calls follows, and what openat2 resolves by itself it resolves beneath the root.
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "replay/engine/posix.h"

namespace reprise {
namespace {

// Nobody would tell the result of a request with IOSQE_CQE_SKIP_SUCCESS.
constexpr int64_t kCallOrder = IOSQE_IO_DRAIN | IOSQE_IO_LINK | IOSQE_IO_HARDLINK | IOSQE_ASYNC;

uint8_t code_of(OpKind kind) {
    switch (kind) {  // those of RingCallScan
        case OpKind::open: return IORING_OP_OPENAT2;
        case OpKind::close: return IORING_OP_CLOSE;
        case OpKind::statx: return IORING_OP_STATX;
        case OpKind::mkdir: return IORING_OP_MKDIRAT;
        case OpKind::rename: return IORING_OP_RENAMEAT;
        case OpKind::link: return IORING_OP_LINKAT;
        case OpKind::symlink: return IORING_OP_SYMLINKAT;
        case OpKind::madvise: return IORING_OP_MADVISE;
        default: return IORING_OP_UNLINKAT;
    }
}

/// Advice that may come when the memory is no longer there, and something else of the replay may be in its place.
bool advice_for_later(int64_t advice) {
    return advice == MADV_WILLNEED || advice == MADV_POPULATE_READ || advice == MADV_COLD;
}

}  // namespace

// Where the call waits for other tasks it must not begin before that is over.
bool PosixEngine::waits_at(uint64_t op) const {
    const auto at = std::lower_bound(task_.waits.begin(), task_.waits.end(), op,
                                     [](const WaitFor& wait, uint64_t number) { return wait.op < number; });
    return at != task_.waits.end() && at->op == op;
}

/// Null: nothing is done with it.
const RootPath* PosixEngine::place_of(FileId file) const {
    const Plan& plan = worker_.plan;
    const bool placed = file < plan.paths.size() && plan.paths[file].relative != nullptr && plan.keeps_file(file);
    return placed && !names_no_file(worker_.plan.log->tables(), file) ? &plan.paths[file] : nullptr;
}

bool PosixEngine::name_in(FileId file, int* parent, const char** name, UniqueFd* closes) {
    const RootPath* const path = place_of(file);
    if (path == nullptr) {
        return false;
    }
    bool temporary = false;
    *parent = worker_.parent_of(*path, &temporary);
    *closes = UniqueFd(temporary && *parent >= 0 ? *parent : -1);
    *name = path->relative + path->name;
    return *parent >= 0;
}

/// Null: it is no request here but the plain call, where its op is.
std::unique_ptr<PosixEngine::NamedRequest> PosixEngine::named(const RingCall& call, const ReplayedRing& ring,
                                                              bool opens_later) {
    const bool refused = call.result == -EACCES || call.result == -EPERM || call.result == -EXDEV;
    // What a splice moves goes through a pipe of the replay's own, which has to be emptied meanwhile.
    if (call.kind == OpKind::splice || worker_.read_only || refused || !ring.makes(code_of(call.kind)) ||
        waits_at(call.called)) {
        return nullptr;
    }
    auto out = std::make_unique<NamedRequest>();
    NameCall& made = out->call;
    made.code = code_of(call.kind);
    const Tables& tables = worker_.plan.log->tables();
    const auto in_parent = [&] { return name_in(call.file, &made.directory, &made.name, &out->parent); };
    const auto to_parent2 = [&](FileId file) { return name_in(file, &made.directory2, &made.name2, &out->parent2); };
    bool goes = false;
    switch (call.kind) {
        case OpKind::open: {
            const RootPath* const path = place_of(call.file);
            goes = path != nullptr && !worker_.is_fifo(call.file);
            made.directory = worker_.root;
            made.name = goes ? path->relative : "";
            made.how = how_inside(open_flags(call.flags), call.mode);
            break;
        }
        case OpKind::close:
            opened_by_now(call.handle);
            made.fd = worker_.descriptors.take(call.handle, call.fd);
            goes = made.fd >= 0;
            break;
        case OpKind::statx: {
            made.mask = static_cast<uint32_t>(call.arg);
            made.flags = static_cast<uint32_t>(call.flags & AT_STATX_SYNC_TYPE);
            if (call.file == 0) {
                int64_t refusal = 0;
                made.flags |= AT_EMPTY_PATH;
                if (opens_later) {
                    goes = true;
                    break;
                }
                made.directory = descriptor(call.handle, &refusal);
                goes = refusal == 0 && made.directory >= 0;
                break;
            }
            // What a link leads to is found by a call of its own.
            const bool follows = (call.flags & AT_SYMLINK_NOFOLLOW) == 0;
            made.flags |= AT_SYMLINK_NOFOLLOW;
            goes = !(follows && worker_.file_type(call.file) == FileType::symlink) && in_parent();
            break;
        }
        case OpKind::mkdir:
            made.mode = static_cast<uint32_t>(call.mode & 01777);
            goes = in_parent();
            break;
        case OpKind::rename:
            made.flags = static_cast<uint32_t>(call.flags & (RENAME_NOREPLACE | RENAME_EXCHANGE));
            goes = in_parent() && to_parent2(call.file2);
            break;
        case OpKind::link:
            goes = (call.flags == 0 || worker_.nameless_in(call.file) < 0) && in_parent() && to_parent2(call.file2);
            break;
        case OpKind::symlink:
            if (const auto target = worker_.plan.maps.map_link(tables.path(call.file), tables.strings[call.text])) {
                out->target = *target;
                made.name = out->target.c_str();
                goes = to_parent2(call.file);
            }
            break;
        case OpKind::madvise: {
            const MappingTable::Range range = worker_.mappings.range(call.map, call.offset, call.size);
            goes = advice_for_later(call.arg) && static_cast<int64_t>(range.bytes) == call.size &&
                   range.bytes <= UINT32_MAX;
            made.memory = {range.at, range.bytes};
            made.advice = static_cast<int>(call.arg);
            break;
        }
        default:
            made.flags = call.kind == OpKind::rmdir ? AT_REMOVEDIR : 0;
            goes = in_parent();
            break;
    }
    return goes ? std::move(out) : nullptr;
}

int64_t PosixEngine::ring_call(const OpBlock& b, size_t i) {
    const uint64_t op = b.first + i;
    const RingCall* const call = task_.requests.calls.submitted_by(op);
    if (call == nullptr) {
        return not_performed(LeftOut::unsupported);
    }
    ReplayedRing* const ring = ring_at(op);
    if (ring == nullptr) {
        return b.result[i];
    }
    if (!at_once_ && !await(op)) {
        return not_performed(LeftOut::stopped);
    }
    std::unique_ptr<NamedRequest> request;
    bool later = false;
    if (!at_once_ && !named_.contains(call->request)) {
        const bool may = call->kind == OpKind::statx && call->file == 0 && ring->makes(IORING_OP_STATX);
        later = may && put_off(b, i, call->handle, async_request(b, i), *ring);
        request = named(*call, *ring, later);
        if (later && request == nullptr) {
            put_off_.pop_back();
        }
    }
    if (request != nullptr) {
        request->need = {call->called, 0, static_cast<uint32_t>(ring_number_), call->request, false};
        if (later) {
            named_[call->request] = std::move(request);
            return b.result[i];
        }
        RequestCall made;
        made.asked = async_request(b, i);
        made.order = static_cast<uint8_t>(b.flags[i] & kCallOrder);
        made.id = call->request;
        made.name = &request->call;
        keep_order(made.order);
        if (ring->add(made)) {
            named_[call->request] = std::move(request);
            in_line_ = true;
            if ((b.flags[i] & kUringPolled) != 0) {
                hand_over();
            }
            return b.result[i];
        }
        if (request->call.fd >= 0) {  // taken from the table
            ::close(request->call.fd);
        }
    }
    ring->skip(1);
    return b.result[i];
}

/// An open that other tasks may rely on from its op on.
bool PosixEngine::others_wait_for(uint64_t op) const {
    return std::binary_search(task_.sources.begin(), task_.sources.end(), op);
}

/// A request of a call is done: its result, as the job's uring_complete has it.
int64_t PosixEngine::take_named(uint32_t request, int64_t result) {
    const auto found = named_.find(request);
    if (found == named_.end()) {
        return result;
    }
    const std::unique_ptr<NamedRequest> done = std::move(found->second);
    named_.erase(found);
    const OpenedFile& later = done->later;
    if (later.file == 0) {
        return result;
    }
    opening_.erase(later.handle);
    if (result >= 0 && worker_.descriptors.get(later.handle) != DescriptorTable::kUnknown) {
        ::close(static_cast<int>(result));  // another task could not wait, and opened it by its path
        return 0;
    }
    if (result == -EAGAIN || result == -EINTR) {  // see open_inside()
        result =
            worker_.open_file(worker_.plan.paths[later.file], later.flags, static_cast<int64_t>(done->call.how.mode));
    }
    return std::min<int64_t>(opened(later, result), 0);
}

/// Whether the open that makes a descriptor is in flight. One that is done has its result taken.
bool PosixEngine::open_in_flight(HandleId handle) {
    const auto opening = opening_.empty() ? opening_.end() : opening_.find(handle);
    if (opening == opening_.end()) {
        return false;
    }
    const uint32_t request = opening->second;
    const auto found = named_.find(request);
    if (found == named_.end()) {
        return false;
    }
    ReplayedRing& ring = worker_.ring(found->second->need.ring);
    ring.look();
    if (!ring.has(0, request)) {
        return true;
    }
    int64_t result = 0;
    uint64_t tick = 0;
    bool known = false;
    if (ring.claim(request, &result, &tick, &known)) {
        told_[request] = {named_done(request, result), tick};
    }
    return false;
}

/// What uses a descriptor waits for the open that makes it, and for what was put off until then.
void PosixEngine::opened_by_now(HandleId handle) {
    if (open_in_flight(handle)) {
        const RequestNeed need = named_.at(opening_.at(handle))->need;
        await(need);
        open_in_flight(handle);
    }
    make_put_off();
}

bool PosixEngine::among_put_off(uint32_t request) const {
    return std::any_of(put_off_.begin(), put_off_.end(), [&](const PutOff& later) { return later.request == request; });
}

/// False: it has to be made now.
bool PosixEngine::put_off(const OpBlock& b, size_t i, HandleId handle, const AsyncRequest& asked, ReplayedRing& ring) {
    const bool alone = b.kind[i] == static_cast<uint8_t>(OpKind::uring_submit) && (b.flags[i] & kOrderFlags) == 0;
    if (!alone || ordered_ || ring.shared() || is_put_off(b.request[i]) || !open_in_flight(handle) ||
        &worker_.ring(named_.at(opening_.at(handle))->need.ring) != &ring) {
        return false;
    }
    put_off_.push_back({b.request[i], handle, &ring, asked});
    return true;
}

/// A request that was put off may neither come between linked ones nor after one that waits for all before it.
void PosixEngine::keep_in_order(int64_t order) {
    if ((order & (IOSQE_IO_LINK | IOSQE_IO_HARDLINK | IOSQE_IO_DRAIN)) == 0) {
        return;
    }
    ordered_ = true;
    while (!put_off_.empty() && !worker_.run.stopped()) {
        opened_by_now(put_off_.front().handle);
    }
}

void PosixEngine::make_opened() {
    if (makes_put_off_) {
        return;
    }
    makes_put_off_ = true;
    bool made = false;
    for (size_t at = 0; at < put_off_.size();) {
        if (open_in_flight(put_off_[at].handle)) {
            ++at;
            continue;
        }
        const PutOff later = put_off_[at];
        put_off_.erase(put_off_.begin() + static_cast<std::ptrdiff_t>(at));
        make(later);
        made = true;
    }
    makes_put_off_ = false;
    if (made && in_line_) {
        hand_over();
    }
}

void PosixEngine::make(const PutOff& later) {
    int64_t refusal = 0;
    RequestCall call;
    call.asked = later.asked;
    call.handle = later.handle;
    call.id = later.request;
    const int fd = descriptor(later.handle, &refusal);
    const auto named = named_.find(later.request);
    if (!later.asked.is_call()) {
        call.fd = fd;
        call.buffer = later.ring->buffer();
        call.bytes = read_size(later.asked.size);
    } else if (named != named_.end()) {
        named->second->call.directory = fd;
        call.name = &named->second->call;
    } else {
        refusal = not_performed(LeftOut::unsupported);
    }
    if (refusal != 0 || !later.ring->add(call)) {
        told_[later.request] = {refusal != 0 ? refusal : not_performed(LeftOut::unsupported), 0};
        later.ring->skip(1);
        return;
    }
    if (later.ring == ring_) {
        in_line_ = true;
    } else {
        later.ring->submit();
    }
    if (std::any_of(untold_.begin(), untold_.end(),
                    [&](const Untold& each) { return each.request == later.request; })) {
        int64_t result = 0;
        uint64_t tick = 0;
        bool known = false;
        later.ring->claim(later.request, &result, &tick, &known);  // its result was asked for
    }
}

/// The op of a call whose request was made before. The task goes on, and the uring_complete has the result, as a job
/// takes results later than its ring has them; what uses the descriptor of an open waits for it.
int64_t PosixEngine::ring_called(const OpBlock& b, size_t i, OpKind kind) {
    const uint32_t request = task_.requests.calls.by_call[next_call_++].second;
    const auto found = named_.find(request);
    if (found == named_.end()) {
        const int64_t result = submit_plain(b, i, kind);
        told_[request] = {std::min<int64_t>(result, 0), 0};
        return result;
    }
    const RequestNeed need = found->second->need;
    ReplayedRing& ring = worker_.ring(need.ring);
    if (in_line_) {
        hand_over();
    }
    if (kind == OpKind::open) {
        found->second->later = {b.file[i], b.handle[i], open_flags(b.flags[i]), b.result[i], false};
        const bool at_once = b.handle[i] == 0 || b.result[i] < 0 || ring.shared() || others_wait_for(b.first + i);
        if (at_once && !await(need)) {
            return not_performed(LeftOut::stopped);
        }
        opening_[b.handle[i]] = request;
    }
    look(ring);
    int64_t result = 0;
    uint64_t tick = 0;
    bool known = false;
    if (!ring.claim(request, &result, &tick, &known)) {
        return known || is_put_off(request) ? b.result[i] : not_performed(LeftOut::unsupported);
    }
    result = named_done(request, result);
    told_[request] = {result, tick};
    return result >= 0 && b.result[i] >= 0 ? b.result[i] : result;
}

}  // namespace reprise
