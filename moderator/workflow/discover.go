package workflow

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Found is a workflow file in a project.
type Found struct {
	Name string // that the file stands for; whether it agrees shows when it is read
	Path string // begins with the directory given to [Discover]
}

// folders are where a project keeps its workflows. The first goes before the
// second.
func folders() []string { return []string{".workflow", ".workflows"} }

// Discover finds the workflow files that apply in a directory: those in its
// .workflow/ and .workflows/ and in those of its parents, up to the root of the
// repository, which is the first directory with a .git (a directory, or the file
// of a worktree); without one, up to the root of the file system.
//
// A workflow is name.yaml, name.yml, name/index.yaml or name/index.yml. Each
// name is found once: a nearer directory hides a farther one, .workflow hides
// .workflows, and within a folder the order is the one given here. The result
// is sorted in the same way, then by name.
//
// dir must be absolute: its parents are the beginnings of its path. A folder
// that cannot be read is an error, never an empty one.
func Discover(dir string) ([]Found, error) {
	if !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("find workflows: %s is not absolute", dir)
	}
	var all []Found
	seen := map[string]bool{}
	for dir = filepath.Clean(dir); ; dir = filepath.Dir(dir) {
		for _, folder := range folders() {
			found, err := inFolder(filepath.Join(dir, folder))
			if err != nil {
				return nil, fmt.Errorf("find workflows: %w", err)
			}
			for _, f := range found {
				if !seen[f.Name] {
					seen[f.Name] = true
					all = append(all, f)
				}
			}
		}
		last, err := isRoot(dir)
		if err != nil {
			return nil, fmt.Errorf("find workflows: %w", err)
		}
		if last {
			return all, nil
		}
	}
}

// isRoot reports whether the search ends at a directory.
func isRoot(dir string) (bool, error) {
	if filepath.Dir(dir) == dir {
		return true, nil
	}
	_, err := os.Lstat(filepath.Join(dir, ".git"))
	if isAbsent(err) {
		return false, nil
	}
	return err == nil, err
}

// inFolder lists the workflows of one folder, sorted by name.
func inFolder(folder string) ([]Found, error) {
	entries, err := os.ReadDir(folder)
	if isAbsent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var found []candidate
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		candidates, err := asWorkflow(folder, e.Name())
		if err != nil {
			return nil, err
		}
		found = append(found, candidates...)
	}
	slices.SortFunc(found, func(a, b candidate) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), a.rank-b.rank)
	})
	list := make([]Found, len(found))
	for i, c := range found {
		list[i] = c.Found
	}
	return slices.CompactFunc(list, func(a, b Found) bool { return a.Name == b.Name }), nil
}

// candidate is a workflow file and its rank among those with the same name.
type candidate struct {
	Found
	rank int
}

// asWorkflow is what an entry of a folder stands for: a file with the right
// ending, or a folder with an index. Links count as what they lead to.
func asWorkflow(folder, name string) ([]candidate, error) {
	path := filepath.Join(folder, name)
	info, err := os.Stat(path)
	if isAbsent(err) {
		return nil, nil // a link that leads nowhere
	}
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		stem := yamlStem(name)
		if !info.Mode().IsRegular() || stem == name || stem == "index" {
			return nil, nil
		}
		return []candidate{{Found{stem, path}, rank(name)}}, nil
	}
	var found []candidate
	for _, index := range []string{"index.yaml", "index.yml"} {
		file := filepath.Join(path, index)
		info, err := os.Stat(file)
		if err != nil && !isAbsent(err) {
			return nil, err
		}
		if err == nil && info.Mode().IsRegular() {
			found = append(found, candidate{Found{name, file}, 2 + rank(index)})
		}
	}
	return found, nil
}

// rank puts .yaml before .yml.
func rank(name string) int {
	if strings.HasSuffix(name, ".yaml") {
		return 0
	}
	return 1
}

func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}
