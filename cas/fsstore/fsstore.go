// Package fsstore stores each node in a file, readable without this program:
//
//	<dir>/format.json                    format of this store
//	<dir>/nodes/<first two>/<hash>.bin   CBOR of {type, payload, timestamp}
//
// Files are written under a temporary name and renamed, with mode 0444, so a reader sees a complete node or
// none. Any number of processes can read and write concurrently without locks. Files with other names are
// ignored.
//
// A store of the original has no format.json and all files in one directory. It is used unchanged, without
// adding other files.
package fsstore

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/exactjson"
	"github.com/united-workforce/uwf/util/safeopen"
)

// Options configures a store. The zero value works.
type Options struct {
	FS    durable.FS    // nil: the real disk
	Home  string        // directory of the heads; batch flushing requires it on the same file system
	Guest bool          // no node put will be referenced from Home, so the store needn't record it
	Flush string        // full, batch, none or auto; "": from format.json
	Hash  cas.Algorithm // for a store that doesn't exist yet; "": xxh3
}

// Store implements [cas.Store]. It is safe for concurrent use.
type Store struct {
	dir    string
	home   string
	guest  bool
	fs     durable.FS
	format format
	kinds  *cas.Kinds

	flush func() flushMode
	holds atomic.Int32 // number of locks held

	entering sync.Mutex
	entered  *durable.Held // lock of an ephemeral home; nil if it isn't one, or before the first put

	making  sync.Mutex
	made    bool // format.json exists, or must not
	founded bool // the foundation is durable
	later   []*lazyLock
}

var _ cas.Store = (*Store)(nil)

// Open opens the store at dir. The first write creates a store that doesn't exist yet. Errors: a
// [*protocol.Error] of code unsupported-version for the store of a newer program, which is neither read nor
// written, and of code corrupt for a format.json that is damaged, or missing although there are nodes in our
// own layout; an error for unknown Options.
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

// Exists reports whether the store exists. If not, the first write creates it.
func (s *Store) Exists() bool {
	s.making.Lock()
	defer s.making.Unlock()
	return s.made
}

// Make creates the store unless it exists; at is the timestamp of its first nodes, in ms. It returns an error
// if another process has created it in a different format.
func (s *Store) Make(ctx context.Context, at int64) error {
	if err := s.make(ctx, at); err != nil {
		return fmt.Errorf("create store: %w", err)
	}
	return nil
}

// Dir returns the store's directory.
func (s *Store) Dir() string { return s.dir }

// make creates a store. If two processes try concurrently with different hash functions, the lock decides,
// and the loser gets an error. at is the timestamp of the foundation.
func (s *Store) make(ctx context.Context, at int64) error {
	s.making.Lock()
	defer s.making.Unlock()
	if s.made {
		return nil
	}
	// It contains all output of agents and tools. To share a store, create its directory beforehand.
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
	err = errors.Join(s.rememberHome(), s.acquireNow(ctx))
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
		return fmt.Errorf("store %s was just created by another process in another format; open it again", s.dir)
	}
	return nil
}

// Originals reports whether the store was created by the original.
func (s *Store) Originals() bool { return s.Exists() && s.format.Layout != fan2 }

// Names of files and directories other than nodes.
const (
	formatFile = "format.json"
	lockFile   = "format.lock" // held while format.json is created
	nodesDir   = "nodes"
)

// formatVersion is the version that this program writes.
const formatVersion = 1

// format is the content of format.json: what a program must know to use a store.
type format struct {
	Version int           `json:"version"`
	Hash    cas.Algorithm `json:"hash"`
	Layout  layout        `json:"layout"`
	Flush   string        `json:"flush"`
}

// found is the result of [find].
type found struct {
	format format
	exists bool
}

// find examines dir. An empty or missing directory is a store to be created.
func find(dir string) (found, error) {
	data, err := readSmall(filepath.Join(dir, formatFile))
	switch {
	case err == nil:
		return parseFormat(data)
	case !errors.Is(err, fs.ErrNotExist):
		return found{}, err
	}
	l, err := detectLayout(dir)
	switch {
	case err != nil:
		return found{}, err
	case l == "":
		return newStore(), nil
	case l == fan2:
		if only, err := onlyFoundation(dir); only || err != nil {
			return newStore(), err
		}
		if data, err := readSmall(filepath.Join(dir, formatFile)); err == nil {
			return parseFormat(data) // another process has created the store since
		}
		return found{}, &protocol.Error{
			Code:    protocol.CodeCorrupt,
			Message: fmt.Sprintf("%s is missing, but the store has nodes", formatFile),
		}
	}
	return found{exists: true, format: format{Version: formatVersion, Hash: cas.XXH64, Layout: l, Flush: flushAuto}}, nil
}

// newStore describes a store to be created.
func newStore() found {
	return found{format: format{Version: formatVersion, Hash: cas.XXH3, Layout: fan2, Flush: flushAuto}}
}

// maxSmall bounds small files of a store, in bytes.
const maxSmall = 64 << 10

func readSmall(path string) ([]byte, error) {
	return safeopen.ReadFile(path, maxSmall, safeopen.Follow)
}

// parseFormat parses format.json. It returns a [*protocol.Error] of code unsupported-version for any JSON
// that it doesn't understand, because a newer program's store can rely on properties that we would break or
// miss, and of code corrupt for anything else.
func parseFormat(data []byte) (found, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // added by an editor
	if !json.Valid(data) {
		return found{}, &protocol.Error{Code: protocol.CodeCorrupt, Message: formatFile + " is damaged: not JSON"}
	}
	var v struct{ Version json.RawMessage }
	if json.Unmarshal(data, &v) == nil && string(v.Version) != fmt.Sprint(formatVersion) {
		return found{}, newerFormat("version %.40s", v.Version)
	}
	var f format
	in := json.NewDecoder(bytes.NewReader(data))
	in.DisallowUnknownFields()
	if err := cmp.Or(exactjson.Check(data), in.Decode(&f)); err != nil {
		return found{}, newerFormat("another form: %v", err)
	}
	switch {
	case !f.Hash.Known():
		return found{}, newerFormat("hash function %.40q", f.Hash)
	case !knownLayout(f.Layout):
		return found{}, newerFormat("layout %.40q", f.Layout)
	case !knownFlush(f.Flush):
		return found{}, newerFormat("flush mode %.40q", f.Flush)
	}
	return found{format: f, exists: true}, nil
}

// newerFormat returns the error for the store of a newer program.
func newerFormat(format string, args ...any) error {
	return &protocol.Error{
		Code: protocol.CodeUnsupportedVersion,
		Message: fmt.Sprintf("%s has %s, which this program does not support; a newer uwf created the store", formatFile,
			fmt.Sprintf(format, args...)),
	}
}

// Readable returns an error of [Open] if this program can't use the store at dir. It is for commands that
// don't need nodes but must not change a home whose store belongs to a newer program.
func Readable(dir string) error {
	_, err := find(dir)
	return atStore(dir, err)
}

// atStore adds the store to an error, and keeps its code.
func atStore(dir string, err error) error {
	if coded, ok := errors.AsType[*protocol.Error](err); ok {
		return &protocol.Error{Code: coded.Code, Message: fmt.Sprintf("store %s: %s", dir, coded.Message), Err: err}
	}
	if err != nil {
		return fmt.Errorf("open store %s: %w", dir, err)
	}
	return nil
}

func writeFormat(fsys durable.FS, dir string, f format) error {
	text, err := json.Marshal(f)
	if err != nil {
		return err
	}
	return durable.WriteFile(fsys, filepath.Join(dir, formatFile), append(text, '\n'), 0o644)
}

// The foundation contains the nodes that a store starts with ([cas.Kinds.Foundation]). They become durable
// before format.json, so that no later commit has to flush them: they are the types of nearly all nodes of a
// step. Schemas of later versions are flushed like other nodes.

// layFoundation makes the foundation durable; at is its timestamp.
func (s *Store) layFoundation(ctx context.Context, at int64) error {
	nodes := s.kinds.Foundation()
	for i := range nodes {
		nodes[i].Timestamp = at
	}
	files, err := s.plan(ctx, nodes)
	if err != nil {
		return err
	}
	return durable.WriteAll(s.fs, files, durable.Full)
}

// isFoundation reports whether a node has been durable since the store was created. It isn't used for a store
// of the original, which we didn't create.
func (s *Store) isFoundation(h cas.Hash) bool {
	return s.founded && s.kinds.InFoundation(h)
}

// onlyFoundation reports whether dir contains at most a foundation, because a process was killed while
// creating the store.
func onlyFoundation(dir string) (bool, error) {
	known := map[string]bool{}
	for _, a := range []cas.Algorithm{cas.XXH3, cas.XXH64} {
		for _, n := range cas.NewKinds(a).Foundation() {
			known[string(n.Hash)+nodeExt] = true
		}
	}
	shards, err := os.ReadDir(filepath.Join(dir, nodesDir))
	if err != nil || len(shards) > len(known) {
		return false, err
	}
	for _, shard := range shards {
		entries, err := os.ReadDir(filepath.Join(dir, nodesDir, shard.Name()))
		if err != nil {
			return false, err
		}
		for _, e := range entries {
			if hashOf(e.Name()) != "" && !known[e.Name()] {
				return false, nil
			}
		}
	}
	return true, nil
}
