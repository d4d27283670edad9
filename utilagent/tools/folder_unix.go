//go:build unix

package tools

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// folder is an open directory of the workspace. What is in it is opened by its
// own name, and links are not followed, so nothing leads out. It does the same
// as an [os.Root] with half the system calls, which is what a search consists of.
type folder struct {
	f  *os.File
	fd int
}

// folder opens a directory; "." is the workspace.
func (w *Workspace) folder(dir string) (folder, error) {
	if w.hidden(filepath.ToSlash(dir)) {
		return folder{}, fs.ErrPermission
	}
	f, err := w.root.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
	if err != nil {
		return folder{}, err
	}
	return folder{f: f, fd: int(f.Fd())}, nil
}

func (d folder) close() { _ = d.f.Close() } // it was only read from

// entries lists the directory, in any order. Their Info does not work: it would
// look in the process's own directory.
func (d folder) entries() ([]fs.DirEntry, error) {
	// An os.File that came from an os.Root asks about each entry once more.
	fd, err := d.openat(".", unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), ".")
	entries, err := f.ReadDir(-1)
	return entries, errors.Join(err, f.Close())
}

func (d folder) openat(name string, flags int) (int, error) {
	for {
		fd, err := unix.Openat(d.fd, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC|flags, 0)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

// read reads a regular file into buf, which grows if it must; nothing of a link
// or of what else is no file. The error is errLarge for more than most bytes.
func (d folder) read(name string, most int, buf *[]byte) ([]byte, error) {
	if name == "." || name == ".." {
		return nil, nil
	}
	fd, err := d.openat(name, 0)
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EMLINK) || errors.Is(err, unix.ENXIO) {
		return nil, nil // a link, a socket, a pipe
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(fd) }() // it is only read from
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil || stat.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, err
	}
	if stat.Size > int64(most) {
		return nil, errLarge
	}
	room(buf, int(stat.Size))
	text := (*buf)[:stat.Size]
	for n := 0; n < len(text); {
		got, err := unix.Read(fd, text[n:])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if got <= 0 || err != nil {
			return text[:n], err // it has become shorter
		}
		n += got
	}
	return text, nil
}
