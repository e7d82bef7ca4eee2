#!/usr/bin/env bash
# Debian's Prometheus watches a replay and a recording: every query of the dashboard in examples/grafana has an answer.
# Needs prometheus; the recording needs root and BPF.
# SPDX-License-Identifier: MIT
# plain builds only
# shellcheck source=lib.bash
source "$(dirname "$0")/lib.bash"
: "${REPRISE_BUILD_DIR:=$(dirname "$REPRISE")}"
command -v python3 >/dev/null || skip "no python3"
command -v prometheus >/dev/null || skip "prometheus is not installed (scripts/ensure-packages.sh live)"
examples=$REPRISE_SOURCE_DIR/examples/grafana
cd "$tmp" || exit 1

run 0 promtool check config "$examples/prometheus.yml"
run 0 "$REPRISE_BUILD_DIR/programs/sample_log" live job-live.oplog
run 0 "$REPRISE" prepare -q job-live.oplog --root root
capture=()
can_record && capture=(--capture) || echo "NOT TESTED: this machine cannot record"
run 0 timeout 120 python3 "$(dirname "$0")/live/prometheus.py" "$REPRISE" job-live.oplog root \
    "$examples/reprise.json" "$examples/prometheus.yml" "${capture[@]}"
cat "$out"
[[ -s served.txt ]] || fail "nothing was served"
run 0 promtool check metrics <served.txt
empty "$err"
finish
