// SPDX-License-Identifier: MIT
// check_program EXPECT LOG [--no-touch]: compares an op log, op by op and field by field, with what the program that
// was recorded wrote down. Exit code 0 where all agree, 1 with the first differences of every task where not.
//
// Compared are the calls on files below the program's root (and the kinds it names as its scope); what the loader and
// the C library do elsewhere is left out. Handles, mappings and requests are numbers of the log and labels of the
// program: each label must always be the same number, and no two labels one number.
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string_view>

#include "formats/oplog/oplog.h"
#include "tests/programs/support/program_scope.h"

namespace {

using namespace reprise;
using reprise::test::ProgramScope;

struct ExpectedOp {
    int line = 0;
    std::string kind;
    std::map<std::string, std::string> fields;  // with `result`
};

struct Expectation {
    std::string root;
    std::set<std::string> scope;
    std::map<int32_t, std::vector<ExpectedOp>> tasks;  // by thread id
};

std::string unquoted(const std::string& text) {
    return text.size() >= 2 && text.front() == '"' ? text.substr(1, text.size() - 2) : text;
}

Expectation read_expectation(const char* path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) {
        throw std::runtime_error(std::string(path) + ": cannot be read");
    }
    std::stringstream whole;
    whole << in.rdbuf();
    std::string text = whole.str();
    text.resize(std::strlen(text.c_str()));  // zeros follow the last line
    std::istringstream lines(text);
    Expectation out;
    std::string line, word;
    for (int number = 1; std::getline(lines, line); ++number) {
        std::istringstream words(line);
        int32_t tid = 0;
        ExpectedOp op;
        op.line = number;
        if (!(words >> tid >> op.kind)) {
            throw std::runtime_error("line " + std::to_string(number) + ": " + line);
        }
        if (op.kind == "root") {
            words >> out.root;
        }
        if (op.kind == "root" || op.kind == "raw" || op.kind.starts_with("seed_")) {  // see check_raw
            continue;
        }
        while (words >> word) {
            const size_t equals = word.find('=');
            if (op.kind == "scope") {
                out.scope.insert(word);
            } else if (equals == std::string::npos) {
                throw std::runtime_error("line " + std::to_string(number) + ": no FIELD=VALUE: " + word);
            } else {
                op.fields[word.substr(0, equals)] = unquoted(word.substr(equals + 1));
            }
        }
        if (op.kind != "scope") {
            out.tasks[tid].push_back(op);
        }
    }
    if (out.root.empty()) {
        throw std::runtime_error(std::string(path) + ": no line names the root");
    }
    return out;
}

// Labels of the program and numbers of the log, one to one.
class Bijection {
public:
    bool same(const std::string& label, uint64_t id) {
        if ((label == "-") != (id == 0)) {
            return false;
        }
        const auto [a, new_label] = of_label_.emplace(label, id);
        const auto [b, new_id] = of_id_.emplace(id, label);
        return a->second == id && b->second == label;
    }

    // 0: not seen yet.
    uint64_t of(const std::string& label) const {
        const auto found = of_label_.find(label);
        return found == of_label_.end() ? 0 : found->second;
    }

private:
    std::map<std::string, uint64_t> of_label_;
    std::map<uint64_t, std::string> of_id_;
};

class Check {
public:
    Check(const Expectation& expected, const LogReader& log, bool touches)
        : expected_(expected), log_(log), touches_(touches), scope_(log, expected.root, expected.scope) {}

    int run() {
        std::map<int32_t, TaskId> by_tid;
        for (TaskId id = 1; id < log_.tables().tasks.size(); ++id) {
            by_tid[log_.tables().tasks[id].tid] = id;
        }
        for (const auto& [tid, ops] : expected_.tasks) {
            const auto found = by_tid.find(tid);
            if (found == by_tid.end()) {
                differs(tid, "the log has no such task");
                continue;
            }
            task(tid, found->second, ops);
            by_tid.erase(found);
        }
        for (const auto& [tid, id] : by_tid) {
            log_.for_each(id, [&, number = tid](const Op& op, uint64_t n) {
                if (in_scope(op)) {
                    differs(number, "the program did not make this: " + text(op) + " (op " + std::to_string(n) + ")");
                }
            });
        }
        if (differences_ == 0) {
            std::printf("%zu ops of %zu tasks as expected\n", compared_, expected_.tasks.size());
        }
        return differences_ == 0 ? 0 : 1;
    }

private:
    struct Held {
        Op op;
        std::vector<int64_t> list;
        std::vector<Edge> edges;
        uint64_t number;
    };
    using Pages = std::map<std::pair<std::string, int64_t>, std::set<int64_t>>;

    bool in_scope(const Op& op) const { return (touches_ || op.kind != OpKind::touch) && scope_.has(op); }

    void differs(int32_t tid, const std::string& what) {
        ++differences_;
        std::printf("task %d: %s\n", tid, what.c_str());
    }

    std::string text(const Op& op) const { return reprise::test::op_text(log_.tables(), op, expected_.root); }
    static std::string text(const ExpectedOp& op) {
        std::string out = "line " + std::to_string(op.line) + ": " + op.kind;
        for (const auto& [name, value] : op.fields) {
            out += " " + name + "=" + value;
        }
        return out;
    }

    void task(int32_t tid, TaskId id, const std::vector<ExpectedOp>& expected) {
        std::vector<Held> ops;
        results_.clear();
        log_.for_each(id, [&](const Op& op, uint64_t n) {
            if (info(op.kind).is(Trait::completes)) {
                results_[n] = op.request;
            }
            // What came before the program itself: the recorder's start.
            if (op.kind == OpKind::exec && op.result >= 0 && id == 1 && !started_) {
                started_ = true;
                ops.clear();
            }
            if (!in_scope(op)) {
                return;
            }
            ops.push_back({op, {op.list.begin(), op.list.end()}, {op.edges.begin(), op.edges.end()}, n});
            ops.back().op.list = {};
            ops.back().op.edges = {};
        });
        size_t e = 0, o = 0, before = differences_;
        const auto skip_touches = [&] {
            while (!touches_ && e < expected.size() && expected[e].kind == "touch") {
                ++e;
            }
        };
        for (skip_touches(); e < expected.size() && o < ops.size(); skip_touches()) {
            if (touches_ && expected[e].kind == "touch" && ops[o].op.kind == OpKind::touch) {
                touched(tid, expected, e, ops, o);
                continue;
            }
            Held& held = ops[o++];
            held.op.list = held.list;
            held.op.edges = held.edges;
            const ExpectedOp& want = expected[e++];
            ++compared_;
            const std::string wrong = compare(want, held.op);
            if (wrong.empty()) {
                continue;
            }
            differs(tid, wrong + "\n    expected " + text(want) + "\n    log      op " + std::to_string(held.number) +
                             ": " + text(held.op));
            if (want.kind != info(held.op.kind).name || differences_ - before >= 5) {
                return;  // the rest would be noise
            }
        }
        for (; e < expected.size(); ++e, skip_touches()) {
            if (e >= expected.size()) {
                break;
            }
            return differs(tid, "not in the log: " + text(expected[e]));
        }
        if (o < ops.size()) {
            ops[o].op.list = ops[o].list;
            differs(tid, "the program did not make this: " + text(ops[o].op));
        }
    }

    // Runs of touches are compared as the sets of pages they are.
    void touched(int32_t tid, const std::vector<ExpectedOp>& expected, size_t& e, std::vector<Held>& ops, size_t& o) {
        const int line = expected[e].line;
        Pages want, got;
        for (; e < expected.size() && expected[e].kind == "touch"; ++e) {
            const auto& fields = expected[e].fields;
            want[{fields.at("map"), std::stoll(fields.at("flags"))}].insert(std::stoll(fields.at("offset")));
            ++compared_;
        }
        for (; o < ops.size() && ops[o].op.kind == OpKind::touch; ++o) {
            const Op& op = ops[o].op;
            std::string label = "map " + std::to_string(op.map);
            for (const auto& [key, pages] : want) {
                if (maps_.same(key.first, op.map)) {
                    label = key.first;
                }
            }
            auto& pages = got[{label, op.flags}];
            const auto range = [&](int64_t from, int64_t size) {
                for (int64_t at = from & ~int64_t{4095}; at < from + size; at += 4096) {
                    pages.insert(at);
                }
            };
            int64_t at = op.offset;
            if (ops[o].list.empty()) {
                range(at, op.size);
            }
            for (size_t k = 0; k + 1 < ops[o].list.size(); k += 2) {
                at += ops[o].list[k];
                range(at, ops[o].list[k + 1]);
                at += ops[o].list[k + 1];
            }
        }
        if (want == got) {
            return;
        }
        const auto show = [](const Pages& all) {
            std::string out;
            for (const auto& [key, pages] : all) {
                out += " " + key.first + (key.second ? " written:" : " read:");
                for (const int64_t page : pages) {
                    out += " " + std::to_string(page);
                }
            }
            return out;
        };
        differs(tid, "other pages touched at line " + std::to_string(line) + "\n    expected" + show(want) +
                         "\n    log     " + show(got));
    }

    // What is wrong with an op, or nothing.
    std::string compare(const ExpectedOp& want, const Op& op) {
        const OpInfo& row = info(op.kind);
        if (want.kind != row.name) {
            return "another op";
        }
        for (const auto& [name, value] : want.fields) {
            bool known = name == "result" || name == "reaped" || name == "needs";
            for (const FieldInfo& field : all_fields()) {
                known = known || (field.name == name && row.has(field.field));
            }
            if (!known) {
                return "the program speaks of a field that the kind has not: " + name;
            }
        }
        for (const FieldInfo& field : all_fields()) {
            if (!row.has(field.field)) {
                continue;
            }
            const auto value = want.fields.find(std::string(field.name));
            if (value == want.fields.end()) {
                return "the program does not say: " + std::string(field.name);
            }
            if (value->second != "*" && !same(field.field, value->second, op)) {
                return std::string(field.name) + " differs";
            }
        }
        for (const auto& [name, kind] : {std::pair("reaped", EdgeKind::reaped), {"needs", EdgeKind::resource}}) {
            const auto value = want.fields.find(name);
            if (value != want.fields.end() && !same_requests(value->second, kind, op)) {
                return std::string(name) + " differs: " + requests_before(kind, op);
            }
        }
        const auto result = want.fields.find("result");
        if (result == want.fields.end()) {
            return "the program does not say: result";
        }
        return result->second == "*" || number(result->second) == op.result ? "" : "result differs";
    }

    // The requests with whose results edges of the kind begin.
    std::multiset<uint64_t> sources(EdgeKind kind, const Op& op) const {
        std::multiset<uint64_t> out;
        for (const Edge& edge : op.edges) {
            const auto found = edge.kind == kind ? results_.find(edge.op) : results_.end();
            if (found != results_.end()) {
                out.insert(found->second);
            }
        }
        return out;
    }
    bool same_requests(const std::string& labels, EdgeKind kind, const Op& op) const {
        std::multiset<uint64_t> want;
        std::istringstream words(labels == "-" ? "" : labels);
        for (std::string label; std::getline(words, label, ',');) {
            want.insert(requests_.of(label));
        }
        return want == sources(kind, op);
    }
    std::string requests_before(EdgeKind kind, const Op& op) const {
        std::string out = "requests";
        for (const uint64_t each : sources(kind, op)) {
            out += " " + std::to_string(each);
        }
        return out;
    }

    static int64_t number(const std::string& text) { return std::stoll(text); }

    bool same_file(const std::string& label, FileId id) {
        if ((label == "-") != (id == 0)) {
            return false;
        }
        if (id == 0) {
            return true;
        }
        const size_t mark = label.rfind('#');
        const std::string name = label.substr(0, mark);
        const uint32_t generation =
            mark == std::string::npos ? 0 : static_cast<uint32_t>(number(label.substr(mark + 1)));
        const std::string path = name.starts_with('/') ? name
                                 : name.empty()        ? expected_.root
                                                       : expected_.root + "/" + name;
        return log_.tables().path(id) == path && log_.tables().files[id].generation == generation;
    }

    bool same(Field field, const std::string& value, const Op& op) {
        switch (field) {
            case Field::handle: return handles_.same(value, op.handle);
            case Field::handle2: return handles_.same(value, op.handle2);
            case Field::fd: return number(value) == op.fd;
            case Field::fd2: return number(value) == op.fd2;
            case Field::file: return same_file(value, op.file);
            case Field::file2: return same_file(value, op.file2);
            case Field::offset: return number(value) == op.offset;
            case Field::offset2: return number(value) == op.offset2;
            case Field::size: return number(value) == op.size;
            case Field::flags: return number(value) == (op.flags & ~(kFreshMemory | kCopyFromOffset | kCopyToOffset));
            case Field::mode: return number(value) == op.mode;
            case Field::arg: return number(value) == op.arg;
            case Field::map: return maps_.same(value, op.map);
            case Field::peer: return op.peer != 0 && log_.tables().tasks[op.peer].tid == number(value);
            case Field::text: return log_.tables().strings[op.text] == value;
            case Field::request: return requests_.same(value, op.request);
            case Field::list: {
                std::string list;
                for (const int64_t each : op.list) {
                    list += (list.empty() ? "" : ",") + std::to_string(each);
                }
                return list == value;
            }
        }
        return false;
    }

    const Expectation& expected_;
    const LogReader& log_;
    const bool touches_;
    ProgramScope scope_;
    Bijection handles_, maps_, requests_;
    std::map<uint64_t, uint32_t> results_;  // request by the op of the present task that reports it
    bool started_ = false;
    size_t differences_ = 0, compared_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
    const bool touches = argc < 4 || std::string_view(argv[3]) != "--no-touch";
    if (argc < 3 || (argc == 4 && touches) || argc > 4) {
        std::fprintf(stderr, "usage: check_program EXPECT LOG [--no-touch]\n");
        return 2;
    }
    try {
        const Expectation expected = read_expectation(argv[1]);
        const LogReader log(argv[2]);
        return Check(expected, log, touches).run();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "check_program: %s\n", error.what());
        return 3;
    }
}
