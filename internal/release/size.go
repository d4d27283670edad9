package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// mass is how many lines of Go, tests and testdata aside, stand where.
type mass struct {
	product     int // what is released
	instruments int // internal/: what only we run
	examples    int
	linked      int // of the product, what cmd/uwf links
}

// size counts the lines that git knows or would add.
func (t *tree) size(ctx context.Context, p process) (mass, error) {
	listed, err := t.git(ctx, p, "ls-files", "--cached", "--others", "--exclude-standard", "*.go")
	if err != nil {
		return mass{}, err
	}
	inUwf, err := t.linkedInto(ctx, "./cmd/uwf", p)
	if err != nil {
		return mass{}, err
	}
	var m mass
	for name := range strings.Lines(listed) {
		name = strings.TrimSpace(name)
		if strings.HasSuffix(name, "_test.go") || strings.Contains(name, "/testdata/") {
			continue
		}
		data, err := os.ReadFile(filepath.Join(t.root, filepath.FromSlash(name)))
		if os.IsNotExist(err) { // removed, not yet committed
			continue
		}
		if err != nil {
			return mass{}, err
		}
		lines := bytes.Count(data, []byte("\n"))
		switch {
		case strings.HasPrefix(name, "internal/"):
			m.instruments += lines
		case strings.HasPrefix(name, "examples/"):
			m.examples += lines
		default:
			m.product += lines
		}
		if inUwf[filepath.Dir(filepath.Join(t.root, filepath.FromSlash(name)))] {
			m.linked += lines
		}
	}
	return m, nil
}

// linkedInto lists the directories of our packages that a program links.
func (t *tree) linkedInto(ctx context.Context, program string, p process) (map[string]bool, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-f", "{{if not .Standard}}{{.Dir}}{{end}}", program)
	cmd.Dir, cmd.Env, cmd.Stderr = t.root, p.environ, p.stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	dirs := map[string]bool{}
	for dir := range strings.Lines(string(out)) {
		dirs[strings.TrimSpace(dir)] = true
	}
	return dirs, nil
}

func sizeCommand(ctx context.Context, t *tree, _ arguments, p process) error {
	m, err := t.size(ctx, p)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.stdout, "lines of Go, without tests\n  product      %6d\n  instruments  %6d  internal/\n  examples     %6d\n  uwf links    %6d\n",
		m.product, m.instruments, m.examples, m.linked)
	return nil
}
