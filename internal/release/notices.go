package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/module"
)

// noticesFile is the file in an archive with the licences of third-party code, all of which require that
// their text be included.
const noticesFile = "THIRD-PARTY"

// copied maps modules whose code may be copied into the tree to the directory of the copy.
func copied() map[module.Version]string {
	return map[module.Version]string{
		{Path: "github.com/santhosh-tekuri/jsonschema/v5", Version: "v5.3.1"}: "internal/thirdparty/jsonschema",
		{Path: "github.com/joho/godotenv", Version: "v1.5.1"}:                 "internal/thirdparty/lean/godotenv",
		{Path: "github.com/oklog/ulid/v2", Version: "v2.1.2"}:                 "internal/thirdparty/lean/ulid",
		{Path: "github.com/urfave/cli/v2", Version: "v2.27.7"}:                "internal/thirdparty/cli",
		{Path: "github.com/zeebo/xxh3", Version: "v1.1.0"}:                    "internal/thirdparty/xxh3",
	}
}

// copies lists the copies in this tree. Every program links them, but build information doesn't list them.
func (t *tree) copies() map[module.Version]string {
	found := copied()
	maps.DeleteFunc(found, func(_ module.Version, dir string) bool {
		_, err := os.Stat(filepath.Join(t.root, filepath.FromSlash(dir)))
		return err != nil
	})
	return found
}

// linked returns the sorted third-party modules linked into the programs, including the copies.
func (t *tree) linked(programs [][]byte) ([]module.Version, error) {
	used := map[module.Version]bool{}
	for m := range t.copies() {
		used[m] = true
	}
	for _, program := range programs {
		info, err := buildinfo.Read(bytes.NewReader(program))
		if err != nil {
			return nil, fmt.Errorf("what a program was built from: %w", err)
		}
		for _, dep := range info.Deps {
			if t.module(dep.Path) == nil {
				used[module.Version{Path: dep.Path, Version: dep.Version}] = true
			}
		}
	}
	sorted := slices.Collect(maps.Keys(used))
	module.Sort(sorted)
	return sorted, nil
}

// notices returns the text of that file: for Go itself and for each module.
func (t *tree) notices(ctx context.Context, o *outside, used []module.Version, p process) ([]byte, error) {
	root, err := o.goEnv(ctx, p, "GOROOT")
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	out.WriteString("The programs of this archive contain code of others, under these licences.\n")
	if err := notice(&out, "The Go programming language and its standard library", root); err != nil {
		return nil, err
	}
	cache, err := o.goEnv(ctx, p, "GOMODCACHE")
	if err != nil {
		return nil, err
	}
	for _, m := range used {
		dir, err := t.licenceDir(cache, m)
		if err != nil {
			return nil, err
		}
		if err := notice(&out, m.Path+" "+m.Version, dir); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

// licenceDir returns the directory with a module's licence: its copy, or the one in the module cache.
func (t *tree) licenceDir(cache string, m module.Version) (string, error) {
	if dir, ok := t.copies()[m]; ok {
		return filepath.Join(t.root, filepath.FromSlash(dir)), nil
	}
	path, err := module.EscapePath(m.Path)
	if err != nil {
		return "", err
	}
	version, err := module.EscapeVersion(m.Version)
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, filepath.FromSlash(path)+"@"+version), nil
}

// notice adds the licences in a directory. It fails if there is none, because such code must not be
// distributed.
func notice(out *bytes.Buffer, name, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("licence of %s: %w", name, err)
	}
	found := 0
	for _, e := range entries {
		if !e.Type().IsRegular() || !isLicence(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return fmt.Errorf("licence of %s: %w", name, err)
		}
		fmt.Fprintf(out, "\n%s\n%s (%s)\n\n%s\n", strings.Repeat("=", 78), name, e.Name(), bytes.TrimSpace(text))
		found++
	}
	if found == 0 {
		return fmt.Errorf("%s has no licence in %s", name, dir)
	}
	return nil
}

// isLicence reports whether a file is a licence or a notice that must be distributed with it.
func isLicence(name string) bool {
	stem, _, _ := strings.Cut(strings.ToUpper(name), ".")
	stem, _, _ = strings.Cut(stem, "-")
	return slices.Contains([]string{"LICENSE", "LICENCE", "COPYING", "NOTICE", "PATENTS"}, stem)
}
