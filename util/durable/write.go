package durable

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// WriteFile replaces path atomically: temporary file, flush, rename, flush of the directory. Concurrent
// readers see the old content or the new one. It follows links. An existing file never becomes more
// accessible: its new mode is perm without the bits that it didn't have. The directory must exist.
//
// If the flush of the directory fails, WriteFile returns the error although path has its new content, which
// then might not survive a power cut.
func WriteFile(fsys FS, path string, data []byte, perm fs.FileMode) error {
	path, perm, err := replaced(path, perm)
	if err != nil {
		return err
	}
	if err := replace(fsys, path, data, perm, FullFlush); err != nil {
		return err
	}
	return fsys.SyncDir(filepath.Dir(path))
}

// Replace is [WriteFile] for data that a power cut can destroy: it flushes nothing, and replaces a link
// instead of following it.
func Replace(fsys FS, path string, data []byte, perm fs.FileMode) error {
	return replace(fsys, path, data, perm, NoFlush)
}

func replace(fsys FS, path string, data []byte, perm fs.FileMode, flush Flush) error {
	temp, err := fsys.WriteTemp(path, data, perm, flush)
	if err != nil {
		return err
	}
	if s, ok := fsys.(interface{ swap(a, b string) error }); ok && flush == NoFlush && s.swap(temp, path) == nil {
		return fsys.Remove(temp)
	}
	if err := fsys.Rename(temp, path); err != nil {
		return errors.Join(err, fsys.Remove(temp))
	}
	return nil
}

// ReplaceJSON writes a value as one line, readable only by its owner, as [Replace] does. It creates the
// directory.
func ReplaceJSON(fsys FS, path string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := fsys.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return Replace(fsys, path, append(data, '\n'), 0o600)
}

// AddJSON writes a value as the last line of a file, which [LastLine] returns, readable only by its owner. It replaces the
// file if [AddLine] can't extend it.
func AddJSON(fsys FS, path string, v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if AddLine(fsys, path, append(line, '\n')) == nil {
		return nil
	}
	if err := fsys.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return Replace(fsys, path, append(line, '\n'), 0o600)
}

// AddLine appends a line to a file in which the last line replaces those before it, without flushing it. It returns an
// error if there is no such file, or it would be too long to be read at once: the caller then replaces it. On file systems
// that write the data of a replaced file at once, such as ext4, that takes fifty times as long.
func AddLine(fsys FS, path string, line []byte) error {
	const most = 8 << 10
	return fsys.Extend(path, append([]byte{'\n'}, line...), most) // a part of a line can precede it, after a kill
}

// LastLine returns the last line of a file in which it replaces those before it. A line that was cut off by a kill doesn't
// count, unless there is no other.
func LastLine(data []byte) []byte {
	if end := bytes.LastIndexByte(data, '\n'); end >= 0 {
		data = bytes.TrimSpace(data[:end])
	}
	return data[bytes.LastIndexByte(data, '\n')+1:]
}

// NewFile is a file that is written in parts and then replaces another one.
type NewFile struct {
	fsys       FS
	path, temp string
	perm       fs.FileMode
	buffer     []byte
	unflushed  int // bytes
}

// Create starts a file that will replace path, as [WriteFile] does. Until [NewFile.Commit] it has a temporary name.
func Create(fsys FS, path string, perm fs.FileMode) (*NewFile, error) {
	path, perm, err := replaced(path, perm)
	if err != nil {
		return nil, pathError("create", path, err)
	}
	temp, err := fsys.WriteTemp(path, nil, perm, NoFlush)
	return &NewFile{fsys: fsys, path: path, temp: temp, perm: perm}, err
}

// Temp returns the temporary name.
func (f *NewFile) Temp() string { return f.temp }

func (f *NewFile) Write(data []byte) (int, error) {
	const chunk = 1 << 20
	if f.buffer = append(f.buffer, data...); len(f.buffer) < chunk {
		return len(data), nil
	}
	return len(data), f.write()
}

func (f *NewFile) write() error {
	err := f.fsys.Append(f.temp, f.buffer, f.perm, NoFlush)
	f.unflushed += len(f.buffer)
	f.buffer = f.buffer[:0]
	// The flush of another process waits until the disk has written all that is waiting to be written.
	const much = 8 << 20
	if err == nil && f.unflushed >= much {
		f.unflushed, err = 0, f.fsys.SyncFile(f.temp)
	}
	return err
}

// Sync makes the content durable, under the temporary name.
func (f *NewFile) Sync() error {
	if err := f.write(); err != nil {
		return err
	}
	return f.fsys.SyncFile(f.temp)
}

// Commit makes the content durable, and then replaces the file. After an error the new file is removed, unless only
// the flush of the directory failed.
func (f *NewFile) Commit() error {
	err := f.Sync()
	if err == nil {
		err = f.fsys.Rename(f.temp, f.path)
	}
	if err != nil {
		return errors.Join(err, f.Abort())
	}
	return f.fsys.SyncDir(filepath.Dir(f.path))
}

// Abort removes the new file.
func (f *NewFile) Abort() error { return f.fsys.Remove(f.temp) }

// replaced returns the file that a write of path replaces, and its new mode.
func replaced(path string, perm fs.FileMode) (string, fs.FileMode, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return path, perm, nil
	}
	if err != nil {
		return "", 0, err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return "", 0, err
		}
		if info, err = os.Stat(path); err != nil {
			return "", 0, err
		}
	}
	return path, perm & info.Mode().Perm(), nil
}

// AppendFile appends data to path and flushes it; perm applies to a new file. A kill or a power cut can leave
// a part of data, so the reader must detect a torn tail and remove it ([FS.Truncate]). Writers need a [Lock].
//
// The name of a new file becomes durable while the file is empty, so a file with content never needs a flush
// of its directory.
func AppendFile(fsys FS, path string, data []byte, perm fs.FileMode) error {
	info, err := os.Stat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err != nil || info.Size() == 0 {
		if err := fsys.Append(path, nil, perm, NoFlush); err != nil {
			return err
		}
		if err := fsys.SyncDir(filepath.Dir(path)); err != nil {
			return err
		}
	}
	return fsys.Append(path, data, perm, FullFlush)
}

// MkdirAll creates a directory and its parents, and makes the new names durable. A directory whose creator
// was killed before its flush counts as existing: every common file system keeps the parents of a flushed
// file.
func MkdirAll(fsys FS, path string, perm fs.FileMode) error {
	missing, err := missingDirs(path)
	if err != nil || len(missing) == 0 {
		return err
	}
	if err := fsys.MkdirAll(path, perm); err != nil {
		return err
	}
	for _, dir := range missing {
		if err := fsys.SyncDir(filepath.Dir(dir)); err != nil {
			return err
		}
	}
	return nil
}

// missingDirs returns path and its missing parents, deepest first.
func missingDirs(path string) ([]string, error) {
	var missing []string
	for dir := filepath.Clean(path); ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			missing = append(missing, dir)
		case err != nil:
			return nil, err
		case !info.IsDir():
			return nil, &fs.PathError{Op: "mkdir", Path: dir, Err: errNotDir}
		default:
			return missing, nil
		}
		if dir == filepath.Dir(dir) {
			return missing, nil
		}
	}
}

var errNotDir = errors.New("is not a directory")

// File is a file to write or to flush.
type File struct {
	Path string
	Data []byte
	Perm fs.FileMode
	// Present means that the file already exists with the right content but perhaps wasn't flushed by its
	// writer. Only Path is used then.
	Present bool
}

// WriteAll writes files that nothing durable references yet, and creates missing directories. Each file is
// written atomically, and flushed before its rename, as each directory afterwards: contents and names are
// durable when WriteAll returns. After an error some might have been written; temporary files are removed.
func WriteAll(fsys FS, files []File) error {
	dirs := parents(files)
	for _, dir := range dirs {
		if err := MkdirAll(fsys, dir, 0o755); err != nil {
			return err
		}
	}
	for _, f := range files {
		var err error
		if f.Present {
			err = fsys.SyncFile(f.Path)
		} else {
			err = replace(fsys, f.Path, f.Data, f.Perm, FullFlush)
		}
		if err != nil {
			return err
		}
	}
	for _, dir := range dirs {
		if err := fsys.SyncDir(dir); err != nil {
			return err
		}
	}
	return nil
}

// parents returns the distinct directories of the files, in order of appearance.
func parents(files []File) []string {
	var dirs []string
	seen := make(map[string]bool)
	for _, f := range files {
		if dir := filepath.Dir(f.Path); !seen[dir] {
			seen[dir] = true
			dirs = append(dirs, dir)
		}
	}
	return dirs
}
