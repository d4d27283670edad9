package durable

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// WriteFile replaces path whole: temporary file, flush, rename, flush of the
// directory. Whoever reads path meanwhile sees the old content or the new one.
// A link is followed. A file that exists never becomes more accessible than it
// was: its new mode is perm less what it did not have. The directory must exist.
//
// When the flush of the directory fails, the error is returned although path
// already has its new content, which then may not survive a power cut.
func WriteFile(fsys FS, path string, data []byte, perm fs.FileMode) error {
	path, perm, err := replaced(path, perm)
	if err != nil {
		return err
	}
	temp, err := fsys.WriteTemp(path, data, perm, FullFlush)
	if err != nil {
		return err
	}
	if err := fsys.Rename(temp, path); err != nil {
		return errors.Join(err, fsys.Remove(temp))
	}
	return fsys.SyncDir(filepath.Dir(path))
}

// Replace is [WriteFile] for what may be lost in a power cut: nothing is flushed, and
// a link is not followed but replaced.
func Replace(fsys FS, path string, data []byte, perm fs.FileMode) error {
	temp, err := fsys.WriteTemp(path, data, perm, NoFlush)
	if err != nil {
		return err
	}
	if err := fsys.Rename(temp, path); err != nil {
		return errors.Join(err, fsys.Remove(temp))
	}
	return nil
}

// ReplaceJSON writes a value as one line, for its owner only, as [Replace] does, and
// makes the directory.
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

// replaced finds the file that a write of path replaces, and the mode it gets.
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

// AppendFile adds data at the end of path and flushes it; perm is for a new
// file. A kill or a power cut in between leaves a part of data: the reader
// must know a torn tail and cut it off ([FS.Truncate]). Writers need a [Lock].
//
// The name of a new file is made durable while it is still empty, so a file
// with content needs no flush of its directory, whoever made it.
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

// MkdirAll makes a directory and its parents, and the names of those that were
// missing durable. One that another process was killed over, between the two,
// counts as existing: every common file system keeps the parents of a file that
// is flushed.
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

// missingDirs lists path and its parents as far as they do not exist, deepest first.
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
