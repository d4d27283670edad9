package fsstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/record"
	"github.com/united-workforce/uwf/util/durable"
)

// Put implements [cas.Store]. It flushes nothing, so a power cut can remove or tear the nodes. Nothing durable
// references them, and the next put appends them again. It also returns errors of the file system.
func (s *Store) Put(ctx context.Context, nodes ...cas.Node) error { return s.write(ctx, nodes, false) }

// Commit implements [cas.Store].
func (s *Store) Commit(ctx context.Context, nodes ...cas.Node) error {
	return s.write(ctx, nodes, true)
}

func (s *Store) write(ctx context.Context, nodes []cas.Node, flush bool) error {
	if len(nodes) == 0 {
		return ctx.Err()
	}
	if s.foreign {
		return s.files.Put(ctx, nodes...)
	}
	distinct, err := s.hash.Distinct(ctx, nodes)
	if err != nil {
		return err
	}
	if !s.Exists() {
		// But not for nodes that it would reject.
		if err := s.make(ctx, nodes[0].Timestamp); err != nil {
			return fmt.Errorf("create store: %w", err)
		}
	}
	return s.addLocked(ctx, "nodes", flush, s.missing(distinct))
}

// addLocked is add while no node is removed. what is used in errors.
func (s *Store) addLocked(ctx context.Context, what string, flush bool, plan func(*view) ([]pending, error)) error {
	release, err := s.LockShared(ctx)
	if err == nil {
		err = errors.Join(s.add(ctx, flush, plan), release())
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", what, err)
	}
	return nil
}

// pending is a record to be appended.
type pending struct {
	kind    record.Kind
	hash    uint64
	body    []byte
	renewed bool // it exists, but only where a collector may remove it
}

// missing returns a plan that compares nodes with existing ones. Those that aren't in the newest segment are appended:
// only there are they certainly young, and flushed by the next commit. Those aren't compared again, unless a collector
// has sealed the segment since: it knows only when they were put before.
func (s *Store) missing(nodes []cas.Node) func(*view) ([]pending, error) {
	var newest *source
	var inNewest []cas.Node
	return func(v *view) (records []pending, err error) {
		if len(inNewest) > 0 && newest.isSealed() {
			nodes, inNewest = append(nodes, inNewest...), nil
		}
		newest = v.newest()
		var rest []cas.Node
		for _, n := range nodes {
			old, there, err := s.exists(v, n)
			if err != nil {
				return nil, err
			}
			if there == young && newest != nil {
				inNewest = append(inNewest, n)
			}
			if there == young || there != absent && s.kinds.InFoundation(n.Hash) {
				continue
			}
			body := n
			if there == present {
				body = old // with its timestamp
			}
			rest = append(rest, n)
			records = append(records, pending{record.Node, n.Hash.Number(), cas.MarshalFile(body), there == present})
		}
		nodes = rest
		return records, nil
	}
}

// presence is the state of a node to be put.
type presence int

const (
	absent  presence = iota
	present          // but a collector may remove it
	young            // or redacted here
)

// exists compares a node with what is stored. A damaged copy counts as absent: appending the node again restores it. But
// a damaged tombstone doesn't, unless it is torn, because its content must not come back.
func (s *Store) exists(v *view, n cas.Node) (cas.Node, presence, error) {
	old, at, err := s.resolve(v, n.Hash)
	if redacted, ok := cas.AsRedacted(err); ok {
		if redacted.Tombstone.Foreign {
			return old, absent, nil
		}
		return old, young, nil // a local redaction is intentional and must not be undone by a put
	}
	corrupt, isCorrupt := errors.AsType[*cas.CorruptError](err)
	switch {
	case errors.Is(err, cas.ErrNotFound), isCorrupt && (corrupt.Cut || at.entry.kind != record.Tombstone):
		return old, absent, nil
	case err != nil:
		return old, absent, err
	case !old.Equal(n):
		return old, absent, &cas.CollisionError{Hash: n.Hash}
	}
	if g := v.newest(); g != nil && at.source == g && !s.isDistrusted(g) {
		if _, sealed, err := g.sealed(); !sealed {
			return old, young, err
		}
	}
	return old, present, nil
}

// add appends the records that plan returns, and makes everything appended before durable if flush is set. It
// calls plan again under the lock, with the view to append to. If there is nothing to append, it needs no write
// access.
func (s *Store) add(ctx context.Context, flush bool, plan func(*view) ([]pending, error)) error {
	var todo []pending
	var before *source
	err := s.try(ctx, func(v *view) (err error) {
		todo, err = plan(v)
		before = v.newest()
		return err
	})
	if err != nil {
		return err
	}
	after := before
	sealed := false
	if len(todo) == 0 && before != nil {
		// A collector treats the time as the time of the last put, unless it has sealed the segment.
		if err = s.fs.Touch(before.dataPath()); isPermission(err) || isGone(err) {
			err = nil
		}
		sealed = before.isSealed()
	}
	if err != nil {
		return err
	}
	if len(todo) > 0 || sealed {
		if err = s.make(ctx, 0); err == nil {
			after, err = s.append(ctx, plan)
		}
		if isPermission(err) && !slices.ContainsFunc(todo, func(r pending) bool { return !r.renewed }) {
			return nil // a user who can't write here can't rely on the nodes either
		}
	}
	if err != nil || !flush {
		return err
	}
	return s.flush(before, after)
}

// isSealed reports whether a segment is sealed by now, or gone.
func (g *source) isSealed() bool {
	_, err := g.files.openIndex(g.path + indexExt)
	if err == nil {
		return true
	}
	_, err = os.Lstat(g.dataPath())
	return isGone(err)
}

func isPermission(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}

// flush makes segments durable. A file system reports only once what it has lost, so after an error the nodes
// in the segment count as absent.
func (s *Store) flush(segments ...*source) error {
	var done *source
	for _, g := range segments {
		if g == nil || g == done {
			continue
		}
		done = g
		err := s.fs.SyncFile(g.dataPath())
		if err == nil || isGone(err) { // only a collector removes segments, and what it keeps is durable
			continue
		}
		s.distrusted.Store(g.name, true)
		return err
	}
	return nil
}

func (s *Store) isDistrusted(g *source) bool {
	_, ok := s.distrusted.Load(g.name)
	return ok
}

// append appends the records that plan returns, and returns the segment that contains the last of them. Earlier
// segments are sealed, and thereby durable. It unlocks the log after each segment.
func (s *Store) append(ctx context.Context, plan func(*view) ([]pending, error)) (*source, error) {
	s.appending.Lock()
	defer s.appending.Unlock()
	for {
		if v, err := s.refresh(false); err == nil && v.newest() != nil && v.newest().isFull() {
			if err := s.sync(v.newest()); err != nil {
				return nil, err
			}
		}
		g, rest, err := s.appendSome(ctx, plan)
		if err != nil || len(rest) == 0 {
			return g, err
		}
		plan = func(*view) ([]pending, error) { return rest, nil }
	}
}

// appendSome appends records until a segment is full, and returns the others.
func (s *Store) appendSome(ctx context.Context,
	plan func(*view) ([]pending, error)) (g *source, rest []pending, err error) {
	lock, err := durable.Lock(ctx, filepath.Join(s.dir, logLock))
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	v, err := s.refresh(true)
	if err != nil {
		return nil, nil, err
	}
	todo, err := plan(v)
	if err != nil || len(todo) == 0 {
		return v.newest(), nil, err // another process has appended everything
	}
	if g, err = s.writable(v); err != nil {
		return nil, nil, err
	}
	size, records := g.extent()
	room := 0
	for _, p := range todo {
		room += record.HeaderSize + len(p.body)
	}
	data, index := make([]byte, 0, min(room, segmentSize)), make([]byte, 0, record.HeaderSize*len(todo))
	for ; len(todo) > 0 && size < segmentSize && records < segmentRecords; todo = todo[1:] {
		head := record.Header{Kind: todo[0].kind, Length: len(todo[0].body), Hash: todo[0].hash}
		index = head.Append(index)
		data = append(head.Append(data), todo[0].body...)
		size, records = size+head.Size(), records+1
	}
	return g, todo, s.appendTo(g, data, index)
}

// appendTo appends records to a segment, and then their headers to its index.
func (s *Store) appendTo(g *source, data, index []byte) error {
	if err := s.fs.Append(g.dataPath(), data, s.filePerm(), durable.NoFlush); err != nil {
		return err
	}
	if err := s.fs.Append(g.path+indexExt, index, s.filePerm(), durable.NoFlush); err != nil {
		return err
	}
	if size, _ := g.extent(); size > 0 {
		return nil
	}
	return s.share(g.path+indexExt, s.filePerm())
}

// filePerm returns the mode of the log's files.
func (s *Store) filePerm() fs.FileMode {
	if s.shared() {
		return 0o664
	}
	return 0o644
}

// writable returns the segment to append to, under the lock. It seals a segment that is full or whose end isn't
// as its index says, and begins the next one.
func (s *Store) writable(v *view) (_ *source, err error) {
	for range tries {
		g := v.newest()
		if g != nil && !s.isDistrusted(g) {
			switch ok, sealed, err := g.state(); {
			case err != nil:
				return nil, err
			case ok && g.isEmpty():
				// Its name becomes durable while it is empty, even if its creator was killed.
				return g, s.fs.SyncDir(filepath.Join(s.dir, logDir))
			case ok:
				return g, nil
			case !sealed:
				if err := s.seal(g); err != nil {
					return nil, err
				}
			}
		}
		if err := s.beginSegment(v); err != nil {
			return nil, err
		}
		if v, err = s.refresh(true); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("store %s: cannot begin a segment", s.dir)
}

// beginSegment creates the next segment. The log must be locked.
func (s *Store) beginSegment(v *view) error {
	if err := s.makeDir(logDir); err != nil { // a copy of a store can lack empty directories
		return err
	}
	if err := s.fs.Append(v.after, nil, s.filePerm(), durable.NoFlush); err != nil {
		return err
	}
	return s.share(v.after, s.filePerm())
}

// next returns the number of the next segment.
func (v *view) next() int {
	next := 1
	for _, g := range v.sources {
		next = max(next, g.name.number+1)
	}
	return next
}

// extent returns the size of a segment that isn't sealed, and the number of its records, when it was last read.
func (g *source) extent() (size int64, records int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.info != nil {
		size = g.info.Size()
	}
	if g.recent != nil {
		records = g.recent.count()
	}
	return size, records
}

func (g *source) isEmpty() bool {
	size, _ := g.extent()
	return size == 0
}

func (g *source) isFull() bool {
	size, records := g.extent()
	return size >= segmentSize || records >= segmentRecords
}

// state reports whether records can be appended to a segment, and whether it is sealed.
func (g *source) state() (ok, sealed bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.load(); err != nil {
		return false, false, err
	}
	sealed = g.hasIndex()
	ok = !sealed && g.whole && g.recent.end < segmentSize && g.recent.count() < segmentRecords
	return ok, sealed, nil
}

// sync makes a segment durable, unless that was done and nothing was appended since. It is called without the lock
// before the segment is sealed, so that others needn't wait for the flush.
func (s *Store) sync(g *source) error {
	info, err := os.Lstat(g.dataPath())
	if err == nil && g.flushed.Load() < info.Size() {
		if err = s.fs.SyncFile(g.dataPath()); err == nil {
			g.flushed.Store(info.Size())
		}
	}
	if isGone(err) {
		return nil
	}
	return err
}

// seal makes a segment durable and writes its sorted index: from its current index, and by scanning what that doesn't
// cover. The log must be locked.
func (s *Store) seal(g *source) error {
	if err := s.sync(g); err != nil {
		return err
	}
	all, err := g.entries(0, 255)
	if err == nil {
		all, err = g.written(all)
	}
	if err != nil {
		return err
	}
	size, _ := g.extent()
	for range tries {
		at, err := g.lastPut()
		if err != nil {
			return err
		}
		index := encodeIndex(all, at.UnixMilli(), size)
		// A lost index is made again from the records, so it isn't flushed while others wait.
		if err := durable.Replace(s.fs, g.path+indexExt, index, s.filePerm()); err != nil {
			return err
		}
		// A put that changes only the time either sees the index, or is seen here.
		if again, err := g.lastPut(); err != nil || again.Equal(at) {
			return err
		}
	}
	return nil
}
