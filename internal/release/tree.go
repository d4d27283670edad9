package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/mod/modfile"
)

// tree is the workspace: the modules in go.work, and those in the workspaces below ext, dependencies first.
type tree struct {
	root    string   // absolute; contains go.work
	works   []string // directories of all go.work files, slash-separated, relative to root
	modules []*sibling
}

// sibling is a module of the tree.
type sibling struct {
	path string // module path
	dir  string // slash-separated, relative to the root
	work string // directory of its go.work, in the same form
	mod  *modfile.File
}

// loadTree loads the workspace that contains dir.
func loadTree(dir string) (*tree, error) {
	root, err := findRoot(dir)
	if err != nil {
		return nil, err
	}
	t := &tree{root: root, works: []string{"."}}
	// Modules with many otherwise unneeded dependencies have separate workspaces; otherwise every build would
	// need the go.mod files of all dependencies.
	extensions, err := filepath.Glob(filepath.Join(root, "ext", "*", "go.work"))
	if err != nil {
		return nil, err
	}
	for _, name := range extensions {
		t.works = append(t.works, "ext/"+filepath.Base(filepath.Dir(name)))
	}
	for _, dir := range t.works {
		work, err := t.workspace(dir)
		if err != nil {
			return nil, err
		}
		for _, use := range work.Use {
			m, err := loadModule(root, filepath.Join(dir, use.Path))
			if err != nil {
				return nil, err
			}
			m.work = dir
			t.modules = append(t.modules, m)
		}
	}
	return t, t.sort()
}

// workspace parses the go.work of a directory.
func (t *tree) workspace(dir string) (*modfile.WorkFile, error) {
	name := t.goWork(dir)
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return modfile.ParseWork(name, data, nil)
}

func (t *tree) goWork(dir string) string {
	return filepath.Join(t.root, filepath.FromSlash(dir), "go.work")
}

func findRoot(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for {
		_, err := os.Stat(filepath.Join(dir, "go.work"))
		if err == nil {
			return dir, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.work here or above")
		}
		dir = parent
	}
}

func loadModule(root, dir string) (*sibling, error) {
	name := filepath.Join(root, filepath.FromSlash(dir), "go.mod")
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	mod, err := modfile.Parse(name, data, nil)
	if err != nil {
		return nil, err
	}
	if mod.Module == nil {
		return nil, fmt.Errorf("%s: no module line", name)
	}
	return &sibling{path: mod.Module.Mod.Path, dir: filepath.ToSlash(filepath.Clean(dir)), mod: mod}, nil
}

// sort sorts the modules after those that they require.
func (t *tree) sort() error {
	var sorted []*sibling
	state := map[*sibling]int{} // 1: in progress, 2: done
	var visit func(m *sibling) error
	visit = func(m *sibling) error {
		switch state[m] {
		case 1:
			return fmt.Errorf("module %s requires itself through others", m.path)
		case 2:
			return nil
		}
		state[m] = 1
		for _, r := range m.mod.Require {
			if s := t.module(r.Mod.Path); s != nil {
				if err := visit(s); err != nil {
					return err
				}
			}
		}
		state[m] = 2
		sorted = append(sorted, m)
		return nil
	}
	for _, m := range t.modules {
		if err := visit(m); err != nil {
			return err
		}
	}
	t.modules = sorted
	return nil
}

// module returns the module with the given path, or nil.
func (t *tree) module(path string) *sibling {
	i := slices.IndexFunc(t.modules, func(m *sibling) bool { return m.path == path })
	if i < 0 {
		return nil
	}
	return t.modules[i]
}

// versionOr returns v, or if it is empty the version at which the modules require each other. All share it,
// because they are released together.
func (t *tree) versionOr(v string) (string, error) {
	if v != "" {
		return v, nil
	}
	for _, m := range t.modules {
		for _, r := range m.mod.Require {
			switch {
			case t.module(r.Mod.Path) == nil || r.Mod.Version == v:
			case v == "":
				v = r.Mod.Version
			default:
				return "", fmt.Errorf("%s/go.mod requires %s, others require %s: all modules share one version", m.dir, r.Mod, v)
			}
		}
	}
	if v == "" {
		return "", errors.New("no module requires another: name a version")
	}
	return v, nil
}

func (t *tree) abs(m *sibling) string { return filepath.Join(t.root, filepath.FromSlash(m.dir)) }
