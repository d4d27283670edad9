// Package fsstore stores nodes in one log per store:
//
//	<dir>/format.json                 version of the format, and the hash function
//	<dir>/log/<n>.seg, <n>.idx        segments: records, appended; and what they contain
//	<dir>/packs/<n>-<k>.pack, .idx    what was needed of the segments up to n, compressed
//
// docs/storage.md describes the format. A commit is one write under log.lock and one flush outside it, which
// covers every record appended before, by any process. Nothing is truncated: a segment whose end is not as its
// index says is sealed, and the next one begun. Of several records of a hash the newest counts; if it is torn or
// damaged, an older copy does. So what a power cut tore is appended again, and hides nothing that was durable.
//
// Any number of processes can read and write concurrently. Readers need no lock: they see what other processes
// append, and list the files again when one was added or removed.
//
// A store of the original has no format.json. Package original reads and writes it in place. In stores of version 1,
// each node is a file. They stay readable, and the first write makes them stores of version 2.
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
	"slices"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/zstd"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/original"
	"github.com/united-workforce/uwf/cas/record"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/exactjson"
	"github.com/united-workforce/uwf/util/safeopen"
)

// Options configures a store. The zero value works.
type Options struct {
	FS    durable.FS    // nil: the real disk
	Home  string        // directory of the heads that can reference nodes put here
	Guest bool          // no node put will be referenced from Home, so the store needn't record it
	Hash  cas.Algorithm // for a store that doesn't exist yet; "": xxh3
}

// Store implements [cas.Store]. It is safe for concurrent use.
type Store struct {
	dir     string
	home    string
	guest   bool
	fs      durable.FS
	hash    cas.Algorithm
	foreign bool // it belongs to the original
	kinds   *cas.Kinds
	decoder func() (*zstd.Decoder, error) // of packs; made when the first one is read
	files   original.Files                // of the original's stores and of our first ones; no layout: none

	holds atomic.Int32 // number of locks held

	entering sync.Mutex
	entered  *durable.Held // lock of an ephemeral home; nil if it isn't one, or before the first put

	making sync.Mutex
	format format
	made   bool // format.json exists, or must not

	viewing sync.Mutex
	view    *view
	open    files

	appending  sync.Mutex
	distrusted sync.Map // names of segments that could not be flushed
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
	if o.Hash != "" && !o.Hash.Known() {
		return nil, fmt.Errorf("unknown hash function %q: want %s or %s", o.Hash, cas.XXH3, cas.XXH64)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	found, err := find(dir)
	if err != nil {
		return nil, atStore(dir, err)
	}
	s := &Store{dir: dir, home: o.Home, guest: o.Guest, fs: o.FS, format: found.format, made: found.exists,
		decoder: sync.OnceValues(newDecoder), open: files{most: min(maxOpen, durable.MaxOpenFiles()/2)}}
	if s.fs == nil {
		s.fs = durable.OS()
	}
	if !found.exists && o.Hash != "" {
		s.format.Hash = o.Hash
	}
	s.hash, s.foreign = s.format.Hash, s.format.isOriginal()
	s.kinds = cas.NewKinds(s.hash)
	s.files = original.Files{Dir: dir, Layout: s.format.Layout, Hash: s.hash, FS: s.fs}
	if _, err := os.Lstat(filepath.Join(dir, nodesDir)); err == nil && s.files.Layout == "" && found.exists {
		s.files.Layout = original.Fan2
	}
	return s, nil
}

// Algorithm implements [cas.Reader].
func (s *Store) Algorithm() cas.Algorithm { return s.hash }

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
	if s.Exists() {
		return nil
	}
	if err := s.make(ctx, at); err != nil {
		return fmt.Errorf("create store: %w", err)
	}
	return nil
}

// Dir returns the store's directory.
func (s *Store) Dir() string { return s.dir }

// make creates a store, or upgrades a store of version 1. If two processes try
// concurrently with different hash functions, the lock decides, and the loser gets an error. at is the
// timestamp of the foundation.
func (s *Store) make(ctx context.Context, at int64) error {
	s.making.Lock()
	defer s.making.Unlock()
	if s.made && (s.format.Version != 1 || s.foreign) {
		return nil
	}
	if err := s.makeDirs(); err != nil {
		return err
	}
	lock, err := durable.Lock(ctx, filepath.Join(s.dir, lockFile))
	if err != nil {
		return err
	}
	err = s.makeLocked(ctx, at)
	s.made = err == nil
	return errors.Join(err, lock.Unlock())
}

// makeDirs creates the directories and the lock of the collector.
func (s *Store) makeDirs() error {
	// It contains all output of agents and tools. To share a store, create its directory first.
	if err := durable.MkdirAll(s.fs, s.dir, 0o700); err != nil {
		return err
	}
	return cmp.Or(s.makeDir(logDir), s.makeLock(collectLock))
}

func (s *Store) makeLocked(ctx context.Context, at int64) error {
	found, err := find(s.dir)
	if err != nil {
		return err
	}
	if found.exists && (found.format.Hash != s.hash || found.isOriginal()) {
		return fmt.Errorf("store %s was just created by another process in another format; open it again", s.dir)
	}
	s.format = format{Version: formatVersion, Hash: s.hash}
	for _, name := range []string{logLock, compactLock} {
		if err := s.makeLock(name); err != nil {
			return err
		}
	}
	if found.exists && found.format.Version == formatVersion {
		return nil
	}
	if !found.exists {
		if err := s.layFoundation(ctx, at); err != nil {
			return err
		}
	}
	return durable.WriteFile(s.fs, filepath.Join(s.dir, formatFile), []byte(formatText(s.hash)), 0o644)
}

// formatText returns the content of format.json that this program writes.
func formatText(hash cas.Algorithm) string {
	return fmt.Sprintf("{\"version\":%d,\"hash\":%q}\n", formatVersion, hash)
}

// Originals reports whether the store was created by the original.
func (s *Store) Originals() bool { return s.foreign }

// Names of files and directories.
const (
	formatFile    = "format.json"
	lockFile      = "format.lock" // held while format.json is created
	logDir        = "log"
	packsDir      = "packs"
	logLock       = "log.lock"     // held while records are appended
	compactLock   = "compact.lock" // held while packs are made, and by other upkeep
	collectLock   = "gc.lock"      // held shared by writers, exclusively while records are removed
	quarantineDir = "quarantine"
	nodesDir      = "nodes" // of version 1, as the following
	homesDir      = "homes"
	sealsDir      = "seals"
)

// formatVersion is the version that this program writes.
const formatVersion = 2

// format is the content of format.json: what a program must know to use a store. Layout and Flush belong to
// version 1, and Layout to the original's stores.
type format struct {
	Version int             `json:"version"`
	Hash    cas.Algorithm   `json:"hash"`
	Layout  original.Layout `json:"layout,omitempty"`
	Flush   string          `json:"flush,omitempty"`
}

func (f format) isOriginal() bool { return f.Layout == original.Nodes || f.Layout == original.Flat }

// found is the result of [find].
type found struct {
	format
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
	l, err := original.Detect(dir)
	switch {
	case err != nil:
		return found{}, err
	case l == original.Nodes || l == original.Flat:
		return found{exists: true, format: format{Version: 1, Hash: cas.XXH64, Layout: l}}, nil
	case l == "":
		if begun, err := hasNodes(dir); !begun || err != nil {
			return found{format: format{Version: formatVersion, Hash: cas.XXH3}}, err
		}
	}
	if data, err := readSmall(filepath.Join(dir, formatFile)); err == nil {
		return parseFormat(data) // another process has created the store since
	}
	return found{}, &protocol.Error{
		Code:    protocol.CodeCorrupt,
		Message: fmt.Sprintf("%s is missing, but the store has nodes", formatFile),
	}
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
	if string(data) == formatText(cas.XXH3) { // usually; the parser takes longer than all else of opening a store
		return found{format: format{Version: formatVersion, Hash: cas.XXH3}, exists: true}, nil
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // added by an editor
	if !json.Valid(data) {
		return found{}, &protocol.Error{Code: protocol.CodeCorrupt, Message: formatFile + " is damaged: not JSON"}
	}
	var v struct{ Version json.RawMessage }
	version := ""
	if json.Unmarshal(data, &v) == nil {
		version = string(v.Version)
	}
	if version != "1" && version != fmt.Sprint(formatVersion) && version != "" {
		return found{}, newerFormat("version %.40s", v.Version)
	}
	var f format
	in := json.NewDecoder(bytes.NewReader(data))
	in.DisallowUnknownFields()
	if err := cmp.Or(exactjson.Check(data), in.Decode(&f)); err != nil {
		return found{}, newerFormat("another form: %v", err)
	}
	first := f.Version == 1
	switch {
	case !first && f.Version != formatVersion:
		return found{}, newerFormat("no version")
	case !f.Hash.Known():
		return found{}, newerFormat("hash function %.40q", f.Hash)
	case first && f.Layout != original.Fan2 || !first && f.Layout != "":
		return found{}, newerFormat("layout %.40q", f.Layout)
	case first != slices.Contains([]string{"auto", "full", "batch", "none"}, f.Flush):
		return found{}, newerFormat("flush mode %.40q", f.Flush)
	}
	return found{format: f, exists: true}, nil
}

// Foreign returns the name of an entry of a directory without a store that isn't part of a store being created
// either; "" if there is none.
func Foreign(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if isGone(err) {
		return "", nil
	}
	for _, e := range entries {
		switch e.Name() {
		case logDir, lockFile, logLock, compactLock, collectLock:
		default:
			return e.Name(), nil
		}
	}
	return "", err
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

// The foundation contains the nodes that a store starts with ([cas.Kinds.Foundation]): the types of nearly all
// nodes of a step. They become durable before format.json.

// layFoundation makes the foundation durable; at is its timestamp. It removes what a killed process left that
// tried the same, perhaps with another hash function.
func (s *Store) layFoundation(ctx context.Context, at int64) error {
	entries, err := os.ReadDir(filepath.Join(s.dir, logDir))
	for _, e := range entries {
		if err == nil {
			err = s.fs.Remove(filepath.Join(s.dir, logDir, e.Name()))
		}
	}
	if err != nil {
		return err
	}
	var records []pending
	err = s.rememberHome(ctx, func(_ context.Context, _ bool, plan func(*view) ([]pending, error)) error {
		records, err = plan(&view{})
		return err
	})
	if err != nil {
		return err
	}
	for _, n := range s.kinds.Foundation() {
		n.Timestamp = at
		records = append(records, pending{kind: record.Node, hash: n.Hash.Number(), body: cas.MarshalFile(n)})
	}
	g, err := s.append(ctx, func(*view) ([]pending, error) { return records, nil })
	if err != nil {
		return err
	}
	return s.flush(g)
}

// hasNodes reports whether dir contains packs, or more than the foundation that a process left that was killed
// while it created the store.
func hasNodes(dir string) (bool, error) {
	packs, err := os.ReadDir(filepath.Join(dir, packsDir))
	if len(packs) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return true, err
	}
	segments, err := os.ReadDir(filepath.Join(dir, logDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	known := map[uint64]bool{}
	for _, a := range []cas.Algorithm{cas.XXH3, cas.XXH64} {
		for _, n := range cas.NewKinds(a).Foundation() {
			known[n.Hash.Number()] = true
		}
	}
	for _, e := range segments {
		name, ok := parseName(e.Name())
		if !ok || name.isPack() {
			continue
		}
		g := &source{name: name, path: filepath.Join(dir, logDir, name.String()), files: &files{}}
		all, _, err := g.headers()
		others := slices.ContainsFunc(all, func(e entry) bool { return groupOf(e.kind) == content && !known[e.hash] })
		if others || err != nil && !isGone(err) {
			return others, err
		}
	}
	return false, nil
}

// shared reports whether members of a group can write to the store's directory.
func (s *Store) shared() bool {
	info, err := os.Stat(s.dir)
	return err == nil && info.Mode()&0o020 != 0
}

// makeDir creates a directory of the store. In a shared store, the group can write to it.
func (s *Store) makeDir(name string) error {
	path := filepath.Join(s.dir, name)
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	if err := durable.MkdirAll(s.fs, path, 0o755); err != nil {
		return err
	}
	return s.share(path, 0o775)
}

// makeLock creates a lock file, which the group of a shared store can lock.
func (s *Store) makeLock(name string) error {
	path := filepath.Join(s.dir, name)
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	f, err := safeopen.OpenFile(path, os.O_RDWR|os.O_CREATE, s.filePerm(), safeopen.NoFollow)
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), s.share(path, s.filePerm()))
}

// share gives the group of a shared store access to a file just created, whatever the umask.
func (s *Store) share(path string, mode os.FileMode) error {
	if !s.shared() {
		return nil
	}
	name, err := filepath.Rel(s.dir, path)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(s.dir) // a link that another member planted is not followed
	if err != nil {
		return err
	}
	return errors.Join(root.Chmod(name, mode), root.Close())
}
