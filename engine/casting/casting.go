// Package casting finds who plays a role: which program, with which words, and for how
// long. What a person says for one run goes before what the config says for the role, and
// that before its default. Nothing is started here.
package casting

import (
	"cmp"
	"context"
	"maps"
	"strings"
	"time"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/plaintext"
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
	Earlier  map[string]string // those chosen for earlier steps, by role or [heads.AllRoles]; the others go before them
	Scenario string            // a script, an absolute path, by which uwf-mock plays all roles
	Timeout  time.Duration     // 0: the config's
}

// For is the agent that was asked for to play a role, "" if none was.
func (w Wish) For(role string) string {
	return cmp.Or(w.Agents[role], w.Agent, w.Earlier[role], w.Earlier[heads.AllRoles])
}

// Chosen returns all agents that a person has chosen, by role or [heads.AllRoles]; one for all
// roles takes the place of those before. Relative programs become absolute: a later step may be
// made from another directory.
func (r Caster) Chosen(ctx context.Context, w Wish) map[string]string {
	chosen := map[string]string{}
	if w.Agent == "" {
		maps.Copy(chosen, w.Earlier)
	} else {
		chosen[heads.AllRoles] = r.lasting(ctx, w.Agent)
	}
	for role, agent := range w.Agents {
		chosen[role] = r.lasting(ctx, agent)
	}
	return chosen
}

// lasting is an agent by a name that means the same in every directory.
func (r Caster) lasting(ctx context.Context, agent string) string {
	c, err := r.Config(ctx)
	if err != nil {
		return agent // the error comes when it is run
	}
	cmd, err := r.chooseAgent(c, agent, "", "")
	if err != nil || cmd.Alias != "" || cmd.Argv[0] == cmd.Written[0] {
		return agent
	}
	words := make([]string, len(cmd.Argv))
	for i, word := range cmd.Argv {
		words[i] = plaintext.Word(word)
	}
	return strings.Join(words, " ")
}
