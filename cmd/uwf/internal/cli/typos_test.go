package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mattn/go-shellwords"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/env"
)

// TestTypos tests mistyped command lines. testdata/typos/answers.txt contains each command line with the
// complete answer: the error, the allowed values, and suggestions. To fill in the answer for a new line, run
//
//	go test ./internal/cli -run TestTypos -update
func TestTypos(t *testing.T) {
	const golden = "testdata/typos/answers.txt"
	text, err := os.ReadFile(golden)
	require.NoError(t, err)
	place := newTypist(t)
	var got strings.Builder
	typed := 0
	for line := range strings.Lines(string(text)) {
		command, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "$ ")
		switch {
		case ok:
			typed++
			fmt.Fprintf(&got, "$ %s\n%s\n", command, place.types(t, command))
		case strings.HasPrefix(line, "#"):
			got.WriteString(line)
		}
	}
	require.Greater(t, typed, 200)
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(got.String()), 0o644))
		return
	}
	require.Equal(t, string(text), got.String())
}

// typist is a directory with a home that has one workflow, one thread of two steps, and one agent.
type typist struct{ dir string }

func newTypist(t *testing.T) typist {
	p := typist{t.TempDir()}
	write := func(name, text string, mode os.FileMode) {
		path := filepath.Join(p.dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), mode))
	}
	program := ""
	if runtime.GOOS == "windows" {
		program = ".exe"
	}
	for _, name := range []string{"uwf-mock", "uwf-builtin", "uwf-codex"} {
		write("bin/"+name+program, "", 0o755)
	}
	write("home/config.yaml", "agents: { mock: { command: uwf-mock } }\ndefaultAgent: mock\n"+
		"providers: { local: { baseUrl: \"http://localhost/v1\" } }\nmodels: { default: { provider: local, name: m } }\n", 0o600)
	write("text", "hello\n", 0o644)
	write("empty", "", 0o644)
	write("binary", "\x1b\x00\xff\x01", 0o644)
	write("dir/file", "", 0o644)
	for from, to := range map[string]string{"tidy.yaml": "tidy.yaml", "thread.uwfb": "good.uwfb"} {
		data, err := os.ReadFile("testdata/typos/" + from)
		require.NoError(t, err)
		write(to, string(data), 0o644)
	}
	require.Contains(t, p.types(t, "uwf thread import good.uwfb"), "0\n")
	threads := filepath.Join(p.dir, "home", "threads.yaml") // as if it had been started here
	said, err := os.ReadFile(threads)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(threads, said[bytes.IndexByte(said, '\n')+1:], 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(p.dir, "home", "facts.jsonl"), []byte("\n"), 0o600))
	require.Contains(t, p.types(t, "uwf workflow put tidy.yaml"), "0\n")
	return p
}

// types runs a command line and returns its exit status and stderr. Words before "uwf" are environment
// variables.
func (p typist) types(t *testing.T, line string) string {
	words, err := shellwords.Parse(line)
	require.NoError(t, err, line)
	var out, said bytes.Buffer
	e := env.Env{
		Dir: p.dir, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &said,
		Now:  func() time.Time { return time.Date(2026, 11, 21, 23, 0, 0, 0, time.UTC) },
		Rand: strings.NewReader(strings.Repeat("typo", 1000)),
		Environ: []string{
			"PATH=" + filepath.Join(p.dir, "bin"), "HOME=" + p.dir, "USERPROFILE=" + p.dir,
			"UWF_HOME=" + filepath.Join(p.dir, "home"), "UWF_FORMAT=",
		},
	}
	for words[0] != "uwf" {
		e.Environ, words = append(e.Environ, words[0]), words[1:]
	}
	e.Args = append([]string{"--format", "text"}, words[1:]...)
	status := Main(t.Context(), e)
	answer := strings.NewReplacer(p.dir+string(filepath.Separator), "", p.dir, "HERE").Replace(said.String())
	if status != 0 {
		assert.Contains(t, []int{2, 3, 4, 5}, status, line)
		assert.Regexp(t, `(?m)^hint: |→|did you mean|must be|is required`, answer, "what to type next: %s", line)
	}
	return fmt.Sprintf("%d\n%s", status, answer)
}
