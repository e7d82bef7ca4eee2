#!/usr/bin/env bash
# `reprise generate` of DLIO's YAML: the log, the job file that --show prints, and mistakes.
# SPDX-License-Identifier: MIT
# shellcheck source=lib.bash
source "$(dirname "$0")/lib.bash"
cd "$tmp" || exit 1

cat >job.yaml <<'END'
model: {name: small}
framework: pytorch
workflow: {generate_data: False, train: True, checkpoint: True}
dataset: {data_folder: data/small, format: npz, num_files_train: 16, record_length_bytes: 100000}
reader: {data_loader: pytorch, batch_size: 2, read_threads: 2, sample_shuffle: seed}
train: {epochs: 2, computation_time: 0.01}
checkpoint: {epochs_between_checkpoints: 1}
END
run 0 "$REPRISE" generate job.yaml --gpus 2 -o job.oplog
contains "$out" "[small]  16 files"
contains "$out" "8 steps"
contains "$out" "note: ignored, as they change no reads or writes: framework."
run 0 "$REPRISE" info job.oplog
run 0 "$REPRISE" generate job.yaml --gpus 2 --show
contains "$out" "; ignored, as they change no reads or writes: framework"
cp "$out" job.ini
run 0 "$REPRISE" generate job.ini -o same.oplog
"$REPRISE" dump job.oplog | grep -v '^#' >a || true
"$REPRISE" dump same.oplog | grep -v '^#' >b || true
[[ -s a ]] || fail "the log has no ops"
diff <(grep -v generate a) <(grep -v generate b) >/dev/null || fail "the job file that --show prints makes another log"

run 2 "$REPRISE" generate job.ini --gpus 2 -o x.oplog
contains "$err" "write gpus=N"
run 2 "$REPRISE" generate job.yaml --accelerator A100 -o x.oplog
contains "$err" "computation_time"
run 2 "$REPRISE" generate job.yaml --gpus 0 -o x.oplog
run 3 "$REPRISE" generate job.yaml --gpus 9 -o x.oplog
contains "$err" "an epoch has no step"
sed 's/batch_size/batch_sizes/' job.yaml >typo.yaml
run 3 "$REPRISE" generate typo.yaml -o x.oplog
contains "$err" "typo.yaml:5: 'reader.batch_sizes' is no known key of DLIO"
contains "$err" "did you mean reader.batch_size"
[[ ! -e x.oplog ]] || fail "a refused workload left a log"
# The page names every key of the table, with what becomes of it.
python3 - "$REPRISE_SOURCE_DIR" <<'END' || fail "docs/jobs-dlio.md differs from generate/dlio_keys.def"
import pathlib, re, sys
top = pathlib.Path(sys.argv[1])
table = re.findall(r'^KEY\("([^"]+)", (\w+), "([^"]*)"\)', (top / "generate/dlio_keys.def").read_text(), re.M)
page = (top / "docs/jobs-dlio.md").read_text()
assert len(table) > 100, len(table)
missing = []
for key, use, becomes in table:
    wanted = "Older names of keys" if use == "old" else "| " + becomes + " |" if use != "used" else becomes.replace("`", "")
    right = [row for row in page.split("\n") if f"`{key}`" in row and wanted in (row.replace("`", "") if use == "used" else row)]
    if not right:
        missing.append((key, use, becomes))
assert not missing, missing[:5]
END
finish
