package builtin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/utilagent/box"
	"github.com/united-workforce/uwf/utilagent/confine"
	"github.com/united-workforce/uwf/utilagent/offlimits"
	"github.com/united-workforce/uwf/utilagent/tools"
)

// confine sets what is off limits, and what holds commands back. They are
// confined by default, where that is possible.
func (w *work) confine(ctx context.Context, commands *tools.Commands, c protocol.Config) error {
	b, sandbox := cmp.Or(c.Builtin, &protocol.BuiltinConfig{}), config.Sandbox(c, w.req.Alias)
	e := w.run.Env
	commands.Warn, commands.Once, commands.Guard = w.warn, w.once(), box.SharedState(w.run.Dirs) // first: what is not there cannot be hidden
	w.off = offlimits.New(offlimits.Options{
		UserHome: cmp.Or(e.Get("HOME"), e.Get("USERPROFILE")), Environ: e.Environ, Dir: w.workspace.Dir(), Home: w.run.Dirs.Home, Store: w.run.Dirs.Store,
		Hide: sandbox.DenyRead, AllowRead: sandbox.AllowRead, AllowWrite: sandbox.AllowWrite,
	})
	w.workspace.Limit(w.off)
	told, err := box.RecoverAll(ctx, e.Now, w.run.Dirs.Box(), commands.Guard)
	for _, text := range told {
		w.warn("a command whose agent was killed " + text)
	}
	if err != nil {
		w.warn("what a killed command has left cannot be looked at: " + err.Error())
	}
	for _, name := range b.Capabilities {
		if !slices.Contains(confine.Capabilities(), name) {
			return fmt.Errorf("builtin.capabilities in config.yaml has %q: use %s", name, strings.Join(confine.Capabilities(), ", "))
		}
	}
	commands.Network = config.Network(c, w.req.Alias, w.req.Workflow.Name, w.req.Role)
	if sandbox.Mode == protocol.SandboxNone {
		return nil
	}
	commands.MustConfine, commands.MustBox = sandbox.Holds(), sandbox.Mode == protocol.SandboxRequired
	commands.Nest = sandbox.Nests(false)
	commands.Box, commands.State = box.Find(e.Exe), w.run.Dirs.Box()
	commands.Home, commands.Environ = e.Get("HOME"), e.Environ
	commands.Exe, commands.Keep, commands.IPC = e.Exe, b.Capabilities, sandbox.SharesMemory()
	commands.NoUnixSockets = config.NoUnixSockets(b, sandbox.Mode, config.System{Sockets: confine.HoldsSockets()})
	var env, dirs []string
	switch {
	case sandbox.Caches == "user":
		dirs = tools.CacheDirs(e.Environ)
	case commands.Shell || len(commands.Allow) > 0: // they are made, so only for whoever uses them
		env, dirs = w.workspace.Caches(e.Environ, e.Now())
		commands.Env = append(commands.Env, env...)
	}
	commands.Writable = append(dirs, w.off.Writable()...)
	return nil
}

// warn tells a person.
func (w *work) warn(text string) {
	w.req.Warn("%s", text)
}

// once tells a person each text once.
func (w *work) once() func(text string) {
	told := map[string]bool{}
	return func(text string) {
		if !told[text] {
			told[text] = true
			w.warn(text)
		}
	}
}

// warnOfCommands tells a person, once a run, where commands are held back less
// than they may think.
func (w *work) warnOfCommands(c tools.Commands) {
	for _, text := range c.Weaknesses(w.workspace) {
		w.warn(text)
	}
}
