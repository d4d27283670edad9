//go:build !unix

package original

import (
	"io"
	"io/fs"
	"os"
)

// readRegular reads a file of at most limit bytes. It doesn't open anything other than a regular file, which
// could block.
func readRegular(path string, limit int) ([]byte, error) {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, &notRegularError{info.Mode()}
	case info.Size() > int64(limit):
		return nil, &tooBigError{info.Size()}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // nothing was written
	data := make([]byte, info.Size())
	if _, err := io.ReadFull(f, data); err != nil {
		return nil, &fs.PathError{Op: "read", Path: path, Err: err}
	}
	return data, nil
}
