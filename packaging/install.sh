#!/bin/sh
# Installs uwf and its agents from a release: fetches the archive for this
# system, checks its SHA-256 against the release's list, and copies the programs.
# It asks for no rights, changes no shell's start-up file and runs nothing that it
# has not checked.
#
#   UWF_VERSION    the release, such as v0.2.0; the newest without it
#   UWF_BINDIR     where the programs go; ~/.local/bin without it
#   UWF_DOWNLOAD   where releases are, for a mirror
set -eu

fail() {
	echo "install.sh: $1" >&2
	exit 1
}

releases=${UWF_DOWNLOAD:-https://github.com/united-workforce/uwf/releases}
bindir=${UWF_BINDIR:-${HOME:?HOME is not set}/.local/bin}
case $bindir in
/*) ;;
*) bindir=$PWD/$bindir ;;
esac
if [ -n "${UWF_VERSION:-}" ]; then
	from=$releases/download/$UWF_VERSION
else
	from=$releases/latest/download
fi

case $(uname -s) in
Linux) os=linux ;;
Darwin) os=darwin ;;
*) fail "no archive for $(uname -s); on Windows, unpack the .zip of the release" ;;
esac
case $(uname -m) in
x86_64 | amd64) arch=amd64 ;;
aarch64 | arm64) arch=arm64 ;;
*) fail "no archive for $(uname -m); with Go, use go install" ;;
esac

if command -v curl >/dev/null; then
	fetch() { curl --fail --silent --show-error --location --output "$2" "$1"; }
elif command -v wget >/dev/null; then
	fetch() { wget --quiet --output-document="$2" "$1"; }
else
	fail "neither curl nor wget is installed"
fi
if command -v sha256sum >/dev/null; then
	check() { sha256sum -c - >/dev/null; }
elif command -v shasum >/dev/null; then
	check() { shasum -a 256 -c - >/dev/null; }
else
	fail "neither sha256sum nor shasum is installed"
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
cd "$work"

fetch "$from/SHA256SUMS" SHA256SUMS || fail "cannot fetch $from/SHA256SUMS"
line=$(grep "  uwf_v[0-9A-Za-z.+-]*_${os}_$arch\.tar\.gz\$" SHA256SUMS) || fail "the release has no archive for $os/$arch"
[ "$(printf '%s\n' "$line" | wc -l)" -eq 1 ] || fail "the release lists more than one archive for $os/$arch"
archive=${line##* }
fetch "$from/$archive" "$archive" || fail "cannot fetch $from/$archive"
printf '%s\n' "$line" | check || fail "$archive is not what SHA256SUMS says: nothing was installed"

tar -xzf "$archive"
mkdir -p "$bindir"
for program in "${archive%.tar.gz}"/uwf* "${archive%.tar.gz}"/ocas; do
	name=${program##*/}
	# A program that runs keeps its file: the new one takes its name in one step.
	cp "$program" "$bindir/.$name.new"
	chmod 755 "$bindir/.$name.new"
	mv -f "$bindir/.$name.new" "$bindir/$name"
done
"$bindir/uwf" --version
case :$PATH: in
*:"$bindir":*) echo "next: uwf setup" ;;
*) echo "next: add $bindir to PATH, then: uwf setup" ;;
esac
