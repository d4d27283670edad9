package builtin

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/utilagent/confine"
	"github.com/united-workforce/uwf/utilagent/offlimits"
	"github.com/united-workforce/uwf/utilagent/tools"
)

// confine sets what is off limits, and what holds commands back. They are
// confined by default, where that is possible.
func (w *work) confine(commands *tools.Commands, c protocol.Config) error {
	b, box := cmp.Or(c.Builtin, &protocol.BuiltinConfig{}), config.Sandbox(c, w.req.Alias)
	e := w.run.Env
	commands.Warn, commands.Guard = w.warn, offlimits.GuardDir(w.run.Dirs) // first: what is not there cannot be hidden
	w.off = offlimits.New(offlimits.Options{
		UserHome: cmp.Or(e.Get("HOME"), e.Get("USERPROFILE")), Path: e.Get("PATH"), Dir: w.workspace.Dir(), Home: w.run.Dirs.Home, Store: w.run.Dirs.Store,
		Hide: box.DenyRead, AllowRead: box.AllowRead, AllowWrite: box.AllowWrite,
	})
	w.workspace.Limit(w.off)
	changed, err := offlimits.Recover(commands.Guard)
	if said := changed.String(); said != "" {
		w.warn("a command whose agent was killed " + said)
	}
	if err != nil { // what it planted still does not count as the user's
		w.warn("what a command has changed whose agent was killed cannot be put back: " + err.Error())
	}
	for _, name := range b.Capabilities {
		if !slices.Contains(confine.Capabilities(), name) {
			return fmt.Errorf("builtin.capabilities in config.yaml has %q: use %s", name, strings.Join(confine.Capabilities(), ", "))
		}
	}
	if box.Mode == protocol.SandboxNone {
		return nil
	}
	commands.MustConfine = box.Mode == protocol.SandboxRequired
	commands.Exe, commands.Keep, commands.IPC = e.Exe, b.Capabilities, box.SharesMemory()
	commands.NoUnixSockets = config.NoUnixSockets(b, box.Mode, config.System{Sockets: confine.HoldsSockets()})
	var env, dirs []string
	switch {
	case box.Caches == "user":
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

// warnOfCommands tells a person, once a run, where commands are held back less
// than they may think.
func (w *work) warnOfCommands(c tools.Commands) {
	for _, text := range c.Weaknesses(w.workspace) {
		w.warn(text)
	}
}
