package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// waits damages what waits to be taken over, after an agent that has finished has
// killed its uwf: a bit of its output, or anything in the record of its run. The
// next step adopts the work, or says what is wrong; it never runs the agent again
// in silence, and when the damage is undone the work is there.
func waits(ctx context.Context, t *trial) error {
	var s *stage
	adopted := 0
	for t.rounds == 0 || t.time(ctx) {
		var err error
		if s, err = t.stage(ctx, s); err != nil {
			return err
		}
		took, err := s.waited(ctx, t)
		if err != nil {
			return err
		}
		if took {
			adopted++
		}
		t.rounds++
	}
	t.note("%d of %d were adopted at once", adopted, t.rounds)
	return nil
}

// waited damages one result, and reports whether it was adopted nevertheless.
func (s *stage) waited(ctx context.Context, t *trial) (bool, error) {
	id, err := s.begun(ctx)
	if err != nil {
		return false, err
	}
	if err := s.leave(ctx, id); err != nil {
		return false, err
	}
	run := filepath.Join(s.home, "runs", id)
	before := map[string][]byte{}
	for _, name := range []string{"run.json", "stdout"} {
		if before[name], err = os.ReadFile(filepath.Join(run, name)); err != nil {
			return false, err
		}
	}
	name, broken := "run.json", damage(t.random, before["run.json"])
	if t.random.IntN(2) == 0 {
		name, broken = "stdout", bytes.Clone(before["stdout"])
		broken[t.random.IntN(len(broken))] ^= 1 << t.random.IntN(8)
	}
	if err := replace(filepath.Join(run, name), broken); err != nil {
		return false, err
	}
	e, err := s.uwf(ctx, append(s.stepArgs(id), "--format", "json")...)
	if err != nil {
		return false, err
	}
	took, err := adopts(e)
	switch {
	case err != nil:
		return false, fmt.Errorf("with %s damaged to %q: %w", name, head(string(broken)), err)
	case !took && !strings.Contains(e.Stderr, run):
		return false, fmt.Errorf("with %s damaged to %q, nothing names it: %s", name, head(string(broken)), e)
	case !took:
		for name, data := range before {
			if err := replace(filepath.Join(run, name), data); err != nil {
				return false, err
			}
		}
		if e, err = s.uwf(ctx, append(s.stepArgs(id), "--format", "json")...); err != nil {
			return false, err
		}
		if again, err := adopts(e); err != nil || !again {
			return false, fmt.Errorf("when the damage is undone, nothing is adopted: %s", e)
		}
	}
	s.promise.heard(e.Stdout)
	return took, s.check(ctx)
}

// leave makes a step whose agent kills its uwf when it has finished.
func (s *stage) leave(ctx context.Context, id string) error {
	script := s.path("leave.sh")
	if err := os.WriteFile(script, []byte(s.agent+` "$@"; kill -9 $PPID`+"\n"), 0o755); err != nil {
		return err
	}
	e, err := s.uwf(ctx, "thread", "step", id, "--agent", "sh "+script)
	if err != nil {
		return err
	}
	if e.Signal == "" {
		return fmt.Errorf("should have been killed: %s", e)
	}
	return s.must(ctx, nil, "thread", "wait", id)
}

// adopts reports whether a step that succeeded has adopted; a step that was made
// anew is an error.
func adopts(e ended) (bool, error) {
	if e.Code != 0 {
		return false, nil
	}
	var out struct{ Adopted bool }
	if err := json.Unmarshal(e.Stdout, &out); err != nil {
		return false, err
	}
	if !out.Adopted {
		return false, fmt.Errorf("the agent was run again: %s", e)
	}
	return true, nil
}
