// Package status says where threads stand: which role is next, what is working on them, what
// they have cost and may still cost, and how their last try ended. It derives all of this from
// the nodes, the heads, the config and the run directories. A [Reader] takes no lock and
// changes nothing but the sums that package budget keeps.
//
//   - position.go: what the moderator makes of a thread at a node, and output.go: in the
//     words of the command line;
//   - cost.go: what a thread may cost, and has cost with those that play roles of it;
//   - show.go, overview.go: where one thread stands, or many, with their last runs;
//   - running.go, run.go: who works on a thread, and what the last run has told of;
//   - children.go: the threads that play the role that is next, or one before.
//
// Package engine acts on what is told here.
package status

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/locker"
	"github.com/united-workforce/uwf/engine/rundir"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/secret"
	"github.com/united-workforce/uwf/util/threadid"
)

// Reader reads about the threads of a home. Build it as a literal; Locks and Warn may be
// left out.
type Reader struct {
	Env   env.Env // with .env
	Dirs  home.Dirs
	FS    durable.FS
	Store cas.Store
	Heads heads.Heads
	Locks locker.Locker // of threads; nil: files of the home
	// ReadOnly: no sum is kept, either.
	ReadOnly bool
	// Config loads config.yaml when it is first needed: a thread whose workflow sets every limit
	// can be read without it.
	Config func(ctx context.Context) (protocol.Config, error)
	Warn   func(string) // told what a person should know; nil: nobody is told

	// workflows remembers what was read; nil: nothing is.
	workflows map[protocol.Hash]protocol.Workflow
	// factsOf is what is known of threads besides their chains; nil: Heads is asked.
	factsOf func(thread string) (heads.Facts, bool)
	// bounds remembers, by parent, what holds its children; nil: nothing is.
	bounds map[string][]bound
	// costs remembers, by child, the [cost] of children; nil: nothing is.
	costs *sync.Map
	// recall reads the nodes of one step; nil: the store.
	recall cas.Reader
}

// ConfigOnce returns a reader that reads config.yaml at most once, so that one operation sees
// one config and loads it only once.
func (r *Reader) ConfigOnce() *Reader {
	var (
		with = *r
		once sync.Once
		c    protocol.Config
		err  error
	)
	with.Config = func(ctx context.Context) (protocol.Config, error) {
		once.Do(func() { c, err = r.Config(ctx) })
		return c, err
	}
	return &with
}

// Remembering returns a reader that reads each workflow once. It is for one
// goroutine.
func (r *Reader) Remembering() *Reader {
	with := *r
	with.workflows = map[protocol.Hash]protocol.Workflow{}
	return &with
}

// Recalling returns a reader that reads a node only once even if several callers need it. Use
// it for one step.
func (r *Reader) Recalling() *Reader {
	with := *r
	with.recall = cas.Recalling(r.Store)
	return &with
}

// Knowing returns a reader that takes the facts of a thread from a caller that already has
// them.
func (r *Reader) Knowing(thread string, facts *heads.Facts) *Reader {
	with := *r
	with.factsOf = func(id string) (heads.Facts, bool) { return *facts, id == thread }
	return &with
}

// knowingAll returns a reader that has read what is known of all threads.
func (r *Reader) knowingAll(ctx context.Context) *Reader {
	with := *r
	// An unreadable line concerns a thread that needs a person's attention anyway.
	if all, _ := r.Heads.AllFacts(ctx); all != nil {
		with.factsOf = func(thread string) (heads.Facts, bool) { return all[thread], true }
	}
	return &with
}

// Nodes returns the reader of nodes.
func (r *Reader) Nodes() cas.Reader {
	if r.recall == nil {
		return r.Store
	}
	return r.recall
}

// Facts is what is known of a thread besides its chain.
func (r *Reader) Facts(ctx context.Context, id string) (heads.Facts, error) {
	if r.factsOf != nil {
		if facts, known := r.factsOf(id); known {
			return facts, nil
		}
	}
	return r.Heads.Facts(ctx, id)
}

// Workflow reads a workflow, once if this reader is [Reader.Remembering].
func (r *Reader) Workflow(ctx context.Context, h protocol.Hash) (protocol.Workflow, error) {
	if w, ok := r.workflows[h]; ok {
		return w, nil
	}
	w, err := cas.Read[protocol.Workflow](ctx, r.Nodes(), h)
	if err == nil && r.workflows != nil {
		r.workflows[h] = w
	}
	return w, err
}

// Locker locks threads; see package locker.
func (r *Reader) Locker() locker.Locker {
	if r.Locks == nil {
		return locker.Files{Dir: r.Dirs.Locks()}
	}
	return r.Locks
}

// RunDir is where the files of a thread's runs are.
func (r *Reader) RunDir(id string) rundir.Dir {
	return rundir.Dir{Path: r.Dirs.Run(id), Aside: filepath.Join(r.Dirs.Home, "quarantine"), FS: r.FS, Warn: r.Warn}
}

// Secrets are the texts that may be neither stored nor shown.
func (r *Reader) Secrets() *secret.Set {
	return secret.NewSet(config.Secrets(r.Dirs.Config(), r.Dirs.DotEnv(), r.Env)...)
}

// Lookup finds a thread's head, and its line in the history if it has ended.
func (r *Reader) Lookup(ctx context.Context, id string) (protocol.Hash, *heads.Ended, error) {
	if err := CheckID(id); err != nil {
		return "", nil, err
	}
	at, err := heads.Find(ctx, r.Heads, id)
	if errors.Is(err, heads.ErrNoThread) {
		return "", nil, noThread(id, err)
	}
	return at.Head, at.End, err
}

// Head returns the head of a thread, active or ended.
func (r *Reader) Head(ctx context.Context, thread string) (protocol.Hash, error) {
	head, _, err := r.Lookup(ctx, thread)
	return head, fault.OrNil(err)
}

// CheckID keeps anything that is not an id out of file names.
func CheckID(id string) error {
	if canonical, err := threadid.Parse(id); err != nil || canonical != id {
		return noThread(id, heads.ErrNoThread)
	}
	return nil
}

func noThread(id string, cause error) error {
	return &protocol.Error{
		Code: protocol.CodeNotFound, Message: fmt.Sprintf("there is no thread %q", id),
		Hints: []string{"uwf thread list --all"}, Err: cause,
	}
}
