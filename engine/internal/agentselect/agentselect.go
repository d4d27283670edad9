// Package agentselect determines who plays a role: which program, with which arguments, and for how long. A
// user's choice for one run takes precedence over the config for the role, which takes precedence over the
// config's default. The package runs no agent.
package agentselect

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mattn/go-shellwords"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/agentproc"
	"github.com/united-workforce/uwf/engine/discover"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/engine/internal/limits"
	"github.com/united-workforce/uwf/engine/internal/oscommand"
	"github.com/united-workforce/uwf/engine/internal/retry"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/suggest"
)

// Caster selects players according to a config. All fields are required.
type Caster struct {
	Env    env.Env
	Dirs   home.Dirs
	Config func(ctx context.Context) (protocol.Config, error)
}

// Choices holds a user's choices for one run. The zero value leaves everything to the config.
type Choices struct {
	Agent    string            // alias or command line
	Agents   map[string]string // by role; takes precedence over Agent
	Earlier  map[string]string // choices for earlier steps, by role or [heads.AllRoles]; Agent and Agents take precedence
	Scenario string            // absolute path of a script from which uwf-mock plays all roles
	Timeout  time.Duration     // 0 means the configured timeout
}

// For returns the agent chosen for a role, or "".
func (o Choices) For(role string) string {
	return cmp.Or(o.Agents[role], o.Agent, o.Earlier[role], o.Earlier[heads.AllRoles])
}

// Chosen returns all agents that a user has chosen, by role or [heads.AllRoles]. A choice for all roles
// replaces earlier ones. Relative programs become absolute, because later steps may run in another directory.
func (r Caster) Chosen(ctx context.Context, o Choices) map[string]string {
	chosen := map[string]string{}
	if o.Agent == "" {
		maps.Copy(chosen, o.Earlier)
	} else {
		chosen[heads.AllRoles] = r.lasting(ctx, o.Agent)
	}
	for role, agent := range o.Agents {
		chosen[role] = r.lasting(ctx, agent)
	}
	return chosen
}

// lasting returns an agent in a form that means the same in every directory.
func (r Caster) lasting(ctx context.Context, agent string) string {
	c, err := r.Config(ctx)
	if err != nil {
		return agent // running it reports the error
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

// Casting describes who would play a role now.
type Casting struct {
	Role    string
	Player  protocol.Player
	Agent   string   // as the user specified it; "" if none is configured
	Command []string // as written by the user, without expanded variables, which may be secrets
	Path    string   // path of the program; "" if it is not installed
	Model   string   // provider and model, or the program's own name for it; "" if the program chooses
	Timeout time.Duration
	// Problem is the reason why the role cannot be played; nil if none is known.
	Problem *protocol.Error
}

// Cast determines who would play a role of a workflow. It starts no agent.
func (r Caster) Cast(ctx context.Context, w protocol.Workflow, role string, o Choices) Casting {
	c, cmd := r.Program(ctx, w, role, w.Roles[role].Command(), o)
	if c.Problem == nil && c.Player == protocol.PlayedByAgent {
		c.Model, c.Problem = r.modelFor(ctx, cmd, w.Name, role)
	}
	return c
}

// Program determines the program that would play a role. argv is the command line of a command role, as far
// as known.
func (r Caster) Program(ctx context.Context, w protocol.Workflow, role string, argv []string,
	o Choices) (Casting, Command) {
	c := Casting{Role: role, Player: w.Roles[role].Player()}
	if w.Roles[role].HasChildren() {
		c.Agent = protocol.JoinAgent
		return c, Command{}
	}
	if o.Scenario != "" {
		c.Player = protocol.PlayedByAgent
	}
	if c.Player == protocol.PlayedByPerson {
		c.Agent = protocol.PersonAgent
		return c, Command{}
	}
	cmd, err := r.Player(ctx, o, w, role, argv, nil)
	if err != nil {
		c.Problem = fault.Of(err)
		return c, cmd
	}
	if cmd.Plain != nil {
		c.Agent, c.Command, c.Timeout = cmd.Name, cmd.Argv, cmd.Timeout
		r.castCommand(&c)
		return c, cmd
	}
	c.Agent, c.Command, c.Timeout = cmd.Name, cmd.Written, cmd.Timeout
	if c.Timeout == 0 && config.IsAdapter(cmd.Argv[0]) {
		c.Timeout = config.AdapterTimeout
	}
	c.Path, c.Problem = r.find(ctx, cmd)
	return c, cmd
}

// find returns the path of an agent's program.
func (r Caster) find(ctx context.Context, cmd Command) (string, *protocol.Error) {
	environ := r.Env
	for key, value := range cmd.Env {
		environ = environ.With(key, value)
	}
	path, err := proc.LookPath(cmd.Argv[0], r.Env.Dir, environ.Environ)
	if err != nil {
		return "", r.Unstartable(ctx, cmd, &agentproc.NotFoundError{Command: cmd.Argv[0], Err: err})
	}
	return path, nil
}

// modelFor returns the model of one of our agents, or the model that the config sets for another.
func (r Caster) modelFor(ctx context.Context, cmd Command, workflow, role string) (string, *protocol.Error) {
	c, err := r.Config(ctx)
	if err != nil {
		return "", fault.Of(err)
	}
	if !config.OwnsModels(cmd.Argv[0]) {
		model, _, err := config.ExternalModel(c, cmd.Argv[0], cmd.Alias, workflow, role, r.Env)
		if err != nil {
			return "", fault.Of(err)
		}
		return model, nil
	}
	alias := modelFlag(cmd.Argv)
	if alias == "" {
		alias = config.AgentModel(c, cmd.Alias, workflow, role)
	}
	if alias == "" {
		return "", fault.New(protocol.CodeInvalid, "agent %q has no model: %s has no defaultModel", cmd.Name,
			r.Dirs.Config()).Because("no-model")
	}
	endpoint, err := config.ResolveModel(c, alias, r.Env)
	if err != nil {
		return "", fault.Of(err)
	}
	return endpoint.Provider + " " + endpoint.Model, nil
}

// modelFlag returns the model in the command line of one of our agents.
func modelFlag(argv []string) string {
	for i, arg := range argv {
		if value, ok := strings.CutPrefix(arg, "--model="); ok {
			return value
		}
		if arg == "--model" && i+1 < len(argv) {
			return argv[i+1]
		}
	}
	return ""
}

// castCommand finds the program of a command role, as far as it is known before the command line is rendered.
// A program in the workspace may not exist yet.
func (r Caster) castCommand(c *Casting) {
	program := c.Command[0]
	if strings.Contains(program, "{{") || filepath.Base(program) != program {
		return
	}
	path, err := proc.LookPath(program, r.Env.Dir, r.Env.Environ)
	if err != nil {
		c.Problem = oscommand.CannotStart(c.Role, &agentproc.NotFoundError{Command: program, Err: err})
		return
	}
	c.Path = path
}

// Command describes how to run an agent.
type Command struct {
	Name    string   // alias or command line, as the user specified it
	Alias   string   // alias in the config; "" for a command line
	Argv    []string // program and configured arguments
	Written []string // Argv as written by the user, without expanded variables, which may be secrets
	Env     map[string]string
	PassEnv []string      // secrets of .env to pass on
	Form    string        // form of the step's arguments: protocol.Agent.Protocol
	Account string        // provider account set in the config; if "", see [Caster.Account]
	Timeout time.Duration // 0 means none
	Earlier bool          // chosen for an earlier step and kept
	// Plain is the role if it is a command role.
	Plain *protocol.Role
}

// Player returns the program that plays a role: an agent, or, for a command role, the rendered command.
func (r Caster) Player(ctx context.Context, o Choices, w protocol.Workflow, name string, argv []string,
	env map[string]string) (Command, error) {
	role := w.Roles[name]
	if role.Player() != protocol.PlayedByCommand || o.Scenario != "" {
		return r.Agent(ctx, o, w.Name, name)
	}
	c, err := r.Config(ctx)
	if err != nil {
		return Command{}, err
	}
	cmd := Command{Name: protocol.CommandAgent, Argv: argv, Written: argv, Env: env,
		Timeout: time.Duration(role.TimeoutMs) * time.Millisecond, Plain: &role}
	if cmd.Timeout == 0 || o.Timeout > 0 {
		cmd.Timeout, err = timeoutFor(c, "", o.Timeout)
	}
	return cmd, err
}

// Foreign reports whether the command is a program on PATH without the prefix of agents, given as a command line.
// Such a program may not be an agent, for example claude.
func (c Command) Foreign() bool {
	name := c.Written[0]
	return c.Alias == "" && filepath.Base(name) == name && !strings.HasPrefix(name, protocol.AgentPrefix)
}

// Agent returns the agent for a role: the user's choice, else uwf-mock if there is a scenario, else the config's
// override for the role, else its default. A command line needs no config file.
func (r Caster) Agent(ctx context.Context, o Choices, workflow, role string) (Command, error) {
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
		// For "codex", use our adapter instead of the program itself, which is not an agent.
		if full := protocol.AgentName(override); discover.Installed(r.Env, full) {
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
	return Command{}, r.noAgent(c, role)
}

// configured returns an agent of the config; by is the config key that refers to it.
func (r Caster) configured(c protocol.Config, alias, by string) (Command, error) {
	written, known := c.Agents[alias]
	if !known {
		near := suggest.Nearest(alias, slices.Sorted(maps.Keys(c.Agents)), 3)
		err := fault.New(protocol.CodeInvalid, "%s refers to agent %q, which %s does not define", by, alias, r.Dirs.Config())
		return Command{}, err.Because("no-such-alias", append(fault.Near(near), "key", "agents."+alias+".command")...)
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
		return Command{}, fault.New(protocol.CodeInvalid, "invalid agents.%s.protocol %q: want positional or named", alias,
			a.Protocol)
	}
	// Relative paths in the config are relative to the config.
	argv := append([]string{rooted(a.Command, r.Dirs.Home)}, a.Args...)
	return Command{
		Name: alias, Alias: alias, Argv: argv, Env: a.Env, PassEnv: a.PassEnv, Form: a.Protocol, Account: a.Account,
		Written: append([]string{written.Command}, written.Args...),
	}, nil
}

// commandLine parses a command line. There is no shell: quotes group words, and nothing else is special.
func (r Caster) commandLine(line string) (Command, error) {
	parser := shellwords.NewParser()
	parser.ParseEnv, parser.ParseBacktick = false, false
	words, err := parser.Parse(line)
	if err == nil && parser.Position >= 0 { // it stopped at | & ; < or >, and would ignore the rest
		err = fmt.Errorf("no shell interprets %q", string([]rune(line)[parser.Position:]))
	}
	if err != nil {
		return Command{}, fault.New(protocol.CodeUsage, "invalid --agent %q: %v", line,
			err).Because("agent-not-a-command")
	}
	if len(words) == 0 || words[0] == "" {
		return Command{}, fault.New(protocol.CodeUsage, "--agent is empty").Because("agent-empty")
	}
	argv := slices.Clone(words)
	argv[0] = rooted(words[0], r.Env.Dir)
	return Command{Name: line, Argv: argv, Written: words}, nil
}

// rooted makes a relative path absolute. It keeps a bare name, which is looked up on PATH.
func rooted(command, dir string) string {
	if filepath.Base(command) == command || filepath.IsAbs(command) {
		return command
	}
	return filepath.Join(dir, command)
}

// Fallback returns the agent of an alias that takes over from another one.
func (r Caster) Fallback(c protocol.Config, alias string, o Choices) (Command, error) {
	cmd, err := r.configured(c, alias, "fallback")
	if err != nil {
		return cmd, err
	}
	cmd.Timeout, err = timeoutFor(c, alias, o.Timeout)
	return cmd, err
}

// timeoutFor returns the timeout of a step: the caller's, else the agent's, else the config's.
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
		return 0, fault.New(protocol.CodeInvalid, "%s must be a duration such as 90s or 30m, got %q", key, text)
	}
	return d, nil
}

// Named checks that the chosen agents exist, before anything is started for them. Errors are *protocol.Error:
// CodeUsage for an invalid command line, CodeNotFound for a missing program, CodeAgent for one that cannot be
// started.
func (r Caster) Named(ctx context.Context, o Choices) (err error) {
	defer fault.Coded(&err)
	names := slices.Sorted(maps.Values(o.Agents))
	if o.Agent != "" {
		names = append(names, o.Agent)
	}
	for _, name := range slices.Compact(names) {
		c, err := r.Config(ctx)
		if err != nil {
			return err
		}
		cmd, err := r.chooseAgent(c, name, "", "")
		if err != nil {
			return err
		}
		if _, missing := r.find(ctx, cmd); missing != nil {
			return missing
		}
	}
	return nil
}

// nearAgents suggests aliases of the config and agents on PATH with similar names.
func (r Caster) nearAgents(ctx context.Context, name string) []string {
	installed := discover.OnPath(r.Env)
	known := installed
	if c, err := r.Config(ctx); err == nil {
		known = slices.Concat(slices.Sorted(maps.Keys(c.Agents)), known)
	}
	near := suggest.Nearest(name, known, 2)
	if len(near) == 0 {
		near = suggest.Nearest(protocol.AgentName(name), installed, 1)
	}
	return near
}

// nearPrograms suggests a file with a similar name in the same directory, and the program on PATH with the
// same name.
func (r Caster) nearPrograms(cmd Command) []string {
	dir, base := filepath.Split(cmd.Written[0])
	var names []string
	if entries, err := os.ReadDir(filepath.Dir(cmd.Argv[0])); err == nil {
		for _, entry := range entries {
			names = append(names, entry.Name())
		}
	}
	near := suggest.Nearest(base, names, 1)
	for i := range near {
		near[i] = dir + near[i]
	}
	if _, err := proc.LookPath(base, r.Env.Dir, r.Env.Environ); err == nil {
		near = append(near, base)
	}
	return near
}

// Account returns the account that an agent uses: the one set in the config, else the provider of its model,
// else its program's own. Agents with the same program but other arguments or variables have other accounts,
// because these can select an account.
func (r Caster) Account(ctx context.Context, cmd Command, workflow, role string) limits.Account {
	if cmd.Account != "" {
		return limits.NewAccount(cmd.Account, nil)
	}
	if config.OwnsModels(cmd.Argv[0]) {
		if model, problem := r.modelFor(ctx, cmd, workflow, role); problem == nil {
			provider, _, _ := strings.Cut(model, " ")
			return limits.NewAccount(provider, nil)
		}
	}
	selectors := slices.Clone(cmd.Argv[1:])
	for _, key := range slices.Sorted(maps.Keys(cmd.Env)) {
		selectors = append(selectors, key+"="+cmd.Env[key])
	}
	return limits.NewAccount(config.AccountOf(cmd.Argv[0]), selectors)
}

// Limited reports whether no agent for a role may start, because all their accounts are limited or the daily
// limit is used up. It returns the limit that resets first. It only reads, and ignores errors in the config,
// which are reported when the role runs.
func (r Caster) Limited(
	ctx context.Context, accounts limits.Accounts, o Choices, workflow, role string,
) (first limits.Limit, held bool) {
	c, err := r.Config(ctx)
	if err != nil || accounts.None() {
		return limits.Limit{}, false
	}
	if l := accounts.Today(c.Limits).UsedUp(); l != (limits.Limit{}) {
		return l, true
	}
	cmd, err := r.Agent(ctx, o, workflow, role)
	p := retry.Of(c, cmd.Alias)
	for next := p.Fallback; err == nil; next = next[1:] {
		l, held := accounts.Limited(r.Account(ctx, cmd, workflow, role), retry.Of(c, cmd.Alias))
		if !held {
			break
		}
		if first = first.Sooner(l); len(next) == 0 || !p.FallsBack(protocol.FailedRateLimit) {
			return first, true
		}
		cmd, err = r.Fallback(c, next[0], o)
	}
	return limits.Limit{}, false
}
