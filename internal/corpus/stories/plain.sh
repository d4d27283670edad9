# Threads that are done, wait, were cancelled, forked, undone, poked, answered by people.
cat >loop.yaml <<'EOF'
name: loop
description: One role, again and again.
roles:
  worker:
    description: Works.
    goal: You work.
    capabilities: [typing]
    procedure: Work.
    output: Something.
    frontmatter:
      type: object
      properties: { $status: { enum: [again, done] }, note: { type: string }, n: { type: number }, list: { type: array, items: { type: string } } }
      required: [$status]
graph:
  $START: { _: { role: worker, prompt: "{{{$prompt}}}" } }
  worker:
    again: { role: worker, prompt: "Again: {{note}} {{#list}}<{{.}}>{{/list}}{{^list}}none{{/list}}" }
    done: { role: $END, prompt: "Done: {{{note}}}" }
EOF
cat >scenario.yaml <<'EOF'
repeat: true
steps:
  - turns:
      - say: I look first.
      - { tool: read_file, args: { path: a.go }, result: "package a" }
    output: "---\n$status: again\nnote: \"a & b\"\nn: 1.5\nlist: [x, y]\n---\nI did something. Ünïcode ✓\n"
    usage: { turns: 2, inputTokens: 100, outputTokens: 10, cacheReadTokens: 7, costUsd: 0.25 }
  - { value: { $status: again, note: second } }
  - { value: { $status: done, note: third, n: 1e21 }, usage: { turns: 1, inputTokens: 1, outputTokens: 1 } }
EOF
cat >choose.yaml <<'EOF'
name: choose
description: Conditions, inputs, a person, a command.
inputs:
  level: { schema: { type: integer }, default: 2 }
  names: { schema: { type: array, items: { type: string } }, default: [a, b] }
roles:
  check: { description: Runs a command., run: [sh, -c, "printf '%s' {{{$inputs.level}}}; exit {{{$inputs.level}}}"] }
  score:
    description: Scores.
    goal: Score it.
    frontmatter: { type: object, properties: { points: { type: integer }, why: { type: string } }, required: [points] }
  approve:
    description: Somebody approves.
    person: true
    frontmatter: { type: object, properties: { $status: { enum: [approved, rejected] }, comment: { type: string } }, required: [$status, comment] }
graph:
  $START: { _: check }
  check: { passed: score, failed: { role: score, prompt: "It failed: {{{output}}}" } }
  score:
    - { condition: "meta.points > 5 and $count($inputs.names) = 2", role: approve, prompt: "{{points}} points: {{why}}" }
    - { role: $END, prompt: "Only {{points}}." }
  approve: { approved: { role: $END, prompt: "Approved: {{{comment}}}" }, rejected: score }
EOF
cat >score.yaml <<'EOF'
roles:
  score: [{ value: { points: 9, why: good } }, { value: { points: 3 } }]
EOF
cat >ask.yaml <<'EOF'
steps:
  - suspend: Which branch?
  - { value: { $status: done, note: main } }
EOF
cat >correct.yaml <<'EOF'
steps:
  - output: No frontmatter here.
    corrections: ["---\n$status: never\n---\n", { output: "---\n$status: done\nnote: at last\n---\nSo.", turns: [{ say: I forgot it. }] }]
EOF
cat >fail.yaml <<'EOF'
steps:
  - { value: { $status: again, note: one } }
  - { fail: no network }
EOF
cat >read.yaml <<'EOF'
steps:
  - output: Done, says the talker; the note is that all is well.
    usage: { inputTokens: 10 }
EOF
uwf --quiet workflow put loop.yaml >/dev/null
uwf --quiet workflow put choose.yaml >/dev/null
run DONE run loop -p 'Fix it' --title 'A title'
SCENARIO=ask.yaml run ASKED run loop -p 'Ask me'
SCENARIO=ask.yaml run WAITS run loop -p 'Ask me, and wait'
SCENARIO=ask.yaml uwf thread resume "$(at ASKED)" -p 'main, please' --quiet >/dev/null
SCENARIO=correct.yaml run CORRECTED run loop -p 'Correct it'
SCENARIO=fail.yaml run FAILED run loop -p 'This fails'
run CANCELLED thread start loop -p 'This is cancelled'
uwf --quiet thread step "$(at CANCELLED)" >/dev/null
uwf --quiet thread kill "$(at CANCELLED)" >/dev/null
run FORK thread fork "$(at DONE)@1"
uwf --quiet thread step "$(at FORK)" >/dev/null
run UNDONE run loop -p 'Undo this'
uwf --quiet thread undo "$(at UNDONE)" >/dev/null
uwf --quiet thread undo "$(at UNDONE)" >/dev/null
run POKED thread start loop -p 'Poke this'
uwf --quiet thread step "$(at POKED)" >/dev/null
uwf --quiet thread poke "$(at POKED)" -p 'be exact' >/dev/null
run TOLD thread start loop -p 'Tell this'
uwf --quiet thread tell "$(at TOLD)" 'Leave the parser alone' >/dev/null
SCENARIO=score.yaml run PERSON run choose -p 'Choose' --var level=0
SCENARIO=score.yaml run ANSWERED run choose -p 'Choose, too' --var 'names=["c","d"]'
uwf --quiet thread answer "$(at ANSWERED)" --set '$status=approved' --set comment='Well done' --as me >/dev/null
SCENARIO=score.yaml run REJECTED run choose -p 'Choose again' --vars - <<<'{"level":1,"names":[]}'
run SEALED run loop -p 'Seal this'
keep SEAL "$(uwf --json --quiet thread seal "$(at SEALED)" | field seal)"
run REDACTED run loop -p 'A secret task'
keep SECRET "$(uwf --json step show "$(at REDACTED)@1" | field hash)"
keep TEXT "$(uwf cas get "$(at SECRET)" --json | field payload.detail)"
uwf --quiet thread redact "$(at REDACTED)" --node "$(uwf --json cas get "$(at TEXT)" | field payload.turns.0)" --reason 'a key' >/dev/null
run GONE run loop -p 'This is removed'
uwf --quiet thread rm "$(at GONE)" --yes >/dev/null
uwf --quiet cas gc --grace 0s >/dev/null
run LEFT run loop -p 'This was removed, its nodes are left'
uwf --quiet thread rm "$(at LEFT)" --yes >/dev/null
uwf --quiet thread export --all -o "$WORK/work/all.uwfb" >/dev/null
uwf --quiet thread export "$(at REDACTED)" -o "$WORK/work/redacted.uwfb" >/dev/null
uwf --quiet cas export "$(at SECRET)" -o "$WORK/work/nodes.uwfb" >/dev/null
# A model reads an answer that has no frontmatter.
python3 - "$WORK/tmp/port" >/dev/null 2>&1 <<'EOF' &
import http.server, json, sys
class Model(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        text = json.dumps({"choices": [{"message": {"role": "assistant", "content": '{"$status": "done", "note": "all is well"}'}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 7}}).encode()
        self.send_response(200); self.send_header("Content-Type", "application/json"); self.end_headers(); self.wfile.write(text)
server = http.server.HTTPServer(("127.0.0.1", 0), Model)
open(sys.argv[1], "w").write(str(server.server_port))
server.serve_forever()
EOF
model=$!
until test -s "$WORK/tmp/port"; do sleep 0.1; done
cp "$UWF_HOME/config.yaml" "$WORK/tmp/config.yaml"
printf 'providers: { p: { baseUrl: "http://127.0.0.1:%s" } }\nmodels: { m: { provider: p, name: small, stream: false } }\ndefaultModel: m\n' "$(cat "$WORK/tmp/port")" >>"$UWF_HOME/config.yaml"
SCENARIO=read.yaml run READ run loop -p 'A model reads this'
cp "$WORK/tmp/config.yaml" "$UWF_HOME/config.yaml"
kill $model
