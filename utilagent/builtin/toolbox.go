package builtin

import (
	"context"
	"errors"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/utilagent/shellguard"
	"github.com/united-workforce/uwf/utilagent/tools"
	"github.com/united-workforce/uwf/utilagent/tools/fetch"
)

// equip gives the agent the tools that it may use. permission in the config
// takes tools away; it never gives more than commands are allowed anyway.
func (w *work) equip(ctx context.Context, c protocol.Config, more []tools.Tool) error {
	var pass []string
	if c.Builtin != nil {
		pass = c.Builtin.PassEnv
	}
	commands := tools.Commands{
		Shell:  config.AnyCommand(c.Builtin, w.run.Env),
		Refuse: shellguard.RefuseEngine,
		Now:    w.run.Env.Now,
		Env:    tools.CommandEnv(w.run.Env.Environ, w.run.Secrets, pass),
	}
	if commands.Shell || c.Builtin != nil && len(c.Builtin.AllowCommands) > 0 {
		commands.Env = append(commands.Env, w.run.Mark())
		commands.Adopts = w.run.Adopts()
	}
	pages := fetch.Options{Allow: w.run.Env.Get("UWF_BUILTIN_ALLOW_FETCH") == "1"}
	if b := c.Builtin; b != nil {
		commands.Allow = b.AllowCommands
		pages.Allow, pages.Private = pages.Allow || b.AllowFetch, b.AllowPrivate
	}
	if err := w.confine(ctx, &commands, c); err != nil {
		return err
	}
	most := tools.Runs
	switch c.Agents[w.req.Alias].Permission {
	case "read-only":
		most = tools.Reads
	case "edits":
		most = tools.Writes
	}
	w.commands = allowed(commands, most)
	if most >= tools.Runs {
		w.warnOfCommands(commands)
	}
	var err error
	w.tools, err = tools.NewRegistry()
	search := tools.FindSearch(commands.Env, w.req.Cwd)
	search.Exe, search.Hidden = w.run.Env.Exe, w.off.Hidden()
	own := append(tools.All(w.workspace, commands, search), fetch.New(w.workspace, pages))
	for _, t := range append(own, more...) {
		if t.Spec().Effect <= most {
			err = errors.Join(err, w.tools.Add(t))
		}
	}
	return err
}

// allowed tells a person which commands the model can run.
func allowed(c tools.Commands, most tools.Effect) string {
	switch {
	case most < tools.Runs:
		return "none: the permission of this agent in config.yaml"
	case c.Shell:
		return "any; confined by: " + c.Confinement()
	case len(c.Allow) > 0:
		return "only " + strings.Join(c.Allow, ", ") + "; confined by: " + c.Confinement()
	}
	return "switched off"
}

func names(r *tools.Registry) []string {
	var list []string
	for _, s := range r.Specs() {
		list = append(list, s.Name)
	}
	return list
}
