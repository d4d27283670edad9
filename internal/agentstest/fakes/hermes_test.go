package fakes

import (
	"fmt"
	"os"
)

// hermes is the program as of August 2026. FAKE=old is an earlier version without JSON lines. FAKE=rotates
// compresses a continued session into a new one.
func hermes() {
	how := os.Getenv("FAKE")
	takes := map[string]bool{
		"--yolo": false, "--max-turns": true, "--source": true, "--resume": true, "-m": true, "--provider": true,
	}
	help := ""
	if how != "old" {
		takes["--query-file"], takes["--format"], help = true, true, "\n  --format {text,stream-json}"
	}
	if answers("Hermes Agent v0.21.0", keysOf(takes)+help, "chat", "--help") {
		return
	}
	f := start("hermes", takes)
	prompt := stdin()
	asked := f.options["--resume"]
	switch found := asked != "" && f.load(asked); {
	case !found:
		f.session = session{ID: fmt.Sprintf("20261121_013037_%06x", f.serial())}
	case how == "rotates":
		f.session.ID = fmt.Sprintf("20261121_020000_%06x", f.serial())
	}
	f.stream(f.hear(prompt))
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
