package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// tidy runs "go mod tidy" in every module, dependencies first, each against the already tidied siblings.
//
// A go.sum line for a sibling is valid only until that sibling's next change; then every build outside the
// workspace reports a checksum mismatch, which looks like an attack. A build in the workspace needs no such
// line, and "go install …@version" does not read them. So they are removed again, except in a release commit
// (sums): its tags match the lines, and a checkout of a tag then builds without the workspace.
func (t *tree) tidy(ctx context.Context, sums bool, p process) (err error) {
	version, err := t.versionOr("")
	if err != nil {
		return err
	}
	o, err := t.newOutside(ctx, p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.close()) }()
	for _, m := range t.modules {
		if err := t.tidyModule(ctx, o, m, sums, p); err != nil {
			return fmt.Errorf("%s: %w", m.dir, err)
		}
		tidied, err := loadModule(t.root, m.dir)
		if err != nil {
			return err
		}
		if err := t.publish(ctx, o.proxy, tidied, version); err != nil {
			return err
		}
		fmt.Fprintln(p.stdout, "tidy", m.dir)
	}
	return t.tidyWorkspace(ctx, p)
}

// checkTidy runs tidy and reports every changed file as an error.
func (t *tree) checkTidy(ctx context.Context, p process) error {
	before := t.moduleFiles()
	if err := t.tidy(ctx, false, p); err != nil {
		return err
	}
	after := t.moduleFiles()
	maps.DeleteFunc(after, func(name, text string) bool { return before[name] == text })
	if len(after) > 0 {
		return fmt.Errorf("make tidy has changed %s: commit that", strings.Join(slices.Sorted(maps.Keys(after)), ", "))
	}
	return nil
}

// moduleFiles returns the contents of the files that tidy writes, by name; "" for a missing one.
func (t *tree) moduleFiles() map[string]string {
	texts := map[string]string{}
	add := func(name string) {
		text, _ := os.ReadFile(filepath.Join(t.root, filepath.FromSlash(name)))
		texts[name] = string(text)
	}
	for _, m := range t.modules {
		add(path.Join(m.dir, "go.mod"))
		add(path.Join(m.dir, "go.sum"))
	}
	for _, dir := range t.works {
		add(path.Join(dir, "go.work.sum"))
	}
	return texts
}

// tidyWorkspace loads every package, which makes the go command add to go.work.sum the checksums that only
// the whole workspace needs.
func (t *tree) tidyWorkspace(ctx context.Context, p process) error {
	for _, dir := range t.works {
		cmd := exec.CommandContext(ctx, "go", "list", "-e", "-deps", "-test", "work")
		cmd.Dir, cmd.Env, cmd.Stderr = filepath.Dir(t.goWork(dir)), p.environ, p.stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("go list: %w", err)
		}
	}
	return nil
}

func (t *tree) tidyModule(ctx context.Context, o *outside, m *sibling, sums bool, p process) error {
	// A stale line would cause a checksum mismatch before tidy could replace it.
	if err := t.dropSums(m); err != nil {
		return err
	}
	if err := o.run(ctx, p, t.abs(m), "mod", "tidy"); err != nil {
		return err
	}
	if sums {
		return nil
	}
	return t.dropSums(m)
}

// dropSums removes the siblings' lines from a module's go.sum.
func (t *tree) dropSums(m *sibling) error {
	name := filepath.Join(t.abs(m), "go.sum")
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var kept []byte
	for line := range bytes.Lines(data) {
		required, _, _ := bytes.Cut(line, []byte(" "))
		if t.module(string(required)) == nil {
			kept = append(kept, line...)
		}
	}
	if len(kept) == len(data) {
		return nil
	}
	return os.WriteFile(name, kept, 0o644)
}
