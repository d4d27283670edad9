package fsstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/record"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
)

// compaction replaces segments by a pack of the nodes that are still needed. It uses no lock that others wait
// for until [cas.Compaction].Finish.
type compaction struct {
	*exclusive
	view    *view
	ends    map[*source]int64 // of the segments when the nodes were listed
	old     []*source         // to be replaced: packs, and segments, the oldest first
	covered int               // number of the newest segment in old; -1 for none
	lastPut int64             // into old, in ms
	kept    map[key]bool
	parts   map[cas.Hash]int // of a pack, by type
	dropped []place          // not kept when the pack was written
	packed  int              // number of files of version 1 that had to be packed
	out     *durable.NewFile // the new pack
	index   string           // its index
}

// key identifies the records of which the newest counts.
type key struct {
	group group
	hash  uint64
}

// Compact implements [cas.Compactor]. Errors: [cas.ErrReadOnly] for a store that doesn't exist or is the
// original's.
func (s *Store) Compact(ctx context.Context, before time.Time, dry bool) (cas.Compaction, error) {
	o, err := s.lockUpkeep(ctx)
	if err != nil {
		return nil, err
	}
	c := newCompaction(o)
	if err := c.begin(ctx, before, dry); err != nil {
		return nil, errors.Join(err, c.Release())
	}
	return c, nil
}

func newCompaction(o *exclusive) *compaction {
	return &compaction{exclusive: o, covered: -1, kept: map[key]bool{}, parts: map[cas.Hash]int{}}
}

// everything is a time after all puts.
func everything() time.Time { return time.Unix(1<<40, 0) }

// Release implements [cas.Compaction].
func (c *compaction) Release() error {
	return errors.Join(c.abort(), c.release())
}

func (c *compaction) begin(ctx context.Context, before time.Time, dry bool) error {
	s := c.store
	if !dry {
		if err := c.sealOld(ctx, before); err != nil {
			return err
		}
	}
	v, err := s.refresh(true)
	if err != nil {
		return err
	}
	c.view = v
	for _, g := range slices.Backward(v.sources) {
		at, err := s.putAt(g)
		if err != nil {
			return err
		}
		if g.name.isPack() {
			c.old, c.lastPut = append(c.old, g), max(c.lastPut, at.UnixMilli())
			continue
		}
		if _, sealed, err := g.state(); err != nil || !at.Before(before) || !sealed && g == v.newest() && !dry {
			return err
		}
		// The clock had been set back, so this might be a moment ago.
		if at.UnixMilli() < c.lastPut && before.Before(everything()) {
			if dry {
				return nil
			}
			return s.renew(g)
		}
		c.old, c.covered, c.lastPut = append(c.old, g), g.name.number, max(c.lastPut, at.UnixMilli())
	}
	return nil
}

// renew makes everything in a sealed segment count as put now.
func (s *Store) renew(g *source) error {
	all, err := g.entries(0, 255)
	if err == nil {
		err = s.fs.Touch(g.dataPath())
	}
	if err != nil {
		return err
	}
	info, err := os.Lstat(g.dataPath())
	if err != nil {
		return err
	}
	defer g.close()
	index := encodeIndex(all, info.ModTime().UnixMilli(), info.Size())
	return durable.Replace(s.fs, g.path+indexExt, index, s.filePerm())
}

// sealOld seals the newest segment if its last put is old enough.
func (c *compaction) sealOld(ctx context.Context, before time.Time) error {
	v, err := c.store.refresh(true)
	if err != nil || v.newest() == nil {
		return err
	}
	at, err := c.store.putAt(v.newest())
	if err != nil || !at.Before(before) {
		return err
	}
	return c.store.sealNewest(ctx)
}

// A compaction pays when this many sealed segments are older than restfully long, and none was begun since.
const (
	manySegments = 4
	restfully    = time.Hour
)

// CompactionDue reports whether a compaction would pay and none was begun lately or is running: the threads that
// fill a segment of 16 MB have mostly ended or moved on an hour after it was sealed. With few segments it costs one
// listing of a directory.
func (s *Store) CompactionDue(now time.Time) bool {
	if s.foreign || !s.Exists() {
		return false
	}
	if names, err := listNames(filepath.Join(s.dir, logDir)); err != nil || len(names) <= manySegments {
		return false
	}
	lock := filepath.Join(s.dir, compactLock)
	if info, err := os.Stat(lock); err != nil || now.Sub(info.ModTime()).Abs() < restfully {
		return false // a sandboxed program sees no lock
	}
	if held, err := durable.Locked(lock); held || err != nil {
		return false
	}
	v, err := s.refresh(false)
	if err != nil {
		return false
	}
	old := 0
	for _, g := range v.sources {
		if at, sealed, err := g.sealed(); err == nil && sealed && !g.name.isPack() && now.Sub(time.UnixMilli(at)) >= restfully {
			old++
		}
	}
	return old >= manySegments
}

// BeginCompaction records that a compaction that was due begins, so that it isn't begun again if it fails.
func (s *Store) BeginCompaction() error {
	lock, err := durable.TryLock(filepath.Join(s.dir, compactLock))
	if err != nil {
		return err
	}
	return errors.Join(s.fs.Touch(filepath.Join(s.dir, compactLock)), lock.Unlock())
}

// putAt returns the time of the last put into a source; of a pack, into the segments that it replaces.
func (s *Store) putAt(g *source) (time.Time, error) {
	at, sealed, err := g.sealed()
	if sealed || err != nil || g.name.isPack() {
		return time.UnixMilli(at), err
	}
	return g.lastPut()
}

// Nodes implements [cas.Compaction].
func (c *compaction) Nodes(ctx context.Context) iter.Seq2[cas.Item, error] {
	return func(yield func(cas.Item, error) bool) {
		seen := map[uint64]bool{}
		c.ends = map[*source]int64{}
		for _, g := range c.view.sources {
			items, err := c.items(ctx, g, seen)
			if err != nil && !yield(cas.Item{}, err) {
				return
			}
			for _, i := range items {
				if !yield(i, nil) {
					return
				}
			}
		}
	}
}

// items returns the nodes of a source that no newer source contains.
func (c *compaction) items(ctx context.Context, g *source, seen map[uint64]bool) (items []cas.Item, err error) {
	at := everything()
	if slices.Contains(c.old, g) {
		if at, err = c.store.putAt(g); err != nil {
			return nil, err
		}
	}
	all, err := g.entries(0, 255)
	for _, e := range slices.Backward(all) {
		c.ends[g] = max(c.ends[g], e.end())
		if _, newer := seen[e.hash]; newer || groupOf(e.kind) != content {
			continue
		}
		if seen[e.hash] = !e.hides(); !e.hides() {
			i := cas.Item{Hash: protocol.HashOf(e.hash), Size: int64(e.length), At: at, Tombstone: e.kind == record.Tombstone}
			if g.first != nil {
				i.Tombstone = e.length <= cas.MaxTombstone
				if info, err := os.Lstat(g.fileOf(e)); err == nil {
					i.At = info.ModTime()
				}
			}
			items = append(items, i)
		}
	}
	return items, cmp.Or(err, ctx.Err())
}

// New implements [cas.Compaction].
func (c *compaction) New(ctx context.Context) iter.Seq2[cas.Hash, error] {
	return func(yield func(cas.Hash, error) bool) {
		v, err := c.store.refresh(true)
		if err != nil {
			yield("", err)
			return
		}
		for _, g := range v.sources {
			end, listed := c.ends[g]
			if listed && (g.name.isPack() || slices.Contains(c.old, g)) {
				continue
			}
			if info, err := os.Lstat(g.dataPath()); listed && err == nil && info.Size() <= end {
				continue
			}
			all, err := g.entries(0, 255)
			if err = cmp.Or(err, ctx.Err()); err != nil && !yield("", err) {
				return
			}
			for _, e := range all {
				if e.at >= c.ends[g] && groupOf(e.kind) == content && !yield(protocol.HashOf(e.hash), nil) {
					return
				}
			}
		}
	}
}

// Write implements [cas.Compaction]. It writes what is kept to a new pack, which isn't used yet. A pack of which
// everything is kept stays as it is, unless there are many.
func (c *compaction) Write(ctx context.Context, keep func(cas.Hash) bool) error {
	s := c.store
	if err := c.spare(ctx, keep); err != nil || len(c.old) == 0 {
		return err
	}
	if err := s.makeDir(packsDir); err != nil {
		return err
	}
	path := filepath.Join(s.dir, packsDir, "new"+packExt)
	var err error
	if c.out, err = durable.Create(s.fs, path, s.filePerm()); err != nil {
		c.out = nil
		return err
	}
	w, err := newPackWriter(c.out)
	if err != nil {
		return err
	}
	for _, g := range c.old {
		if err := c.pack(ctx, w, g, keep); err != nil {
			return errors.Join(err, c.abort())
		}
	}
	// Finish looks them up while writers wait, in an order that is fast.
	slices.SortFunc(c.dropped, func(a, b place) int { return cmp.Compare(a.entry.hash, b.entry.hash) })
	index, err := w.finish(c.lastPut)
	if err != nil {
		return errors.Join(err, c.abort())
	}
	if len(w.entries) == 0 && len(c.old) == 1 && c.old[0].first != nil {
		return c.abort()
	}
	if err := c.out.Sync(); err != nil {
		return errors.Join(err, c.abort())
	}
	c.index, err = s.fs.WriteTemp(path, index, s.filePerm(), durable.FullFlush)
	return err
}

// abort removes the new files, unless they were published.
func (c *compaction) abort() (err error) {
	if c.out != nil {
		err = c.out.Abort()
	}
	if c.index != "" {
		err = errors.Join(err, c.store.fs.Remove(c.index))
	}
	c.out, c.index = nil, ""
	return err
}

// Packs that are small, or more than this, are made into one.
const (
	smallPack = 4 << 20
	manyPacks = 16
)

// spare removes the packs that stay from the old sources: everything in them is kept and counts. A small pack stays
// only if there is nothing to join it with.
func (c *compaction) spare(ctx context.Context, keep func(cas.Hash) bool) error {
	stay, packs := map[*source]bool{}, 0
	for _, g := range c.old {
		if !g.name.isPack() || g.first != nil {
			continue
		}
		packs++
		info, err := os.Stat(g.dataPath())
		if err == nil && (info.Size() >= smallPack || len(c.old) == 1) {
			stay[g], err = c.isClean(ctx, g, keep)
		}
		if err != nil {
			return err
		}
	}
	if packs <= manyPacks {
		c.old = slices.DeleteFunc(c.old, func(g *source) bool { return stay[g] })
	}
	return nil
}

// isClean reports whether everything in a pack is kept and counts, and its tables are intact: each process would
// have to restore them from the whole pack.
func (c *compaction) isClean(ctx context.Context, g *source, keep func(cas.Hash) bool) (bool, error) {
	all, err := g.entries(0, 255)
	if intact, failed := g.isIntact(); err != nil || failed != nil || !intact {
		return false, errors.Join(err, failed)
	}
	for _, e := range all {
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return false, err
		}
		at, _, err := c.view.newestOf(e.hash, groupOf(e.kind))
		if err != nil || at != (place{g, e}) || groupOf(e.kind) != homes && !keep(protocol.HashOf(e.hash)) {
			return false, err
		}
	}
	return true, err
}

// pack copies what is kept of a source, in the order in which it was put.
func (c *compaction) pack(ctx context.Context, w *packWriter, g *source, keep func(cas.Hash) bool) error {
	all, err := g.entries(0, 255)
	if err != nil {
		return err
	}
	for _, e := range all {
		body, err := c.wanted(place{g, e}, keep)
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return err
		}
		if body == nil {
			c.dropped = append(c.dropped, place{g, e})
			continue
		}
		if g.first != nil {
			c.packed++
		}
		if e.kind == record.Node && cas.IsTombstone(body) { // in a file
			e.kind = record.Tombstone
		}
		if err := w.add(c.part(ctx, body), e.kind, e.hash, body); err != nil {
			return err
		}
	}
	return nil
}

// part returns 1 for the nodes that threads consist of: lists and walks along threads read only these.
func (c *compaction) part(ctx context.Context, body []byte) int {
	typ := cas.TypeOf(body)
	part, known := c.parts[typ]
	if !known && typ != "" {
		kind, _, err := c.store.kinds.Of(ctx, c.store, typ)
		if err == nil && (kind == protocol.KindStep || kind == protocol.KindStart) {
			part = 1
		}
		c.parts[typ] = part
	}
	return part
}

// wanted returns the body of a record if it counts and is kept, and wasn't copied yet; otherwise nil.
func (c *compaction) wanted(p place, keep func(cas.Hash) bool) (body []byte, err error) {
	h, k := protocol.HashOf(p.entry.hash), key{groupOf(p.entry.kind), p.entry.hash}
	if k.group == 0 || c.kept[k] || k.group != homes && !keep(h) {
		return nil, nil
	}
	at, _, err := c.view.newestOf(k.hash, k.group)
	if k.group == content && err == nil && !at.entry.hides() {
		// An older copy counts if the newest record is damaged.
		_, at, err = c.store.resolve(c.view, h)
		if _, redacted := cas.AsRedacted(err); redacted || errors.As(err, new(*cas.CorruptError)) ||
			errors.Is(err, cas.ErrNotFound) {
			err = nil
		}
	}
	if err != nil || at != p {
		return nil, err
	}
	body, err = p.source.record(p.entry)
	if errors.Is(err, errPack) {
		return nil, &cas.CorruptError{Hash: h, Path: p.source.at(p.entry), Reason: err.Error()}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.source.at(p.entry), err)
	}
	switch {
	case p.entry.hides() && c.store.files.Layout == "", // it hides nothing any longer
		p.entry.kind == record.Home && isHome(k.hash, body) && parseHome(string(body)) == "",
		p.entry.kind == record.Home && endsWithZeros(body):
		return nil, nil
	case p.entry.hides():
		body = []byte{}
	}
	c.kept[k] = true
	return body, nil
}

// Finish implements [cas.Compaction]. It makes the new pack the one that counts, and then removes what the pack
// replaces. What keep returns true for now, but not when the pack was written, is appended to the log. While writers
// wait, it flushes nothing: on a busy disk, a flush can take seconds.
func (c *compaction) Finish(ctx context.Context, recheck func() error, keep func(cas.Hash) bool) error {
	converted, err := c.finish(ctx, recheck, keep)
	if err != nil {
		return err
	}
	if c.index != "" { // it has its name now
		c.index = ""
		if err := c.store.fs.SyncDir(filepath.Join(c.store.dir, packsDir)); err != nil {
			return err
		}
	}
	if converted {
		if err := c.store.fs.SyncDir(c.store.dir); err != nil {
			return err
		}
	}
	replaced := map[fileName]bool{}
	for _, g := range c.old {
		replaced[g.name] = true
		g.close()
	}
	err = c.removeFiles(func(name string) bool {
		n, ok := parseName(name)
		return ok && replaced[n]
	})
	if err == nil {
		err = c.tidy()
	}
	if converted && err == nil {
		err = errors.Join(os.RemoveAll(filepath.Join(c.store.dir, convertedDir)),
			os.RemoveAll(filepath.Join(c.store.dir, checkedFile)))
	}
	return err
}

// finish makes the new pack the one that counts. From then on, no process reads the files that it replaces.
func (c *compaction) finish(ctx context.Context, recheck func() error,
	keep func(cas.Hash) bool) (converted bool, err error) {
	const rounds = 5
	for round := 1; ; round++ {
		if err := c.stopWriters(ctx); err != nil {
			return false, err
		}
		if err := recheck(); err != nil {
			return false, err
		}
		needed, err := c.needed(keep)
		if err != nil {
			return false, err
		}
		if len(needed) == 0 {
			break
		}
		// They must be durable before the pack counts. Only the last round flushes while writers wait.
		if round < rounds {
			if err := c.admitWriters(); err != nil {
				return false, err
			}
		}
		err = c.store.add(ctx, true, func(*view) ([]pending, error) { return needed, nil })
		if err != nil {
			return false, err
		}
		if round == rounds {
			break
		}
	}
	if c.out != nil {
		if err := c.publish(ctx); err != nil {
			return false, err
		}
	}
	if converted, err = c.hideFiles(); err != nil {
		return false, err
	}
	return converted, c.admitWriters()
}

// needed returns what became needed after the pack was written.
func (c *compaction) needed(keep func(cas.Hash) bool) (records []pending, err error) {
	for _, p := range c.dropped {
		body, err := c.wanted(p, keep)
		if err != nil {
			return nil, err
		}
		if body != nil {
			records = append(records, pending{kind: p.entry.kind, hash: p.entry.hash, body: body})
		}
	}
	return records, nil
}

// publish renames the pack and its index. The name of the pack makes the segments obsolete that it replaces.
func (c *compaction) publish(ctx context.Context) (err error) {
	s := c.store
	lock, err := durable.Lock(ctx, filepath.Join(s.dir, logLock))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	v, err := s.refresh(true)
	if err != nil {
		return err
	}
	name := fileName{number: max(c.covered, 0), part: 1}
	for _, g := range v.sources {
		if g.name.isPack() && name.number <= g.name.number {
			name = fileName{g.name.number, max(name.part, g.name.part+1)}
		}
	}
	path := s.pathOf(name)
	if err := s.fs.Rename(c.index, path+indexExt); err != nil {
		return err
	}
	if err := s.fs.Rename(c.out.Temp(), path+packExt); err != nil {
		return err
	}
	c.out = nil
	if v, err = s.refresh(true); err != nil || v.newest() != nil {
		return err
	}
	return s.beginSegment(v) // while there is one, readers needn't list the files
}
