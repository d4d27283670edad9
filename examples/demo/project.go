package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// project is the small Go project. Its files end in .txt, because a directory with a go.mod can't be
// embedded, and so that no tool treats them as part of this module.
//
//go:embed project/*.txt
var project embed.FS

// writeProject creates the project in a new directory.
func writeProject(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	files, err := fs.Glob(project, "project/*.txt")
	if err != nil {
		return err
	}
	for _, name := range files {
		content, err := project.ReadFile(name)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, strings.TrimSuffix(filepath.Base(name), ".txt"))
		if err := os.WriteFile(to, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// colour is the expected result of a test run.
type colour string

const (
	red   colour = "red"
	green colour = "green"
)

// expectTests runs the project's tests and shows the output.
func (d *demo) expectTests(ctx context.Context, want colour) error {
	d.prompt("go test ./...")
	c := exec.CommandContext(ctx, "go", "test", "-count=1", "./...")
	c.Dir, c.Env = d.project, d.childEnv()
	out, err := c.CombinedOutput()
	fmt.Fprintf(d.out, "%s", out)
	got := green
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && strings.Contains(string(out), "--- FAIL: TestMedian"):
		got = red
	case err != nil:
		return fmt.Errorf("go test: %w", err)
	}
	if got != want {
		return fmt.Errorf("promised: the tests are %s; they are %s", want, got)
	}
	if got == red {
		fmt.Fprintln(d.out, "(it fails as planned: this is the bug to repair)")
	}
	return nil
}

// showDiff shows the agents' changes, if git is available.
func (d *demo) showDiff(ctx context.Context) error {
	d.prompt("git diff")
	if !hasGit() {
		fmt.Fprintf(d.out, "git is not here. Compare %s with %s.\n", filepath.Join(d.root, "before"), d.project)
		return nil
	}
	c := exec.CommandContext(ctx, "git", "--no-pager", "diff", "--exit-code")
	c.Dir, c.Stdout, c.Stderr, c.Env = d.project, d.out, d.out, d.childEnv()
	err := c.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		return nil // git reports that there is a difference
	}
	if err != nil {
		return fmt.Errorf("git diff: %w", err)
	}
	return errors.New("promised: the project is changed; it is not")
}
