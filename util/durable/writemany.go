package durable

import "path/filepath"

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
