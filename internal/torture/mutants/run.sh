#!/usr/bin/env bash
# Tells whether the torturer can see what it looks for: makes a mistake in a copy of the
# sources, one patch at a time, builds that, and tortures it with the arguments that the
# patch names. A mutant that survives is a hole in the tests.
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
for patch in "$patches"/*.patch; do
	name=$(head -n 1 "$patch")
	[[ $name == *"${1-}"* ]] || continue
	eval "args=($(sed -n 's/^torture //p' "$patch"))"
	git apply "$patch"
	CGO_ENABLED=0 go build -o "$lab/bin/" ./cmd/uwf ./cmd/uwf-builtin ./internal/torture
	status=0
	report=$(TMPDIR=$lab "$lab/bin/torture" -bin "$lab/bin" -time "${LIMIT:-2m}" -seed 1 "${args[@]}" 2>&1 >/dev/null) || status=$?
	case $status in
	0) survived=$((survived + 1)) && echo "SURVIVED  $name" ;;
	1) printf 'caught    %s\n          %s\n' "$name" "${report%%$'\n'*}" ;;
	*) echo "$name: the torturer failed: $report" >&2 && exit 1 ;;
	esac
	git apply --reverse "$patch"
done
test $survived = 0 || { echo "$survived survived" >&2 && exit 1; }
