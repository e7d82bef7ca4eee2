// SPDX-License-Identifier: MIT
#include "replay/predict/service_times.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>

#include "formats/oplog/time_order.h"
#include "formats/oplog/touched.h"
#include "formats/support/random.h"

namespace reprise {
namespace {

constexpr int64_t kMostNs = int64_t{1} << 50;
constexpr int64_t kPerByte = 64 << 10;  // from here on a transfer's time grows with its size
constexpr int64_t kPage = 4096;

/// Other families are the kinds of calls.
enum Family : uint32_t { reads = kOpKindLimit, writes, async_reads, async_writes, async_syncs };

uint64_t mixed(uint64_t value) { return splitmix64(value + kGolden); }

uint32_t power_of(int64_t amount) {
    return amount <= 0 ? 0 : static_cast<uint32_t>(std::bit_width(static_cast<uint64_t>(amount)));
}

uint64_t place_of(uint32_t family, FileId file, int64_t offset) {
    return mixed(mixed(uint64_t{family} << 32 | file) ^ static_cast<uint64_t>(offset));
}

/// The entry with the nearest number, the smaller one of two.
template <class Map>
const typename Map::mapped_type& nearest(const Map& of, uint32_t number) {
    const auto above = of.lower_bound(number);
    if (above == of.end()) {
        return std::prev(above)->second;
    }
    if (above == of.begin() || above->first == number) {
        return above->second;
    }
    const auto below = std::prev(above);
    return number - below->first <= above->first - number ? below->second : above->second;
}

FileId file_of(const Tables& tables, HandleId handle) {
    return handle < tables.handles.size() ? tables.handles[handle].file : FileId{0};
}

bool is_memory(const Tables& tables, FileId file) {
    return file < tables.files.size() && tables.files[file].role == Role::ipc;
}

int64_t end_of(const Op& op) {
    int64_t end = 0;
    return __builtin_add_overflow(op.begin, std::clamp<int64_t>(op.duration, 0, kMostNs), &end) ? op.begin : end;
}

int64_t took(const Op& op) { return std::clamp<int64_t>(op.duration, 0, kMostNs); }

}  // namespace

ServiceKeys::Call ServiceKeys::found(uint32_t family, bool data, int64_t amount, uint64_t place, int64_t now) {
    while (!ends_.empty() && ends_.top() <= now) {
        ends_.pop();
    }
    uint8_t& before = times_[place];
    Call call{{family, power_of(amount), before, 0}, amount, data};
    before = static_cast<uint8_t>(std::min<uint32_t>(before + 1U, ServiceKey::kMostTimes));
    call.key.in_flight = data ? power_of(static_cast<int64_t>(ends_.size()) + open_ + 1) : 0;
    return call;
}

/// Not a pipe, a socket, or a file in memory.
bool ServiceKeys::on_file(const Op& op) const {
    for (const HandleId handle : {op.handle, op.handle2}) {
        if (handle != 0 && handle < tables_.handles.size() &&
            (tables_.handles[handle].kind != HandleKind::file || is_memory(tables_, tables_.handles[handle].file))) {
            return false;
        }
    }
    return !is_memory(tables_, op.file);
}

std::optional<ServiceKeys::Call> ServiceKeys::of(const Op& op, int64_t now) {
    const OpInfo& row = info(op.kind);
    if (!row.is(Trait::io) || row.is(Trait::async) || (op.result < 0 && op.result > -4096) || !on_file(op)) {
        return std::nullopt;
    }
    const bool reads = row.is(Trait::reads), writes = row.is(Trait::writes), data = reads || writes;
    int64_t amount = data ? std::max<int64_t>(op.result, 0) : 0;
    if (op.kind == OpKind::touch) {
        each_touched(op.offset, op.size, op.list, [&](int64_t, int64_t more) { amount += more; });
        amount /= kPage;
    }
    const uint32_t family = reads && !writes   ? static_cast<uint32_t>(Family::reads)
                            : writes && !reads ? static_cast<uint32_t>(Family::writes)
                                               : static_cast<uint32_t>(op.kind);
    const bool by_map = op.kind == OpKind::touch;
    const uint32_t of = by_map ? op.map : op.file != 0 ? op.file : file_of(tables_, op.handle);
    return found(family, data, amount, place_of(family, of, data || by_map ? op.offset : 0), now);
}

std::optional<ServiceKeys::Call> ServiceKeys::of(const AsyncRequest& request, FileId file, int64_t now) {
    const bool data = request.reads() || request.writes();
    if (!request.on_storage() || request.is_call()) {
        return std::nullopt;
    }
    const uint32_t family = request.reads() ? async_reads : request.writes() ? async_writes : async_syncs;
    return found(family, data, data ? request.size : 0, place_of(family, file, data ? request.offset : 0), now);
}

bool has_service_times(const LogReader& log) {
    OpBlock block;
    for (const BlockInfo& where : log.blocks()) {
        log.decode(where, block);
        for (size_t i = 0; i < block.count(); ++i) {
            const OpInfo& row = info(static_cast<OpKind>(block.kind[i]));
            if (block.duration[i] > 0 && (row.is(Trait::io) || row.is(Trait::async))) {
                return true;
            }
        }
    }
    return false;
}

ServiceTimes::ServiceTimes(const LogReader& log) {
    const Tables& tables = log.tables();
    ServiceKeys keys(tables);
    const auto of_program = [&](const Op& op) {
        const FileId file = op.file != 0 ? op.file : file_of(tables, op.handle);
        return file < tables.files.size() &&
               (tables.files[file].role == Role::program || tables.files[file].role == Role::system);
    };
    // Requests by their number, until their results come.
    std::unordered_map<uint32_t, std::pair<ServiceKeys::Call, int64_t>> open;
    for_each_between(log, {}, {}, [&](TaskId, const Op& op, uint64_t) {
        const OpInfo& row = info(op.kind);
        if (row.is(Trait::submits)) {
            if (const auto call = keys.of(async_request(op), file_of(tables, op.handle), op.begin)) {
                keys.begins(*call);
                open.insert_or_assign(op.request, std::pair{*call, op.begin});
            }
        } else if (row.is(Trait::completes)) {
            if (const auto found = open.find(op.request); found != open.end()) {
                const auto& [call, begin] = found->second;
                keys.ended(call);
                const int64_t end = end_of(op);
                add(call, std::clamp<int64_t>(end - begin, 0, kMostNs));
                open.erase(found);
            }
        } else if (const auto call = of_program(op) ? std::nullopt : keys.of(op, op.begin)) {
            keys.ends(*call, end_of(op));
            add(*call, took(op));
        }
    });
}

void ServiceTimes::add(const ServiceKeys::Call& call, int64_t ns) {
    const ServiceKey& key = call.key;
    Calls& calls = families_[key.family][key.size][key.time][key.in_flight];
    const uint64_t at = calls.count < kKept ? calls.count : mixed(calls.count) % (calls.count + 1);
    ++calls.count;
    if (at < calls.kept.size()) {
        calls.kept[at] = {call.amount, ns};
    } else if (calls.kept.size() < kKept) {
        calls.kept.push_back({call.amount, ns});
    }
}

std::optional<int64_t> ServiceTimes::draw(const ServiceKeys::Call& call, uint64_t draw) const {
    const auto family = families_.find(call.key.family);
    if (family == families_.end()) {
        return std::nullopt;
    }
    const ByTime& by_time = nearest(family->second, call.key.size);
    const Calls& calls = nearest(nearest(by_time, call.key.time), call.key.in_flight);
    const Seen& seen = calls.kept[mixed(draw) % calls.kept.size()];
    if (!call.data) {
        return seen.ns;
    }
    const double larger =
        static_cast<double>(std::max(call.amount, kPerByte)) / static_cast<double>(std::max(seen.amount, kPerByte));
    return std::clamp<int64_t>(std::llround(static_cast<double>(seen.ns) * larger), 0, kMostNs);
}

}  // namespace reprise
