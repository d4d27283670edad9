package casting

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mattn/go-shellwords"

	"github.com/united-workforce/uwf/engine/discover"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/plaintext"
)

// Command is an agent as it is to be run.
type Command struct {
	Name    string   // as the user named it: an alias or a command line
	Alias   string   // in the config; "" for a command line
	Argv    []string // the program and its configured arguments
	Written []string // the same as the user wrote it: a variable in it may be a secret
	Env     map[string]string
	PassEnv []string      // secrets of .env that it gets
	Form    string        // of the step in its arguments: protocol.Agent.Protocol
	Account string        // at its provider, as the config names it; "": see [Caster.Account]
	Timeout time.Duration // 0: none
	Earlier bool          // chosen for an earlier step, and kept
	// Plain is the role of a command that is no agent.
	Plain *protocol.Role
}

// Player is the program that plays a role: an agent, or for a role that is a command
// that, with the words as they were rendered.
func (r Caster) Player(ctx context.Context, o Wish, w protocol.Workflow, name string, argv []string) (Command, error) {
	role := w.Roles[name]
	if role.Player() != protocol.PlayedByCommand || o.Scenario != "" {
		return r.Agent(ctx, o, w.Name, name)
	}
	c, err := r.Config(ctx)
	if err != nil {
		return Command{}, err
	}
	cmd := Command{Name: protocol.CommandAgent, Argv: argv, Written: argv, Timeout: time.Duration(role.TimeoutMs) * time.Millisecond, Plain: &role}
	if cmd.Timeout == 0 || o.Timeout > 0 {
		cmd.Timeout, err = timeoutFor(c, "", o.Timeout)
	}
	return cmd, err
}

// Foreign reports whether the command was typed and may be no agent at all, such as claude.
func (c Command) Foreign() bool {
	name := c.Written[0]
	return c.Alias == "" && filepath.Base(name) == name && !strings.HasPrefix(name, protocol.AgentPrefix)
}

// Agent decides who plays a role: --agent, then the override for the role,
// then the default. It needs no config if --agent is a command line.
func (r Caster) Agent(ctx context.Context, o Wish, workflow, role string) (Command, error) {
	if o.Scenario != "" && o.For(role) == "" {
		argv := []string{protocol.AgentName("mock"), "--mock-data", o.Scenario}
		return Command{Name: argv[0], Argv: argv, Written: argv, Timeout: o.Timeout}, nil
	}
	c, err := r.Config(ctx)
	if err != nil {
		return Command{}, err
	}
	cmd, err := r.chooseAgent(c, o.For(role), workflow, role)
	if err != nil {
		return Command{}, err
	}
	cmd.Earlier = o.Agent == "" && o.Agents[role] == "" && o.For(role) != ""
	cmd.Timeout, err = timeoutFor(c, cmd.Alias, o.Timeout)
	return cmd, err
}

func (r Caster) chooseAgent(c protocol.Config, override, workflow, role string) (Command, error) {
	if override != "" {
		if _, known := c.Agents[override]; known {
			return r.configured(c, override, "--agent")
		}
		if full := protocol.AgentName(override); discover.Installed(r.Env, full) { // codex: not the program itself, which is no agent
			return r.commandLine(full)
		}
		return r.commandLine(override)
	}
	if alias := c.AgentOverrides[workflow][role]; alias != "" {
		return r.configured(c, alias, fmt.Sprintf("agentOverrides.%s.%s", workflow, role))
	}
	if c.DefaultAgent != "" {
		return r.configured(c, c.DefaultAgent, "defaultAgent")
	}
	return Command{}, r.nobody(c, role)
}

// configured is an agent of the config; by is the key that names it.
func (r Caster) configured(c protocol.Config, alias, by string) (Command, error) {
	written, known := c.Agents[alias]
	if !known {
		aliases := slices.Sorted(maps.Keys(c.Agents))
		err := fault.New(protocol.CodeInvalid, "%s names agent %q, which %s does not define", by, alias, r.Dirs.Config())
		return Command{}, fault.Hinted(fault.Hinted(err, fault.Nearest(alias, aliases)...), "uwf config set "+plaintext.Word("agents."+alias+".command")+" <program>", "uwf setup --agent builtin")
	}
	a, err := config.ResolveAgent(c, alias, r.Env)
	if err != nil {
		return Command{}, err
	}
	if a.Command == "" {
		return Command{}, fault.New(protocol.CodeInvalid, "agents.%s has no command in %s", alias, r.Dirs.Config())
	}
	switch a.Protocol {
	case "", "positional", "named":
	default:
		return Command{}, fault.New(protocol.CodeInvalid, "agents.%s.protocol must be positional or named, got %q", alias, a.Protocol)
	}
	// A relative path in the config is relative to the config.
	argv := append([]string{rooted(a.Command, r.Dirs.Home)}, a.Args...)
	return Command{
		Name: alias, Alias: alias, Argv: argv, Env: a.Env, PassEnv: a.PassEnv, Form: a.Protocol, Account: a.Account,
		Written: append([]string{written.Command}, written.Args...),
	}, nil
}

// commandLine is an agent given as a command line. There is no shell: quotes
// group words, and nothing else is special.
func (r Caster) commandLine(line string) (Command, error) {
	parser := shellwords.NewParser()
	parser.ParseEnv, parser.ParseBacktick = false, false
	words, err := parser.Parse(line)
	if err == nil && parser.Position >= 0 { // it stops at | & ; < > and drops the rest
		err = fmt.Errorf("there is no shell to do %q", string([]rune(line)[parser.Position:]))
	}
	if err != nil {
		return Command{}, fault.Hinted(fault.New(protocol.CodeUsage, "--agent %q is not a command line: %v", line, err),
			"quotes go together, and there is no shell: --agent 'program \"an argument\"'")
	}
	if len(words) == 0 || words[0] == "" {
		return Command{}, fault.Hinted(fault.New(protocol.CodeUsage, "--agent must not be empty"), "--agent <alias or command>")
	}
	argv := slices.Clone(words)
	argv[0] = rooted(words[0], r.Env.Dir)
	return Command{Name: line, Argv: argv, Written: words}, nil
}

// rooted makes a relative path absolute; a bare name stays one, for PATH.
func rooted(command, dir string) string {
	if filepath.Base(command) == command || filepath.IsAbs(command) {
		return command
	}
	return filepath.Join(dir, command)
}

// Fallback is the agent of an alias that takes over from another one.
func (r Caster) Fallback(c protocol.Config, alias string, o Wish) (Command, error) {
	cmd, err := r.configured(c, alias, "fallback")
	if err != nil {
		return cmd, err
	}
	cmd.Timeout, err = timeoutFor(c, alias, o.Timeout)
	return cmd, err
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
