package cliagent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/threadid"
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/confine/bind"
	"github.com/united-workforce/uwf/utilagent/internal/runenv"
)

// settings holds the configuration of an agent.
type settings struct {
	model      string
	price      *protocol.Price // price of the model, if configured
	permission Permission
	maxTurns   int
	maxCost    float64
	ofRun      bool // maxCost is the remaining budget of the whole run
	resume     bool // later steps continue this session
	passEnv    []string
	limits     Timeouts
	sandbox    protocol.SandboxConfig
}

// settingsOf reads the config. A program gets a model only if one is set for this agent or role; the default
// model is not meant for it.
func settingsOf(ctx context.Context, a Adapter, req *agentkit.Request, around *runenv.Run) (settings, error) {
	s := settings{permission: Bypass, maxTurns: a.MaxTurns, limits: a.Timeouts.withDefaults()}
	c, err := around.Config(ctx)
	if err != nil {
		return s, err
	}
	agent := c.Agents[req.Alias]
	if s.model, s.price, err = config.ExternalModel(c, protocol.AgentName(a.Name), req.Alias, req.Workflow.Name, req.Role, around.Env); err != nil {
		return s, err
	}
	if agent.Permission != "" {
		s.permission = Permission(agent.Permission)
	}
	if agent.MaxTurns > 0 {
		s.maxTurns = agent.MaxTurns
	}
	s.resume = agent.Resume == nil || *agent.Resume
	s.maxCost, s.passEnv = agent.MaxCostUSD, agent.PassEnv
	s.sandbox = config.Sandbox(c, req.Alias)
	s.sandbox.Network = config.Network(c, req.Alias, req.Workflow.Name, req.Role)
	if left := req.Budget.CostUSD; left != nil && *left > 0 && (s.maxCost == 0 || *left < s.maxCost) {
		s.maxCost, s.ofRun = *left, true
	}
	timeout := agent.Timeout
	if timeout == "" {
		timeout = c.Timeout
	}
	return s, s.limit(agent, timeout)
}

// limit applies the configured timeouts.
func (s *settings) limit(agent protocol.Agent, timeout string) error {
	var total time.Duration
	for _, field := range []struct {
		key, text string
		into      []*time.Duration
	}{
		{"startTimeout", agent.StartTimeout, []*time.Duration{&s.limits.Start}},
		{"idleTimeout", agent.IdleTimeout, []*time.Duration{&s.limits.Idle, &s.limits.Tool}},
		{"timeout", timeout, []*time.Duration{&total}},
	} {
		if field.text == "" {
			continue
		}
		d, err := time.ParseDuration(field.text)
		if err != nil {
			return fmt.Errorf("config: %s: %w", field.key, err)
		}
		for _, into := range field.into {
			*into = d
		}
	}
	if total > 0 {
		s.limits = s.limits.within(total)
	}
	return nil
}

// within shortens the timeouts so that the program is stopped before the engine stops the agent. The session
// can then be continued, so the step suspends instead of failing.
func (t Timeouts) within(total time.Duration) Timeouts {
	margin := min(total/4, 20*time.Second)
	t.Total, t.whole = total-margin, total
	t.Stop = min(t.Stop, margin/4)
	t.Grace = min(t.Grace, t.Total/2)
	return t
}

// binVariable returns the environment variable that overrides the path of an agent's program.
func binVariable(agent string) string {
	return "UWF_" + strings.ToUpper(strings.ReplaceAll(agent, "-", "_")) + "_BIN"
}

// environment returns the program's environment: the agent's, without variables from an enclosing session of
// the same program, and with variables that disable prompts, pagers, colors and updates.
func environment(environ []string, a Adapter, inv Invocation) []string {
	var out []string
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		if !matches(name, a.Unset) {
			out = append(out, entry)
		}
	}
	// Never start commands from the workspace's settings, even with an opencode that has a Transport.
	if (env.Env{Environ: environ}).Get("OPENCODE_DISABLE_PROJECT_CONFIG") == "" {
		out = append(out, "OPENCODE_DISABLE_PROJECT_CONFIG=1")
	}
	out = append(out, "NO_COLOR=1", "TERM=dumb", "PAGER=cat", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0")
	return append(out, inv.Env...)
}

// matches reports whether a variable is in patterns. A pattern that ends in * is a prefix.
func matches(name string, patterns []string) bool {
	for _, pattern := range patterns {
		if prefix, ok := strings.CutSuffix(pattern, "*"); name == pattern || ok && strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// ModelKeys returns the Logins of a program that supports many model providers.
func ModelKeys() []string {
	return []string{
		"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY",
		"DEEPSEEK_API_KEY", "GROQ_API_KEY", "MISTRAL_API_KEY", "XAI_API_KEY", "TOGETHER_API_KEY", "FIREWORKS_API_KEY",
	}
}

// Options returns the agent for an adapter.
func Options(a Adapter) agentkit.Options {
	s := &steps{adapter: a}
	return agentkit.Options{
		Name: a.Name, Run: s.run, Continue: s.correct,
		Resumes: !a.Sessions.None, ForksSessions: a.Sessions.Forks && !a.Sessions.None,
		CutsSessions: a.Sessions.Cuts && !a.Sessions.None,
		ParseArgs:    s.parse, Check: s.check, Usage: usage(a),
		Dispatch: bind.Dispatch, Enters: true,
	}
}

// steps holds the current runner; a process makes one step.
type steps struct {
	adapter Adapter
	extra   []string
	runner  *runner
}

func (s *steps) run(ctx context.Context, req *agentkit.Request) (agentkit.Result, error) {
	r, err := s.of(ctx, req)
	if err != nil {
		return agentkit.Result{}, err
	}
	return r.run()
}

func (s *steps) correct(ctx context.Context, session, message string, req *agentkit.Request) (agentkit.Result, error) {
	r, err := s.of(ctx, req)
	if err != nil {
		return agentkit.Result{}, err
	}
	return r.correct(session, message)
}

func (s *steps) of(ctx context.Context, req *agentkit.Request) (*runner, error) {
	if s.runner != nil && s.runner.req == req {
		return s.runner, nil
	}
	r, err := newRunner(ctx, s.adapter, s.extra, req)
	if err != nil {
		return nil, err
	}
	s.runner = r
	return r, nil
}

// split splits an agent's command line into the configured arguments before and after "--" and those that the
// engine appends, which begin with the last thread and role, or --thread.
func split(args []string) (before, behind, engines []string) {
	at := len(args)
	for i, arg := range args {
		name, _, _ := strings.Cut(arg, "=")
		positional := threadid.Valid(arg) && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-")
		if positional || name == protocol.FlagThread {
			at = i
		}
	}
	before, engines = args[:at], args[at:]
	if i := slices.Index(before, "--"); i >= 0 {
		before, behind = before[:i], before[i+1:]
	}
	return slices.Clone(before), slices.Clone(behind), engines
}

// parse reads an agent's command line and returns the engine's arguments.
func (s *steps) parse(args []string) (engines []string, err error) {
	before, behind, engines := split(args)
	if s.adapter.Commanded && len(behind) == 0 {
		before, behind = nil, before
	}
	if s.adapter.ParseArgs != nil {
		if before, err = s.adapter.ParseArgs(before); err != nil {
			return nil, err
		}
	}
	switch {
	case s.adapter.Commanded && len(before) > 0:
		return nil, fmt.Errorf("unexpected argument %q before --", before[0])
	case s.adapter.Commanded && len(behind) == 0:
		return nil, errors.New("missing command after --")
	}
	s.extra = append(before, behind...)
	return engines, nil
}

// usage returns the --help text for an adapter.
func usage(a Adapter) string {
	var b strings.Builder
	b.WriteString(strings.TrimRight(a.Usage, "\n"))
	if b.Len() > 0 {
		b.WriteString("\n\n")
	}
	if !a.Commanded {
		fmt.Fprintf(&b, "Arguments before the thread ID are passed to %s. Put -- before them if\nthey look like flags of this agent. If the program is not on PATH, set\n%s.\n", a.Program, binVariable(a.Name))
	}
	if a.Install != "" {
		fmt.Fprintf(&b, "\nInstall: %s\n", a.Install)
	}
	if a.Login != "" {
		fmt.Fprintf(&b, "Log in:  %s\n", a.Login)
	}
	return b.String()
}
