package fsstore

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/united-workforce/uwf/util/durable"
)

// Hold implements [cas.Holder]. In a store of the original's it does nothing:
// nobody collects there, and no file of ours is added. A store that does not
// exist yet is held from the moment in which it is made by this Store.
func (s *Store) Hold(ctx context.Context) (release func() error, err error) {
	if s.format.Layout != fan2 {
		return func() error { return nil }, ctx.Err()
	}
	if later := s.holdLater(); later != nil {
		return later.release, ctx.Err()
	}
	if err := s.rememberHome(); err != nil {
		return nil, fmt.Errorf("hold store: %w", err)
	}
	return s.hold(ctx)
}

func (s *Store) hold(ctx context.Context) (release func() error, err error) {
	lock := filepath.Join(s.dir, collectLock)
	if s.holds.Add(1) == 1 {
		durable.GiveWay(ctx, lock)
	}
	held, err := durable.LockShared(ctx, lock)
	if err != nil {
		s.holds.Add(-1)
	}
	if mayNot(err) {
		return func() error { return nil }, nil
	}
	if err != nil {
		return nil, fmt.Errorf("hold store: %w", err)
	}
	return func() error {
		s.holds.Add(-1)
		return held.Unlock()
	}, nil
}

// laterHold is a hold on a store that is still to be made.
type laterHold struct {
	store    *Store
	released bool
	unlock   func() error // nil: the store is not made yet
}

// holdLater notes a hold on a store that does not exist yet; nil if it does.
func (s *Store) holdLater() *laterHold {
	s.making.Lock()
	defer s.making.Unlock()
	if s.made {
		return nil
	}
	h := &laterHold{store: s}
	s.later = append(s.later, h)
	return h
}

// release gives the hold back, whether or not the store was made meanwhile.
func (h *laterHold) release() error {
	h.store.making.Lock()
	defer h.store.making.Unlock()
	if h.released || h.unlock == nil {
		h.released = true
		return nil
	}
	h.released = true
	return h.unlock()
}

// holdNow takes the holds that were noted. It comes before the store has a
// format, without which nobody collects; s.making is locked.
func (s *Store) holdNow(ctx context.Context) error {
	for _, h := range s.later {
		if h.released {
			continue
		}
		unlock, err := s.hold(ctx)
		if err != nil {
			return errors.Join(err, ctx.Err())
		}
		h.unlock = unlock
	}
	s.later = nil
	return nil
}
