// SPDX-License-Identifier: MIT
// From which change on a metric counts as better or worse: by name, by option or from a file.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace reprise {

/// elapsed, throughput, au, and of each kind of call KIND.p50 and KIND.p99.
std::vector<std::string> metric_names();

class Thresholds {
public:
    /// "elapsed=3%", "p99=20%" (of all kinds) or "read.p99=20%". Throws Error (usage), which names what is near.
    void add(std::string_view text);
    /// Lines of that kind; "#" begins a comment. Throws Error (bad_input) with the number of the line.
    void read(const std::string& file);
    /// As a share.
    double of(std::string_view metric) const;
    const std::map<std::string, double>& given() const { return given_; }

private:
    /// Why `text` is none; empty: it was added.
    std::string try_add(std::string_view text);

    std::map<std::string, double> given_;
};

}  // namespace reprise
