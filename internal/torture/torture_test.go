package main

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/env"
)

var (
	built = flag.String("bin", "", "directory of the programs under test, for coding runs; default: they are built")
	long  = flag.Duration("long", 0, "how long histories and kills of coding runs take, each; default: a few rounds")
	seeds = flag.Uint64("seed", uint64(time.Now().Unix()/86_400), "what the randomness of coding runs begins with")
)

// programs builds what is tortured, and the torturer, since parts of it run as
// processes of their own: a test binary must never start itself.
func programs(t *testing.T) tools {
	t.Helper()
	e, err := env.OS()
	require.NoError(t, err)
	if *built != "" {
		return tools{bin: *built, env: e}
	}
	bin := t.TempDir()
	build := exec.Command("go", "build", "-o", bin+string(filepath.Separator), ".", "../../cmd/uwf", "../../cmd/uwf-builtin")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return tools{bin: bin, self: filepath.Join(bin, "torture"), env: e}
}

// TestScenarios is the short form: each scenario for a few seconds, with the
// seed of the day, so that every run of the tests sees another part.
func TestScenarios(t *testing.T) {
	t.Parallel()
	tools := programs(t)
	seed := uint64(tools.env.Now().Unix() / 86_400)
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			trial := newTrial(tools, t.TempDir(), seed, shortTime)
			require.NoError(t, trial.play(t.Context(), s), "seed %d", seed)
			t.Logf("%d rounds; %s", trial.rounds, strings.Join(trial.notes, "; "))
		})
	}
}

// shortTime is each scenario's in the short form. Together they take a minute.
const shortTime = 6 * time.Second

// A check that cannot fail holds nothing: what is lost, doubled or damaged on
// purpose must be found.
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
				if !bytes.Contains(line, []byte(id)) {
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
			nodes, err := filepath.Glob(filepath.Join(s.home, "cas", "nodes", "*", s.promise.last(s.base)+".bin"))
			require.NoError(t, err)
			require.Len(t, nodes, 1)
			require.NoError(t, replace(nodes[0], []byte("x")))
		}, "is corrupt"},
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

// A mutant whose text has moved on catches nothing, and neither does one that nothing
// tortures.
func TestMutantsStillApply(t *testing.T) {
	t.Parallel()
	patches, err := filepath.Glob("mutants/*.patch")
	require.NoError(t, err)
	require.NotEmpty(t, patches)
	for _, patch := range patches {
		text, err := os.ReadFile(patch)
		require.NoError(t, err)
		require.Regexp(t, `^[^\n]+\ntorture -only [^\n]+\n\n---`, string(text), patch)
		check := exec.Command("git", "apply", "--check", filepath.Join("internal/torture", patch))
		check.Dir = "../.."
		out, err := check.CombinedOutput()
		require.NoError(t, err, "%s: %s", patch, out)
	}
}
