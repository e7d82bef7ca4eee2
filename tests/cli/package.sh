#!/usr/bin/env bash
# The Debian package builds, holds what it should, and its binary runs.
# plain builds only
# SPDX-License-Identifier: MIT
source "$(dirname "$0")/lib.bash"
: "${REPRISE_BUILD_DIR:=$(dirname "$REPRISE")}"
for tool in dpkg-deb dpkg-shlibdeps file; do
    command -v "$tool" >/dev/null || skip "$tool is not installed"
done

run 0 cpack -G DEB -B "$tmp/packages" --config "$REPRISE_BUILD_DIR/CPackConfig.cmake"
package=$(find "$tmp/packages" -maxdepth 1 -name '*.deb')
[[ -f $package ]] || { fail "no package was made"; cat "$out" "$err"; finish; }

run 0 dpkg-deb -c "$package"
for path in usr/bin/reprise usr/share/man/man1/reprise.1.gz usr/share/man/man1/reprise-replay.1.gz \
    usr/share/bash-completion/completions/reprise usr/share/zsh/vendor-completions/_reprise usr/share/fish/vendor_completions.d/reprise.fish \
    usr/include/reprise_marker.h usr/share/reprise/python/reprise.py usr/share/reprise/python/hook/sitecustomize.py \
    usr/share/reprise/python/hook/reprise_torch.py usr/share/doc/reprise/copyright usr/share/doc/reprise/README.md usr/share/doc/reprise/CHANGELOG.md; do
    contains "$out" "./$path"
done
lacks "$out" "./usr/local"
run 0 dpkg-deb -f "$package" Depends
for library in libboost-program-options1.81.0 libc6 libstdc++6; do
    contains "$out" "$library"
done
# The recorder, where it is built, brings its library along.
if "$REPRISE" capture --check 2>&1 | grep -q 'built without'; then
    lacks "$out" libbpf
else
    contains "$out" libbpf1
fi
# Man pages and completion are made by the install itself where only the binary was built.
rm -f "$REPRISE_BUILD_DIR/generated/docs.stamp"
rm -rf "$REPRISE_BUILD_DIR/generated/man1"
run 0 cmake --install "$REPRISE_BUILD_DIR" --prefix "$tmp/installed"
[[ -f $tmp/installed/share/man/man1/reprise.1.gz && -x $tmp/installed/bin/reprise ]] || fail "cmake --install left something out"
run 0 dpkg-deb -f "$package" Maintainer
contains "$out" "reprise"

run 0 dpkg-deb -x "$package" "$tmp/root"
run 0 "$tmp/root/usr/bin/reprise" --version
contains "$out" "reprise $(sed -n 's/^project(reprise VERSION \([0-9.]*\).*/\1/p' "$REPRISE_SOURCE_DIR/CMakeLists.txt")"
run 0 gzip -dc "$tmp/root/usr/share/man/man1/reprise.1.gz"
contains "$out" ".TH REPRISE 1"
run 0 bash -n "$tmp/root/usr/share/bash-completion/completions/reprise"

run 0 cmake --install "$REPRISE_BUILD_DIR" --prefix "$tmp/prefix"
run 0 "$tmp/prefix/bin/reprise" --version
finish
