// Package sandbox runs the commands of roles in a sandbox. They run code that a model may have written: a
// Makefile, tests, scripts. So they are restricted like the commands of models.
package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/united-workforce/uwf/engine/agentproc"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/gitdir"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/runfiles"
	"github.com/united-workforce/uwf/util/safeopen"
	"github.com/united-workforce/uwf/utilagent/box"
	"github.com/united-workforce/uwf/utilagent/confine"
	"github.com/united-workforce/uwf/utilagent/offlimits"
	"github.com/united-workforce/uwf/utilagent/tools"
)

// Sandbox runs the programs that an engine starts. Create it with [New].
type Sandbox struct {
	env    env.Env // without .env; Exe is a program that sandboxes commands when started again
	dirs   home.Dirs
	box    string // path of uwf-box; "" if it is not installed
	config func(context.Context) (protocol.Config, error)
	warn   func(string)
	warned sync.Map // warnings already printed

	// ahead is a uwf-box for the next command, which starts while one runs. One command is rarely the only one, but the
	// first of a process may be.
	ahead atomic.Pointer[proc.Ahead]
	boxed atomic.Bool // a command has run in namespaces
}

// New returns the sandbox of a home. uwf is the path of the uwf program; uwf-box is also looked up next to
// it.
func New(process env.Env, uwf string, dirs home.Dirs, config func(context.Context) (protocol.Config, error),
	warn func(string)) *Sandbox {
	program := cmp.Or(box.Find(process.Exe), box.Find(uwf))
	return &Sandbox{env: process, dirs: dirs, config: config, warn: warn, box: program}
}

func (s *Sandbox) warnOnce(text string) {
	if _, known := s.warned.LoadOrStore(text, true); !known {
		s.warn(text)
	}
}

// Run runs agents directly, and the commands of roles in a sandbox.
func (s *Sandbox) Run(ctx context.Context, inv agentproc.Invocation) (agentproc.Outcome, error) {
	proc.AwaitSignals(ctx)
	settings, err := s.config(ctx)
	if err != nil {
		return agentproc.Outcome{}, err
	}
	if err := s.holdsNetwork(settings, inv); err != nil {
		return agentproc.Outcome{}, err
	}
	if confines(settings, inv) {
		s.warnMissingBox()
	}
	if !inv.Plain {
		return agentproc.Run(ctx, inv)
	}
	switch held, err := s.holdsCommands(settings); {
	case err != nil:
		return agentproc.Outcome{}, err
	case !held:
		return agentproc.Run(ctx, inv)
	}
	return s.runHeld(ctx, settings, inv)
}

// PutBack reverts the changes of commands that were killed, and describes them.
func (s *Sandbox) PutBack() (message string, err error) {
	changes, err := box.Recover(context.Background(), s.dirs.Box(), box.SharedState(s.dirs))
	return strings.Join(changes, "; it "), err
}

// holdsCommands reports whether commands run in a sandbox, within the abilities of this machine. It returns an
// error if the config requires more.
func (s *Sandbox) holdsCommands(settings protocol.Config) (bool, error) {
	setting := config.CommandSandbox(settings).Mode
	able := confine.Level() > 0 && s.env.Exe != ""
	switch {
	case setting == protocol.SandboxNone:
		return false, nil
	case setting == protocol.SandboxRequired && s.box == "":
		return false, fault.New(protocol.CodeAgent, "command roles must run in namespaces, but %s is not installed",
			box.Program).Because("namespaces-missing", "install", box.Install)
	case setting == protocol.SandboxLandlock && (!able || !confine.Seccomp()):
		return false, fault.New(protocol.CodeAgent, "command roles must run in a sandbox, which is not possible: %s",
			confine.Describe()).Because("landlock-missing")
	case !able:
		s.warnOnce("command roles run without a sandbox here: they can do anything you can (" + confine.Describe() + ")")
	}
	return true, nil
}

// confines reports whether a program runs in a sandbox, or runs its own commands in one.
func confines(settings protocol.Config, inv agentproc.Invocation) bool {
	switch {
	case inv.Plain:
		return config.CommandSandbox(settings).Mode != protocol.SandboxNone
	case config.OwnsModels(inv.Command) || config.IsAdapter(inv.Command):
		return config.Sandbox(settings, inv.Alias).Mode != protocol.SandboxNone
	}
	return false
}

// missingBox is the file in [home.Dirs.Box] that records the warning about the missing uwf-box.
const missingBox = "missing"

// warnMissingBox warns once per home that uwf-box is not installed, since go install cannot install the
// programs that a program needs.
func (s *Sandbox) warnMissingBox() {
	if runtime.GOOS != "linux" || s.box != "" {
		return
	}
	if err := os.MkdirAll(s.dirs.Box(), 0o700); err != nil {
		return // other code reports a read-only home
	}
	f, err := os.OpenFile(filepath.Join(s.dirs.Box(), missingBox), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	_ = f.Close()
	s.warn(box.Program + " is not installed, so the sandbox works without namespaces; to install it: " + box.Install)
}

// holdsNetwork returns an error if the config restricts the network and this machine cannot enforce it. The
// program must not run with full network access instead.
func (s *Sandbox) holdsNetwork(settings protocol.Config, inv agentproc.Invocation) error {
	network, key := networkOf(settings, inv), "commands.sandbox.network"
	problem := ""
	switch {
	case network.All():
	case !inv.Plain && !config.OwnsModels(inv.Command) && !config.IsAdapter(inv.Command):
		key = "agents." + inv.Alias + ".sandbox.network"
		problem = "only the network of command roles, of uwf-builtin's commands and of adapters' programs can be " +
			"limited"
	case inv.Plain && config.CommandSandbox(settings).Mode == protocol.SandboxNone:
		problem = "their sandbox.mode is none"
	case s.box == "":
		problem = box.Program + " is not installed"
	}
	if problem == "" {
		return nil
	}
	return fault.New(protocol.CodeAgent, "cannot run %q with network %s: %s", inv.Role, network,
		problem).Because("network-not-limited", "key", key)
}

func networkOf(settings protocol.Config, inv agentproc.Invocation) protocol.Network {
	alias := inv.Alias
	if inv.Plain {
		alias = ""
	}
	return config.Network(settings, alias, inv.Workflow, inv.Role)
}

// runHeld runs the command of a role in the sandbox.
func (s *Sandbox) runHeld(ctx context.Context, settings protocol.Config,
	inv agentproc.Invocation) (ran agentproc.Outcome, err error) {
	path, err := proc.LookPath(inv.Command, inv.Dir, inv.Env)
	if err != nil {
		return ran, &agentproc.NotFoundError{Command: inv.Command, Err: err}
	}
	c, off := s.holding(settings, inv)
	if c.Box != "" { // after a kill, the next process reads the exit status
		file := filepath.Join(inv.RunDir, runfiles.EndedFile)
		if c.Status, err = safeopen.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600, safeopen.NoFollow); err != nil {
			return ran, fmt.Errorf("record how %s ends: %w", plaintext.Word(inv.Command), err)
		}
		defer c.Status.Close()
	}
	held, end, err := s.held(ctx, settings, c, off, proc.Command{Path: path, Args: inv.Args, Dir: inv.Dir, Env: inv.Env})
	if err != nil {
		return ran, err
	}
	command := inv.Command
	inv.Command, inv.Args, inv.Env = held.Path, held.Args, held.Env
	inv.Box, inv.Init, inv.Inherit = held.Box, held.Init, append(inv.Inherit, held.Inherit...)
	if held.Box != nil {
		started, again := inv.Started, s.boxed.Load()
		inv.Started = func(pid int) error {
			if again {
				s.ahead.Swap(box.StartAhead(held.Path, inv.Dir, c.Network, false)).Discard()
			}
			if started == nil {
				return nil
			}
			return started(pid)
		}
		held.Box.Soon, held.Box.Ahead = true, s.ahead.Swap(nil)
	}
	if ran, err = agentproc.Run(ctx, inv); errors.Is(err, proc.ErrNoInit) {
		err = &protocol.Error{Code: protocol.CodeAgent, Machine: true, Err: err, Message: "cannot sandbox a " +
			"command: its init crashed, or main of this program does not start with Main of package engine/host"}
	}
	var missing *agentproc.NotFoundError
	if errors.As(err, &missing) {
		missing.Command = command
	}
	ran.Held, ran.Contained, ran.Removed = end()
	s.boxed.Store(ran.Contained)
	return ran, err
}

// Hold sandboxes a command outside of any step, such as workspace.setup.
func (s *Sandbox) Hold(ctx context.Context, cmd proc.Command) (proc.Command, func(), error) {
	nothing := func() {}
	settings, err := s.config(ctx)
	if err != nil {
		return cmd, nothing, err
	}
	if holds, err := s.holdsCommands(settings); !holds || err != nil {
		return cmd, nothing, err
	}
	c, off := s.holding(settings, agentproc.Invocation{Plain: true, Dir: cmd.Dir})
	c.Readable = append(c.Readable, named(cmd.Args)...) // the user has typed these paths
	held, end, err := s.held(ctx, settings, c, off, cmd)
	return held, func() { _, _, removed := end(); removed() }, err
}

// linked returns the targets of a work tree's workspace.link links.
func linked(settings protocol.Config, dir string) []string {
	top := gitdir.Top(dir)
	if settings.Workspace == nil || top == "" {
		return nil
	}
	var links []string
	for _, name := range settings.Workspace.Link {
		links = append(links, filepath.Join(top, filepath.FromSlash(name)))
	}
	return named(links)
}

// named returns the files among some arguments, which must be absolute paths.
func named(words []string) (files []string) {
	for _, word := range words {
		if real, err := filepath.EvalSymlinks(word); err == nil && filepath.IsAbs(word) {
			files = append(files, real)
		}
	}
	return files
}

// held sandboxes a command. end reverts forbidden changes, describes them, and reports whether no process has
// outlived the command. Its temporary files are removed in the background.
func (s *Sandbox) held(
	ctx context.Context, settings protocol.Config, c tools.Commands, off offlimits.List, cmd proc.Command,
) (held proc.Command, end func() (message string, contained bool, removed func()), err error) {
	w, err := tools.OpenWorkspace(cmd.Dir)
	if err != nil {
		return cmd, nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Close())
		}
	}()
	w.Limit(off)
	s.recoverHeld(ctx, c)
	cmd.Env = slices.DeleteFunc(slices.Clone(cmd.Env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return tools.EscapesSandbox(name)
	})
	if config.CommandSandbox(settings).Caches == "user" {
		c.Writable = append(c.Writable, tools.CacheDirs(cmd.Env)...)
	} else if c.Exe != "" {
		more, dirs := w.Caches(cmd.Env, s.env.Now())
		cmd.Env, c.Writable = append(cmd.Env, more...), append(c.Writable, dirs...)
	}
	name := cmd.Path
	held, done, err := c.Hold(ctx, w, cmd)
	if err != nil {
		return cmd, nil, fmt.Errorf("%s: %w", plaintext.Word(name), err)
	}
	return held, func() (string, bool, func()) {
		message, closed := done(), make(chan error, 1)
		remove, top := func() { closed <- w.Close() }, gitdir.Top(cmd.Dir)
		if top != "" && strings.HasPrefix(safeopen.Resolved(os.TempDir()), top+string(filepath.Separator)) {
			remove() // the step's snapshot must not contain them
		} else {
			go remove()
		}
		return message, held.Box != nil && w.Unboxed() == nil, func() {
			if err := <-closed; err != nil { // the command has finished nevertheless
				s.warn("cannot remove the temporary files of a command: " + err.Error())
			}
		}
	}, nil
}

// recoverHeld reverts the changes of commands that were killed.
func (s *Sandbox) recoverHeld(ctx context.Context, c tools.Commands) {
	recovered, err := box.Recover(ctx, c.State, c.Guard)
	for _, text := range recovered {
		c.Warn("a command that was killed " + text)
	}
	if err != nil {
		c.Warn("cannot check what a killed command left behind: " + err.Error())
	}
}

// offLimits returns the paths that commands in a directory must not access.
func (s *Sandbox) offLimits(sandbox protocol.SandboxConfig, dir string, shown ...string) offlimits.List {
	get := s.env.Get
	return offlimits.New(offlimits.Options{
		UserHome: cmp.Or(get("HOME"), get("USERPROFILE")), Environ: s.env.Environ, Dir: dir,
		Home: s.dirs.Home, Store: s.dirs.Store,
		Hide: sandbox.DenyRead, AllowRead: slices.Concat(sandbox.AllowRead, shown), AllowWrite: sandbox.AllowWrite,
	})
}

// Hidden returns the paths that commands in a directory cannot read, including those that don't exist yet.
func (s *Sandbox) Hidden(c protocol.Config, dir string) []string {
	sandbox := config.Sandbox(c, "")
	paths := s.offLimits(sandbox, dir).Hidden()
	e := s.env
	e.Dir = dir
	for _, name := range sandbox.DenyRead {
		if path, err := home.Absolute(e, name); err == nil {
			paths = append(paths, path)
		}
	}
	return paths
}

// artifacts returns the artifacts directory of a run, the only one in the home that the command can see.
func (s *Sandbox) artifacts(environ []string) []string {
	if dir := s.dirs.OwnArtifacts(env.Env{Environ: environ}.Get(protocol.EnvArtifacts)); dir != "" {
		return []string{dir}
	}
	return nil
}

// holding returns how commands are sandboxed: with the settings for models' commands, except the sandbox
// block.
func (s *Sandbox) holding(settings protocol.Config, inv agentproc.Invocation) (tools.Commands, offlimits.List) {
	b, sandbox := cmp.Or(settings.Builtin, &protocol.BuiltinConfig{}), config.CommandSandbox(settings)
	guard := box.SharedState(s.dirs) // create it first, since a missing path cannot be hidden
	artifacts := s.artifacts(inv.Env)
	off := s.offLimits(sandbox, inv.Dir, artifacts...)
	c := tools.Commands{
		Shell: true, Guard: guard, Warn: s.warn, Once: s.warnOnce, Now: s.env.Now, Writable: slices.Concat(off.Writable(), artifacts),
		MustConfine: sandbox.Holds(), MustBox: sandbox.Mode == protocol.SandboxRequired, Nest: sandbox.Nests(false),
		Network: networkOf(settings, inv),
		Keep:    b.Capabilities, IPC: sandbox.SharesMemory(),
		NoUnixSockets: config.NoUnixSockets(b, sandbox.Mode, config.System{Sockets: confine.CanDenySockets()}),
		Box:           s.box, State: s.dirs.Box(), Home: s.env.Get("HOME"), Environ: s.env.Environ,
	}
	c.Readable = linked(settings, inv.Dir)
	if confine.Level() > 0 {
		c.Exe = s.env.Exe
	}
	return c, off
}
