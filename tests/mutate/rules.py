# SPDX-License-Identifier: MIT
"""The faults that can be planted in a C or C++ source file, one function a rule or two.

Comments, strings and preprocessor lines are never touched. A fault that turns out not to compile is drawn again by the
caller, so the rules need not understand every construct of the language.
"""
import bisect
import dataclasses
import re

from cxx import CLOSES, Source

INTEGER = re.compile(r"(0[xX][\da-fA-F']+|0[bB][01']+|[\d']+)([uUlLzZ]*)$")
FLOAT = re.compile(r"[\d']*\.[\d']*([eE][+-]?\d+)?$|[\d']+[eE][+-]?\d+$")

NO_STATEMENT = {"return", "const", "constexpr", "auto", "using", "if", "for", "while", "switch", "do", "case",
                "default", "else", "struct", "class", "union", "enum", "namespace", "static", "public", "private",
                "protected", "goto", "template", "typedef", "extern", "friend", "try", "catch", "static_assert",
                "assert", "asm", "thread_local", "inline", "virtual", "explicit", "unsigned", "int", "operator"}
# Dropping or changing these alters time or memory, not what is decided.
NO_EFFECT = {"reserve", "shrink_to_fit", "assert", "static_assert", "spin_pause", "use_least_timer_slack", "forget",
             "bpf_printk", "report"}
COMMUTATIVE = {"min", "max", "swap", "minmax", "equal_to"}
RELATIONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
SIGNS = {"+": "-", "-": "+", "*": "/", "/": "*", "%": "*", "+=": "-=", "-=": "+=", "|": "&", "&": "|", "|=": "&=",
         "&=": "|=", "++": "--", "--": "++", "<<": ">>", ">>": "<<"}
LOW = {",", ";", "(", "[", "{", "}", "?", ":", "=", "return", "+=", "-=", "*=", "/=", "|=", "&=", "^=", "%=", "<<=",
       ">>=", "co_return", "else"}


@dataclasses.dataclass(frozen=True)
class Fault:
    """`edits`: (from, to, text) by offset, ascending and apart."""
    rule: str
    line: int
    column: int
    before: str
    after: str
    edits: tuple

    def apply(self, text):
        for start, end, new in reversed(self.edits):
            text = text[:start] + new + text[end:]
        return text


def fault_of(source, rule, *edits):
    start = edits[0][0]
    line = bisect.bisect_right(source.lines, start) - 1
    end = source.text.find("\n", max(start, source.lines[line]))
    end = len(source.text) if end < 0 else end
    before = source.text[source.lines[line]:end]
    after = before
    for first, last, new in reversed(edits):
        if first <= end:
            at = first - source.lines[line]
            after = after[:at] + new + after[max(at, min(last, end) - source.lines[line]):]
    return Fault(rule, line + 1, start - source.lines[line] + 1, before.strip(), after.strip(), tuple(edits))


def adjacent_names(source, first, last):
    """Two names beside each other outside brackets, as in a declaration."""
    i = first
    while i < last:
        token, after = source.tokens[i], source.tokens[i + 1]
        if token.text in CLOSES:
            i = source.match.get(i, i)
        elif after.kind == "name" and (token.kind == "name" or (token.text in (">", "*", "&", "&&") and
                                                                not source.binary(i))):
            if not (token.text in ("*", "&") and i == first):
                return True
        i += 1
    return False


def conditions(source):
    for i, token in enumerate(source.tokens):
        if token.text in ("if", "while") and source.text_at(i + 1) == "(":
            opened = i + 1
            first = opened + 1
            closed = source.match.get(opened, 0)
            for j in range(first, closed):
                if source.text_at(j) == ";" and source.parent[j] == opened:
                    first = j + 1
            declares = any(source.text_at(j) == "=" and source.parent[j] == opened for j in range(first, closed))
            if first < closed and not declares:
                yield fault_of(source, "condition", *wrap(source, first, closed - 1))
        elif token.text == "?" and token.kind == "sign":
            j = i - 1
            while j >= 0 and source.text_at(j) not in LOW:
                j = source.match.get(j, j) - 1 if source.text_at(j) in (")", "]", "}") else j - 1
            if j + 1 <= i - 1:
                yield fault_of(source, "condition", *wrap(source, j + 1, i - 1))
        elif token.text in ("&&", "||") and source.binary(i):
            yield fault_of(source, "condition", (token.start, token.end, "||" if token.text == "&&" else "&&"))


def wrap(source, first, last):
    start, end = source.tokens[first].start, source.tokens[last].end
    return (start, start, "!("), (end, end, ")")


def operators(source):
    for i, token in enumerate(source.tokens):
        if token.kind != "sign" or source.quiet[i]:
            continue
        if token.text in RELATIONS and source.binary(i):
            yield fault_of(source, "relation", (token.start, token.end, RELATIONS[token.text]))
        elif token.text in SIGNS:
            counts = token.text in ("++", "--")
            if counts and source.parent[i] >= 0 and source.text_at(source.parent[i] - 1) == "for":
                continue  # never ends, and every such fault is found
            beside = {source.tokens[i - 1].kind, source.tokens[min(i + 1, len(source.tokens) - 1)].kind}
            if (counts and source.in_body(i)) or (source.binary(i) and "string" not in beside):
                yield fault_of(source, "sign", (token.start, token.end, SIGNS[token.text]))
        elif token.text == "!" and source.tokens[i - 1].kind not in ("name", "number") or (
                token.text == "!" and source.text_at(i - 1) == "return"):
            yield fault_of(source, "not", (token.start, token.end, ""))


def constants(source):
    for i, token in enumerate(source.tokens):
        if source.quiet[i]:
            continue
        if token.text in ("true", "false") and source.text_at(i - 1) != "return":
            yield fault_of(source, "constant", (token.start, token.end, "false" if token.text == "true" else "true"))
        if token.text in ("min", "max") and source.text_at(i - 1) == "::" and source.text_at(i + 1) in ("(", "<"):
            yield fault_of(source, "extreme", (token.start, token.end, "max" if token.text == "min" else "min"))
        if token.kind != "number":
            continue
        pure_virtual = source.text_at(i - 1) == "=" and source.text_at(i - 2) in (")", "const", "noexcept")
        if pure_virtual:
            continue
        if match := INTEGER.match(token.text):
            digits = match.group(1).replace("'", "")
            value = int(digits, 0) if not re.match(r"0\d", digits) else int(digits, 8)
            yield fault_of(source, "constant", (token.start, token.end, str(value + 1) + match.group(2)))
        elif FLOAT.match(token.text):
            yield fault_of(source, "constant", (token.start, token.end, f"({token.text} + 1.0)"))


def statements(source):
    """Calls, assignments, throw, break and continue, dropped."""
    count = len(source.tokens)
    for i in range(1, count):
        before = source.text_at(i - 1)
        after_label = before == ":" and source.quiet[i - 1]
        after_head = before == ")" and source.text_at(source.match.get(i - 1, 0) - 1) in ("if", "for", "while")
        if not (before in (";", "{", "}", "else") or after_label or after_head) or not source.in_body(i):
            continue
        if before == "{" and source.block.get(i - 1) != "body":
            continue
        if source.parent[i] >= 0 and source.text_at(source.parent[i]) != "{":
            continue  # the head of a for
        end, assigns = i, False
        while end < count and source.text_at(end) not in (";", "}"):
            assigns = assigns or source.text_at(end) in ("=", "+=", "-=", "|=", "&=", "*=", "/=")
            end = source.match.get(end, end) + 1 if source.text_at(end) in CLOSES else end + 1
        if end >= count or source.text_at(end) != ";" or end == i:
            continue
        token = source.tokens[i]
        plain = token.text in ("break", "continue", "throw")
        if not plain:
            if token.text in NO_STATEMENT or (token.kind != "name" and token.text not in ("*", "++", "--", "(")):
                continue
            names = {source.text_at(j) for j in range(i, end) if source.text_at(j + 1) == "("}
            counts = token.text in ("++", "--") or source.text_at(end - 1) in ("++", "--")
            if names & NO_EFFECT or not (assigns or counts or source.text_at(end - 1) == ")"):
                continue
            if adjacent_names(source, i, end - 1):
                continue
        yield fault_of(source, "drop", (token.start, source.tokens[end].start, ""))


def arguments(source):
    for i, token in enumerate(source.tokens):
        if token.text != "(" or source.quiet[i] or i not in source.match:
            continue
        after_template = source.text_at(i - 1) == ">" and not source.binary(i - 1)
        if not (source.is_call(i) or after_template) or source.text_at(i - 1) in COMMUTATIVE:
            continue
        parts = source.split(i)
        if len(parts) < 2 or any(adjacent_names(source, *part) or source.tokens[part[0]].text in
                                 ("const", "[", "auto") for part in parts):
            continue
        for (a, b), (c, d) in zip(parts, parts[1:]):
            one = source.tokens[a].start, source.tokens[b].end
            two = source.tokens[c].start, source.tokens[d].end
            left, right = source.text[slice(*one)], source.text[slice(*two)]
            if left != right:
                yield fault_of(source, "swap", (*one, right), (*two, left))


def returns(source):
    for i, token in enumerate(source.tokens):
        if token.text != "return" or source.quiet[i]:
            continue
        end = i + 1
        while end < len(source.tokens) and source.text_at(end) != ";":
            end = source.match.get(end, end) + 1 if source.text_at(end) in CLOSES else end + 1
        if end >= len(source.tokens) or end == i + 1:
            continue
        start, stop = source.tokens[i + 1].start, source.tokens[end - 1].end
        value = source.text[start:stop]
        if value in ("true", "false"):
            yield fault_of(source, "return", (start, stop, "false" if value == "true" else "true"))
        elif value not in ("{}", "0", "nullptr", "*this") and not value.startswith("std::move"):
            yield fault_of(source, "return", (start, stop, "{}"))


def faults(text):
    """Every fault of a file, by position, none twice."""
    source = Source(text)
    found = {}
    for rule in (conditions, operators, constants, statements, arguments, returns):
        for fault in rule(source):
            found.setdefault(fault.edits, fault)
    return sorted(found.values(), key=lambda f: (f.line, f.column, f.rule))
