#!/bin/sh
# An agent that leaves a directory for each run, and a file. The file act says what else it does.
w=$REQUESTS n=1
until mkdir "$w/paid/$n" 2>/dev/null; do n=$((n + 1)); done
echo "$UWF_THREAD" >"$w/paid/$n/thread"
answer() {
	echo x >"u$n"
	out=$(printf -- "---\n\$status: done\nn: $n\n---\nDone.\n" | "$UWF_BIN" step put --output -) || exit
	echo "$out"
	: >"$w/paid/$n/finished"
}
case $(cat "$w/act") in
alive) kill -9 $PPID; read -r _ <"$w/gate"; answer ;;
after) answer; kill -9 $PPID ;;
lost) kill -9 $PPID ;;
asks) printf -- '---\n$status: $SUSPEND\nreason: which one?\n---\n' | "$UWF_BIN" step put --output - ;;
*) answer ;;
esac
