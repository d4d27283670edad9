package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"go/build"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// installCheck runs "go install <command>@<version>" as a user would, from an empty directory, with every
// sibling from a proxy of the tree. It detects a go.mod that lacks or replaces a module, which the workspace
// would hide.
func (t *tree) installCheck(ctx context.Context, dirs []string, p process) (err error) {
	version, err := t.versionOr("")
	if err != nil {
		return err
	}
	programs, err := t.programs(dirs)
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
	if err := o.downloadAll(ctx, t, version, empty, p); err != nil {
		return err
	}
	for _, installed := range programs {
		if err := o.install(ctx, p, empty, string(installed)+"@"+version); err != nil {
			return err
		}
		if err := checkBinary(filepath.Join(o.dir, "bin", installed.name()), string(installed), version); err != nil {
			return err
		}
		if err := o.saysVersion(ctx, installed.name(), version); err != nil {
			return err
		}
		fmt.Fprintf(p.stdout, "install %s@%s\n", installed, version)
	}
	if len(dirs) > 0 {
		return nil
	}
	return t.thirdParty(ctx, o, version, p)
}

// install installs a program. A go.mod without a required module is an error, although go would then use the
// newest version, because users would get a different one each day.
func (o *outside) install(ctx context.Context, p process, dir, program string) error {
	var printed bytes.Buffer
	p.stderr = io.MultiWriter(p.stderr, &printed)
	if err := o.run(ctx, p, dir, "install", program); err != nil {
		return err
	}
	if _, after, found := strings.Cut(printed.String(), "finding module for package "); found {
		missing, _, _ := strings.Cut(after, "\n")
		return fmt.Errorf("%s: its go.mod names no module with %s: run make tidy", program, missing)
	}
	return nil
}

// downloadAll downloads all modules to the cache. For a version in the cache, go uses a cached module that
// may contain the program: after ocas, go has the module cmd and would not look for cmd/uwf.
func (o *outside) downloadAll(ctx context.Context, t *tree, version, dir string, p process) error {
	for _, m := range t.modules {
		if err := o.run(ctx, p, dir, "mod", "download", m.path+"@"+version); err != nil {
			return err
		}
	}
	return nil
}

// saysVersion checks the version printed by an installed program.
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

// exeSuffix returns the suffix of executables on this platform.
func exeSuffix() string {
	if runtime.GOOS == "windows" {
		return ".exe"
	}
	return ""
}

// program is a released command: the import path of a package main.
type program string

func (p program) name() string { return path.Base(string(p)) }

// programs returns the commands to install: every package main in a module at or below cmd, or those in the
// given directories, which may also be below ext.
func (t *tree) programs(dirs []string) ([]program, error) {
	var found []program
	for _, m := range t.modules {
		extension := len(dirs) > 0 && strings.HasPrefix(m.dir, "ext/")
		if m.dir != "cmd" && !strings.HasPrefix(m.dir, "cmd/") && !extension {
			continue
		}
		inModule, err := t.programsIn(m)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.dir, err)
		}
		for _, dir := range inModule {
			if len(dirs) == 0 || slices.Contains(dirs, dir) {
				found = append(found, program(m.path+strings.TrimPrefix(dir, m.dir)))
			}
		}
	}
	if len(found) == 0 || len(dirs) > 0 && len(found) != len(dirs) {
		return nil, fmt.Errorf("not all of %v are programs under cmd/", dirs)
	}
	slices.SortFunc(found, func(a, b program) int { return strings.Compare(a.name(), b.name()) })
	return found, nil
}

// programsIn lists the directories of a module's programs: its own, or its subdirectories that are not
// modules.
func (t *tree) programsIn(m *sibling) ([]string, error) {
	below, err := os.ReadDir(t.abs(m))
	if err != nil {
		return nil, err
	}
	candidates := []string{m.dir}
	for _, entry := range below {
		dir := path.Join(m.dir, entry.Name())
		isModule := slices.ContainsFunc(t.modules, func(other *sibling) bool { return other.dir == dir })
		if entry.IsDir() && !isModule {
			candidates = append(candidates, dir)
		}
	}
	var programs []string
	for _, dir := range candidates {
		pkg, err := build.ImportDir(filepath.Join(t.root, filepath.FromSlash(dir)), 0)
		if _, none := errors.AsType[*build.NoGoError](err); none {
			continue
		}
		if err != nil {
			return nil, err
		}
		if pkg.IsCommand() {
			programs = append(programs, dir)
		}
	}
	return programs, nil
}

// checkBinary checks the version in the binary's build info, which --version prints.
func checkBinary(file, path, version string) error {
	info, err := buildinfo.ReadFile(file + exeSuffix())
	if err != nil {
		return err
	}
	if info.Path != path || info.Main.Version != version {
		return fmt.Errorf("%s says that it is %s@%s, want %s@%s", file, info.Path, info.Main.Version, path, version)
	}
	return nil
}
