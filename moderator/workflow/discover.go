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
	Name    string // that the file stands for; whether it agrees shows when it is read
	Path    string // begins with Project
	Project string // the directory out of which no link leads, see [Search.Project]
}

// Ignored is a file or folder that would count, and why it does not.
type Ignored struct{ Path, Why string }

// folders are where a project keeps its workflows. The first goes before the
// second.
func folders() []string { return []string{".workflow", ".workflows"} }

// Search says where the workflows of a project are looked for, and whose files
// count. Who can place a file in that way chooses what the user runs.
type Search struct {
	Dir  string // absolute, without symbolic links: its parents are the beginnings of its path
	Home string // the user's own directory; "": unknown
	// Owner tells to whom a file belongs; nil, or not ok: nobody can tell, and every
	// file counts.
	Owner func(fs.FileInfo) (id int, ok bool)
	Users []int // whose files count
	// Shared tells whether others may write a file or folder, which then does not
	// count; nil: nobody can tell.
	Shared func(path string, info fs.FileInfo) bool
}

// dirs are the directories that are looked at, the nearest first, and the root of
// the repository if that is the last of them. The search goes on to a parent unless
//
//   - the directory is the root of the repository: it has a .git (a directory, or
//     the file of a work tree);
//   - the directory is the user's own, or the parent is: what is there counts only
//     for who works right there;
//   - the parent belongs to somebody else than the directory.
func (s Search) dirs() (dirs []string, repository string, err error) {
	if !filepath.IsAbs(s.Dir) {
		return nil, "", fmt.Errorf("%s is not absolute", s.Dir)
	}
	home, _ := os.Stat(s.Home) // without one nothing is the same
	for dir := filepath.Clean(s.Dir); ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil && !isAbsent(err) {
			return nil, "", err
		}
		dirs = append(dirs, dir)
		switch _, err := os.Lstat(filepath.Join(dir, ".git")); {
		case err == nil:
			return dirs, dir, nil
		case !isAbsent(err):
			return nil, "", err
		}
		above, err := os.Stat(filepath.Dir(dir))
		if err != nil && !isAbsent(err) {
			return nil, "", err
		}
		if filepath.Dir(dir) == dir || isSame(info, home) || isSame(above, home) || !s.sameOwner(info, above) {
			return dirs, "", nil
		}
	}
}

func isSame(a, b fs.FileInfo) bool { return a != nil && b != nil && os.SameFile(a, b) }

func (s Search) sameOwner(a, b fs.FileInfo) bool {
	if s.Owner == nil || a == nil || b == nil {
		return true
	}
	x, known := s.Owner(a)
	y, both := s.Owner(b)
	return !known || !both || x == y
}

// counts reports whether a file belongs to somebody whose files count.
func (s Search) counts(info fs.FileInfo) bool {
	if s.Owner == nil {
		return true
	}
	id, known := s.Owner(info)
	return !known || slices.Contains(s.Users, id)
}

// Project is the directory that nothing in the workflow files of Dir leads out of:
// the root of the repository, or Dir itself if the search meets none.
func (s Search) Project() (string, error) {
	_, repository, err := s.dirs()
	if err != nil {
		return "", fmt.Errorf("find the project of a workflow: %w", err)
	}
	return cmp.Or(repository, filepath.Clean(s.Dir)), nil
}

// Discover finds the workflow files that apply in a directory: those in its
// .workflow/ and .workflows/ and in those of its parents, as far as the search
// goes; see [Search].
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
func (s Search) Discover() ([]Found, []Ignored, error) {
	dirs, repository, err := s.dirs()
	if err != nil {
		return nil, nil, fmt.Errorf("find workflows: %w", err)
	}
	look := lookout{Search: s, seen: map[string]bool{}}
	for _, dir := range dirs {
		if err := look.in(dir, cmp.Or(repository, dir)); err != nil {
			return nil, nil, fmt.Errorf("find workflows: %w", err)
		}
	}
	return look.found, look.ignored, nil
}

// lookout is a search that goes on.
type lookout struct {
	Search
	root     *os.Root // of the project
	rootPath string
	found    []Found
	seen     map[string]bool // names
	ignored  []Ignored
}

// in looks at the folders of a directory of a project.
func (l *lookout) in(dir, project string) (err error) {
	if l.root, err = os.OpenRoot(project); err != nil {
		if isAbsent(err) || errors.Is(err, fs.ErrPermission) && hasNone(dir) {
			return nil
		}
		return err
	}
	defer func() { _ = l.root.Close() }() // opened for reading only
	l.rootPath = project
	for _, folder := range folders() {
		name, err := filepath.Rel(project, filepath.Join(dir, folder))
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
		return !isAbsent(err)
	})
}

// stat looks at a file of the project. It returns nil for what is not there or is
// ignored.
func (l *lookout) stat(name string) (fs.FileInfo, error) {
	info, err := l.root.Stat(name)
	switch {
	case isAbsent(err):
		return nil, nil // also a link that leads nowhere
	case err != nil:
		if link, again := l.root.Lstat(name); again != nil || link.Mode()&fs.ModeSymlink == 0 || errors.Is(err, fs.ErrPermission) {
			return nil, err
		}
		if errors.Is(err, syscall.ELOOP) {
			l.ignore(name, "is a link that leads round in a circle")
			return nil, nil
		}
		l.ignore(name, "is a link that leads out of the project")
		return nil, nil
	case !l.counts(info):
		l.ignore(name, "belongs to another user")
		return nil, nil
	case l.Shared != nil && l.Shared(filepath.Join(l.rootPath, name), info):
		l.ignore(name, fmt.Sprintf("can be changed by others (mode %04o; chmod go-w)", info.Mode().Perm()))
		return nil, nil
	}
	return info, nil
}

func (l *lookout) ignore(name, why string) {
	l.ignored = append(l.ignored, Ignored{filepath.Join(l.rootPath, name), why})
}

// folder lists the workflows of one folder, sorted by name.
func (l *lookout) folder(name string) ([]Found, error) {
	info, err := l.stat(name)
	if err != nil || info == nil || !info.IsDir() {
		return nil, err
	}
	entries, err := fs.ReadDir(l.root.FS(), filepath.ToSlash(name))
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
	info, err := l.stat(path)
	if err != nil || info == nil {
		return nil, err
	}
	if !info.IsDir() {
		stem := yamlStem(name)
		if !info.Mode().IsRegular() || stem == name || stem == "index" {
			return nil, nil
		}
		return []candidate{{Found{stem, filepath.Join(l.rootPath, path), l.rootPath}, rank(name)}}, nil
	}
	var found []candidate
	for _, index := range []string{"index.yaml", "index.yml"} {
		file := filepath.Join(path, index)
		info, err := l.stat(file)
		if err != nil {
			return nil, err
		}
		if info != nil && info.Mode().IsRegular() {
			found = append(found, candidate{Found{name, filepath.Join(l.rootPath, file), l.rootPath}, 2 + rank(index)})
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
