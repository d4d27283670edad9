package fsstore

import (
	"context"
	"errors"
	"io/fs"

	"github.com/united-workforce/uwf/cas"
)

// Mend commits nodes in the place of damaged files, which go to the quarantine. The caller
// sees to it that nobody else mends meanwhile. Errors: those of [Store.Commit].
func (s *Store) Mend(ctx context.Context, nodes ...cas.Node) (err error) {
	release, err := s.Hold(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	sole := Sole{store: s}
	for _, n := range nodes {
		if err := s.format.Hash.Check(n); err != nil {
			return err
		}
		var damaged *cas.CorruptError
		if _, err := s.isThere(n); !errors.As(err, &damaged) {
			continue // what else is wrong the commit says
		}
		if _, err := sole.Quarantine(s.Path(n.Hash)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return s.Commit(ctx, nodes...)
}
