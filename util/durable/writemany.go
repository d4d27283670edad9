package durable

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
