// Package fsstore keeps nodes in files, one each, readable without this program:
//
//	<dir>/format.json                    what kind of store this is
//	<dir>/nodes/<first two>/<hash>.bin   CBOR of {type, payload, timestamp}
//
// Files are written under a temporary name and renamed, mode 0444, so a reader
// sees a whole node or none. Any number of processes may read and write at once,
// without locks. Files of other names are ignored.
//
// A store of the original's has no format.json and its files in one directory;
// it is used as it is, and no file of ours is added to it.
package fsstore

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/util/durable"
)

// Options for a store. The zero value works.
type Options struct {
	FS    durable.FS    // nil: the real disk
	Home  string        // the directory of the heads; batch flushing needs it on the same file system
	Guest bool          // nothing in Home will name what is put: the store need not remember it
	Flush string        // full, batch, none or auto; "" : as format.json says
	Hash  cas.Algorithm // for a store that does not exist yet; "": xxh3
}

// Store implements [cas.Store]. Safe for concurrent use.
type Store struct {
	dir    string
	home   string
	guest  bool
	fs     durable.FS
	format format
	kinds  *cas.Kinds

	flush func() flushMode
	holds atomic.Int32 // that are not given back

	entering sync.Mutex
	entered  *durable.Held // the lock of an ephemeral home; nil: it is none, or nothing was put

	making  sync.Mutex
	made    bool // format.json is there, or must not be
	founded bool // the foundation is durable
	later   []*laterHold
}

var _ cas.Store = (*Store)(nil)

// Open opens the store at dir. A store that does not exist yet is made by the
// first write. Errors: a [*protocol.Error] of code newer for the store of a newer
// program, which is neither read nor written; of code corrupt for a format.json
// that is damaged, or missing although there are nodes in our own layout; unknown
// Options.
func Open(ctx context.Context, dir string, o Options) (*Store, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	found, err := find(dir)
	if err != nil {
		return nil, atStore(dir, err)
	}
	s := &Store{dir: dir, home: o.Home, guest: o.Guest, fs: o.FS, format: found.format, made: found.exists}
	s.founded = found.exists && found.format.Layout == fan2
	if s.fs == nil {
		s.fs = durable.OS()
	}
	if !found.exists && o.Hash != "" {
		s.format.Hash = o.Hash
	}
	if o.Flush != "" {
		s.format.Flush = o.Flush
	}
	s.kinds = cas.NewKinds(s.format.Hash)
	s.flush = sync.OnceValue(s.chooseFlush)
	return s, nil
}

func (o Options) check() error {
	if o.Hash != "" && !o.Hash.Known() {
		return fmt.Errorf("unknown hash function %q: want %s or %s", o.Hash, cas.XXH3, cas.XXH64)
	}
	if o.Flush != "" && !knownFlush(o.Flush) {
		return fmt.Errorf("unknown flush mode %q: want auto, full, batch or none", o.Flush)
	}
	return nil
}

// Algorithm implements [cas.Reader].
func (s *Store) Algorithm() cas.Algorithm { return s.format.Hash }

// Kinds implements [cas.Reader].
func (s *Store) Kinds() *cas.Kinds { return s.kinds }

// Exists reports whether the store is there. If not, the first write makes it.
func (s *Store) Exists() bool {
	s.making.Lock()
	defer s.making.Unlock()
	return s.made
}

// Make makes the store, unless it exists; at is the timestamp in ms of its first
// nodes. Errors: another process made it meanwhile in another format.
func (s *Store) Make(ctx context.Context, at int64) error {
	if err := s.make(ctx, at); err != nil {
		return fmt.Errorf("make store: %w", err)
	}
	return nil
}

// Dir is the store's directory.
func (s *Store) Dir() string { return s.dir }

// make makes a store that does not exist yet. Two processes may try at once,
// with different hash functions: the lock decides, and the loser is told. at is
// the timestamp of the foundation.
func (s *Store) make(ctx context.Context, at int64) error {
	s.making.Lock()
	defer s.making.Unlock()
	if s.made {
		return nil
	}
	// All that agents and tools have said is in there. Whoever shares a store makes its
	// directory himself.
	if err := durable.MkdirAll(s.fs, s.dir, 0o700); err != nil {
		return err
	}
	if err := durable.MkdirAll(s.fs, filepath.Join(s.dir, nodesDir), 0o755); err != nil {
		return err
	}
	lock, err := durable.Lock(ctx, filepath.Join(s.dir, lockFile))
	if err != nil {
		return err
	}
	err = errors.Join(s.rememberHome(), s.holdNow(ctx))
	if err == nil {
		err = s.makeLocked(ctx, at)
	}
	s.made, s.founded = err == nil, err == nil
	return errors.Join(err, lock.Unlock())
}

func (s *Store) makeLocked(ctx context.Context, at int64) error {
	found, err := find(s.dir)
	if err != nil {
		return err
	}
	if !found.exists {
		if err := s.layFoundation(ctx, at); err != nil {
			return err
		}
		return writeFormat(s.fs, s.dir, s.format)
	}
	if found.format.Hash != s.format.Hash || found.format.Layout != s.format.Layout {
		return fmt.Errorf("store %s was made meanwhile by another process, in another format: open it again", s.dir)
	}
	return nil
}

// Originals reports whether the store is one of the original's.
func (s *Store) Originals() bool { return s.Exists() && s.format.Layout != fan2 }
