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

// tidy runs "go mod tidy" in every module, dependencies first, each against the
// siblings as they are after their own tidying.
//
// A go.sum line for a sibling is right only until that sibling's next change;
// after it, every build outside the workspace reports a checksum mismatch,
// which sounds like an attack. A build in the workspace needs no such line, and
// "go install …@version" does not read them. So they are taken out again,
// except for the commit of a release (sums): its tags are exactly what the
// lines say, and a checkout of a tag then builds without the workspace.
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

// checkTidy tidies, and reports every file that this has changed as an error.
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

// moduleFiles returns the texts of the files that tidy writes, by name; "" for one that
// is not there.
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

// tidyWorkspace loads every package, which makes the go command write what only
// the workspace as a whole needs into go.work.sum, and nothing else.
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
	// A stale line would be a checksum mismatch before tidy could replace it.
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

// dropSums takes the siblings' lines out of a module's go.sum.
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
