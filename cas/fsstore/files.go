package fsstore

import (
	"errors"
	"io/fs"
	"os"
	"sync"

	"github.com/united-workforce/uwf/util/safeopen"
)

// files keeps files open that were read: opening one costs more than a read.
type files struct {
	mu   sync.Mutex
	open map[string]*os.File
}

// maxOpen is far below the number of files that a process can open, even with a low limit.
const maxOpen = 32

func (c *files) get(path string) (*os.File, error) {
	c.mu.Lock()
	f := c.open[path]
	c.mu.Unlock()
	if f != nil {
		return f, nil
	}
	f, err := safeopen.Open(path, safeopen.NoFollow)
	if err == nil {
		c.keep(path, f)
	}
	return f, err
}

// keep takes ownership of an open file. If there are many, it closes the others.
func (c *files) keep(path string, f *os.File) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for other, old := range c.open {
		if other == path || len(c.open) >= maxOpen {
			_ = old.Close() // nothing was written
			delete(c.open, other)
		}
	}
	if c.open == nil {
		c.open = map[string]*os.File{}
	}
	c.open[path] = f
}

// forget closes a file, because another file may have its path now.
func (c *files) forget(path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.open[path]; f != nil {
		_ = f.Close() // nothing was written
		delete(c.open, path)
	}
}

// do calls read with an open file, again if another goroutine has closed it.
func (c *files) do(path string, read func(*os.File) error) error {
	for {
		f, err := c.get(path)
		if err != nil {
			return err
		}
		if err = read(f); !errors.Is(err, os.ErrClosed) {
			return err
		}
	}
}

// readAt reads a part of a file; fewer bytes mean that it ends.
func (c *files) readAt(path string, into []byte, at int64) (n int, err error) {
	err = c.do(path, func(f *os.File) error {
		n, err = readFull(f, into, at)
		return err
	})
	return n, err
}

func (c *files) stat(path string) (info fs.FileInfo, err error) {
	err = c.do(path, func(f *os.File) error {
		info, err = f.Stat()
		return err
	})
	return info, err
}
