// Package storeremote implements a remote in a directory. It is a home like any other, with a store in it,
// but it isn't meant for work. If someone uses it as a home, pushed threads appear as imported ones.
//
//	<dir>/cas, threads.yaml, history.jsonl, facts.jsonl, registry.yaml   as in every home
//	<dir>/leases/<thread>.json     current or last lease of a thread
//	<dir>/objects/<function>/…     git objects, in git's format
//
// Heads and leases change under locks/remote.lock. Tombstones are put under locks/remote-put.lock, held
// exclusively. A thread that is being stepped in this home is not moved.
package storeremote

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/safeopen"
	"github.com/united-workforce/uwf/util/threadid"
)

// Options are the options of [Open]. Hash is required.
type Options struct {
	Hash    cas.Algorithm    // hash function for a new store
	Program string           // name of the serving program, for display
	Now     func() time.Time // required
	// Shared means that the user trusts everyone who can write to the directory.
	Shared bool
	// Users lists other users whose directories count as the user's own, such as the one who ran sudo.
	Users []int
}

// Remote implements [remote.Remote].
type Remote struct {
	dir     string
	disk    durable.FS // file system below dir
	options Options
	store   *fsstore.Store
	index   *fileheads.Heads
}

var _ remote.Remote = (*Remote)(nil)

// Open opens a directory, which the first push creates. Errors are [*protocol.Error] if it contains something
// else or its parent is missing, and errors of [fsstore.Open].
func Open(ctx context.Context, dir string, o Options) (*Remote, error) {
	if err := cmp.Or(check(dir), guard(dir, o)); err != nil {
		return nil, err
	}
	disk := durable.Rooted(dir)
	s, err := fsstore.Open(ctx, filepath.Join(dir, "cas"), fsstore.Options{Home: dir, Hash: o.Hash, FS: disk})
	if err != nil {
		return nil, err
	}
	if s.Originals() {
		return nil, &protocol.Error{Code: protocol.CodeInvalid,
			Message: dir + " has a store of the original, which cannot be a remote"}
	}
	return &Remote{dir: dir, options: o, store: s, disk: disk, index: fileheads.Open(dir, disk)}, nil
}

// check returns an error if dir contains something else.
func check(dir string) error {
	invalid := func(why string) error {
		return &protocol.Error{Code: protocol.CodeInvalid, Message: fmt.Sprintf("%s %s", dir, why)}
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if above, err := os.Stat(filepath.Dir(dir)); err != nil || !above.IsDir() {
			return invalid("does not exist, nor does its parent directory")
		}
		return nil
	}
	if err != nil {
		return err
	}
	if len(entries) == 0 {
		return nil
	}
	for _, e := range entries {
		if slices.Contains([]string{"cas", "locks", "threads.yaml", "history.jsonl", "registry.yaml", "config.yaml"}, e.Name()) {
			return nil
		}
	}
	return invalid("is not a uwf home; use an empty directory")
}

// Info implements [remote.Remote].
func (r *Remote) Info(ctx context.Context) (remote.Info, error) {
	return remote.Info{Hash: r.store.Algorithm(), Program: r.options.Program, Objects: true, NowMs: r.nowMs()}, ctx.Err()
}

func (r *Remote) nowMs() int64 { return r.options.Now().UnixMilli() }

// Thread implements [remote.Remote].
func (r *Remote) Thread(ctx context.Context, thread string) (remote.State, error) {
	if !threadid.Valid(thread) {
		return remote.State{}, remote.Faultf("%q is not a thread id", thread)
	}
	s, err := r.state(ctx, thread)
	if err != nil {
		return s, err
	}
	facts, err := r.index.Facts(ctx, thread)
	if err != nil {
		return s, err
	}
	s.Facts = remote.Shared(facts)
	s.Lease = r.shown(thread)
	return s, nil
}

// state returns the state of a thread. Errors are [heads.ErrNoThread] and [*remote.GoneError].
func (r *Remote) state(ctx context.Context, thread string) (remote.State, error) {
	s := remote.State{Thread: thread}
	at, err := heads.Find(ctx, r.index, thread)
	if s.Head = at.Head; at.End != nil {
		s.Ended = endOf(*at.End)
	}
	if !errors.Is(err, heads.ErrNoThread) {
		return s, err
	}
	if gone, err := r.index.Removed(thread); gone || err != nil {
		return s, cmp.Or[error](err, &remote.GoneError{Thread: thread})
	}
	return s, fmt.Errorf("%w: %s", heads.ErrNoThread, thread)
}

func endOf(e heads.Ended) *remote.Ended {
	return &remote.Ended{Workflow: e.Workflow, Status: e.Status, CompletedAt: e.CompletedAt}
}

// Threads implements [remote.Remote]. It yields the error for unreadable index entries after all threads.
func (r *Remote) Threads(ctx context.Context, f remote.Filter) iter.Seq2[remote.State, error] {
	return func(yield func(remote.State, error) bool) {
		standings, damage := heads.ThreadStates(ctx, r.index)
		facts, err := r.index.AllFacts(ctx)
		damage = errors.Join(damage, err)
		ids := make([]string, 0, len(standings))
		for id := range standings {
			if threadid.Valid(id) {
				ids = append(ids, id)
			}
		}
		slices.Sort(ids)
		count := 0
		for _, id := range ids {
			s := remote.State{Thread: id, Head: standings[id].Head, Facts: remote.Shared(facts[id])}
			if end := standings[id].End; end != nil {
				s.Ended = endOf(*end)
			}
			if !f.Has(s) {
				continue
			}
			s.Lease = r.shown(id)
			if err := ctx.Err(); err != nil {
				yield(s, err)
				return
			}
			if count++; !yield(s, nil) || count == f.Limit {
				return
			}
		}
		if err := cmp.Or(ctx.Err(), damage); err != nil {
			yield(remote.State{}, err)
		}
	}
}

// Swap implements [remote.Remote].
func (r *Remote) Swap(ctx context.Context, s remote.Swap) error {
	if err := cmp.Or(ctx.Err(), s.Check()); err != nil {
		return err
	}
	if at, err := threadid.Time(s.Thread); s.Was == "" && (err != nil || at.After(r.options.Now().Add(skew))) {
		return remote.Faultf("the id of thread %s has a time in the future", s.Thread)
	}
	return cas.Settle(ctx, r.store, func() error {
		// Compare first: the nodes below a head that isn't the thread's may be missing.
		if err := r.compare(ctx, s); err != nil {
			return err
		}
		return remote.CheckComplete(ctx, r.store, s.Head, s.Was)
	}, func() error { return r.locked(ctx, func() error { return r.move(ctx, s) }) })
}

// skew is the accepted difference between clocks.
const skew = 10 * time.Minute

// compare compares a thread with the state that a swap expects. A child of a removed thread can't be added.
func (r *Remote) compare(ctx context.Context, s remote.Swap) error {
	is, err := r.state(ctx, s.Thread)
	switch {
	case err == nil:
		return s.Compare(&is)
	case !errors.Is(err, heads.ErrNoThread):
		return err
	}
	if parent := s.Facts.Parent; s.Was == "" && parent != nil {
		if _, err := r.state(ctx, parent.Thread); errors.As(err, new(*remote.GoneError)) {
			return &remote.GoneError{Thread: s.Thread}
		}
	}
	return s.Compare(nil)
}

// move carries out a swap under the lock.
func (r *Remote) move(ctx context.Context, s remote.Swap) error {
	if err := r.compare(ctx, s); err != nil {
		return err
	}
	lease, err := r.lease(s.Thread)
	if err := cmp.Or(err, s.CheckFence(lease)); err != nil {
		return err
	}
	free, err := r.exclude(s.Thread)
	if err != nil {
		return err
	}
	defer free()
	known, err := r.index.Facts(ctx, s.Thread)
	if err != nil {
		return err
	}
	a := heads.Adoption{Thread: s.Thread, Was: s.Was, Head: s.Head, Facts: remote.Shared(s.Facts)}
	if !known.Foreign() {
		// Mark it as imported, so that a user of this home must choose a directory for it first.
		a.Facts.Imported = &heads.Imported{From: "a push", AtMs: r.nowMs(), Inherited: s.Was != "" && known.StartedHere()}
	}
	have, err := json.Marshal(known)
	added, failed := json.Marshal(a.Facts)
	if err = cmp.Or(err, failed); err != nil || len(have)+len(added) > maxFacts {
		return cmp.Or(err, remote.Faultf("thread %s: its facts would have more than %d bytes", s.Thread, maxFacts))
	}
	if s.Ended != nil {
		a.End = &heads.Ended{Thread: s.Thread, Workflow: s.Ended.Workflow, Head: s.Head, Status: s.Ended.Status,
			CompletedAt: s.Ended.CompletedAt}
	}
	err = r.index.Adopt(ctx, []heads.Adoption{a}, r.nowMs())
	if moved, ok := errors.AsType[*heads.ConflictError](err); ok { // moved by a user of this home
		return &remote.ConflictError{Thread: s.Thread, Want: s.Was, WantEnd: s.WasEnded, Got: moved.Got}
	}
	return err
}

// maxFacts bounds the facts of a thread, so that one line of facts.jsonl can contain them.
const maxFacts = remote.MaxFacts - 1024

// exclude locks a thread against work in this home. A thread that was never stepped here has no lock file; a
// process that starts now will find that the head has moved.
func (r *Remote) exclude(thread string) (free func(), err error) {
	path := filepath.Join(r.dir, "locks", thread+".lock")
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return func() {}, nil
	}
	held, err := durable.TryLock(path)
	if errors.Is(err, durable.ErrLocked) {
		return nil, &protocol.Error{Code: protocol.CodeLocked,
			Message: fmt.Sprintf("thread %s is being worked on in the remote's home", thread)}
	}
	if err != nil {
		return nil, err
	}
	return func() { _ = held.Unlock() }, nil
}

// locked calls change under the lock for heads and leases.
func (r *Remote) locked(ctx context.Context, change func() error) (err error) {
	held, err := r.lock(ctx, "remote", durable.Lock)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, held.Unlock()) }()
	return change()
}

func (r *Remote) lock(ctx context.Context, name string,
	lock func(context.Context, string) (*durable.Held, error)) (*durable.Held, error) {
	if err := durable.MkdirAll(r.disk, r.dir, 0o700); err != nil {
		return nil, err
	}
	return fileheads.Patiently(ctx, lock, filepath.Join(r.dir, "locks", name+".lock"))
}

// Workflows implements [remote.Remote].
func (r *Remote) Workflows(ctx context.Context) ([]heads.Named, error) {
	all, err := r.index.Workflows(ctx)
	all = slices.DeleteFunc(all, func(n heads.Named) bool { return n.Problem != "" })
	return all, cmp.Or(err, ctx.Err())
}

// Register implements [remote.Remote].
func (r *Remote) Register(ctx context.Context, name string, was, workflow cas.Hash) (err error) {
	if err := cmp.Or(ctx.Err(), remote.CheckName(name, was, workflow)); err != nil {
		return err
	}
	release, err := r.store.LockShared(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	n, err := r.store.Get(ctx, workflow)
	if errors.Is(err, cas.ErrNotFound) {
		return &remote.MissingError{Hash: string(workflow)}
	}
	if err != nil {
		return err
	}
	if kind, _, err := r.store.Kinds().Of(ctx, r.store, n.Type); err != nil || kind != protocol.KindWorkflow {
		return cmp.Or(err, remote.Faultf("node %s is not a workflow", workflow))
	}
	return r.locked(ctx, func() error {
		got, err := r.index.Workflow(ctx, name)
		if err != nil && !errors.Is(err, heads.ErrNoWorkflow) {
			return err
		}
		if got != was {
			return &remote.NameError{Name: name, Want: was, Got: got}
		}
		return r.index.Register(ctx, name, workflow)
	})
}

// Close implements [remote.Remote].
func (r *Remote) Close() error { return nil }

// guard returns an error if another user of this machine can write to the directory, unless the user trusts
// all of them, or if a place to write is a symbolic link.
func guard(dir string, o Options) error {
	invalid := func(why string) error {
		return &protocol.Error{Code: protocol.CodeInvalid, Message: dir + " " + why}
	}
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	const system = 0
	mine := append([]int{system, os.Geteuid()}, o.Users...)
	reachable := safeopen.Reachable(dir)
	others := func(info fs.FileInfo) bool {
		owner, known := safeopen.Owner(info)
		return !o.Shared && (known && !slices.Contains(mine, owner) || safeopen.OthersWrite(info) && reachable)
	}
	const advice = " is writable by another user of this machine, who could run commands as you: use ssh to its " +
		"owner's account, or uwf remote add --trust"
	if others(info) {
		return invalid(advice[1:])
	}
	for _, name := range []string{".", "cas", "locks"} {
		entries, err := os.ReadDir(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		for _, e := range entries {
			if e.Type()&fs.ModeSymlink != 0 {
				return invalid(fmt.Sprintf("has a symbolic link at %s, which a remote must not have", filepath.Join(name, e.Name())))
			}
			if info, err := e.Info(); err == nil && others(info) { // on error, it is gone
				return invalid("has " + filepath.Join(name, e.Name()) + ", which" + advice)
			}
		}
	}
	return nil
}

// kept is the file of a lease. It stays after the lease has ended, so that no fencing token is issued twice.
// A token is at least the current time in milliseconds, so this also holds if the file is lost or deleted.
type kept struct {
	Fence    int64  `json:"fence"`
	Holder   string `json:"holder"`
	UntilMs  int64  `json:"untilMs"` // 0 means released
	LengthMs int64  `json:"lengthMs"`
}

const maxKept = 8 << 10

func (r *Remote) leaseFile(thread string) string {
	return filepath.Join(r.dir, "leases", thread+".json")
}

func (r *Remote) readLease(thread string) (k kept, err error) {
	path := r.leaseFile(thread)
	text, err := safeopen.ReadFile(path, maxKept, safeopen.NoFollow)
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &k)
	}
	if err == nil && (k.Fence <= 0 || k.Fence >= maxFence) {
		err = fmt.Errorf("invalid fencing token %d", k.Fence)
	}
	if err != nil {
		return kept{}, &unreadableError{thread: thread, path: path, err: err}
	}
	return k, nil
}

// maxFence leaves room for further tokens below the largest integer that JSON parsers with floats represent
// exactly.
const maxFence = 1 << 52

// unreadableError means that the holder of a lease is unknown because its file is unreadable. Only its
// message is transferred, so it includes the remedy.
type unreadableError struct {
	thread, path string
	err          error
}

func (e *unreadableError) Error() string {
	return fmt.Sprintf("cannot read %s, the lease of thread %s (%v); when nothing works on the thread, delete the "+
		"file; older leases stay invalid",
		e.path, e.thread, e.err)
}

func (e *unreadableError) Unwrap() error { return e.err }

// shown returns the public lease of a thread for lists. An unreadable lease is reported as such, so that it
// doesn't hide the thread.
func (r *Remote) shown(thread string) *remote.Lease {
	lease, err := r.lease(thread)
	switch {
	case err != nil:
		return &remote.Lease{Thread: thread, Holder: "unknown (leases/" + thread + ".json cannot be read)"}
	case lease == nil:
		return nil
	}
	public := lease.Public()
	return &public
}

// lease returns the current lease, or nil.
func (r *Remote) lease(thread string) (*remote.Lease, error) {
	k, err := r.readLease(thread)
	if err != nil {
		return nil, err
	}
	l := &remote.Lease{Thread: thread, Holder: k.Holder, Fence: k.Fence, Until: k.UntilMs}
	// If the clock was set back, limit the lease to its original duration from now.
	if l.LeftMs = min(k.UntilMs-r.nowMs(), k.LengthMs); l.LeftMs <= 0 {
		return nil, nil
	}
	return l, nil
}

// keep saves a lease.
func (r *Remote) keep(thread string, k kept) error {
	return durable.ReplaceJSON(r.disk, r.leaseFile(thread), k)
}

// Take implements [remote.Remote].
func (r *Remote) Take(ctx context.Context, thread, holder string, duration time.Duration) (l remote.Lease, err error) {
	if err := cmp.Or(ctx.Err(), remote.CheckLease(thread, holder, duration)); err != nil {
		return l, err
	}
	if _, err := r.state(ctx, thread); err != nil {
		return l, err
	}
	err = r.locked(ctx, func() error {
		if lasts, err := r.lease(thread); err != nil || lasts != nil {
			if err == nil {
				err = &remote.LeasedError{Lease: lasts.Public()}
			}
			return err
		}
		k, err := r.readLease(thread)
		if err != nil {
			return err
		}
		k.Fence, k.Holder = max(k.Fence+1, r.nowMs()), holder
		l, err = r.extend(thread, k, duration)
		return err
	})
	return l, err
}

// extend sets the expiry of a lease to duration from now.
func (r *Remote) extend(thread string, k kept, duration time.Duration) (remote.Lease, error) {
	k.LengthMs = duration.Milliseconds()
	k.UntilMs = r.nowMs() + k.LengthMs
	l := remote.Lease{Thread: thread, Holder: k.Holder, Fence: k.Fence, Until: k.UntilMs, LeftMs: k.LengthMs}
	return l, r.keep(thread, k)
}

// Renew implements [remote.Remote].
func (r *Remote) Renew(ctx context.Context, thread string, fence int64,
	duration time.Duration) (l remote.Lease, err error) {
	if err := cmp.Or(ctx.Err(), remote.CheckDuration(thread, duration)); err != nil {
		return l, err
	}
	err = r.locked(ctx, func() error {
		lasts, err := r.lease(thread)
		if err != nil {
			return err
		}
		if lasts == nil || lasts.Fence != fence {
			return &remote.FenceError{Thread: thread, Fence: fence}
		}
		l, err = r.extend(thread, kept{Fence: fence, Holder: lasts.Holder}, duration)
		return err
	})
	return l, err
}

// Release implements [remote.Remote].
func (r *Remote) Release(ctx context.Context, thread string, fence int64) error {
	if err := cmp.Or(ctx.Err(), remote.CheckDuration(thread, remote.MinLease)); err != nil {
		return err
	}
	return r.locked(ctx, func() error {
		k, err := r.readLease(thread)
		if err != nil || k.Fence != fence || k.UntilMs == 0 {
			return err
		}
		k.UntilMs = 0
		return r.keep(thread, k)
	})
}
