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
)

// Found is a workflow file in a project.
type Found struct {
	Name    string // that the file stands for; whether it agrees shows when it is read
	Path    string // begins with Project
	Project string // the directory out of which no link leads, see [project.Search.Root]
}

// folders are where a project keeps its workflows. The first goes before the
// second.
func folders() []string { return []string{".workflow", ".workflows"} }

// Around is the directory whose project a workflow file is of: the one with its folder of
// workflows, or the one that it is in.
func Around(path string) string {
	dir := filepath.Dir(path)
	for _, at := range []string{dir, filepath.Dir(dir)} { // the file, or name/index.yaml
		if slices.Contains(folders(), filepath.Base(at)) {
			return filepath.Dir(at)
		}
	}
	return dir
}

// Workflows finds the workflow files that apply in a directory: those in its
// .workflow/ and .workflows/ and in those of its parents, as far as the search
// goes; see [project.Search]. Whoever can place a file in that way chooses what the user
// runs.
//
// A workflow is name.yaml, name.yml, name/index.yaml or name/index.yml. Each
// name is found once: a nearer directory hides a farther one, .workflow hides
// .workflows, and within a folder the order is the one given here. The result
// is sorted in the same way, then by name.
//
// Links count as what they lead to, within the project: the root of the
// repository, or else the directory with the folder. What leads out of it is
// ignored, and so is what belongs to somebody whose files do not count, or can be written by others. A folder
// that cannot be read is an error, never an empty one.
func Workflows(s project.Search) ([]Found, []project.Ignored, error) {
	dirs, repository, err := s.Dirs()
	if err != nil {
		return nil, nil, fmt.Errorf("find workflows: %w", err)
	}
	look := lookout{search: s, seen: map[string]bool{}}
	for _, dir := range dirs {
		if err := look.in(dir, cmp.Or(repository, dir)); err != nil {
			return nil, nil, fmt.Errorf("find workflows: %w", err)
		}
	}
	return look.found, look.ignored, nil
}

// lookout is a search that goes on.
type lookout struct {
	search  project.Search
	files   *project.Files
	found   []Found
	seen    map[string]bool // names
	ignored []project.Ignored
}

// in looks at the folders of a directory of a project.
func (l *lookout) in(dir, root string) (err error) {
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

// hasNone reports that a directory, which may not be listed, has no folder of
// workflows.
func hasNone(dir string) bool {
	return !slices.ContainsFunc(folders(), func(folder string) bool {
		_, err := os.Lstat(filepath.Join(dir, folder))
		return !project.IsAbsent(err)
	})
}

// folder lists the workflows of one folder, sorted by name.
func (l *lookout) folder(name string) ([]Found, error) {
	info, err := l.files.Look(name)
	if err != nil || info == nil || !info.IsDir() {
		return nil, err
	}
	entries, err := fs.ReadDir(l.files.FS(), filepath.ToSlash(name))
	if err != nil {
		return nil, err
	}
	var found []candidate
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		candidates, err := l.asWorkflow(name, e.Name())
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
// ending, or a folder with an index.
func (l *lookout) asWorkflow(folder, name string) ([]candidate, error) {
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
		return []candidate{{Found{stem, filepath.Join(l.files.Name(), path), l.files.Name()}, rank(name)}}, nil
	}
	var found []candidate
	for _, index := range []string{"index.yaml", "index.yml"} {
		file := filepath.Join(path, index)
		info, err := l.files.Look(file)
		if err != nil {
			return nil, err
		}
		if info != nil && info.Mode().IsRegular() {
			found = append(found, candidate{Found{name, filepath.Join(l.files.Name(), file), l.files.Name()}, 2 + rank(index)})
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
