// Command claude plays Claude Code's program: it answers at once.
package main

import (
	"fmt"
	"io"
	"os"
	"slices"
)

func main() {
	if slices.Contains(os.Args, "--version") {
		fmt.Println("2.1.50 (Claude Code)")
		return
	}
	session := "00000000-0000-4000-8000-000000000000"
	for _, flag := range []string{"--session-id", "--resume"} {
		if i := slices.Index(os.Args, flag); i > 0 && i+1 < len(os.Args) {
			session = os.Args[i+1]
		}
	}
	if !slices.Contains(os.Args, "--input-format") {
		_, _ = io.Copy(io.Discard, os.Stdin)
	}
	const answer = `---\n$status: again\nnote: a note\n---\nI did something.`
	fmt.Printf(`{"type":"system","subtype":"init","session_id":%q,"model":"m","tools":[]}
{"type":"assistant","message":{"id":"m1","role":"assistant","model":"m","content":[{"type":"text","text":"%s"}],"usage":{"input_tokens":1,"output_tokens":1}},"session_id":%q}
{"type":"result","subtype":"success","is_error":false,"result":"%s","session_id":%q,"total_cost_usd":0.01,"num_turns":1,"usage":{"input_tokens":1,"output_tokens":1}}
`, session, answer, session, answer, session)
}
