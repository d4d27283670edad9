package engine

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/mattn/go-shellwords"

	"github.com/united-workforce/uwf/engine/discover"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/suggest"
)

// command is an agent as it is to be run.
type command struct {
	name    string   // as the user named it: an alias or a command line
	alias   string   // in the config; "" for a command line
	argv    []string // the program and its configured arguments
	written []string // the same as the user wrote it: a variable in it may be a secret
	env     map[string]string
	passEnv []string      // secrets of .env that it gets
	form    string        // of the step in its arguments: protocol.Agent.Protocol
	timeout time.Duration // 0: none
	// plain is the role of a command that is no agent.
	plain *protocol.Role
}

// player is the program that plays the attempt's role.
func (a *attempt) player(ctx context.Context, o StepOptions) (command, error) {
	return a.playerOf(ctx, o, a.pos.workflow, a.task.role, a.task.command)
}

// playerOf is the program that plays a role: an agent, or for a role that is a command
// that, with the words as they were rendered.
func (e *Engine) playerOf(ctx context.Context, o StepOptions, w protocol.Workflow, name string, argv []string) (command, error) {
	role := w.Roles[name]
	if role.Player() != protocol.PlayedByCommand || o.Scenario != "" {
		return e.agentFor(ctx, o, w.Name, name)
	}
	c, err := e.Config(ctx)
	if err != nil {
		return command{}, err
	}
	cmd := command{name: protocol.CommandAgent, argv: argv, written: argv, timeout: time.Duration(role.TimeoutMs) * time.Millisecond, plain: &role}
	if cmd.timeout == 0 || o.Timeout > 0 {
		cmd.timeout, err = timeoutFor(c, "", o.Timeout)
	}
	return cmd, err
}

// agentFor decides who plays a role: --agent, then the override for the role,
// then the default. It needs no config if --agent is a command line.
func (e *Engine) agentFor(ctx context.Context, o StepOptions, workflow, role string) (command, error) {
	if o.Scenario != "" && o.agentOf(role) == "" {
		argv := []string{protocol.AgentName("mock"), "--mock-data", o.Scenario}
		return command{name: argv[0], argv: argv, written: argv, timeout: o.Timeout}, nil
	}
	c, err := e.Config(ctx)
	if err != nil {
		return command{}, err
	}
	cmd, err := e.chooseAgent(c, o.agentOf(role), workflow, role)
	if err != nil {
		return command{}, err
	}
	cmd.timeout, err = timeoutFor(c, cmd.alias, o.Timeout)
	return cmd, err
}

// agentOf is the agent that was asked for, "" if none was.
func (o StepOptions) agentOf(role string) string {
	if agent := o.Agents[role]; agent != "" {
		return agent
	}
	return o.Agent
}

func (e *Engine) chooseAgent(c protocol.Config, override, workflow, role string) (command, error) {
	if override != "" {
		if _, known := c.Agents[override]; known {
			return e.configured(c, override, "--agent")
		}
		if full := protocol.AgentName(override); discover.Installed(e.Env, full) { // codex: not the program itself, which is no agent
			return e.commandLine(full)
		}
		return e.commandLine(override)
	}
	if alias := c.AgentOverrides[workflow][role]; alias != "" {
		return e.configured(c, alias, fmt.Sprintf("agentOverrides.%s.%s", workflow, role))
	}
	if c.DefaultAgent != "" {
		return e.configured(c, c.DefaultAgent, "defaultAgent")
	}
	return command{}, e.nobody(c, role)
}

// configured is an agent of the config; by is the key that names it.
func (e *Engine) configured(c protocol.Config, alias, by string) (command, error) {
	written, known := c.Agents[alias]
	if !known {
		aliases := slices.Sorted(maps.Keys(c.Agents))
		err := fault.New(protocol.CodeInvalid, "%s names agent %q, which %s does not define", by, alias, e.Dirs.Config())
		return command{}, fault.Hinted(fault.Hinted(err, nearest(alias, aliases)...), "uwf config set "+plaintext.Word("agents."+alias+".command")+" <program>", "uwf setup --agent builtin")
	}
	a, err := config.ResolveAgent(c, alias, e.Env)
	if err != nil {
		return command{}, err
	}
	if a.Command == "" {
		return command{}, fault.New(protocol.CodeInvalid, "agents.%s has no command in %s", alias, e.Dirs.Config())
	}
	switch a.Protocol {
	case "", "positional", "named":
	default:
		return command{}, fault.New(protocol.CodeInvalid, "agents.%s.protocol must be positional or named, got %q", alias, a.Protocol)
	}
	// A relative path in the config is relative to the config.
	argv := append([]string{rooted(a.Command, e.Dirs.Home)}, a.Args...)
	return command{
		name: alias, alias: alias, argv: argv, env: a.Env, passEnv: a.PassEnv, form: a.Protocol,
		written: append([]string{written.Command}, written.Args...),
	}, nil
}

// commandLine is an agent given as a command line. There is no shell: quotes
// group words, and nothing else is special.
func (e *Engine) commandLine(line string) (command, error) {
	parser := shellwords.NewParser()
	parser.ParseEnv, parser.ParseBacktick = false, false
	words, err := parser.Parse(line)
	if err == nil && parser.Position >= 0 { // it stops at | & ; < > and drops the rest
		err = fmt.Errorf("there is no shell to do %q", string([]rune(line)[parser.Position:]))
	}
	if err != nil {
		return command{}, fault.Hinted(fault.New(protocol.CodeUsage, "--agent %q is not a command line: %v", line, err),
			"quotes go together, and there is no shell: --agent 'program \"an argument\"'")
	}
	if len(words) == 0 || words[0] == "" {
		return command{}, fault.Hinted(fault.New(protocol.CodeUsage, "--agent must not be empty"), "--agent <alias or command>")
	}
	argv := slices.Clone(words)
	argv[0] = rooted(words[0], e.Env.Dir)
	return command{name: line, argv: argv, written: words}, nil
}

// rooted makes a relative path absolute; a bare name stays one, for PATH.
func rooted(command, dir string) string {
	if filepath.Base(command) == command || filepath.IsAbs(command) {
		return command
	}
	return filepath.Join(dir, command)
}

// timeoutFor is the time that a step may take: the caller's, the agent's, the config's.
func timeoutFor(c protocol.Config, alias string, asked time.Duration) (time.Duration, error) {
	if asked > 0 {
		return asked, nil
	}
	key, text := "timeout", c.Timeout
	if own := c.Agents[alias].Timeout; own != "" {
		key, text = "agents."+alias+".timeout", own
	}
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fault.New(protocol.CodeInvalid, "%s must be a time such as 90s or 30m, got %q", key, text)
	}
	return d, nil
}

// nearest are hints for a name that does not exist.
func nearest(name string, known []string) []string {
	var hints []string
	for _, n := range suggest.Nearest(name, known, 3) {
		hints = append(hints, fmt.Sprintf("did you mean %q?", n))
	}
	return hints
}
