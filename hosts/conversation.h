// SPDX-License-Identifier: MIT
// The ranks of a run in conversation: one thread owns the transport, sends and hears, and notices who falls silent.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "formats/support/bytes.h"
#include "formats/support/unique_fd.h"
#include "hosts/mirror.h"
#include "hosts/transport.h"

namespace reprise {

struct ConversationSettings {
    int64_t alive_every_ns = 250'000'000;
    int64_t silent_after_ns = 2'500'000'000;  // a rank that says nothing for so long is cut off
    int64_t moment_ns = 200'000'000;          // as long as others are waited for in a hurry
    int64_t others_have_ns = 2'000'000'000;   // to end, once the run is stopped
    /// Called on the thread where the run was stopped before it began, and the main thread, busy, has not noticed for a
    /// moment; does not come back. None: it is waited for.
    std::function<void(const std::string& why, int code, Transport& transport)> give_up = {};
    /// Called on rank 0's thread as soon as a rank is cut off: its launcher may leave no time for more.
    std::function<void(const std::string& why)> cut_off = {};
    std::function<int64_t()> clock = {};  // ns; none: CLOCK_MONOTONIC
};

/// The clock of rank 0 less this rank's.
struct ClockOffset {
    int64_t at_ns = 0, offset_ns = 0, uncertainty_ns = 0;
};

class Conversation {
public:
    using Make = std::function<std::unique_ptr<Transport>()>;

    /// Makes the transport on a thread of its own. Throws what `make` throws.
    explicit Conversation(const Make& make, ConversationSettings settings = {});
    /// Without an end(), that of a process which ends by itself.
    ~Conversation();
    Conversation(const Conversation&) = delete;
    Conversation& operator=(const Conversation&) = delete;

    uint32_t rank() const { return rank_; }
    uint32_t size() const { return size_; }
    const std::string& library() const { return library_; }
    int64_t now() const { return settings_.clock(); }

    // The calls of the main thread that all ranks make in the same order. Each waits, and throws Error where the run
    // was stopped or a rank is cut off.

    /// What each rank gives, by rank, on rank 0; nothing on the others.
    std::vector<std::string> collect(std::string mine);
    /// What rank `from` gives, on rank 0; nothing on the others, which neither send nor wait. Nor does `from` wait: who
    /// sends much waits for announce() now and then.
    std::string give(uint32_t from, std::string mine);
    /// What rank 0 gives, on all.
    std::string announce(std::string bytes);
    /// What each rank gives, by rank, on all.
    std::vector<std::string> share(std::string mine);
    void gate();
    /// As collect(), at the end of a run, also of one that was stopped: without those that do not answer.
    std::vector<std::string> collect_last(std::string mine);
    /// Round trips with rank 0, of which the shortest tells most.
    ClockOffset measure_clock();

    // Those that never wait.

    /// How others call a rank: "rank 3 on host b".
    void set_names(std::vector<std::string> names);
    /// Tells all that the run ends, why and with which exit code. What was told first holds.
    void stop(const std::string& why, int code);
    /// Why the run ends: another rank's words behind its name, or who is cut off. Empty: it goes on, or ends for a
    /// reason of this rank's own.
    std::string stopped() const;
    /// Whether it ends early, whoever said so.
    bool ending() const { return stop_seen_.load(); }
    int stop_code() const { return stop_code_.load(); }
    /// Whether some rank does not answer any more, so that there is no orderly end.
    bool lost() const { return lost_.load(); }

    void attach(Mirror* mirror);  // none: detach
    void ready();
    std::optional<int64_t> start_ns() const;
    void progress(uint64_t ops, bool runs);
    uint64_t ops_elsewhere() const;
    bool others_run() const;
    void ended();
    /// Also where the run was stopped and MPI holds the thread, which would hear it.
    bool all_ended() const { return all_ended_.load() || held(); }
    void hurry() { hurried_ = true; }

    /// After a run: forgets its start and end, so that there can be another.
    void next_run();
    int64_t patience_ns() const { return hurried_.load() ? settings_.moment_ns : settings_.others_have_ns; }

    /// The end of the conversation: waits for all ranks, a while where the run was stopped. True: in order; false: some
    /// rank is lost, and the transport told to end them all with `code`.
    bool end(int code);

private:
    enum class Kind : uint8_t {
        collect,
        announce,
        ping,
        pong,
        alive,
        stop,
        published,
        ready,
        start,
        ended,
        over,
        bye,
        alone
    };
    struct Peer {
        int64_t heard_ns = 0;
        uint64_t ops = 0;
        bool runs = false, ready = false, ended = false, left = false, lost = false;
        Bytes told;  // published counts that are to be sent
    };

    void converse(const Make& make);
    bool turn();
    void heard(uint32_t from, ByteReader& in);
    void heard_state(Kind kind, uint32_t from, ByteReader& in);
    void heard_stop(uint32_t from, ByteReader& in);
    void heard_pong(ByteReader& in);
    void ping();
    void heard_alive(uint32_t from, ByteReader& in);
    void beat(int64_t now);
    void watch(int64_t now);
    void lose(uint32_t who, int64_t now);
    void give_up_setup(int64_t now);
    void agree();
    bool tell_published();
    void rest(bool busy);
    void leave();
    bool only_lost_missing() const;
    void say(uint32_t to, Kind kind, const Bytes& rest = {});
    void say_all(Kind kind, const Bytes& rest = {});
    void post(uint32_t to, Kind kind, Bytes rest = {});
    void stop_here(const std::string& why, int code);
    bool held() const;
    template <class Until>
    void wait(std::unique_lock<std::mutex>& lock, Until until);
    std::string name(uint32_t rank) const;

    ConversationSettings settings_;
    uint32_t rank_ = 0, size_ = 1;
    std::string library_;

    // Of the thread.
    std::unique_ptr<Transport> transport_;
    std::vector<Peer> peers_;
    int64_t beaten_ns_ = 0, busy_ns_ = 0, stopped_ns_ = 0, alone_ns_ = 0;
    bool started_ = false, ready_told_ = false, ended_told_ = false, bye_told_ = false, alone_ = false;
    uint64_t run_seen_ = 0;

    // Under the lock.
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<std::pair<uint32_t, Bytes>> outbox_;
    std::vector<std::map<uint64_t, std::string>> collected_;  // by rank, by number of the call; rank 0
    std::vector<bool> silent_;                                // by rank: it is cut off
    std::map<uint64_t, std::string> announced_;
    uint64_t collects_ = 0, announces_ = 0;
    std::vector<std::string> names_;
    std::string stopped_;
    bool own_stop_ = false;
    int pings_left_ = 0;
    bool ping_out_ = false;
    int64_t pinged_ns_ = 0;
    ClockOffset best_;
    bool leaving_ = false, gone_ = false, done_ = false, orderly_ = false, stuck_ = false;
    int leave_code_ = 0;
    int64_t leaving_ns_ = 0;
    std::exception_ptr failure_;
    bool made_ = false;

    std::mutex mirror_mutex_;
    Mirror* mirror_ = nullptr;
    UniqueFd bell_;  // what tasks ring while the thread sleeps

    std::atomic<int> hot_{0}, stop_code_{0};
    std::atomic<bool> lost_{false}, all_ended_{false}, mine_ready_{false}, mine_ended_{false}, mine_runs_{false};
    std::atomic<bool> setup_{true};  // no run has been attached yet
    std::atomic<bool> others_run_{false}, stop_seen_{false}, hurried_{false};
    std::atomic<uint64_t> mine_ops_{0}, ops_elsewhere_{0}, run_{0};  // run_: number of the present one
    std::atomic<int64_t> start_ns_{0};
    std::atomic<int64_t> turned_ns_{0};  // when the thread was last seen between two calls of the transport
    ClockOffset offset_;                 // as measured last; of the main thread
    std::thread thread_;
};

/// Several texts in one, for share().
std::string pack_texts(const std::vector<std::string>& texts);
std::vector<std::string> unpack_texts(std::string_view bytes);

}  // namespace reprise
