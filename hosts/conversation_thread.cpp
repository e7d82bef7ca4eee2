// SPDX-License-Identifier: MIT
// The thread of a conversation: what it says, hears and notices.
#include <sys/eventfd.h>
#include <time.h>

#include <algorithm>
#include <chrono>

#include "calibrate/clock.h"
#include "calibrate/delay.h"
#include "formats/support/error.h"
#include "hosts/conversation.h"

namespace reprise {
namespace {

constexpr uint64_t kLongestText = 1 << 12;
// From the last rank's being ready to the start: for the word to get around and all tasks to be woken.
constexpr int64_t kToStart = 200'000'000;

void pause(int64_t ns) {
    const timespec time{0, ns};
    nanosleep(&time, nullptr);
}

}  // namespace

void Conversation::converse(const Make& make) {
    use_least_timer_slack();
    ask_for_short_turns();
    try {
        transport_ = make();
        const std::lock_guard lock(mutex_);
        rank_ = transport_->rank();
        size_ = transport_->size();
        library_ = transport_->library();
        peers_.resize(size_);
        collected_.resize(size_);
        silent_.resize(size_);
        const int64_t now = monotonic_ns();
        for (Peer& peer : peers_) {
            peer.heard_ns = now;
        }
        turned_ns_ = now;
        made_ = true;
        changed_.notify_all();
    } catch (...) {
        const std::lock_guard lock(mutex_);
        failure_ = std::current_exception();
        changed_.notify_all();
        return;
    }
    bool left = false;
    while (!left) {
        turned_ns_ = monotonic_ns();
        rest(turn());
        const std::lock_guard lock(mutex_);
        left = gone_;
    }
    if (!orderly_ && rank_ == 0) {
        transport_->abort(leave_code_);
    }
    const std::lock_guard lock(mutex_);
    done_ = true;
    changed_.notify_all();
}

/// True where there was something to do.
bool Conversation::turn() {
    std::vector<std::pair<uint32_t, Bytes>> out;
    bool leaving = false;
    {
        const std::lock_guard lock(mutex_);
        out.swap(outbox_);
        leaving = leaving_;
    }
    for (const auto& [to, bytes] : out) {
        transport_->send(to, bytes.data(), bytes.size());
    }
    bool busy = !out.empty() || tell_published();
    uint32_t from = 0;
    std::string bytes;
    for (int most = 0; most < 256 && transport_->receive(from, bytes); ++most) {
        busy = true;
        peers_[from].heard_ns = monotonic_ns();
        ByteReader in({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
        try {
            heard(from, in);
        } catch (const Corrupt& why) {
            stop_here(name(from) + ": sent what this version does not understand (" + why.what() + ")",
                      static_cast<int>(ExitCode::machine));
        }
    }
    ping();
    agree();
    const int64_t now = monotonic_ns();
    beat(now);
    watch(now);
    give_up_setup(now);
    if (leaving) {
        leave();
    }
    return busy;
}

bool Conversation::tell_published() {
    const std::lock_guard lock(mirror_mutex_);
    if (mirror_ == nullptr || !mirror_->look([&](uint32_t rank, TaskId task, uint32_t published) {
            put_varint(peers_[rank].told, task);
            put_varint(peers_[rank].told, published);
        })) {
        return false;
    }
    for (uint32_t to = 0; to < size_; ++to) {
        if (!peers_[to].told.empty()) {
            Bytes message;
            put_varint(message, run_.load());
            message.insert(message.end(), peers_[to].told.begin(), peers_[to].told.end());
            say(to, Kind::published, message);
            peers_[to].told.clear();
        }
    }
    return true;
}

void Conversation::say(uint32_t to, Kind kind, const Bytes& rest) {
    Bytes message;
    message.reserve(rest.size() + 1);
    message.push_back(static_cast<uint8_t>(kind));
    message.insert(message.end(), rest.begin(), rest.end());
    transport_->send(to, message.data(), message.size());
}

void Conversation::say_all(Kind kind, const Bytes& rest) {
    for (uint32_t to = 0; to < size_; ++to) {
        if (to != rank_) {
            say(to, kind, rest);
        }
    }
}

void Conversation::heard(uint32_t from, ByteReader& in) {
    const auto kind = static_cast<Kind>(in.byte());
    switch (kind) {
        case Kind::collect:
        case Kind::announce: {
            const uint64_t number = in.varint();
            const std::lock_guard lock(mutex_);
            (kind == Kind::collect ? collected_[from] : announced_)[number] = std::string(in.string());
            changed_.notify_all();
            return;
        }
        case Kind::ping: {
            Bytes answer;
            put_fixed(answer, in.fixed<int64_t>());
            put_fixed(answer, now());
            return say(from, Kind::pong, answer);
        }
        case Kind::pong: return heard_pong(in);
        case Kind::alive: return heard_alive(from, in);
        case Kind::stop: return heard_stop(from, in);
        case Kind::published: {
            const std::lock_guard lock(mirror_mutex_);
            const bool this_run = in.varint() == run_.load();
            while (in.left() != 0) {
                const auto task = static_cast<TaskId>(in.varint());
                const auto published = static_cast<uint32_t>(in.varint());
                if (mirror_ != nullptr && this_run) {
                    mirror_->heard(task, published);
                }
            }
            return;
        }
        case Kind::ready:
        case Kind::start:
        case Kind::ended:
        case Kind::over:
        case Kind::bye:
        case Kind::alone: return heard_state(kind, from, in);
    }
    throw Corrupt("an unknown message");
}

void Conversation::heard_state(Kind kind, uint32_t from, ByteReader& in) {
    switch (kind) {
        case Kind::ready: peers_[from].ready = true; return;
        case Kind::ended: peers_[from].ended = true; return;
        case Kind::bye: peers_[from].left = true; return;
        case Kind::alone: alone_ = true; return;
        case Kind::start: start_ns_ = in.fixed<int64_t>(); return;
        default: all_ended_ = true;
    }
}

void Conversation::heard_pong(ByteReader& in) {
    const int64_t sent = in.fixed<int64_t>(), theirs = in.fixed<int64_t>(), here = now();
    const std::lock_guard lock(mutex_);
    if (!ping_out_ || sent != pinged_ns_) {
        return;
    }
    ping_out_ = false;
    const int64_t half = (here - sent) / 2;
    if (half < best_.uncertainty_ns) {
        best_ = {here, theirs - (sent + half), half};
    }
    if (--pings_left_ == 0) {
        changed_.notify_all();
    }
}

void Conversation::ping() {
    if (hot_.load() == 0 || rank_ == 0) {
        return;
    }
    {
        const std::lock_guard lock(mutex_);
        if (ping_out_ || pings_left_ == 0) {
            return;
        }
        ping_out_ = true;
        pinged_ns_ = now();
    }
    Bytes message;
    put_fixed(message, pinged_ns_);
    say(0, Kind::ping, message);
}

void Conversation::heard_alive(uint32_t from, ByteReader& in) {
    const uint64_t ops = in.varint(), runs = in.varint();
    if (rank_ != 0) {
        others_run_ = runs > (mine_runs_.load() ? 1 : 0);
        return;
    }
    peers_[from].ops = ops;
    peers_[from].runs = runs != 0;
    uint64_t all = 0;
    bool any = false;
    for (const Peer& peer : peers_) {
        all += peer.ops;
        any = any || peer.runs;
    }
    ops_elsewhere_ = all;
    others_run_ = any;
}

void Conversation::heard_stop(uint32_t from, ByteReader& in) {
    const auto code = static_cast<int>(in.varint());
    std::string why(in.string());
    why.resize(std::min<size_t>(why.size(), kLongestText));
    hurried_ = in.byte() != 0 || hurried_.load();  // the launcher kills soon whom it has told to end
    stop_here(why.empty() ? name(from) : why, code);
}

void Conversation::stop_here(const std::string& why, int code) {
    {
        const std::lock_guard lock(mutex_);
        if (stopped_.empty() && !own_stop_) {
            stopped_ = why;
            stop_code_ = code;
        }
        stop_seen_ = true;
        changed_.notify_all();
    }
    const std::lock_guard lock(mirror_mutex_);
    if (mirror_ != nullptr) {
        mirror_->stop();
    }
}

/// Signs of life: to rank 0, and from it to all.
void Conversation::beat(int64_t now) {
    if (now - beaten_ns_ < settings_.alive_every_ns) {
        return;
    }
    beaten_ns_ = now;
    uint64_t runs = mine_runs_.load() ? 1 : 0;
    for (const Peer& peer : peers_) {
        runs += rank_ == 0 && peer.runs ? 1 : 0;
    }
    Bytes message;
    put_varint(message, mine_ops_.load());
    put_varint(message, runs);
    rank_ == 0 ? say_all(Kind::alive, message) : say(0, Kind::alive, message);
}

void Conversation::watch(int64_t now) {
    if (stop_seen_.load() && stopped_ns_ == 0) {
        stopped_ns_ = now;
    }
    for (uint32_t who = 0; who < size_; ++who) {
        const bool watched = who != rank_ && (rank_ == 0 || who == 0) && !peers_[who].left && !peers_[who].lost;
        if (watched && now - peers_[who].heard_ns > settings_.silent_after_ns) {
            lose(who, now);
        }
    }
    // Those that do not end although the run was stopped, and rank 0, which would say that all have, where it is lost.
    if (stopped_ns_ != 0 && (now - stopped_ns_ > patience_ns() || (rank_ != 0 && peers_[0].lost))) {
        all_ended_ = true;
    }
}

/// Rank 0 first, as it says why.
void Conversation::give_up_setup(int64_t now) {
    const int64_t most = settings_.others_have_ns / 4 * (rank_ == 0 ? 1 : 2);
    if (!settings_.give_up || !setup_.load() || stopped_ns_ == 0 || now - stopped_ns_ < most) {
        return;
    }
    std::string why;
    {
        const std::lock_guard lock(mutex_);
        if (leaving_) {
            return;
        }
        why = stopped_;
    }
    if (!why.empty()) {
        settings_.give_up(why, stop_code_.load(), *transport_);
    }
}

void Conversation::lose(uint32_t who, int64_t now) {
    peers_[who].lost = true;
    lost_ = true;
    {
        const std::lock_guard lock(mutex_);
        silent_[who] = true;
    }
    const std::string why = name(who) + ": cut off: no sign of life for " +
                            std::to_string((now - peers_[who].heard_ns) / 1'000'000'000) + " s";
    const auto code = static_cast<int>(ExitCode::machine);
    if (rank_ == 0) {
        if (settings_.cut_off) {
            settings_.cut_off(why);
        }
        Bytes message;
        put_varint(message, static_cast<uint64_t>(code));
        put_string(message, why);
        message.push_back(hurried_.load() ? 1 : 0);
        say_all(Kind::stop, message);
    }
    stop_here(why, code);
}

/// The start, once all are ready, and the end, once all have ended.
void Conversation::agree() {
    const uint64_t run = run_.load();
    if (run != run_seen_) {
        run_seen_ = run;
        started_ = ready_told_ = ended_told_ = false;
        for (Peer& peer : peers_) {
            peer.ready = peer.ended = false;
        }
    }
    Peer& mine = peers_[rank_];
    mine.ready = mine_ready_.load();
    mine.ended = mine_ended_.load();
    if (rank_ != 0) {
        if (mine.ready && !ready_told_) {
            ready_told_ = true;
            say(0, Kind::ready);
        }
        if (mine.ended && !ended_told_) {
            ended_told_ = true;
            say(0, Kind::ended);
        }
        return;
    }
    if (!started_ && std::all_of(peers_.begin(), peers_.end(), [](const Peer& peer) { return peer.ready; })) {
        started_ = true;
        Bytes message;
        const int64_t start = now() + kToStart;
        put_fixed(message, start);
        say_all(Kind::start, message);
        start_ns_ = start;
    }
    if (!ended_told_ && mine.ended &&
        std::all_of(peers_.begin(), peers_.end(), [](const Peer& peer) { return peer.ended || peer.lost; })) {
        ended_told_ = true;
        say_all(Kind::over);
        all_ended_ = true;
    }
}

/// Goodbyes go to rank 0; when it has all, it answers, and everybody ends MPI. Where somebody is missing, MPI has no
/// end: rank 0 tells the others to end without it, and has MPI end those that do not hear it.
void Conversation::leave() {
    const auto bye = [this](bool orderly) {
        if (orderly) {
            transport_->finish();
        }
        const std::lock_guard lock(mutex_);
        orderly_ = orderly;
        gone_ = true;
        changed_.notify_all();
    };
    if (rank_ != 0 && !bye_told_) {
        bye_told_ = true;
        say(0, Kind::bye);
    }
    peers_[rank_].left = true;
    const bool all =
        !alone_ && (rank_ != 0 ? peers_[0].left
                               : std::all_of(peers_.begin(), peers_.end(), [](const Peer& peer) { return peer.left; }));
    if (all && rank_ == 0) {
        say_all(Kind::bye);
    }
    if (all) {
        return bye(true);
    }
    // The others give rank 0 a little more than it gives them: it says why.
    const int64_t now = monotonic_ns(), most = settings_.others_have_ns / (lost_.load() || hurried_.load() ? 2 : 1);
    const bool late = rank_ == 0 ? now - leaving_ns_ > most
                                 : stopped_ns_ != 0 && now - stopped_ns_ > settings_.others_have_ns * 6 / 5;
    const bool heard_of_0 = rank_ == 0 || !peers_[0].lost;
    if (!alone_ &&
        !(stop_seen_.load() && (late || !heard_of_0 || (rank_ == 0 && lost_.load() && only_lost_missing())))) {
        return;
    }
    if (rank_ == 0 && !alone_) {
        alone_ = true;
        alone_ns_ = now;
        say_all(Kind::alone);
    }
    // What lies in the memory of rank 0 is gone with it. To a rank that is gone it never leaves.
    if (rank_ != 0 || transport_->all_sent() || now - alone_ns_ > settings_.others_have_ns / 2) {
        bye(false);
    }
}

bool Conversation::only_lost_missing() const {
    return std::all_of(peers_.begin(), peers_.end(), [](const Peer& peer) { return peer.left || peer.lost; });
}

/// Sleeps until there is something to tell or, where the transport hears, to be heard. Where it does not, polls closely
/// while a task waits for another rank.
void Conversation::rest(bool busy) {
    constexpr int64_t kCloselyFor = 5'000, kHot = 5'000, kOften = 20'000, kOftenFor = 20'000'000,
                      kSeldom = 100'000;  // ns
    constexpr int64_t kHearing = 5'000'000, kIdle = 500'000, kApart = 1'000'000;
    // Never sched_yield(): where others compute, it is milliseconds until the turn comes again. Who sleeps is woken
    // soon.
    if (busy) {
        busy_ns_ = monotonic_ns();
        return;
    }
    if (hot_.load() != 0) {
        return monotonic_ns() - busy_ns_ < kCloselyFor ? spin_pause() : pause(kHot);
    }
    {
        const std::lock_guard lock(mirror_mutex_);
        if (mirror_ != nullptr) {
            const bool hears = transport_->hears();
            if (!hears && mirror_->waited_for()) {
                const int64_t since = monotonic_ns() - busy_ns_;
                return since < kCloselyFor ? spin_pause() : pause(since < kOftenFor ? kOften : kSeldom);
            }
            if (mirror_->falls_asleep(!hears)) {
                transport_->wait(bell_.get(), hears ? kHearing : kIdle);
            }
            mirror_->awake();
            eventfd_t rings = 0;
            eventfd_read(bell_.get(), &rings);  // what it rang for is looked for anyway
            return;
        }
    }
    std::unique_lock lock(mutex_);
    if (outbox_.empty() && !gone_) {
        changed_.wait_for(lock, std::chrono::nanoseconds(kApart));
    }
}

}  // namespace reprise
