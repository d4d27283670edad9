#!/bin/sh
# Ends well if there is a Postgres to test with; Debian's package is installed where it may be.
server() { command -v initdb || ls /usr/lib/postgresql/*/bin/initdb; }

server >/dev/null 2>&1 || apt-get install -y --no-install-recommends postgresql || true
server >/dev/null 2>&1 || {
  printf '\033[1;31mNOT RUN: the tests against a real Postgres. There is none here, and it could not be installed.\033[0m\n' >&2
  exit 1
}
