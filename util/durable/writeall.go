package durable

import (
	"errors"
	"io/fs"
	"path/filepath"
)

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
