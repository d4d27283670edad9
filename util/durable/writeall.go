package durable

import (
	"errors"
	"io/fs"
	"path/filepath"
)

// File is a file to write.
type File struct {
	Path string
	Data []byte
	Perm fs.FileMode
}

// Mode says how WriteAll makes its files durable.
type Mode int

// The modes. Only Full is safe everywhere; [SafeMode] tells where Batch is.
const (
	// Full flushes each file before it gets its name, and each directory after.
	// Contents and names are durable when WriteAll returns.
	Full Mode = iota
	// Batch hands each file to the device and flushes only the last one, which
	// on a file system with one ordered journal completes the others. Contents
	// are durable when WriteAll returns. The names become durable, at the latest,
	// with the next flush of anything on the same file system: so what names
	// these files durably, being flushed itself, cannot come before them.
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
	dirs := parents(files)
	for _, dir := range dirs {
		if err := makeParent(fsys, dir, mode); err != nil {
			return err
		}
	}
	temps, err := writeTemps(fsys, files, mode)
	if err != nil {
		return errors.Join(err, removeAll(fsys, temps))
	}
	for i, temp := range temps {
		if err := fsys.Rename(temp, files[i].Path); err != nil {
			return errors.Join(err, removeAll(fsys, temps[i:]))
		}
	}
	if mode != Full {
		return nil
	}
	for _, dir := range dirs {
		if err := fsys.SyncDir(dir); err != nil {
			return err
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
func writeTemps(fsys FS, files []File, mode Mode) ([]string, error) {
	temps := make([]string, 0, len(files))
	for i, f := range files {
		temp, err := fsys.WriteTemp(f.Path, f.Data, f.Perm, mode.flush(i == len(files)-1))
		if err != nil {
			return temps, err
		}
		temps = append(temps, temp)
	}
	return temps, nil
}

// flush is how far a file has to get. The one real flush of a batch must come
// last: it completes what was handed to the device before it.
func (m Mode) flush(last bool) Flush {
	switch {
	case m == None:
		return NoFlush
	case m == Batch && !last:
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

func removeAll(fsys FS, paths []string) error {
	var errs []error
	for _, path := range paths {
		errs = append(errs, fsys.Remove(path))
	}
	return errors.Join(errs...)
}
