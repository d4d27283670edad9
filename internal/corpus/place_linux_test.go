package corpus

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// root is the directory in which the homes were created. Their nodes contain this path and cannot be changed.
const root = "/tmp/uwf-corpus"

// occupy creates the root and locks it, so that tests of other checkouts wait. It removes anything left by a
// killed test, and the root at the end.
func occupy(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	for {
		dir, err := held(ctx)
		if err != nil {
			t.Fatalf("%s, where the homes were made, cannot be had: %v", root, err)
		}
		if dir != nil {
			t.Cleanup(func() {
				err := empty(root)
				for range 100 { // background processes of a story may still be writing
					if err == nil {
						break
					}
					time.Sleep(50 * time.Millisecond)
					err = empty(root)
				}
				if err := errors.Join(err, os.Remove(root), dir.Close()); err != nil {
					t.Error(err)
				}
			})
			if err := empty(root); err != nil {
				t.Fatalf("%s is left from a killed test of another user, who can remove it: %v", root, err)
			}
			return
		}
	}
}

// held waits for the lock of the root. It returns nil if the previous owner removed the root.
func held(ctx context.Context) (*os.File, error) {
	if err := os.Mkdir(root, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	dir, err := os.Open(root)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for {
		err := syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			break
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("another test has it for too long"), dir.Close())
		case <-time.After(200 * time.Millisecond):
		}
	}
	mine, err := dir.Stat()
	if err != nil {
		return nil, err
	}
	if there, err := os.Lstat(root); err != nil || !os.SameFile(mine, there) {
		return nil, dir.Close()
	}
	return dir, nil
}

// empty removes the contents of a directory.
func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, entry.Name())))
	}
	return err
}

// unpack restores a home.
func unpack(archive string, rewrite func(name, text string) string) error {
	packed, err := os.ReadFile(archive)
	if err != nil {
		return err
	}
	zipped, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return err
	}
	files := tar.NewReader(zipped)
	type times struct {
		path string
		at   time.Time
	}
	var all []times
	for {
		header, err := files.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		path := filepath.Join(root, filepath.Clean("/"+header.Name))
		mode := os.FileMode(header.Mode) & os.ModePerm
		switch header.Typeflag {
		case tar.TypeDir:
			err = os.MkdirAll(path, mode)
		case tar.TypeSymlink:
			err = os.Symlink(header.Linkname, path)
		case tar.TypeReg:
			var text []byte
			if text, err = io.ReadAll(files); err == nil {
				if rewrite != nil && !strings.Contains(header.Name, "/nodes/") {
					text = []byte(rewrite(path, string(text)))
				}
				err = os.WriteFile(path, text, mode)
			}
		default:
			err = fmt.Errorf("%s is of kind %c", header.Name, header.Typeflag)
		}
		if err != nil {
			return err
		}
		if header.Typeflag != tar.TypeSymlink {
			all = append(all, times{path, header.ModTime})
		}
	}
	for i := len(all) - 1; i >= 0; i-- {
		if err := os.Chtimes(all[i].path, all[i].at, all[i].at); err != nil {
			return err
		}
	}
	return nil
}
