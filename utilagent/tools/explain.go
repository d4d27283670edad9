package tools

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"github.com/united-workforce/uwf/util/suggest"
	"github.com/united-workforce/uwf/utilagent/tools/ignore"
)

// explain turns an error of the file system into one that a model can act on.
func (w *Workspace) explain(name string, err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err // the path of the error is not the one that the model knows
	}
	quoted := shown(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return w.missing(name)
	case strings.Contains(err.Error(), "escapes"):
		return w.outside(name)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s: permission denied. Work with other files, or say in your answer that this one is not accessible", quoted)
	case errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("%s: a part of this path is a file, not a directory. Check the path with list_dir", quoted)
	case errors.Is(err, syscall.ENAMETOOLONG):
		return errors.New("the path, or a name in it, is too long. Use a shorter one")
	case errors.Is(err, syscall.ELOOP), strings.Contains(err.Error(), "too many links"):
		return fmt.Errorf("%s is a link that leads back to itself. Use another path", quoted)
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("%s: the disk is full. Nothing has been written: stop writing, and say so in your answer", quoted)
	}
	return fmt.Errorf("%s: %w. Check the path with list_dir", quoted, err)
}

// missing is the answer to a path that does not exist: the nearest that do,
// first in its directory, then anywhere.
func (w *Workspace) missing(name string) error {
	local, err := w.local(name)
	if err != nil {
		return err
	}
	dir, base := filepath.Dir(local), filepath.Base(local)
	near := w.nearHere(dir, base)
	if len(near) == 0 {
		near = w.nearAnywhere(base)
	}
	if len(near) > 0 {
		return fmt.Errorf("there is no %s. Did you mean %s?", shown(name), strings.Join(near, " or "))
	}
	if info, err := w.root.Stat(dir); err != nil || !info.IsDir() {
		return fmt.Errorf("there is no %s, nor its directory. Use list_dir or glob to see what is there", shown(name))
	}
	return fmt.Errorf("there is no %s. Use list_dir or glob to see what is there", shown(name))
}

// maxCompared bounds how many names are compared with a misspelt one.
const maxCompared = 20_000

// nearHere are the names in a directory that are most like base.
func (w *Workspace) nearHere(dir, base string) []string {
	d, err := w.folder(dir)
	if err != nil {
		return nil
	}
	defer d.close()
	entries, err := d.entries()
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries[:min(len(entries), maxCompared)] {
		names = append(names, e.Name())
	}
	slices.Sort(names)
	near := suggest.Nearest(base, names, 3)
	for i, n := range near {
		near[i] = shown(path.Join(filepath.ToSlash(dir), n))
	}
	return near
}

// nearAnywhere are the files of the workspace with the name base, or one that is
// most like it.
func (w *Workspace) nearAnywhere(base string) []string {
	walk := newWalker(w)
	walk.most = maxCompared
	if err := walk.dir(context.Background(), ".", ignore.List{}); err != nil {
		return nil
	}
	paths := map[string][]string{}
	var near, names []string
	for _, name := range walk.sorted() {
		b := path.Base(name)
		if strings.EqualFold(b, base) {
			near = append(near, shown(name))
		}
		if paths[b] == nil {
			names = append(names, b)
		}
		paths[b] = append(paths[b], name)
	}
	if len(near) == 0 {
		for _, n := range suggest.Nearest(base, names, 3) {
			near = append(near, shown(paths[n][0]))
		}
	}
	return near[:min(len(near), 3)]
}

// shown is a path for display: quoted and escaped if it could be mistaken for something else.
func shown(name string) string {
	odd := func(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }
	if name == "" || !utf8.ValidString(name) || strings.ContainsFunc(name, odd) || strings.TrimSpace(name) != name {
		return strconv.Quote(name)
	}
	return name
}
