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

// bench has the programs and the fixtures that the rows use. Fixtures are made
// when a row first needs them, and shared.
type bench struct {
	// dir holds everything until the end: a file system that has just removed many
	// files may be slow to make others. The caller removes it.
	dir  string
	bin  string // the programs that are measured
	full bool   // with the large fixtures
	made map[string]any
	next int // number of the next thing that must be new
}

// place is a home with one thread.
type place struct{ home, thread string }

// fixture makes something once.
func fixture[T any](b *bench, name string, build func() (T, error)) (T, error) {
	if known, ok := b.made[name]; ok {
		return known.(T), nil
	}
	made, err := build()
	if err != nil {
		return made, fmt.Errorf("make %s: %w", name, err)
	}
	b.made[name] = made
	return made, nil
}

// fresh is a number that nobody got before; n of them if more are needed.
func (b *bench) fresh(n int) int {
	b.next += n
	return b.next - n
}

func (b *bench) path(elem ...string) string {
	return filepath.Join(append([]string{b.dir}, elem...)...)
}

func (b *bench) program(name string) string { return filepath.Join(b.bin, name) }

// helper builds one of the programs below this one.
func (b *bench) helper(ctx context.Context, name string) (string, error) {
	return fixture(b, "program "+name, func() (string, error) {
		path := b.path("helper-" + name)
		cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", path, "github.com/united-workforce/uwf/internal/bench/"+name)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as make build does
		return path, silent(cmd)
	})
}

// command prepares a program that knows no home but this one.
func (b *bench) command(ctx context.Context, home, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = b.dir
	cmd.Env = append(os.Environ(), "HOME="+b.dir, "UWF_HOME="+home, "OCAS_HOME=")
	return cmd
}

// uwf runs uwf in a home and returns what it prints.
func (b *bench) uwf(ctx context.Context, home string, args ...string) (string, error) {
	return output(b.command(ctx, home, b.program("uwf"), append([]string{"--quiet"}, args...)...))
}

// empty runs a program that does nothing.
func (b *bench) empty(ctx context.Context) error {
	program, err := b.helper(ctx, "empty")
	if err != nil {
		return err
	}
	return exec.CommandContext(ctx, program).Run()
}

// output runs a command and returns its stdout.
func output(cmd *exec.Cmd) (string, error) {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", failed(cmd, err, stderr.String())
	}
	return strings.TrimSpace(string(out)), nil
}

// silent runs a command whose output nobody needs unless it fails.
func silent(cmd *exec.Cmd) error {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return failed(cmd, err, out.String())
	}
	return nil
}

func failed(cmd *exec.Cmd, err error, said string) error {
	return fmt.Errorf("%s %s: %w: %s", filepath.Base(cmd.Path), strings.Join(cmd.Args[1:], " "), err, strings.TrimSpace(said))
}
