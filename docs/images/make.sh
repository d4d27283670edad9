#!/bin/sh
# Makes the pictures in this directory from a real run of the demo, on a terminal of
# its own (examples/demo/record):
#   make pictures
# The graph is of the run that the recording shows, the oldest of that workflow.
set -eu
bin=$1
here=$(dirname "$0")
made=$(go run ./examples/demo/record -o "$here/run.svg" -still "$here/live.svg" -at '^  reviewer · .* 2 turns' \
	-from '^\$ uwf run' -to '^== What' -- go run ./examples/demo -bin "$bin" -keep | sed -n 's/^All of it .* kept in \(.*\)\. Type next:.*/\1/p')
UWF_HOME=${made:?the demo names no directory}/home OCAS_HOME=
export UWF_HOME OCAS_HOME
thread=$("$bin/uwf" thread list --all --format text | awk '$3 == "solve-issue" { oldest = $1 } END { print oldest }')
"$bin/uwf" thread graph "$thread" --format svg >"$here/solve-issue.svg"
rm -rf "$made"
