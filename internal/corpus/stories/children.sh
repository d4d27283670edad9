# Families: all, each, with worktrees that are merged; completed, failed, half made, killed.
cat >panel.yaml <<'EOF'
name: panel
description: Two look at it, then a summary.
roles:
  reviewer:
    description: Looks.
    goal: Look at it.
    frontmatter: { type: object, properties: { $status: { enum: [approved, rejected] }, note: { type: string } }, required: [$status] }
  both:
    description: Both.
    all:
      security: { role: reviewer, prompt: "Security of {{{$prompt}}}" }
      tests: { role: reviewer, prompt: "Tests of {{{$prompt}}}" }
    join: "{ '$status': $count(results[output.`$status` = 'approved']) = 2 ? 'approved' : 'rejected', 'notes': [results.output.note] }"
    frontmatter: { type: object, properties: { $status: { enum: [approved, rejected] }, notes: { type: array, items: { type: string } } }, required: [$status] }
graph:
  $START: { _: both }
  both: { approved: { role: $END, prompt: "Both approve." }, rejected: { role: $END, prompt: "Rejected: {{#notes}}{{.}} {{/notes}}" } }
EOF
cat >each.yaml <<'EOF'
name: each
description: Each of a list.
inputs: { n: { schema: { type: integer }, default: 4 } }
roles:
  do:
    description: Works.
    run: [sh, -c, 'echo "$UWF_THREAD do {{{$prompt}}}" >>"$WORK/runs"; if test -e "$WORK/bad-{{{$prompt}}}"; then exit 1; fi; if test -e "$WORK/kill-{{{$prompt}}}"; then kill -9 $PPID; fi; printf "did {{{$prompt}}}"']
  all:
    description: All of them.
    each: { of: "[1..$inputs.n]", role: do, prompt: "{{item}}" }
    join: "{ '$status': $count(results[status = 'done']) = $count(results) ? 'done' : 'some', 'count': $count(results[status = 'done']) }"
    frontmatter: { type: object, properties: { $status: { enum: [done, some] }, count: { type: integer } }, required: [$status, count] }
graph:
  $START: { _: all }
  all: { done: { role: $END, prompt: "{{count}} done." }, some: { role: $END, prompt: "Only {{count}}." } }
EOF
cat >nested.yaml <<'EOF'
name: nested
description: A family in a family.
roles:
  plan: { description: Plans., run: [echo, planned] }
  groups:
    description: Groups.
    all: { one: { workflow: ./panel.yaml, prompt: "group one" }, two: { workflow: ./each.yaml, prompt: "group two" } }
graph:
  $START: { _: plan }
  plan: { passed: groups, failed: $END }
  groups: { done: { role: $END, prompt: "All groups." }, failed: $END }
EOF
mkdir repo
cat >fix.yaml <<'EOF'
name: fix
description: Two are fixed at once.
inputs: { names: { schema: { type: array, items: { type: string } } } }
roles:
  plan: { description: Does nothing., run: [echo, planned] }
  change: { description: Changes a file., run: [sh, -c, 'echo "change {{{$prompt}}}" >>"$WORK/runs"; case {{{$prompt}}} in a) { echo "a fixed"; cat a.txt; } > n && mv n a.txt;; a2) { echo "a differently"; cat a.txt; } > n && mv n a.txt;; b) echo "b fixed" >> b.txt;; esac'] }
  fixes:
    description: Fixes each.
    each: { of: $inputs.names, role: change, prompt: "{{{item}}}" }
    workspace: worktree
    merge: true
graph:
  $START: { _: plan }
  plan: { passed: fixes, failed: $END }
  fixes: { done: $END, failed: $END, conflict: $END }
EOF
cat >scenario.yaml <<'EOF'
repeat: true
steps:
  - { value: { $status: approved, note: fine }, usage: { turns: 1, inputTokens: 3, outputTokens: 2, costUsd: 0.1 } }
EOF
cat >veto.yaml <<'EOF'
repeat: true
steps:
  - { value: { $status: rejected, note: no } }
EOF
cat >ask.yaml <<'EOF'
steps:
  - suspend: Is it yours?
  - { value: { $status: approved, note: it is } }
EOF
run PANEL run panel.yaml -p 'the commit' --parallel 1
SCENARIO=veto.yaml run VETO run panel.yaml -p 'the other commit' --parallel 1
SCENARIO=ask.yaml run ASKS run panel.yaml -p 'a commit that asks' --parallel 1
run HALF thread start panel.yaml -p 'half made'
uwf --quiet thread step "$(at HALF)" >/dev/null
uwf --quiet thread step "$(at HALF)/security" >/dev/null
run AGAIN thread start panel.yaml -p 'played again'
uwf --quiet thread step "$(at AGAIN)" >/dev/null
uwf --quiet thread step "$(at AGAIN)/security" >/dev/null
uwf --quiet thread step "$(at AGAIN)/tests" >/dev/null
uwf --quiet thread again "$(at AGAIN)/tests" >/dev/null
run JOIN thread start panel.yaml -p 'all but the join'
uwf --quiet thread step "$(at JOIN)" >/dev/null
uwf --quiet thread step "$(at JOIN)/security" >/dev/null
uwf --quiet thread step "$(at JOIN)/tests" >/dev/null
run EACH run each.yaml -p 'each' --parallel 1
touch "$WORK/bad-2"
run BAD run each.yaml -p 'one is bad' --parallel 1
rm "$WORK/bad-2"
touch "$WORK/kill-3"
run KILLED thread start each.yaml -p 'killed in the third'
timeout -s KILL 20 uwf --quiet thread resume "$(at KILLED)" --parallel 1 >/dev/null 2>&1 || true
rm "$WORK/kill-3"
run NESTED run nested.yaml -p 'families' --parallel 1
run NESTED_HALF thread start nested.yaml -p 'half a family'
uwf --quiet thread step "$(at NESTED_HALF)" -c 2 >/dev/null
run UNDONE_FAMILY run panel.yaml -p 'undone' --parallel 1
uwf --quiet thread undo "$(at UNDONE_FAMILY)" >/dev/null
run CANCELLED_FAMILY thread start panel.yaml -p 'cancelled'
uwf --quiet thread step "$(at CANCELLED_FAMILY)" >/dev/null
uwf --quiet thread kill "$(at CANCELLED_FAMILY)" >/dev/null
cd repo
git init -q
seq 1 9 >a.txt
echo b >b.txt
git add .
git commit -qm first
run FIXED run ../fix.yaml -p go --var 'names=["a","b"]' --parallel 1
git commit -qam fixed
run CONFLICT run ../fix.yaml -p go --var 'names=["a","a2"]' --parallel 1
run FIXING thread start ../fix.yaml -p go --var 'names=["a","b"]'
uwf --quiet thread step "$(at FIXING)" -c 2 >/dev/null
child=$(uwf --json thread show "$(at FIXING)" | field children.0.key)
uwf --quiet thread step "$(at FIXING)/$child" >/dev/null
keep CHILD "$child"
uwf thread list --all | cut -c1-150
