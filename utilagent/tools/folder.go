package tools

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// folder is an open directory of the workspace. Links in it are not followed.
type folder struct{ root *os.Root }

// folder opens a directory; "." is the workspace.
func (w *Workspace) folder(dir string) (folder, error) {
	if w.hidden(filepath.ToSlash(dir)) {
		return folder{}, fs.ErrPermission
	}
	root, err := w.root.OpenRoot(dir)
	return folder{root}, err
}

func (d folder) close() { _ = d.root.Close() } // it was only read from

// entries lists the directory, in any order.
func (d folder) entries() ([]fs.DirEntry, error) { return fs.ReadDir(d.root.FS(), ".") }

// read reads a regular file into buf, which grows if it must; nothing of a link
// or of what else is no file. The error is errLarge for more than most bytes.
func (d folder) read(name string, most int, buf *[]byte) (text []byte, err error) {
	info, err := d.root.Lstat(name)
	if err != nil || !info.Mode().IsRegular() {
		return nil, err
	}
	f, err := d.root.OpenFile(name, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	now, err := f.Stat()
	if err != nil || !os.SameFile(info, now) {
		return nil, err // a link has taken its place
	}
	info = now
	if info.Size() > int64(most) {
		return nil, errLarge
	}
	room(buf, int(info.Size()))
	n, err := io.ReadFull(f, (*buf)[:info.Size()])
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = nil // it has become shorter
	}
	return (*buf)[:n], err
}
