package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/env"
)

var built = flag.String("bin", "", "directory of the programs under test; default: they are built")

// programs returns the programs under test, including torture itself, which starts itself for some parts: a
// test binary must never do that.
func programs(t *testing.T) tools {
	t.Helper()
	e, err := env.OS()
	require.NoError(t, err)
	if *built != "" {
		return tools{bin: *built, env: e}
	}
	require.NoError(t, build())
	return tools{bin: workshop(), self: filepath.Join(workshop(), "torture"), env: e}
}

// workshop is the directory for programs built by this process.
func workshop() string { return filepath.Join(os.TempDir(), fmt.Sprint("torture-", os.Getpid())) }

// build builds the programs, once for all tests.
var build = sync.OnceValue(func() error {
	cmd := exec.Command("go", "build", "-o", workshop()+string(filepath.Separator), ".", "../../cmd/uwf", "../../cmd/uwf-box", "../../cmd/uwf-builtin")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
})

func TestMain(m *testing.M) {
	status := m.Run()
	_ = os.RemoveAll(workshop())
	os.Exit(status)
}

// A check that cannot fail proves nothing: deliberate losses, duplicates and damage must be detected.
func TestBrokenPromisesAreFound(t *testing.T) {
	t.Parallel()
	tools := programs(t)
	for name, c := range map[string]struct {
		do   func(t *testing.T, s *stage)
		want string
	}{
		"a head that went back": {func(t *testing.T, s *stage) {
			file := filepath.Join(s.home, "threads.yaml")
			before, err := os.ReadFile(file)
			require.NoError(t, err)
			require.NoError(t, s.stepAgain(t.Context(), &s.promise, s.base))
			require.NoError(t, os.WriteFile(file, before, 0o644))
		}, "lost: step"},
		"a thread that is gone": {func(t *testing.T, s *stage) {
			id, err := s.started(t.Context())
			require.NoError(t, err)
			s.promise.add(id, "")
			file := filepath.Join(s.home, "threads.yaml")
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			var kept []byte
			for line := range bytes.Lines(text) {
				if !bytes.Contains(line, []byte(id)) && !bytes.HasPrefix(line, []byte("# sum:")) { // which would detect it
					kept = append(kept, line...)
				}
			}
			require.NoError(t, os.WriteFile(file, kept, 0o644))
		}, "lost: thread"},
		"work that was done twice": {func(t *testing.T, s *stage) {
			done, err := s.ledger.entries()
			require.NoError(t, err)
			require.NoError(t, note(s.ledger.path, done[0]))
		}, "doubled"},
		"finished work that is nowhere": {func(t *testing.T, s *stage) {
			require.NoError(t, note(s.ledger.path, entry{s.base, "0000000000000", "0000000000001"}))
		}, "lost: the agent finished"},
		"a node that is damaged": {func(t *testing.T, s *stage) {
			segments, err := filepath.Glob(filepath.Join(s.home, "cas", "log", "*.seg"))
			require.NoError(t, err)
			for _, path := range segments {
				data, err := os.ReadFile(path)
				require.NoError(t, err)
				for i := 40; i < len(data); i += 40 {
					data[i] ^= 1
				}
				require.NoError(t, replace(path, data))
			}
		}, "exit 7"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := newTrial(tools, t.TempDir(), 1, 0).stage(t.Context(), nil)
			require.NoError(t, err)
			require.NoError(t, s.check(t.Context()))
			c.do(t, s)
			require.ErrorContains(t, s.check(t.Context()), c.want)
		})
	}
}

// A mutant whose text no longer exists tests nothing, and neither does one without a scenario.
func TestMutantsStillApply(t *testing.T) {
	t.Parallel()
	patches, err := filepath.Glob("mutants/*.patch")
	require.NoError(t, err)
	require.NotEmpty(t, patches)
	for _, patch := range patches {
		text, err := os.ReadFile(patch)
		require.NoError(t, err)
		require.Regexp(t, `^[^\n]+\n(torture -only|go test) [^\n]+\n\n---`, string(text), patch)
		check := exec.Command("git", "apply", "--check", filepath.Join("internal/torture", patch))
		check.Dir = "../.."
		out, err := check.CombinedOutput()
		require.NoError(t, err, "%s: %s", patch, out)
	}
}
