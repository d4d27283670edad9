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
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/graph"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/seal"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/gitobject"
	"github.com/united-workforce/uwf/util/sorting"
)

// Store is a store to import into.
type Store interface {
	seal.Store
	cas.Collected
	// Make creates it unless it exists; at is the timestamp of its first nodes, in ms.
	Make(ctx context.Context, at int64) error
	// Bury stores imported tombstones for missing nodes, and returns their hashes.
	Bury(ctx context.Context, tombstones ...cas.Tombstone) ([]cas.Hash, error)
}

// Index lists the threads and workflows of a home.
type Index interface {
	heads.Index
	// Adopt sets threads to their states elsewhere in one change. It returns a [*heads.ConflictError], without
	// any change, if one has moved.
	Adopt(ctx context.Context, all []heads.Adoption, atMs int64) error
}

// Target is the destination of an import: a store, and the index of its threads. If the store doesn't exist
// yet, it must have been opened with the bundle's hash function.
type Target struct {
	Store Store
	Index Index // nil: nodes only
}

// ImportOptions configures an import. Now is required.
type ImportOptions struct {
	// From is the source to record in the facts of the threads.
	From string
	// NewID returns a new id for a thread whose id is used by another run or is in the future; if nil, the
	// import fails.
	NewID func() (string, error)
	// Seen returns the head that a thread had when both sides last agreed; "" or nil if unknown. A side that
	// hasn't moved since is behind the other, even if the other's last step was replaced.
	Seen func(thread string) cas.Hash
	// Own reports whether the head of a thread is a step that was made here and hasn't reached the other
	// side; nil: none is.
	Own func(thread string) bool
	// Facts returns additional facts for a thread that takes over the bundle's state; nil: none.
	Facts func(thread string) heads.Facts
	// Lock locks a thread before it moves; nil if there are no other users.
	Lock func(ctx context.Context, thread string) (release func(), err error)
	// Waits returns a finished step that still has to be added to a thread here, or "", so that it isn't
	// overwritten; nil: none.
	Waits func(ctx context.Context, thread string) cas.Hash
	// Register also registers new workflows under their own names. The creator of the bundle chose these
	// names, so the user must ask for it.
	Register bool
	// Keep stores the bundle's files. If nil, the files are not imported. It is called after all checks and before
	// the threads exist, and returns the number of trees stored.
	Keep func(ctx context.Context, f *File) (int, error)
	// Links allows files with links out of the work tree.
	Links bool
	Now   func() time.Time
}

// Imported is the result of an import.
type Imported struct {
	Report    Report             `json:"-"`
	Threads   []ImportedThread   `json:"threads"`
	Workflows []ImportedWorkflow `json:"workflows"`
	Nodes     int                `json:"nodes"`      // in the bundle, including tombstones
	Added     int                `json:"nodesAdded"` // of those, newly added
	// Redacted lists nodes of the bundle that were redacted here and stay redacted. Whole lists nodes that
	// are redacted in the bundle and stay intact here.
	Redacted []cas.Hash `json:"redacted,omitempty"`
	Intact   []cas.Hash `json:"whole,omitempty"`
	// Redactions lists nodes that now have only a tombstone, from the bundle.
	Redactions []cas.Hash `json:"redactions,omitempty"`
	// Trees is the number of file trees stored.
	Trees int `json:"trees,omitempty"`
}

// LinkError means that some files contain links out of the work tree.
type LinkError struct{ Links []string }

func (e *LinkError) Error() string {
	return fmt.Sprintf("a symbolic link in its files points out of the work tree: %q", e.Links[0])
}

// HashError means that a bundle and a store have different hash functions.
type HashError struct{ Bundle, Store cas.Algorithm }

func (e *HashError) Error() string {
	return fmt.Sprintf("the bundle has %s hashes, but the store has %s; nodes cannot be imported", e.Bundle,
		e.Store)
}

// Import imports a bundle into a store. First it checks everything, including conflicts with existing data,
// and writes nothing if there is an error. Then it makes the nodes durable, and finally it moves heads and
// history in one change. Importing again changes nothing. It returns the errors of [File.Check];
// [*HashError]; [*LinkError]; [*FutureError]; [*ConflictError]; [*cas.CollisionError] and other errors of
// existing nodes; disk errors.
func (f *File) Import(ctx context.Context, to Target, o ImportOptions) (Imported, error) {
	return Import(ctx, to, o, func() (*File, error) { return f, nil })
}

// Import is [File.Import] for a bundle that relies on nodes of the store, such as one of [Parts]. It calls open again
// if nodes were removed from the store since.
func Import(ctx context.Context, to Target, o ImportOptions, open func() (*File, error)) (Imported, error) {
	i := &importing{to: to, options: o}
	defer func() { i.unlock() }()
	err := cas.Settle(ctx, to.Store, func() error {
		i.unlock()
		f, err := open()
		*i = importing{file: f, to: to, options: o}
		if err != nil {
			return err
		}
		return i.prepare(ctx)
	}, func() error { return i.move(ctx) })
	return i.done, err
}

// importing is the state of one import.
type importing struct {
	file    *File
	to      Target
	options ImportOptions
	done    Imported

	adoptions []heads.Adoption
	wanted    map[cas.Hash]bool // nodes to put; nil: all
	names     []Workflow        // names to register
	locks     []func()
}

// prepare does everything but the last step of an import.
func (i *importing) prepare(ctx context.Context) error {
	f, to := i.file, i.to
	report, err := f.Check(ctx)
	if err != nil {
		return err
	}
	f.arrange(report.visited)
	i.done.Report, i.done.Nodes = report, f.Len()
	if to.Store.Algorithm() != f.Algorithm() {
		return &HashError{Bundle: f.Algorithm(), Store: to.Store.Algorithm()}
	}
	if err := f.checkTombstones(); err != nil {
		return err
	}
	if len(report.Links) > 0 && i.options.Keep != nil && !i.options.Links {
		return &LinkError{Links: report.Links}
	}
	if err := to.Store.Make(ctx, i.options.Now().UnixMilli()); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{i.compareNodes, i.passOver, i.planThreads, i.planNames,
		i.keepFiles, i.putNodes, i.keepSeals} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (i *importing) unlock() {
	for _, release := range i.locks {
		release()
	}
}

// compareNodes compares existing nodes, so that a collision is detected before anything is written.
func (i *importing) compareNodes(ctx context.Context) error {
	for _, r := range i.file.records {
		h := r.hash()
		theirs, err := i.file.Get(ctx, h)
		_, redactedThere := cas.AsRedacted(err)
		if err != nil && !redactedThere {
			return err
		}
		mine, err := i.to.Store.Get(ctx, h)
		redactedHere, isRedacted := cas.AsRedacted(err)
		switch {
		case isRedacted:
			if err = nil; !redactedThere && !redactedHere.Tombstone.Foreign {
				i.done.Redacted = append(i.done.Redacted, h)
			}
		case err == nil && redactedThere:
			i.done.Intact = append(i.done.Intact, h)
		case err == nil && !mine.Equal(theirs):
			err = fmt.Errorf("the store: %w", &cas.CollisionError{Hash: h})
		case errors.Is(err, cas.ErrNotFound):
			if err = nil; !redactedThere {
				err = cas.CheckTitle(i.file.Kinds(), theirs, true)
			}
		case errors.As(err, new(*cas.CorruptError)):
			err = nil // it is replaced
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// passOver skips nodes that the bundle needs only below nodes that were redacted here: for example, the turns
// of a redacted detail must not come back.
func (i *importing) passOver(ctx context.Context) error {
	if len(i.done.Redacted) == 0 {
		return nil
	}
	i.wanted = map[cas.Hash]bool{}
	here := map[cas.Hash]bool{}
	for _, h := range i.done.Redacted {
		here[h] = true
	}
	o := graph.BottomUpOptions{Known: func(h cas.Hash) (bool, error) { return here[h] || i.file.whole[h], nil }}
	return graph.BottomUp(ctx, i.file, i.file.Manifest.roots(), o, func(v graph.Visited) error {
		i.wanted[v.Node.Hash] = true
		return nil
	})
}

// Amount written in one commit.
const (
	commitNodes = 20_000
	commitBytes = 1 << 20
)

// putNodes makes all nodes durable, in the order of the bundle: each after what it needs.
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

// checkTombstones rejects a tombstone as a root: only a node that another one references can be redacted.
func (f *File) checkTombstones() error {
	for _, h := range f.Manifest.roots() {
		if r, ok := f.find(h); ok && r.tombstone {
			return &FaultError{Offset: r.frame(), Hash: h, Err: fmt.Errorf("node %s is a tombstone that nothing "+
				"in the bundle refers to", h)}
		}
	}
	return nil
}

// keepFiles stores the bundle's files.
func (i *importing) keepFiles(ctx context.Context) error {
	if i.options.Keep == nil || len(i.file.Manifest.Trees) == 0 {
		return nil
	}
	var err error
	i.done.Trees, err = i.options.Keep(ctx, i.file)
	return err
}

// keepSeals stores the bundle's seals.
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
			want, _ := cas.ParseSeal(root.Seal) // valid, as in every manifest
			return &cas.SealError{Hash: root.Hash, Want: want, Got: got}
		}
	}
	return keep.Flush(ctx)
}

// move moves heads and history, and then registers names.
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
	// Seal returns the stored seal of a node, zero without one.
	Seal(h cas.Hash) (cas.Seal, error)
}

// Collect returns the manifest for threads: their current state, the registered names of their workflows, and
// the seals of their heads. Without ids it includes all threads. Errors: [heads.ErrNoThread]; the errors of
// [thread.Open].
func Collect(ctx context.Context, s Source, x heads.Index, ids []string) (Manifest, error) {
	standings, err := heads.ThreadStates(ctx, x)
	facts, unread := x.AllFacts(ctx) // an unreadable thread has neither parent nor title
	if len(ids) == 0 {
		if err != nil {
			return Manifest{}, err
		}
		ids = slices.Collect(maps.Keys(standings))
	} else {
		if facts == nil && unread != nil {
			return Manifest{}, unread // the threads may have children
		}
		family := heads.Family(facts, ids)
		for id := range family {
			if _, known := standings[id]; !known && !slices.Contains(ids, id) {
				delete(family, id) // removed individually
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
			return m, err // an unreadable line can belong to it
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

// threadOf returns the entry of a thread and records its workflow.
func threadOf(ctx context.Context, s Source, id string, at heads.ThreadState,
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

// AddTrees adds the file trees of the threads to a manifest. find returns the tree itself, its substitute, or
// "" if it is missing; missing is the number of missing ones.
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
	// A tree that another thread contains intact has no substitute.
	m.Instead = slices.DeleteFunc(m.Instead, func(s Instead) bool { return there[s.Tree] })
	sorting.Func(m.Instead, func(a, b Instead) int { return cmp.Compare(a.Tree, b.Tree) })
	return missing, nil
}

// states calls found for the file trees around each step of a chain, newest first.
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

// CollectNodes returns the manifest for individual nodes.
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

// Without provides a bundle's files without some contents.
type Without struct {
	file *File
	from gitobject.Source
	gone map[protocol.Tree]bool
	by   map[protocol.Tree]protocol.Tree // of the directories examined
	has  map[protocol.Tree]bool          // objects of the bundle's trees
	made map[protocol.Tree][]byte        // new directories
}

// Without omits contents from the bundle's files, which Check must have verified.
func (f *File) Without(ctx context.Context, gone map[protocol.Tree]bool) *Without {
	w := &Without{
		file: f, from: f, gone: gone, by: map[protocol.Tree]protocol.Tree{},
		has: map[protocol.Tree]bool{}, made: map[protocol.Tree][]byte{},
	}
	for _, id := range f.order {
		w.has[id] = true
	}
	if f.base != nil {
		w.from = combined{ctx, f}
	}
	return w
}

// Tree returns the substitute of a tree: the tree itself if it has none of the contents. It omits directories
// that become empty, which git doesn't support.
func (w *Without) Tree(id protocol.Tree) (protocol.Tree, error) {
	if len(w.gone) == 0 {
		return id, nil
	}
	if by, known := w.by[id]; known {
		return by, nil
	}
	content, _, err := w.from.Object(id, kindDir, true)
	if err != nil {
		return "", err
	}
	entries, err := gitobject.Parse(id, content)
	if err != nil {
		return "", err
	}
	function := id.Function()
	empty := gitobject.ID(kindDir, nil, function)
	var kept []byte
	for _, e := range entries {
		is := e.ID
		if e.IsDir() {
			if is, err = w.Tree(e.ID); err != nil {
				return "", err
			}
		}
		if w.gone[e.ID] || is == empty && is != e.ID {
			continue
		}
		sum, err := hex.DecodeString(gitobject.Name(is))
		if err != nil {
			return "", err
		}
		kept = append(fmt.Appendf(kept, "%s %s\x00", e.Mode, e.Name), sum...)
	}
	by := gitobject.ID(kindDir, kept, function)
	if by != id && !w.has[by] {
		w.made[by] = kept
	}
	w.by[id] = by
	return by, nil
}

// Objects yields the remaining objects with a hash function, and the new directories. Tree must have been
// called for all trees before.
func (w *Without) Objects(function string) iter.Seq2[gitobject.Object, error] {
	return func(yield func(gitobject.Object, error) bool) {
		for _, id := range w.left(function) {
			kind := w.file.objects[id].kind
			content, _, err := w.file.Object(id, kind, true)
			if !yield(gitobject.Object{Dir: kind == kindDir, Content: content}, err) || err != nil {
				return
			}
		}
		for id, content := range w.made {
			if id.Function() == function && !yield(gitobject.Object{Dir: true, Content: content}, nil) {
				return
			}
		}
	}
}

// Count returns the number of objects that Objects yields.
func (w *Without) Count(function string) int {
	n := len(w.left(function))
	for id := range w.made {
		if id.Function() == function {
			n++
		}
	}
	return n
}

func (w *Without) stays(id protocol.Tree) bool {
	by, looked := w.by[id]
	return !w.gone[id] && (!looked || by == id)
}

// left returns the objects of the bundle that are neither omitted nor replaced.
func (w *Without) left(function string) (ids []protocol.Tree) {
	for _, id := range w.file.order {
		if id.Function() == function && w.stays(id) {
			ids = append(ids, id)
		}
	}
	return ids
}
