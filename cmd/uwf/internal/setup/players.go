package setup

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/united-workforce/uwf/engine/discover"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/proc"
)

// Player can play roles on this machine, or nearly.
type Player struct {
	Name    string // as --agent takes it
	Title   string // for people, with its version
	Problem string // why it cannot play yet; "": it can
	Do      string // about the problem
}

// builtin is our own agent, which needs a model and nothing else.
const builtin = "builtin"

// FindPlayers looks for whoever can play roles here: the coding agents on PATH, our own, and
// agents of others. installed are the names of the agents on PATH. Adapters that drive any
// program must be told which: nobody finds them by looking.
func FindPlayers(ctx context.Context, e env.Env, installed []string) []Player {
	adapters := slices.DeleteFunc(protocol.Adapters(), func(a protocol.Adapter) bool { return a.Program == "" })
	found := make([]*Player, len(adapters))
	var group sync.WaitGroup
	for i, adapter := range adapters {
		group.Go(func() { found[i] = look(ctx, adapter, e, installed) })
	}
	group.Wait()
	var players []Player
	for _, p := range found {
		if p != nil {
			players = append(players, *p)
		}
	}
	own := Player{Name: builtin, Title: "uwf's own agent, with a model of yours (a key, or a server on this machine)"}
	if !slices.Contains(installed, protocol.AgentName(builtin)) {
		own.Problem, own.Do = "uwf-builtin is not on PATH", install(builtin)
	}
	players = append(players, own)
	for _, program := range installed {
		if !slices.Contains(protocol.OwnAgents(), program) {
			players = append(players, Player{Name: strings.TrimPrefix(program, protocol.AgentPrefix), Title: "another agent on PATH"})
		}
	}
	return players
}

// look asks an adapter about the program that it drives; nil if the program is not here.
func look(ctx context.Context, a protocol.Adapter, e env.Env, installed []string) *Player {
	name := strings.TrimPrefix(a.Name, protocol.AgentPrefix)
	p := &Player{Name: name, Title: a.Title}
	if !slices.Contains(installed, a.Name) {
		if _, err := proc.LookPath(a.Program, e.Dir, e.Environ); err != nil {
			return nil
		}
		p.Problem, p.Do = a.Name+", which drives it, is not on PATH", install(name)
		return p
	}
	switch found := discover.Ask(ctx, a.Name, nil, e); {
	case found.Err != nil:
		p.Problem, p.Do = found.Err.Error(), install(name)
	case found.Check == nil:
	case found.Check.Program == "":
		return nil
	default:
		p.Title = strings.TrimSpace(a.Title + " " + found.Check.Version)
		if len(found.Check.Problems) > 0 {
			p.Problem, p.Do = found.Check.Problems[0].What, found.Check.Problems[0].Do
		}
	}
	return p
}

// install is how one of our agents comes here.
func install(name string) string {
	return "go install " + protocol.ModulePath + "/cmd/" + protocol.AgentName(name) + "@latest"
}
