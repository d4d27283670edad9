package fakes

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

func codex() {
	takes := map[string]bool{
		"--json": false, "--skip-git-repo-check": false, "-C": true, "-s": true, "-m": true, "-c": true, "--output-schema": true,
		"--dangerously-bypass-approvals-and-sandbox": false,
	}
	if answers("codex-cli 0.169.0", "Commands:\n  resume\n  fork\n"+keysOf(takes), "exec", "--help") {
		return
	}
	f := start("codex", takes)
	var command []string
	for _, arg := range f.rest {
		if arg != "exec" && arg != "-" {
			command = append(command, arg)
		}
	}
	if len(command) == 2 && !f.load(command[1]) {
		f.die(1, "Error: thread/resume: thread/resume failed: no rollout found for thread id %s (code -32600)", command[1])
	}
	if len(command) == 0 || command[0] == "fork" {
		f.session.ID = fmt.Sprintf("01a1fb9d-656c-7050-b806-%012d", f.serial())
	}
	if os.Getenv("CODEX_API_KEY") == "none" {
		print(map[string]any{"type": "thread.started", "thread_id": f.session.ID}, map[string]any{"type": "turn.started"},
			map[string]any{"type": "turn.failed", "error": map[string]any{"message": "unexpected status 401 Unauthorized: no key"}})
		os.Exit(1)
	}
	text := f.hear(stdin())
	n := len(f.session.Prompts)
	call := func(kind, status string, code any, output string) map[string]any {
		return map[string]any{"type": kind, "item": map[string]any{
			"id": "item_1", "type": "command_execution", "command": "ls", "aggregated_output": output, "exit_code": code, "status": status,
		}}
	}
	print(map[string]any{"type": "thread.started", "thread_id": f.session.ID}, map[string]any{"type": "turn.started"},
		call("item.started", "in_progress", nil, ""), call("item.completed", "completed", 0, "README.md\n"),
		map[string]any{"type": "item.completed", "item": map[string]any{"id": "item_2", "type": "agent_message", "text": text}},
		map[string]any{"type": "turn.completed", "usage": map[string]any{"input_tokens": 110 * n, "cached_input_tokens": 100 * n, "output_tokens": 7 * n}})
}

// claude receives messages line by line. If a file contains a time (in Unix seconds), its limit is used up
// until then.
func claude() {
	takes := map[string]bool{
		"-p": false, "--output-format": true, "--verbose": false, "--setting-sources": true, "--max-turns": true, "--dangerously-skip-permissions": false,
		"--session-id": true, "--resume": true, "--input-format": true, "--replay-user-messages": false,
	}
	if answers("2.1.329 (Claude Code)", "", "--help") {
		return
	}
	f := start("claude", takes)
	f.session.ID = f.options["--session-id"]
	if id := f.options["--resume"]; id != "" && !f.load(id) {
		f.die(1, "No conversation found with session ID: %s", id)
	}
	prompt, err := bufio.NewReader(os.Stdin).ReadString('\n')
	if err != nil {
		f.die(1, "no message on stdin")
	}
	result := map[string]any{"type": "result", "subtype": "success", "session_id": f.session.ID, "usage": map[string]any{"input_tokens": 100, "output_tokens": 7}, "total_cost_usd": 0.01}
	print(map[string]any{"type": "system", "subtype": "init", "session_id": f.session.ID, "model": "sonnet", "claude_code_version": "2.1.329"})
	if until := limitedUntil(); time.Now().Unix() < until {
		result["is_error"], result["result"] = true, fmt.Sprintf("Claude AI usage limit reached|%d", until)
		print(result)
		os.Exit(1)
	}
	text := f.hear(prompt)
	result["result"] = text
	print(map[string]any{"type": "assistant", "session_id": f.session.ID, "uuid": "u1", "message": map[string]any{
		"id": "m1", "model": "sonnet", "content": []any{map[string]any{"type": "text", "text": text}}}}, result)
}

// limitedUntil returns the time in the file, or 0. "+2" means two seconds from the first call, which may be
// late on a busy machine.
func limitedUntil() int64 {
	file := filepath.Join(os.Getenv("FAKES"), "limit")
	data, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	text := strings.TrimSpace(string(data))
	until, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	if strings.HasPrefix(text, "+") {
		until += time.Now().Unix()
		if err := os.WriteFile(file, []byte(strconv.FormatInt(until, 10)), 0o600); err != nil {
			return 0
		}
	}
	return until
}

func gemini() {
	takes := map[string]bool{"--output-format": true, "--approval-mode": true, "-m": true, "--session-id": true, "--resume": true}
	if answers("0.61.0", keysOf(takes), "--help") {
		return
	}
	f := start("gemini", takes)
	cwd, _ := os.Getwd()
	switch id := f.options["--resume"]; {
	case id == "":
		f.session.ID = f.options["--session-id"]
	case !f.load(id) || f.session.Cwd != cwd:
		f.die(42, "Error resuming session: No previous sessions found for this project.")
	}
	text := f.hear(stdin())
	print(map[string]any{"type": "init", "session_id": f.session.ID, "model": "auto"},
		map[string]any{"type": "message", "role": "user", "content": "…"},
		map[string]any{"type": "message", "role": "assistant", "content": "I read first.", "delta": true},
		map[string]any{"type": "tool_use", "tool_name": "read_file", "tool_id": "t1", "parameters": map[string]any{"path": "README.md"}},
		map[string]any{"type": "tool_result", "tool_id": "t1", "status": "success", "output": "# Project"},
		map[string]any{"type": "message", "role": "assistant", "content": text[:5], "delta": true},
		map[string]any{"type": "message", "role": "assistant", "content": text[5:], "delta": true},
		map[string]any{"type": "result", "status": "success", "stats": map[string]any{"input_tokens": 110, "cached": 100, "input": 10, "output_tokens": 7}})
}

func opencode() {
	if answers("1.18.33", "", "--help") {
		return
	}
	f := start("opencode", map[string]bool{"--format": true, "-m": true, "-s": true, "--fork": false, "--agent": true, "--auto": false, "--title": true})
	var config struct {
		Permission map[string]string `json:"permission"`
	}
	if json.Unmarshal([]byte(os.Getenv("OPENCODE_CONFIG_CONTENT")), &config) != nil || config.Permission["*"] != "allow" {
		f.die(0, "! permission requested: bash (ls); auto-rejecting")
	}
	if id := f.options["-s"]; id != "" && !f.load(id) {
		f.die(1, "\x1b[91m\x1b[1mError: \x1b[0mSession not found")
	}
	if f.options["-s"] == "" || f.has("--fork") {
		f.session.ID = fmt.Sprintf("ses_%d", f.serial())
	}
	text := f.hear(stdin())
	line := func(kind string, part map[string]any) map[string]any {
		part["messageID"] = "msg_1"
		return map[string]any{"type": kind, "sessionID": f.session.ID, "part": part}
	}
	print(line("step_start", map[string]any{"type": "step-start"}), line("text", map[string]any{"type": "text", "text": text}),
		line("step_finish", map[string]any{"type": "step-finish", "reason": "stop", "cost": 0.01,
			"tokens": map[string]any{"input": 10, "output": 7, "reasoning": 0, "cache": map[string]any{"read": 100, "write": 0}}}))
}

// inFile matches a prompt that refers to a file.
var inFile = regexp.MustCompile(`^Your instructions are in the file (.+)\. Read`)

// cursor is the current program; FAKE=old is a version without --trust and without usage.
func cursor() {
	old := os.Getenv("FAKE") == "old"
	takes := map[string]bool{"-p": false, "--output-format": true, "--force": false, "--model": true, "--resume": true, "--mode": true}
	if !old {
		takes["--trust"], takes["--approve-mcps"], takes["--workspace"] = false, false, true
	}
	if answers("2026.08.11-abcdef", keysOf(takes), "--help") {
		return
	}
	f := start("cursor", takes)
	switch {
	case os.Getenv("CURSOR_API_KEY") == "none":
		f.die(1, "Error: Authentication required. Please run 'cursor-agent login' first, or set CURSOR_API_KEY environment variable.")
	case !old && !f.has("--trust") && !f.has("--force"):
		f.die(1, "Workspace Trust Required … Pass --trust, --yolo, or -f if you trust this directory")
	case len(f.rest) != 1:
		f.die(2, "error: too many arguments")
	}
	if id := f.options["--resume"]; id == "" {
		f.session.ID = fmt.Sprintf("c6b62c6f-7ead-4fd6-9922-%012d", f.serial())
	} else if !f.load(id) {
		f.session.ID = id // it starts over with the same ID
	}
	prompt := f.rest[0]
	if m := inFile.FindStringSubmatch(prompt); m != nil {
		data, _ := os.ReadFile(m[1])
		prompt = string(data)
	}
	text := f.hear(prompt)
	line := func(fields map[string]any) map[string]any { fields["session_id"] = f.session.ID; return fields }
	said := func(text string) map[string]any {
		return line(map[string]any{"type": "assistant", "message": map[string]any{"role": "assistant", "content": []any{map[string]any{"type": "text", "text": text}}}})
	}
	call := func(subtype string, body map[string]any) map[string]any {
		return line(map[string]any{"type": "tool_call", "subtype": subtype, "call_id": "toolu_1\nfc_1", "tool_call": map[string]any{"shellToolCall": body}})
	}
	args := map[string]any{"command": "ls"}
	result := line(map[string]any{"type": "result", "subtype": "success", "is_error": false, "duration_ms": 5, "result": "I look first." + text})
	if !old {
		result["usage"] = map[string]any{"inputTokens": 10, "outputTokens": 7, "cacheReadTokens": 100, "cacheWriteTokens": 0}
	}
	print(line(map[string]any{"type": "system", "subtype": "init", "model": "Claude 4.5 Sonnet", "permissionMode": "default"}),
		line(map[string]any{"type": "thinking", "subtype": "delta", "text": "I should look."}), said("I look first."),
		call("started", map[string]any{"args": args}),
		call("completed", map[string]any{"args": args, "result": map[string]any{"success": map[string]any{"exitCode": 0, "stdout": "README.md\n", "stderr": ""}}}),
		said(text), result)
	if os.Getenv("FAKE") == "hangs" {
		select {}
	}
}
