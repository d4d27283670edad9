package bundle

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/graph"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/seal"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/gitobject"
	"github.com/united-workforce/uwf/util/sorting"
	"github.com/united-workforce/uwf/util/threadid"
)

// Written describes a bundle that was written.
type Written struct {
	Nodes      int   `json:"nodes"`
	Tombstones int   `json:"tombstones"`
	Trees      int   `json:"trees,omitempty"`   // file trees
	Objects    int   `json:"objects,omitempty"` // files and directories in those
	Bytes      int64 `json:"bytes"`             // uncompressed
	// Links lists some links that point out of the work tree; an import must allow them explicitly.
	Links []string `json:"links,omitempty"`
}

// Objects provides the objects of git trees.
type Objects interface {
	// Object returns the content of a file or of a directory.
	Object(ctx context.Context, id protocol.Tree, dir bool) ([]byte, error)
}

// Write writes a bundle of everything that a manifest references. files provides the objects of its trees,
// and can be nil without trees. Memory use depends on the number of nodes, not on their size. It returns the
// errors of [graph.BottomUp], so that damaged or invalid data isn't exported, and a [*cas.SealError] if a seal
// of the manifest doesn't match. After an error, the output isn't a valid bundle, because its end is missing.
func Write(ctx context.Context, w io.Writer, r cas.Reader, m Manifest, files Objects) (Written, error) {
	if m.Hash != r.Algorithm() {
		return Written{}, fmt.Errorf("a bundle of %s nodes from a store of %s nodes", m.Hash, r.Algorithm())
	}
	data, err := m.encode()
	if err != nil {
		return Written{}, fmt.Errorf("manifest: %w", err)
	}
	out := &writer{out: bufio.NewWriterSize(w, 256<<10), digest: sha256.New(), kinds: r.Kinds()}
	out.write([]byte(magic + m.version()))
	if hasFiles(m.version()) {
		if err := out.compress(); err != nil {
			return Written{}, err
		}
	}
	out.write(binary.BigEndian.AppendUint32(nil, uint32(len(data))))
	out.write(data)
	parsed, err := parseManifest(data) // sorted: its roots have the order of the file
	if err != nil {
		return Written{}, fmt.Errorf("manifest: %w", err)
	}
	if err := out.nodes(ctx, r, parsed); err != nil {
		return Written{}, err
	}
	if err := out.files(ctx, parsed, files); err != nil {
		return Written{}, err
	}
	out.end()
	if out.zip != nil {
		out.err = errors.Join(out.err, out.zip.Close())
	}
	return out.written, errors.Join(out.err, out.out.Flush())
}

// writer writes and digests; its first error is kept.
type writer struct {
	out     *bufio.Writer
	digest  hash.Hash
	written Written
	kinds   *cas.Kinds
	err     error

	zip   *zstd.Encoder // nil: uncompressed
	frame int           // bytes in the current zstd frame
}

func (w *writer) write(data []byte) {
	if w.err != nil {
		return
	}
	_, _ = w.digest.Write(data)
	if w.zip == nil {
		_, w.err = w.out.Write(data)
	} else {
		_, w.err = w.zip.Write(data)
		w.frame += len(data)
	}
	w.written.Bytes += int64(len(data))
}

// frameBytes is the minimum uncompressed size of a zstd frame.
const frameBytes = 4 << 20

// compress compresses all subsequent data.
func (w *writer) compress() (err error) {
	if err := w.out.Flush(); err != nil {
		return err
	}
	w.zip, err = zstd.NewWriter(w.out, zstd.WithEncoderConcurrency(1))
	return err
}

// begin ends a zstd frame that is long enough, before a record.
func (w *writer) begin() {
	if w.zip != nil && w.frame >= frameBytes && w.err == nil {
		w.err, w.frame = w.zip.Close(), 0
		w.zip.Reset(w.out)
	}
}

// files writes the objects of the manifest's trees.
func (w *writer) files(ctx context.Context, m Manifest, from Objects) error {
	if len(m.Trees) == 0 {
		return nil
	}
	walk := gitobject.Walk{From: reading{ctx, from}, Visit: func(kind byte, id protocol.Tree, content []byte) error {
		if w.written.Objects == MaxObjects {
			return fmt.Errorf("a bundle holds at most %d files", MaxObjects)
		}
		w.written.Objects++
		name, err := gitobject.AppendID(nil, id)
		if err != nil {
			return err
		}
		w.record(kind, len(name)+len(content))
		w.write(name)
		w.write(content)
		return errors.Join(w.err, ctx.Err())
	}}
	links, err := walk.Trees(m.Trees...)
	w.written.Trees, w.written.Links = len(m.Trees), links
	return err
}

// Verify verifies trees like those of a bundle. It reads each object completely, and once for all trees.
func Verify(ctx context.Context, from Objects) *gitobject.Walk {
	return &gitobject.Walk{From: reading{ctx, from}, Visit: func(byte, protocol.Tree, []byte) error { return ctx.Err() }}
}

// reading reads every object completely and verifies its hash.
type reading struct {
	ctx  context.Context
	from Objects
}

func (r reading) Object(id protocol.Tree, kind byte, _ bool) ([]byte, int64, error) {
	content, err := r.from.Object(r.ctx, id, kind == gitobject.Directory)
	if err != nil {
		return nil, 0, err
	}
	if len(content) > gitobject.MaxSize {
		return nil, 0, fmt.Errorf("file %s has %d bytes; the limit is %d", id, len(content), gitobject.MaxSize)
	}
	if gitobject.ID(kind, content, id.Function()) != id {
		return nil, 0, fmt.Errorf("object %s has another hash", id)
	}
	return content, int64(len(content)), nil
}

func (w *writer) nodes(ctx context.Context, r cas.Reader, m Manifest) error {
	sealer := seal.New(r, seal.Options{})
	sealed := m.sealed()
	err := graph.BottomUp(ctx, r, m.roots(), graph.BottomUpOptions{Verify: true}, func(v graph.Visited) error {
		if len(sealed) > 0 {
			if err := sealer.Visit(v); err != nil {
				return err
			}
		}
		return w.node(v)
	})
	if err != nil {
		return err
	}
	return compareSeals(sealer, sealed)
}

// compareSeals compares the seals of a manifest with those of the content.
func compareSeals(s *seal.Sealer, sealed []Root) error {
	for _, r := range sealed {
		if got := s.Of(r.Hash); got.String() != r.Seal {
			if got.IsZero() {
				return &seal.UnsealedError{Hash: r.Hash}
			}
			want, err := cas.ParseSeal(r.Seal)
			if err != nil {
				return err
			}
			return &cas.SealError{Hash: r.Hash, Want: want, Got: got}
		}
	}
	return nil
}

func (w *writer) node(v graph.Visited) error {
	if w.written.Nodes+w.written.Tombstones == MaxNodes {
		return fmt.Errorf("a bundle holds at most %d nodes", MaxNodes)
	}
	kind, body := byte(kindNode), []byte(nil)
	if v.Tombstone == nil {
		w.written.Nodes++
		if w.kinds.InFoundation(v.Node.Hash) {
			v.Node.Timestamp = 0
		}
		body = cas.MarshalFile(v.Node)
	} else {
		w.written.Tombstones++
		kind = kindTombstone
		var err error
		v.Tombstone.Foreign = false // which concerns only this store
		if body, err = cas.MarshalTombstone(*v.Tombstone); err != nil {
			return err
		}
	}
	w.record(kind, len(v.Node.Hash)+len(body))
	w.write([]byte(v.Node.Hash))
	w.write(body)
	return w.err
}

// record starts a record.
func (w *writer) record(kind byte, length int) {
	w.begin()
	w.write(binary.BigEndian.AppendUint32([]byte{kind}, uint32(length)))
}

func (w *writer) end() {
	w.record(kindEnd, endSize)
	w.write(binary.BigEndian.AppendUint64(nil, uint64(w.written.Nodes+w.written.Tombstones+w.written.Objects)))
	w.write(w.digest.Sum(nil))
}

// The results of an import for a thread or a name.
const (
	Added     = "added"     // new here
	Unchanged = "unchanged" // same head on both sides
	Advanced  = "advanced"  // was behind and now has the bundle's state
	Replaced  = "replaced"  // its last steps were replaced there, and it hasn't moved here since
	Ahead     = "ahead"     // has more steps here: unchanged
	Stays     = "ended"     // ended here before the bundle's steps: unchanged
	Renamed   = "renamed"   // the id is used by another run: added under a new one
	Kept      = "kept"      // the name refers to another workflow here: unchanged
	Offered   = "offered"   // a new name, not registered without a request
	Misnamed  = "misnamed"  // differs from the workflow's own name: never registered
)

// ImportedThread is the result for a thread.
type ImportedThread struct {
	Thread string   `json:"thread"` // its id here
	From   string   `json:"from,omitempty"`
	Head   cas.Hash `json:"head"` // head here after the import
	Result string   `json:"result"`
	Was    cas.Hash `json:"was,omitempty"`    // previous head here, if steps were replaced
	Parent string   `json:"parent,omitempty"` // thread whose part it plays
}

// ImportedWorkflow is the result for a name.
type ImportedWorkflow struct {
	Name string `json:"name"`
	// WorkflowName is the workflow's own name.
	WorkflowName string   `json:"workflowName"`
	Hash         cas.Hash `json:"hash"` // registered here after the import
	Result       string   `json:"result"`
}

// ConflictError means that a thread has diverged: neither head is an ancestor of the other.
type ConflictError struct {
	Thread       string
	Here, Bundle cas.Hash
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("thread %s has diverged: its head is %s here, and %s in the bundle", e.Thread, e.Here, e.Bundle)
}

// FutureError means that the id of a thread is in the future. It would be the newest thread forever.
type FutureError struct {
	Thread string
	At     time.Time // time in its id
}

func (e *FutureError) Error() string {
	return fmt.Sprintf("the id of thread %s has a time in the future: %s", e.Thread, e.At.Format(time.DateOnly))
}

// skew allows for differing clocks. A thread that is ahead by less is the newest only for that long.
const skew = 10 * time.Minute

// ofTheFuture returns a [*FutureError] for an id beyond the allowed clock skew.
func (i *importing) ofTheFuture(id string) error {
	at, err := threadid.Time(id)
	if err != nil || at.After(i.options.Now().Add(skew)) {
		return &FutureError{Thread: id, At: at}
	}
	return nil
}

// planThreads decides about each thread. It locks a thread that will move and reads its state again, because
// another process might be stepping it.
func (i *importing) planThreads(ctx context.Context) error {
	i.done.Threads = []ImportedThread{}
	if i.to.Index == nil || len(i.file.Manifest.Threads) == 0 {
		return nil
	}
	// Unreadable lines are handled when threads are adopted.
	here, _ := heads.ThreadStates(ctx, i.to.Index)
	var conflicts []error
	parents, renamed := i.file.Parents(ctx), map[string]string{}
	for _, t := range parentsFirst(i.file.Manifest.Threads, parents) {
		result, err := i.planOne(ctx, t, parents[t.Thread], renamed, here)
		if _, ok := errors.AsType[*ConflictError](err); ok {
			conflicts = append(conflicts, err)
			continue
		}
		if _, ok := errors.AsType[*FutureError](err); ok {
			return err
		}
		if err != nil {
			return fmt.Errorf("thread %s: %w", t.Thread, err)
		}
		i.done.Threads = append(i.done.Threads, result)
	}
	if len(conflicts) > 0 {
		return conflicts[0]
	}
	sorting.Stable(i.done.Threads, func(a, b ImportedThread) int { // in the order of the bundle
		return strings.Compare(cmp.Or(a.From, a.Thread), cmp.Or(b.From, b.Thread))
	})
	return nil
}

// parentsFirst sorts threads so that parents precede their children.
func parentsFirst(threads []Thread, parents map[string]*heads.Parent) []Thread {
	depth := func(id string) (n int) {
		for p := parents[id]; p != nil && n < len(threads); p = parents[p.Thread] {
			n++
		}
		return n
	}
	ordered := slices.Clone(threads)
	sorting.Stable(ordered, func(a, b Thread) int { return depth(a.Thread) - depth(b.Thread) })
	return ordered
}

// planOne decides about a thread. A child follows its parent: its id derives from that of its parent, either
// the bundle's or a new one.
func (i *importing) planOne(ctx context.Context, t Thread, parent *heads.Parent, renamed map[string]string,
	here map[string]heads.ThreadState) (ImportedThread, error) {
	before := len(i.adoptions)
	var out ImportedThread
	var err error
	if parent != nil && renamed[parent.Thread] != "" {
		follows := *parent
		follows.Thread = renamed[parent.Thread]
		parent = &follows
		out = ImportedThread{From: t.Thread, Head: t.Head, Result: Renamed}
		if out.Thread, err = threadid.Child(parent.Thread, string(parent.Head), parent.Role, parent.Attempt,
			parent.Key); err == nil {
			i.adopt(t, out.Thread, "")
		}
	} else {
		at, known := here[t.Thread]
		out, err = i.planThread(ctx, t, at, known)
	}
	if err != nil {
		return out, err
	}
	if out.Result == Renamed {
		renamed[t.Thread] = out.Thread
	}
	if parent != nil {
		out.Parent = parent.Thread
		for n := before; n < len(i.adoptions); n++ {
			i.adoptions[n].Facts.Parent = parent
		}
	}
	return out, nil
}

func (i *importing) planThread(ctx context.Context, t Thread, at heads.ThreadState, known bool) (ImportedThread, error) {
	out := ImportedThread{Thread: t.Thread, Head: t.Head, Result: Added}
	if !known {
		future := i.ofTheFuture(t.Thread)
		if future == nil {
			i.adopt(t, t.Thread, "")
			return out, nil
		}
		if i.options.NewID == nil {
			return out, future
		}
		return i.rename(t, out)
	}
	var seen cas.Hash
	if i.options.Seen != nil {
		seen = i.options.Seen(t.Thread)
	}
	if at.Head == t.Head {
		if seen == at.Head && at.End == nil && t.Ended() {
			return i.advance(ctx, t, at, out)
		}
		out.Result = Unchanged // even if it has ended on only one side: this side decides
		return out, nil
	}
	if seen == at.Head && (at.End == nil || at.End.Status.AtEnd()) {
		return i.advance(ctx, t, at, out)
	}
	if seen == t.Head {
		out.Head, out.Result = at.Head, Ahead
		return out, nil
	}
	behind, err := HasAncestor(ctx, i.file, t.Head, at.Head)
	if err != nil {
		return out, err
	}
	if behind && at.End != nil && !t.Ended() {
		// It was ended here, and a bundle must not restart it.
		if i.options.NewID != nil {
			return i.rename(t, out)
		}
		out.Head, out.Result = at.Head, Stays
		return out, nil
	}
	if behind {
		return i.advance(ctx, t, at, out)
	}
	both := *i.file
	both.base = i.to.Store // whose damaged nodes the file can replace
	ahead, err := HasAncestor(ctx, &both, at.Head, t.Head)
	if err != nil && (i.options.NewID == nil || !errors.As(err, new(*cas.CorruptError))) {
		return out, err
	}
	if ahead {
		out.Head, out.Result = at.Head, Ahead
		return out, nil
	}
	if i.options.NewID == nil {
		return out, &ConflictError{Thread: t.Thread, Here: at.Head, Bundle: t.Head}
	}
	return i.rename(t, out)
}

// advance sets an existing thread to the bundle's state, under its lock.
func (i *importing) advance(ctx context.Context, t Thread, at heads.ThreadState,
	out ImportedThread) (ImportedThread, error) {
	if err := i.lock(ctx, t.Thread); err != nil {
		return out, err
	}
	if err := i.waits(ctx, t); err != nil {
		return out, err
	}
	facts, err := i.to.Index.Facts(ctx, t.Thread)
	if err != nil {
		return out, err
	}
	i.adopt(t, t.Thread, at.Head).Inherited = facts.StartedHere()
	out.Result = Advanced
	if behind, err := HasAncestor(ctx, i.file, t.Head, at.Head); err != nil || !behind {
		out.Result, out.Was = Replaced, at.Head
		return out, err
	}
	return out, nil
}

// waits returns an error for a thread with a finished step that would no longer be in any chain.
func (i *importing) waits(ctx context.Context, t Thread) error {
	if i.options.Waits == nil {
		return nil
	}
	step := i.options.Waits(ctx, t.Thread)
	if step == "" {
		return nil
	}
	if with, err := HasAncestor(ctx, i.file, t.Head, step); with || err != nil {
		return err
	}
	return (&protocol.Error{
		Code: protocol.CodeFailed, Message: fmt.Sprintf("thread %s has an unused result here: step %s", t.Thread, step),
	}).Because("step-waits-here", "thread", t.Thread)
}

// rename adds a thread under a new id.
func (i *importing) rename(t Thread, out ImportedThread) (ImportedThread, error) {
	id, err := i.options.NewID()
	if err != nil {
		return out, err
	}
	i.adopt(t, id, "")
	out.Thread, out.From, out.Result = id, t.Thread, Renamed
	return out, nil
}

// adopt returns the facts of a thread. From now on it is imported, even if its first steps were made here,
// and asks again for permission to work in a directory, unless its last step was made here. A thread that was
// started here and continued elsewhere still counts for @.
func (i *importing) adopt(t Thread, id string, was cas.Hash) *heads.Imported {
	a := t.adoption(id, was)
	if i.options.Facts != nil {
		a.Facts = i.options.Facts(t.Thread)
	}
	if t.Title != "" && was == "" {
		a.Facts.Title = &t.Title
	}
	if was != "" && i.options.Own != nil && i.options.Own(t.Thread) {
		i.adoptions = append(i.adoptions, a)
		return &heads.Imported{} // unchanged
	}
	a.Facts.Imported = &heads.Imported{From: i.options.From, AtMs: i.options.Now().UnixMilli()}
	i.adoptions = append(i.adoptions, a)
	return a.Facts.Imported
}

func (t Thread) adoption(id string, was cas.Hash) heads.Adoption {
	a := heads.Adoption{Thread: id, Was: was, Head: t.Head}
	if t.Ended() {
		a.End = &heads.Ended{Thread: id, Workflow: t.Workflow, Head: t.Head, Status: t.Status, CompletedAt: t.CompletedAt}
		if t.Failed {
			a.End.Status = protocol.StatusFailed
		}
	}
	return a
}

// Adoptions returns the adoptions that import a bundle's threads into an empty index.
func (f *File) Adoptions(ctx context.Context) []heads.Adoption {
	all, parents := make([]heads.Adoption, 0, len(f.Manifest.Threads)), f.Parents(ctx)
	for _, t := range f.Manifest.Threads {
		a := t.adoption(t.Thread, "")
		a.Facts.Parent = parents[t.Thread]
		all = append(all, a)
	}
	return all
}

func (i *importing) lock(ctx context.Context, id string) error {
	if i.options.Lock == nil {
		return nil
	}
	release, err := i.options.Lock(ctx, id)
	if err == nil {
		i.locks = append(i.locks, release)
	}
	return err
}

// planNames decides about each name. People run workflows by name, so a bundle never registers one silently,
// and it can register only the workflow's own name. A name that refers to another workflow here stays,
// because threads don't need names.
func (i *importing) planNames(ctx context.Context) error {
	i.done.Workflows = []ImportedWorkflow{}
	if i.to.Index == nil || len(i.file.Manifest.Workflows) == 0 {
		return nil
	}
	names, err := i.to.Index.Workflows(ctx)
	if err != nil {
		return err
	}
	given, err := i.file.Names(ctx)
	if err != nil {
		return err
	}
	for _, w := range given {
		out := ImportedWorkflow{Name: w.Name, WorkflowName: w.WorkflowName, Hash: w.Hash, Result: Offered}
		at := slices.IndexFunc(names, func(n heads.Named) bool { return n.Name == w.Name })
		switch {
		case at >= 0 && names[at].Hash == w.Hash:
			out.Result = Unchanged
		case at >= 0:
			out.Hash, out.Result = names[at].Hash, Kept
		case w.WorkflowName != w.Name:
			out.Result = Misnamed
		case i.options.Register:
			i.names = append(i.names, Workflow{Name: w.Name, Hash: w.Hash})
			out.Result = Added
		}
		i.done.Workflows = append(i.done.Workflows, out)
	}
	return nil
}
