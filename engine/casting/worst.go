package casting

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/united-workforce/uwf/engine/agentproc"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/moderator/flow"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/proc"
)

// Worst is what a role may cost in one run, if each of its steps costs what a step may.
// What the run may cost as a whole bounds all of them together.
type Worst struct {
	Visits  int      `json:"visits"`  // 0: any number
	CostUSD *float64 `json:"costUsd"` // nil: nothing bounds it
	Tokens  *int64   `json:"tokens"`
}

// Worst finds out what a role may cost, with the agent that would play it.
func (r Caster) Worst(ctx context.Context, w protocol.Workflow, l protocol.Limits, c Casting) Worst {
	out := Worst{Visits: 1}
	if returns(w, c.Role) {
		out.Visits = l.MaxVisitsPerRole
		if l.MaxSteps > 0 && (out.Visits == 0 || l.MaxSteps < out.Visits) {
			out.Visits = l.MaxSteps
		}
	}
	usd, tokens := r.stepLimits(ctx, c)
	if w.Roles[c.Role].Player() != protocol.PlayedByAgent {
		usd = new(float64)
	}
	if usd != nil && out.Visits > 0 {
		all := protocol.RoundUSD(*usd * float64(out.Visits))
		out.CostUSD = &all
	}
	if tokens > 0 && out.Visits > 0 {
		all := tokens * int64(out.Visits)
		out.Tokens = &all
	}
	return out
}

// stepLimits are what one step of an agent may cost, as far as the config bounds it.
func (r Caster) stepLimits(ctx context.Context, c Casting) (usd *float64, tokens int64) {
	settings, err := r.Config(ctx)
	if err != nil || len(c.Command) == 0 {
		return nil, 0
	}
	most := settings.Agents[c.Agent].MaxCostUSD
	if config.OwnsModels(c.Command[0]) {
		most = 0
		if b := settings.Builtin; b != nil {
			most, tokens = b.MaxCostUSD, int64(b.MaxTokens)
		}
	}
	if most > 0 {
		usd = &most
	}
	return usd, tokens
}

// returns reports whether the graph leads from a role back to it.
func returns(w protocol.Workflow, role string) bool {
	seen := map[string]bool{}
	ahead := []string{role}
	for len(ahead) > 0 {
		at := ahead[0]
		ahead = ahead[1:]
		for _, way := range flow.Ways(w, at) {
			if way.Role == role || way.Role == protocol.SuspendNode && at == role { // a person's answer leads back to it
				return true
			}
			if _, isRole := w.Roles[way.Role]; isRole && !seen[way.Role] {
				seen[way.Role] = true
				ahead = append(ahead, way.Role)
			}
		}
	}
	return false
}

// Unpriced says why a limit of cost cannot hold an agent, "" if it may. Where no limit
// of tokens can hold it either, it is refused before it begins.
func (r Caster) Unpriced(ctx context.Context, l protocol.Limits, cmd Command, workflow, role string) (string, error) {
	if l.MaxCostUSD == 0 {
		return "", nil
	}
	c, err := r.Config(ctx)
	if err != nil {
		return "", err
	}
	why, alias := config.NoPrice(c, cmd.Argv[0], modelFlag(cmd.Argv), cmd.Alias, workflow, role, r.Env)
	if why == "" || l.MaxTokens > 0 {
		return why, nil
	}
	refusal := fault.New(protocol.CodeInvalid, "the run may cost %s (maxCostUsd), but the cost of role %q cannot be "+
		"tracked: %s, and there is no token limit", protocol.Dollars(l.MaxCostUSD), role, why)
	key := "models." + plaintext.Word(cmp.Or(alias, "<alias>")) + ".price"
	return "", fault.Hinted(refusal, "uwf config set "+key+".input 3; uwf config set "+key+".output 15: dollars per "+
		"million tokens, those of your model", "--max-tokens 2000000 bounds the run by tokens instead")
}

// Unstartable explains why the program of an agent cannot be started, and what to
// do about it. One on the command line that does not exist is the caller's
// mistake, one in the config the config's.
func (r Caster) Unstartable(ctx context.Context, cmd Command, missing *agentproc.NotFoundError) *protocol.Error {
	err := &protocol.Error{Code: protocol.CodeAgent, Message: missing.Error(), Err: missing}
	program := cmd.Argv[0]
	var inside *proc.InsideError
	switch {
	case errors.As(missing, &inside):
		return fault.Hinted(err, "to work elsewhere: cd to your own repository, or --cwd DIR")
	case errors.Is(missing, syscall.ENOEXEC):
		return fault.Hinted(err, fmt.Sprintf("a script begins with a line such as #!/bin/sh; or name its interpreter: sh "+
			"%s", plaintext.Word(program)))
	case errors.Is(missing, fs.ErrPermission) && filepath.IsAbs(program):
		return fault.Hinted(err, "chmod +x "+plaintext.Word(cmd.Written[0]))
	case cmd.Alias != "":
		return fault.Hinted(err, fmt.Sprintf("install it, or set agents.%s.command in %s", cmd.Alias, r.Dirs.Config()))
	case !missing.Absent():
		return fault.Hinted(err, "--agent <alias or command>")
	}
	err.Code = protocol.CodeNotFound
	typed := cmd.Written[0]
	if filepath.Base(typed) != typed {
		err.Message = fmt.Sprintf("there is no agent %q: there is no such file", typed)
		return fault.Hinted(err, r.nearPrograms(cmd)...)
	}
	err.Message = fmt.Sprintf("there is no agent %q: it is neither an alias in the config nor a program", typed)
	return fault.Hinted(fault.Hinted(err, r.nearAgents(ctx, typed)...),
		"put it on PATH, or give its path: --agent "+plaintext.Word("./"+typed))
}

// nobody is the error for a role without an agent.
func (r Caster) nobody(c protocol.Config, role string) *protocol.Error {
	why := "has no defaultAgent"
	if _, err := os.Lstat(r.Dirs.Config()); errors.Is(err, fs.ErrNotExist) {
		why = "does not exist"
	}
	err := fault.New(protocol.CodeInvalid, "no agent is configured for role %q: %s %s", role, r.Dirs.Config(), why)
	if aliases := slices.Sorted(maps.Keys(c.Agents)); len(aliases) > 0 {
		err = fault.Hinted(err, "uwf config set defaultAgent "+plaintext.Word(aliases[0]))
	} else {
		err = fault.Hinted(err, "uwf setup")
	}
	return fault.Hinted(err, "or name one for this step: --agent <alias or command>")
}
