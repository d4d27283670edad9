package durable

// WriteAllMany is WriteAll where any number of files are many.
func WriteAllMany(fsys FS, files []File, mode Mode) error { return writeAll(fsys, files, mode, 1) }

// WriteCheckedMany is WriteChecked where any number of files are many.
func WriteCheckedMany(fsys FS, files []File) (bool, error) { return writeChecked(fsys, files, 1) }
