package doctor

import (
	"context"
	"errors"
	"strings"

	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
)

// readConfig looks at config.yaml and .env. What needs the config is skipped
// when it cannot be read.
func (x *examination) readConfig(ctx context.Context) {
	path := x.Dirs.Config()
	if e, err := config.LoadDotEnv(x.Dirs.DotEnv(), x.Env); err != nil {
		x.problem("config", "correct "+x.Dirs.DotEnv(), "%v", err)
	} else {
		x.Env = e
	}
	c, err := config.Load(ctx, path, x.Env)
	if err != nil {
		x.broken(err)
		return
	}
	if c, err = x.withProject(c); err != nil {
		x.broken(err)
		return
	}
	x.config = &c
	for _, warning := range config.Exposed(path, x.Dirs.DotEnv()) {
		what, do, _ := strings.Cut(warning, ": ")
		x.warn("config", do, "%s", what)
	}
	switch {
	case !exists(path):
		x.agentless("uwf setup", "there is no %s: nobody plays the roles", path)
	case c.DefaultAgent == "" && len(c.AgentOverrides) == 0:
		x.agentless("uwf setup --agent NAME", "%s names no defaultAgent: every role that an agent plays needs --agent; commands and people need none", path)
	case c.DefaultAgent == "":
		x.note("config", "uwf setup --agent NAME", "%s names no defaultAgent: steps without an override need --agent", path)
	default:
		x.ok("config", "%s", path)
	}
}

// withProject is the config with the settings of the project beneath it.
func (x *examination) withProject(c protocol.Config) (protocol.Config, error) {
	path, ignored, err := engine.ProjectConfig(x.Env, x.Env.Dir, x.Dirs)
	for _, i := range ignored {
		x.warn("config", "", "ignored %s: it %s", i.Path, i.Why)
	}
	if err != nil || path == "" {
		return c, err
	}
	if c, err = config.WithProject(c, path); err == nil {
		x.ok("config", "%s, beneath it", path)
	}
	return c, err
}

// broken reports each mistake in the config with its place.
func (x *examination) broken(err error) {
	var invalid *config.InvalidError
	if !errors.As(err, &invalid) {
		x.problem("config", remedy(err, "correct "+x.Dirs.Config()), "%v", err)
		return
	}
	for _, p := range invalid.Problems {
		do := p.Remedy
		if do == "" {
			do = "correct " + x.Dirs.Config()
		}
		x.problem("config", do, "%s:%d:%d: %s", p.File, p.Line, p.Column, p.Message)
	}
}

// remedy is the first hint of an error, else other.
func remedy(err error, other string) string {
	var e *protocol.Error
	if errors.As(err, &e) && len(e.Hints) > 0 {
		return e.Hints[0]
	}
	return other
}
