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

// Engine steps threads. Build it with [Open], or as a literal.
type Engine struct {
	// Reader tells where threads stand. If it is ReadOnly, the engine writes nothing and takes no
	// locks, and operations that would change something fail.
	Reader status.Reader
	Given  []string // the environment without .env; nil: the same
	// Uwf is the path of the uwf that agents find in UWF_BIN: those that do not commit their own steps need it.
	// Configure sets it to the uwf beside this program, else on PATH; "": there is none.
	Uwf string
	// Run runs an invocation of an agent; nil: as a process, [agentproc.Run].
	Run Runner
	// Project is the path of the project's config that Config puts beneath the user's; "": none.
	Project string
	// Loaded is called each time the config has been read, with the path of the project's config.
	Loaded func(project string, err error)
	// Events is called with what happens, as it happens, on one goroutine at a time; nil: nobody
	// listens. What works on a thread waits for it: to act on an event, it starts a goroutine.
	Events func(Event)
	// Turns asks for the events [Turn] and [Writing], for which the nodes of an agent at work are
	// read.
	Turns bool
	// AtRest asks for the events [AtRest], for which threads are looked at before and after work
	// on them.
	AtRest bool
	// Log is told how each action was decided; nil: nobody is.
	Log *slog.Logger
	// Shared: other machines step these threads, too. A step that fails by fault of this machine
	// brings them to no rest.
	Shared bool
	Hold   worktree.Sandbox // for commands that are of no step; nil: they run as they are
	// PutBack undoes the changes of commands whose agent ended without undoing them, and says
	// which; nil: the next agent does it.
	PutBack func() (said string, err error)
	// Hidden returns the absolute paths that agents in a directory may not read. Snapshots leave
	// out files there that git does not track; nil: there are none.
	Hidden func(c protocol.Config, dir string) []string
	Grace  time.Duration // how long an agent gets to stop when asked; 0: [agentproc.DefaultGrace]

	serial *sync.Mutex // held while Events is called; nil: there is only one goroutine
	// driven is the run that this engine works for, with all children; nil: none.
	driven *driven
	// path leads from the driven thread to the child at work; "": the thread itself.
	path, label string // see [StepInfo]
	// load reads the config, with that of a project beneath it; nil: Config is all there is.
	load func(ctx context.Context, project string) (protocol.Config, error)
}

// Runner runs an agent to its end, as [agentproc.Run] does.
type Runner func(context.Context, agentproc.Invocation) (agentproc.Outcome, error)

// StepOptions for one step. The zero value works.
type StepOptions struct {
	Agent   string        `json:"agent"`   // --agent: an alias, else a command line
	Fresh   bool          `json:"fresh"`   // do not adopt an interrupted step's result
	Timeout time.Duration `json:"timeout"` // 0: the config's
	// Cwd is where the thread works from now on, absolute; "": where it did.
	Cwd string `json:"cwd,omitempty"`
	// Wake continues a parked thread before its time.
	Wake bool `json:"wake,omitempty"`
	// Agents are aliases or command lines by role; they take precedence over Agent.
	Agents map[string]string `json:"agents,omitempty"`
	// Scenario is the absolute path of a script from which uwf-mock plays all roles, including
	// commands and persons.
	Scenario string `json:"scenario,omitempty"`

	// KeepFiles leaves the files as they are: those from before a step that is made again, and
	// those of a change that was cut off.
	KeepFiles bool `json:"keepFiles,omitempty"`
	// Parallel bounds how many threads of a run are at work at once; 0: twice as many
	// as there are processors.
	Parallel int `json:"parallel,omitempty"`

	earlier map[string]string // agents chosen for steps before, by role or [heads.AllRoles]

	due   bool // only if it is due
	more  bool // another step is to follow
	toEnd bool // and all that come after it
}

// reading returns an engine with another reader.
func (e *Engine) reading(r *status.Reader) *Engine {
	with := *e
	with.Reader = *r
	return &with
}

// accounts are those that the home's agents use, with their limits.
func (e *Engine) accounts() limits.Accounts {
	return limits.Accounts{Dir: e.Reader.Dirs.Limits(), FS: e.Reader.FS, Now: e.Reader.Env.Now, Warn: e.warn}
}

func (e *Engine) grace() time.Duration {
	if e.Grace == 0 {
		return agentproc.DefaultGrace
	}
	return e.Grace
}

// Accounts are the accounts of agents, with their limits.
type Accounts = limits.Accounts

// Casting is who plays a role, with what and where it was found.
type Casting = agentselect.Casting

// Worst is what a role may cost at most.
type Worst = agentselect.Worst

// RealDir returns the path of a directory without symbolic links, as [Engine.Start] wants it.
func RealDir(dir string) (string, error) { return cwd.Real(dir) }

// Code is the code of an error: "" of nil, protocol.CodeFailed of one that has none.
func Code(err error) protocol.Code {
	if known, is := err.(*protocol.Error); err == nil || is && known == nil {
		return ""
	}
	return fault.Of(err).Code
}

func (e *Engine) nowMs() int64 { return e.Reader.Env.Now().UnixMilli() }

// Options for [Open]. The zero value works.
type Options struct {
	Home, Store string // the directories; "": as the environment names them, see package home
}

// Open returns an engine on the home of a process, as uwf itself uses it: the nodes
// and the heads are files, .env adds to the environment, and agents come from
// config.yaml. Nothing is written, and nothing need exist yet.
//
// A program opens its engine with package host, which adds what it takes to run commands and workers.
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

// Configure gives an engine its environment and its config: those of a process, with the .env
// and the config.yaml of the engine's home, and the settings of the project in which the
// process is. It fails if another user could have written them. A .env that may not be read is
// an error only for operations that need the config: a role may read threads although the keys
// are hidden from it.
func (e *Engine) Configure(process env.Env) error {
	if err := config.Distrust(e.Reader.Dirs); err != nil {
		return err
	}
	with, unread := config.LoadDotEnv(e.Reader.Dirs.DotEnv(), process)
	if unread != nil && !errors.Is(unread, fs.ErrPermission) {
		return unread
	}
	e.Reader.Env, e.Given = with, process.Environ
	if e.Uwf == "" {
		e.Uwf, _ = proc.Beside(process.Exe, "uwf", process.Dir, process.Environ)
	}
	e.load = func(ctx context.Context, project string) (protocol.Config, error) {
		if unread != nil {
			return protocol.Config{}, unread
		}
		c, err := config.Load(ctx, e.Reader.Dirs.Config(), with)
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

// InProject returns an engine with the settings of the project that a directory is in:
// those of a thread are its directory's, wherever somebody types.
func (e *Engine) InProject(dir string) (*Engine, error) {
	if e.load == nil { // its Config was set by the caller
		return e, nil
	}
	found, err := e.projectOf(dir)
	if errors.Is(err, fs.ErrNotExist) { // the step reports that the directory is gone
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

// projectOf looks for the settings of the project that a directory is in.
func (e *Engine) projectOf(dir string) (string, error) {
	found, ignored, err := ProjectConfig(e.Reader.Env, dir, e.Reader.Dirs)
	if err != nil {
		return "", fault.Of(err)
	}
	for _, i := range ignored {
		e.warn(fmt.Sprintf("ignored %s: it %s", i.Path, i.Why))
	}
	return found, nil
}

// ProjectConfig is the path of the settings of the project that a directory is in; "":
// there are none. The user's own config is none, though it lies in a directory of the
// same name. ignored are files that do not count, and why.
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

// CheckFirst returns why the first role of a thread could not be played, or nil, so that a
// caller can find out before the run begins. The thread's directory must have no symbolic
// links. What only the agent can judge, such as its model, is left to the agent. Errors are
// *protocol.Error.
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
	if c, _ := e.Casting().Program(ctx, w, first.Role, first.Command, o.Wish()); c.Problem != nil {
		return c.Problem
	}
	_, err = e.Workplace(ctx, first.Role, start.Cwd, first.Location)
	return err
}

// Casting finds who plays a role of a thread.
func (e *Engine) Casting() agentselect.Caster {
	return agentselect.Caster{Env: e.Reader.Env, Dirs: e.Reader.Dirs, Config: e.Reader.Config}
}

// Wish is what the options say about which agent plays which role.
func (o StepOptions) Wish() agentselect.Wish {
	return agentselect.Wish{Agent: o.Agent, Agents: o.Agents, Earlier: o.earlier, Scenario: o.Scenario, Timeout: o.Timeout}
}

// agentsFor adds to the options of a thread's steps the agents that a person has chosen for
// its earlier ones, and keeps those chosen now. They are facts of this machine: neither a
// remote nor a bundle brings any. A scenario's agents are not kept.
func (e *Engine) agentsFor(ctx context.Context, h *lockedThread, o StepOptions) (StepOptions, error) {
	if o.Scenario != "" {
		return o, nil
	}
	before, err := e.Reader.ChosenAgents(ctx, h.facts)
	if err != nil {
		return o, err
	}
	o.earlier = before
	wish := o.Wish()
	now := e.Casting().Chosen(ctx, wish)
	if maps.Equal(now, before) || e.Casting().Named(ctx, wish) != nil { // the step says what is wrong
		return o, nil
	}
	h.facts.Agents = now
	return o, e.Reader.Heads.SetFacts(ctx, h.id, heads.Facts{Agents: now})
}
