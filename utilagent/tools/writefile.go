package tools

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// WriteFile is the tool write_file.
func WriteFile(w *Workspace) Tool {
	return New(Spec{
		Name:        "write_file",
		Description: "Write a whole file of the workspace: a new one, or one that is replaced. Missing directories are made; the mode, CR LF line ends and a byte order mark of a file that is replaced are kept. To change a part of a file use edit_file.",
		Parameters: object([]string{"path", "content"}, map[string]any{
			"path":    property("string", "File, relative to the working directory"),
			"content": property("string", "The whole content"),
		}),
		Effect: Writes,
	}, func(_ context.Context, a writeArgs) (string, error) { return w.writeFile(a) })
}

type writeArgs struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

func (w *Workspace) writeFile(a writeArgs) (string, error) {
	local, err := w.resolve(a.Path)
	if err == nil {
		err = w.changing(local)
	}
	if err != nil {
		return "", err
	}
	info, err := w.root.Stat(local)
	verb := "Replaced"
	if errors.Is(err, fs.ErrNotExist) {
		verb = "Wrote new file"
	} else if err != nil {
		return "", w.explain(a.Path, err)
	} else if err := writable(a.Path, info); err != nil {
		return "", err
	}
	text, note := w.formOf(a.Path, info).apply(a.Content)
	if err := w.replace(local, []byte(text), info); err != nil {
		return "", w.explain(a.Path, err)
	}
	lines := strings.Count(a.Content, "\n")
	if a.Content != "" && !strings.HasSuffix(a.Content, "\n") {
		lines++
	}
	return fmt.Sprintf("%s %s: %d lines, %d bytes.%s", verb, shown(a.Path), lines, len(text), note), nil
}

func writable(name string, info fs.FileInfo) error {
	if info.IsDir() {
		return fmt.Errorf("%s is a directory. Name a file in it", shown(name))
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file but a %s: it cannot be written. Write another file", shown(name), kind(info.Mode()))
	}
	if info.Mode().Perm()&0o222 == 0 { // a rename would not mind
		return fmt.Errorf("%s is read-only: somebody protects it. Leave it as it is, or say in your answer what should be changed", shown(name))
	}
	return nil
}

// replace writes a file beside its place and renames it, so that nobody sees a
// half, and a hard link to a file outside stays what it is. old is nil for a
// new file. These are the user's files, not the program's: they are confined by
// the root instead of going through util/durable, and not flushed.
func (w *Workspace) replace(local string, content []byte, old fs.FileInfo) (err error) {
	dir, err := w.plainDir(filepath.Dir(local))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	perm := fs.FileMode(0o666)
	if old != nil {
		perm = old.Mode().Perm()
	}
	temp, f, err := newTemp(dir, perm)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, dir.Remove(temp))
		}
	}()
	_, err = f.Write(content)
	if old != nil && err == nil {
		err = f.Chmod(perm) // the umask has taken bits that the old file had
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return dir.Rename(temp, filepath.Base(local))
}

// plainDir opens a directory, as resolve returns it, and makes what is missing.
// No part of it may be a link: one that has been put there meanwhile could lead
// to what is off limits.
func (w *Workspace) plainDir(name string) (dir *os.Root, err error) {
	dir, err = w.root.OpenRoot(".")
	if err != nil || name == "." {
		return dir, err
	}
	for part := range strings.SplitSeq(filepath.ToSlash(name), "/") {
		next, err := enter(dir, part)
		if err := errors.Join(err, dir.Close()); err != nil {
			return nil, err
		}
		dir = next
	}
	return dir, nil
}

// enter opens a directory in another one, and makes it if it is missing.
func enter(dir *os.Root, name string) (*os.Root, error) {
	if err := dir.Mkdir(name, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	before, err := dir.Lstat(name)
	if err != nil {
		return nil, err
	}
	next, err := dir.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	if after, err := next.Stat("."); err != nil || !os.SameFile(before, after) {
		return nil, errors.Join(err, next.Close(), &fs.PathError{Op: "open", Path: name, Err: errChanged})
	}
	return next, nil
}

var errChanged = errors.New("it is not what it was: it became a link")

// newTemp makes a file with a name that nobody has.
func newTemp(dir *os.Root, perm fs.FileMode) (string, *os.File, error) {
	for n := 0; ; n++ {
		name := fmt.Sprintf(".uwf-%d.tmp", n)
		f, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
		if errors.Is(err, fs.ErrExist) && n < 1000 {
			continue
		}
		return name, f, err
	}
}
