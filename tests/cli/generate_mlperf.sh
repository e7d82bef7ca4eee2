#!/usr/bin/env bash
# Jobs of examples/jobs beside the published results of MLPerf Storage v1.0: samples of a step over its time are what an accelerator that is
# never short of data reaches there.
# SPDX-License-Identifier: MIT
source "$(dirname "$0")/lib.bash"
table=$(trace mlperf_storage/v1.0_summaries.csv) || skip "no trace mlperf_storage/v1.0_summaries.csv; set REPRISE_TRACES"
cd "$tmp" || exit 1
for job in unet3d resnet50 cosmoflow; do
    for accelerator in H100 A100; do
        file=$REPRISE_SOURCE_DIR/examples/jobs/$job.ini
        run 0 "$REPRISE" generate -q "$file" --accelerator $accelerator --shrink 1000 -o "$job-$accelerator.oplog"
        run 0 "$REPRISE" info --json "$job-$accelerator.oplog"
        cp "$out" "$job-$accelerator.json"
        run 0 "$REPRISE" generate "$file" --accelerator $accelerator --show
        grep '^batch=' "$out" >"$job-$accelerator.batch"
    done
done
python3 - "$table" <<'END' || fail "the jobs are not those of MLPerf Storage"
import collections, csv, json, statistics, sys
NAMES = {"resnet": "resnet50"}
found, other = collections.defaultdict(list), 0
for row in csv.DictReader(open(sys.argv[1], encoding="utf-8")):
    if row["accel"] in ("h100", "a100") and float(row["au_mean"]) > 0:
        # Throughput counts the time without data, too; AU is the share of the time with it.
        rate = float(row["throughput_samples_s"]) / int(row["num_accelerators"]) / (float(row["au_mean"]) / 100)
        found[NAMES.get(row["workload"], row["workload"]), row["accel"].upper()].append(rate)
    else:
        other += 1
wrong = []
print(f"samples per busy second of an accelerator ({other} rows name no accelerator):")
for (job, accelerator), rates in sorted(found.items()):
    device = json.load(open(f"{job}-{accelerator}.json"))["summary"]["devices"][0]
    batch = int(open(f"{job}-{accelerator}.batch").read().split("=")[1])
    rate = batch * device["submits"] / (device["busy_ns"] / 1e9)
    off = 100 * (rate / max(rates) - 1)
    print(f"  {job} {accelerator}: job {rate:.2f}, published at most {max(rates):.2f} ({off:+.2f} %), "
          f"{len(rates)} runs from {min(rates):.2f}, median {statistics.median(rates):.2f}")
    if abs(off) > 1:
        wrong.append((job, accelerator))
assert len(found) == 6 and not wrong, (sorted(found), wrong)
END
finish
