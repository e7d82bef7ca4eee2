# SPDX-License-Identifier: MIT
"""A C or C++ source file as tokens and brackets, without comments and preprocessor lines."""
import bisect
import dataclasses
import re

TOKEN = re.compile(
    r'''(?P<comment>//(?:[^\n\\]|\\.|\\\n)*|/\*.*?\*/)
      | (?P<string>(?:u8|[uUL])?R"(?P<tag>[^()\s\\]{0,16})\(.*?\)(?P=tag)"|(?:u8|[uUL])?"(?:[^"\\\n]|\\.)*")
      | (?P<char>(?:u8|[uUL])?'(?:[^'\\\n]|\\.)+')
      | (?P<number>\.?\d(?:'?[\w.]|[eEpP][+-])*)
      | (?P<name>[A-Za-z_]\w*)
      | (?P<sign><=>|->\*|<<=|>>=|\.\.\.|->|\+\+|--|&&|\|\||[-+*/%&|^<>=!]=|::|<<|[^\s\w])
    ''', re.X | re.S)
NOT_CALLS = {"if", "for", "while", "switch", "return", "sizeof", "catch", "static_assert", "alignof", "decltype",
             "noexcept", "alignas", "assert", "constexpr", "requires", "defined", "asm", "__attribute__"}
CLOSES = {"(": ")", "[": "]", "{": "}"}


@dataclasses.dataclass(frozen=True)
class Token:
    kind: str
    text: str
    start: int
    end: int


def tokenize(text):
    """Without comments and preprocessor lines."""
    tokens = []
    blank = [(m.start(), m.end()) for m in re.finditer(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", text, re.M | re.S)]
    starts = [b[0] for b in blank]
    for match in TOKEN.finditer(text):
        kind = match.lastgroup if match.lastgroup != "tag" else "string"
        at = bisect.bisect_right(starts, match.start()) - 1
        if kind == "comment" or (at >= 0 and match.start() < blank[at][1]):
            continue
        tokens.append(Token(kind, match.group(), match.start(), match.end()))
    return tokens


class Source:
    """One file, its tokens, their brackets and what surrounds them."""

    def __init__(self, text):
        self.text = text
        self.tokens = tokenize(text)
        self.lines = [0] + [m.end() for m in re.finditer("\n", text)]
        self.match = {}
        self.parent = []  # of each token: index of the bracket around it, or -1
        self.block = {}   # of each "{": body, class, enum or init
        self.quiet = [False] * len(self.tokens)  # texts, labels, templates: constants and arguments stay
        self._pair()
        self._mark_quiet()

    def _pair(self):
        stack = []
        for i, token in enumerate(self.tokens):
            if token.text in (")", "]", "}") and token.kind == "sign" and stack:
                opened = stack.pop()
                self.match[opened], self.match[i] = i, opened
            self.parent.append(stack[-1] if stack else -1)
            if token.text in CLOSES and token.kind == "sign":
                if token.text == "{":
                    self.block[i] = self._kind_of_block(i)
                stack.append(i)

    def _kind_of_block(self, i):
        before = self.tokens[i - 1].text if i else ""
        head = []
        j = i - 1
        while j >= 0 and self.tokens[j].text not in (";", "{", "}"):
            head.append(self.tokens[j].text)
            j -= 1
        if "enum" in head:
            return "enum"
        if "namespace" in head or before == "" or ("extern" in head and len(head) <= 2):
            return "class"
        if {"class", "struct", "union"} & set(head) and ")" not in head:
            return "class"
        if before in (")", "const", "noexcept", "override", "final", "mutable", "else", "do", "try", ":", ";", "{",
                      "}", "]"):
            return "body"
        return "body" if "->" in head and ")" in head and "=" not in head[:2] and before != "," else "init"

    def _mark(self, start, end):
        for i in range(start, min(end + 1, len(self.tokens))):
            self.quiet[i] = True

    def _mark_quiet(self):
        for i, token in enumerate(self.tokens):
            if token.text in ("static_assert", "alignas", "sizeof", "__attribute__", "asm") and self.text_at(i + 1) == "(":
                self._mark(i, self.match.get(i + 1, i + 1))
            elif token.text == "template" and self.text_at(i + 1) == "<":
                self._mark(i, self._closing_angle(i + 1))
            elif token.text in ("throw", "case"):
                j = i
                while j < len(self.tokens) and self.text_at(j) not in (";", ":"):
                    j = self.match.get(j, j) + 1 if self.text_at(j) in CLOSES else j + 1
                self._mark(i, j)
            elif token.text == "[" and self.text_at(i + 1) == "[":
                self._mark(i, self.match.get(i, i))
            elif token.text == "{" and self.block.get(i) == "enum":
                self._mark(i, self.match.get(i, i))
            elif token.text == "(" and self.is_call(i) and self._has_text(i):
                self._mark(i, self.match.get(i, i))

    def _closing_angle(self, i):
        depth = 0
        while i < len(self.tokens):
            depth += {"<": 1, ">": -1, ">>": -2}.get(self.text_at(i), 0)
            if depth <= 0:
                return i
            i += 1
        return i

    def _has_text(self, i):
        return any(self.tokens[j].kind == "string" and self.parent[j] == i for j in range(i, self.match.get(i, i)))

    def text_at(self, i):
        return self.tokens[i].text if 0 <= i < len(self.tokens) else ""

    def is_call(self, i):
        """Whether the bracket at `i` holds the arguments of a call, as far as what is before it tells."""
        before = self.tokens[i - 1] if i else None
        return before is not None and self.text_at(i) == "(" and before.kind == "name" and before.text not in NOT_CALLS

    def in_body(self, i):
        around = self.parent[i]
        while around >= 0:
            kind = self.block.get(around)
            if kind is not None:
                return kind in ("body", "init") and (kind == "body" or self.in_body(around))
            around = self.parent[around]
        return False

    def binary(self, i):
        """Whether the operator at `i` stands between blanks, as clang-format sets binary operators and nothing else."""
        token = self.tokens[i]
        return (self.text[token.start - 1].isspace() and token.end < len(self.text) and self.text[token.end].isspace()
                and self.text_at(i - 1) not in ("operator", ",", "(", "=", "return", "&&", "||"))

    def split(self, opened):
        """The [first, last] tokens of each part between commas inside the bracket at `opened`."""
        closed, parts, first, i = self.match.get(opened, opened), [], opened + 1, opened + 1
        while i < closed:
            if self.text_at(i) in CLOSES:
                i = self.match.get(i, i)
            elif self.text_at(i) == ",":
                parts.append((first, i - 1))
                first = i + 1
            i += 1
        if first < closed:
            parts.append((first, closed - 1))
        return parts
