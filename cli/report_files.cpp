// SPDX-License-Identifier: MIT
// JUnit as Jenkins and GitLab read it; Markdown as GitHub renders it.
#include "cli/report_files.h"

#include "cli/show_regression.h"
#include "formats/support/text_output.h"

namespace reprise::cli {
namespace {

namespace fs = std::filesystem;

struct XmlCounts {
    size_t tests = 0, failures = 0, errors = 0, skipped = 0;
};

class JUnit {
public:
    void check(const std::string& suite, const CheckedThing& thing) {
        begin(suite, thing.name);
        if (!thing.failures.empty()) {
            std::string all;
            for (const std::string& failure : thing.failures) {
                all += failure + "\n";
            }
            element("failure", thing.failures.front(), all);
            ++counts_.failures;
        } else if (!thing.skipped.empty()) {
            element("skipped", thing.skipped, "");
            ++counts_.skipped;
        }
        text_ += "    </testcase>\n";
    }

    void metric(const std::string& suite, const MetricFinding& one) {
        begin(suite, one.name);
        const std::string change = one.change
                                       ? signed_share(one.change->median) + " (95 %: " + signed_share(one.change->low) +
                                             " to " + signed_share(one.change->high) + ")"
                                       : "no change can be given";
        switch (one.finding) {
            case Finding::worse:
                element("failure", one.name + " " + change,
                        "threshold " + signed_share(one.threshold) + ", p " + std::to_string(one.p_adjusted));
                ++counts_.failures;
                break;
            case Finding::few:
                element("error", "too few runs for a verdict", "");
                ++counts_.errors;
                break;
            case Finding::noisy:
                element("skipped", "too noisy: " + change, "");
                ++counts_.skipped;
                break;
            case Finding::same:
            case Finding::better: text_ += "      <system-out>" + xml_escaped(change) + "</system-out>\n"; break;
        }
        text_ += "    </testcase>\n";
    }

    std::string finish(const std::string& title) const {
        const std::string attributes = " name=\"" + xml_escaped(title) + "\" tests=\"" + std::to_string(counts_.tests) +
                                       "\" failures=\"" + std::to_string(counts_.failures) + "\" errors=\"" +
                                       std::to_string(counts_.errors) + "\" skipped=\"" +
                                       std::to_string(counts_.skipped) + "\"";
        return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites" + attributes + ">\n  <testsuite" + attributes +
               ">\n" + text_ + "  </testsuite>\n</testsuites>\n";
    }

private:
    void begin(const std::string& suite, const std::string& name) {
        ++counts_.tests;
        text_ += "    <testcase classname=\"" + xml_escaped(suite) + "\" name=\"" + xml_escaped(name) + "\">\n";
    }
    void element(const char* kind, const std::string& message, const std::string& body) {
        text_ += "      <" + std::string(kind) + " message=\"" + xml_escaped(message) + "\">" + xml_escaped(body) +
                 "</" + kind + ">\n";
    }

    XmlCounts counts_;
    std::string text_;
};

std::string bold(const std::string& sentence) {
    const size_t colon = sentence.find(':');
    return colon == std::string::npos
               ? markdown_escaped(sentence)
               : "**" + markdown_escaped(sentence.substr(0, colon)) + "**" + markdown_escaped(sentence.substr(colon));
}

std::string markdown_of(const Regression& regression) {
    std::string text;
    for (const std::string& sentence : regression.sentences()) {
        text += bold(sentence) + "\n\n";
    }
    for (const MarkedRun& run : regression.marked) {
        text += std::string(run.left_out ? "Left out: " : "Doubtful: ") + markdown_escaped(run.run + ": " + run.why) +
                "\n\n";
    }
    for (const std::string& note : regression.notes) {
        text += markdown_escaped(note) + "\n\n";
    }
    text += "| metric | " + markdown_escaped(regression.side_a) + " | " + markdown_escaped(regression.side_b) +
            " | change | 95 % | verdict |\n|---|---|---|---|---|---|\n";
    for (const MetricFinding& one : regression.metrics) {
        const bool single = one.runs_a == 1 && one.runs_b == 1;
        text += "| " + one.name + " | " + metric_value(one.name, one.a.median) + " | " +
                metric_value(one.name, one.b.median) + " | " +
                (one.change ? signed_share(one.change->median) : std::string("-")) + " | " +
                (one.change && !single ? signed_share(one.change->low) + " to " + signed_share(one.change->high)
                                       : std::string("-")) +
                " | " + std::string(finding_name(one.finding)) + " |\n";
    }
    return text + "\n";
}

}  // namespace

std::string xml_escaped(std::string_view text) {
    std::string out;
    for (const char c : printable(text)) {
        switch (c) {
            case '&': out += "&amp;"; break;
            case '<': out += "&lt;"; break;
            case '>': out += "&gt;"; break;
            case '"': out += "&quot;"; break;
            default: out += c;
        }
    }
    return out;
}

std::string markdown_escaped(std::string_view text) {
    std::string out;
    for (const char c : printable(text)) {
        if (c == '<') {
            out += "&lt;";
            continue;
        }
        if (std::string_view("\\`*_|[]#~").find(c) != std::string_view::npos) {
            out += '\\';
        }
        out += c;
    }
    return out;
}

void write_text(const fs::path& path, std::string_view text) {
    TextOutput out(path);
    out.text = text;
    out.finish();
}

std::string junit_xml(const std::string& title, const std::vector<RegressionCase>& cases) {
    JUnit out;
    for (const RegressionCase& one : cases) {
        for (const CheckedThing& thing : one.checks) {
            out.check(one.name, thing);
        }
        for (const Regression& regression : one.comparisons) {
            const std::string name = one.name + (regression.name.empty() ? "" : ": " + regression.name);
            if (!regression.other_cache.empty()) {
                out.check(name, {"page cache", {regression.other_cache}, ""});
            }
            for (const MetricFinding& metric : regression.metrics) {
                out.metric(name, metric);
            }
        }
    }
    return out.finish(title);
}

std::string markdown_text(const std::string& title, const std::vector<RegressionCase>& cases) {
    std::string text = "## " + markdown_escaped(title) + "\n\n";
    for (const RegressionCase& one : cases) {
        if (cases.size() > 1 || !one.checks.empty()) {
            text += "### " + markdown_escaped(one.name) + "\n\n";
        }
        for (const CheckedThing& thing : one.checks) {
            const std::string what =
                thing.failures.empty() ? thing.skipped.empty() ? "ok" : "not checked: " + thing.skipped : "**FAILED**";
            text += "- " + markdown_escaped(thing.name) + ": " +
                    (thing.failures.empty() ? markdown_escaped(what) : what) + "\n";
            for (const std::string& failure : thing.failures) {
                text += "  - " + markdown_escaped(failure) + "\n";
            }
        }
        text += one.checks.empty() ? "" : "\n";
        for (const Regression& regression : one.comparisons) {
            text += (regression.name.empty() ? "" : "#### " + markdown_escaped(regression.name) + "\n\n") +
                    markdown_of(regression);
        }
    }
    return text;
}

}  // namespace reprise::cli
