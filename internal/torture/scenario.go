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

// tools are the programs under test, and ourselves as an agent.
type tools struct {
	bin  string
	self string
	env  env.Env
}

// trial is one run of a scenario: a time budget, randomness that a seed repeats,
// and a directory.
type trial struct {
	tools
	dir    string
	random *rand.Rand
	budget time.Duration
	until  time.Time
	few    int    // how many rounds the short form has; 0: as many as the budget allows
	whole  bool   // whatever time it takes
	match  string // only what contains this is tried, where there is a list
	rounds int
	notes  []string
	worlds int
}

// newTrial begins a trial in dir that takes about so long.
func newTrial(tools tools, dir string, seed uint64, budget time.Duration) *trial {
	return &trial{
		tools: tools, dir: dir,
		random: rand.New(rand.NewPCG(seed, 1)), budget: budget, until: tools.env.Now().Add(budget),
	}
}

// scenario is one kind of misfortune. Its run tries as often as the budget
// allows, and stops at the first broken promise.
type scenario struct {
	name, what string
	few        int // rounds of the short form
	run        func(ctx context.Context, t *trial) error
}

// scenarios are all of them, in the order of the table.
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

// time says whether the budget allows another round.
func (t *trial) time(ctx context.Context) bool {
	if t.few > 0 {
		return ctx.Err() == nil && t.rounds < t.few
	}
	return ctx.Err() == nil && t.env.Now().Before(t.until)
}

// short reports whether this is the short form, which must leave most of it out.
func (t *trial) short() bool { return t.few > 0 || t.budget < time.Minute/2 }

// over says whether a short form has no time for more of a list. A long one ends
// only behind a list.
func (t *trial) over(ctx context.Context) bool { return t.short() && !t.time(ctx) }

// note adds a line to the report.
func (t *trial) note(format string, args ...any) {
	t.notes = append(t.notes, fmt.Sprintf(format, args...))
}

// world makes a home of its own.
func (t *trial) world() (*world, error) {
	t.worlds++
	return newWorld(filepath.Join(t.dir, fmt.Sprintf("%03d", t.worlds)), t.tools)
}

// removeAll is os.RemoveAll for trees with directories that nobody may write.
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
