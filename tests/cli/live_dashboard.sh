#!/usr/bin/env bash
# The Grafana dashboard in examples/grafana is of Grafana's form, and asks for metrics that there are.
# SPDX-License-Identifier: MIT
# plain builds only
# shellcheck source=lib.bash
source "$(dirname "$0")/lib.bash"
python=
for each in python3 /usr/bin/python3; do # Debian's, where another one comes first
    "$each" -c "import jsonschema" 2>/dev/null && python=$each && break
done
[[ -n $python ]] || skip "python3-jsonschema is not installed (scripts/ensure-packages.sh live)"
here=$(dirname "$0")/live dashboard=$REPRISE_SOURCE_DIR/examples/grafana/reprise.json

run 0 "$REPRISE" ops --metrics --json
cp "$out" "$tmp/metrics.json"
check() { "$python" "$here/dashboard.py" "$1" "$here/grafana.schema.json" "$tmp/metrics.json"; }
run 0 check "$dashboard"
cat "$out"

# The checks can fail.
wrong() { # WORDS SED-SCRIPT
    sed "$2" "$dashboard" >"$tmp/wrong.json"
    run 1 check "$tmp/wrong.json"
    contains "$out" "$1"
}
wrong "there is no metric reprise_replay_opps_total" 's/reprise_replay_ops_total/reprise_replay_opps_total/'
wrong "no metric has the label direktion" 's/by (direction)/by (direktion)/'
wrong "'w' is a required property" '0,/"w": 4/s//"v": 4/'
wrong "two panels have id 2" 's/"id": 3,/"id": 2,/'
wrong "is not one of" 's/"percentunit"/"percents"/'
wrong "covers" '0,/"x": 12,/s//"x": 11,/'
finish
