package storeremote

import (
	"bytes"
	"cmp"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/remote/snapshots"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/gitobject"
	"github.com/united-workforce/uwf/util/safeopen"
)

// Missing implements [remote.Remote].
func (r *Remote) Missing(ctx context.Context, hashes []cas.Hash) ([]cas.Hash, error) {
	if err := cmp.Or(ctx.Err(), remote.CheckHashes(hashes)); err != nil {
		return nil, err
	}
	var missing []cas.Hash
	for _, h := range hashes {
		there, err := r.find(ctx, h)
		if err != nil && there != damaged {
			return nil, err
		}
		if there == nothing || there == damaged {
			missing = append(missing, h)
		}
	}
	return missing, nil
}

// Walk implements [remote.Remote].
func (r *Remote) Walk(ctx context.Context, roots, have []cas.Hash) iter.Seq2[cas.Hash, error] {
	return remote.Walk(ctx, r.store, roots, have)
}

// Get implements [remote.Remote].
func (r *Remote) Get(ctx context.Context, hashes []cas.Hash) iter.Seq2[remote.Record, error] {
	return func(yield func(remote.Record, error) bool) {
		if err := cmp.Or(ctx.Err(), remote.CheckHashes(hashes)); err != nil {
			yield(remote.Record{}, err)
			return
		}
		for _, h := range hashes {
			record, err := r.get(ctx, h)
			if !yield(record, err) || err != nil {
				return
			}
		}
	}
}

func (r *Remote) get(ctx context.Context, h cas.Hash) (remote.Record, error) {
	n, err := r.store.Get(ctx, h)
	if redacted, ok := cas.AsRedacted(err); ok {
		t := redacted.Tombstone
		t.Foreign = false // the receiver sets it
		file, err := cas.MarshalTombstone(t)
		return remote.Record{Hash: h, File: file}, err
	}
	if errors.Is(err, cas.ErrNotFound) {
		err = &remote.MissingError{Hash: string(h)}
	}
	return remote.Record{Hash: h, File: cas.MarshalFile(n)}, err
}

// Put implements [remote.Remote].
func (r *Remote) Put(ctx context.Context, records []remote.Record) (different []cas.Hash, err error) {
	if err := cmp.Or(ctx.Err(), remote.CheckBatch(records)); err != nil || len(records) == 0 {
		return nil, err
	}
	batch, err := r.checked(records)
	if err != nil {
		return nil, err
	}
	if err := r.store.Make(ctx, r.nowMs()); err != nil {
		return nil, err
	}
	// A put of the content replaces a foreign tombstone. So putting tombstones requires an exclusive lock:
	// otherwise a process could find no node and later overwrite a new one.
	lock := durable.LockShared
	if len(batch.tombstones) > 0 {
		lock = durable.LockExclusive
	}
	held, err := r.lock(ctx, "remote-put", lock)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, held.Unlock()) }()
	return r.put(ctx, batch)
}

// batch holds the decoded records of a Put.
type batch struct {
	nodes      []cas.Node
	tombstones []cas.Tombstone
}

// checked decodes records and verifies their hashes.
func (r *Remote) checked(records []remote.Record) (b batch, err error) {
	for _, record := range records {
		n, t, err := record.Check(r.store.Algorithm())
		if err == nil && t == nil {
			err = cas.CheckTitle(r.store.Kinds(), n, true)
		}
		switch {
		case err != nil:
			return b, err
		case t != nil:
			b.tombstones = append(b.tombstones, *t)
		default:
			b.nodes = append(b.nodes, n)
		}
	}
	return b, nil
}

func (r *Remote) put(ctx context.Context, b batch) (different []cas.Hash, err error) {
	whole := make([]cas.Node, 0, len(b.nodes))
	for _, n := range b.nodes {
		there, err := r.find(ctx, n.Hash)
		if err != nil && there != damaged {
			return nil, err
		}
		if there == redacted {
			different = append(different, n.Hash)
			continue
		}
		whole = append(whole, n)
	}
	if err := r.store.Commit(ctx, whole...); err != nil {
		return nil, err
	}
	missing := b.tombstones[:0]
	for _, t := range b.tombstones {
		there, err := r.find(ctx, t.Hash)
		if err != nil {
			return nil, err
		}
		switch there {
		case present:
			different = append(different, t.Hash)
		case nothing:
			missing = append(missing, t)
		}
	}
	_, err = r.store.Bury(ctx, missing...)
	return different, err
}

// found is the state of a hash in the store.
type found byte

const (
	nothing found = iota
	present
	redacted
	damaged // returned with an error
)

func (r *Remote) find(ctx context.Context, h cas.Hash) (found, error) {
	_, err := r.store.Get(ctx, h)
	var corrupt *cas.CorruptError
	switch _, gone := cas.AsRedacted(err); {
	case gone:
		return redacted, nil
	case errors.Is(err, cas.ErrNotFound):
		return nothing, nil
	case errors.As(err, &corrupt) && corrupt.Cut:
		return nothing, nil // a put replaces it
	case errors.As(err, &corrupt):
		return damaged, err
	}
	return present, err
}

// object returns the path of a git object's file, which has git's format.
func (r *Remote) object(id protocol.Tree) string {
	function := id.Function()
	digits := string(id[len(function)+1:])
	return filepath.Join(r.dir, "objects", function, digits[:2], digits[2:])
}

// MissingObjects implements [remote.Remote].
func (r *Remote) MissingObjects(ctx context.Context, ids []protocol.Tree) ([]protocol.Tree, error) {
	if err := cmp.Or(ctx.Err(), remote.CheckHashes(ids)); err != nil {
		return nil, err
	}
	gone, err := r.redacted()
	if err != nil {
		return nil, err
	}
	var missing []protocol.Tree
	for _, id := range ids {
		_, err := os.Lstat(r.object(id))
		if errors.Is(err, fs.ErrNotExist) {
			if !gone[id] {
				missing = append(missing, id)
			}
		} else if err != nil {
			return nil, err
		}
	}
	return missing, ctx.Err()
}

// GetObjects implements [remote.Remote].
func (r *Remote) GetObjects(ctx context.Context, ids []protocol.Tree) iter.Seq2[remote.Object, error] {
	return func(yield func(remote.Object, error) bool) {
		if err := cmp.Or(ctx.Err(), remote.CheckHashes(ids)); err != nil {
			yield(remote.Object{}, err)
			return
		}
		for _, id := range ids {
			o, err := r.readObject(id)
			err = cmp.Or(ctx.Err(), err)
			if !yield(o, err) || err != nil {
				return
			}
		}
	}
}

func (r *Remote) readObject(id protocol.Tree) (o remote.Object, err error) {
	f, err := safeopen.Open(r.object(id), safeopen.NoFollow)
	if errors.Is(err, fs.ErrNotExist) {
		return o, &remote.MissingError{Hash: string(id)}
	}
	if err != nil {
		return o, err
	}
	defer func() { _ = f.Close() }() // it was only opened for reading
	damaged := func(why any) error {
		return &protocol.Error{Code: protocol.CodeCorrupt, Message: fmt.Sprintf("object %s is damaged: %v (%s)", id, why,
			r.object(id))}
	}
	z, err := zlib.NewReader(f)
	if err != nil {
		return o, damaged(err)
	}
	text, err := io.ReadAll(io.LimitReader(z, gitobject.MaxSize+64))
	if err != nil {
		return o, damaged(err)
	}
	head, content, _ := bytes.Cut(text, []byte{0})
	o = remote.Object{ID: id, Kind: gitobject.File, Content: content}
	if bytes.HasPrefix(head, []byte("tree ")) {
		o.Kind = gitobject.Directory
	}
	if err := o.Check(); err != nil {
		return o, damaged(err)
	}
	return o, nil
}

// PutObjects implements [remote.Remote].
func (r *Remote) PutObjects(ctx context.Context, objects []remote.Object) (err error) {
	if err := r.store.Make(ctx, r.nowMs()); err != nil {
		return err
	}
	held, err := r.lock(ctx, "remote-put", durable.LockShared) // a redaction must not remove what is being stored
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, held.Unlock()) }()
	gone, err := r.redacted()
	if err != nil {
		return err
	}
	var levels [][]durable.File // objects by level; each refers only to lower levels
	depth := depths(objects)
	for _, o := range objects {
		if err := cmp.Or(ctx.Err(), o.Check()); err != nil {
			return err
		}
		if gone[o.ID] {
			continue
		}
		var b bytes.Buffer
		z := zlib.NewWriter(&b)
		_, err := fmt.Fprintf(z, "%s %d\x00", gitobject.Word(o.Kind), len(o.Content))
		if err == nil {
			_, err = z.Write(o.Content)
		}
		if err = cmp.Or(err, z.Close()); err != nil {
			return err
		}
		_, err = r.readObject(o.ID) // damaged objects are written again
		for len(levels) <= depth[o.ID] {
			levels = append(levels, nil)
		}
		levels[depth[o.ID]] = append(levels[depth[o.ID]], durable.File{Path: r.object(o.ID), Data: b.Bytes(), Perm: 0o444,
			Present: err == nil})
	}
	if err := durable.MkdirAll(r.disk, filepath.Join(r.dir, "objects"), 0o700); err != nil {
		return err
	}
	for _, files := range levels { // write lower levels first, because an existing directory counts as complete, even after a power failure
		if err := durable.WriteAll(r.disk, files); err != nil {
			return err
		}
	}
	return nil
}

// depths returns for each object the maximum number of directory levels of the batch below it. Each object
// must come after those that it refers to.
func depths(objects []remote.Object) map[protocol.Tree]int {
	depth := map[protocol.Tree]int{}
	for _, o := range objects {
		if depth[o.ID] = 0; o.Kind != gitobject.Directory {
			continue
		}
		entries, _ := gitobject.Entries(o.ID, o.Content) // an unreadable directory refers to nothing
		for _, e := range entries {
			if below, here := depth[e.ID]; here {
				depth[o.ID] = max(depth[o.ID], below+1)
			}
		}
	}
	return depth
}

// Redactions implements [remote.Remote]. The state of the list is its length and a checksum.
func (r *Remote) Redactions(ctx context.Context, known string) (list []remote.Redaction, state string, err error) {
	sum, count := crc32.NewIEEE(), 0
	var hashes []cas.Hash
	for h, err := range r.store.Tombstones(ctx) {
		if err != nil {
			return nil, "", err
		}
		_, _ = sum.Write([]byte(h))
		hashes, count = append(hashes, h), count+1
	}
	if state = fmt.Sprintf("%d-%08x", count, sum.Sum32()); state == known {
		return nil, state, ctx.Err()
	}
	for _, h := range hashes {
		_, err := r.store.Get(ctx, h)
		if is, ok := cas.AsRedacted(err); ok && !is.Tombstone.Foreign {
			list = append(list, remote.Redaction{Hash: h, Reason: is.Tombstone.Reason})
		}
	}
	return list, state, ctx.Err()
}

// redactedFile lists the file contents that were redacted here, one per line. The remote doesn't report them
// as missing, and rejects them.
const redactedFile = "redacted"

// maxList is the maximum size of that file in bytes, enough for a million contents.
const maxList = 64 << 20

func (r *Remote) redactedPath() string { return filepath.Join(r.dir, "objects", redactedFile) }

// redacted returns the contents that were redacted here.
func (r *Remote) redacted() (map[protocol.Tree]bool, error) {
	text, err := safeopen.ReadFile(r.redactedPath(), maxList, safeopen.NoFollow)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	gone := map[protocol.Tree]bool{}
	for _, id := range strings.Fields(string(text)) {
		gone[protocol.Tree(id)] = true
	}
	return gone, err
}

// Redact removes a file or a directory from the objects of a thread's snapshots. If another file has the same
// content, the content stays, and Remains lists it. shared includes the snapshots of other threads; without
// it, it is an error if another thread contains the path.
func (r *Remote) Redact(ctx context.Context, id, name string, shared bool) (out protocol.FilesRedacted, err error) {
	held, err := r.lock(ctx, "remote-put", durable.LockExclusive)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, held.Unlock()) }()
	plan, err := snapshots.PlanRedaction(ctx, source{r}, r.index, id, name, shared)
	if err != nil || plan.Done.States == 0 {
		return plan.Done, err
	}
	return plan.Done, r.remove(ctx, name, plan.Threads, plan.Contents)
}

// source implements [snapshots.Source].
type source struct{ *Remote }

// Nodes implements [snapshots.Source].
func (s source) Nodes() cas.Reader { return s.store }

// Object implements [snapshots.Source].
func (s source) Object(_ context.Context, id protocol.Tree) (remote.Object, error) {
	return s.readObject(id)
}

// remove removes contents. It writes the list first, so that an interrupted command can be repeated, then the
// facts, which inform readers of the threads, and deletes the files last.
func (r *Remote) remove(ctx context.Context, name string, threads []string, gone map[protocol.Tree]bool) error {
	before, err := r.redacted()
	if err != nil {
		return err
	}
	all := maps.Clone(gone)
	maps.Copy(all, before)
	var list strings.Builder
	for _, id := range slices.Sorted(maps.Keys(all)) {
		list.WriteString(string(id) + "\n")
	}
	if err := durable.WriteFile(r.disk, r.redactedPath(), []byte(list.String()), 0o600); err != nil {
		return err
	}
	redacted := &heads.Redacted{Paths: []string{name}, Contents: slices.Sorted(maps.Keys(gone))}
	for _, id := range threads {
		facts, err := r.index.Facts(ctx, id)
		if err == nil {
			err = r.index.SetFacts(ctx, id, heads.Facts{Redacted: redacted.And(cmp.Or(facts.Redacted, &heads.Redacted{}))})
		}
		if err != nil {
			return err
		}
	}
	for id := range gone {
		if err := r.disk.Remove(r.object(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
