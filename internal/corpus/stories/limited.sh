# Threads that a limit stopped, of money, tokens, steps and visits, and those that a provider has parked.
cat >loop.yaml <<'EOF'
name: loop
description: Goes round in a circle.
roles:
  thinker:
    description: Thinks.
    goal: Think.
    frontmatter: { type: object, properties: { $status: { enum: [more, done] }, thought: { type: string } }, required: [$status] }
graph:
  $START: { _: { role: thinker, prompt: "Think." } }
  thinker: { more: { role: thinker, prompt: "Once more." }, done: $END }
EOF
sed 's/^name: loop/name: steps/' loop.yaml >steps.yaml
echo 'limits: { maxSteps: 2 }' >>steps.yaml
sed 's/^name: loop/name: visits/' loop.yaml >visits.yaml
echo 'limits: { maxVisitsPerRole: 3 }' >>visits.yaml
cat >scenario.yaml <<'EOF'
repeat: true
steps:
  - value: { $status: more, thought: hm }
    usage: { turns: 1, outputTokens: 10, costUsd: 0.4 }
  - value: { $status: more, thought: hm }
    usage: { turns: 1, outputTokens: 10, costUsd: 0.4 }
  - value: { $status: more, thought: hm }
    usage: { turns: 1, outputTokens: 10, costUsd: 0.4 }
  - value: { $status: done, thought: so }
    usage: { turns: 1, outputTokens: 10, costUsd: 0.4 }
EOF
cat >"$WORK/limited" <<'EOF'
#!/bin/sh
# A provider that grants no more, until it does.
echo "$UWF_ROLE" >>"$WORK/runs"
test "${GRANTED:-}" = yes && exec uwf-mock --mock-data "$WORK/work/scenario.yaml" "$@"
echo "{\"error\":\"no more until then\",\"kind\":\"rate-limit\",\"retryAtMs\":$RETRY_AT,\"usage\":{}}"
exit 1
EOF
chmod 755 "$WORK/limited"
cat >>"$UWF_HOME/config.yaml" <<EOF
concurrency: { later: 2 }
EOF
sed -i "s|^defaultAgent|  limited: { command: $WORK/limited, account: later, onLimit: wait, maxPark: 720h, retry: { attempts: 1 } }\n  soon: { command: $WORK/limited, account: soon, onLimit: wait, retry: { attempts: 1 } }\ndefaultAgent|" "$UWF_HOME/config.yaml"
run COST run ./loop.yaml -p 'Money' --max-cost 1
run TOKENS run ./loop.yaml -p 'Tokens' --max-tokens 15
run TIME run ./loop.yaml -p 'Time' --max-cost 9 --max-tokens 20 --max-time 100h
run STEPS run ./steps.yaml -p 'Steps'
run VISITS run ./visits.yaml -p 'Visits'
run GRANTED run ./loop.yaml -p 'Granted' --max-cost 0.5
uwf --quiet thread resume "$(at GRANTED)" --more-cost 0.3 >/dev/null 2>&1 || true
export RETRY_AT=$(($(date +%s) * 1000 + 7200000))
run PARKED run ./loop.yaml -p 'Parked for two hours' --agent limited
export RETRY_AT=$(($(date +%s) * 1000 + 3000))
run DUE run ./loop.yaml -p 'Parked until the limit is reset' --agent soon
sleep 4
# A park counts for a month at most, so that the story moves it to the time of the test.
cat >park.sh <<'EOF'
until=$(($(date +%s) * 1000 + 7200000))
sed -i -E '/"parkedUntil":'"$WAS"'/ { s/("parkedUntil":)[0-9]+/\1'$until'/; s/,"check":"[0-9a-f]*"// }' "$UWF_HOME/facts.jsonl"
limit='{"untilMs":'$until',"notedMs":'$((until - 7200000))',"refusals":1,"reason":"no more until then"'
sum=$(printf '%s' "$limit" | gzip -c | tail -c 8 | od -An -tx4 -N4 | tr -d ' ')
printf '%s,"check":"%s"}' "$limit" "$sum" >"$UWF_HOME/limits/later.json"
EOF
WAS=$(grep "$(at PARKED)" "$UWF_HOME/facts.jsonl" | grep -o '"parkedUntil":[0-9]*' | cut -d: -f2)
sed -i "s/\"'\"\$WAS\"'/$WAS/" park.sh
