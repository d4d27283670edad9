package main

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"go/build"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// installCheck does what a user does, "go install <command>@<version>" from an
// empty directory, with every sibling from a proxy of the tree. It proves that
// no go.mod lacks or replaces anything that the workspace would hide.
func (t *tree) installCheck(ctx context.Context, dirs []string, p process) (err error) {
	version, err := t.versionOr("")
	if err != nil {
		return err
	}
	commands, err := t.commands(dirs)
	if err != nil {
		return err
	}
	o, err := t.newOutside(ctx, p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.close()) }()
	if err := t.publishAll(ctx, o.proxy, version); err != nil {
		return err
	}
	empty := filepath.Join(o.dir, "empty")
	if err := os.Mkdir(empty, 0o755); err != nil {
		return err
	}
	for _, m := range commands {
		if err := o.run(ctx, p, empty, "install", m.path+"@"+version); err != nil {
			return err
		}
		if err := checkBinary(filepath.Join(o.dir, "bin", path.Base(m.path)), m.path, version); err != nil {
			return err
		}
		if err := o.saysVersion(ctx, path.Base(m.path), version); err != nil {
			return err
		}
		fmt.Fprintln(p.stdout, "install", m.path+"@"+version)
	}
	if len(dirs) > 0 {
		return nil
	}
	return t.thirdParty(ctx, o, version, p)
}

// saysVersion runs an installed program.
func (o *outside) saysVersion(ctx context.Context, name, version string) error {
	out, err := exec.CommandContext(ctx, filepath.Join(o.dir, "bin", name+exeSuffix()), "--version").Output()
	if err != nil {
		return fmt.Errorf("%s --version: %w", name, err)
	}
	if want := name + " " + version; strings.TrimSpace(string(out)) != want {
		return fmt.Errorf("%s --version says %q, want %q", name, out, want)
	}
	return nil
}

// exeSuffix ends the names of programs here.
func exeSuffix() string {
	if runtime.GOOS == "windows" {
		return ".exe"
	}
	return ""
}

// commands returns the modules under cmd/ whose root is a program, or those of
// the given directories.
func (t *tree) commands(dirs []string) ([]*sibling, error) {
	var commands []*sibling
	for _, m := range t.modules {
		if len(dirs) > 0 && !slices.Contains(dirs, m.dir) || !strings.HasPrefix(m.dir, "cmd/") {
			continue
		}
		pkg, err := build.ImportDir(t.abs(m), 0)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.dir, err)
		}
		if pkg.IsCommand() {
			commands = append(commands, m)
		}
	}
	if len(commands) == 0 || len(dirs) > 0 && len(commands) != len(dirs) {
		return nil, fmt.Errorf("not all of %v are modules under cmd/ with a program", dirs)
	}
	return commands, nil
}

// checkBinary reads back what the binary says about itself: it is what
// --version prints.
func checkBinary(file, path, version string) error {
	info, err := buildinfo.ReadFile(file + exeSuffix())
	if err != nil {
		return err
	}
	if info.Main.Path != path || info.Main.Version != version {
		return fmt.Errorf("%s says that it is %s@%s, want %s@%s", file, info.Main.Path, info.Main.Version, path, version)
	}
	return nil
}
