package tools

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// Bounds of what is kept beside the workspace.
const (
	maxKept      = 10       // files; then the oldest goes
	maxKeptBytes = 10 << 20 // of a file
)

// scratch is a directory beside the workspace. It keeps long results whole, where read_file
// and grep find them, and holds the temporary directory of commands. It is made when it is
// first needed, and removed by [Workspace.Close].
type scratch struct {
	mu    sync.Mutex
	space *Workspace
	kept  []string // oldest first
	count int
}

// open makes the directory. The caller holds mu.
func (s *scratch) open() error {
	if s.space != nil {
		return nil
	}
	dir, err := os.MkdirTemp("", "uwf-tools-")
	if err != nil {
		return err
	}
	space, err := OpenWorkspace(dir)
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	if err := os.Mkdir(filepath.Join(dir, "tmp"), 0o700); err != nil {
		return errors.Join(err, space.Close(), os.RemoveAll(dir))
	}
	s.space = space
	return nil
}

// close removes everything.
func (s *scratch) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.space == nil {
		return nil
	}
	space := s.space
	s.space, s.kept = nil, nil
	return errors.Join(space.Close(), os.RemoveAll(space.real))
}

// tmp is the temporary directory of commands.
func (s *scratch) tmp() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.open(); err != nil {
		return "", fmt.Errorf("no temporary directory can be made: %w. Say so in your answer", err)
	}
	return filepath.Join(s.space.real, "tmp"), nil
}

// create makes a file for a long result.
func (s *scratch) create() (*os.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.open(); err != nil {
		return nil, err
	}
	if len(s.kept) == maxKept {
		if err := s.space.root.Remove(s.kept[0]); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		s.kept = slices.Delete(s.kept, 0, 1)
	}
	s.count++
	name := fmt.Sprintf("result-%d.txt", s.count)
	f, err := s.space.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	s.kept = append(s.kept, name)
	return f, nil
}

// keep writes a long result to a file and returns its path; "" if that fails: then the model
// has to make do with what it sees.
func (s *scratch) keep(text string) string {
	f, err := s.create()
	if err != nil {
		return ""
	}
	_, err = f.WriteString(text[:min(len(text), maxKeptBytes)])
	if err := errors.Join(err, f.Close()); err != nil {
		return ""
	}
	return f.Name()
}

// Keep writes a text that is too long to be shown to a file beside the workspace,
// which read_file reads, and returns its path; "" if it could not be kept.
func (w *Workspace) Keep(text string) string { return w.scratch.keep(text) }

// reading returns where a path that is to be read lies: in the workspace, or in
// the scratch directory, which is only ever named by an absolute path.
func (w *Workspace) reading(name string) *Workspace {
	w.scratch.mu.Lock()
	defer w.scratch.mu.Unlock()
	kept := w.scratch.space
	if kept == nil || !filepath.IsAbs(filepath.FromSlash(name)) {
		return w
	}
	for _, dir := range []string{kept.dir, kept.real} {
		if _, ok := below(dir, filepath.Clean(filepath.FromSlash(name))); ok {
			return kept
		}
	}
	return w
}
