package tools

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkGrep searches a tree of 50,000 files, alternating with git grep.
func BenchmarkGrep(b *testing.B) {
	dir := b.TempDir()
	body := strings.Repeat("\tif err := doSomething(ctx, value); err != nil {\n\t\treturn fmt.Errorf(\"it: %w\", err)\n\t}\n", 20)
	for i := range 50_000 {
		sub := filepath.Join(dir, fmt.Sprintf("d%02d/e%02d", i%50, i/50%20))
		if i < 1000 {
			require.NoError(b, os.MkdirAll(sub, 0o755))
		}
		text := body
		if i%5000 == 0 {
			text += "func Needle_" + fmt.Sprint(i) + "() {}\n"
		}
		require.NoError(b, os.WriteFile(filepath.Join(sub, fmt.Sprintf("f%d.go", i)), []byte(text), 0o644))
	}
	git(b, dir, "init", "-q")
	git(b, dir, "add", ".")
	for _, c := range []struct {
		name, pattern string
	}{
		{"word", "Needle_"},
		{"expression", `func \w+_\d+\(`},
		{"noword", `[A-Z][a-z]+_[0-9]+`},
		{"nothing", "thisIsNowhere"},
	} {
		b.Run(c.name, func(b *testing.B) {
			w, err := OpenWorkspace(dir)
			require.NoError(b, err)
			defer w.Close()
			var ours, theirs time.Duration
			for b.Loop() {
				began := time.Now()
				_, err := w.grep(b.Context(), grepArgs{Pattern: c.pattern})
				require.NoError(b, err)
				ours += time.Since(began)
				began = time.Now()
				git(b, dir, "grep", "-n", "-P", c.pattern)
				theirs += time.Since(began)
			}
			b.ReportMetric(float64(ours)/float64(theirs), "ratio")
			b.ReportMetric(float64(ours.Milliseconds())/float64(b.N), "ms/ours")
			b.ReportMetric(float64(theirs.Milliseconds())/float64(b.N), "ms/git")
		})
	}
}

// git runs git; no match is not an error.
func git(tb testing.TB, dir string, args ...string) string {
	tb.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull)
	out, err := cmd.Output()
	if err != nil && args[0] != "grep" {
		require.NoError(tb, err, "git %s", strings.Join(args, " "))
	}
	return string(out)
}
