#!/usr/bin/env bash
# examples/ci: the kernel bisection, with stand-ins for building, copying and booting; the steps of the GitHub workflow
# that are commands, run as they stand.
# SPDX-License-Identifier: MIT
# plain builds only
source "$(dirname "$0")/lib.bash"
command -v git >/dev/null || skip "git is not installed"
cd "$tmp" || exit 1
ci=$REPRISE_SOURCE_DIR/examples/ci

# --- a tree of twelve kernels: the seventh and later are slower, the fourth is not built, the ninth does not boot
export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=n GIT_AUTHOR_EMAIL=e GIT_COMMITTER_NAME=n GIT_COMMITTER_EMAIL=e
mkdir bin tree/linux -p
cat >bin/make <<'END'
#!/bin/bash
case $* in
    olddefconfig) ;;
    *bindeb-pkg*) [[ $(cat version) != 4 ]] || exit 2; touch "../linux-image-6.0.$(cat version)_1_amd64.deb" ;;
    *kernelrelease) echo "6.0.$(cat version)" ;;
esac
END
cat >bin/scp <<'END'
#!/bin/bash
cp "${@: -2:1}" "$MACHINE/kernel.deb" && basename "${@: -2:1}" >"$MACHINE/next"
END
# The test machine: what was installed runs after a reboot; one that does not boot comes back with the old one.
cat >bin/ssh <<'END'
#!/bin/bash
while [[ $1 == -o ]]; do shift 2; done
shift
case $* in
    reboot)
        next=$(cat "$MACHINE/next"); next=${next#linux-image-}; next=${next%%_*}
        [[ $next == 6.0.9 ]] || echo "$next" >"$MACHINE/running" ;;
    'uname -r') cat "$MACHINE/running" ;;
    'reprise regress'*)
        echo "$(cat "$MACHINE/running") $*" >>"$MACHINE/runs"
        [[ -z ${WRONG:-} ]] || exit "$WRONG"
        case $(cat "$MACHINE/running") in
            6.0.1 | 6.0.2 | 6.0.3 | 6.0.5 | 6.0.6) exit 0 ;;
            *) exit 1 ;;
        esac ;;
esac
END
printf '#!/bin/bash\n' >bin/sleep
chmod +x bin/*
export MACHINE=$tmp/machine HOST=box SUITE=suite.ini DIR=/mnt/t
mkdir "$MACHINE"
cd tree/linux || exit 1
run 0 git init -q .
for version in $(seq 12); do
    echo "$version" >version
    run 0 git add version
    run 0 git commit -q -m "kernel $version"
done
bisect() {
    echo 6.0.0 >"$MACHINE/running"
    git bisect reset -q >/dev/null 2>&1
    git bisect start HEAD "$(git rev-list --max-parents=0 HEAD)" >/dev/null 2>&1
    PATH=$tmp/bin:$PATH git bisect run bash "$ci/bisect-kernel.sh" >"$out" 2>"$err"
}
run_bisect() { # the exit code: $1
    bisect
    local rc=$?
    [[ $rc == "$1" ]] || { fail "git bisect run: exit code $rc, expected $1"; tail -n 20 "$out" "$err"; }
}
run_bisect 0
contains "$out" "is the first bad commit"
contains "$out" "kernel 7"
contains "$MACHINE/runs" "--target disk=/mnt/t --baseline base.json -o /var/tmp/regress-6.0.6 -f"
lacks "$MACHINE/runs" "6.0.9 reprise"
# A command that is wrong stops it: nothing is blamed.
WRONG=2 run_bisect 128
lacks "$out" "is the first bad commit"
cd "$tmp" || exit 1

# --- the workflow, on the default branch and then on another one
[[ $failures == 0 ]] || finish
python3 -c 'import yaml' 2>/dev/null || skip "python3-yaml is not installed: the workflow is not tried"
mkdir -p repository/ci runner
storage=$(cat <<'END'
9 /data/out add
9 /data/out open
9 /data/out write 0 65536
9 /data/out datasync 0 0
9 /data/out close
END
)
{ passes_log 1 2; echo "$storage"; } >job.log
run 0 "$REPRISE" import -q job.log -o repository/ci/job.oplog
printf '[job passes]\nlog = job.oplog\nreplay = --pace afap --cache as-is\n' >repository/ci/suite.ini
cat >steps.py <<'END'
import subprocess, sys, yaml
flow, branch = yaml.safe_load(open(sys.argv[1])), sys.argv[2]
assert flow["name"] and flow[True]["push"]["branches"] == ["main"], "the triggers"
job = flow["jobs"]["regress"]
done = 0
for step in job["steps"]:
    assert ("uses" in step) != ("run" in step), step
    if "run" not in step:
        continue
    text = step["run"]
    while "${{" in text:  # the expressions that stand in commands
        before, rest = text.split("${{", 1)
        expression, after = rest.split("}}", 1)
        assert expression.strip() == "github.ref == 'refs/heads/main' && '--update-baseline' || ''", expression
        text = before + ("--update-baseline" if branch == "main" else "") + after
    done = subprocess.run(["bash", "-e", "-c", text], check=False).returncode or done
sys.exit(done)
END
ln -s "$REPRISE" runner/reprise
steps() { (cd repository && PATH=$tmp/runner:$PATH RUNNER_TEMP=$tmp/runner GITHUB_STEP_SUMMARY=$tmp/summary.md python3 ../steps.py "$ci/regress.yml" "$1"); }
# On a crowded machine a run may be disturbed, and the later side worse.
run "0 1" steps main
[[ -s repository/baseline.json ]] || fail "no baseline was made"
run "0 1" steps topic
python3 - repository/regress.xml <<'END' || fail "no JUnit results"
import sys, xml.etree.ElementTree as tree
assert len(list(tree.parse(sys.argv[1]).getroot().iter("testcase"))) > 0
END
contains "$tmp/summary.md" "passes"

finish
