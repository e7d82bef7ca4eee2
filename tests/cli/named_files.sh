#!/usr/bin/env bash
# No output replaces an input, and no two outputs are one file, however they are spelled.
# SPDX-License-Identifier: MIT
# shellcheck source=lib.bash
source "$(dirname "$0")/lib.bash"
cd "$tmp" || exit 1

passes_log a b >job.log
run 0 "$REPRISE" import -q job.log -o x.oplog
run 0 "$REPRISE" import -q job.log -o y.oplog
"$REPRISE_BUILD_DIR/programs/sample_log" fio two.oplog
storage_model mm.json
head -c 32 /dev/urandom | base64 >k
mkdir -p sub
ln -s p2 to_p2 # nothing there yet
ln -s ../x.oplog sub/to_x
ln x.oplog hard.oplog

# refused TEXT COMMAND...: a usage error that says it, and every file here is as it was
refused() {
    local text=$1 before
    shift
    before=$(find . ! -name '.out' ! -name '.err' -type f -exec md5sum {} + | sort)
    run 2 "$REPRISE" "$@"
    contains "$err" "$text"
    equal "$(find . ! -name '.out' ! -name '.err' -type f -exec md5sum {} + | sort)" "$before"
}

# Two outputs.
predict=(predict x.oplog --service recorded)
refused "predict: -o p2 and --json=p2 are the same file" "${predict[@]}" -o p2 --json=p2
refused "predict: -o p2 and --json=./p2 are the same file" "${predict[@]}" -o p2 --json=./p2
refused "-o to_p2 and --json=p2 are the same file" "${predict[@]}" -o to_p2 --json=p2
refused "-o p2 and --json=to_p2 are the same file" "${predict[@]}" -f -o p2 --json=to_p2
refused "are the same file" "${predict[@]}" -f -o sub/../p2 --json="$tmp/p2"
refused "--html page and --json=./page are the same file" analyze x.oplog --html page --json=./page
refused "--json=r and --junit sub/../r are the same file" compare x.oplog --against y.oplog --json=r --junit sub/../r
refused "--html r and --markdown ./r are the same file" compare x.oplog --against y.oplog --html r --markdown ./r
predict=(predict x.oplog --storage mm.json -q)
run 0 "$REPRISE" "${predict[@]}" -o p1 --json=p1.json
run 0 "$REPRISE" "${predict[@]}" -o sub/p2 --json=p2
run 0 "$REPRISE" "${predict[@]}" -f -o p1 --json=/dev/null

# An input of each option and of each positional.
refused "--json=./mm.json would overwrite --storage mm.json" predict x.oplog --storage mm.json -f --json=./mm.json
refused "-o mm.json would overwrite --storage ./mm.json" predict x.oplog --storage ./mm.json -f -o mm.json
refused "--json=y.oplog would overwrite --service y.oplog" predict x.oplog --service y.oplog -f --json=y.oplog
refused "-o k would overwrite --cufile k" capture -f -o k --cufile k -- true
refused "-o k would overwrite --key-file k" anonymize x.oplog -f -o k --key-file k
refused "--json=k would overwrite --key-file ./k" anonymize x.oplog -f -o new --json=k --key-file ./k
refused "--json=host.json would overwrite --compare host.json" calibrate -f --compare host.json --json=host.json
echo 'elapsed=3%' >limits
refused "--html limits would overwrite --threshold limits" compare x.oplog --against y.oplog --threshold limits -f --html limits
refused "--json=y.oplog would overwrite --against y.oplog" compare x.oplog --against y.oplog -f --json=y.oplog
refused "--junit x.oplog would overwrite x.oplog" compare x.oplog --against y.oplog -f --junit x.oplog
echo 250ms >steps
refused "--json=steps would overwrite --gpu-model empirical(steps)" replay x.oplog --root root -f --json=steps --gpu-model 'empirical(steps)'
cp "$(dirname "$0")/../../examples/network.json" net.json 2>/dev/null || echo '{}' >net.json
refused "--json=net.json would overwrite --network net.json" predict x.oplog --storage mm.json --gpus 2 --hosts 1 --network net.json -f --json=net.json
refused "--json=real.csv would overwrite --beside real=real.csv" sweep x.oplog --root root -f --json=real.csv --beside real=real.csv
for output in x.oplog ./x.oplog sub/to_x hard.oplog; do
    refused "-o $output would overwrite x.oplog" dump x.oplog -f -o "$output"
    refused "--json=$output would overwrite x.oplog" info x.oplog -f --json="$output"
done
refused "-o y.oplog would overwrite y.oplog" replay x.oplog y.oplog --root root -f -o y.oplog
mkdir many
cp job.log many/
refused "-o many/job.log would overwrite many/job.log" import many -f -o many/job.log
cat >job.ini <<'END'
[load]
rw=randread
filesize=1m
number_ios=4
arrivals=times.csv
END
printf '0.1\n0.2\n' >times.csv
refused "-o ./times.csv would overwrite times.csv" generate job.ini -f -o ./times.csv

# Names that an output leads to.
for name in fi.1 fi.fio; do
    cp two.oplog "$name"
    refused "export: $name of -o fi would overwrite $name" export "$name" --to fio -f -o "fi"
done
rm fi.1 fi.fio
refused "fi.2 of -o fi and --json=./fi.2 are the same file" export two.oplog --to fio -f -o "fi" --json=./fi.2
mkdir in
cp two.oplog in/replay.fio
refused "in/replay.fio of -o in would overwrite in/replay.fio" export in/replay.fio --to fio -f -o in
run 0 "$REPRISE" prepare -q x.oplog --root root
cp x.oplog run.2.oplog
refused "run.2.oplog of -o run.oplog would overwrite run.2.oplog" replay run.2.oplog --root root --pace afap --runs 2 -f -o run.oplog
refused "run.2.oplog of -o run.oplog and --json=./run.2.oplog are the same file" replay x.oplog --root root --pace afap --runs 2 -f -o run.oplog --json=./run.2.oplog
if can_record; then
    refused "c.raw of -o c.oplog and --json=c.raw are the same file" capture -f -o c.oplog --json=c.raw true
else
    echo "SKIPPED: a recording's own names, this machine cannot record"
fi
mkdir suite target
cp x.oplog suite/
cat >suite/suite.ini <<'END'
[job passes]
log = x.oplog
END
refused "regress: --html suite/x.oplog would overwrite suite/x.oplog" regress suite/suite.ini --target a=target --target b=sub -f --html suite/x.oplog
mkdir sw
for name in runs.jsonl run.json cells.csv sweep.svg; do
    refused "sw/$name of -o sw and --json=sw/$name are the same file" sweep x.oplog --root root --ratio 1 -o sw "--json=sw/$name"
done
refused "sw/cells.csv of -o sw and --json=./sw/cells.csv are the same file" predict x.oplog --storage mm.json --sweep read=10M..1G -o sw --json=./sw/cells.csv
printf '[t]\nformat=npz\nsamples=8\nsample_size=4k\ncompute=1ms\n' >trained.ini
run 0 "$REPRISE" generate -q trained.ini -o trained.oplog
refused "sw/cluster.csv of -o sw and --json=sw/cluster.csv are the same file" predict trained.oplog --storage mm.json --sweep gpus=1..4 -o sw --json=sw/cluster.csv
refused "sw/runs.jsonl of -o sw and --html sw/runs.jsonl are the same file" regress suite/suite.ini --target a=target --target b=sub -o sw --html sw/runs.jsonl

# Every option with a file is known there: add it to cli/named_files.cpp, a case above, and its name here.
known=" --against --baseline --beside --compare --cufile --diagram --html --json --junit --key-file --markdown --network --output --service --storage --threshold "
for command in $("$REPRISE" --help | sed -n '/^Record/,/^Typical/s/^  \([a-z]*\)  .*/\1/p'); do
    "$REPRISE" "$command" --help >help
    grep -oE -e '--[a-z-]+(\[=| )[A-Z=|]*(FILE\b|LOG\b|OUT\b|FOLDER\b|B\.\.\.)' help | sed 's/[[ ].*//' | sort -u >options
    while read -r option; do
        [[ $known == *" $option "* ]] || fail "$command: is the file of $option protected?"
    done <options
    cat options >>all
done
for option in $known; do
    grep -qxF -e "$option" all || fail "no command has $option FILE"
done
[[ $(sort -u all | wc -l) -ge 12 ]] || fail "the options of few commands were found: $(sort -u all | tr '\n' ' ')"
finish
