#!/bin/bash
# Makes the homes of the corpus with the programs in a directory, as README.md tells.
# It ran once: what it made is frozen. make.sh BIN [HOME…]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
bin=$1
shift
root=/tmp/uwf-corpus
only=${*:-plain workflows config limited flight children files shared cut}

# The tests hold the directory in the same way.
until mkdir "$root" 2>/dev/null && exec 9<"$root" && flock -n 9; do sleep 1; done
trap 'chmod -R u+w "$root"; rm -rf "$root"' EXIT
mkdir "$root/bin"
for program in uwf ocas uwf-mock uwf-remote-file; do cp "$bin/$program" "$root/bin"; done

export PATH=$root/bin:$PATH GIT_CONFIG_NOSYSTEM=1 LC_ALL=C TZ=UTC
umask 022

# home begins a home: its directories, its config, the identity of its git.
home() {
	export WORK=$root/$1
	export HOME=$WORK UWF_HOME=$WORK/home TMPDIR=$WORK/tmp GIT_CONFIG_GLOBAL=$WORK/gitconfig
	mkdir -p "$WORK"/{work,tmp}
	mkdir -m 700 "$UWF_HOME"
	printf '[user]\n\tname = u\n\temail = u@example.org\n[init]\n\tdefaultBranch = main\n[gc]\n\tauto = 0\n' >"$GIT_CONFIG_GLOBAL"
	: >"$WORK/vars"
	cd "$WORK/work"
	cat >"$WORK/agent" <<-'EOF'
		#!/bin/sh
		# The mock agent, which leaves a line for each run.
		echo "$UWF_ROLE" >>"$WORK/runs"
		exec uwf-mock --mock-data "$WORK/work/${SCENARIO:-scenario.yaml}" "$@"
	EOF
	chmod 755 "$WORK/agent"
	cat >"$UWF_HOME/config.yaml" <<-EOF
		agents:
		  mock: { command: $WORK/agent, retry: { attempts: 1 } }
		defaultAgent: mock
		commands: { confine: off }
	EOF
	chmod 600 "$UWF_HOME/config.yaml"
	# Nobody cuts the power of a test.
	uwf --quiet cas init >/dev/null
	test "$1" = config || sed -i 's/"flush":"auto"/"flush":"none"/' "$UWF_HOME/cas/format.json"
}

# keep notes a value for the story.
keep() { echo "$1=$2" >>"$WORK/vars"; }

# field prints a value of the JSON on stdin.
field() { python3 -c 'import json,sys
v=json.load(sys.stdin)
for k in sys.argv[1].split("."): v=v[int(k)] if isinstance(v,list) else v[k]
print(v)' "$1"; }

# run runs uwf and keeps the thread's id under a name.
run() {
	local name=$1 out
	shift
	out=$(timeout -s KILL 20 uwf --json --quiet "$@" 2>"$WORK/tmp/stderr" || true)
	keep "$name" "$(echo "$out" | field thread || { cat "$WORK/tmp/stderr" >&2; exit 1; })"
}

# at prints a value kept.
at() { grep "^$1=" "$WORK/vars" | tail -1 | cut -d= -f2; }

# pack makes the archive.
pack() {
	rm -rf "$WORK/tmp"/*
	tar -C "$root" --sort=name --owner=0 --group=0 --numeric-owner --format=gnu --hard-dereference -cf - "$1" | gzip -9n >"$here/testdata/homes/$1.tar.gz"
}

for made in $only; do
	(home "$made"; . "$here/stories/$made.sh"; pack "$made")
done
