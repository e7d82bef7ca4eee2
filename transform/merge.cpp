// SPDX-License-Identifier: MIT
#include "transform/merge.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include "formats/oplog/header_facts.h"
#include "formats/oplog/ranks.h"
#include "formats/support/error.h"
#include "formats/support/one_line.h"
#include "transform/merge_clocks.h"
#include "transform/merge_header.h"
#include "transform/merge_messages.h"
#include "transform/merge_tables.h"

namespace reprise {
namespace {

namespace fs = std::filesystem;

/// Of a log: the greatest numbers of mappings and requests, and when it begins.
struct Survey {
    uint32_t maps = 0, requests = 0;
    int64_t begin = INT64_MAX, end = INT64_MIN;
};

class Merge {
public:
    Merge(const std::vector<fs::path>& paths, const MergeOptions& options) : options_(options) {
        open(paths);
        check_merged_ranks(readers(), options.allow_missing);
        std::vector<const Header*> headers;
        for (const LogReader& log : logs_) {
            headers.push_back(&log.header());
            total_ += log.op_count() * 2;
        }
        clocks_ = std::make_unique<MergeClocks>(headers);
        for (size_t log = 0; log < logs_.size(); ++log) {
            machine_.push_back(log);
            for (size_t other = 0; other < log; ++other) {
                if (clocks_->same_clock(log, other)) {
                    machine_[log] = machine_[other];
                    break;
                }
            }
        }
        messages_ = std::make_unique<MergeMessages>(readers(), machine_);
    }

    MergeResult write(const fs::path& output) {
        survey();
        messages_->each_message(
            [&](size_t from, size_t to, int64_t sent, int64_t received) { clocks_->see(from, to, sent, received); });
        clocks_->correct();
        align();
        const std::vector<RankEdge> edges = messages_->edges([&](size_t log) { return offset(log); });
        LogWriter writer(output, merged_header(readers(), offset(0)), options_.writer);
        try {
            fill(writer, edges);
            note(writer, edges.size());
            writer.finish();
        } catch (...) {
            writer.discard();
            throw;
        }
        return std::move(result_);
    }

private:
    std::vector<const LogReader*> readers() const {
        std::vector<const LogReader*> out;
        for (const LogReader& log : logs_) {
            out.push_back(&log);
        }
        return out;
    }

    void open(const std::vector<fs::path>& paths) {
        for (const fs::path& path : paths) {
            logs_.emplace_back(path);
        }
        std::stable_sort(logs_.begin(), logs_.end(), [](const LogReader& a, const LogReader& b) {
            return read_fact(a.header(), fact::rank).value_or(0) < read_fact(b.header(), fact::rank).value_or(0);
        });
    }

    void tell(uint64_t ops) {
        done_ += ops;
        if (options_.progress) {
            options_.progress(done_, total_);
        }
    }

    void survey() {
        OpBlock block;
        for (size_t log = 0; log < logs_.size(); ++log) {
            Survey& of = surveys_.emplace_back();
            for (const BlockInfo& where : logs_[log].blocks()) {
                logs_[log].decode(where, block);
                for (size_t i = 0; i < block.count(); ++i) {
                    of.maps = std::max(of.maps, block.map[i]);
                    of.requests = std::max(of.requests, block.request[i]);
                }
                of.begin = std::min(of.begin, where.begin);
                of.end = std::max(of.end, where.end);
                messages_->see(log, block);
                logs_[log].forget(where);
                tell(where.ops);
            }
        }
    }

    /// The merged log begins where the first of the logs does.
    void align() {
        int64_t first = INT64_MAX, last_begin = INT64_MIN, first_end = INT64_MAX;
        for (size_t log = 0; log < logs_.size(); ++log) {
            if (surveys_[log].begin > surveys_[log].end) {
                continue;  // no ops
            }
            first = std::min(first, surveys_[log].begin + clocks_->offset(log));
            last_begin = std::max(last_begin, surveys_[log].begin + clocks_->offset(log));
            first_end = std::min(first_end, surveys_[log].end + clocks_->offset(log));
        }
        if (last_begin > first_end) {
            throw bad_input(logs_.back().path().string(),
                            "the logs do not overlap in time: one rank had ended when another began",
                            "merge the logs of one run; if it was one, the hosts' wall clocks are far apart");
        }
        start_ = first == INT64_MAX ? 0 : first;
    }
    int64_t offset(size_t log) const { return clocks_->offset(log) - start_; }

    void fill(LogWriter& writer, const std::vector<RankEdge>& edges) {
        MergeTables tables(writer);
        std::vector<uint32_t> ranks{kNoRank};
        for (size_t log = 0; log < logs_.size(); ++log) {
            rows_.push_back(tables.add(logs_[log], machine_[log], surveys_[log].maps, surveys_[log].requests));
            ranks.resize(writer.tables().processes.size(), static_cast<uint32_t>(log));
        }
        // Their own numbers, unless so many are missing that a log could not state them (formats/oplog/ranks.h).
        const auto own = [&](uint32_t log) {
            return static_cast<uint32_t>(*read_fact(logs_[log].header(), fact::rank));
        };
        if (own(static_cast<uint32_t>(logs_.size() - 1)) < ranks.size()) {
            std::transform(ranks.begin() + 1, ranks.end(), ranks.begin() + 1, own);
        }
        const uint64_t unmatched = tables.messages_unmatched();
        writer.count(Count::messages_unmatched, unmatched - std::min(unmatched, messages_->received()));
        result_.files_shared = tables.shared_files();
        result_.files = writer.tables().files.size() - 1;
        write_ranks(writer.header(), writer.tables(), ranks);
        copy_ops(writer, edges);
        keep_merged_derived(
            readers(), rows_, [&](size_t log) { return offset(log); }, writer);
    }

    void copy_ops(LogWriter& writer, const std::vector<RankEdge>& edges) {
        struct Part {
            size_t log;
            BlockInfo block;
        };
        std::vector<Part> parts;
        for (size_t log = 0; log < logs_.size(); ++log) {
            for (const BlockInfo& block : logs_[log].blocks()) {
                parts.push_back({log, block});
            }
        }
        // In the order of time, so that what happened together lies together; of a task its blocks stay in order.
        std::stable_sort(parts.begin(), parts.end(), [&](const Part& a, const Part& b) {
            return a.block.begin + offset(a.log) < b.block.begin + offset(b.log);
        });
        OpBlock block;
        for (const Part& part : parts) {
            logs_[part.log].decode(part.block, block);
            copy_block(writer, part.log, block, edges);
            logs_[part.log].forget(part.block);
            tell(part.block.ops);
        }
    }

    void copy_block(LogWriter& writer, size_t log, const OpBlock& block, const std::vector<RankEdge>& edges) {
        const MergedRows& rows = rows_[log];
        const TaskId task = rows.task(block.task);
        const auto before = [](const RankEdge& a, const RankEdge& b) {
            return std::tie(a.log, a.task, a.op) < std::tie(b.log, b.task, b.op);
        };
        auto edge = std::lower_bound(edges.begin(), edges.end(),
                                     RankEdge{static_cast<uint32_t>(log), block.task, block.first, 0, 0, 0}, before);
        std::vector<Edge> own;
        for (size_t i = 0; i < block.count(); ++i) {
            Op op = block.row(i);
            rows.change(op, own);
            for (; edge != edges.end() && edge->log == log && edge->task == block.task && edge->op == block.first + i;
                 ++edge) {
                own.push_back(
                    {rows_[edge->source_log].task(edge->source_task), EdgeKind::message, 100, edge->source_op});
            }
            op.edges = own;
            op.begin += offset(log);
            writer.append(task, op);
        }
        result_.ops += block.count();
    }

    void note(LogWriter& writer, uint64_t edges) {
        result_.ranks = logs_.size();
        result_.connections = messages_->connections();
        result_.waits = messages_->waits();
        result_.edges = edges;
        result_.dropped = messages_->dropped();
        writer.count(Count::merge_messages_dropped, messages_->dropped());
        writer.count(Count::merge_connections_older, messages_->older());
        std::string how;
        for (size_t log = 0; log < logs_.size(); ++log) {
            MergedLog one;
            one.path = logs_[log].path();
            one.rank = static_cast<uint32_t>(*read_fact(logs_[log].header(), fact::rank));
            one.host = logs_[log].header().host;
            one.ops = logs_[log].op_count();
            one.offset_ns = offset(log);
            one.corrected_ns = clocks_->corrected(log);
            one.error_ns = clocks_->error(log);
            one.clock = clocks_->how(log);
            how += (how.empty() ? "" : "; ") + std::string("rank ") + std::to_string(one.rank) + ": " + one.clock;
            result_.logs.push_back(std::move(one));
        }
        write_fact(writer.header(), fact::merged, how);
        const auto world = static_cast<uint64_t>(read_fact(logs_[0].header(), fact::ranks_world).value_or(0));
        writer.count(Count::merge_ranks_missing, world > logs_.size() ? world - logs_.size() : 0);
        count_files_of_hosts(writer);
    }

    /// Files of one path of which each machine has its own.
    void count_files_of_hosts(LogWriter& writer) const {
        if (std::set<size_t>(machine_.begin(), machine_.end()).size() == 1) {
            return;
        }
        std::map<StringId, std::set<std::pair<uint64_t, uint64_t>>> by_path;
        for (const FileRow& row : writer.tables().files) {
            if (row.inode != 0 && row.type == FileType::regular && row.role != Role::program &&
                row.role != Role::system) {
                by_path[row.path].insert({row.device, row.inode});
            }
        }
        const auto several =
            std::count_if(by_path.begin(), by_path.end(), [](const auto& each) { return each.second.size() > 1; });
        writer.count(Count::merge_files_of_hosts, static_cast<uint64_t>(several));
    }

    const MergeOptions& options_;
    std::vector<LogReader> logs_;  // by rank
    std::vector<size_t> machine_;
    std::unique_ptr<MergeClocks> clocks_;
    std::unique_ptr<MergeMessages> messages_;
    std::vector<Survey> surveys_;
    std::vector<MergedRows> rows_;
    int64_t start_ = 0;
    uint64_t done_ = 0, total_ = 0;
    MergeResult result_;
};

}  // namespace

MergeResult merge_logs(const std::vector<fs::path>& logs, const fs::path& output, const MergeOptions& options) {
    if (logs.size() < 2) {
        throw usage_error("merge needs the logs of at least two ranks",
                          "e.g. reprise merge job.rank*.oplog -o job.oplog");
    }
    return Merge(logs, options).write(output);
}

}  // namespace reprise
