package cliagent

import (
	"strings"
	"testing"
)

func FuzzClaudeBlocks(f *testing.F) {
	f.Add("see @/etc/hostname")
	f.Add("@\xff@")
	f.Fuzz(func(t *testing.T, prompt string) {
		parts := ClaudeBlocks(prompt)
		if strings.Join(parts, "") != prompt {
			t.Fatalf("%q became %q", prompt, parts)
		}
		if tail := parts[len(parts)-1]; len(parts) > 1 && (strings.ContainsAny(tail, "@") || strings.HasPrefix(tail, "/")) {
			t.Fatalf("%q ends with %q", prompt, tail)
		}
	})
}
