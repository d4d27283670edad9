package fsstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// view is what a Store knows of the files.
type view struct {
	sources []*source // the newest first
	log     listed
	packs   listed
}

// listed is the state of a directory when it was listed.
type listed struct {
	info fs.FileInfo // nil if it didn't exist
	at   time.Time
}

// coarsest is the resolution of the times of any common file system.
const coarsest = 2 * time.Second

// fresh reports whether a directory certainly hasn't changed since it was listed.
func (l listed) fresh(path string) bool {
	info, err := os.Stat(path)
	if err != nil || l.info == nil {
		return errors.Is(err, fs.ErrNotExist) && l.info == nil
	}
	return os.SameFile(info, l.info) && info.ModTime().Equal(l.info.ModTime()) &&
		info.ModTime().Before(l.at.Add(-coarsest))
}

// newest returns the newest segment; nil if there is none.
func (v *view) newest() *source {
	if len(v.sources) == 0 || v.sources[0].name.isPack() {
		return nil
	}
	return v.sources[0]
}

// refresh returns the current view. It lists the files again if list is set or the directories might have
// changed, and takes over what was appended to the newest segment.
func (s *Store) refresh(list bool) (*view, error) {
	s.viewing.Lock()
	defer s.viewing.Unlock()
	for try := 0; ; try++ {
		if list || s.view == nil || !s.view.log.fresh(filepath.Join(s.dir, logDir)) ||
			!s.view.packs.fresh(filepath.Join(s.dir, packsDir)) {
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
		_, err := newest.update(true)
		if err == nil {
			return s.view, nil
		}
		if list = true; !isGone(err) || try == tries {
			return nil, err
		}
	}
}

// tries bounds how often an operation is repeated because a collector has removed files meanwhile.
const tries = 20

// list lists the files, and keeps what is known of those that were known. It lists segments first: a collector
// makes a pack visible before it removes the segments that the pack replaces.
func (s *Store) list() (*view, error) {
	var names []fileName
	v := &view{}
	for _, dir := range []struct {
		name string
		into *listed
	}{{logDir, &v.log}, {packsDir, &v.packs}} {
		found, err := listNames(filepath.Join(s.dir, dir.name), dir.into)
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
			g = &source{name: n, path: s.pathOf(n), decoder: s.decoder}
		} else if _, err := g.update(false); err != nil && !isGone(err) {
			return nil, err
		}
		v.sources = append(v.sources, g)
	}
	return v, nil
}

// listNames lists a directory until it doesn't change meanwhile.
func listNames(dir string, into *listed) (names []fileName, err error) {
	for range tries {
		names = names[:0]
		into.at = time.Now()
		before, err := os.Stat(dir)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, e := range entries {
			if n, ok := parseName(e.Name()); ok {
				names = append(names, n)
			}
		}
		after, err := os.Stat(dir)
		if into.info = after; err == nil && after.ModTime().Equal(before.ModTime()) {
			break
		}
	}
	return names, nil
}

// pathOf returns the path of a segment or pack, without extension.
func (s *Store) pathOf(n fileName) string {
	if n.isPack() {
		return filepath.Join(s.dir, packsDir, n.String())
	}
	return filepath.Join(s.dir, logDir, n.String())
}

// try calls do with the current view, again if a file of the view was removed meanwhile.
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
