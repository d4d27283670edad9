package fsstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/united-workforce/uwf/cas"
)

// Put implements [cas.Store]. Errors: also those of the file system.
func (s *Store) Put(ctx context.Context, nodes ...cas.Node) error {
	return s.write(ctx, nodes, flushNone)
}

// Commit implements [cas.Store]. How it flushes: [Store.FlushMode].
func (s *Store) Commit(ctx context.Context, nodes ...cas.Node) error {
	mode, _ := s.FlushMode()
	return s.write(ctx, nodes, mode)
}

func (s *Store) write(ctx context.Context, nodes []cas.Node, mode string) error {
	if s.readOnly != nil {
		return fmt.Errorf("write to store %s: %w", s.dir, s.readOnly)
	}
	p, err := s.plan(ctx, nodes)
	if err != nil {
		return err
	}
	if len(p.missing) > 0 {
		if err := s.make(ctx); err != nil {
			return fmt.Errorf("make store: %w", err)
		}
	}
	return s.carryOut(ctx, p, mode)
}

// plan is what a write has to do.
type plan struct {
	missing []file   // to be written
	present []string // there already; a Commit has to flush them too
}

type file struct {
	path string
	data []byte
}

// plan compares nodes with what is there. It changes nothing, so that a refused
// node costs the others nothing.
func (s *Store) plan(ctx context.Context, nodes []cas.Node) (plan, error) {
	var p plan
	planned := map[cas.Hash]cas.Node{}
	for _, n := range nodes {
		if err := ctx.Err(); err != nil {
			return p, err
		}
		if err := s.format.Hash.Check(n); err != nil {
			return p, err
		}
		if twin, ok := planned[n.Hash]; ok {
			if !twin.Equal(n) {
				return p, &cas.CollisionError{Hash: n.Hash}
			}
			continue
		}
		planned[n.Hash] = n
		there, err := s.isThere(n)
		switch {
		case err != nil:
			return p, err
		case there:
			p.present = append(p.present, s.path(n.Hash))
		default:
			p.missing = append(p.missing, file{s.path(n.Hash), cas.MarshalFile(n)})
		}
	}
	return p, nil
}

// isThere compares a node with its file. A file that is a torn write of this
// very node counts as missing: a power cut after a Put leaves such files, and
// nothing is lost by writing it again. Any other damage is reported.
func (s *Store) isThere(n cas.Node) (bool, error) {
	data, err := s.readFile(n.Hash)
	if errors.Is(err, cas.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	old, err := s.unmarshal(n.Hash, data)
	switch {
	case err != nil && isTorn(data, n):
		return false, nil
	case err != nil:
		return false, err
	case !old.Equal(n):
		return false, &cas.CollisionError{Hash: n.Hash}
	}
	return true, nil
}

// isTorn tells whether data is a part of the file of n: its beginning, then
// nothing, or zeros where blocks never reached the disk.
func isTorn(data []byte, n cas.Node) bool {
	whole := cas.MarshalFile(n)
	if len(data) > len(whole) {
		return false
	}
	same := 0
	for same < len(data) && data[same] == whole[same] {
		same++
	}
	return len(bytes.Trim(data[same:], "\x00")) == 0
}
