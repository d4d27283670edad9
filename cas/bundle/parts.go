package bundle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/gitobject"
	"github.com/united-workforce/uwf/util/threadid"
)

// Parts collects nodes that arrive one by one, for threads that can partly be here already. The result is a
// [File], which is checked and imported as a whole. Missing nodes come from the base store.
type Parts struct {
	file  *File
	spool Spool
	pos   int64
}

// NewParts returns empty parts. spool stores the nodes; base is the store with the others.
func NewParts(spool Spool, base cas.Reader) *Parts {
	return &Parts{spool: spool, file: &File{
		from: spool, base: base, kinds: cas.NewKinds(base.Algorithm()),
		at: map[uint64]uint32{}, objects: map[protocol.Tree]object{},
	}}
}

// Add adds a node, or its tombstone, in a store's form. It checks everything that [Receive] does. Errors: a
// [*FaultError]; the errors of the spool.
func (p *Parts) Add(h cas.Hash, body []byte) error {
	wrong := func(err error) error { return &FaultError{Offset: p.pos, Hash: h, Err: err} }
	kind := byte(kindNode)
	if cas.IsTombstone(body) {
		kind = kindTombstone
	}
	if len(body) > cas.MaxFile {
		return wrong(fmt.Errorf("node %s has %d bytes; the limit is %d", h, len(body), cas.MaxFile))
	}
	if len(p.file.records) == MaxNodes {
		return wrong(fmt.Errorf("more than %d nodes", MaxNodes))
	}
	if _, err := checkContent(p.file.base.Algorithm(), h, kind, body); err != nil {
		return wrong(err)
	}
	if !p.file.add(record{number: h.Number(), offset: p.pos, length: uint32(len(body)),
		tombstone: kind == kindTombstone}) {
		return wrong(fmt.Errorf("duplicate node %s", h))
	}
	n, err := p.spool.Write(body)
	p.pos += int64(n)
	return err
}

// AddObject adds a git object whose name is known to match its content.
func (p *Parts) AddObject(id protocol.Tree, dir bool, content []byte) error {
	f, kind := p.file, kindFile
	if dir {
		kind = kindDir
	}
	_, twice := f.objects[id]
	if twice || len(f.order) == MaxObjects || len(content) > gitobject.MaxSize {
		return &FaultError{Offset: p.pos, Err: fmt.Errorf("file %s is a duplicate or too large, or there are more "+
			"than %d files", id, MaxObjects)}
	}
	f.objects[id] = object{kind: kind, offset: p.pos, length: uint32(len(content)), place: uint32(len(f.order))}
	f.order = append(f.order, id)
	n, err := p.spool.Write(content)
	p.pos += int64(n)
	p.file.Size = p.pos
	return err
}

// HasObject reports whether an object was added.
func (p *Parts) HasObject(id protocol.Tree) bool { return p.file.HasObject(id) }

// SetTrees sets the file trees of the objects and the substitutes among them. Missing objects are in base, or
// were redacted.
func (p *Parts) SetTrees(trees []protocol.Tree, instead []Instead, redacted map[protocol.Tree]bool, base Objects) {
	f := p.file
	f.Manifest.Trees, f.Manifest.Instead, f.Redacted, f.objectBase = trees, instead, redacted, base
}

// combined provides the objects of parts and of the base.
type combined struct {
	ctx  context.Context
	file *File
}

// Object implements [gitobject.Source]. For a file of the base whose content isn't needed, it returns no size, because
// the file takes no additional space.
func (s combined) Object(id protocol.Tree, kind byte, whole bool) ([]byte, int64, error) {
	if s.file.HasObject(id) {
		return s.file.Object(id, kind, whole)
	}
	if kind == kindFile && s.file.Redacted[id] {
		return []byte("."), 0, nil // a link without effect
	}
	if !whole || s.file.Redacted[id] {
		return nil, 0, nil
	}
	return reading{s.ctx, s.file.objectBase}.Object(id, kind, whole)
}

// treesOnBase verifies the file trees of parts and omits objects that none of them needs.
func (f *File) treesOnBase(ctx context.Context) (links []string, err error) {
	var order []protocol.Tree
	walk := gitobject.Walk{From: combined{ctx, f}, Visit: func(_ byte, id protocol.Tree, _ []byte) error {
		if f.HasObject(id) {
			order = append(order, id)
		}
		return ctx.Err()
	}}
	links, err = walk.Trees(f.Manifest.Trees...)
	f.order = order
	return links, err
}

// File returns the parts as a bundle. m lists their threads, and whole the nodes of the base whose references
// are all there, such as the heads of its threads. Its error is a [*FaultError].
func (p *Parts) File(m Manifest, whole ...cas.Hash) (*File, error) {
	m.Hash = p.file.base.Algorithm()
	data, err := m.encode()
	if err != nil {
		return nil, fault(0, "%w", err)
	}
	if p.file.Manifest, err = parseManifest(data); err != nil {
		return nil, fault(0, "%w", err)
	}
	p.file.Size, p.file.whole = p.pos, map[cas.Hash]bool{}
	for _, h := range whole {
		p.file.whole[h] = true
	}
	return p.file, nil
}

// arrange omits unneeded nodes and sorts the others so that each follows what it needs.
func (f *File) arrange(order []cas.Hash) {
	if f.base == nil {
		return
	}
	old := *f
	f.records, f.at = nil, map[uint64]uint32{}
	for _, h := range order {
		r, _ := old.find(h)
		f.add(r)
	}
}

// HasAncestor reports whether the chain of a head includes an older node. A missing node is in no chain, and a missing
// head has none. It returns the errors of [thread.Open].
func HasAncestor(ctx context.Context, r cas.Reader, head, older cas.Hash) (bool, error) {
	t, err := thread.Open(ctx, r, head)
	if err == nil && older == t.StartHash {
		return true, nil
	}
	var end *thread.Thread
	if err == nil {
		end, err = thread.Open(ctx, r, older)
	}
	if errors.Is(err, cas.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for s, err := range t.Steps(ctx) {
		if err != nil || s.Hash == older {
			return err == nil, err
		}
		if s.Index < end.Len() {
			break
		}
	}
	return false, nil
}

// File is an open bundle. It is a read-only [cas.Store] that reads nodes from the file on demand. It is safe
// for concurrent use.
type File struct {
	Manifest Manifest
	// Size is the size of the file in bytes.
	Size int64
	// Redacted lists redacted contents of files, which [Parts] needn't have.
	Redacted map[protocol.Tree]bool

	from    io.ReaderAt
	kinds   *cas.Kinds
	records []record
	at      map[uint64]uint32 // index of a node's record

	// base has the nodes that aren't in the file, and whole lists those whose references are complete; nil:
	// all are in the file. See [Parts].
	base  cas.Reader
	whole map[cas.Hash]bool
	// objectBase has the files and directories that aren't in the file.
	objectBase Objects

	objects map[protocol.Tree]object // files and directories
	order   []protocol.Tree          // order in the file
}

// object is the location of a file or directory.
type object struct {
	kind   byte
	offset int64 // of its content
	length uint32
	place  uint32 // index in the order
}

var _ cas.Store = (*File)(nil)

// record is the location of a node or a tombstone.
type record struct {
	number    uint64 // hash as a number
	offset    int64  // of its file, after the hash
	length    uint32
	tombstone bool
}

func (r record) hash() cas.Hash { return protocol.HashOf(r.number) }

// frame returns the start of the record.
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

// offset returns the location of a node, or the beginning if it isn't there.
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

// below reports whether a node of the base is known to be complete.
func (f *File) below(h cas.Hash) (bool, error) { return f.whole[h], nil }

// Kinds implements [cas.Reader].
func (f *File) Kinds() *cas.Kinds { return f.kinds }

func errReadOnly() error { return fmt.Errorf("%w: it is a bundle", cas.ErrReadOnly) }

// Put implements [cas.Store]. It always fails.
func (f *File) Put(context.Context, ...cas.Node) error { return errReadOnly() }

// Commit implements [cas.Store]. It always fails.
func (f *File) Commit(context.Context, ...cas.Node) error { return errReadOnly() }

// Object implements [gitobject.Source].
func (f *File) Object(id protocol.Tree, kind byte, whole bool) ([]byte, int64, error) {
	o, ok := f.objects[id]
	if !ok || o.kind != kind {
		return nil, 0, fmt.Errorf("object %s is missing", id)
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

// HasObject reports whether the bundle's trees include a file or directory.
func (f *File) HasObject(id protocol.Tree) bool {
	_, ok := f.objects[id]
	return ok
}

// Len returns the number of nodes and tombstones.
func (f *File) Len() int { return len(f.records) }

// Parents returns the parents of the manifest's threads within the bundle: a child's first node contains its
// parent's head, and its id follows from the parent's id. An unreadable thread has no parent.
func (f *File) Parents(ctx context.Context) map[string]*heads.Parent {
	time := func(id string) string { return id[:min(len(id), 10)] }
	made := map[string][]string{} // a child's id starts with its parent's time
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
		if parent, known := of[c.Of]; known { // usually also the parent of its siblings
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

// Only returns the only thread without a parent, or "".
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

// add adds a record; false if the node already has one.
func (f *File) add(r record) bool {
	if _, twice := f.at[r.number]; twice || len(f.records) == math.MaxUint32 {
		return false
	}
	f.at[r.number] = uint32(len(f.records))
	f.records = append(f.records, r)
	return true
}

// Bounds of compression. Nodes and files never compress this well, only data crafted to fill a disk.
const (
	maxRatio = 1000
	freely   = 64 << 20 // bytes allowed regardless of the ratio
	window   = 32 << 20 // memory of the reader
)

// inflating decompresses what follows the first line of a bundle of version 2.
type inflating struct {
	plain *zstd.Decoder
	taken *counter
	given int64
}

// counter counts the bytes read from the file.
type counter struct {
	from io.Reader
	n    int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.n += int64(n)
	return n, err
}

func decompress(in io.Reader) (*inflating, error) {
	taken := &counter{from: in}
	plain, err := zstd.NewReader(taken, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(window))
	return &inflating{plain: plain, taken: taken}, err
}

func (i *inflating) Read(p []byte) (int, error) {
	n, err := i.plain.Read(p)
	if i.given += int64(n); i.given > freely+maxRatio*i.taken.n {
		return 0, &FaultError{Offset: i.given, Err: fmt.Errorf("its content is %d times as large as its file, "+
			"which no bundle is", maxRatio)}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = &FaultError{Offset: int64(len(magic)+len(version)) + i.given, Err: fmt.Errorf("damaged compression: %w", err)}
	}
	return n, err
}
