package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"sync"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/engine/agentproc"
	"github.com/united-workforce/uwf/engine/internal/agentselect"
	"github.com/united-workforce/uwf/engine/internal/background"
	"github.com/united-workforce/uwf/engine/internal/create"
	"github.com/united-workforce/uwf/engine/internal/cwd"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/engine/internal/limits"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/engine/worktree"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/project"
)

// Engine makes the steps of threads. Create it with [Open], or as a literal.
type Engine struct {
	// Reader reads the state of threads. If it is ReadOnly, the engine writes nothing and takes no locks, and
	// operations that would change something fail.
	Reader  status.Reader
	BaseEnv []string // environment without .env; nil means that there is no .env
	// Uwf is the path of the uwf program, which agents find in UWF_BIN. Agents that don't commit their own
	// steps need it. Configure sets it to the uwf next to this program, else the one on PATH; "" means none.
	Uwf string
	// Run runs an invocation of an agent. If nil, [agentproc.Run] starts a process.
	Run Runner
	// Project is the path of the project config, which the user's config overrides; "" means none.
	Project string
	// Loaded, if not nil, is called each time the config has been read, with the path of the project config.
	Loaded func(project string, err error)
	// Events, if not nil, is called for every event as it happens, never concurrently. The engine waits until
	// it returns, so start a goroutine to act on an event.
	Events func(Event)
	// Turns enables the events [Turn] and [Writing]. For them, the engine reads the nodes of running agents.
	Turns bool
	// AtRest enables the events [AtRest]. For them, the engine checks threads before and after each action.
	AtRest bool
	// Log, if not nil, logs how each action was chosen.
	Log *slog.Logger
	// Shared means that other machines also step these threads. A step that fails because of this machine is
	// then not reported as AtRest.
	Shared  bool
	Sandbox worktree.Sandbox // sandbox of commands outside a step; nil means none
	// PutBack reverts the changes of commands whose agent was killed, and describes them. If nil, the next
	// agent reverts them.
	PutBack func() (logged string, err error)
	// Hidden returns the absolute paths that agents in dir cannot read. Snapshots omit untracked files there.
	// If nil, there are none.
	Hidden func(c protocol.Config, dir string) []string
	Grace  time.Duration // time an agent gets to stop when asked; 0 means [agentproc.DefaultGrace]

	serial *sync.Mutex // held while Events runs; nil if there is only one goroutine
	// driven is the run of a thread and its children that this engine works for; nil if none.
	driven *driven
	// path is the path from the driven thread to the current child; "" is the thread itself.
	path, label string // see [StepInfo]
	// load reads the config and the project config. If nil, Config is complete.
	load func(ctx context.Context, project string) (protocol.Config, error)
}

// Runner runs an agent until it ends, as [agentproc.Run] does.
type Runner func(context.Context, agentproc.Invocation) (agentproc.Outcome, error)

// StepOptions are the options of one step. The zero value is valid.
type StepOptions struct {
	Agent   string        `json:"agent"`   // alias or command line, as in --agent
	Fresh   bool          `json:"fresh"`   // don't adopt an interrupted step's result
	Timeout time.Duration `json:"timeout"` // 0 means the configured timeout
	// Cwd is the absolute directory in which the thread works from now on; "" keeps the current one.
	Cwd string `json:"cwd,omitempty"`
	// Wake continues a rate-limited thread early.
	Wake bool `json:"wake,omitempty"`
	// Agents maps roles to aliases or command lines. It takes precedence over Agent.
	Agents map[string]string `json:"agents,omitempty"`
	// Scenario is the absolute path of a script from which uwf-mock plays all roles, including commands and
	// persons.
	Scenario string `json:"scenario,omitempty"`

	// KeepFiles leaves the files as they are when a step is retried or an interrupted change is settled.
	KeepFiles bool `json:"keepFiles,omitempty"`
	// Parallel limits how many threads of a run work at once; 0 means twice the number of processors.
	Parallel int `json:"parallel,omitempty"`

	earlier map[string]string // agents chosen for earlier steps, by role or [heads.AllRoles]

	due   bool // do nothing unless the thread is due
	more  bool // another step follows
	toEnd bool // the run continues to the end
}

// reading returns a copy of e that uses the reader r.
func (e *Engine) reading(r *status.Reader) *Engine {
	with := *e
	with.Reader = *r
	return &with
}

// accounts returns the accounts of the home's agents.
func (e *Engine) accounts() limits.Accounts {
	return limits.Accounts{Dir: e.Reader.Dirs.Limits(), FS: e.Reader.FS, Now: e.Reader.Env.Now, Warn: e.warn}
}

// SpentToday returns what the agents of the home have cost today, and limits.perDay; zero if that is not set.
func (e *Engine) SpentToday(ctx context.Context) (spent, limit protocol.Amount, err error) {
	c, err := e.Reader.Config(ctx)
	if err == nil {
		spent, limit = e.accounts().Today(c.Limits).Spent()
	}
	return spent, limit, err
}

func (e *Engine) grace() time.Duration {
	if e.Grace == 0 {
		return agentproc.DefaultGrace
	}
	return e.Grace
}

// Accounts holds the agents' accounts and their limits.
type Accounts = limits.Accounts

// Casting describes which agent plays a role, and where that was configured.
type Casting = agentselect.Casting

// Worst is the maximum cost of a role.
type Worst = agentselect.Worst

// RealDir returns the path of a directory with symbolic links resolved, as [Engine.Start] requires.
func RealDir(dir string) (string, error) { return cwd.Real(dir) }

// Code returns the code of err: "" if err is nil, protocol.CodeFailed if it has none.
func Code(err error) protocol.Code {
	if known := new(protocol.Error); err == nil || errors.As(err, &known) && known == nil {
		return ""
	}
	return fault.Of(err).Code
}

func (e *Engine) nowMs() int64 { return e.Reader.Env.Now().UnixMilli() }

// Options are the options of [Open]. The zero value is valid.
type Options struct {
	Home, Store string // directories; "" means as the environment sets them (package home)
}

// Open returns an engine configured like uwf itself: nodes and heads are files in the home of the process,
// .env adds to the environment, and config.yaml defines the agents. Open writes nothing, and nothing needs to
// exist yet.
//
// Programs use package host instead, which adds what is needed to run commands and workers.
func Open(ctx context.Context, process env.Env, o Options) (_ *Engine, err error) {
	defer fault.Coded(&err)
	if err := background.NotCalled(); err != nil {
		return nil, err
	}
	dirs, err := home.Find(process, o.Home, o.Store)
	if err != nil {
		return nil, err
	}
	nodes, err := fsstore.Open(ctx, dirs.Store, fsstore.Options{Home: dirs.Home})
	if err != nil {
		return nil, fault.Of(err)
	}
	e := &Engine{Turns: true, serial: &sync.Mutex{}, Reader: status.Reader{Dirs: dirs, FS: durable.OS(), Store: nodes,
		Heads: fileheads.Open(dirs.Home, durable.OS())}}
	e.Reader.Warn = func(text string) { e.warn(text) }
	return e, e.Configure(process)
}

// Configure sets the engine's environment and config from the process, the .env and config.yaml of the
// engine's home, and the project config for the working directory. It fails if another user could have
// written these files. An unreadable .env is an error only for operations that need the config: a role can
// read threads although the keys are hidden from it.
func (e *Engine) Configure(process env.Env) error {
	if err := config.Distrust(e.Reader.Dirs); err != nil {
		return err
	}
	if e.Reader.Files == nil {
		e.Reader.Files = config.Of(e.Reader.Dirs)
	}
	with, unread := e.Reader.Files.WithDotEnv(process)
	if unread != nil && !errors.Is(unread, fs.ErrPermission) {
		return unread
	}
	e.Reader.Env, e.BaseEnv = with, process.Environ
	if e.Uwf == "" {
		e.Uwf, _ = proc.Beside(process.Exe, "uwf", process.Dir, process.Environ)
	}
	e.load = func(ctx context.Context, project string) (protocol.Config, error) {
		if unread != nil {
			return protocol.Config{}, unread
		}
		c, err := e.Reader.Files.Load(ctx, with)
		if err == nil {
			c, err = config.WithProject(c, project)
		} else {
			known := *fault.Of(err)
			known.Machine, err = true, &known
		}
		if e.Loaded != nil {
			e.Loaded(project, err)
		}
		return c, err
	}
	e.Reader.Config = func(ctx context.Context) (protocol.Config, error) { return e.load(ctx, e.Project) }
	found, err := e.projectOf(process.Dir)
	e.Project = found
	return err
}

// InProject returns an engine with the project config for dir. A thread uses the project config of its own
// directory, not of the caller's working directory.
func (e *Engine) InProject(dir string) (*Engine, error) {
	if e.load == nil { // the caller set its Config
		return e, nil
	}
	found, err := e.projectOf(dir)
	if errors.Is(err, fs.ErrNotExist) { // the step reports the missing directory
		found, err = "", nil
	}
	if err != nil || found == e.Project {
		return e, err
	}
	with := *e
	with.Project = found
	with.Reader.Config = func(ctx context.Context) (protocol.Config, error) { return e.load(ctx, found) }
	return &with, nil
}

// projectOf returns the path of the project config for dir.
func (e *Engine) projectOf(dir string) (string, error) {
	found, ignored, err := ProjectConfig(e.Reader.Env, dir, e.Reader.Dirs)
	if err != nil {
		return "", fault.Of(err)
	}
	for _, i := range ignored {
		e.warn(fmt.Sprintf("ignored %s: it %s", i.Path, i.Reason))
	}
	return found, nil
}

// ProjectConfig returns the path of the project config that applies in dir, or "". The user's own config
// doesn't count, although its directory has the same name. ignored lists files that don't count, with the
// reasons.
func ProjectConfig(process env.Env, dir string, dirs home.Dirs) (path string, ignored []project.Ignored, err error) {
	path, ignored, err = project.From(process, dir).File(config.ProjectFile())
	if err != nil || path == "" {
		return "", ignored, err
	}
	a, err := os.Stat(path)
	if err != nil {
		return "", ignored, err
	}
	if b, err := os.Stat(dirs.Config()); err == nil && os.SameFile(a, b) {
		return "", nil, nil
	}
	return path, ignored, nil
}

// CheckFirst returns an error if the first role of a thread could not run, so that a caller can report it
// before the run starts. The thread's directory must not contain symbolic links. CheckFirst doesn't check
// what only the agent can check, such as its model. Errors are *protocol.Error.
func (e *Engine) CheckFirst(ctx context.Context, start protocol.Start, o StepOptions) error {
	e = e.reading(e.Reader.ConfigOnce())
	w, err := cas.Read[protocol.Workflow](ctx, e.Reader.Store, start.Workflow)
	if err != nil {
		return create.WrongNode(start.Workflow, "workflow", err)
	}
	if err := create.Runnable(w); err != nil {
		return err
	}
	first, err := moderator.Next(ctx, moderator.State{Workflow: w, Start: start, Artifacts: e.Reader.Dirs.Artifacts("x")})
	if err != nil {
		return fault.Of(err)
	}
	if first.Kind != moderator.Run {
		return nil
	}
	if c, _ := e.Casting().Program(ctx, w, first.Role, first.Command, o.Choices()); c.Problem != nil {
		return c.Problem
	}
	_, err = e.Workplace(ctx, first.Role, start.Cwd, first.Location)
	return err
}

// Casting returns the caster, which chooses agents for the roles of threads.
func (e *Engine) Casting() agentselect.Caster {
	return agentselect.Caster{Env: e.Reader.Env, Dirs: e.Reader.Dirs, Config: e.Reader.Config}
}

// Choices returns the options that choose agents.
func (o StepOptions) Choices() agentselect.Choices {
	return agentselect.Choices{Agent: o.Agent, Agents: o.Agents, Earlier: o.earlier, Scenario: o.Scenario, Timeout: o.Timeout}
}

// agentsFor adds the agents that were chosen for earlier steps of the thread to the options, and saves the
// newly chosen ones. These choices stay on this machine: neither remotes nor bundles carry them. A scenario's
// agents are not saved.
func (e *Engine) agentsFor(ctx context.Context, h *lockedThread, o StepOptions) (StepOptions, error) {
	if o.Scenario != "" {
		return o, nil
	}
	before, err := e.Reader.ChosenAgents(ctx, h.facts)
	if err != nil {
		return o, err
	}
	o.earlier = before
	wish := o.Choices()
	now := e.Casting().Chosen(ctx, wish)
	if maps.Equal(now, before) || e.Casting().Named(ctx, wish) != nil { // the step reports the error
		return o, nil
	}
	h.facts.Agents = now
	return o, e.Reader.Heads.SetFacts(ctx, h.id, heads.Facts{Agents: now})
}
