package agentkit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/log"
	"github.com/united-workforce/uwf/util/runfiles"
	"github.com/united-workforce/uwf/util/threadid"
	"github.com/united-workforce/uwf/utilagent/internal/runenv"
)

// kit is one step of one agent.
type kit struct {
	opts    Options
	inv     invocation
	run     *runenv.Run
	role    protocol.Role
	store   cas.Store
	batch   *cas.Batch // all nodes of the step
	thread  *thread.Thread
	turns   *turns
	secrets *secrets
	given   []string // environment of the process, without .env

	session  session // session in which the run continues
	messages string  // messages from people to the thread, before and during the visit
	trying   string  // session recorded for this try

	engine    bool // the engine's variables refer to this step
	limitBase int
	edge      string // the edge's prompt

	flush func() error // writes pending stderr output
}

// open loads the thread's head and everything the step needs.
func open(ctx context.Context, e env.Env, o Options, inv invocation, out *printer) (*kit, error) {
	dirs, err := home.Find(e, "", "")
	if err != nil {
		return nil, err
	}
	given, hidden, files := e.Environ, &secrets{}, config.Of(dirs)
	process := e
	if e, err = files.WithDotEnv(e); err != nil {
		return nil, err
	}
	var reading sync.WaitGroup
	defer reading.Wait()
	reading.Go(func() { hidden.Add(files.Secrets(process)...) }) // meanwhile, nothing is printed
	store, err := fsstore.Open(ctx, dirs.Store, fsstore.Options{Home: dirs.Home})
	if err != nil {
		return nil, err
	}
	k := &kit{opts: o, inv: inv, engine: isOurs(e, inv), store: store, secrets: hidden, given: given}
	stderr := hidden.NewWriter(e.Stderr)
	e.Stderr = stderr
	k.run = &runenv.Run{Env: e, Dirs: dirs, Files: files, Secrets: &hidden.Set, Process: inv.process}
	k.flush = stderr.Flush
	k.run.Log = log.New(k.ofEngine(protocol.EnvRunDir), &hidden.Set, e.Now)
	k.batch = cas.NewBatch(store, e.Now)
	k.turns = newTurns(k.batch, store, out, e.Now, k.secrets)
	k.run.Text, k.run.Published = k.turns.text, k.turns.published
	head, err := k.head(ctx)
	if err != nil {
		return nil, err
	}
	if k.thread, err = thread.Open(ctx, k.batch, head); err != nil {
		return nil, fmt.Errorf("head of thread %s in store %s: %w", k.inv.thread, dirs.Store, err)
	}
	return k, k.instruction(ctx)
}

// head returns the node that the step must follow: the engine's, or for an agent started by hand the head in
// the index.
func (k *kit) head(ctx context.Context) (cas.Hash, error) {
	if h := k.ofEngine(protocol.EnvHead); h != "" {
		head, err := protocol.ParseHash(h)
		if err != nil {
			return "", fmt.Errorf("%s: %w", protocol.EnvHead, err)
		}
		return head, nil
	}
	id, err := threadid.Parse(k.inv.thread)
	if err != nil {
		return "", err
	}
	k.inv.thread = id
	head, err := fileheads.Open(k.run.Dirs.Home, durable.OS()).Head(ctx, id)
	if errors.Is(err, heads.ErrNoThread) {
		return "", fmt.Errorf("thread %s is not active in %s", id, k.run.Dirs.Home)
	}
	return head, err
}

// isOurs reports whether the engine's variables refer to this step. They don't if an agent's tool started
// another agent, which inherits them.
func isOurs(e env.Env, inv invocation) bool {
	id, role := e.Get(protocol.EnvThread), e.Get(protocol.EnvRole)
	return (id == "" || id == inv.thread) && (role == "" || role == inv.role)
}

// instruction loads the edge's prompt and the base for limits.
func (k *kit) instruction(ctx context.Context) error {
	if base := k.ofEngine(protocol.EnvLimitBase); base != "" {
		n, err := strconv.Atoi(base)
		if err != nil || n < 0 {
			return fmt.Errorf("%s: %q is not a step index", protocol.EnvLimitBase, base)
		}
		k.limitBase = n
	}
	ref := k.inv.promptRef
	if ref == "" && k.inv.prompt == nil {
		ref = protocol.Hash(k.ofEngine(protocol.EnvPrompt))
	}
	switch {
	case ref != "":
		text, err := cas.Read[protocol.Text](ctx, k.batch, ref)
		if err != nil {
			return fmt.Errorf("%s: %w", protocol.FlagPromptRef, err)
		}
		k.edge = string(text)
	case k.inv.prompt != nil:
		k.edge = *k.inv.prompt
	}
	return nil
}

// brief returns the prompt for the role, given the session in which it continues.
func (k *kit) brief(ctx context.Context) (step.Brief, error) {
	s := k.session
	return step.NewBrief(ctx, k.batch, k.thread, step.Assignment{
		Thread: k.inv.thread, Role: k.inv.role, EdgePrompt: k.edge, Cwd: k.run.Env.Dir,
		Artifacts:  k.run.Env.Get(protocol.EnvArtifacts),
		Structured: k.opts.Structured, Since: s.since, Rejected: s.rejected,
	})
}

// request builds the agent's request.
func (k *kit) request(b step.Brief) *Request {
	s := k.session
	k.role = b.Role
	k.run.Env = k.run.Env.With(protocol.EnvThread, k.inv.thread).With(protocol.EnvRole, k.inv.role)
	k.run.First = k.ofEngine(protocol.EnvRunDir) != ""
	k.run.Key = cmp.Or(k.ofEngine(protocol.EnvRunDir), filepath.Join(k.run.Dirs.Home, string(k.thread.Head)))
	r := &Request{
		Thread: k.inv.thread, Role: k.inv.role, Number: b.Parts.Number, Visit: b.Parts.Visit,
		Workflow: b.Workflow, Schema: b.Schema,
		Head: k.thread.Head, Start: k.thread.Start,
		SessionID: s.id, Fork: s.way == forked || s.way == cutOff, Cut: s.mark, Interrupted: s.interrupted,
		Cwd: k.run.Env.Dir, RunDir: k.ofEngine(protocol.EnvRunDir), Alias: k.alias(), kit: k,
	}
	if k.engine {
		r.Budget = protocol.ParseBudget(k.run.Env.Get(protocol.EnvBudget))
		r.Reported = k.failedUsage()
	}
	r.setPrompt(b)
	return r
}

// failedUsage returns the usage of this agent's failed tries in this visit.
func (k *kit) failedUsage() protocol.Usage {
	var done []protocol.Try
	if k.thread.Last != nil {
		done = k.thread.Last.Tries
	}
	var sum protocol.Usage
	for _, t := range runfiles.Dir(k.ofEngine(protocol.EnvRunDir)).Tries(done) {
		if t.Visit == k.run.Env.Get(protocol.EnvVisitKey) && t.Alias == k.run.Env.Get(protocol.EnvAgent) && t.Usage != nil {
			sum = sum.Add(*t.Usage)
		}
	}
	return sum
}

// ofEngine returns a variable that the engine has set, or "" outside the engine.
func (k *kit) ofEngine(name string) string {
	if !k.engine {
		return ""
	}
	return k.run.Env.Get(name)
}

// alias returns the agent's name in the config.
func (k *kit) alias() string {
	if a := k.run.Env.Get(protocol.EnvAgent); a != "" {
		return a
	}
	return strings.TrimPrefix(protocol.AgentName(k.opts.Name), protocol.AgentPrefix)
}
