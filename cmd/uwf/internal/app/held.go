package app

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

	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/agentproc"
	"github.com/united-workforce/uwf/engine/worktree"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/config"
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

// A role that is a command runs what a model has written before it: a Makefile, tests,
// scripts. So it is held back as the commands of models are.

// runner runs agents as they are, and roles that are commands held back.
func (a *App) runner(with *engine.Engine) engine.Runner {
	return func(ctx context.Context, inv agentproc.Invocation) (agentproc.Outcome, error) {
		settings, err := with.Reader.Config(ctx)
		if err != nil {
			return agentproc.Outcome{}, err
		}
		if err := a.holdsNetwork(settings, inv); err != nil {
			return agentproc.Outcome{}, err
		}
		if confines(settings, inv) {
			a.warnMissingBox(with.Reader.Dirs)
		}
		if !inv.Plain {
			return agentproc.Run(ctx, inv)
		}
		if held, err := a.holdsCommands(settings); !held || err != nil {
			if err != nil {
				return agentproc.Outcome{}, err
			}
			return agentproc.Run(ctx, inv)
		}
		return a.runHeld(ctx, with, settings, inv)
	}
}

// holdsCommands reports whether commands are held back, as well as that is possible here; an error if
// that is not enough.
func (a *App) holdsCommands(settings protocol.Config) (bool, error) {
	setting := config.CommandSandbox(settings).Mode
	able := confine.Level() > 0 && a.Env.Exe != ""
	switch {
	case setting == protocol.SandboxNone:
		return false, nil
	case setting == protocol.SandboxRequired && box.Find(a.Env.Exe) == "":
		return false, cmdline.Coded(protocol.CodeAgent, "roles that are commands must run in namespaces, and "+box.Program+" is not installed",
			box.Install, "uwf config set commands.sandbox.mode landlock does with less")
	case setting == protocol.SandboxLandlock && (!able || !confine.Seccomp()):
		return false, cmdline.Coded(protocol.CodeAgent, "roles that are commands must be confined, and cannot be: "+confine.Describe(),
			"use a Linux with Landlock; or uwf config set commands.sandbox.mode auto")
	case !able:
		a.unheld.Do(func() {
			a.Say("uwf: warning: roles that are commands are not confined here: they can do anything you can (%s)", confine.Describe())
		})
	}
	return true, nil
}

// confines reports whether what is started is confined, or confines what it starts.
func confines(settings protocol.Config, inv agentproc.Invocation) bool {
	switch {
	case inv.Plain:
		return config.CommandSandbox(settings).Mode != protocol.SandboxNone
	case config.OwnsModels(inv.Command) || config.IsAdapter(inv.Command):
		return config.Sandbox(settings, inv.Alias).Mode != protocol.SandboxNone
	}
	return false
}

// missingBox is the file in [home.Dirs.Box] of a home in which it was said that uwf-box is missing.
const missingBox = "missing"

// warnMissingBox says once in a home that uwf-box is not installed: go install has no list of what a
// program needs.
func (a *App) warnMissingBox(dirs home.Dirs) {
	if runtime.GOOS != "linux" || box.Find(a.Env.Exe) != "" {
		return
	}
	if err := os.MkdirAll(dirs.Box(), 0o700); err != nil {
		return // a home that cannot be written is said elsewhere
	}
	f, err := os.OpenFile(filepath.Join(dirs.Box(), missingBox), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	_ = f.Close()
	a.Say("uwf: warning: %s is not installed: commands and agents are confined without namespaces", box.Program)
	a.Hint("%s", box.Install)
}

// holdsNetwork returns an error if what a program can reach is limited and nothing here can do that:
// it must not run with the whole network instead.
func (a *App) holdsNetwork(settings protocol.Config, inv agentproc.Invocation) error {
	network, key := networkOf(settings, inv), "commands.sandbox.network"
	problem := ""
	switch {
	case network.All():
	case !inv.Plain && !config.OwnsModels(inv.Command) && !config.IsAdapter(inv.Command):
		key = "agents." + inv.Alias + ".sandbox.network"
		problem = "uwf limits the network of roles that are commands, of uwf-builtin's commands, and of programs that its adapters run"
	case inv.Plain && config.CommandSandbox(settings).Mode == protocol.SandboxNone:
		problem = "their sandbox.mode is none"
	case box.Find(a.Env.Exe) == "":
		problem = box.Program + " is not installed"
	}
	if problem == "" {
		return nil
	}
	return cmdline.Coded(protocol.CodeAgent, fmt.Sprintf("%q cannot be run with the network %s: %s", inv.Role, network, problem),
		"uwf config set "+plaintext.Word(key)+" all")
}

func networkOf(settings protocol.Config, inv agentproc.Invocation) protocol.Network {
	alias := inv.Alias
	if inv.Plain {
		alias = ""
	}
	return config.Network(settings, alias, inv.Workflow, inv.Role)
}

// runHeld runs the command of a role.
func (a *App) runHeld(ctx context.Context, with *engine.Engine, settings protocol.Config, inv agentproc.Invocation) (ran agentproc.Outcome, err error) {
	path, err := proc.LookPath(inv.Command, inv.Dir, inv.Env)
	if err != nil {
		return ran, &agentproc.NotFoundError{Command: inv.Command, Err: err}
	}
	c, off := a.holding(with, settings, inv)
	if c.Box != "" { // whoever comes after a kill reads how it ended
		file := filepath.Join(inv.RunDir, runfiles.EndedFile)
		if c.Status, err = safeopen.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600, safeopen.NoFollow); err != nil {
			return ran, fmt.Errorf("note how %s ends: %w", plaintext.Word(inv.Command), err)
		}
		defer c.Status.Close()
	}
	held, end, err := a.held(ctx, settings, c, off, proc.Command{Path: path, Args: inv.Args, Dir: inv.Dir, Env: inv.Env})
	if err != nil {
		return ran, err
	}
	inv.Command, inv.Args, inv.Env = held.Path, held.Args, held.Env
	inv.Box, inv.Init, inv.Inherit = held.Box, held.Init, append(inv.Inherit, held.Inherit...)
	ran, err = agentproc.Run(ctx, inv)
	said, contained, ended := end()
	ran.Held, ran.Contained = said, contained
	return ran, errors.Join(err, ended)
}

// hold holds back a command that is of no step, such as workspace.setup.
func (a *App) hold(with *engine.Engine) worktree.Sandbox {
	return func(ctx context.Context, cmd proc.Command) (proc.Command, func() error, error) {
		nothing := func() error { return nil }
		settings, err := with.Reader.Config(ctx)
		if err != nil {
			return cmd, nothing, err
		}
		if holds, err := a.holdsCommands(settings); !holds || err != nil {
			return cmd, nothing, err
		}
		c, off := a.holding(with, settings, agentproc.Invocation{Plain: true, Dir: cmd.Dir})
		c.Readable = append(c.Readable, named(cmd.Args)...) // a person has typed them
		held, end, err := a.held(ctx, settings, c, off, cmd)
		return held, func() error { _, _, err := end(); return err }, err
	}
}

// linked are what the links of workspace.link in a work tree lead to.
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

// named are the files that words name.
func named(words []string) (files []string) {
	for _, word := range words {
		if real, err := filepath.EvalSymlinks(word); err == nil && filepath.IsAbs(word) {
			files = append(files, real)
		}
	}
	return files
}

// held holds a command back. end puts back what it has changed that it must not, and returns what was
// said of it, and whether nothing has outlived it.
func (a *App) held(
	ctx context.Context, settings protocol.Config, c tools.Commands, off offlimits.List, cmd proc.Command,
) (held proc.Command, end func() (said string, contained bool, err error), err error) {
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
	a.recoverHeld(ctx, c)
	cmd.Env = slices.DeleteFunc(slices.Clone(cmd.Env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return tools.LeadsOut(name)
	})
	if config.CommandSandbox(settings).Caches == "user" {
		c.Writable = append(c.Writable, tools.CacheDirs(cmd.Env)...)
	} else if c.Exe != "" {
		more, dirs := w.Caches(cmd.Env, a.Env.Now())
		cmd.Env, c.Writable = append(cmd.Env, more...), append(c.Writable, dirs...)
	}
	name := cmd.Path
	held, done, err := c.Hold(ctx, w, cmd)
	if err != nil {
		return cmd, nil, fmt.Errorf("%s: %w", plaintext.Word(name), err)
	}
	return held, func() (string, bool, error) {
		said := done()
		return said, held.Box != nil && w.Unboxed() == nil, w.Close()
	}, nil
}

// recoverHeld ends what commands have left that were killed.
func (a *App) recoverHeld(ctx context.Context, c tools.Commands) {
	told, err := box.Recover(ctx, c.State, c.Guard)
	for _, text := range told {
		c.Warn("a command that was killed " + text)
	}
	if err != nil {
		c.Warn("what a killed command has left cannot be looked at: " + err.Error())
	}
}

// System is what this machine can do to hold programs back, and why they get no namespaces if so.
func (a *App) System() (config.System, box.Diagnosis) {
	a.diagnose.Do(func() { a.diagnosis = box.Diagnose(a.Env.Exe) })
	return config.System{
		Confines: confine.Level() > 0, Sockets: confine.HoldsSockets(), Namespaces: a.diagnosis.Works(),
	}, a.diagnosis
}

// offLimits is what commands in a directory must not touch.
func (a *App) offLimits(dirs home.Dirs, sandbox protocol.SandboxConfig, dir string) offlimits.List {
	get := a.Env.Get
	return offlimits.New(offlimits.Options{
		UserHome: cmp.Or(get("HOME"), get("USERPROFILE")), Environ: a.Env.Environ, Dir: dir, Home: dirs.Home, Store: dirs.Store,
		Hide: sandbox.DenyRead, AllowRead: sandbox.AllowRead, AllowWrite: sandbox.AllowWrite,
	})
}

// hidden are the places that commands in a directory may not read, those too that are
// not there yet.
func (a *App) hidden(dirs home.Dirs, c protocol.Config, dir string) []string {
	sandbox := config.Sandbox(c, "")
	paths := a.offLimits(dirs, sandbox, dir).Hidden()
	e := a.Env
	e.Dir = dir
	for _, name := range sandbox.DenyRead {
		if path, err := home.Absolute(e, name); err == nil {
			paths = append(paths, path)
		}
	}
	return paths
}

// holding is how commands are held back: by the settings of those of models, except for their sandbox.
func (a *App) holding(with *engine.Engine, settings protocol.Config, inv agentproc.Invocation) (tools.Commands, offlimits.List) {
	b, sandbox := cmp.Or(settings.Builtin, &protocol.BuiltinConfig{}), config.CommandSandbox(settings)
	guard := box.SharedState(with.Reader.Dirs) // first: what is not there cannot be hidden
	off := a.offLimits(with.Reader.Dirs, sandbox, inv.Dir)
	c := tools.Commands{
		Shell: true, Guard: guard, Warn: with.Reader.Warn, Once: a.warnOnce, Now: a.Env.Now, Writable: off.Writable(),
		MustConfine: sandbox.Holds(), MustBox: sandbox.Mode == protocol.SandboxRequired, Nest: sandbox.Nests(false), Network: networkOf(settings, inv),
		Keep: b.Capabilities, IPC: sandbox.SharesMemory(),
		NoUnixSockets: config.NoUnixSockets(b, sandbox.Mode, config.System{Sockets: confine.HoldsSockets()}),
		Box:           box.Find(a.Env.Exe), State: with.Reader.Dirs.Box(), Home: a.Env.Get("HOME"), Environ: a.Env.Environ,
	}
	c.Readable = linked(settings, inv.Dir)
	if confine.Level() > 0 {
		c.Exe = a.Env.Exe
	}
	return c, off
}
