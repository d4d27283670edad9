// Package discover finds the workflow files of a project.
package discover

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/util/project"
	"github.com/united-workforce/uwf/util/sorting"
)

// Found is a workflow file in a project.
type Found struct {
	Name    string // name expected from the path; the file itself can disagree
	Path    string // starts with Project
	Project string // directory that links can't leave, see [project.Search.Root]
}

// folders returns the names of a project's workflow folders. The first takes precedence.
func folders() []string { return []string{".workflow", ".workflows"} }

// Around returns the project directory of a workflow file: the parent of the workflow folder that contains
// it, or else its own directory.
func Around(path string) string {
	dir := filepath.Dir(path)
	for _, at := range []string{dir, filepath.Dir(dir)} { // the file, or name/index.yaml
		if slices.Contains(folders(), filepath.Base(at)) {
			return filepath.Dir(at)
		}
	}
	return dir
}

// Workflows finds the workflow files that apply in a directory: those in its .workflow/ and .workflows/
// folders and in those of its parents, up to the end of the search; see [project.Search]. Anyone who can
// write there controls what the user runs.
//
// A workflow is name.yaml, name.yml, name/index.yaml or name/index.yml. Each name is found once: a nearer
// directory hides a farther one, .workflow hides .workflows, and a folder's files are tried in this order.
// The result is sorted the same way, then by name.
//
// Links are followed within the project: the root of the repository, or else the directory with the folder.
// The search ignores links out of it, and files that untrusted users own or can write. A folder that can't be
// read is an error; it doesn't count as empty.
func Workflows(s project.Search) ([]Found, []project.Ignored, error) {
	dirs, repository, err := s.Dirs()
	if err != nil {
		return nil, nil, fmt.Errorf("find workflows: %w", err)
	}
	look := searcher{search: s, seen: map[string]bool{}}
	for _, dir := range dirs {
		if err := look.in(dir, cmp.Or(repository, dir)); err != nil {
			return nil, nil, fmt.Errorf("find workflows: %w", err)
		}
	}
	return look.found, look.ignored, nil
}

// searcher is a search in progress.
type searcher struct {
	search  project.Search
	files   *project.Files
	found   []Found
	seen    map[string]bool // names
	ignored []project.Ignored
}

// in searches the workflow folders of a project directory.
func (l *searcher) in(dir, root string) (err error) {
	if l.files, err = l.search.Open(root); err != nil {
		if project.IsAbsent(err) || errors.Is(err, fs.ErrPermission) && hasNone(dir) {
			return nil
		}
		return err
	}
	defer func() {
		_ = l.files.Close() // opened for reading only
		l.ignored = append(l.ignored, l.files.Ignored...)
	}()
	for _, folder := range folders() {
		name, err := filepath.Rel(root, filepath.Join(dir, folder))
		if err != nil {
			return err
		}
		found, err := l.folder(name)
		if err != nil {
			return err
		}
		for _, f := range found {
			if !l.seen[f.Name] {
				l.seen[f.Name] = true
				l.found = append(l.found, f)
			}
		}
	}
	return nil
}

// hasNone reports whether a directory, possibly unlistable, has no workflow folder.
func hasNone(dir string) bool {
	return !slices.ContainsFunc(folders(), func(folder string) bool {
		_, err := os.Lstat(filepath.Join(dir, folder))
		return !project.IsAbsent(err)
	})
}

// folder lists the workflows of one folder, sorted by name.
func (l *searcher) folder(name string) ([]Found, error) {
	info, err := l.files.Look(name)
	if err != nil || info == nil || !info.IsDir() {
		return nil, err
	}
	entries, err := fs.ReadDir(l.files.FS(), filepath.ToSlash(name))
	if err != nil {
		return nil, err
	}
	var found []Found
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		files, err := l.asWorkflow(name, e.Name())
		if err != nil {
			return nil, err
		}
		found = append(found, files...)
	}
	sorting.Func(found, func(a, b Found) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), rank(a.Path)-rank(b.Path))
	})
	return slices.CompactFunc(found, func(a, b Found) bool { return a.Name == b.Name }), nil
}

// asWorkflow returns the workflow files of a folder entry: the entry itself if it has a known extension, or its index
// files.
func (l *searcher) asWorkflow(folder, name string) (found []Found, err error) {
	path := filepath.Join(folder, name)
	info, err := l.files.Look(path)
	if err != nil || info == nil {
		return nil, err
	}
	if !info.IsDir() {
		stem := workflow.Stem(name)
		if !info.Mode().IsRegular() || stem == name || stem == "index" {
			return nil, nil
		}
		return []Found{{stem, filepath.Join(l.files.Name(), path), l.files.Name()}}, nil
	}
	for _, index := range []string{"index.yaml", "index.yml"} {
		file := filepath.Join(path, index)
		info, err := l.files.Look(file)
		if err != nil {
			return nil, err
		}
		if info != nil && info.Mode().IsRegular() {
			found = append(found, Found{name, filepath.Join(l.files.Name(), file), l.files.Name()})
		}
	}
	return found, nil
}

// rank orders the files of one name: name.yaml, name.yml, name/index.yaml, name/index.yml.
func rank(path string) (n int) {
	if workflow.Stem(filepath.Base(path)) == "index" {
		n = 2
	}
	if filepath.Ext(path) == ".yml" {
		n++
	}
	return n
}
