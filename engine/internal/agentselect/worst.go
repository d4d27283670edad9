package agentselect

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
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/moderator/flow"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/proc"
)

// Worst is the maximum cost of a role in one run, from the limits of its steps. The limits of the whole run
// apply in addition.
type Worst struct {
	Visits  int      `json:"visits"`  // 0 means unlimited
	CostUSD *float64 `json:"costUsd"` // nil means unlimited
	Tokens  *int64   `json:"tokens"`
}

// Worst returns the maximum cost of a role with its agent.
func (r Caster) Worst(ctx context.Context, w protocol.Workflow, l protocol.Limits, c Casting) Worst {
	out := Worst{Visits: 1}
	if onCycle(w, c.Role) {
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

// stepLimits returns the config's limits for one step of an agent; nil and 0 mean unlimited.
func (r Caster) stepLimits(ctx context.Context, c Casting) (usd *float64, tokens int64) {
	settings, err := r.Config(ctx)
	if err != nil || len(c.Command) == 0 {
		return nil, 0
	}
	most := settings.Agents[c.Agent].MaxCostUSD
	if config.OwnsModels(cmp.Or(c.Path, c.Command[0])) { // the command may be a variable
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

// onCycle reports whether the graph has a path from a role back to it.
func onCycle(w protocol.Workflow, role string) bool {
	seen := map[string]bool{}
	ahead := []string{role}
	for len(ahead) > 0 {
		at := ahead[0]
		ahead = ahead[1:]
		for _, way := range flow.Ways(w, at) {
			if way.Role == role || way.Role == protocol.SuspendNode && at == role { // a person's answer returns to it
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

// Unpriced returns why a cost limit cannot be enforced for an agent, or "" if it can. If no token limit can
// be enforced either, it returns an error, so that the agent doesn't start.
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
	return "", fault.New(protocol.CodeInvalid, "cannot enforce maxCostUsd (%s): the cost of role %q is unknown "+
		"(%s), and no token limit is set", protocol.Dollars(l.MaxCostUSD), role, why).Because("cost-unknown", "model",
		cmp.Or(alias, "<alias>"))
}

// Unstartable returns the error for an agent whose program cannot be started, with the facts for a hint. A
// missing program on the command line is a usage error; one in the config is a config error.
func (r Caster) Unstartable(ctx context.Context, cmd Command, missing *agentproc.NotFoundError) *protocol.Error {
	err := &protocol.Error{Code: protocol.CodeAgent, Message: missing.Error(), Err: missing}
	program := cmd.Argv[0]
	var inside *proc.InsideError
	switch {
	case errors.As(missing, &inside):
		return err.Because("agent-of-workspace")
	case errors.Is(missing, syscall.ENOEXEC):
		return err.Because("agent-no-program", "program", program)
	case errors.Is(missing, fs.ErrPermission) && filepath.IsAbs(program):
		return err.Because("agent-not-executable", "program", cmd.Written[0])
	case cmd.Alias != "":
		return err.Because("agent-not-installed", "alias", cmd.Alias, "config", r.Dirs.Config())
	case !missing.Absent():
		return err.Because("agent-unusable")
	}
	err.Code = protocol.CodeNotFound
	typed := cmd.Written[0]
	if filepath.Base(typed) != typed {
		err.Message = fmt.Sprintf("agent %q not found: no such file", typed)
		return err.Because("no-such-agent", fault.Near(r.nearPrograms(cmd))...)
	}
	err.Message = fmt.Sprintf("agent %q not found: it is neither an alias in the config nor a program on PATH", typed)
	return err.Because("no-such-agent", append(fault.Near(r.nearAgents(ctx, typed)), "path", "./"+typed)...)
}

// noAgent returns the error for a role without an agent.
func (r Caster) noAgent(c protocol.Config, role string) *protocol.Error {
	why := "has no defaultAgent"
	if _, err := os.Lstat(r.Dirs.Config()); errors.Is(err, fs.ErrNotExist) {
		why = "does not exist"
	}
	alias := ""
	if len(c.Agents) > 0 {
		alias = slices.Min(slices.Collect(maps.Keys(c.Agents)))
	}
	return fault.New(protocol.CodeInvalid, "no agent is configured for role %q: %s %s", role, r.Dirs.Config(),
		why).Because("no-agent", "alias", alias)
}
