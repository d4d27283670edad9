#!/usr/bin/env bash
# Tells whether the torturer can see what it looks for: makes a mistake in a copy of the
# sources, one patch at a time, builds that, and runs on it what the second line of the
# patch names: the torturer, or tests of a package. A mutant that survives is a hole in the tests.
#   internal/torture/mutants/run.sh [TEXT]   those whose name contains TEXT; LIMIT=2m for each
set -euo pipefail
cd "$(dirname "$0")/../../.."
lab=$(mktemp -d)
trap 'rm -rf "$lab"' EXIT
mkdir "$lab/tree"
git ls-files -z --cached --others --exclude-standard --deduplicate | tar --null --ignore-failed-read -T - -cf - | tar -xC "$lab/tree"
patches=$PWD/internal/torture/mutants
cd "$lab/tree"
survived=0
build() { CGO_ENABLED=0 go build -o "$1" ./cmd/uwf ./cmd/uwf-builtin ./internal/torture; }
for patch in "$patches"/*.patch; do
	name=$(head -n 1 "$patch")
	[[ $name == *"${1-}"* ]] || continue
	command=$(sed -n 2p "$patch")
	git apply "$patch"
	status=0
	if [[ $command == "go test "* ]]; then
		report=$(eval "$command" 2>&1) || status=$?
	else
		eval "args=(${command#torture })"
		build "$lab/bin/"
		report=$(TMPDIR=$lab "$lab/bin/torture" -bin "$lab/bin" -time "${LIMIT:-2m}" -seed 1 "${args[@]}" 2>&1 >/dev/null) || status=$?
	fi
	case $status in
	0) survived=$((survived + 1)) && echo "SURVIVED  $name" ;;
	1) printf 'caught    %s\n          %s\n' "$name" "${report%%$'\n'*}" ;;
	*) echo "$name: the torturer failed: $report" >&2 && exit 1 ;;
	esac
	git apply --reverse "$patch"
done
test $survived = 0 || { echo "$survived survived" >&2 && exit 1; }
