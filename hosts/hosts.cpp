// SPDX-License-Identifier: MIT
#include "hosts/hosts.h"

#include <fcntl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>

#include "formats/support/error.h"
#include "formats/support/limits.h"
#include "hosts/dealing.h"

namespace reprise {
namespace {

namespace fs = std::filesystem;

constexpr size_t kChunk = size_t{1} << 20;

std::string own_host() {
    utsname name{};
    ::uname(&name);
    return name.nodename;
}

std::string listed(const std::vector<std::string>& names) {
    constexpr size_t kShown = 3;
    std::string text;
    for (size_t i = 0; i < std::min(names.size(), kShown); ++i) {
        text += (i == 0 ? "" : ", ") + names[i];
    }
    return names.size() > kShown ? text + " and " + std::to_string(names.size() - kShown) + " more" : text;
}

Bytes packed(const PeerRow& row) {
    Bytes out;
    put_string(out, row.host);
    put_string(out, row.recorded);
    put_string(out, row.ended);
    put_string(out, row.why);
    for (const int64_t value :
         {row.clock.offset_ns, row.clock.uncertainty_ns, row.late_ns, row.elapsed_ns, row.waited_ns}) {
        put_signed(out, value);
    }
    for (const uint64_t value : {row.ops, row.bytes_read, row.bytes_written}) {
        put_varint(out, value);
    }
    put_fixed(out, row.clock.drift_ppm);
    out.push_back(row.clock.drift_known ? 1 : 0);
    out.push_back(static_cast<uint8_t>(row.code));
    return out;
}

PeerRow unpacked(std::string_view bytes) {
    ByteReader in({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
    PeerRow row;
    row.host = in.string();
    row.recorded = in.string();
    row.ended = in.string();
    row.why = in.string();
    for (int64_t* value :
         {&row.clock.offset_ns, &row.clock.uncertainty_ns, &row.late_ns, &row.elapsed_ns, &row.waited_ns}) {
        *value = in.signed_varint();
    }
    for (uint64_t* value : {&row.ops, &row.bytes_read, &row.bytes_written}) {
        *value = in.varint();
    }
    row.clock.drift_ppm = in.fixed<double>();
    row.clock.drift_known = in.byte() != 0;
    row.code = in.byte();
    return row;
}

}  // namespace

Hosts::Hosts(const Conversation::Make& make, ConversationSettings settings)
    : ranks_(std::make_unique<Conversation>(make, std::move(settings))) {}

void Hosts::meet(const std::string& version, const std::string& host) {
    const std::vector<std::string> all = ranks_->share(version + "\n" + (host.empty() ? own_host() : host));
    std::vector<std::string> names, versions, others;
    for (uint32_t rank = 0; rank < all.size(); ++rank) {
        const size_t end = std::min(all[rank].find('\n'), all[rank].size());
        versions.push_back(all[rank].substr(0, end));
        host_of_.push_back(end < all[rank].size() ? all[rank].substr(end + 1) : "?");
        names.push_back(name_of(rank));
        if (versions[rank] != versions[0]) {
            others.push_back(names[rank] + " has " + versions[rank]);
        }
    }
    ranks_here_ = static_cast<uint32_t>(std::count(host_of_.begin(), host_of_.end(), host_of_[rank()]));
    host_count_ = std::set<std::string>(host_of_.begin(), host_of_.end()).size();
    root_.members = {rank()};
    ranks_->set_names(std::move(names));
    if (!others.empty()) {
        throw machine_error("the ranks run different versions of reprise: " + name_of(0) + " has " + versions[0] +
                                ", " + listed(others),
                            "install the same version on all hosts");
    }
}

std::string Hosts::name_of(uint32_t rank) const {
    return "rank " + std::to_string(rank) + " on host " + escape_line(host_of_[rank]);
}

Hosts::Received::~Received() {
    if (!folder.empty()) {
        std::error_code error;
        fs::remove_all(folder, error);
    }
}

fs::path Hosts::fetch_log(const fs::path& path, Received& received) {
    std::error_code error;
    const bool have = fs::exists(path, error);
    const std::vector<std::string> all = ranks_->share(have ? "1" : "0");
    if (all[0] != "1" || std::count(all.begin(), all.end(), "0") == 0) {
        return path;  // where rank 0 has none, it says so itself
    }
    std::ofstream out;
    fs::path here = path;
    if (!have) {
        std::string folder = (fs::temp_directory_path(error) / "reprise-log-XXXXXX").string();
        if (::mkdtemp(folder.data()) == nullptr) {
            throw machine_error("cannot make a folder for the log in " + escape_line(folder) + ": " + reason(errno),
                                "set TMPDIR to a directory with room for it");
        }
        received.folder = folder;
        here = received.folder / path.filename();
        out.open(here, std::ios::binary);
    }
    std::ifstream in;
    if (rank() == 0) {
        in.open(path, std::ios::binary);
    }
    // Chunks that are confirmed, so that a long log does not fill the memory of rank 0. An empty one is the last.
    for (std::string chunk = "?"; !chunk.empty();) {
        if (rank() == 0) {
            chunk.resize(kChunk);
            in.read(chunk.data(), static_cast<std::streamsize>(chunk.size()));
            chunk.resize(static_cast<size_t>(in.gcount()));
        }
        chunk = ranks_->announce(rank() == 0 ? chunk : std::string());
        if (!have) {
            out.write(chunk.data(), static_cast<std::streamsize>(chunk.size()));
        }
        ranks_->collect({});
    }
    out.close();
    if (!have && !out) {
        throw machine_error("cannot write the log to " + escape_line(here.string()),
                            "set TMPDIR to a directory with room for it");
    }
    return here;
}

void Hosts::check_log(const std::string& fingerprint) {
    const std::vector<std::string> all = ranks_->share(fingerprint);
    std::vector<std::string> others;
    for (uint32_t rank = 0; rank < all.size(); ++rank) {
        if (all[rank] != all[0]) {
            others.push_back(name_of(rank));
        }
    }
    if (!others.empty()) {
        throw Error(ExitCode::bad_input, "", "the ranks have different logs: not that of rank 0 have " + listed(others),
                    "copy the log to all hosts, or remove it there: rank 0 sends it then");
    }
}

void Hosts::set_dealing(const RecordedRanks& recorded) {
    recorded_ = recorded;
    rank_of_ = deal(recorded, size());
}

void Hosts::set_root(const fs::path& root) { root_ = group_by_root(*ranks_, root); }

void Hosts::attach(const Plan& plan, SharedRun& run) {
    mirror_ = std::make_unique<Mirror>(plan, run, rank_of_, rank());
    begin_ = ranks_->measure_clock();
    ranks_->attach(mirror_.get());
}

void Hosts::stop(const std::string& why) { ranks_->stop(why, static_cast<int>(ExitCode::machine)); }

void Hosts::forget() {
    ranks_->attach(nullptr);
    mirror_.reset();
}

PeerRow Hosts::detach(SharedRun& run) {
    PeerRow row;
    row.rank = rank();
    row.host = host_of_[rank()];
    row.recorded = dealt_to(recorded_, size(), rank());
    row.clock.offset_ns = begin_.offset_ns;
    row.clock.uncertainty_ns = begin_.uncertainty_ns;
    const int64_t left = run.control().left_line_ns.load();
    row.late_ns = left == INT64_MAX ? 0 : left - run.control().start_ns;
    forget();
    if (!ranks_->stopped().empty() || run.control().stopped()) {
        return row;
    }
    try {
        const ClockOffset end = ranks_->measure_clock();
        const int64_t passed = end.at_ns - begin_.at_ns;
        constexpr int64_t kLeast = 1'000'000'000;  // ns; in less, the round trips tell more of themselves
        row.clock.drift_known = passed >= kLeast;
        row.clock.drift_ppm =
            passed >= kLeast ? static_cast<double>(end.offset_ns - begin_.offset_ns) / static_cast<double>(passed) * 1e6
                             : 0.0;
    } catch (const Error&) {
        // Another rank ended the run meanwhile, and says why.
    }
    return row;
}

PeersReport Hosts::report(const PeerRow& mine, std::string result, std::vector<std::string>& results) {
    const Bytes bytes = packed(mine);
    const std::vector<std::string> all =
        ranks_->collect_last(pack_texts({std::string(bytes.begin(), bytes.end()), std::move(result)}));
    PeersReport report;
    results.assign(all.size(), {});
    int64_t first = INT64_MAX, last = INT64_MIN;
    for (uint32_t rank = 0; rank < all.size(); ++rank) {
        PeerRow row;
        if (all[rank].empty()) {
            row.host = host_of_[rank];
            row.recorded = dealt_to(recorded_, size(), rank);
            row.ended = "lost";
            row.code = static_cast<int>(ExitCode::machine);
        } else {
            std::vector<std::string> texts = unpack_texts(all[rank]);
            texts.resize(2);
            row = unpacked(texts[0]);
            results[rank] = std::move(texts[1]);
            first = std::min(first, row.late_ns);
            last = std::max(last, row.late_ns);
            report.uncertainty_ns = std::max(report.uncertainty_ns, row.clock.uncertainty_ns);
        }
        row.rank = rank;
        report.rows.push_back(std::move(row));
    }
    report.skew_ns = first <= last ? last - first : 0;
    ranks_->next_run();
    return report;
}

}  // namespace reprise
