#!/bin/sh
# Fuzzes every target of the repository for a time each:
#   make fuzz FUZZTIME=20s
set -eu
time=$1
go=${GO:-go}
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# At the end of -fuzztime go sometimes stops its own worker and reports that as a failure
# of the target. A real failure has more lines: its input, a panic, the test's words.
ended_by_time() {
	! grep -q 'Failing input written\|^panic:\|^fatal error:' "$log" &&
		[ "$(grep -A1 '^--- FAIL: ' "$log")" = "$(grep '^--- FAIL: ' "$log")
    context deadline exceeded" ]
}

failed=
for found in $(git grep --untracked -oE '^func Fuzz[A-Za-z0-9_]*' -- '*_test.go' | sed 's|/[^/]*:func |:|'); do
	echo "fuzz $found"
	status=0
	$go test -run '^$' -fuzz "^${found#*:}\$" -fuzztime "$time" "./${found%:*}" >"$log" 2>&1 || status=$?
	cat "$log"
	[ "$status" -eq 0 ] && continue
	if ended_by_time; then
		echo "no failure: go stopped it at the end of its time"
	else
		failed="$failed $found"
	fi
done
[ -z "$failed" ] || {
	echo "failed:$failed"
	exit 1
}
