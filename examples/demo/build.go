package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// programs lists the uwf programs that the demo uses.
var programs = []string{"uwf", "uwf-box", "uwf-builtin", "uwf-react", "uwf-llm"}

// build finds the repository, and builds the programs unless they were given.
func (d *demo) build(ctx context.Context) error {
	out, err := d.output(ctx, "", "go", "env", "GOWORK")
	if err != nil {
		return err
	}
	work := strings.TrimSpace(out)
	if work == "" || work == "off" {
		return errors.New("the demo builds uwf from its repository: run it there, with `make demo`")
	}
	d.repo = filepath.Dir(work)
	own := filepath.Join(d.root, "bin")
	if d.bin == "" {
		d.bin = own
		var packages []string
		for _, name := range programs {
			packages = append(packages, "./cmd/"+name)
		}
		if err := d.goBuild(ctx, own, packages...); err != nil {
			return err
		}
	}
	if d.bin, err = filepath.Abs(d.bin); err != nil {
		return err
	}
	for _, name := range programs {
		if _, err := os.Stat(d.program(name)); err != nil {
			return fmt.Errorf("%w: build it with `make build`", err)
		}
	}
	return d.goBuild(ctx, own, "./examples/demo/endpoint")
}

func (d *demo) goBuild(ctx context.Context, dir string, packages ...string) error {
	fmt.Fprintf(d.progress, "building %s\n", strings.Join(packages, " "))
	_, err := d.output(ctx, d.repo, "go", append([]string{"build", "-o", dir + string(filepath.Separator)}, packages...)...)
	return err
}

// program returns the path of a uwf program.
func (d *demo) program(name string) string { return filepath.Join(d.bin, name+exeSuffix()) }

func exeSuffix() string {
	if runtime.GOOS == "windows" {
		return ".exe"
	}
	return ""
}

// output runs a program and returns its output. Its stderr is part of the error.
func (d *demo) output(ctx context.Context, dir, name string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir, c.Env = dir, d.environ
	out, err := c.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), strings.Join(args, " "), err, exit.Stderr)
	}
	return string(out), err
}
