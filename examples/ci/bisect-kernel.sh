#!/usr/bin/env bash
# usage: git bisect run /path/to/bisect-kernel.sh
# One step of `git bisect run` in a kernel tree: builds the kernel, boots it on the test machine, replays the suite there,
# and compares with a baseline that was made on a good kernel:
#     ssh $HOST reprise regress $SUITE --target disk=$DIR --baseline base.json
#     git bisect start BAD GOOD && git bisect run /path/to/bisect-kernel.sh
# In the environment: HOST (ssh name of the test machine), SUITE and DIR (there), BASELINE [base.json].
# Exit codes are those that git bisect knows: 0 good, 1 bad, 125 cannot be told (skipped), 128 stops.
# SPDX-License-Identifier: MIT
set -uo pipefail
: "${HOST:?the test machine}" "${SUITE:?the suite, there}" "${DIR:?the target, there}"
baseline=${BASELINE:-base.json}
on() { ssh -o ConnectTimeout=5 "$HOST" "$@"; }

make olddefconfig >/dev/null && make -j"$(nproc)" bindeb-pkg LOCALVERSION= KDEB_PKGVERSION=1 >build.log 2>&1 || exit 125
release=$(make -s kernelrelease)
image=$(ls -t ../linux-image-"$release"_*.deb | head -n 1) || exit 125
scp -q "$image" "$HOST:/tmp/kernel.deb" && on "dpkg -i /tmp/kernel.deb && grub-reboot 'Advanced options for Debian GNU/Linux>Debian GNU/Linux, with Linux $release'" || exit 125
on reboot
sleep 20
for _ in $(seq 60); do on true 2>/dev/null && break; sleep 5; done
# A kernel that does not boot tells nothing about this regression; the machine must come back by itself (panic=10).
[[ $(on uname -r) == "$release" ]] || exit 125

on reprise regress "$SUITE" --target disk="$DIR" --baseline "$baseline" -o "/var/tmp/regress-$release" -f
case $? in
    0) exit 0 ;;   # good
    1) exit 1 ;;   # worse, or wrong
    4) exit 125 ;; # the machine refused
    *) exit 128 ;; # the command is wrong: stop
esac
