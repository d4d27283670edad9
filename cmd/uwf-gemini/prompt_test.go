package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/utilagent/cliagent"
)

var userHome = os.TempDir() // an absolute path; nothing is written there

func callWith(prompt, version string) cliagent.Call {
	return cliagent.Call{
		Prompt: prompt, Session: "1-2", Version: cliagent.ParseVersion(version),
		Env: func(name string) string { return map[string]string{"HOME": userHome}[name] },
	}
}

// expand returns the CLI's expansion of the command file and its argument.
func expand(t *testing.T, inv cliagent.Invocation) string {
	t.Helper()
	require.Len(t, inv.Files, 1)
	command, arg, _ := strings.Cut(inv.Stdin, " ")
	require.Equal(t, "/"+strings.TrimSuffix(filepath.Base(inv.Files[0].Path), ".toml"), command)
	_, text, found := strings.Cut(string(inv.Files[0].Data), "\nprompt = ")
	require.True(t, found)
	var prompt string
	require.NoError(t, json.Unmarshal([]byte(text), &prompt))
	require.NotContains(t, prompt, "@{")
	require.NotContains(t, prompt, "!{")
	if arg == "" {
		require.NotContains(t, prompt, argsMark)
	}
	return strings.ReplaceAll(prompt, argsMark, arg)
}

func TestAPromptReachesTheModelAsItIs(t *testing.T) {
	t.Parallel()
	for _, prompt := range []string{
		"  mail a@b.com; see @app.py @/etc/hostname\n", "/clear", "see @a and HEAD@{1} and @{upstream}", "@a if (!{}.x) !{", "@a {{args}}",
		"DEL \x7f quote \" back\\slash \\@x @y \u2028 <&>", "{{{prompt}}} @a {@{",
	} {
		c := callWith(prompt, "0.61.0")
		inv, err := command(c)
		require.NoError(t, err)
		require.False(t, isEscaped(c))
		require.Equal(t, prompt, expand(t, inv))
		require.Equal(t, filepath.Join(userHome, ".gemini", "commands", "uwf-1-2.toml"), inv.Files[0].Path)
		require.NotContains(t, string(inv.Files[0].Data), "\x7f")
	}
	for _, prompt := range []string{"nothing of it", "HEAD@{1} only", "a @ b", "@"} {
		inv, err := command(callWith(prompt, "0.61.0"))
		require.NoError(t, err)
		require.Empty(t, inv.Files)
		require.Equal(t, prompt, inv.Stdin)
	}
}

// As a fallback the model sees a backslash, and the detail records that.
func TestAPromptIsEscaped(t *testing.T) {
	t.Parallel()
	for prompt, c := range map[string]cliagent.Call{
		"an older version @x":   callWith("an older version @x", "0.9.0"),
		"one unknown @x":        callWith("one unknown @x", ""),
		"marks @x !{a} @{b}":    callWith("marks @x !{a} @{b}", "0.61.0"),
		"@@{ makes another one": callWith("@@{ makes another one", "0.9.0"),
	} {
		inv, err := command(c)
		require.NoError(t, err)
		require.Empty(t, inv.Files)
		require.Equal(t, escape(prompt), inv.Stdin)
		require.True(t, isEscaped(c))
		events, known := adapter().Decoder(c).Line([]byte(`{"type":"init","session_id":"S"}`))
		require.True(t, known)
		require.Contains(t, events, cliagent.Event{Kind: cliagent.Notice, Text: escaped})
	}
	require.Equal(t, `a\@b.com \@/etc/x HEAD@{1} \@@`, escape(`a@b.com @/etc/x HEAD@{1} @@`))
}

func FuzzTemplate(f *testing.F) {
	f.Add("@@{ !{ {{args}} {{{args}}}")
	f.Fuzz(func(t *testing.T, prompt string) {
		got, ok := templateOf(callWith(prompt, "0.61.0"))
		if !ok {
			return
		}
		if strings.Contains(got.text, "@{") || strings.Contains(got.text, "!{") {
			t.Fatalf("%q: the template has a mark: %q", prompt, got.text)
		}
		if text := strings.ReplaceAll(got.text, argsMark, got.arg); got.arg != "" && text != prompt || got.arg == "" && got.text != prompt {
			t.Fatalf("%q became %q", prompt, text)
		}
	})
}
