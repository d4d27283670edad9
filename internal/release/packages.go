package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// packaging is the directory with files for package managers.
const packaging = "packaging"

// deb builds a Debian package from an archive's files with nfpm.
func (t *tree) deb(ctx context.Context, arch string, d delivery, files []member, p process) (name string, data []byte, err error) {
	stage, err := os.MkdirTemp("", "uwf-deb-")
	if err != nil {
		return "", nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(stage)) }()
	for _, f := range files {
		dir := "doc"
		if f.mode == 0o755 {
			dir = "bin"
		}
		file := filepath.Join(stage, dir, f.name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, f.data, os.FileMode(f.mode))); err != nil {
			return "", nil, err
		}
	}
	if err := os.CopyFS(filepath.Join(stage, packaging), os.DirFS(filepath.Join(t.root, packaging))); err != nil {
		return "", nil, err
	}
	name = fmt.Sprintf("uwf_%s_%s.deb", strings.TrimPrefix(d.version, "v"), arch)
	target := filepath.Join(stage, name)
	cmd := exec.CommandContext(ctx, d.nfpm, "package", "--packager", "deb", "--config", filepath.Join(t.root, packaging, "nfpm.yaml"), "--target", target)
	cmd.Dir, cmd.Stderr = stage, p.stderr
	cmd.Env = append(p.environ[:len(p.environ):len(p.environ)], "STAGE="+stage, "ARCH="+arch, "VERSION="+d.version,
		fmt.Sprintf("SOURCE_DATE_EPOCH=%d", d.when.Unix()))
	if err := cmd.Run(); err != nil {
		return "", nil, fmt.Errorf("nfpm: %w", err)
	}
	data, err = os.ReadFile(target)
	return name, data, err
}

// installers writes the files that download the archives: the Homebrew formula with their checksums, and
// install.sh. A formula needs the archives of all its platforms.
func (t *tree) installers(d delivery, sums *checksums, p process) error {
	formula, err := os.ReadFile(filepath.Join(t.root, packaging, "uwf.rb"))
	if errors.Is(err, os.ErrNotExist) {
		return nil // a tree without packaging
	}
	if err != nil {
		return err
	}
	fill := []string{"{version}", strings.TrimPrefix(d.version, "v")}
	complete := true
	for _, to := range targets() {
		if to.os == "windows" {
			continue
		}
		system := to.os + "_" + to.arch
		_, sum := sums.of(system + ".tar.gz")
		fill = append(fill, "{"+system+"}", sum)
		complete = complete && sum != ""
	}
	if complete {
		text := strings.NewReplacer(fill...).Replace(string(formula))
		if err := d.write(sums, "uwf.rb", []byte(text), p); err != nil {
			return err
		}
	}
	script, err := os.ReadFile(filepath.Join(t.root, packaging, "install.sh"))
	if err != nil {
		return err
	}
	if err := d.write(sums, "install.sh", script, p); err != nil {
		return err
	}
	name, data, err := t.npm(d, sums)
	if err != nil {
		return fmt.Errorf("npm package: %w", err)
	}
	return d.write(sums, name, data, p)
}

// npm builds the npm package: a launcher for each program, and a script that downloads the archives and
// verifies them against included checksums.
func (t *tree) npm(d delivery, sums *checksums) (name string, data []byte, err error) {
	dir, version := filepath.Join(t.root, packaging, "npm"), strings.TrimPrefix(d.version, "v")
	var files []member
	for _, name := range []string{"install.js", "launch.js"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return "", nil, err
		}
		files = append(files, member{name, text, 0o644})
	}
	text, err := os.ReadFile(filepath.Join(dir, "package.json"))
	if err != nil {
		return "", nil, err
	}
	var manifest map[string]any
	if err := json.Unmarshal(bytes.ReplaceAll(text, []byte("{version}"), []byte(version)), &manifest); err != nil {
		return "", nil, err
	}
	programs, err := t.programs(nil)
	if err != nil {
		return "", nil, err
	}
	launchers := map[string]string{}
	for _, built := range programs {
		file := "bin/" + built.name() + ".js"
		launchers[built.name()] = file
		files = append(files, member{file, fmt.Appendf(nil, "#!/usr/bin/env node\nrequire(\"../launch.js\")(%q);\n", built.name()), 0o755})
	}
	manifest["bin"] = launchers
	archives := map[string]string{}
	for i, name := range sums.names {
		if strings.HasSuffix(name, ".tar.gz") || strings.HasSuffix(name, ".zip") {
			archives[name] = sums.sums[i]
		}
	}
	for name, value := range map[string]any{"package.json": manifest, "sums.json": archives} {
		text, err := json.MarshalIndent(value, "", "  ")
		if err != nil {
			return "", nil, err
		}
		files = append(files, member{name, append(text, '\n'), 0o644})
	}
	slices.SortFunc(files, func(a, b member) int { return strings.Compare(a.name, b.name) })
	data, err = tarArchive("package", files, d.when)
	return "uwf-npm-" + version + ".tgz", data, err
}
