package bundle

import (
	"context"
	"errors"
	"fmt"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/protocol"
)

// Parts are nodes from elsewhere that come one by one, for threads of which a part may
// be here. What they make is a [File] all the same: it is checked and brought in as one.
// What it lacks it takes from the store that it stands on.
type Parts struct {
	file  *File
	spool Spool
	pos   int64
}

// NewParts begins with no node. spool keeps the nodes; base is the store that has the
// others.
func NewParts(spool Spool, base cas.Reader) *Parts {
	return &Parts{spool: spool, file: &File{
		from: spool, base: base, kinds: cas.NewKinds(base.Algorithm()),
		at: map[uint64]uint32{}, objects: map[protocol.Tree]object{},
	}}
}

// Add adds a node, or the tombstone in its place, as a store has it. It checks all that
// [Open] does. Errors: a [*FaultError]; those of the spool.
func (p *Parts) Add(h cas.Hash, body []byte) error {
	wrong := func(err error) error { return &FaultError{Offset: p.pos, Hash: h, Err: err} }
	kind := byte(kindNode)
	if cas.IsTombstone(body) {
		kind = kindTombstone
	}
	if len(body) > cas.MaxFile {
		return wrong(fmt.Errorf("node %s has %d bytes, at most %d are allowed", h, len(body), cas.MaxFile))
	}
	if len(p.file.records) == MaxNodes {
		return wrong(fmt.Errorf("there are more than %d nodes", MaxNodes))
	}
	if _, err := checkContent(p.file.base.Algorithm(), h, kind, body); err != nil {
		return wrong(err)
	}
	if !p.file.add(record{number: h.Number(), offset: p.pos, length: uint32(len(body)), tombstone: kind == kindTombstone}) {
		return wrong(fmt.Errorf("node %s is there twice", h))
	}
	n, err := p.spool.Write(body)
	p.pos += int64(n)
	return err
}

// AddObject adds a git object, whose name is known to be that of its content.
func (p *Parts) AddObject(id protocol.Tree, dir bool, content []byte) error {
	f, kind := p.file, byte(kindFile)
	if dir {
		kind = kindDir
	}
	_, twice := f.objects[id]
	if twice || len(f.order) == MaxObjects || len(content) > MaxObject {
		return &FaultError{Offset: p.pos, Err: fmt.Errorf("file %s is there twice, or too large, or there are more than %d", id, MaxObjects)}
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

// SetTrees says of which states of files the objects are, and which of them stand for others.
// What those lack is in base, or was redacted.
func (p *Parts) SetTrees(trees []protocol.Tree, instead []Instead, redacted map[protocol.Tree]bool, base Objects) {
	f := p.file
	f.Manifest.Trees, f.Manifest.Instead, f.Redacted, f.objectBase = trees, instead, redacted, base
}

// standing are the objects of parts, and those on which they stand.
type standing struct {
	ctx  context.Context
	file *File
}

// object implements source. How large a file of the base is that nobody needs to look into
// is not counted: it takes no more room.
func (s standing) object(id protocol.Tree, kind byte, whole bool) ([]byte, int64, error) {
	if s.file.HasObject(id) {
		return s.file.object(id, kind, whole)
	}
	if kind == kindFile && s.file.Redacted[id] {
		return []byte("."), 0, nil // a link leads nowhere else
	}
	if !whole || s.file.Redacted[id] {
		return nil, 0, nil
	}
	return reading{s.ctx, s.file.objectBase}.object(id, kind, whole)
}

// treesOnBase proves that the states of files of parts are whole, and leaves out the
// objects that none of them needs.
func (f *File) treesOnBase(ctx context.Context) (links []string, err error) {
	var order []protocol.Tree
	walk := treeWalk{from: standing{ctx, f}, visit: func(_ byte, id protocol.Tree, _ []byte) error {
		if f.HasObject(id) {
			order = append(order, id)
		}
		return ctx.Err()
	}}
	links, err = walk.walk(f.Manifest.Trees)
	f.order = order
	return links, err
}

// File ends it: m says which threads the nodes are of, and whole are nodes of the base
// from which all that they lead to is there, such as the heads of its threads. Errors: a
// [*FaultError].
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

// arrange leaves out the nodes that nothing needs, and puts each of the others after what
// it needs, in whatever order they came.
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

// standsOn notes what is known of the nodes of the base at which the walk ends.
func (c *check) standsOn(ctx context.Context) error {
	for h := range c.file.whole {
		n, err := c.file.base.Get(ctx, h)
		if err != nil {
			return fmt.Errorf("the store: %w", err)
		}
		if err := c.note(ctx, n); err != nil {
			return fmt.Errorf("the store: %w", err)
		}
	}
	return nil
}

// note notes what a node of the base is.
func (c *check) note(ctx context.Context, n cas.Node) error {
	kind, version, err := c.file.kinds.Of(ctx, c.file, n.Type)
	if err != nil || version == 0 {
		return err
	}
	c.below[n.Hash] = kind
	if kind != protocol.KindStep {
		return nil
	}
	s, err := cas.As[protocol.Step](ctx, c.file, n)
	if err != nil {
		return err
	}
	c.steps[n.Hash] = place{start: s.Start, index: s.Index}
	return nil
}

// visitBelow is visit for a node of the base, which was checked when it came there.
func (c *check) visitBelow(ctx context.Context, v cas.Visited) error {
	if v.Tombstone != nil {
		c.below[v.Node.Hash] = redacted
		return nil
	}
	return c.note(ctx, v.Node)
}

// LeadsTo reports whether the chain of a head goes through an older node. A node that is
// not there leads nowhere. Errors: those of [thread.Open].
func LeadsTo(ctx context.Context, r cas.Reader, head, older cas.Hash) (bool, error) {
	if _, err := thread.Open(ctx, r, head); errors.Is(err, cas.ErrNotFound) {
		return false, nil
	}
	return leadsTo(ctx, r, head, older)
}
