#!/bin/sh
# A whole agent in POSIX shell. It answers by rule where yours would ask a model.
# uwf starts it as: agent.sh <thread-id> <role> --prompt-ref <hash>
set -eu
uwf=${UWF_BIN:-uwf}

# What to do: format of the answer, role, task, history, instruction.
prompt=$("$uwf" step prompt)

# Announce a turn as it happens; the line that this prints is for uwf.
printf 'I was given %s characters to read.\n' "${#prompt}" |
  "$uwf" step turn --role assistant --content -

# The answer. Its last line of output is the result that uwf waits for.
"$uwf" step put --session "shell-$1-$2" --output - <<'ANSWER'
---
$status: done
greeting: Hello from POSIX shell
---
I said hello.
ANSWER
