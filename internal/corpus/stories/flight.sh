# Runs that were killed: mid-step, after the result was stored, before it was taken, between two steps,
# in the background; and notices that are unsent.
cat >two.yaml <<'EOF'
name: two
description: A writer and a reader.
roles:
  writer: { description: Writes., goal: Write., frontmatter: { type: object, properties: { $status: { const: done }, text: { type: string } }, required: [$status, text] } }
  reader: { description: Reads., goal: Read., frontmatter: { type: object, properties: { $status: { const: done } }, required: [$status] } }
graph:
  $START: { _: { role: writer, prompt: "{{{$prompt}}}" } }
  writer: { done: { role: reader, prompt: "Read {{text}}." } }
  reader: { done: { role: $END, prompt: "Read." } }
EOF
cat >deploy.yaml <<'EOF'
name: deploy
description: Deploys.
roles:
  deploy: { description: Deploys., run: [sh, -c, 'echo deploy >>"$WORK/runs"; if test -e "$WORK/kill"; then kill -9 $PPID; fi; printf deployed'] }
graph:
  $START: { _: deploy }
  deploy: { passed: $END, failed: $END }
EOF
cat >scenario.yaml <<'EOF'
roles:
  writer: [{ turns: [{ say: I begin. }, { tool: read_file, args: { path: a }, result: text }], value: { $status: done, text: good }, usage: { turns: 2, inputTokens: 5, outputTokens: 3, costUsd: 0.1 } }]
  reader: [{ value: { $status: done } }]
EOF
for crash in start before-commit after-commit after-result; do
	sed "s/writer: \[{ /writer: [{ crash: $crash, /" scenario.yaml >"$crash.yaml"
done
# An agent whose uwf is killed at a point: before the agent works, or once it has printed its result.
cat >"$WORK/agent" <<'EOF'
#!/bin/sh
echo "$UWF_ROLE" >>"$WORK/runs"
if test -e "$WORK/kill-before"; then kill -9 $PPID; exit 1; fi
uwf-mock --mock-data "$WORK/work/${SCENARIO:-scenario.yaml}" "$@"
status=$?
if test -e "$WORK/kill"; then kill -9 $PPID; fi
exit $status
EOF
begin() { run "$1" thread start two.yaml -p "$2"; }
die() { timeout -s KILL 20 uwf --quiet thread step "$@" >/dev/null 2>&1 || true; sleep 0.3; }
begin STARTED 'Nothing has run'
begin BEFORE 'uwf is killed before the agent works'
touch "$WORK/kill-before"; die "$(at BEFORE)"; rm "$WORK/kill-before"
begin STORED 'The result is there, and uwf is killed before it takes it'
touch "$WORK/kill"; die "$(at STORED)"
run SECOND thread start two.yaml -p 'So in the second step'
rm "$WORK/kill"; uwf --quiet thread step "$(at SECOND)" >/dev/null; touch "$WORK/kill"; die "$(at SECOND)"
begin OTHER 'The result is there, and another prompt is wanted'
die "$(at OTHER)"
rm "$WORK/kill"
for crash in start before-commit after-commit after-result; do
	name=$(echo "$crash" | tr 'a-z-' 'A-Z_')
	begin "$name" "The agent crashes: $crash"
	SCENARIO=$crash.yaml die "$(at "$name")"
done
run COMMAND thread start deploy.yaml -p 'A command whose uwf is killed'
touch "$WORK/kill"; die "$(at COMMAND)"; rm "$WORK/kill"
# A worker in the background that is killed as its agent works.
begin BACKGROUND 'In the background'
cat >slow.yaml <<'EOF'
steps:
  - { turns: [{ say: I begin. }, { say: still, delay: 60s }], value: { $status: done, text: late } }
EOF
SCENARIO=slow.yaml uwf --quiet thread resume "$(at BACKGROUND)" --background >/dev/null
sleep 0.5
kill -9 $(uwf --json thread running | python3 -c 'import json,sys
print(*[t[k] for t in json.load(sys.stdin)["threads"] for k in t if k in ("pid","agentPid") and t[k]])') || true
pkill -9 -P $$ -f "$WORK/work/slow.yaml" || true
for p in $(pgrep -f "uwf-mock --mock-data $WORK/work/slow.yaml"); do kill -9 "$p"; done
sleep 0.3
# Between the step and the head: the system call that would rename threads.yaml is the last.
begin HEAD 'uwf is killed when the head is to move'
strace -f -qq -o /dev/null -P "$UWF_HOME/threads.yaml" -e trace=rename,renameat,renameat2 -e inject=rename,renameat,renameat2:signal=SIGKILL uwf --quiet thread step "$(at HEAD)" >/dev/null 2>&1 || true
sleep 0.3
# Notices that could not be sent.
cat >>"$UWF_HOME/config.yaml" <<'EOF'
notify: { command: [no-such-program] }
EOF
run NOTICE run two.yaml -p 'A notice that is unsent'
sleep 1
sed -i '/^notify/d' "$UWF_HOME/config.yaml"
printf 'notify: { command: [sh, -c, "cat >>$WORK/told"] }\n' >>"$UWF_HOME/config.yaml"
find "$UWF_HOME/notify" -type f
