package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"time"
)

// fuzzTarget is one fuzz test: the go command runs one at a time.
type fuzzTarget struct{ pkg, name string }

// fuzz runs every fuzz test of the tree for the same time, all of them even if
// one fails, but begins none after the total time, if there is one. A seed puts them in
// another order.
func (t *tree) fuzz(ctx context.Context, a arguments, p process) error {
	targets, err := t.fuzzTargets(ctx, p)
	if err != nil {
		return err
	}
	if a.seed != 0 {
		rand.New(rand.NewPCG(a.seed, 1)).Shuffle(len(targets), func(i, j int) { targets[i], targets[j] = targets[j], targets[i] })
	}
	var over <-chan time.Time
	if a.total > 0 {
		over = time.After(a.total)
	}
	var failed error
	for _, f := range targets {
		select {
		case <-over:
			return failed
		default:
		}
		fmt.Fprintln(p.stdout, "fuzz", f.pkg, f.name)
		cmd := exec.CommandContext(ctx, "go", "test", "-run=^$", "-fuzz=^"+f.name+"$", "-fuzztime="+a.each, f.pkg)
		cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = t.root, p.environ, p.stdout, p.stderr
		if err := cmd.Run(); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s %s: %w", f.pkg, f.name, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return failed
}

// fuzzTargets reads the test files of every package, in order.
func (t *tree) fuzzTargets(ctx context.Context, p process) ([]fuzzTarget, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-json=ImportPath,Dir,TestGoFiles,XTestGoFiles", "work")
	cmd.Dir, cmd.Env, cmd.Stderr = t.root, p.environ, p.stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	declared := regexp.MustCompile(`(?m)^func (Fuzz\w*)\(`)
	var targets []fuzzTarget
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var pkg struct {
			ImportPath, Dir           string
			TestGoFiles, XTestGoFiles []string
		}
		err := decoder.Decode(&pkg)
		if errors.Is(err, io.EOF) {
			return targets, nil
		}
		if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		for _, file := range slices.Concat(pkg.TestGoFiles, pkg.XTestGoFiles) {
			source, err := os.ReadFile(filepath.Join(pkg.Dir, file))
			if err != nil {
				return nil, err
			}
			for _, found := range declared.FindAllSubmatch(source, -1) {
				targets = append(targets, fuzzTarget{pkg.ImportPath, string(found[1])})
			}
		}
	}
}
