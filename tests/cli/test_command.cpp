// SPDX-License-Identifier: MIT
// The registry: parsing, help, completion and exit codes of a command that is
// there for this test only.
#include "cli/command.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <new>
#include <sstream>
#include <stdexcept>

#include "cli/help.h"
#include "cli/json_output.h"
#include "cli/options.h"
#include "formats/support/error.h"
#include "tests/support.h"

namespace reprise::cli {

namespace {

std::string last_run;

int run_probe(const po::variables_map& values) {
    const auto& first = values["in"].as<std::string>();
    if (first == "bad") {
        throw bad_input(at("x.oplog", 4096), "block checksum differs", "copy it again");
    }
    if (first == "machine") {
        throw machine_error("no space left", "free some");
    }
    if (first == "memory") {
        throw std::bad_alloc();
    }
    if (first == "system") {
        throw std::filesystem::filesystem_error("no", std::make_error_code(std::errc::io_error));
    }
    if (first == "bug") {
        throw std::logic_error("surprise");
    }
    last_run = first + " " + values["pace"].as<std::string>() + " " + std::to_string(values["jobs"].as<int>());
    for (const auto& rest :
         values.count("rest") != 0 ? values["rest"].as<std::vector<std::string>>() : std::vector<std::string>{}) {
        last_run += " " + rest;
    }
    return first == "fails" ? 1 : 0;
}

void probe_options(po::options_description& add) {
    add.add_options()("pace,p", po::value<std::string>()->value_name("PACE")->default_value("causal"), "when to issue")(
        "jobs,j", po::value<int>()->value_name("N")->default_value(4), "how many at once")(
        "out,o", po::value<std::string>()->value_name("FILE"), "what to write");
    add_json_option(add);
}

const Registration registration{{
    .name = "probe",
    .group = Group::replay,
    .summary = "do what the test asks",
    .help = "First paragraph.\n\nSecond paragraph.",
    .examples = {{"reprise probe a b", "probe them"}},
    .options = probe_options,
    .positionals = {{.name = "in", .label = "IN"}, {.name = "rest", .label = "REST", .least = 0, .most = -1}},
    .choices = {{"pace", {"causal", "timed", "afap"}}},
    .run = run_probe,
}};

const Registration runner{{
    .name = "runner",
    .group = Group::hidden,
    .summary = "run what the test asks",
    .help = "As probe.",
    .examples = {{"reprise runner a b", "run a"}},
    .options = probe_options,
    .positionals = {{.name = "in", .label = "IN"}, {.name = "rest", .label = "REST", .least = 0, .most = -1}},
    .runs_program = true,
    .run = run_probe,
}};

/// Takes what a stream says while it lives.
struct Captured {
    std::ostream& stream;
    std::ostringstream text;
    std::streambuf* before;
    explicit Captured(std::ostream& from) : stream(from), before(from.rdbuf(text.rdbuf())) {}
    ~Captured() { stream.rdbuf(before); }
    Captured(const Captured&) = delete;
    Captured& operator=(const Captured&) = delete;
};

struct Outcome {
    int code;
    std::string out;
    std::string err;
};

Outcome outcome(const std::vector<std::string>& arguments) {
    const Captured out(std::cout);
    const Captured err(std::cerr);
    last_run.clear();
    const int code = run_main(arguments);
    return {code, out.text.str(), err.text.str()};
}

bool has(const std::string& text, const std::string& part) {
    CAPTURE(text);
    CAPTURE(part);
    CHECK(text.find(part) != std::string::npos);
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a command gets its options, defaults and positionals") {
    CHECK(outcome({"probe", "a"}).code == 0);
    CHECK(last_run == "a causal 4");
    CHECK(outcome({"probe", "a", "-j", "7", "b", "--pace=afap", "c"}).code == 0);
    CHECK(last_run == "a afap 7 b c");
    // What follows "--" is never an option.
    CHECK(outcome({"probe", "-p", "timed", "--", "a", "--jobs", "-x"}).code == 0);
    CHECK(last_run == "a timed 4 --jobs -x");
    CHECK(outcome({"probe", "fails"}).code == 1);
}

TEST_CASE("options of a command that runs a program end at the program") {
    const std::vector<std::pair<std::vector<std::string>, std::string>> lines = {
        {{"runner", "sh", "-c", "true"}, "sh causal 4 -c true"},
        {{"runner", "-p", "timed", "sh", "-j", "7", "--json"}, "sh timed 4 -j 7 --json"},
        {{"runner", "--pace", "timed", "-j7", "sh", "--"}, "sh timed 7 --"},
        {{"runner", "-vp", "afap", "--", "-x", "-p"}, "-x afap 4 -p"},
        {{"runner", "--pace=afap", "sh", "-p", "timed"}, "sh afap 4 -p timed"},
        {{"runner", "--json", "sh", "--pace"}, "sh causal 4 --pace"},
        {{"runner", "-", "-p"}, "- causal 4 -p"},
    };
    for (const auto& [arguments, expected] : lines) {
        const auto& this_expected = expected;  // clang 14 has no capture of bindings
        CAPTURE(this_expected);
        CHECK(outcome(arguments).code == 0);
        CHECK(last_run == expected);
    }
    CHECK(outcome({"runner", "-x", "sh"}).code == 2);
    CHECK(outcome({"runner", "-p"}).code == 2);
    CHECK(outcome({"runner"}).code == 2);
    set_verbosity(0);
}

TEST_CASE("-q and -v count before and after the command") {
    outcome({"probe", "a"});
    CHECK(verbosity() == 0);
    outcome({"-v", "probe", "a", "-v", "-v"});
    CHECK(verbosity() == 3);
    outcome({"probe", "a", "-vv"});
    CHECK(verbosity() == 2);
    outcome({"probe", "-q", "a"});
    CHECK(quiet());
    outcome({"-q", "probe", "a"});
    CHECK(quiet());
    set_verbosity(0);
}

TEST_CASE("--json alone prints, --json=FILE writes, and neither takes the next word") {
    const auto target = [](const std::vector<std::string>& arguments) {
        const po::variables_map values = parse(*find_command("probe"), arguments);
        return std::pair{json_wanted(values), json_alone(values)};
    };
    CHECK(target({"a"}) == std::pair{false, false});
    CHECK(target({"a", "--json"}) == std::pair{true, true});
    CHECK(target({"a", "--json=-"}) == std::pair{true, true});
    CHECK(target({"a", "--json=no-such.json"}) == std::pair{true, false});
    CHECK(outcome({"probe", "--json", "a", "b"}).code == 0);
    CHECK(last_run == "a causal 4 b");
    const test::TempDir dir;
    const std::string file = dir / "there.json";
    std::ofstream(file) << "{}";
    Outcome result = outcome({"probe", "a", "--json=" + file});
    CHECK(result.code == 2);
    has(result.err, "there.json exists\n  use --force");
    CHECK(outcome({"probe", "a", "-f", "--json=" + file}).code == 0);
    result = outcome({"probe", file, "-f", "--json=" + file});
    CHECK(result.code == 2);
    has(result.err, "would overwrite");
}

TEST_CASE("mistakes are usage errors that name themselves") {
    const std::vector<std::pair<std::vector<std::string>, std::string>> mistakes = {
        {{"probe"}, "missing IN"},
        {{"probe", "a", "--pace", "slow"}, "expected one of: causal, timed, afap"},
        {{"probe", "a", "-j", "many"}, "many"},
        {{"probe", "a", "--jobs"}, "--jobs"},
        {{"probe", "a", "-j", "1", "-j", "2"}, "--jobs"},
        {{"probe", "a", "--job", "2"}, "--job"},  // no guessing
        {{"probe", "a", "--json="}, "--json"},
        {{"probe", "a", "--json=/"}, "--json=/ is a directory"},
        {{"prbe", "a"}, "did you mean: probe"},
        {{"pro"}, "did you mean: probe"},
        {{std::string(5000, 'x')}, "is not a command"},
        {{""}, "is not a command"},
    };
    for (const auto& [arguments, expected] : mistakes) {
        const Outcome result = outcome(arguments);
        CHECK(result.code == 2);
        CHECK(result.err.starts_with("reprise: "));
        has(result.err, expected);
        CHECK(result.out.empty());
        CHECK(last_run.empty());
    }
}

TEST_CASE("what a command throws becomes a message and an exit code") {
    Outcome result = outcome({"probe", "bad"});
    CHECK(result.code == 3);
    CHECK(result.err == "reprise: x.oplog:4096: block checksum differs\n  copy it again\n");
    CHECK(outcome({"probe", "machine"}).code == 4);
    CHECK(outcome({"probe", "memory"}).code == 4);
    CHECK(outcome({"probe", "system"}).code == 4);
    result = outcome({"probe", "bug"});
    CHECK(result.code == 4);
    has(result.err, "internal error");
}

TEST_CASE("help, completion and man page say what the registration says") {
    const Outcome help = outcome({"probe", "a", "--help"});
    CHECK(help.code == 0);
    CHECK(last_run.empty());
    has(help.out, "usage: reprise probe [OPTION...] IN [REST...]");
    has(help.out, "First paragraph.\n\nSecond paragraph.\n\n");
    has(help.out, "-p, --pace PACE");
    has(help.out, "when to issue: causal, timed, afap [default causal]");
    has(help.out, "-j, --jobs N");
    has(help.out, "    --json[=FILE]");
    has(help.out, "-f, --force");
    has(help.out, "reprise probe a b");
    has(overview_text(), "Replay\n  probe  do what the test asks\n");
    const std::string script = bash_completion_script();
    has(script, "probe:--pace|probe:-p) reply='causal timed afap'; value=1 ;;");
    has(script, "probe:--out|probe:-o) reply=''; value=1 ;;");
    has(script, "probe) reply='--pace -p --jobs -j --out -o --json --force -f --help -h --quiet -q --verbose -v' ;;");
    has(zsh_completion_script(),
        "'(-p --pace)'{-p+,--pace=}'[when to issue\\: causal, timed, afap \\[default causal\\]]:PACE:(causal timed "
        "afap)'");
    has(zsh_completion_script(), "':IN:_files'");
    has(script, "probe:--json) reply=''; value=$joined ;;");
    has(zsh_completion_script(), "'--json=-[print the result as JSON");
    has(fish_completion_script(), "-n '__reprise_in probe' -l json -F -d");
    has(fish_completion_script(), "-n '__reprise_in probe' -s p -l pace -x -a 'causal timed afap' -d 'when to issue");
    has(man_page(), ".BR reprise\\-probe (1)\n\\&do what the test asks");
    const std::string page = man_page(*find_command("probe"));
    has(page, ".TH REPRISE\\-PROBE 1");
    has(page, "[\\fIOPTION\\fR...]\\& IN [REST...]");
    has(page, "\\-\\-pace PACE");
}

}  // namespace reprise::cli
