package fakes

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// hermes is the program as it is since August 2026. FAKE=old is one before: no
// JSON lines, the answer on stdout with the session's id on stderr; FAKE=older one
// that prints banner and id on stdout. Both keep the conversation in a file, as
// they do with sessions.write_json_snapshots. FAKE=rotates is a new one that
// compresses a continued session into another, FAKE=forgets one that begins a new
// session without a word.
func hermes() {
	how := os.Getenv("FAKE")
	old := strings.HasPrefix(how, "old")
	takes := map[string]bool{
		"-q": true, "--quiet": false, "--yolo": false, "--max-turns": true, "--source": true, "--resume": true, "-m": true, "--provider": true,
	}
	if !old {
		takes["--query-file"], takes["--format"] = true, true
	}
	if answers("Hermes Agent v0.21.0", keysOf(takes)+map[bool]string{false: "\n  --format {text,stream-json}"}[old], "chat", "--help") {
		return
	}
	f := start("hermes", takes)
	prompt := f.options["-q"]
	if f.has("--query-file") {
		prompt = stdin()
	}
	asked := f.options["--resume"]
	found := asked != "" && how != "forgets" && f.load(asked)
	switch {
	case !found:
		f.session = session{ID: fmt.Sprintf("20261121_013037_%06x", f.serial())}
	case how == "rotates":
		f.session.ID = fmt.Sprintf("20261121_020000_%06x", f.serial())
	}
	text := f.hear(prompt)
	if how != "old-without-files" {
		f.snapshot(map[bool]string{true: asked}[found && how == "rotates"], prompt, text)
	}
	switch {
	case old:
		f.quiet(how, asked, found, text)
	default:
		f.stream(text)
	}
}

// snapshot writes the conversation where Hermes keeps it.
func (f *fake) snapshot(parent, prompt, text string) {
	dir := filepath.Join(os.Getenv("HERMES_HOME"), "sessions")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		f.die(9, "%v", err)
	}
	data, _ := json.Marshal(map[string]any{"session_id": f.session.ID, "model": "hermes-model", "parent_session_id": parent, "messages": []any{
		map[string]any{"role": "user", "content": "an earlier prompt"},
		map[string]any{"role": "assistant", "content": "an earlier answer"},
		map[string]any{"role": "user", "content": prompt},
		map[string]any{"role": "assistant", "content": "", "tool_calls": []any{map[string]any{
			"id": "call_1", "function": map[string]any{"name": "terminal", "arguments": `{"command":"ls"}`}}}},
		map[string]any{"role": "tool", "content": "README.md", "tool_call_id": "call_1"},
		map[string]any{"role": "assistant", "content": text},
	}})
	if err := os.WriteFile(filepath.Join(dir, "session_"+f.session.ID+".json"), data, 0o600); err != nil {
		f.die(9, "%v", err)
	}
}

func (f *fake) quiet(how, asked string, found bool, text string) {
	if how == "older" {
		switch {
		case found:
			fmt.Println("↻ Resumed session " + asked + " (2 messages)")
		case asked != "":
			fmt.Println("Session not found: " + asked)
		}
		fmt.Printf("session_id: %s\n\n%s", f.session.ID, text)
		return
	}
	fmt.Print(text)
	fmt.Fprintf(os.Stderr, "\nsession_id: %s\n", f.session.ID)
}

func (f *fake) stream(text string) {
	print(map[string]any{"type": "system", "subtype": "init", "model": "hermes-model", "session_id": f.session.ID},
		map[string]any{"type": "text", "text": "I look first."},
		map[string]any{"type": "tool_use", "name": "terminal", "tool_call_id": "call_1", "input": map[string]any{"command": "ls"}},
		map[string]any{"type": "tool_result", "name": "terminal", "tool_call_id": "call_1", "output": "README.md", "is_error": false},
		map[string]any{"type": "text", "text": text[:9]}, map[string]any{"type": "text", "text": text[9:]},
		map[string]any{"type": "result", "session_id": f.session.ID, "exit_code": 0, "text": text,
			"tokens": map[string]any{"input": 10, "output": 7, "total": 117, "cache_read": 100, "cache_write": 0}})
	fmt.Fprintf(os.Stderr, "\nsession_id: %s\n", f.session.ID)
}
