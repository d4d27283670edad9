package durable

// WriteAllMany is WriteAll with a threshold of one file.
func WriteAllMany(fsys FS, files []File, mode Mode) error { return writeAll(fsys, files, mode, 1) }

// WriteCheckedMany is WriteChecked with a threshold of one file.
func WriteCheckedMany(fsys FS, files []File) (bool, error) { return writeChecked(fsys, files, 1) }
