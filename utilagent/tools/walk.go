package tools

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/united-workforce/uwf/utilagent/tools/ignore"
)

// maxFiles bounds a walk.
const maxFiles = 500_000

// maxIgnoreBytes bounds a .gitignore file.
const maxIgnoreBytes = 1 << 20

// errLarge is for a file that is larger than its reader wants.
var errLarge = errors.New("too large")

// workers is how many goroutines search. Where there are few processors they
// wait for the disk; more than a few only compete.
func workers() int { return min(max(runtime.GOMAXPROCS(0), 4), 8) }

// room makes buf at least size long.
func room(buf *[]byte, size int) {
	if len(*buf) < size {
		*buf = make([]byte, max(size, 64<<10))
	}
}

// walker collects regular files. It follows no links and looks into no repository's
// own directory.
type walker struct {
	w    *Workspace
	most int // files, and directories

	names []string
	full  bool // there were more than most
}

// pending is a directory that is not looked at yet.
type pending struct {
	dir  string
	list ignore.List // of the directories above
}

func newWalker(w *Workspace) *walker { return &walker{w: w, most: maxFiles} }

func (k *walker) sorted() []string {
	slices.Sort(k.names)
	return slices.Compact(k.names)
}

// dir adds the files below a directory. What cannot be read is left out, as if
// it were not there.
func (k *walker) dir(ctx context.Context, dir string, list ignore.List) error {
	var buf []byte
	todo := []pending{{dir, list}}
	for looked := 0; len(todo) > 0; looked++ {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		next := todo[len(todo)-1]
		files, dirs := k.look(next, &buf)
		k.names, todo = append(k.names, files...), append(todo[:len(todo)-1], dirs...)
		if looked == k.most || len(k.names) >= k.most {
			k.names, k.full = k.names[:min(len(k.names), k.most)], true
			return nil
		}
	}
	return nil
}

// look lists a directory.
func (k *walker) look(at pending, buf *[]byte) (files []string, dirs []pending) {
	d, err := k.w.folder(filepath.FromSlash(at.dir))
	if err != nil {
		return nil, nil
	}
	defer d.close()
	entries, err := d.entries()
	if err != nil {
		return nil, nil
	}
	list := at.list
	if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == ".gitignore" }) {
		list = withIgnoreFile(d, list, at.dir, buf)
	}
	for _, e := range entries {
		name := path.Join(at.dir, e.Name())
		if e.Name() == ".git" || k.w.hidden(name) || list.Excludes(name, e.IsDir()) {
			continue
		}
		switch {
		case e.Type().IsRegular():
			files = append(files, name)
		case e.IsDir() && e.Name() != "node_modules":
			dirs = append(dirs, pending{name, list})
		}
	}
	return files, dirs
}

// withIgnoreFile adds the .gitignore file of d, which is the directory dir of
// the workspace.
func withIgnoreFile(d folder, list ignore.List, dir string, buf *[]byte) ignore.List {
	text, err := d.read(".gitignore", maxIgnoreBytes, buf)
	if err != nil {
		return list
	}
	if dir == "." {
		dir = ""
	}
	return list.With(dir, string(text))
}
