#!/bin/sh
# Runs the tests that need a real Postgres: each package starts one in a temporary
# directory and stops it. Debian's package is installed where it may be.
set -eu
cd "$(dirname "$0")"

server() { command -v initdb || ls /usr/lib/postgresql/*/bin/initdb; }

server >/dev/null 2>&1 || apt-get install -y --no-install-recommends postgresql || true
if ! server >/dev/null 2>&1; then
  printf '\033[1;31mNOT RUN: the tests against a real Postgres. There is none here, and it could not be installed.\033[0m\n' >&2
  exit 1
fi
go vet -tags postgres ./...
exec go test ${RACE:-} -tags postgres -count=1 -timeout 20m "$@" ./...
