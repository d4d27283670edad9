//go:build unix

package original

import (
	"errors"
	"io"
	"io/fs"

	"golang.org/x/sys/unix"
)

// readRegular reads a file of at most limit bytes. It uses system calls directly, because package os makes 50
// % more of them, and reading nodes is a store's most frequent operation. Opening never blocks and doesn't
// follow symbolic links, whose target could change, while a node can't.
func readRegular(path string, limit int) ([]byte, error) {
	fd, err := retry(func() (int, error) {
		return unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	})
	if errors.Is(err, unix.ELOOP) && isLink(path) {
		return nil, &notRegularError{fs.ModeSymlink}
	}
	if errors.Is(err, unix.ENXIO) || errors.Is(err, unix.EOPNOTSUPP) { // a socket
		return nil, &notRegularError{fs.ModeSocket}
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer func() { _ = unix.Close(fd) }() // nothing was written
	data, err := readDescriptor(fd, limit)
	var odd *notRegularError
	var big *tooBigError
	if err != nil && !errors.As(err, &odd) && !errors.As(err, &big) {
		err = &fs.PathError{Op: "read", Path: path, Err: err}
	}
	return data, err
}

// isLink distinguishes a symbolic link from a path with too many links.
func isLink(path string) bool {
	var st unix.Stat_t
	return unix.Lstat(path, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK
}

func readDescriptor(fd, limit int) ([]byte, error) {
	var st unix.Stat_t
	if _, err := retry(func() (int, error) { return 0, unix.Fstat(fd, &st) }); err != nil {
		return nil, err
	}
	switch {
	case st.Mode&unix.S_IFMT == unix.S_IFDIR:
		return nil, &notRegularError{fs.ModeDir}
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return nil, &notRegularError{fs.ModeIrregular}
	case st.Size > int64(limit):
		return nil, &tooBigError{st.Size}
	}
	data := make([]byte, st.Size)
	for done := 0; done < len(data); {
		n, err := retry(func() (int, error) { return unix.Read(fd, data[done:]) })
		switch {
		case err != nil:
			return nil, err
		case n == 0:
			return nil, io.ErrUnexpectedEOF
		}
		done += n
	}
	return data, nil
}

// retry repeats a call interrupted by a signal.
func retry(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}
