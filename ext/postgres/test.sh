#!/bin/sh
# Runs the tests that need a real Postgres: each package starts one in a temporary
# directory and stops it.
set -eu
cd "$(dirname "$0")"
./server.sh
go vet -tags postgres ./...
exec go test ${RACE:-} -tags postgres -count=1 -timeout 20m "$@" ./...
