package fsstore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/record"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
)

// exclusive is the right to change what others rely on. Other processes can still read.
type exclusive struct {
	store    *Store
	compact  *durable.Held
	collect  *durable.Held // nil while writers work
	redacted []cas.Hash    // nodes whose content must be removed
}

// Exclusively runs a function while no process puts nodes, and therefore none creates a thread. It returns
// [cas.ErrReadOnly] for a store that doesn't exist or is the original's, which has no lock.
func (s *Store) Exclusively(ctx context.Context, run func() error) error {
	return s.exclusively(ctx, func(*exclusive) error { return run() })
}

func (s *Store) exclusively(ctx context.Context, run func(*exclusive) error) error {
	o, err := s.lockUpkeep(ctx)
	if err != nil {
		return err
	}
	if err = o.stopWriters(ctx); err == nil {
		err = run(o)
	}
	err = errors.Join(err, o.admitWriters())
	if erased := o.erase(ctx); erased != nil {
		err = errors.Join(err, fmt.Errorf("the content of redacted nodes remains in the files of the store: %w", erased))
	}
	return errors.Join(err, o.release())
}

// lockUpkeep prevents other upkeep: a pack that is being written would contain what it removes.
func (s *Store) lockUpkeep(ctx context.Context) (*exclusive, error) {
	if !s.Exists() || s.foreign {
		return nil, fmt.Errorf("%w: %s has no %s", cas.ErrReadOnly, s.dir, formatFile)
	}
	if err := s.make(ctx, 0); err != nil { // of our first version
		return nil, err
	}
	held, err := durable.Lock(ctx, filepath.Join(s.dir, compactLock))
	if err != nil {
		return nil, fmt.Errorf("lock store: %w", err)
	}
	return &exclusive{store: s, compact: held}, nil
}

// stopWriters waits until no process puts nodes, or relies on nodes that nothing references yet.
func (o *exclusive) stopWriters(ctx context.Context) (err error) {
	if o.collect, err = durable.LockExclusive(ctx, filepath.Join(o.store.dir, collectLock)); err != nil {
		return fmt.Errorf("lock store: %w", err)
	}
	return nil
}

// admitWriters lets writers continue.
func (o *exclusive) admitWriters() error {
	held := o.collect
	if o.collect = nil; held == nil {
		return nil
	}
	return held.Unlock()
}

// release lets writers and other upkeep continue.
func (o *exclusive) release() error { return errors.Join(o.admitWriters(), o.compact.Unlock()) }

// LockShared implements [cas.SharedLocker]. In a store of the original it does nothing, because it isn't
// collected and we add no files to it. For a store that doesn't exist yet it creates the lock.
func (s *Store) LockShared(ctx context.Context) (release func() error, err error) {
	if s.foreign {
		return func() error { return nil }, ctx.Err()
	}
	made := s.Exists()
	if !made {
		if err := s.makeDirs(); err != nil && !isPermission(err) {
			return nil, fmt.Errorf("lock store: %w", err)
		}
	}
	if release, err = s.acquire(ctx); err != nil || !made {
		return release, err
	}
	if err := s.rememberHome(ctx, s.add); err != nil {
		return nil, errors.Join(fmt.Errorf("lock store: %w", err), release())
	}
	return release, nil
}

func (s *Store) acquire(ctx context.Context) (release func() error, err error) {
	lock := filepath.Join(s.dir, collectLock)
	if s.holds.Add(1) == 1 {
		durable.YieldToExclusive(ctx, lock)
	}
	held, err := durable.LockShared(ctx, lock)
	if err != nil {
		s.holds.Add(-1)
	}
	if isPermission(err) {
		return func() error { return nil }, nil
	}
	if err != nil {
		return nil, fmt.Errorf("lock store: %w", err)
	}
	return func() error {
		s.holds.Add(-1)
		return held.Unlock()
	}, nil
}

// A store records which homes use it, so that the collector keeps what their threads need. A home is recorded
// before the first node that it can reference. The home that contains the store isn't recorded.
//
// A home with an ephemeral.lock is temporary, such as the home of a worker's slot: it counts while a process
// holds the lock, shared. The creator of such a home holds it, and so does each process that puts nodes there,
// until it exits.

const (
	// EphemeralLock is the lock file in a temporary home.
	EphemeralLock = "ephemeral.lock"

	ephemeral = "ephemeral" // second line of the record of such a home
)

// homeNumber returns the hash in the record of a home.
func homeNumber(home string) uint64 { return cas.XXH64.Sum("", []byte(home)).Number() }

// isHome reports whether the body of a home's record is undamaged.
func isHome(hash uint64, body []byte) bool {
	path, _, _ := strings.Cut(string(body), "\n")
	return homeNumber(path) == hash
}

// parseHome parses the record of a home; "" if it isn't one that counts.
func parseHome(text string) (home string) {
	home, kind, _ := strings.Cut(strings.TrimSuffix(text, "\n"), "\n")
	if !filepath.IsAbs(home) || kind == ephemeral && isAbandoned(home) {
		return ""
	}
	return home
}

// Homes returns the homes that have used the store, and the store's parent directory if it looks like a home.
// They might no longer exist. The error is of code corrupt for the damaged record of a home, whose nodes must be kept.
func (s *Store) Homes() (found []string, err error) {
	records := map[uint64]place{}
	if !s.foreign {
		var faults []error
		if records, faults = s.newest(context.Background(), homes, 0, math.MaxUint64, counts); len(faults) > 0 {
			return nil, faults[0]
		}
	}
	for hash, at := range records {
		body, err := at.source.record(at.entry)
		switch {
		case err != nil && !errors.Is(err, errPack):
			return nil, err
		case err != nil, !isHome(hash, body) && !endsWithZeros(body):
			return nil, damagedHome(at)
		}
		if home := parseHome(string(body)); home != "" && isHome(hash, body) {
			found = append(found, home)
		}
	}
	if parent := filepath.Dir(s.dir); looksLikeHome(parent) {
		found = append(found, parent)
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

// damagedHome returns the error for a home whose path can't be read.
func damagedHome(at place) error {
	return &protocol.Error{Code: protocol.CodeCorrupt,
		Message: fmt.Sprintf("the path of a home that uses the store is damaged (%s)", at.source.at(at.entry)),
		Hints: []string{"to record a home again: uwf --home HOME cas put-text again",
			"to name each home that uses the store: uwf cas gc --roots DIR"}}
}

// isAbandoned reports whether no process uses an ephemeral home any longer.
func isAbandoned(home string) bool {
	path := filepath.Join(home, EphemeralLock)
	_, err := os.Lstat(path)
	if err != nil {
		return isGone(err)
	}
	lock, err := durable.TryLock(path)
	if err == nil {
		_ = lock.Unlock()
	}
	return err == nil
}

// enter keeps an ephemeral home alive until the process exits, and reports whether the home is ephemeral.
func (s *Store) enter() (bool, error) {
	path := filepath.Join(s.home, EphemeralLock)
	if _, err := os.Lstat(path); err != nil {
		return false, nil //nolint:nilerr // it is not there
	}
	s.entering.Lock()
	defer s.entering.Unlock()
	if s.entered != nil {
		return true, nil
	}
	lock, err := durable.LockShared(context.Background(), path)
	s.entered = lock
	return true, err
}

// looksLikeHome reports whether a directory contains an index.
func looksLikeHome(dir string) bool {
	for _, name := range []string{"threads.yaml", "history.jsonl", "registry.yaml"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

// rememberHome records the home once, durably. A process that can't write to the store can't put nodes either.
func (s *Store) rememberHome(ctx context.Context, add func(context.Context, bool, func(*view) ([]pending, error)) error) error {
	if s.home == "" || s.guest || filepath.Dir(s.dir) == s.home {
		return nil
	}
	passing, err := s.enter()
	if err != nil {
		return err
	}
	text := s.home + "\n"
	if passing {
		text += ephemeral + "\n"
	}
	home := pending{kind: record.Home, hash: homeNumber(s.home), body: []byte(text)}
	missing := func(v *view) ([]pending, error) {
		at, ok, err := v.newestOf(home.hash, homes)
		if ok && err == nil && at.entry.kind == record.Home {
			if body, err := at.source.record(at.entry); err != nil || string(body) == text {
				return nil, err
			}
		}
		return []pending{home}, err
	}
	needed := true
	if err := s.try(ctx, func(v *view) error {
		todo, err := missing(v)
		needed = len(todo) > 0
		return err
	}); err != nil || !needed {
		return err
	}
	if err := add(ctx, true, missing); !isPermission(err) {
		return err
	}
	return nil
}

// ForgetHome removes the record of a home that no longer exists.
func (s *Store) ForgetHome(ctx context.Context, home string) error {
	return s.add(ctx, true, func(*view) ([]pending, error) {
		return []pending{{kind: record.NoHome, hash: homeNumber(home)}}, nil
	})
}
