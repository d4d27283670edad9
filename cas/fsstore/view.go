package fsstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/united-workforce/uwf/util/safeopen"
)

// view lists the files of a store.
type view struct {
	sources []*source // the newest first
	after   string    // path of the segment after the newest one
}

// newest returns the newest segment; nil if there is none.
func (v *view) newest() *source {
	if len(v.sources) == 0 || v.sources[0].name.isPack() {
		return nil
	}
	return v.sources[0]
}

// refresh returns the current view, with everything that was appended until now. It lists the files again if list is
// set, or there might be a segment that isn't known: segments are numbered in sequence, and a collector that removes
// one also removes the older ones. So nothing is missed while the newest known segment exists and the next one doesn't.
func (s *Store) refresh(list bool) (*view, error) {
	s.viewing.Lock()
	defer s.viewing.Unlock()
	for try := 0; ; try++ {
		if list || s.view == nil || s.view.newest() == nil || mayExist(s.view.after) {
			v, err := s.list()
			if err != nil {
				return nil, err
			}
			s.view = v
		}
		newest := s.view.newest()
		if newest == nil {
			return s.view, nil
		}
		err := newest.update(true)
		if err == nil {
			return s.view, nil
		}
		if list = true; !isGone(err) || try == tries {
			return nil, err
		}
	}
}

func mayExist(path string) bool {
	_, err := os.Lstat(path)
	return !isGone(err)
}

// tries bounds how often an operation is repeated because a collector removes files.
const tries = 20

// list lists the files, and keeps what is known of those that were known. It lists segments first: a collector
// makes a pack visible before it removes the segments that the pack replaces.
func (s *Store) list() (*view, error) {
	var names []fileName
	v := &view{}
	for _, dir := range []string{logDir, packsDir} {
		found, err := listNames(filepath.Join(s.dir, dir))
		if err != nil {
			return nil, err
		}
		names = append(names, found...)
	}
	covered := -1
	for _, n := range names {
		if n.isPack() {
			covered = max(covered, n.number)
		}
	}
	known := map[fileName]*source{}
	if s.view != nil {
		for _, g := range s.view.sources {
			known[g.name] = g
		}
	}
	slices.SortFunc(names, func(a, b fileName) int {
		switch {
		case b.less(a):
			return -1
		case a.less(b):
			return 1
		}
		return 0
	})
	for _, n := range names {
		if !n.isPack() && n.number <= covered {
			continue
		}
		g := known[n]
		if g == nil {
			g = &source{name: n, path: s.pathOf(n), files: &s.open, decoder: s.decoder}
		} else if err := g.update(false); err != nil && !isGone(err) {
			return nil, err
		}
		v.sources = append(v.sources, g)
		delete(known, n)
	}
	if s.files.Layout != "" {
		g := known[firstName()]
		if g == nil {
			g = s.firstVersion()
		}
		v.sources = append(v.sources, g)
		delete(known, firstName())
	}
	for _, g := range known {
		g.close()
	}
	v.after = s.pathOf(fileName{number: v.next()}) + segmentExt
	return v, nil
}

// listNames lists the segments or packs in a directory.
func listNames(dir string) (names []fileName, err error) {
	entries, err := os.ReadDir(dir)
	if isGone(err) {
		return nil, nil
	}
	for _, e := range entries {
		if n, ok := parseName(e.Name()); ok {
			names = append(names, n)
		}
	}
	return names, err
}

// pathOf returns the path of a segment or pack, without extension.
func (s *Store) pathOf(n fileName) string {
	if n.isPack() {
		return filepath.Join(s.dir, packsDir, n.String())
	}
	return filepath.Join(s.dir, logDir, n.String())
}

// try calls do with the current view, again if a file of the view was removed.
func (s *Store) try(ctx context.Context, do func(v *view) error) error {
	for n := range tries {
		v, err := s.refresh(n > 0)
		if err != nil {
			err = fmt.Errorf("read store: %w", err)
		} else {
			err = do(v)
		}
		if !isGone(err) || ctx.Err() != nil {
			return err
		}
	}
	return fmt.Errorf("store %s: its files are being replaced all the time", s.dir)
}

// Generation returns a value that changes when a compaction removes nodes.
func (s *Store) Generation() (string, error) {
	if s.foreign {
		return "", nil
	}
	v, err := s.refresh(true)
	if err != nil {
		return "", err
	}
	var names []string
	for _, g := range v.sources {
		if g.name.isPack() {
			names = append(names, g.name.String())
		}
	}
	return fmt.Sprint(names), nil
}

// files keeps files open that were read: opening one costs more than a read.
type files struct {
	mu   sync.Mutex
	open map[string]*os.File
	most uint64
}

// maxOpen bounds the open files, if the process can open more than twice as many.
const maxOpen = 128

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
		if other == path || uint64(len(c.open)) >= c.most {
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
