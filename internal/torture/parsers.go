package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// parsers runs the fuzz tests of the tree in turn, as "make fuzz" does, in the
// order of the seed. It needs the sources; in the short form the tests' own seeds,
// which every go test runs, are what there is time for. Each test holds its inputs
// to a second of processor time and 200 MB (util/fuzzing).
func parsers(ctx context.Context, t *trial) error {
	const turn = "10s"
	if _, err := os.Stat(filepath.Join(t.src, "go.work")); err != nil || t.short() {
		t.note("not here: it needs the sources, and half a minute")
		return nil
	}
	cmd := exec.CommandContext(ctx, "go", "run", "./internal/release", "fuzz", "-time", turn,
		"-for", t.budget.String(), "-seed", strconv.FormatUint(t.seed, 10))
	cmd.Dir, cmd.Env = t.src, t.env.Environ
	out, err := cmd.CombinedOutput()
	t.rounds = strings.Count("\n"+string(out), "\nfuzz ")
	t.note("%d parsers, %s each", t.rounds, turn)
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("%w: %s", err, head(string(out)))
	}
	return nil
}
