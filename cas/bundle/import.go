package bundle

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/cas/seal"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/protocol"
)

// Target is where a bundle goes: a store, and the index of the threads in it. A
// store that does not exist yet must have been opened for the bundle's hash
// function.
type Target struct {
	Store *fsstore.Store
	Index *fileheads.Heads // nil: only nodes
}

// ImportOptions of an import. Now is required.
type ImportOptions struct {
	// From is how the bundle was named: what is known of its threads says so.
	From string
	// NewID gives a thread whose id is taken by another run, or is of the future, an id
	// of its own; nil: the import is refused.
	NewID func() (string, error)
	// Seen is where a thread stood when it was known to stand at the same node here and
	// where the bundle is from; "" or nil: nobody knows. Whoever has not moved since is behind
	// who has, also if its last step was replaced.
	Seen func(thread string) cas.Hash
	// Own reports whether the head of a thread is a step that was made here, and was not
	// known to have arrived; nil: none is.
	Own func(thread string) bool
	// Facts are what else is to be known of a thread that is brought to where the bundle
	// has it; nil: nothing.
	Facts func(thread string) heads.Facts
	// Lock keeps others away from a thread that is about to move; nil: nobody else
	// is there.
	Lock func(ctx context.Context, thread string) (release func(), err error)
	// Waits returns the step that waits to be added to a thread here, "" if none does: it is not
	// passed over. nil: none ever does.
	Waits func(ctx context.Context, thread string) cas.Hash
	// Register also registers the workflows that are new here, each under its own name:
	// who made the bundle chose that name, so a person must ask for it.
	Register bool
	// Keep keeps the files of the bundle, for threads that are given with their states,
	// the newest first, those of [Parts] also with what came before; nil: they stay out. It is called
	// when everything has been
	// checked, and before a thread is there, and tells how many states it kept.
	Keep func(ctx context.Context, f *File, threads map[string][]protocol.Tree) (int, error)
	// Links also takes files of which a link leads out of the work tree.
	Links bool
	Now   func() time.Time
}

// Imported says what an import found and did.
type Imported struct {
	Report    Report             `json:"-"`
	Threads   []ImportedThread   `json:"threads"`
	Workflows []ImportedWorkflow `json:"workflows"`
	Nodes     int                `json:"nodes"`      // in the bundle, tombstones included
	Added     int                `json:"nodesAdded"` // of them
	// Redacted are nodes of the bundle that were redacted here, and stay so; Whole
	// are nodes that are redacted in the bundle, and stay whole here.
	Redacted []cas.Hash `json:"redacted,omitempty"`
	Whole    []cas.Hash `json:"whole,omitempty"`
	// Redactions are nodes of which only a tombstone is here now: the bundle brought it.
	Redactions []cas.Hash `json:"redactions,omitempty"`
	// Trees are the states of files that were kept.
	Trees int `json:"trees,omitempty"`
}

// LinkError means that files would lead whoever writes to them out of the work tree.
type LinkError struct{ Links []string }

// Error implements error.
func (e *LinkError) Error() string {
	return fmt.Sprintf("a link in its files leads out of the work tree: %q", e.Links[0])
}

// HashError means that a bundle and a store have different hash functions.
type HashError struct{ Bundle, Store cas.Algorithm }

// Error implements error.
func (e *HashError) Error() string {
	return fmt.Sprintf("the bundle has %s hashes and the store has %s: nodes cannot go from one to the other", e.Bundle,
		e.Store)
}

// Import brings a bundle into a store. It checks everything first, what is in the
// bundle and how it fits with what is here, and writes nothing on any fault.
// Then the nodes become durable, and only then heads and history move, in one
// change. Importing again changes nothing. Errors: those of [File.Check];
// [*HashError]; [*LinkError]; [*FutureError]; [*ConflictError]; [*cas.CollisionError] and other faults of the
// nodes that are here; those of the disk.
func (f *File) Import(ctx context.Context, to Target, o ImportOptions) (_ Imported, err error) {
	i := &importing{file: f, to: to, options: o}
	report, err := f.Check(ctx)
	if err != nil {
		return i.done, err
	}
	f.arrange(report.visited)
	i.done.Report, i.done.Nodes = report, f.Len()
	if to.Store.Algorithm() != f.Algorithm() {
		return i.done, &HashError{Bundle: f.Algorithm(), Store: to.Store.Algorithm()}
	}
	if err := f.checkTombstones(); err != nil {
		return i.done, err
	}
	if len(report.Links) > 0 && o.Keep != nil && !o.Links {
		return i.done, &LinkError{Links: report.Links}
	}
	if err := to.Store.Make(ctx, o.Now().UnixMilli()); err != nil {
		return i.done, err
	}
	release, err := to.Store.LockShared(ctx) // until heads name what is put
	if err != nil {
		return i.done, err
	}
	defer func() { err = errors.Join(err, release()) }()
	defer i.unlock()
	for _, step := range []func(context.Context) error{i.compareNodes, i.passOver, i.planThreads, i.planNames,
		i.keepFiles, i.putNodes, i.keepSeals, i.move} {
		if err := step(ctx); err != nil {
			return i.done, err
		}
	}
	return i.done, nil
}

// importing is one import.
type importing struct {
	file    *File
	to      Target
	options ImportOptions
	done    Imported

	adoptions []fileheads.Adoption
	wanted    map[cas.Hash]bool // the nodes to put; nil: all of them
	names     []Workflow        // to be registered
	locks     []func()
}

func (i *importing) unlock() {
	for _, release := range i.locks {
		release()
	}
}

// compareNodes looks at each node that is here already: one with other content, or
// a damaged one, is found before anything is written.
func (i *importing) compareNodes(ctx context.Context) error {
	for _, r := range i.file.records {
		h := r.hash()
		mine, err := i.to.Store.Has(ctx, h)
		if err != nil {
			return err
		}
		if !mine {
			if err := i.titled(ctx, h); err != nil {
				return err
			}
			continue
		}
		theirs, err := i.file.Get(ctx, h)
		if _, redacted := cas.AsRedacted(err); redacted {
			if _, err := i.to.Store.Get(ctx, h); err == nil {
				i.done.Whole = append(i.done.Whole, h)
			}
			continue
		}
		if err != nil {
			return err
		}
		if _, err := i.to.Store.Compare(ctx, theirs); err != nil {
			return fmt.Errorf("the store: %w", err)
		}
		if _, err := i.to.Store.Get(ctx, h); err != nil {
			if redacted, ok := cas.AsRedacted(err); ok && !redacted.Tombstone.Foreign {
				i.done.Redacted = append(i.done.Redacted, h)
			}
		}
	}
	return nil
}

// passOver leaves out what the bundle needs only below nodes that were redacted here:
// the turns of a redacted detail do not come back either.
func (i *importing) passOver(ctx context.Context) error {
	if len(i.done.Redacted) == 0 {
		return nil
	}
	i.wanted = map[cas.Hash]bool{}
	here := without{i.file, map[cas.Hash]bool{}}
	for _, h := range i.done.Redacted {
		here.redacted[h] = true
	}
	for n, err := range cas.Walk(ctx, here, i.file.Manifest.roots(), cas.WalkOptions{FollowTypes: true}) {
		if _, redacted := cas.AsRedacted(err); err != nil && !redacted {
			return err
		}
		i.wanted[n.Hash] = true
	}
	return nil
}

// without is a bundle in which some more nodes were redacted.
type without struct {
	*File
	redacted map[cas.Hash]bool
}

// Get implements [cas.Getter].
func (w without) Get(ctx context.Context, h cas.Hash) (cas.Node, error) {
	if w.redacted[h] {
		return cas.Node{}, &cas.RedactedError{Tombstone: cas.Tombstone{Hash: h}}
	}
	return w.File.Get(ctx, h)
}

// titled refuses a schema that is new here and is titled as if it were one of ours.
func (i *importing) titled(ctx context.Context, h cas.Hash) error {
	n, err := i.file.Get(ctx, h)
	if _, redacted := cas.AsRedacted(err); redacted {
		return nil
	}
	if err != nil {
		return err
	}
	err = cas.CheckTitle(i.file.Kinds(), n)
	if err != nil {
		if kind, _, _ := i.file.Kinds().Of(ctx, i.file, h); kind != "" {
			return nil // a version that a newer uwf has made
		}
	}
	return err
}

// How much is written in one commit.
const (
	commitNodes = 20_000
	commitBytes = 16 << 20
)

// putNodes makes all nodes durable, in the order of the bundle: each after what it
// needs.
func (i *importing) putNodes(ctx context.Context) error {
	var nodes []cas.Node
	size := 0
	commit := func() error {
		err := i.to.Store.Commit(ctx, nodes...)
		nodes, size = nodes[:0], 0
		return err
	}
	var tombstones []cas.Tombstone
	for _, r := range i.file.records {
		if i.wanted != nil && !i.wanted[r.hash()] {
			continue
		}
		there, err := i.to.Store.Has(ctx, r.hash())
		if err != nil {
			return err
		}
		if !there {
			i.done.Added++
		}
		n, err := i.file.Get(ctx, r.hash())
		if redacted, ok := cas.AsRedacted(err); ok {
			tombstones = append(tombstones, redacted.Tombstone)
			continue
		}
		if err != nil {
			return err
		}
		nodes = append(nodes, n)
		if size += len(n.Payload); len(nodes) == commitNodes || size >= commitBytes {
			if err := commit(); err != nil {
				return err
			}
		}
	}
	if err := commit(); err != nil {
		return err
	}
	buried, err := i.to.Store.Bury(ctx, tombstones...)
	i.done.Redactions = buried
	return err
}

// checkTombstones refuses one that is there for its own sake: only what a node
// refers to may be redacted.
func (f *File) checkTombstones() error {
	for _, h := range f.Manifest.roots() {
		if r, ok := f.find(h); ok && r.tombstone {
			return &FaultError{Offset: r.frame(), Hash: h, Err: fmt.Errorf("node %s was redacted, and nothing in the bundle "+
				"refers to it: such a tombstone is not taken", h)}
		}
	}
	return nil
}

// keepFiles keeps the files of the threads that are here afterwards as the bundle has
// them.
func (i *importing) keepFiles(ctx context.Context) error {
	if i.options.Keep == nil || len(i.file.Manifest.Trees) == 0 {
		return nil
	}
	threads := map[string][]protocol.Tree{}
	for _, t := range i.done.Threads {
		if t.Result == Ahead || t.Result == Stays {
			continue
		}
		var kept []protocol.Tree
		err := states(ctx, i.file, t.Head, func(_ string, tree protocol.Tree) error {
			if by := i.file.Manifest.Standing(tree); by != "" {
				tree = by
			}
			if i.file.HasObject(tree) || i.file.base != nil { // of parts some may have come before
				kept = append(kept, tree)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("thread %s: %w", t.Thread, err)
		}
		if i.options.Facts != nil {
			if r := i.options.Facts(t.Thread).Repository; r != nil && r.Tree != "" {
				kept = append(kept, r.Tree)
			}
		}
		if len(kept) > 0 {
			threads[t.Thread] = kept
		}
	}
	var err error
	i.done.Trees, err = i.options.Keep(ctx, i.file, threads)
	return err
}

// keepSeals seals here what the bundle has sealed.
func (i *importing) keepSeals(ctx context.Context) error {
	sealed := i.file.Manifest.sealed()
	if len(sealed) == 0 || i.to.Store.Originals() {
		return nil
	}
	keep := seal.NewKeeper(i.to.Store)
	for _, root := range sealed {
		got, err := keep.Seal(ctx, root.Hash)
		if seal.IsUnsealed(err) {
			continue // something was redacted here without its seal
		}
		if err != nil {
			return err
		}
		if got.String() != root.Seal {
			want, err := cas.ParseSeal(root.Seal)
			if err != nil {
				return err
			}
			return &cas.SealError{Hash: root.Hash, Want: want, Got: got}
		}
	}
	return keep.Flush(ctx)
}

// move moves heads and history, and then gives names.
func (i *importing) move(ctx context.Context) error {
	if i.to.Index == nil {
		return nil
	}
	if err := i.to.Index.Adopt(ctx, i.adoptions, i.options.Now().UnixMilli()); err != nil {
		return err
	}
	for _, w := range i.names {
		if err := i.to.Index.Register(ctx, w.Name, w.Hash); err != nil {
			return err
		}
	}
	return nil
}

// Source is a store to export from.
type Source interface {
	cas.Reader
	// Seal is the seal that is kept for a node, none if there is none.
	Seal(h cas.Hash) (cas.Seal, error)
}

// Collect makes the manifest of threads: how they stand now, the names in the
// registry of the workflows that they run, and the seals that their heads have.
// No ids: all threads. Errors: [heads.ErrNoThread]; those of [thread.Open].
func Collect(ctx context.Context, s Source, x *fileheads.Heads, ids []string) (Manifest, error) {
	standings, err := heads.Standings(ctx, x)
	facts, _ := x.AllFacts(ctx) // what cannot be read is no child, and has no title
	if len(ids) == 0 {
		if err != nil {
			return Manifest{}, err
		}
		ids = slices.Collect(maps.Keys(standings))
	} else if facts != nil {
		family := heads.Family(facts, ids)
		for id := range family {
			if _, known := standings[id]; !known && !slices.Contains(ids, id) {
				delete(family, id) // removed by itself
			}
		}
		ids = slices.Collect(maps.Keys(family))
	}
	m := Manifest{Hash: s.Algorithm()}
	workflows := map[cas.Hash]bool{}
	for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
		at, known := standings[id]
		switch {
		case !known && err != nil:
			return m, err // one of the lines that cannot be read may be its
		case !known:
			return m, fmt.Errorf("%w: %s", heads.ErrNoThread, id)
		}
		t, err := threadOf(ctx, s, id, at, workflows)
		if err != nil {
			return m, fmt.Errorf("thread %s: %w", id, err)
		}
		if title := facts[id].Title; title != nil {
			t.Title = *title
		}
		m.Threads = append(m.Threads, t)
	}
	names, err := x.Workflows(ctx)
	if err != nil {
		return m, err
	}
	for _, n := range names {
		if workflows[n.Hash] && n.Problem == "" {
			m.Workflows = append(m.Workflows, Workflow{Name: n.Name, Hash: n.Hash})
		}
	}
	return m, nil
}

// threadOf is the entry of one thread; it notes the workflow that it runs.
func threadOf(ctx context.Context, s Source, id string, at heads.Standing,
	workflows map[cas.Hash]bool) (Thread, error) {
	chain, err := thread.Open(ctx, s, at.Head)
	if err != nil {
		return Thread{}, err
	}
	workflows[chain.Start.Workflow] = true
	t := Thread{Thread: id, Head: at.Head}
	if at.End != nil {
		if t.Status, t.CompletedAt = at.End.Status, at.End.CompletedAt; t.Status == protocol.StatusFailed {
			t.Status, t.Failed = protocol.StatusCompleted, true
		}
		if at.End.Workflow.Valid() {
			t.Workflow = at.End.Workflow
			workflows[t.Workflow] = true
		}
	}
	kept, err := s.Seal(at.Head)
	t.Seal = kept.String()
	return t, err
}

// AddTrees adds to a manifest the states of files that its threads name, as find finds
// them: the state itself, one that stands for it, or none, ""; missing is how many those are.
func (m *Manifest) AddTrees(ctx context.Context, r cas.Reader,
	find func(root string, tree protocol.Tree) (protocol.Tree, error)) (missing int, err error) {
	known, there := map[protocol.Tree]bool{}, map[protocol.Tree]bool{}
	for _, t := range m.Threads {
		err := states(ctx, r, t.Head, func(root string, tree protocol.Tree) error {
			if known[tree] {
				return nil
			}
			by, err := find(root, tree)
			if known[tree] = true; by == "" {
				missing++
				return err
			}
			there[by] = true
			if by != tree {
				m.Instead = append(m.Instead, Instead{Tree: tree, By: by})
			}
			return err
		})
		if err != nil {
			return missing, fmt.Errorf("thread %s: %w", t.Thread, err)
		}
	}
	m.Trees = slices.Sorted(maps.Keys(there))
	// One that another thread has whole goes without: nothing stands for it.
	m.Instead = slices.DeleteFunc(m.Instead, func(s Instead) bool { return there[s.Tree] })
	slices.SortFunc(m.Instead, func(a, b Instead) int { return cmp.Compare(a.Tree, b.Tree) })
	return missing, nil
}

// states calls found for the states of the files around each step of a chain, the
// newest first.
func states(ctx context.Context, r cas.Reader, head cas.Hash, found func(root string, tree protocol.Tree) error) error {
	chain, err := thread.Open(ctx, r, head)
	if err != nil {
		return err
	}
	for step, err := range chain.Steps(ctx) {
		if err != nil {
			return err
		}
		if step.Files == nil {
			continue
		}
		for _, tree := range []protocol.Tree{step.Files.Tree, step.Files.Before} {
			if tree == "" {
				continue
			}
			if err := found(step.Root, tree); err != nil {
				return err
			}
		}
	}
	return nil
}

// CollectNodes makes the manifest of nodes that are exported for their own sake.
func CollectNodes(s Source, hashes []cas.Hash) (Manifest, error) {
	m := Manifest{Hash: s.Algorithm()}
	for _, h := range slices.Compact(slices.Sorted(slices.Values(hashes))) {
		kept, err := s.Seal(h)
		if err != nil {
			return m, err
		}
		m.Roots = append(m.Roots, Root{Hash: h, Seal: kept.String()})
	}
	return m, nil
}

// Without is a bundle's files with some contents left out.
type Without struct {
	file *File
	from source
	gone map[protocol.Tree]bool
	by   map[protocol.Tree]protocol.Tree // of the directories that were looked into
	has  map[protocol.Tree]bool          // of what the bundle's states lead to
	made map[protocol.Tree][]byte        // directories
}

// Without leaves contents out of the bundle's files, which Check has found whole.
func (f *File) Without(ctx context.Context, gone map[protocol.Tree]bool) *Without {
	w := &Without{
		file: f, from: f, gone: gone, by: map[protocol.Tree]protocol.Tree{},
		has: map[protocol.Tree]bool{}, made: map[protocol.Tree][]byte{},
	}
	for _, id := range f.order {
		w.has[id] = true
	}
	if f.base != nil {
		w.from = standing{ctx, f}
	}
	return w
}

// Tree returns the state that stands for one: the state itself if it holds none of the contents.
// A directory in which nothing is left is left out, too, as git has none.
func (w *Without) Tree(id protocol.Tree) (protocol.Tree, error) {
	if len(w.gone) == 0 {
		return id, nil
	}
	if by, known := w.by[id]; known {
		return by, nil
	}
	content, _, err := w.from.object(id, kindDir, true)
	if err != nil {
		return "", err
	}
	entries, err := parseTree(id, content)
	if err != nil {
		return "", err
	}
	_, size := functionOf(id)
	empty := objectID(kindDir, nil, size)
	var kept []byte
	for _, e := range entries {
		is := e.id
		if e.mode == modeDir {
			if is, err = w.Tree(e.id); err != nil {
				return "", err
			}
		}
		if w.gone[e.id] || is == empty && is != e.id {
			continue
		}
		sum, err := hex.DecodeString(string(is[strings.IndexByte(string(is), ':')+1:]))
		if err != nil {
			return "", err
		}
		kept = append(fmt.Appendf(kept, "%s %s\x00", e.mode, e.name), sum...)
	}
	by := objectID(kindDir, kept, size)
	if by != id && !w.has[by] {
		w.made[by] = kept
	}
	w.by[id] = by
	return by, nil
}

// Objects yields what is left of the bundle's objects of one hash function, and the directories that
// were made anew. Tree must have been asked for all states before.
func (w *Without) Objects(function string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		for _, id := range w.left(function) {
			kind := w.file.objects[id].kind
			content, _, err := w.file.object(id, kind, true)
			if !yield(Object{Dir: kind == kindDir, Content: content}, err) || err != nil {
				return
			}
		}
		for id, content := range w.made {
			if id.Function() == function && !yield(Object{Dir: true, Content: content}, nil) {
				return
			}
		}
	}
}

// Count is how many Objects yields.
func (w *Without) Count(function string) int {
	n := len(w.left(function))
	for id := range w.made {
		if id.Function() == function {
			n++
		}
	}
	return n
}

// Has reports whether Objects yields one.
func (w *Without) Has(id protocol.Tree) bool {
	_, made := w.made[id]
	return made || w.has[id] && w.stays(id)
}

func (w *Without) stays(id protocol.Tree) bool {
	by, looked := w.by[id]
	return !w.gone[id] && (!looked || by == id)
}

// left are the bundle's objects that are neither left out nor made anew.
func (w *Without) left(function string) (ids []protocol.Tree) {
	for _, id := range w.file.order {
		if id.Function() == function && w.stays(id) {
			ids = append(ids, id)
		}
	}
	return ids
}
