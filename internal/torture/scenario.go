package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/united-workforce/uwf/util/env"
)

// tools are the programs under test, and this program as an agent.
type tools struct {
	bin  string
	self string
	env  env.Env
}

// trial is one run of a scenario: a time budget, reproducible randomness, and a directory.
type trial struct {
	tools
	dir    string
	random *rand.Rand
	budget time.Duration
	until  time.Time
	few    int    // rounds in the short form; 0 for as many as the budget allows
	whole  bool   // ignore the budget
	match  string // only test items of a list that contain this text
	rounds int
	notes  []string
	worlds int
}

// newTrial begins a trial in dir with a time budget.
func newTrial(tools tools, dir string, seed uint64, budget time.Duration) *trial {
	return &trial{
		tools: tools, dir: dir,
		random: rand.New(rand.NewPCG(seed, 1)), budget: budget, until: tools.env.Now().Add(budget),
	}
}

// scenario is one kind of failure. Its run function tries as often as the budget allows, and stops at the
// first violation.
type scenario struct {
	name, what string
	few        int // rounds in the short form
	run        func(ctx context.Context, t *trial) error
}

// scenarios lists all scenarios in the order of the table.
func scenarios() []scenario {
	return []scenario{
		{"points", "every system call that writes goes wrong, one at a time", 8, points},
		{"races", "many processes over many threads and one store", 1, races},
		{"liars", "agents that say, do and leave behind what they should not", 8, liars},
		{"hostile", "files that nobody should have written", 30, hostile},
		{"secrets", "keys in config, environment and prompts", 2, secrets},
		{"repositories", "what somebody else has put where uwf is typed", 1, attacked(repositories())},
		{"terminals", "control characters in all that a terminal is shown", 1, attacked(terminals)},
		{"outsiders", "bundles of a stranger", 1, attacked(outsiders())},
		{"planted", "programs of the workspace on the PATH", 1, attacked(planted)},
		{"forged", "answers that speak as the moderator", 1, attacked(forged)},
	}
}

// time reports whether the budget allows another round.
func (t *trial) time(ctx context.Context) bool {
	if t.few > 0 {
		return ctx.Err() == nil && t.rounds < t.few
	}
	return ctx.Err() == nil && t.env.Now().Before(t.until)
}

// short reports whether this is the short form, which omits most cases.
func (t *trial) short() bool { return t.few > 0 || t.budget < time.Minute/2 }

// over reports whether a short form has no time for more of a list. A long one always completes the list.
func (t *trial) over(ctx context.Context) bool { return t.short() && !t.time(ctx) }

// note adds a line to the report.
func (t *trial) note(format string, args ...any) {
	t.notes = append(t.notes, fmt.Sprintf(format, args...))
}

// world creates a new home.
func (t *trial) world() (*world, error) {
	t.worlds++
	return newWorld(filepath.Join(t.dir, fmt.Sprintf("%03d", t.worlds)), t.tools)
}

// removeAll is os.RemoveAll for trees with read-only directories.
func removeAll(dir string) error {
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			return os.Chmod(path, 0o700)
		}
		return err
	})
	if err != nil {
		return err
	}
	return os.RemoveAll(dir)
}
