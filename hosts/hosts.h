// SPDX-License-Identifier: MIT
// The ranks of a run as `replay` and `prepare` need them: acquainted, of one version and one log, with their shares.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "formats/oplog/oplog.h"
#include "formats/oplog/ranks.h"
#include "hosts/conversation.h"
#include "hosts/mirror.h"
#include "hosts/shared_root.h"
#include "replay/prepare/prepare_peers.h"
#include "replay/run/peers.h"

namespace reprise {

/// Of the ranks that share a root, those who prepare it.
class RootShare : public PreparePeers {
public:
    RootShare(Conversation& ranks, const RootGroup& group) : ranks_(ranks), group_(group) {}
    uint32_t place() const override { return group_.place; }
    uint32_t count() const override { return static_cast<uint32_t>(group_.members.size()); }
    void gate() override { ranks_.gate(); }

private:
    Conversation& ranks_;
    const RootGroup& group_;
};

class Hosts : public Peers {
public:
    explicit Hosts(const Conversation::Make& make, ConversationSettings settings = {});

    /// Gets acquainted; comes first. Throws Error (machine) where ranks run other versions of reprise, and names them.
    /// `host`: empty: this machine's name.
    void meet(const std::string& version, const std::string& host = {});

    Conversation& ranks() { return *ranks_; }
    /// Hosts among the ranks.
    size_t hosts() const { return host_count_; }
    std::string name_of(uint32_t rank) const;

    /// A log that only some ranks have: rank 0 sends it to all, once. Returns the path to read it by, which may be that
    /// of a file that goes with `received`. Throws Error where rank 0 does not have it, or another file lies there.
    struct Received {
        std::filesystem::path folder;
        ~Received();
    };
    std::filesystem::path fetch_log(const std::filesystem::path& path, Received& received);
    /// All ranks have the same log: throws Error (bad_input) which names those that have another one.
    void check_log(const std::string& fingerprint);

    void set_dealing(const RecordedRanks& recorded);
    /// Which ranks share the root. An engine without one: each for itself.
    void set_root(const std::filesystem::path& root);
    const RootGroup& root_group() const { return root_; }

    /// After a run: what the ranks have to say of it, on rank 0. `result`: bytes that go with it; there, those of all
    /// come back, by rank, empty of a rank that is lost.
    PeersReport report(const PeerRow& mine, std::string result, std::vector<std::string>& results);

    uint32_t rank() const override { return ranks_->rank(); }
    uint32_t size() const override { return ranks_->size(); }
    uint32_t ranks_here() const override { return ranks_here_; }
    bool leads_root() const override { return root_.leads(); }
    const std::vector<uint32_t>& rank_of() const override { return rank_of_; }
    void gate() override { ranks_->gate(); }
    void attach(const Plan& plan, SharedRun& run) override;
    void ready() override { ranks_->ready(); }
    std::optional<int64_t> start_ns() const override { return ranks_->start_ns(); }
    void stop(const std::string& why) override;
    std::string stopped() const override { return ranks_->stopped(); }
    void progress(uint64_t ops, bool runs) override { ranks_->progress(ops, runs); }
    uint64_t ops_elsewhere() const override { return ranks_->ops_elsewhere(); }
    bool others_run() const override { return ranks_->others_run(); }
    void ended() override { ranks_->ended(); }
    bool all_ended() const override { return ranks_->all_ended(); }
    void hurry() override { ranks_->hurry(); }
    void forget() override;
    PeerRow detach(SharedRun& run) override;

private:
    std::unique_ptr<Conversation> ranks_;
    std::vector<std::string> host_of_;  // by rank
    size_t host_count_ = 1;
    uint32_t ranks_here_ = 1;
    RecordedRanks recorded_;
    std::vector<uint32_t> rank_of_;
    RootGroup root_;
    std::unique_ptr<Mirror> mirror_;
    ClockOffset begin_;
};

}  // namespace reprise
