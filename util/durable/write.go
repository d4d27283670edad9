package durable

import (
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
	temp, err := fsys.WriteTemp(path, data, perm, FullFlush)
	if err != nil {
		return err
	}
	if err := fsys.Rename(temp, path); err != nil {
		return errors.Join(err, fsys.Remove(temp))
	}
	return fsys.SyncDir(filepath.Dir(path))
}

// Replace is [WriteFile] for data that a power cut can destroy: it flushes nothing, and replaces a link
// instead of following it.
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

// Mode is the way in which WriteAll makes its files durable.
type Mode int

// The modes. Only Full is safe everywhere; [SafeMode] reports where Batch is.
const (
	// Full flushes each file before its rename, and each directory afterwards. Contents and names are durable
	// when WriteAll returns.
	Full Mode = iota
	// Batch passes each file to the device, renames all of them, and then flushes once, which on a file
	// system with one ordered journal completes everything before it. Contents and names are durable when
	// WriteAll returns.
	Batch
	// None flushes nothing: the files survive a kill, but not a power cut.
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

// WriteAll writes files that nothing durable references yet, and creates missing directories. Each file is
// written atomically. After an error some might have been written; temporary files are removed.
func WriteAll(fsys FS, files []File, mode Mode) error {
	return writeAll(fsys, files, mode, manyFiles)
}

// writeAll is WriteAll with a configurable threshold for many files.
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
		// Nothing is renamed, so if the journal has already committed these names, a flush of a directory
		// would do nothing.
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
		// The last rename follows everything else in the journal.
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

// writeMissing writes all contents before it renames the first file.
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

// makeParent creates a directory. If a journal preserves the order, its name needs no separate flush.
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

// writeTemps returns the temporary files that exist, even after an error.
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

// flush returns the level to which each content is flushed before its rename.
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

// removing removes temporary files after an error and returns it.
func removing(fsys FS, temps []string, err error) error {
	errs := []error{err}
	for _, temp := range temps {
		errs = append(errs, fsys.Remove(temp))
	}
	return errors.Join(errs...)
}

// WholeFS is an FS that can possibly flush a whole file system at once.
type WholeFS interface {
	FS
	// FlushesAll reports whether SyncAll makes everything below these directories durable and reports
	// failure.
	FlushesAll(dirs []string) bool
	// SyncAll makes everything written to the file system of a directory durable, by any process.
	SyncAll(dir string) error
}

// manyFiles is the number of files from which two flushes of the whole file system are cheaper than flushing
// each file, even if other processes have written much.
const manyFiles = 512

// WriteChecked writes files that readers verify against their names, so that files damaged by a power cut do
// no harm. It flushes everything once, after the last rename; contents and names then are durable. If there
// are too few files, or the file system doesn't support it, done is false and nothing is written.
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

// writeMany is WriteAll in mode Full with two flushes of everything: one before the first rename, one after
// the last.
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
