#!/usr/bin/env python3
"""A whole agent in Python, standard library only.

It answers by rule where yours would ask a model, and shows how an answer that
does not fit the role's schema is corrected.
"""
import json
import os
import subprocess
import sys

UWF = os.environ.get("UWF_BIN", "uwf")


def uwf(*args, text=""):
    """Run uwf; its stdout is ours, so that uwf sees turns and the result."""
    sys.stdout.flush()
    return subprocess.run([UWF, *args], input=text, text=True, stderr=subprocess.PIPE)


def main():
    thread, role = sys.argv[1], sys.argv[2]
    prompt = subprocess.run([UWF, "step", "prompt"], check=True, capture_output=True, text=True).stdout

    answer = "Hello!"  # forgets the frontmatter, as models do
    for _ in range(3):
        uwf("step", "turn", "--role", "assistant", "--content", "-", text=answer)
        usage = {"turns": 1, "inputTokens": len(prompt) // 4, "outputTokens": len(answer) // 4}
        put = uwf("step", "put", "--output", "-", "--session", f"python-{thread}-{role}",
                  "--usage", json.dumps(usage), text=answer)
        if put.returncode != 4:  # 4: the answer does not fit, stderr says why
            sys.stderr.write(put.stderr)
            return put.returncode
        # A model would be sent put.stderr as it is.
        answer = "---\n$status: done\ngreeting: Hello from Python\n---\nI said hello.\n"
    return 1


if __name__ == "__main__":
    sys.exit(main())
