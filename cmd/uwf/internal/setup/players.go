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

// codingAgent is a program of other people that one of our agents drives.
type codingAgent struct{ name, title, program string }

// codingAgents are those that a machine may have, in the order of the menu. uwf-exec and
// uwf-acp drive any program, and must be told which: nobody finds them by looking.
func codingAgents() []codingAgent {
	return []codingAgent{
		{"claude-code", "Claude Code", "claude"},
		{"codex", "Codex", "codex"},
		{"gemini", "Gemini CLI", "gemini"},
		{"cursor", "Cursor", "cursor-agent"},
		{"opencode", "opencode", "opencode"},
		{"hermes", "Hermes", "hermes"},
	}
}

// builtin is our own agent, which needs a model and nothing else.
const builtin = "builtin"

// FindPlayers looks for who can play roles here: the coding agents on PATH, our own, and
// agents of others. installed are the names of the agents on PATH.
func FindPlayers(ctx context.Context, e env.Env, installed []string) []Player {
	known := codingAgents()
	found := make([]*Player, len(known))
	var group sync.WaitGroup
	for i, agent := range known {
		group.Go(func() { found[i] = agent.look(ctx, e, installed) })
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

// look asks one of our agents what it drives; nil if the program is not here.
func (c codingAgent) look(ctx context.Context, e env.Env, installed []string) *Player {
	p := &Player{Name: c.name, Title: c.title}
	if !slices.Contains(installed, protocol.AgentName(c.name)) {
		if _, err := proc.LookPath(c.program, e.Dir, e.Environ); err != nil {
			return nil
		}
		p.Problem, p.Do = protocol.AgentName(c.name)+", which drives it, is not on PATH", install(c.name)
		return p
	}
	switch a := discover.Ask(ctx, protocol.AgentName(c.name), nil, e); {
	case a.Err != nil:
		p.Problem, p.Do = a.Err.Error(), install(c.name)
	case a.Check == nil:
	case a.Check.Program == "":
		return nil
	default:
		p.Title = strings.TrimSpace(c.title + " " + a.Check.Version)
		if len(a.Check.Problems) > 0 {
			p.Problem, p.Do = a.Check.Problems[0].What, a.Check.Problems[0].Do
		}
	}
	return p
}

// install is how one of our agents comes here.
func install(name string) string {
	return "go install " + protocol.ModulePath + "/cmd/" + protocol.AgentName(name) + "@latest"
}
