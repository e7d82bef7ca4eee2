// SPDX-License-Identifier: MIT
#include "hosts/conversation.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>

#include "calibrate/clock.h"
#include "calibrate/delay.h"
#include "formats/support/error.h"
#include "formats/support/limits.h"
#include "formats/support/quiet_thread.h"

namespace reprise {
namespace {

constexpr uint64_t kLast = uint64_t{1} << 62;  // the number of collect_last() of a run, less the run's
constexpr int kPings = 64;

Bytes bytes_of(uint64_t number, std::string_view text) {
    Bytes out;
    put_varint(out, number);
    put_string(out, text);
    return out;
}

}  // namespace

std::string pack_texts(const std::vector<std::string>& texts) {
    Bytes out;
    put_varint(out, texts.size());
    for (const std::string& text : texts) {
        put_string(out, text);
    }
    return {out.begin(), out.end()};
}

std::vector<std::string> unpack_texts(std::string_view bytes) {
    ByteReader in({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
    std::vector<std::string> texts(in.count(in.left()));
    for (std::string& text : texts) {
        text = in.string();
    }
    return texts;
}

Conversation::Conversation(const Make& make, ConversationSettings settings)
    : settings_(std::move(settings)), bell_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!bell_.valid()) {
        throw machine_error("eventfd: " + reason(errno), "");
    }
    if (!settings_.clock) {
        settings_.clock = monotonic_ns;
    }
    thread_ = quiet_thread("ranks", [this, make] { converse(make); });
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return made_ || failure_ != nullptr; });
    if (failure_ != nullptr) {
        lock.unlock();
        thread_.join();
        std::rethrow_exception(failure_);
    }
}

Conversation::~Conversation() {
    if (thread_.joinable()) {
        end(static_cast<int>(ExitCode::machine));
    }
    if (stuck_) {
        std::_Exit(leave_code_);  // the thread does not come back from MPI, and still uses this
    }
}

std::string Conversation::name(uint32_t rank) const {
    const std::lock_guard lock(mutex_);
    return rank < names_.size() ? names_[rank] : "rank " + std::to_string(rank);
}

void Conversation::set_names(std::vector<std::string> names) {
    const std::lock_guard lock(mutex_);
    names_ = std::move(names);
}

// --- the main thread

template <class Until>
void Conversation::wait(std::unique_lock<std::mutex>& lock, Until until) {
    changed_.wait(lock, [&] { return until() || stop_seen_.load() || gone_; });
    if (!until()) {
        const std::string why = stopped_.empty() ? "the run was stopped" : stopped_;
        throw Error(stop_code_ != 0 ? static_cast<ExitCode>(stop_code_.load()) : ExitCode::machine, "", why, "");
    }
}

std::vector<std::string> Conversation::collect(std::string mine) {
    std::unique_lock lock(mutex_);
    const uint64_t number = collects_++;
    if (rank_ != 0) {
        outbox_.emplace_back(0, bytes_of(number, mine));
        outbox_.back().second.insert(outbox_.back().second.begin(), static_cast<uint8_t>(Kind::collect));
        changed_.notify_all();
        return {};
    }
    collected_[0][number] = std::move(mine);
    wait(lock, [&] {
        return std::all_of(collected_.begin(), collected_.end(), [&](const auto& one) { return one.contains(number); });
    });
    std::vector<std::string> all;
    for (auto& one : collected_) {
        all.push_back(std::move(one.extract(number).mapped()));
    }
    return all;
}

std::vector<std::string> Conversation::collect_last(std::string mine) {
    const uint64_t number = kLast + run_.load();
    if (rank_ != 0) {
        post(0, Kind::collect, bytes_of(number, mine));
        return {};
    }
    std::unique_lock lock(mutex_);
    collected_[0][number] = std::move(mine);
    const auto all_there = [&] {
        for (uint32_t rank = 0; rank < size_; ++rank) {
            if (!collected_[rank].contains(number) && !silent_[rank]) {
                return false;
            }
        }
        return true;
    };
    while (!all_there() && !gone_ && !stop_seen_.load() && !hurried_.load()) {
        changed_.wait_for(lock, std::chrono::milliseconds(100));
    }
    changed_.wait_for(lock, std::chrono::nanoseconds(lost() ? patience_ns() / 2 : patience_ns()), all_there);
    std::vector<std::string> all;
    for (auto& one : collected_) {
        all.push_back(one.contains(number) ? std::move(one.extract(number).mapped()) : std::string());
    }
    return all;
}

std::string Conversation::give(uint32_t from, std::string mine) {
    std::unique_lock lock(mutex_);
    const uint64_t number = collects_++;
    if (from == 0 || (rank_ != 0 && rank_ != from)) {
        return rank_ == 0 ? std::move(mine) : std::string();
    }
    if (rank_ != 0) {
        lock.unlock();
        Bytes message;
        message.reserve(mine.size() + 32);
        message.push_back(static_cast<uint8_t>(Kind::collect));
        put_varint(message, number);
        put_string(message, mine);
        lock.lock();
        outbox_.emplace_back(0, std::move(message));
        changed_.notify_all();
        return {};
    }
    wait(lock, [&] { return collected_[from].contains(number); });
    return std::move(collected_[from].extract(number).mapped());
}

std::string Conversation::announce(std::string bytes) {
    std::unique_lock lock(mutex_);
    const uint64_t number = announces_++;
    if (rank_ == 0) {
        Bytes message = bytes_of(number, bytes);
        message.insert(message.begin(), static_cast<uint8_t>(Kind::announce));
        for (uint32_t to = 1; to < size_; ++to) {
            outbox_.emplace_back(to, message);
        }
        changed_.notify_all();
        return bytes;
    }
    wait(lock, [&] { return announced_.contains(number); });
    return std::move(announced_.extract(number).mapped());
}

std::vector<std::string> Conversation::share(std::string mine) {
    const std::vector<std::string> all = collect(std::move(mine));
    return unpack_texts(announce(rank_ == 0 ? pack_texts(all) : std::string()));
}

void Conversation::gate() {
    collect({});
    announce({});
}

ClockOffset Conversation::measure_clock() {
    gate();
    ++hot_;
    if (rank_ != 0) {
        std::unique_lock lock(mutex_);
        best_ = {0, 0, INT64_MAX};
        pings_left_ = kPings;
        wait(lock, [&] { return pings_left_ == 0; });
    }
    collect({});
    --hot_;
    announce({});
    offset_ = rank_ == 0 ? ClockOffset{now(), 0, 0} : best_;
    return offset_;
}

void Conversation::post(uint32_t to, Kind kind, Bytes rest) {
    rest.insert(rest.begin(), static_cast<uint8_t>(kind));
    const std::lock_guard lock(mutex_);
    outbox_.emplace_back(to, std::move(rest));
    changed_.notify_all();
}

void Conversation::stop(const std::string& why, int code) {
    const std::string text = name(rank_) + ": " + why;
    {
        const std::lock_guard lock(mutex_);
        if (own_stop_ || !stopped_.empty()) {
            return;
        }
        own_stop_ = true;
        stop_code_ = code;
        stop_seen_ = true;
    }
    for (uint32_t to = 0; to < size_; ++to) {
        if (to != rank_) {
            Bytes message = bytes_of(static_cast<uint64_t>(code), text);
            message.push_back(hurried_.load() ? 1 : 0);
            post(to, Kind::stop, std::move(message));
        }
    }
}

std::string Conversation::stopped() const {
    if (!stop_seen_.load()) {
        return {};
    }
    const std::lock_guard lock(mutex_);
    return stopped_;
}

void Conversation::attach(Mirror* mirror) {
    const std::lock_guard lock(mirror_mutex_);
    mirror_ = mirror;
    setup_ = setup_.load() && mirror == nullptr;
    if (mirror_ != nullptr) {
        mirror_->run().control().bell = bell_.get();
    }
    if (mirror_ != nullptr && stop_seen_.load()) {
        mirror_->stop();
    }
}

void Conversation::ready() { mine_ready_ = true; }

std::optional<int64_t> Conversation::start_ns() const {
    const int64_t start = start_ns_.load();
    return start == 0 ? std::nullopt : std::optional(start - offset_.offset_ns);
}

void Conversation::progress(uint64_t ops, bool runs) {
    mine_ops_ = ops;
    mine_runs_ = runs;
    // The thread would say so itself, were it not MPI that holds it, and perhaps the mirror's lock.
    if (!stop_seen_.load() && monotonic_ns() - turned_ns_.load() > settings_.silent_after_ns) {
        const std::lock_guard lock(mutex_);
        stopped_ = "MPI does not come back from a call for " +
                   std::to_string(settings_.silent_after_ns / 1'000'000'000) + " s: a rank or the network is gone";
        stop_code_ = static_cast<int>(ExitCode::machine);
        lost_ = stop_seen_ = true;
    }
}

uint64_t Conversation::ops_elsewhere() const { return ops_elsewhere_.load(); }
bool Conversation::others_run() const { return others_run_.load(); }
void Conversation::ended() { mine_ended_ = true; }

void Conversation::next_run() {
    ++run_;  // the thread forgets, too
    mine_ready_ = mine_ended_ = all_ended_ = false;
    start_ns_ = 0;
    mine_ops_ = 0;
    setup_ = !stop_seen_.load();
}

/// Once a rank is gone MPI may hold the thread for seconds, as where its launcher does not listen.
bool Conversation::held() const {
    constexpr int64_t kHeld = 500'000'000;  // ns
    return stop_seen_.load() && monotonic_ns() - turned_ns_.load() > kHeld;
}

bool Conversation::end(int code) {
    std::unique_lock lock(mutex_);
    leaving_ = true;
    leave_code_ = code;
    leaving_ns_ = monotonic_ns();
    changed_.notify_all();
    while (!changed_.wait_for(lock, std::chrono::milliseconds(100), [&] { return gone_; })) {
        // The others may not have heard yet what rank 0 told them.
        if (held() && monotonic_ns() - turned_ns_.load() > (rank_ == 0 ? settings_.others_have_ns : 0)) {
            stuck_ = true;
            lock.unlock();
            thread_.detach();
            return false;
        }
    }
    stuck_ = !changed_.wait_for(lock, std::chrono::seconds(1), [&] { return done_; });
    lock.unlock();
    if (thread_.joinable()) {
        stuck_ ? thread_.detach() : thread_.join();
    }
    return orderly_;
}

}  // namespace reprise
