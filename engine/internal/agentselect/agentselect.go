// Package casting finds who plays a role: which program, with which words, and for how
// long. What a person says for one run goes before what the config says for the role, and
// that before its default. Nothing is started here.
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

// Casting is who would play a role if its turn came now.
type Casting struct {
	Role    string
	Player  protocol.Player
	Agent   string   // as the user named it; "" if nobody is configured
	Command []string // as the user wrote it: a variable in it may be a secret
	Path    string   // of the program; "" if it is not installed
	Model   string   // provider and name, or what the agent's program calls it; "" if that is the program's own affair
	Timeout time.Duration
	// Problem is why the role could not be played; nil if nothing speaks against it.
	Problem *protocol.Error
}

// Cast finds who would play a role of a workflow. Nothing is started.
func (r Caster) Cast(ctx context.Context, w protocol.Workflow, role string, o Wish) Casting {
	c, cmd := r.Program(ctx, w, role, w.Roles[role].Command(), o)
	if c.Problem == nil && c.Player == protocol.PlayedByAgent {
		c.Model, c.Problem = r.modelFor(ctx, cmd, w.Name, role)
	}
	return c
}

// Program finds the program that would play a role.
// argv is that of a role that is a command, as far as it is known.
func (r Caster) Program(ctx context.Context, w protocol.Workflow, role string, argv []string,
	o Wish) (Casting, Command) {
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
	environ := r.Env
	for key, value := range cmd.Env {
		environ = environ.With(key, value)
	}
	if c.Path, err = proc.LookPath(cmd.Argv[0], r.Env.Dir, environ.Environ); err != nil {
		c.Problem = r.Unstartable(ctx, cmd, &agentproc.NotFoundError{Command: cmd.Argv[0], Err: err})
	}
	return c, cmd
}

// modelFor is the model that an agent of ours would ask, or that the config names
// for another.
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

// modelFlag is the model that an agent of ours is told on its command line.
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

// castCommand finds the program of a role that is a command, as far as it is known
// before its words are rendered: one of the workspace may still be made.
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
// that, with the words and variables as they were rendered.
func (r Caster) Player(ctx context.Context, o Wish, w protocol.Workflow, name string, argv []string,
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
		// codex: not the program itself, which is no agent
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
	return Command{}, r.nobody(c, role)
}

// configured is an agent of the config; by is the key that names it.
func (r Caster) configured(c protocol.Config, alias, by string) (Command, error) {
	written, known := c.Agents[alias]
	if !known {
		near := suggest.Nearest(alias, slices.Sorted(maps.Keys(c.Agents)), 3)
		err := fault.New(protocol.CodeInvalid, "%s names agent %q, which %s does not define", by, alias, r.Dirs.Config())
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
		return Command{}, fault.New(protocol.CodeInvalid, "agents.%s.protocol must be positional or named, got %q", alias,
			a.Protocol)
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
		return Command{}, fault.New(protocol.CodeUsage, "--agent %q is not a command line: %v", line,
			err).Because("agent-not-a-command")
	}
	if len(words) == 0 || words[0] == "" {
		return Command{}, fault.New(protocol.CodeUsage, "--agent must not be empty").Because("agent-empty")
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

// Named checks that the agents which options name exist, before anything is
// started for them. Errors are *protocol.Error: CodeUsage for what is no command
// line, CodeNotFound for a program that is nowhere, CodeAgent for one that cannot
// be started.
func (r Caster) Named(ctx context.Context, o Wish) (err error) {
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
		environ := r.Env
		for key, value := range cmd.Env {
			environ = environ.With(key, value)
		}
		if _, err := proc.LookPath(cmd.Argv[0], r.Env.Dir, environ.Environ); err != nil {
			return r.Unstartable(ctx, cmd, &agentproc.NotFoundError{Command: cmd.Argv[0], Err: err})
		}
	}
	return nil
}

// nearAgents are aliases of the config or agents on PATH that may have been meant.
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

// nearPrograms are another file of the directory, and the program on PATH of that name.
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

// Account is the account that an agent uses: the one that the config names, the provider of its
// model, or its program's own. Agents of one program with other arguments or variables have
// other accounts, since these can choose one.
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
	apart := slices.Clone(cmd.Argv[1:])
	for _, key := range slices.Sorted(maps.Keys(cmd.Env)) {
		apart = append(apart, key+"="+cmd.Env[key])
	}
	return limits.NewAccount(config.AccountOf(cmd.Argv[0]), apart)
}

// Held reports whether all agents that can play a role must not start, since their accounts are
// limited or the day's limit is used up, and returns the limit that is reset first. It only reads:
// what is wrong with the config, whoever plays the role reports.
func (r Caster) Held(
	ctx context.Context, accounts limits.Accounts, o Wish, workflow, role string,
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
		l, held := accounts.Held(r.Account(ctx, cmd, workflow, role), retry.Of(c, cmd.Alias))
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
