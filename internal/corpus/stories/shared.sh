# A directory as a remote, between two homes: in step, ahead, behind, diverged; a push and a step at the
# remote that were killed, with the lease left; what was imported, from a bundle and from there.
cat >loop.yaml <<'EOF'
name: loop
description: One role, again and again.
roles:
  worker: { description: Works., goal: You work., frontmatter: { type: object, properties: { $status: { enum: [again, done] }, note: { type: string } }, required: [$status] } }
graph:
  $START: { _: { role: worker, prompt: "{{{$prompt}}}" } }
  worker: { again: { role: worker, prompt: "Again." }, done: { role: $END, prompt: "Done." } }
EOF
cat >approve.yaml <<'EOF'
name: approve
description: A command, a person, a command.
roles:
  build: { description: Builds., run: [sh, -c, 'echo build >>"$WORK/runs"; printf built'] }
  approve: { description: Somebody approves., person: true, frontmatter: { type: object, properties: { $status: { enum: [approved, rejected] } }, required: [$status] } }
  publish: { description: Publishes., run: [sh, -c, 'echo publish >>"$WORK/runs"; printf published'] }
graph:
  $START: { _: build }
  build: { passed: { role: approve, prompt: "{{{output}}}: may it go?" }, failed: $END }
  approve: { approved: publish, rejected: $END }
  publish: { passed: { role: $END, prompt: "Published." }, failed: $END }
EOF
cat >panel.yaml <<'EOF'
name: panel
description: Two of them.
roles:
  worker: { description: Works., goal: You work., frontmatter: { type: object, properties: { $status: { enum: [again, done] }, note: { type: string } }, required: [$status] } }
  both: { description: Both., all: { a: { role: worker, prompt: a }, b: { role: worker, prompt: b } } }
graph:
  $START: { _: both }
  both: { done: $END, failed: $END }
EOF
cat >scenario.yaml <<'EOF'
steps:
  - { value: { $status: again, note: one }, turns: [{ say: a key }] }
  - { value: { $status: again, note: two } }
  - { value: { $status: again, note: three } }
  - { value: { $status: again, note: four } }
  - { value: { $status: done, note: five } }
EOF
cat >"$WORK/agent" <<'EOF'
#!/bin/sh
echo "$UWF_ROLE" >>"$WORK/runs"
if test -e "$WORK/kill-before"; then kill -9 $PPID; exit 1; fi
uwf-mock --mock-data "$WORK/work/scenario.yaml" "$@"
status=$?
if test -e "$WORK/kill"; then kill -9 $PPID; fi
exit $status
EOF
bob() { UWF_HOME=$WORK/bob "$@"; }
mkdir -m 700 "$WORK/bob"
cp "$UWF_HOME/config.yaml" "$WORK/bob/config.yaml"
uwf --quiet remote add team "$WORK/team" >/dev/null
bob uwf --quiet remote add team "$WORK/team" >/dev/null
begin() { run "$1" thread start "$2" -p "$3"; }
step() { timeout -s KILL 20 uwf --quiet thread step "$@" >/dev/null 2>&1 || true; }
push() { timeout -s KILL 20 uwf --quiet push "$@" >/dev/null 2>&1 || echo "push $* failed" >&2; }
begin SAME loop.yaml 'In step'
step "$(at SAME)"; push "$(at SAME)" team
bob uwf --quiet pull "$(at SAME)" team >/dev/null
begin AHEAD loop.yaml 'Ahead of the remote'
step "$(at AHEAD)"; push "$(at AHEAD)" team; step "$(at AHEAD)"
begin BEHIND loop.yaml 'Behind the remote'
step "$(at BEHIND)"; push "$(at BEHIND)" team
bob uwf --quiet pull "$(at BEHIND)" team >/dev/null
bob uwf --quiet thread step "$(at BEHIND)" --cwd "$WORK/work" >/dev/null
bob uwf --quiet push "$(at BEHIND)" team >/dev/null
begin DIVERGED loop.yaml 'Gone two ways'
step "$(at DIVERGED)"; push "$(at DIVERGED)" team
bob uwf --quiet pull "$(at DIVERGED)" team >/dev/null
bob uwf --quiet thread step "$(at DIVERGED)" --cwd "$WORK/work" >/dev/null
bob uwf --quiet push "$(at DIVERGED)" team >/dev/null
step "$(at DIVERGED)"
begin WAITING approve.yaml 'Waits at the remote'
step "$(at WAITING)"; push "$(at WAITING)" team
bob uwf --quiet pull "$(at WAITING)" team >/dev/null
begin ENDED loop.yaml 'Ended'
step "$(at ENDED)" -c 9; push "$(at ENDED)" team
begin REDACTED loop.yaml 'Redacted'
step "$(at REDACTED)"
detail=$(uwf --json cas get "$(uwf --json step show "$(at REDACTED)@1" | field hash)" | field payload.detail)
push "$(at REDACTED)" team
uwf --quiet thread redact "$(at REDACTED)" --node "$(uwf --json cas get "$detail" | field payload.turns.0)" --reason 'a key' >/dev/null
push "$(at REDACTED)" team
begin FAMILY panel.yaml 'A family'
step "$(at FAMILY)"; step "$(at FAMILY)/a" -c 9; push "$(at FAMILY)" team
begin NEW loop.yaml 'Never pushed'
step "$(at NEW)"
# Killed: a push before the head moves there; steps at the remote before and after the agent's work.
begin PUSHING loop.yaml 'A push is killed'
step "$(at PUSHING)"
touch "$WORK/tmp/before"
timeout -s KILL 20 strace -f -qq -o /dev/null -e trace=rename,renameat,renameat2,link,linkat -e inject=rename,renameat,renameat2,link,linkat:signal=SIGKILL:when=3 uwf --quiet push "$(at PUSHING)" team >/dev/null 2>&1 && echo 'not killed' >&2
begin LEASED loop.yaml 'A step at the remote is killed before the work'
push "$(at LEASED)" team
touch "$WORK/kill-before"; step "$(at LEASED)" --remote team --lease 1s; rm "$WORK/kill-before"
begin MADE loop.yaml 'A step at the remote is killed after the work'
push "$(at MADE)" team
touch "$WORK/kill"; step "$(at MADE)" --remote team --lease 1s; rm "$WORK/kill"
begin SENT loop.yaml 'A step is killed once it is at the remote'
push "$(at SENT)" team
timeout -s KILL 20 strace -f -qq -o /dev/null -P "$UWF_HOME/threads.yaml" -e trace=rename,renameat,renameat2 -e inject=rename,renameat,renameat2:signal=SIGKILL:when=1 uwf --quiet thread step "$(at SENT)" --remote team --lease 1s >/dev/null 2>&1 && echo 'not killed' >&2
ls "$WORK/team" "$WORK/team/leases"
find "$WORK/team/cas" -newer "$WORK/tmp/before" -type f | head
cat "$WORK/team/threads.yaml"; at PUSHING
sleep 3
uwf --quiet thread export "$(at WAITING)" "$(at SAME)" -o "$WORK/work/two.uwfb" >/dev/null
