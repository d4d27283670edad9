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
func (w *work) confine(commands *tools.Commands, b *protocol.BuiltinConfig) error {
	if b == nil {
		b = &protocol.BuiltinConfig{}
	}
	e := w.run.Env
	commands.Warn, commands.Guard = w.warn, offlimits.GuardDir(w.run.Dirs) // first: what is not there cannot be hidden
	w.off = offlimits.New(offlimits.Options{
		UserHome: cmp.Or(e.Get("HOME"), e.Get("USERPROFILE")), Path: e.Get("PATH"), Dir: w.workspace.Dir(), Home: w.run.Dirs.Home, Store: w.run.Dirs.Store,
		Hide: b.Hide, AllowRead: b.AllowRead, AllowWrite: b.AllowWrite,
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
	if b.Caches != "" && b.Caches != "own" && b.Caches != "user" {
		return fmt.Errorf("builtin.caches in config.yaml is %q: use own or user", b.Caches)
	}
	switch b.Confine {
	case "off":
		return nil
	case "", "auto":
	case "required":
		commands.MustConfine = true
	default:
		return fmt.Errorf("builtin.confine in config.yaml is %q: use auto, required or off", b.Confine)
	}
	commands.Exe, commands.Keep, commands.IPC = e.Exe, b.Capabilities, b.IPC
	commands.NoUnixSockets = config.NoUnixSockets(b, config.System{Sockets: confine.HoldsSockets()})
	var env, dirs []string
	switch {
	case b.Caches == "user":
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
