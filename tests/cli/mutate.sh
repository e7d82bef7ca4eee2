#!/usr/bin/env bash
# The planting of faults, without building any: which would be planted, and that its list of files fits the sources.
# plain builds only
# SPDX-License-Identifier: MIT
source "$(dirname "$0")/lib.bash"
command -v python3 >/dev/null || skip "no python3"
mutate() { "$REPRISE_SOURCE_DIR/tests/mutate.sh" "$@"; }

# Fails where a row of files.txt names no file.
run 0 mutate --list --count 60
equal "$(grep -c '^    - ' "$out")" 60
cp "$out" "$tmp/once"
run 0 mutate --list --count 60
cmp -s "$out" "$tmp/once" || fail "the same seed plants other faults"
run 0 mutate --list --count 60 --seed 2
cmp -s "$out" "$tmp/once" && fail "another seed plants the same faults"
run 2 mutate --list --files 'nowhere/*'

# Every test program (test_a_b for the tests of folder a/b) and every file of tests that files.txt names exists.
folders=$(cd "$REPRISE_SOURCE_DIR/tests" && find . -name 'test_*.cpp' -printf 'test_%P\n' | sed 's,/[^/]*$,,; s,/,_,g' | sort -u)
while read -r _ programs first _; do
    for name in ${programs//,/ }; do
        [[ $name == - ]] || grep -qxF -- "$name" <<<"$folders" || fail "files.txt names $name"
    done
    for name in ${first//,/ }; do
        [[ $name == - || -n $(find "$REPRISE_SOURCE_DIR/tests" -name "$name.cpp") ]] || fail "files.txt names $name"
    done
done < <(grep -v '^#' "$REPRISE_SOURCE_DIR/tests/mutate/files.txt")

# The rules, on a file with one of each; texts, comments and preprocessor lines stay.
cat >"$tmp/sample.cpp" <<'CPP'
#define LIMIT 1 + 2
// if (a < b) return 1;
bool less(int a, int b) {
    if (a < b && !same(a, b)) {
        note("a < b, 1");
        count += 2 - a;
    }
    return std::max(a, b) == 7;
}
CPP
PYTHONPATH=$REPRISE_SOURCE_DIR/tests/mutate run 0 python3 -B - "$tmp/sample.cpp" <<'PY'
import sys
import rules
text = open(sys.argv[1]).read()
for fault in rules.faults(text):
    print(f"{fault.line} {fault.rule}: {fault.after}")
    assert fault.apply(text) != text
PY
for want in '4 condition: if (!(a < b && !same(a, b))) {' '4 relation: if (a <= b && !same(a, b)) {' \
    '4 condition: if (a < b || !same(a, b)) {' '4 not: if (a < b && same(a, b)) {' \
    '4 swap: if (a < b && !same(b, a)) {' '5 drop: ;' '6 drop: ;' '6 sign: count -= 2 - a;' \
    '6 constant: count += 3 - a;' '6 sign: count += 2 + a;' '8 return: return {};' \
    '8 extreme: return std::min(a, b) == 7;' '8 relation: return std::max(a, b) != 7;' \
    '8 constant: return std::max(a, b) == 8;'; do
    grep -qxF -- "$want" "$out" || fail "no fault '$want'"
done
equal "$(wc -l <"$out")" 14
finish
