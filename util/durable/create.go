package durable

import (
	"errors"
	"os"
	"path/filepath"
)

// NewFile is a file that is being written, too big to be held in memory. It has a
// temporary name until [NewFile.Commit] gives it its own.
type NewFile struct {
	f    *os.File
	path string
}

// Create begins a file that will replace path. Its mode is 0600 until then.
func Create(path string) (*NewFile, error) {
	f, err := createTemp(path, newFile(0o600))
	if err != nil {
		return nil, pathError("create", path, err)
	}
	return &NewFile{f: f, path: path}, nil
}

// Write implements io.Writer.
func (n *NewFile) Write(data []byte) (int, error) {
	written, err := n.f.Write(data)
	return written, pathError("write", n.path, err)
}

// ReadAt implements io.ReaderAt.
func (n *NewFile) ReadAt(data []byte, at int64) (int, error) { return n.f.ReadAt(data, at) }

// Commit makes the content durable, gives the file its name and the mode perm, and
// makes the name durable. A link at path is followed. After an error nothing is
// left of the new file, unless it was the flush of the directory that failed.
func (n *NewFile) Commit(perm os.FileMode) error {
	path, perm, err := replaced(n.path, perm)
	if err != nil {
		return errors.Join(pathError("write", n.path, err), n.Abort())
	}
	synced, moded := n.f.Sync(), n.f.Chmod(perm)
	if err := pathError("write", n.path, synced, moded, n.f.Close()); err != nil {
		return errors.Join(err, os.Remove(n.f.Name()))
	}
	if err := rename(n.f.Name(), path); err != nil {
		return errors.Join(pathError("rename to", n.path, err), os.Remove(n.f.Name()))
	}
	return pathError("flush", n.path, syncDir(filepath.Dir(path)))
}

// Abort removes what was written.
func (n *NewFile) Abort() error {
	return pathError("remove", n.path, n.f.Close(), os.Remove(n.f.Name()))
}
