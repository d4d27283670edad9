// Package runenv provides the environment of a run to our own agents: the process, the home, the config,
// secrets, and processes started by the run. Package agentkit keeps it out of its API, so that other authors'
// agents don't depend on these packages; ours take it from the context passed by agentkit.
package runenv

import (
	"context"
	"fmt"
	"slices"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/log"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/secret"
	"github.com/united-workforce/uwf/util/threadid"
)

// Run is the environment of one run. For a check, only Env, Dirs and Files are set.
type Run struct {
	Env     env.Env // includes .env; programs of other vendors get Request.Environ
	Dirs    home.Dirs
	Files   *config.Files
	Secrets *secret.Set // hidden in everything that is stored and printed
	Log     *log.Logger // in the run directory; discards if the run was started by hand

	// Text stores a text about the run, such as the model's instructions, announces it, and returns its hash
	// for Detail.Requests. It is kept even if the run fails or is killed. Errors are as for Request.Turn.
	Text func(ctx context.Context, s string) (protocol.Hash, error)
	// Published waits until everything recorded so far is stored and announced. Call it before an action that
	// the agent may not survive.
	Published func() error
	// Entered waits until the disk has recorded that the session changes. With Options.Enters, Run calls it.
	Entered func() error
	// Key is the same for all tries of the step; see [Run.Mark].
	Key string
	// Process means that the agent is this process, and may adopt orphans.
	Process bool
	// First means that no process of an earlier try of the step is running: the engine has killed them.
	First bool

	loaded *protocol.Config
	atEnd  []func()
	marks  bool // Mark was called
	adopts bool // orphans become our children
}

type key struct{}

// With returns a context that carries the run.
func (r *Run) With(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, r) }

// Of returns the run from a context that agentkit passed to Options.Run, Options.Continue or Options.Check,
// or one derived from it. It panics on any other context.
func Of(ctx context.Context) *Run {
	r, ok := ctx.Value(key{}).(*Run)
	if !ok {
		panic("the context is not derived from the one that agentkit passed to the agent")
	}
	return r
}

// Config reads config.yaml on first use, so that an agent that does not need it is not affected by a broken
// one.
func (r *Run) Config(ctx context.Context) (protocol.Config, error) {
	if r.loaded == nil {
		c, err := r.Files.Load(ctx, r.Env)
		if err == nil {
			c, err = config.WithProject(c, r.Env.Get(protocol.EnvProject))
		}
		if err != nil {
			return protocol.Config{}, err
		}
		r.loaded = &c
	}
	return *r.loaded, nil
}

// NewID returns an ID for a session.
func (r *Run) NewID() (string, error) {
	id, err := threadid.New(r.Env.Now(), r.Env.Rand)
	if err != nil {
		return "", fmt.Errorf("session id: %w", err)
	}
	return id, nil
}

// Warn prints a warning, which the engine forwards.
func (r *Run) Warn(format string, args ...any) {
	fmt.Fprintf(r.Env.Stderr, "warning: "+format+"\n", args...)
}

// AtEnd registers f to be called when the step ends, whatever its outcome, in reverse order of registration. Called at
// the end, it registers f to be called after the step was stored.
func (r *Run) AtEnd(f func()) { r.atEnd = append(r.atEnd, f) }

// End calls the functions registered with AtEnd.
func (r *Run) End() {
	all := r.atEnd
	r.atEnd = nil
	for _, f := range slices.Backward(all) {
		f()
	}
}

// Mark returns an environment entry for processes that may outlive the agent. If this is not the first try, it
// kills processes that carry the mark of a killed one, since they would interfere. It registers killing those
// that the step leaves behind: our descendants, or where we can't adopt them those that carry the mark. Finding
// marks reads all processes of the machine. Only Linux shows which processes carry it.
func (r *Run) Mark() string {
	entry := protocol.EnvStartedFor + "=" + r.Key
	r.adopt()
	if r.marks || r.Env.Get(protocol.EnvStartedFor) == r.Key {
		return entry // also set if a marked process started us, which must not be killed
	}
	r.marks = true
	if !r.First {
		n, err := proc.KillMarked(entry)
		r.warnKilled(n, err, "killed, still running from an interrupted attempt")
	}
	if !r.adopts {
		r.AtEnd(func() {
			n, err := proc.KillMarked(entry)
			r.warnKilled(n, err, "killed at the end of the step")
		})
	}
	return entry
}

// adopt makes this process the parent of all orphans among its descendants, so that they can be killed even
// if they changed their environment.
func (r *Run) adopt() {
	if r.adopts || !r.Process || !proc.Adopt() {
		return
	}
	r.adopts = true
	r.AtEnd(r.EndChildren)
}

// Adopts reports whether orphaned descendants become children of this process, after [Run.Mark], so that
// [Run.EndChildren] and proc.KillChildren find them. This works only on Linux, and only if the agent has its
// own process.
func (r *Run) Adopts() bool { return r.adopts }

// EndChildren kills all processes that this one has started or adopted, and warns the user. No child that is
// being waited for may be running.
func (r *Run) EndChildren() {
	if r.adopts {
		n, err := proc.KillChildren(nil)
		r.warnKilled(n, err, "killed, left running with another environment")
	}
}

// warnKilled warns the user about killed processes.
func (r *Run) warnKilled(n int, err error, what string) {
	if n > 0 {
		r.Warn("processes %s: %d", what, n)
	}
	if err != nil {
		r.Warn("processes left running: %v", err)
	}
}
