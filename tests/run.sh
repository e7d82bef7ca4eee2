#!/usr/bin/env bash
# usage: tests/run.sh [--quick]
# Builds and passes every test, on a fresh Debian 12 too. One line per stage;
# skipped tests are named with their reason; the last line counts: every ctest
# test of every build, and each build, fuzzer and source check as one.
# --quick: release build, its tests and the format check only.
# REPRISE_FUZZ_SECONDS (default 10, per fuzzer) and REPRISE_TIDY_SECONDS
# (default 200, in all) bound the stages that could go on for ever.
# SPDX-License-Identifier: MIT
set -uo pipefail
cd "$(dirname "$0")/.." || exit 4

quick=0
case ${1:-} in
    '') ;;
    --quick) quick=1 ;;
    *) sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac

scripts/ensure-packages.sh build test bench || exit $?

export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=1:strict_string_checks=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1:second_deadlock_stack=1}
jobs=$(nproc)
logs=build/logs
mkdir -p "$logs"
rm -f "$logs"/*.xml
passed=0 failed=0 skipped=0
skips=() unsteady=() times=()
began=$SECONDS

# stage NAME COMMAND...: runs it with its output in a log; one line; the end of
# the log where it failed.
stage() {
    local name=$1 start=$SECONDS rc=0 log
    shift
    log=$logs/${name// /-}.log
    "$@" >"$log" 2>&1 || rc=$?
    local word=ok
    [[ $rc == 0 ]] || word="FAILED (exit $rc, $log)"
    printf '%-22s %4d s  %s%s\n' "$name" $((SECONDS - start)) "$word" "${note:+  $note}"
    times+=("$name $((SECONDS - start))")
    [[ $rc == 0 ]] || tail -n 60 "$log" | sed 's/^/    | /'
    note=
    return $rc
}
note=

# A stage that counts as one test.
check() { if stage "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)); return 1; fi; }

build() { # PRESET TARGET...
    local preset=$1
    shift
    # The quickstart leaves a build folder without tests behind.
    cmake --preset "$preset" -DREPRISE_TESTS=ON && cmake --build --preset "$preset" -j "$jobs" ${1:+--target "$@"}
}

# One line "STATUS<tab>NAME<tab>REASON" per test of a JUnit file from ctest.
results() {
    awk '
        function attribute(name,   m) {
            if (!match($0, " " name "=\"[^\"]*\"")) return ""
            m = substr($0, RSTART, RLENGTH); sub(/^[^"]*"/, "", m); sub(/"$/, "", m); return m
        }
        function emit() { if (test != "") print status "\t" test "\t" reason; test = "" }
        /<testcase / {
            emit(); test = attribute("name"); s = attribute("status"); reason = ""
            status = s == "run" ? "passed" : "failed"
        }
        /<skipped message="SKIP_RETURN_CODE/ { status = "skipped"; reason = "no reason given" }
        status == "skipped" && match($0, /SKIPPED: .*/) {
            reason = substr($0, RSTART + 9); sub(/<\/system-out>.*/, "", reason)
        }
        /<\/testsuite>/ { emit() }
    ' "$1" | sed 's/&lt;/</g; s/&gt;/>/g; s/&quot;/"/g; s/&apos;/'\''/g; s/&amp;/\&/g'
}

# The tests of a JUnit file that took longest, in a line.
longest() {
    python3 - "$1" <<'EOF'
import sys, xml.etree.ElementTree as tree
cases = [(float(case.get("time") or 0), case.get("name")) for case in tree.parse(sys.argv[1]).iter("testcase")]
print(", ".join(f"{name} {seconds:.0f}" for seconds, name in sorted(cases, reverse=True)[:12]))
EOF
}

# What the failed tests of a JUnit file printed, the end of each.
failures() {
    python3 - "$1" <<'EOF'
import sys, xml.etree.ElementTree as tree
for case in tree.parse(sys.argv[1]).iter("testcase"):
    if case.get("status") == "fail":
        print(f"    | --- {case.get('name')}")
        for line in (case.findtext("system-out") or "").rstrip().splitlines()[-30:]:
            print("    | " + line[:300])
EOF
}

# Failed tests run again, alone: the machine is shared, and some tests look at
# caches, limits and times. One that fails twice has failed; one that passes
# then is named at the end.
tests() { # PRESET [ctest argument...]
    local preset=$1 junit again status test reason p=0 f=0 s=0 rc=0
    shift
    junit=$PWD/$logs/$preset.xml again=$PWD/$logs/$preset-again.xml
    rm -f "$junit" "$again"
    stage "$preset tests" ctest --preset "$preset" -j "$jobs" --output-junit "$junit" "$@" || rc=$?
    if [[ $rc != 0 && -f $junit ]]; then
        failures "$junit"
        stage "$preset tests again" ctest --preset "$preset" -j 1 --rerun-failed --output-junit "$again" && rc=0
    fi
    if [[ -f $junit ]]; then
        while IFS=$'\t' read -r status test reason; do
            if [[ $status == failed && -f $again ]] && results "$again" | grep -xF "passed"$'\t'"$test"$'\t' >/dev/null; then
                status=passed
                unsteady+=("$preset $test")
            fi
            case $status in
                passed) p=$((p + 1)) ;;
                skipped) s=$((s + 1)); skips+=("$preset $test: $reason") ;;
                *) f=$((f + 1)) ;;
            esac
        done < <(results "$junit")
    fi
    [[ $f == 0 || ! -f $again ]] || failures "$again"
    # No test at all, or a failure that no test shows, is a failure as well.
    if [[ $rc != 0 || $((p + s)) == 0 ]] && [[ $f == 0 ]]; then
        f=1
        echo "    | $preset: no test ran, or ctest itself failed"
    fi
    printf '%-22s         %d passed, %d failed, %d skipped\n' '' $p $f $s
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
}

fuzz_one() {
    local program=$1 name seeds=()
    name=$(basename "$program")
    mkdir -p "build/corpus/$name" build/artifacts
    [[ -d tests/fuzz/corpus/${name#fuzz_} ]] && seeds=("tests/fuzz/corpus/${name#fuzz_}")
    "$program" -max_total_time="${REPRISE_FUZZ_SECONDS:-10}" -timeout=25 -rss_limit_mb=2048 -print_final_stats=1 \
        -artifact_prefix="build/artifacts/$name-" "build/corpus/$name" "${seeds[@]}"
}

# As many at once as there are CPUs: one has only a thread. Each counts as a test.
fuzzers() {
    local program name start=$SECONDS rc word
    for program in build/asan/tests/fuzz_*; do
        [[ -f $program && -x $program ]] || continue
        name=$(basename "$program")
        while (($(jobs -rp | wc -l) >= jobs)); do wait -n; done
        { fuzz_one "$program" >"$logs/$name.log" 2>&1; echo $? >"$logs/$name.rc"; } &
    done
    wait
    for program in build/asan/tests/fuzz_*; do
        [[ -f $program && -x $program ]] || continue
        name=$(basename "$program") word=ok
        rc=$(cat "$logs/$name.rc")
        if [[ $rc == 0 ]]; then passed=$((passed + 1)); else failed=$((failed + 1)) word="FAILED (exit $rc, $logs/$name.log)"; fi
        printf '%-22s         %s\n' "$name" "$word"
        [[ $rc == 0 ]] || tail -n 60 "$logs/$name.log" | sed 's/^/    | /'
    done
    printf '%-22s %4d s\n' 'fuzzers' $((SECONDS - start))
    times+=("fuzzers $((SECONDS - start))")
}

shell_scripts() {
    find scripts tests examples .ci -type f \( -name '*.sh' -o -name '*.bash' -o -path '.ci/run' \) -print0 2>/dev/null |
        xargs -0 -n 12 -P "$jobs" shellcheck --severity=warning --external-sources --source-path=SCRIPTDIR
}

check 'format' scripts/check-format.sh
check 'rooms' scripts/check-rooms.py
check 'docs tables' scripts/docs_tables.py --check
check 'shell scripts' shell_scripts
if check 'release build' build release; then tests release; fi
if [[ $quick == 0 ]]; then
    if check 'asan build' build asan; then tests asan; fuzzers; fi
    if check 'tsan build' build tsan thread_tests; then tests tsan --label-regex '^(replay|calibrate|cli)(/|$)'; fi
    check 'clang-tidy' scripts/run-clang-tidy.sh --all
    tail -n 1 "$logs/clang-tidy.log" | sed 's/^/    | /'
fi

for skip in "${skips[@]}"; do
    echo "SKIPPED $skip"
done
for test in "${unsteady[@]}"; do
    echo "UNSTEADY $test: failed beside other tests, passed alone"
done
for preset in release asan tsan; do
    [[ ! -f $logs/$preset.xml ]] || echo "longest $preset tests, s: $(longest "$logs/$preset.xml")"
done
echo "all stages: $((SECONDS - began)) s: $(printf '%s, ' "${times[@]}" | sed 's/, $//')"
echo "$passed passed, $failed failed, $skipped skipped"
[[ $failed == 0 ]]
