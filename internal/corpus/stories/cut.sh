# Moves of the head and its files that were cut off, made by 2422a7c0, whose only trace of one is restore.json: an undo,
# a redo and a poke, each in the middle of the files ("half") and behind them ("laid"); and pokes whose agent has
# finished, or has ended without a result.
sed -i 's/confine: off/sandbox: { mode: none }/' "$UWF_HOME/config.yaml"
cat >line.yaml <<'EOF2'
name: line
description: An agent, another, a person, a third.
roles:
  first: &agent
    description: Works.
    goal: Work.
    schema: { type: object, properties: { $status: { const: done }, n: { type: integer } }, required: [$status, n] }
  second: *agent
  ask: { description: Says yes., person: true, schema: { type: object, properties: { $status: { const: ok } }, required: [$status] } }
  third: *agent
graph:
  $START: { _: first }
  first: { done: second }
  second: { done: ask }
  ask: { ok: third }
  third: { done: $END }
EOF2
# An agent that leaves a line and five files for each run. Uwf is killed once it has finished, or before.
cat >"$WORK/agent" <<'EOF2'
#!/bin/sh
echo "$UWF_ROLE" >>"$WORK/runs"
n=$(($(wc -l <"$WORK/runs")))
if test -e "$WORK/lost"; then kill -9 $PPID; exit 1; fi
for i in 1 2 3 4 5; do echo $n >u$n.$i; done
printf -- '---\n$status: done\nn: %s\n---\nDone.\n' $n | "$UWF_BIN" step put --output -
if test -e "$WORK/kill"; then kill -9 $PPID; fi
EOF2
# Whether the files are those of the steps of a thread: same.sh THREAD DIR.
cat >same.sh <<'EOF2'
uwf thread steps "$1" | grep -o '"n":[0-9]*' | sed 's/"n":/u/' | sort >"$WORK/tmp/steps"
ls "$2" | sed -n 's/^\(u[0-9]*\)\.[1-5]$/\1/p' | sort | uniq -c | sed -n 's/^ *5 //p' | sort >"$WORK/tmp/whole"
ls "$2" | sed -n 's/^\(u[0-9]*\)\.[1-5]$/\1/p' | sort -u >"$WORK/tmp/files"
cmp -s "$WORK/tmp/steps" "$WORK/tmp/files" && cmp -s "$WORK/tmp/files" "$WORK/tmp/whole" && echo same || echo different
EOF2
# What is left of moves.
cat >left.sh <<'EOF2'
ls "$UWF_HOME"/runs/*/restore.json "$UWF_HOME"/runs/*/intent.json 2>/dev/null | wc -l
EOF2
# repository makes one, goes there, and runs a thread NAME to its person: repository DIR NAME.
repository() {
	mkdir "$WORK/work/$1"
	cd "$WORK/work/$1"
	git init -q
	printf 'text\n' >a
	git add .
	git commit -qm first
	run "$2" run ../line.yaml -p "$1"
}
# killed runs uwf with a git that kills it: "half" in the middle of the files, "laid" once all are there.
mkdir "$WORK/tmp/git"
printf '#!/bin/sh\ngit=%s\n' "$(command -v git)" >"$WORK/tmp/git/git"
cat >>"$WORK/tmp/git/git" <<'EOF2'
case "$KILL $*" in
half*read-tree\ -m\ -u*) strace -qq -o /dev/null -e trace="$CALL" -e inject="$CALL":signal=SIGKILL:when=3 "$git" "$@"; kill -9 $PPID ;;
laid*read-tree\ -m\ -u*) "$git" "$@"; kill -9 $PPID ;;
*) exec "$git" "$@" ;;
esac
EOF2
chmod 755 "$WORK/tmp/git/git"
killed() {
	KILL=$1 CALL=$2 PATH=$WORK/tmp/git:$PATH timeout -s KILL 30 uwf --quiet "${@:3}" >/dev/null 2>&1 && echo "$*: not killed" >&2
	sleep 0.3
	ls | tr '\n' ' '
	cat "$UWF_HOME"/runs/"$5"/restore.json
	echo
}
for how in half laid; do
	repository undo-$how "UNDO_$how"
	killed $how unlink thread undo "$(at UNDO_$how)"
	repository redo-$how "REDO_$how"
	uwf --quiet thread undo "$(at REDO_$how)" >/dev/null
	killed $how write thread redo "$(at REDO_$how)"
	repository poke-$how "POKE_$how"
	killed $how unlink thread poke "$(at POKE_$how)" -p other
done
repository poke-finished POKE_finished
touch "$WORK/kill"; timeout -s KILL 20 uwf --quiet thread poke "$(at POKE_finished)" -p other >/dev/null 2>&1 || true; rm "$WORK/kill"
repository poke-lost POKE_lost
touch "$WORK/lost"; timeout -s KILL 20 uwf --quiet thread poke "$(at POKE_lost)" -p other >/dev/null 2>&1 || true; rm "$WORK/lost"
sleep 0.3
