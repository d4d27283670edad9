package offlimits

import (
	"os"
	"path/filepath"
)

// Shape is what a directory has of that by which git knows a git directory,
// whatever it is called. Git looks for one in every directory that it is started
// in or below, and then obeys its config and hooks.
type Shape struct{ head, objects, refs, common bool }

// Add counts an entry; its name is a plain one.
func (s *Shape) Add(name string) {
	switch name {
	case "head":
		s.head = true
	case "objects":
		s.objects = true
	case "refs":
		s.refs = true
	case "commondir": // names the directory that has objects and refs
		s.common = true
	}
}

// IsGit reports whether git takes the directory for a repository.
func (s Shape) IsGit() bool { return s.head && (s.common || s.objects && s.refs) }

// makesGit reports whether an entry of a directory makes it one of git's, or says
// what git does there.
func makesGit(name string) bool {
	switch name {
	case "head", "objects", "refs", "commondir", "gitdir", "config", "config.worktree", "hooks", "info", "branches", "remotes",
		"modules", "worktrees", "rebase-merge", "rebase-apply", "sequencer":
		return true
	}
	return false
}

// gitDirectory refuses a path of a workspace that would make a directory on its
// way one of git's, or is in such a one and says what git does.
func (l List) gitDirectory(workspace, rel string, parts []string) error {
	dir := workspace
	for _, part := range parts {
		at := filepath.Join(dir, part)
		if name := plain(part); makesGit(name) && shapeWith(dir, name).IsGit() {
			guarded := dir
			if dir == workspace {
				guarded = at // that the whole workspace may be written says nothing
			}
			if !l.lifted(guarded, filepath.Join(workspace, rel)) {
				return refused(rel, "git would take the directory for a repository, and run what its files say")
			}
		}
		dir = at
	}
	return nil
}

// shapeWith is the shape that a directory has once an entry is in it.
func shapeWith(dir, name string) Shape {
	var s Shape
	s.Add(name)
	root, err := os.OpenRoot(dir)
	if err != nil {
		return s // it is not there yet
	}
	defer root.Close() // only read from
	f, err := root.Open(".")
	if err != nil {
		return s
	}
	defer f.Close() // only read from
	for !s.IsGit() {
		names, err := f.Readdirnames(256)
		for _, entry := range names {
			s.Add(plain(entry))
		}
		if err != nil {
			break
		}
	}
	return s
}
