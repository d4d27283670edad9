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

// File is a file to write, or one to flush.
type File struct {
	Path string
	Data []byte
	Perm fs.FileMode
	// Present means that the file is there already, with the right content,
	// written by somebody who perhaps has not flushed it. Only Path counts then.
	Present bool
}

// Mode says how WriteAll makes its files durable.
type Mode int

// The modes. Only Full is safe everywhere; [SafeMode] tells where Batch is.
const (
	// Full flushes each file before it gets its name, and each directory after.
	// Contents and names are durable when WriteAll returns.
	Full Mode = iota
	// Batch hands each file to the device, gives all their names, and then
	// flushes once, which on a file system with one ordered journal completes
	// everything before it. Contents and names are durable when WriteAll returns.
	Batch
	// None flushes nothing: the files survive a kill, not a power cut.
	None
)

// String returns full, batch or none.
func (m Mode) String() string {
	switch m {
	case Full:
		return "full"
	case Batch:
		return "batch"
	default:
		return "none"
	}
}

// WriteAll writes files that nothing durable names yet, making missing
// directories. Each appears whole or not at all. After an error some may have
// been written; temporary files are gone.
func WriteAll(fsys FS, files []File, mode Mode) error {
	return writeAll(fsys, files, mode, manyFiles)
}

// writeAll is WriteAll with another opinion of how many files are many.
func writeAll(fsys FS, files []File, mode Mode, many int) error {
	dirs := parents(files)
	if whole, ok := fsys.(WholeFS); ok && mode == Full && len(files) >= many && whole.FlushesAll(dirs) {
		return writeMany(whole, files, dirs)
	}
	for _, dir := range dirs {
		if err := makeParent(fsys, dir, mode); err != nil {
			return err
		}
	}
	missing, present := split(files)
	if mode == Batch && len(missing) == 0 {
		// Nothing gets a name, so a journal that has long since committed these
		// names would see nothing to do in a flush of a directory.
		mode = Full
	}
	if err := flushPresent(fsys, present, mode); err != nil {
		return err
	}
	if err := writeMissing(fsys, missing, mode); err != nil {
		return err
	}
	switch {
	case mode == None:
		return nil
	case mode == Batch && len(missing) > 0:
		// The last rename is in the journal behind all that went before.
		dirs = []string{filepath.Dir(missing[len(missing)-1].Path)}
	}
	for _, dir := range dirs {
		if err := fsys.SyncDir(dir); err != nil {
			return err
		}
	}
	return nil
}

func split(files []File) (missing, present []File) {
	for _, f := range files {
		if f.Present {
			present = append(present, f)
		} else {
			missing = append(missing, f)
		}
	}
	return missing, present
}

// flushPresent flushes contents; the names follow with the directories.
func flushPresent(fsys FS, files []File, mode Mode) error {
	flush := fsys.SyncFile
	switch mode {
	case None:
		return nil
	case Batch:
		flush = fsys.StartSync
	}
	for _, f := range files {
		if err := flush(f.Path); err != nil {
			return err
		}
	}
	return nil
}

// writeMissing writes all contents before it gives the first name.
func writeMissing(fsys FS, files []File, mode Mode) error {
	temps, err := writeTemps(fsys, files, mode.flush())
	if err != nil {
		return removing(fsys, temps, err)
	}
	for i, temp := range temps {
		if err := fsys.Rename(temp, files[i].Path); err != nil {
			return removing(fsys, temps[i:], err)
		}
	}
	return nil
}

// makeParent makes a directory. Where a journal keeps the order, its name needs
// no flush of its own.
func makeParent(fsys FS, dir string, mode Mode) error {
	if mode == Full {
		return MkdirAll(fsys, dir, 0o755)
	}
	missing, err := missingDirs(dir)
	if err != nil || len(missing) == 0 {
		return err
	}
	return fsys.MkdirAll(dir, 0o755)
}

// writeTemps returns the temporary files that exist, also after an error.
func writeTemps(fsys FS, files []File, flush Flush) ([]string, error) {
	temps := make([]string, 0, len(files))
	for _, f := range files {
		temp, err := fsys.WriteTemp(f.Path, f.Data, f.Perm, flush)
		if err != nil {
			return temps, err
		}
		temps = append(temps, temp)
	}
	return temps, nil
}

// flush is how far each content has to get before it gets its name.
func (m Mode) flush() Flush {
	switch m {
	case None:
		return NoFlush
	case Batch:
		return StartFlush
	default:
		return FullFlush
	}
}

// parents lists the directories of the files, each once, in order of appearance.
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

// removing takes temporary files away after an error, which it returns.
func removing(fsys FS, temps []string, err error) error {
	errs := []error{err}
	for _, temp := range temps {
		errs = append(errs, fsys.Remove(temp))
	}
	return errors.Join(errs...)
}

// WholeFS is an FS that may be able to flush a whole file system at once.
type WholeFS interface {
	FS
	// FlushesAll reports whether SyncAll makes everything below some directories
	// durable, and tells if it could not.
	FlushesAll(dirs []string) bool
	// SyncAll makes everything that was written to the file system of a directory
	// durable, whoever wrote it.
	SyncAll(dir string) error
}

// manyFiles is from how many files on two flushes of the whole file system cost
// less than one of each file, also if others have written much.
const manyFiles = 512

// WriteChecked writes files that whoever reads them holds against their names, so that what
// a power cut has torn harms nobody, with one flush of everything after the last one has
// its name: contents and names are durable then. done is false, and nothing is written, if
// there are too few, or where that is not possible.
func WriteChecked(fsys FS, files []File) (done bool, err error) {
	return writeChecked(fsys, files, manyFiles)
}

func writeChecked(fsys FS, files []File, many int) (done bool, err error) {
	whole, ok := fsys.(WholeFS)
	if !ok || len(files) < many || !whole.FlushesAll(parents(files)) {
		return false, nil
	}
	missing, _ := split(files)
	if err := writeAll(fsys, missing, None, many); err != nil {
		return false, err
	}
	return true, whole.SyncAll(filepath.Dir(files[0].Path))
}

// writeMany is WriteAll in mode Full with two flushes of everything: one before
// the first file gets its name, one after the last.
func writeMany(fsys WholeFS, files []File, dirs []string) error {
	for _, dir := range dirs {
		if err := makeParent(fsys, dir, None); err != nil {
			return err
		}
	}
	missing, _ := split(files)
	temps, err := writeTemps(fsys, missing, NoFlush)
	if err == nil {
		err = fsys.SyncAll(dirs[0])
	}
	if err != nil {
		return removing(fsys, temps, err)
	}
	for i, temp := range temps {
		if err := fsys.Rename(temp, missing[i].Path); err != nil {
			return removing(fsys, temps[i:], err)
		}
	}
	return fsys.SyncAll(dirs[0])
}
