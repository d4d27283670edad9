package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The normal end of -fuzztime is not a failure of a target; everything else is.
func TestFuzzDistinguishesEndFromFailure(t *testing.T) {
	t.Parallel()
	script, err := filepath.Abs("fuzz.sh")
	require.NoError(t, err)
	for _, c := range []struct {
		name, prints string
		fails        bool
	}{
		{"the end of its time", "fuzz: elapsed: 3s, execs: 7\n--- FAIL: FuzzIt (3.01s)\n    context deadline exceeded\nFAIL\n", false},
		{"an input", "--- FAIL: FuzzIt (0.01s)\n    --- FAIL: FuzzIt (0.00s)\n        it_test.go:7: no\n    Failing input written to testdata/fuzz/FuzzIt/1\nFAIL\n", true},
		{"an input at the end of its time", "--- FAIL: FuzzIt (3.01s)\n    context deadline exceeded\n    Failing input written to testdata/fuzz/FuzzIt/1\nFAIL\n", true},
		{"a seed", "--- FAIL: FuzzIt (0.00s)\n    it_test.go:7: context deadline exceeded\nFAIL\n", true},
		{"more than the end", "--- FAIL: FuzzIt (3.01s)\n    context deadline exceeded\n--- FAIL: FuzzIt/seed#0\n    it_test.go:7: no\nFAIL\n", true},
		{"a panic", "panic: no\nFAIL\n", true},
		{"no build", "it_test.go:7:2: undefined: no\n", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			require.NoError(t, exec.Command("git", "init", "-q", dir).Run())
			require.NoError(t, os.Mkdir(filepath.Join(dir, "it"), 0o755))
			write(t, "package it\n\nfunc FuzzIt(f *testing.F) {}\n", dir, "it", "it_test.go")
			write(t, c.prints, dir, "prints")
			write(t, "cat prints\nexit 1\n", dir, "go.sh")
			cmd := exec.Command(script, "3s")
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "GO=sh go.sh", "TMPDIR="+t.TempDir())
			out, err := cmd.CombinedOutput()
			require.Equal(t, c.fails, err != nil, "%s", out)
			require.Contains(t, string(out), "fuzz it:FuzzIt\n"+c.prints)
		})
	}
}
