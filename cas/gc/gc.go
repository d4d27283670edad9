// Package gc deletes unneeded nodes.
//
// A node is needed if it is reachable, through types as well, from a root: the head of an active or ended
// thread; a registered workflow; a reference in the current or last run of a thread; a young node; the
// schemas that every store starts with. Everything else is garbage, except tombstones that were created here,
// which prevent redacted content from coming back.
//
// Collection is safe while threads run, with any grace period. docs/storage.md explains why; in short:
//   - nodes are removed only while no process puts any ([cas.Compaction].Finish), and the roots are read again
//     during that time;
//   - putting an existing node makes it young again;
//   - while an agent is running, everything put since its step started is young;
//   - a process that puts nodes and references them later locks the store in
//     between ([cas.LockShared]).
package gc

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/graph"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/runfiles"
	"github.com/united-workforce/uwf/util/safeopen"
)

// DefaultGrace is the default time for which a node is young.
const DefaultGrace = time.Hour

// Store is a store with garbage.
type Store interface {
	cas.Store
	cas.Compactor
	// Originals reports whether it belongs to the original, whose roots are in a separate database.
	Originals() bool
	// Dir returns its directory, for messages.
	Dir() string
	// Seals yields the nodes with a stored seal.
	Seals(ctx context.Context) iter.Seq2[cas.Hash, error]
}

// Options configures a collection.
type Options struct {
	// Homes lists all home directories whose threads are in the store. At least one is required unless there
	// is an Index, because otherwise nothing would be kept.
	Homes []string
	// Index has further threads in the store, such as threads in a database.
	Index heads.Index
	// Grace is the time for which a node is kept after its last put; 0 means none.
	Grace time.Duration
	// DryRun only counts.
	DryRun bool
	// Damaged continues although a node referenced from a root is missing or damaged, or a thread is lost.
	// Nodes that only it references then are garbage.
	Damaged bool
	Now     func() time.Time
}

// Report is the result of a collection.
type Report struct {
	Nodes     int   `json:"nodes"` // before the collection
	Bytes     int64 `json:"bytes"`
	Reachable int   `json:"reachable"` // from threads, workflows, runs and young nodes
	Young     int   `json:"young"`     // by time alone
	Freed     int   `json:"freed"`     // nodes removed, or to be removed in a dry run
	FreedSize int64 `json:"freedBytes"`
	Seals     int   `json:"seals"` // removed seals of nodes that aren't needed
	DryRun    bool  `json:"dryRun"`
}

// DamagedError means that a needed node can't be read, or that threads are lost, so that further references
// are unknown. Nothing was removed.
type DamagedError struct {
	Count int // number of nodes
	First error
}

func (e *DamagedError) Error() string {
	if e.Count == 0 {
		return e.First.Error()
	}
	return fmt.Sprintf("%d nodes that threads or workflows need are missing or damaged, such as: %v", e.Count, e.First)
}

// Unwrap returns the first damage.
func (e *DamagedError) Unwrap() error { return e.First }

// Run collects garbage. It returns a [*DamagedError], an error for an unreadable line of an index file, or
// [errors.ErrUnsupported] for a store of the original, whose roots are in a separate database.
func Run(ctx context.Context, s Store, o Options) (_ Report, err error) {
	c := newCollection(s, o)
	switch {
	case s.Originals():
		return c.report, fmt.Errorf("collect garbage in %s: %w: it is a store of the original, which has "+
			"variables that uwf cannot read", s.Dir(), errors.ErrUnsupported)
	case len(o.Homes) == 0 && o.Index == nil:
		return c.report, errors.New("collect garbage: no home directory given, so everything would be deleted")
	}
	if err := c.findCutoff(); err != nil {
		return c.report, err
	}
	if c.compaction, err = s.Compact(ctx, c.cutoff, o.DryRun); err != nil {
		return c.report, err
	}
	defer func() { err = errors.Join(err, c.compaction.Release()) }()
	if err := c.survey(ctx); err != nil {
		return c.report, err
	}
	for h, err := range s.Seals(ctx) {
		if err != nil {
			return c.report, err
		}
		if !c.marks.marked(h) { // the seal of a needed but missing node shows what is missing
			c.report.Seals++
		}
	}
	if !o.DryRun {
		if err := c.sweep(ctx); err != nil {
			return c.report, err
		}
	}
	c.count()
	return c.report, nil
}

// Pack compacts what was put before the grace period, and keeps every node.
func Pack(ctx context.Context, s cas.Compactor, now time.Time) (err error) {
	c, err := s.Compact(ctx, now.Add(-DefaultGrace), false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Release()) }()
	all := func(cas.Hash) bool { return true }
	if err := c.Write(ctx, all); err != nil {
		return err
	}
	return c.Finish(ctx, func() error { return nil }, all)
}

// collection is the state of one run.
type collection struct {
	store      Store
	compaction cas.Compaction
	options    Options
	report     Report

	items  []cas.Item
	marks  *marks
	cutoff time.Time // what was put after it stays

	runs, roots seen // what needn't be read again while writers wait
}

func newCollection(s Store, o Options) *collection {
	return &collection{
		store: s, options: o, report: Report{DryRun: o.DryRun},
		marks: &marks{store: s, inspector: graph.NewInspector(s), needed: map[uint64]bool{}},
		runs:  seen{o.Now, map[string]fs.FileInfo{}}, roots: seen{o.Now, map[string]fs.FileInfo{}},
	}
}

// survey lists all nodes and marks the needed ones while other processes keep working.
func (c *collection) survey(ctx context.Context) error {
	for i, err := range c.compaction.Nodes(ctx) {
		if err != nil {
			return fmt.Errorf("list nodes: %w", err)
		}
		c.items = append(c.items, i)
		c.report.Bytes += i.Size
	}
	c.report.Nodes = len(c.items)
	if err := c.markRoots(ctx); err != nil {
		return err
	}
	return c.markYoung(ctx)
}

// findCutoff moves the cutoff to before the start of every step with a running agent. It must be called before
// the heads are read: if a step ends in between, its head has already moved.
func (c *collection) findCutoff() error {
	now := c.options.Now()
	c.cutoff = now.Add(-c.options.Grace)
	for _, home := range c.options.Homes {
		begun, err := oldestRun(home, c.runs)
		if err != nil {
			return err
		}
		switch {
		case begun == nil:
		case begun.After(now):
			c.cutoff = time.Time{} // the clock was set back, so times are unreliable
		case begun.Before(c.cutoff):
			c.cutoff = *begun
		}
	}
	return nil
}

// markRoots marks the current roots of the homes.
func (c *collection) markRoots(ctx context.Context) error {
	for _, home := range c.options.Homes {
		if err := fileheads.Open(home, durable.OS()).CheckLost(ctx); err != nil && !c.options.Damaged {
			return &DamagedError{First: err}
		}
	}
	known := func(h cas.Hash) error { return c.marks.from(ctx, h, true) }
	unknown := func(h cas.Hash) error { return c.marks.from(ctx, h, false) }
	var err error
	// The roots of the index come first, because damage below them counts.
	for _, home := range c.options.Homes {
		x := fileheads.Open(home, durable.OS())
		_, failed := os.Stat(home)
		if err = cmp.Or(err, failed); err == nil {
			err = indexRoots(ctx, x, !c.roots.same(x.HistoryPath()), known)
		}
	}
	if x := c.options.Index; x != nil && err == nil {
		if err = indexRoots(ctx, x, true, known); err == nil {
			err = factRoots(ctx, x, unknown)
		}
	}
	for _, home := range c.options.Homes {
		if err == nil {
			err = c.runRoots(ctx, home, unknown)
		}
	}
	if err != nil {
		return fmt.Errorf("roots: %w", err)
	}
	for _, n := range c.store.Kinds().Foundation() {
		if err := unknown(n.Hash); err != nil {
			return err
		}
	}
	if d := c.marks.damage; d.Count > 0 && !c.options.Damaged {
		return &d
	}
	return nil
}

// markYoung marks young nodes that aren't marked yet, and what they reference, and counts them. A tombstone that
// was created here stays even if nothing needs it, because without it an import would restore the redacted
// content.
func (c *collection) markYoung(ctx context.Context) error {
	for _, i := range c.items {
		if err := ctx.Err(); err != nil {
			return err
		}
		if i.Tombstone {
			_, err := c.store.Get(ctx, i.Hash)
			if redacted, ok := cas.AsRedacted(err); err != nil && (!ok || !redacted.Tombstone.Foreign) { // it may be ours
				c.marks.set(i.Hash)
			}
		}
		if i.At.Before(c.cutoff) {
			continue
		}
		if !c.marks.marked(i.Hash) {
			c.report.Young++
		}
		if err := c.marks.from(ctx, i.Hash, false); err != nil {
			return err
		}
	}
	return nil
}

// sweep removes what isn't marked, after rechecking everything that has changed since the survey: once while
// others work, so that little remains to be done, and once while they can't.
func (c *collection) sweep(ctx context.Context) error {
	if err := c.compaction.Write(ctx, c.marks.marked); err != nil {
		return err
	}
	if err := c.recheck(ctx); err != nil {
		return err
	}
	return c.compaction.Finish(ctx, func() error { return c.recheck(ctx) }, c.marks.marked)
}

// recheck marks what has become needed: by the roots, by a run that began earlier than was known, and by nodes
// that were put, also those put again. A new node might reference one that was garbage until then.
func (c *collection) recheck(ctx context.Context) error {
	before := c.cutoff
	if err := c.findCutoff(); err != nil {
		return err
	}
	if err := c.markRoots(ctx); err != nil {
		return err
	}
	for h, err := range c.compaction.New(ctx) {
		if err != nil {
			return err
		}
		if err := c.marks.from(ctx, h, false); err != nil {
			return err
		}
	}
	if !c.cutoff.Before(before) {
		c.cutoff = before
		return ctx.Err()
	}
	return c.markYoung(ctx)
}

// count counts what was removed, or would be.
func (c *collection) count() {
	for _, i := range c.items {
		if !c.marks.marked(i.Hash) {
			c.report.Freed++
			c.report.FreedSize += i.Size
		}
	}
	c.report.Reachable = c.report.Nodes - c.report.Freed
}

// marks tracks needed nodes. A mark is never removed.
type marks struct {
	store     cas.Reader
	inspector *graph.Inspector
	needed    map[uint64]bool // hashes, as numbers
	damage    DamagedError
}

// set marks a node and reports whether it was not marked before.
func (m *marks) set(h cas.Hash) bool {
	old := m.marked(h)
	m.needed[h.Number()] = true
	return !old
}

// marked reports whether a node is needed.
func (m *marks) marked(h cas.Hash) bool { return m.needed[h.Number()] }

// from marks a node and everything it references. Missing or damaged nodes count as damage if the root is
// known to be needed. It returns an error of ctx, or of a disk that can't be read.
func (m *marks) from(ctx context.Context, root cas.Hash, known bool) error {
	if !m.set(root) {
		return nil
	}
	for stack := []cas.Hash{root}; len(stack) > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		h := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		refs, err := m.refs(ctx, h)
		if err != nil {
			if err := m.damaged(err, known); err != nil {
				return err
			}
		}
		for _, r := range refs {
			if m.set(r) {
				stack = append(stack, r)
			}
		}
	}
	return nil
}

// refs returns everything that a node needs, including its type.
func (m *marks) refs(ctx context.Context, h cas.Hash) ([]cas.Hash, error) {
	n, err := m.store.Get(ctx, h)
	if _, redacted := cas.AsRedacted(err); redacted {
		return nil, nil // a tombstone has no refs
	}
	if err != nil {
		return nil, err
	}
	refs, err := m.inspector.Refs(ctx, n)
	return append(refs, n.Type), err
}

// damaged counts damage and returns other errors. Below a root that is only young, or only a word that looks
// like a hash, missing nodes are normal.
func (m *marks) damaged(err error, known bool) error {
	var corrupt *cas.CorruptError
	if !errors.Is(err, cas.ErrNotFound) && !errors.As(err, &corrupt) {
		return err
	}
	if !known {
		return nil
	}
	if m.damage.Count++; m.damage.First == nil {
		m.damage.First = err
	}
	return nil
}

// seen holds files and directories that were read, as they were then. Everything they referred to stays marked.
type seen struct {
	now   func() time.Time
	paths map[string]fs.FileInfo
}

// settled is the age from which a file cannot change again within the same timestamp.
const settled = time.Second

// same reports whether a path is the same as when it was asked for last, before it was read.
func (s seen) same(path string) bool {
	info, err := os.Stat(path)
	old := s.paths[path]
	if s.forget(path); err != nil {
		return false
	}
	if s.now().Sub(info.ModTime()) > settled {
		s.paths[path] = info
	}
	return old != nil && os.SameFile(old, info) && old.Size() == info.Size() && old.ModTime().Equal(info.ModTime())
}

func (s seen) forget(path string) { delete(s.paths, path) }

// indexRoots calls mark with the hashes in an index. It reads the heads twice, because a thread that is reopened
// between reading heads and history is in neither of them the first time.
func indexRoots(ctx context.Context, x heads.Index, history bool, mark func(cas.Hash) error) error {
	active := func() error {
		for h, err := range x.Heads(ctx) {
			if err != nil {
				return err
			}
			if err := mark(h.Hash); err != nil {
				return err
			}
		}
		return nil
	}
	if err := active(); err != nil {
		return err
	}
	if history {
		for e, err := range x.History(ctx) {
			if err == nil {
				err = mark(e.Head)
			}
			if err == nil && e.Workflow.Valid() {
				err = mark(e.Workflow)
			}
			if err != nil {
				return err
			}
		}
	}
	if err := active(); err != nil {
		return err
	}
	names, err := x.Workflows(ctx)
	for _, n := range names {
		if err == nil {
			err = mark(n.Hash)
		}
	}
	return err
}

// factRoots calls mark with every word that looks like a hash in the facts of threads, see [runRoots].
func factRoots(ctx context.Context, x heads.Index, mark func(cas.Hash) error) error {
	all, err := x.AllFacts(ctx)
	for _, f := range all {
		text, failed := json.Marshal(f)
		if err = cmp.Or(err, failed); err == nil {
			err = hashesOf(ctx, bytes.NewReader(text), mark)
		}
	}
	return err
}

// runRoots calls mark with every word that looks like a hash in the facts of threads, in quarantined index lines, and
// in the records and output of runs: the prompt, the head, announced turns, the result. An extra word keeps
// some garbage; a missing one could cost paid work. Half-written turns don't count: while the agent runs they
// are recent, and later they aren't needed.
func (c *collection) runRoots(ctx context.Context, home string, mark func(cas.Hash) error) error {
	x := fileheads.Open(home, durable.OS())
	files := []string{x.FactsPath()}
	// A thread whose line fsck quarantined isn't garbage until a person has removed the quarantine file.
	for _, path := range []string{x.ThreadsPath(), x.HistoryPath(), x.RegistryPath(), x.FactsPath()} {
		files = append(files, filepath.Join(x.QuarantineDir(), filepath.Base(path)))
	}
	for _, file := range files {
		if c.roots.same(file) {
			continue
		}
		if err := hashesIn(ctx, file, safeopen.Follow, mark); err != nil {
			return err
		}
	}
	dirs, err := entriesOf(filepath.Join(home, "runs"))
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		same := c.roots.same(dir)
		if _, idle := c.runs.paths[dir]; !idle {
			c.roots.forget(dir) // its output grows
		} else if same {
			continue
		}
		// A directory that an agent replaced with a link can still contain its work.
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			continue
		}
		for _, name := range []string{runfiles.RecordFile, runfiles.StdoutFile, runfiles.ResultFile} {
			if err := rootsIn(ctx, runfiles.Dir(dir), name, mark); err != nil && !isMadeByAgent(err) {
				return err
			}
		}
	}
	return nil
}

// isMadeByAgent reports whether a path is something that only an agent creates, without references.
func isMadeByAgent(err error) bool {
	return errors.As(err, new(*safeopen.NotFileError)) || errors.As(err, new(*safeopen.TooBigError))
}

// rootsIn marks the hashes in a file of a run. Of its record, only the last line and an incomplete one count.
func rootsIn(ctx context.Context, dir runfiles.Dir, name string, mark func(cas.Hash) error) error {
	if name != runfiles.RecordFile {
		return hashesIn(ctx, dir.File(name), safeopen.NoFollow, mark)
	}
	data, err := dir.Read(name, runfiles.MaxRecord)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	rest := data[bytes.LastIndexByte(data, '\n')+1:]
	return hashesOf(ctx, bytes.NewReader(bytes.Join([][]byte{durable.LastLine(data), rest}, []byte("\n"))), mark)
}

// entriesOf returns the paths in a directory. In the directory of runs, agents may have added their own.
func entriesOf(dir string) (paths []string, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		paths = append(paths, filepath.Join(dir, e.Name()))
	}
	return paths, err
}

// maxRootFile bounds a file searched for hashes, above the output that a run keeps of an agent.
const maxRootFile = 4 << 30

// hashesIn calls mark with the words of a file that are hashes.
func hashesIn(ctx context.Context, path string, links safeopen.Links, mark func(cas.Hash) error) error {
	f, err := safeopen.OpenMax(path, maxRootFile, links)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // nothing was written
	return hashesOf(ctx, f, mark)
}

// hashesOf calls mark with the words of a text that are hashes, in either case.
func hashesOf(ctx context.Context, in io.Reader, mark func(cas.Hash) error) error {
	r := bufio.NewReaderSize(in, 64<<10)
	announced := 0 // progress through the words "writing", "hash", which announce a half-written turn
	word := make([]byte, 0, protocol.HashLen+1)
	for {
		c, err := r.ReadByte()
		if err == nil && r.Buffered() == 0 {
			err = ctx.Err()
		}
		if err == nil && isWord(c) {
			if len(word) <= protocol.HashLen { // a longer word isn't a hash
				word = append(word, c)
			}
			continue
		}
		if len(word) == protocol.HashLen && announced < 2 {
			if h := cas.Hash(protocol.FoldCrockford(string(word))); h.Valid() {
				if err := mark(h); err != nil {
					return err
				}
			}
		}
		switch {
		case len(word) == 0:
		case string(word) == "writing":
			announced = 1
		case announced == 1 && string(word) == "hash":
			announced = 2
		default:
			announced = 0
		}
		word = word[:0]
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}

// clockSlack allows for differing clocks: that of the process that recorded the start of a run, and that of
// the disk.
const clockSlack = time.Minute

// oldestRun returns a time before the oldest run with a running agent or engine started to put nodes; nil if
// there is none. A run without a recorded start counts as the oldest possible. It omits those that were idle before and
// haven't changed.
func oldestRun(home string, idle seen) (*time.Time, error) {
	dirs, err := entriesOf(filepath.Join(home, "runs"))
	if err != nil {
		return nil, err
	}
	var oldest *time.Time
	note := func(begun time.Time) {
		if oldest == nil || begun.Before(*oldest) {
			oldest = &begun
		}
	}
	for _, dir := range dirs {
		if idle.same(dir) { // a run begins with a new file
			continue
		}
		run := runfiles.Dir(dir)
		alive, err := run.Alive()
		if err != nil {
			return nil, fmt.Errorf("find runs: %w", err)
		}
		if alive {
			idle.forget(dir)
			note(startTime(run))
		}
	}
	locks, err := entriesOf(filepath.Join(home, "locks"))
	for _, lock := range locks {
		if filepath.Ext(lock) != ".lock" || idle.same(lock) {
			continue
		}
		// An agent that removed its run directory is still recorded here.
		who, failed := durable.ReadHolder(lock)
		if proc.Lives(who.Child, who.Birth) {
			idle.forget(lock)
			note(who.Since.Add(-clockSlack))
		}
		if !errors.Is(failed, durable.ErrNoHolder) && !errors.Is(failed, fs.ErrNotExist) && !isMadeByAgent(failed) {
			err = cmp.Or(err, failed)
		}
	}
	return oldest, err
}

// startTime returns a time before the start of a run; zero if unknown.
func startTime(run runfiles.Dir) time.Time {
	at := run.Record().StartTime()
	if at.IsZero() {
		return at
	}
	return at.Add(-clockSlack)
}
