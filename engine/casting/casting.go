// Package casting finds who plays a role: which program, with which words, and for how
// long. What a person says for one run goes before what the config says for the role, and
// that before its default. Nothing is started here.
package casting

import (
	"context"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/home"
)

// Caster finds players by a config. All fields are required.
type Caster struct {
	Env    env.Env
	Dirs   home.Dirs
	Config func(ctx context.Context) (protocol.Config, error)
}

// Wish is what a person says of one run. The zero value leaves all to the config.
type Wish struct {
	Agent    string            // an alias, else a command line
	Agents   map[string]string // the same by role; goes before Agent
	Scenario string            // a script, an absolute path, by which uwf-mock plays all roles
	Timeout  time.Duration     // 0: the config's
}

// For is the agent that was asked for to play a role, "" if none was.
func (w Wish) For(role string) string {
	if agent := w.Agents[role]; agent != "" {
		return agent
	}
	return w.Agent
}
