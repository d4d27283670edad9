package bundle

import (
	"context"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/threadid"
)

// File is an open bundle. It is a [cas.Store] that cannot be written to, whose
// nodes are read from the file when they are asked for. Safe for concurrent use.
type File struct {
	Manifest Manifest
	// Size is that of the file, in bytes.
	Size int64
	// Redacted are contents of files that [Parts] need not have: they were redacted.
	Redacted map[protocol.Tree]bool

	from    io.ReaderAt
	kinds   *cas.Kinds
	records []record
	at      map[uint64]uint32 // the record of a node

	// base has the nodes that are not in the file, and whole are those of them that lead
	// to nothing which is not there; nil: all are in the file. See [Parts].
	base  cas.Reader
	whole map[cas.Hash]bool
	// objectBase has the files and directories that are not in the file.
	objectBase Objects

	objects map[protocol.Tree]object // files and directories
	order   []protocol.Tree          // in which they come
}

// object is where one is.
type object struct {
	kind   byte
	offset int64 // of its content
	length uint32
	place  uint32 // among the others
}

var _ cas.Store = (*File)(nil)

// record is where a node or a tombstone is.
type record struct {
	number    uint64 // its hash
	offset    int64  // of its file, behind the hash
	length    uint32
	tombstone bool
}

func (r record) hash() cas.Hash { return protocol.HashOf(r.number) }

// frame is where the record begins.
func (r record) frame() int64 { return r.offset - frameSize - hashSize }

// find returns the record of a node.
func (f *File) find(h cas.Hash) (record, bool) {
	if !h.Valid() {
		return record{}, false
	}
	i, ok := f.at[h.Number()]
	if !ok {
		return record{}, false
	}
	return f.records[i], true
}

// offset is where a node is, or the beginning if it is not there.
func (f *File) offset(h cas.Hash) int64 {
	r, ok := f.find(h)
	if !ok {
		return 0
	}
	return r.frame()
}

// Get implements [cas.Getter].
func (f *File) Get(ctx context.Context, h cas.Hash) (cas.Node, error) {
	if err := ctx.Err(); err != nil {
		return cas.Node{}, err
	}
	r, ok := f.find(h)
	if !ok && f.base != nil {
		return f.base.Get(ctx, h)
	}
	if !ok {
		return cas.Node{}, fmt.Errorf("%w: %s", cas.ErrNotFound, h)
	}
	data := make([]byte, r.length)
	if _, err := f.from.ReadAt(data, r.offset); err != nil {
		return cas.Node{}, fmt.Errorf("read node %s of the bundle: %w", h, err)
	}
	return f.Algorithm().UnmarshalFile(h, data)
}

// Has implements [cas.Store].
func (f *File) Has(ctx context.Context, h cas.Hash) (bool, error) {
	_, ok := f.find(h)
	return ok, ctx.Err()
}

// All implements [cas.Store].
func (f *File) All(ctx context.Context, prefix string) iter.Seq2[cas.Hash, error] {
	return func(yield func(cas.Hash, error) bool) {
		var hashes []cas.Hash
		for _, r := range f.records {
			if h := r.hash(); strings.HasPrefix(string(h), prefix) {
				hashes = append(hashes, h)
			}
		}
		slices.Sort(hashes)
		for _, h := range hashes {
			if err := ctx.Err(); err != nil {
				yield("", err)
				return
			}
			if !yield(h, nil) {
				return
			}
		}
	}
}

// Algorithm implements [cas.Reader].
func (f *File) Algorithm() cas.Algorithm { return f.Manifest.Hash }

// below reports whether all that a node of the base leads to is there.
func (f *File) below(h cas.Hash) (bool, error) { return f.whole[h], nil }

// Kinds implements [cas.Reader].
func (f *File) Kinds() *cas.Kinds { return f.kinds }

var errReadOnly = fmt.Errorf("%w: it is a bundle", cas.ErrReadOnly)

// Put implements [cas.Store]: it always fails.
func (f *File) Put(context.Context, ...cas.Node) error { return errReadOnly }

// Commit implements [cas.Store]: it always fails.
func (f *File) Commit(context.Context, ...cas.Node) error { return errReadOnly }

// object implements source.
func (f *File) object(id protocol.Tree, kind byte, whole bool) ([]byte, int64, error) {
	o, ok := f.objects[id]
	if !ok || o.kind != kind {
		return nil, 0, fmt.Errorf("object %s is not there", id)
	}
	if !whole {
		return nil, int64(o.length), nil
	}
	content := make([]byte, o.length)
	if _, err := f.from.ReadAt(content, o.offset); err != nil {
		return nil, 0, fmt.Errorf("read object %s of the bundle: %w", id, err)
	}
	return content, int64(o.length), nil
}

// Object is a file, a link's target or a directory, as git has it.
type Object struct {
	Dir     bool
	Content []byte
}

// HasObject reports whether the bundle's trees lead to a file, or a directory.
func (f *File) HasObject(id protocol.Tree) bool {
	_, ok := f.objects[id]
	return ok
}

// Len is how many nodes and tombstones there are.
func (f *File) Len() int { return len(f.records) }

// Parents are those of the manifest's threads that play a part of another one of it: a
// child's first node says of which head, and its id follows from its parent's. One that
// cannot be read is nobody's.
func (f *File) Parents(ctx context.Context) map[string]*heads.Parent {
	time := func(id string) string { return id[:min(len(id), 10)] }
	made := map[string][]string{} // a child's id begins with the time of its parent's
	for _, t := range f.Manifest.Threads {
		made[time(t.Thread)] = append(made[time(t.Thread)], t.Thread)
	}
	all, of := map[string]*heads.Parent{}, map[cas.Hash]string{}
	for _, a := range f.Manifest.Threads {
		candidates := made[time(a.Thread)]
		if len(candidates) == 1 {
			continue
		}
		t, err := thread.Open(ctx, f, a.Head)
		if err != nil || t.Start.Child == nil {
			continue
		}
		c := t.Start.Child
		if parent, known := of[c.Of]; known { // of its siblings, as a rule
			candidates = append([]string{parent}, candidates...)
		}
		for _, other := range candidates {
			if id, err := threadid.Child(other, string(c.Of), c.Role, c.Attempt, c.Key); err == nil && id == a.Thread {
				of[c.Of] = other
				all[a.Thread] = &heads.Parent{Thread: other, Head: c.Of, Role: c.Role, Key: c.Key, Attempt: c.Attempt}
				break
			}
		}
	}
	return all
}

// Only is the one thread that is nobody's child; "": there is not just one.
func (f *File) Only(ctx context.Context) (only string) {
	parents := f.Parents(ctx)
	for _, t := range f.Manifest.Threads {
		if parents[t.Thread] != nil {
			continue
		}
		if only != "" {
			return ""
		}
		only = t.Thread
	}
	return only
}

// add notes a record; false: there is one for the node already.
func (f *File) add(r record) bool {
	if _, twice := f.at[r.number]; twice || len(f.records) == math.MaxUint32 {
		return false
	}
	f.at[r.number] = uint32(len(f.records))
	f.records = append(f.records, r)
	return true
}
