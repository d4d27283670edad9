// Package runenv is what surrounds a run of one of our own agents: the process,
// the home, the config, secrets, and what the run has started. Package agentkit
// keeps it out of its signatures, so that another author's agent depends on none of
// these packages; ours take it out of the context that agentkit gives them.
package runenv

import (
	"context"
	"fmt"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/log"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/secret"
	"github.com/united-workforce/uwf/util/threadid"
)

// Extractor answers a prompt with JSON text; llm.Extractor is one.
type Extractor func(ctx context.Context, m config.Endpoint, system, user string, schema any) (string, protocol.Usage, error)

// Run surrounds one run. Of a check, only Env and Dirs are set.
type Run struct {
	Env     env.Env // with .env; what another's program should get is Request.Environ
	Dirs    home.Dirs
	Secrets *secret.Set // that are hidden in all that is stored and printed
	Log     *log.Logger // into the run directory; nothing is kept of a run by hand

	// Extractor reads the answer when all corrections failed, if the config names a
	// model for it. An agent that links a client for models sets it. Nil: uwf is
	// asked to do it.
	Extractor Extractor
	// Text stores a text about the run as it happens, such as what a model was told,
	// announces it, and returns its hash for Detail.Requests. A run that fails or is
	// killed leaves it. Errors are as of Request.Turn.
	Text func(ctx context.Context, s string) (protocol.Hash, error)
	// Published waits until all that was told of is stored and announced, for an
	// agent that is about to do what it may not survive.
	Published func() error
	// Recorded reports whether the run has told of turns.
	Recorded func() bool
	// Key is the same for all tries of the step; see [Run.Mark].
	Key string
	// Process reports that the agent is this process, and may adopt what it starts.
	Process bool

	loaded *protocol.Config
	atEnd  []func()
	marks  bool // Mark was called
	adopts bool // orphans become our children
}

type key struct{}

// With returns a context of the run.
func (r *Run) With(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, r) }

// Of returns the run of a context that agentkit has given to Options.Run,
// Options.Continue or Options.Check, or of one derived from it. Any other is a
// programming error: it panics.
func Of(ctx context.Context) *Run {
	r, ok := ctx.Value(key{}).(*Run)
	if !ok {
		panic("the context is not one that agentkit has given to the agent, nor derived from it")
	}
	return r
}

// Config reads config.yaml when it is first asked for, so that an agent that needs
// none neither pays for it nor fails on a broken one.
func (r *Run) Config(ctx context.Context) (protocol.Config, error) {
	if r.loaded == nil {
		c, err := config.Load(ctx, r.Dirs.Config(), r.Env)
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

// NewID makes an id for a session.
func (r *Run) NewID() (string, error) {
	id, err := threadid.New(r.Env.Now(), r.Env.Rand)
	if err != nil {
		return "", fmt.Errorf("session id: %w", err)
	}
	return id, nil
}

// Warn tells a person: the engine hands on what is called a warning.
func (r *Run) Warn(format string, args ...any) {
	fmt.Fprintf(r.Env.Stderr, "warning: "+format+"\n", args...)
}

// AtEnd has f called when the step is over, however it ended. Later ones are
// called first.
func (r *Run) AtEnd(f func()) { r.atEnd = append(r.atEnd, f) }

// End calls what was left for the end.
func (r *Run) End() {
	for i := len(r.atEnd) - 1; i >= 0; i-- {
		r.atEnd[i]()
	}
	r.atEnd = nil
}

// Mark returns an environment entry for the processes that an agent starts and that may
// outlive it. Processes that still carry the mark of a killed try are ended now, since they
// would work alongside this one; those that carry it when the step is over are ended then.
// Only Linux shows which processes carry it.
func (r *Run) Mark() string {
	entry := protocol.EnvStartedFor + "=" + r.Key
	r.adopt()
	if r.marks || r.Env.Get(protocol.EnvStartedFor) == r.Key {
		return entry // or a marked process started us: ending it would end us
	}
	r.marks = true
	n, err := proc.KillMarked(entry)
	r.tellEnded(n, err, "of an interrupted try, still at work, ended")
	r.AtEnd(func() {
		n, err := proc.KillMarked(entry)
		r.tellEnded(n, err, "left running, ended with the step")
	})
	return entry
}

// adopt makes this process the parent of all orphans among its descendants, so that they
// can be ended whatever they have done to their environment.
func (r *Run) adopt() {
	if r.adopts || !r.Process || !proc.Adopt() {
		return
	}
	r.adopts = true
	r.AtEnd(r.EndChildren)
}

// Adopts reports whether what is started for the step becomes a child of this process
// when it loses its parent, after [Run.Mark]: then [Run.EndChildren] and
// proc.KillChildren find it. Only Linux can do that, and only a process that is an
// agent does.
func (r *Run) Adopts() bool { return r.adopts }

// EndChildren ends all processes that this one has started or adopted, and warns the user.
// No child that somebody waits for may be running.
func (r *Run) EndChildren() {
	if r.adopts {
		n, err := proc.KillChildren(nil)
		r.tellEnded(n, err, "left running with an environment of their own, ended")
	}
}

// tellEnded warns the user of processes that were ended.
func (r *Run) tellEnded(n int, err error, what string) {
	if n > 0 {
		r.Warn("processes %s: %d", what, n)
	}
	if err != nil {
		r.Warn("processes that were left running: %v", err)
	}
}
