// Package setup writes config.yaml from a few answers: which agents run the roles; a provider, its key and a
// model if one of them needs it; and whether commands may run. The answers come from flags or from the user
// (dialog.go). All other settings stay as they are, including comments.
package setup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/plaintext"
)

// Setup changes the config of one home.
type Setup struct {
	Env  env.Env // includes .env
	Dirs home.Dirs
	// Models lists an endpoint's models; Try asks a model for one word.
	Models func(ctx context.Context, e config.Endpoint) ([]string, error)
	Try    func(ctx context.Context, e config.Endpoint) error
	// Installed lists the agents on PATH, such as "uwf-builtin".
	Installed []string
	// Players returns the available agents; see [FindPlayers].
	Players func(ctx context.Context) []Player
	// Confined means that agents' commands can be restricted to writing the workspace.
	Confined bool
	// Replaced is the default model that [Setup.Text] has replaced, or nil.
	Replaced *protocol.SetupReplaced

	src []byte          // current config.yaml; empty if missing
	old protocol.Config // its content
}

// Answers holds the settings to change. Empty fields keep the current value.
type Answers struct {
	Provider, BaseURL string
	APIKey            string
	APIKeyEnv         string // environment variable that holds the key, instead of the key
	Model             string // the provider's name for it
	// Agent is the default agent; More lists additional ones; all with or without "uwf-".
	Agent, More string // More is comma-separated
	Commands    string // all, none, or a comma-separated list of programs
}

// Empty reports whether no change is requested.
func (a Answers) Empty() bool { return a == Answers{} }

// model reports whether a change to the model is requested.
func (a Answers) model() bool {
	a.Agent, a.More, a.Commands = "", "", ""
	return !a.Empty()
}

// agents returns all agents in the answers.
func (a Answers) agents() []string {
	return strings.FieldsFunc(a.Agent+","+a.More, func(r rune) bool { return r == ',' })
}

// Open reads the existing config. An unreadable config is an error and is never replaced.
func (s *Setup) Open() error {
	src, err := config.ReadFile(s.Dirs.Config())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read config: %w", err)
	}
	return s.read(src)
}

func (s *Setup) read(src []byte) (err error) {
	s.src = src
	s.old, err = config.ParseUnfinished(src, s.Dirs.Config(), s.Env)
	return err
}

// Text returns config.yaml with the answers applied to src.
func (s *Setup) Text(src []byte, a Answers) ([]byte, error) {
	if err := s.read(src); err != nil {
		return nil, err
	}
	if err := s.complete(&a); err != nil {
		return nil, err
	}
	s.Replaced = nil
	return s.text(a)
}

// complete fills in implied answers and returns an error for missing ones.
func (s *Setup) complete(a *Answers) error {
	names := a.agents()
	for i, name := range names {
		names[i] = strings.TrimPrefix(name, protocol.AgentPrefix)
		if err := s.knownAgent(names[i]); err != nil {
			return err
		}
	}
	if len(names) > 0 {
		a.Agent, a.More = names[0], strings.Join(names[1:], ",")
	}
	if err := checkCommands(a.Commands); err != nil {
		return err
	}
	if !a.model() {
		return nil
	}
	if a.Provider == "" {
		a.Provider = s.old.Models[s.alias()].Provider
	}
	if a.Provider == "" {
		return missing("--provider", "one of "+strings.Join(PresetNames(), ", ")+"; or any name, with --base-url")
	}
	known, isPreset := preset(a.Provider)
	if isPreset {
		a.Provider = known.Name
	}
	was := s.old.Providers[a.Provider]
	if a.BaseURL == "" && was.BaseURL == "" {
		if !isPreset {
			return noAddress(a.Provider)
		}
		a.BaseURL = known.BaseURL
	}
	if err := checkURL(a.BaseURL); err != nil {
		return err
	}
	if a.APIKey == "" && a.APIKeyEnv == "" && was.APIKey == "" && was.APIKeyEnv == "" && isPreset && known.KeyEnv != "" {
		if s.Env.Get(known.KeyEnv) == "" {
			return missing("--api-key", "or set it: export "+known.KeyEnv+"=…")
		}
		a.APIKeyEnv = known.KeyEnv
	}
	if a.Model == "" && s.old.Models[s.alias()].Provider != a.Provider {
		return missing("--model", "the model's name at "+a.Provider)
	}
	return nil
}

// knownAgent rejects a name that is not in the config, installed, or built in, because a typo would stop
// every step.
func (s *Setup) knownAgent(name string) error {
	var known []string
	for _, program := range slices.Concat(protocol.OwnAgents(), s.Installed) { // ours may be installed later
		known = append(known, strings.TrimPrefix(program, protocol.AgentPrefix))
	}
	known = append(known, slices.Sorted(maps.Keys(s.old.Agents))...)
	if name == "" || slices.Contains(known, name) {
		return nil
	}
	return cmdline.NotFound(fmt.Sprintf("agent %q not found: %s is not on PATH, and it is not one of uwf's agents", name, protocol.AgentName(name)),
		append(cmdline.DidYouMean("--agent ", name, known), "to add your own: uwf config set "+plaintext.Word("agents."+name+".command")+" <program>")...)
}

// checkURL rejects an invalid URL; a variable in it is replaced when it is used.
func checkURL(address string) error {
	if address == "" || strings.Contains(address, "${") {
		return nil
	}
	u, err := url.Parse(address)
	if err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" {
		return nil
	}
	return cmdline.UsageError("invalid --base-url: want an http or https address", "--base-url https://host/v1")
}

// alias returns the alias of the model to set up.
func (s *Setup) alias() string {
	if s.old.DefaultModel != "" {
		return s.old.DefaultModel
	}
	return "default"
}

// noAddress returns the error for an unknown provider, mistyped or new.
func noAddress(provider string) error {
	return cmdline.UsageError(fmt.Sprintf("unknown provider %q without --base-url", provider), append(cmdline.DidYouMean("--provider ", provider, PresetNames()),
		"known providers: "+strings.Join(PresetNames(), ", "))...)
}

func missing(flag string, hints ...string) error {
	return &protocol.Error{Code: protocol.CodeUsage, Message: "missing flag " + flag, Hints: hints}
}

// Endpoint returns the config's default model with its key. ok is false if there is none.
func (s *Setup) Endpoint(c protocol.Config) (e config.Endpoint, ok bool, err error) {
	if c.DefaultModel == "" {
		return e, false, nil
	}
	e, err = config.ResolveModel(c, c.DefaultModel, s.Env)
	return e, true, err
}

// Values of --commands other than a list of programs.
const (
	commandsAll  = "all"
	commandsNone = "none"
)

// editsOnly is the permission of an agent that runs no commands.
const editsOnly = "edits"

// programs returns the programs that --commands allows for our own agents.
func programs(commands string) []string {
	switch commands {
	case commandsAll:
		return []string{config.AnyProgram}
	case commandsNone:
		return []string{}
	}
	return strings.FieldsFunc(commands, func(r rune) bool { return r == ',' || r == ' ' })
}

// checkCommands rejects an invalid value of --commands.
func checkCommands(commands string) error {
	if commands == "" || len(programs(commands)) > 0 && !strings.ContainsAny(commands, "*/\\'\"") || commands == commandsNone {
		return nil
	}
	return cmdline.UsageError(fmt.Sprintf("invalid --commands %q: want all, none or a list of programs", commands),
		"--commands all", "--commands none", "--commands go,git")
}

// listed returns the requested value of builtin.allowCommands. ok is false if none was requested or no agent
// of ours is affected.
func (s *Setup) listed(a Answers) (_ []any, ok bool) {
	if a.Commands == "" || !s.asksModels(s.concerned(a)) {
		return nil, false
	}
	out := []any{} // element type expected by the config editor
	for _, program := range programs(a.Commands) {
		out = append(out, program)
	}
	return out, true
}

// current returns the value of --commands that corresponds to the config of some agents.
func (s *Setup) current(agents []string) string {
	if s.asksModels(agents) {
		switch b := s.old.Builtin; {
		case b == nil || len(b.AllowCommands) == 0:
			return commandsNone
		case slices.Contains(b.AllowCommands, config.AnyProgram):
			return commandsAll
		default:
			return strings.Join(b.AllowCommands, ",")
		}
	}
	for _, name := range agents {
		if p := s.old.Agents[name].Permission; p == editsOnly || p == "read-only" {
			return commandsNone
		}
	}
	return commandsAll
}

// asksModels reports whether any of the agents uses a model from the config.
func (s *Setup) asksModels(agents []string) bool {
	return slices.ContainsFunc(agents, func(name string) bool { return config.OwnsModels(s.program(name)) })
}

// program returns the command of an existing or new agent.
func (s *Setup) program(name string) string {
	if a, known := s.old.Agents[name]; known {
		return a.Command
	}
	return protocol.AgentName(name)
}

// commands asks whether the agents may run commands.
func (d dialog) commands(ctx context.Context, a *Answers) error {
	if a.Commands != "" {
		return nil
	}
	agents := a.agents()
	fallback := commandsAll
	switch {
	case d.known(agents):
		fallback = d.current(agents)
	case !d.Confined:
		fallback = commandsNone
	}
	where := "They can write only in the directory where it works."
	if !d.Confined {
		where = "Nothing on this machine keeps them from writing elsewhere."
	}
	d.printf("\nMay it run commands, such as your tests? %s", where)
	d.printf("   all   any program")
	if d.asksModels(agents) {
		d.printf("   LIST  only these programs, such as go,git,npm")
	}
	d.printf("   none  it reads and changes files, and says what should be run")
	for {
		answer, err := d.person.Line(ctx, "Commands ["+fallback+"]: ")
		if err != nil {
			return err
		}
		if answer == "" {
			answer = fallback
		}
		if answer == fallback && d.known(agents) {
			return nil // unchanged
		}
		if len(programs(answer)) > 0 && answer != commandsAll && !d.asksModels(agents) {
			d.printf("%s cannot be held to a list: all or none.", strings.Join(agents, ", "))
			continue
		}
		if err := checkCommands(answer); err != nil {
			d.printf("Type all, none, or the names of programs with commas between them.")
			continue
		}
		a.Commands = answer
		return nil
	}
}

// known reports whether the config already sets this for these agents.
func (s *Setup) known(agents []string) bool {
	return !slices.ContainsFunc(agents, func(name string) bool { _, known := s.old.Agents[name]; return !known })
}

// concerned returns the agents to which --commands applies: those in the answers, or else all.
func (s *Setup) concerned(a Answers) []string {
	if names := a.agents(); len(names) > 0 {
		return names
	}
	return slices.Sorted(maps.Keys(s.old.Agents))
}

// permissions returns the changes for agents that drive programs, which support only all or none.
func (s *Setup) permissions(a Answers) []change {
	var out []change
	for _, name := range s.concerned(a) {
		agent, known := s.old.Agents[name]
		if !known {
			continue // a new agent includes it; see agentMap
		}
		if !heedsPermission(agent.Command) {
			continue
		}
		switch {
		case a.Commands == commandsAll && agent.Permission != "":
			out = append(out, change{"agents." + quoted(name) + ".permission", "full"})
		case a.Commands != commandsAll && (agent.Permission == "" || agent.Permission == "full"):
			out = append(out, change{"agents." + quoted(name) + ".permission", editsOnly})
		}
	}
	return out
}

// text returns config.yaml with the answers applied.
func (s *Setup) text(a Answers) ([]byte, error) {
	text := s.src
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte(header)
	}
	for _, c := range s.changes(a) {
		key, err := config.ParseKey(c.key)
		if err != nil {
			return nil, err
		}
		// A setting that is incomplete now is completed by a later change.
		if text, _, err = config.Set(text, s.Dirs.Config(), key, c.value, s.Env); err != nil {
			return nil, err
		}
	}
	_, err := config.Parse(text, s.Dirs.Config(), s.Env)
	return text, err
}

// change is one changed value.
type change struct {
	key   string
	value any
}

// changes returns the values that differ from the config.
func (s *Setup) changes(a Answers) []change {
	var out []change
	if a.model() {
		provider := "providers." + quoted(a.Provider)
		if was, known := s.old.Providers[a.Provider]; !known || a.APIKey != "" && was.APIKeyEnv != "" || a.APIKeyEnv != "" && was.APIKey != "" {
			// For a new provider, or one whose key moves, write the whole entry.
			if a.BaseURL == "" {
				a.BaseURL = was.BaseURL
			}
			out = append(out, change{provider, providerMap(a)})
		} else {
			out = append(out, ifSet(provider+".baseUrl", a.BaseURL)...)
			out = append(out, ifSet(provider+".apiKey", a.APIKey)...)
			out = append(out, ifSet(provider+".apiKeyEnv", a.APIKeyEnv)...)
		}
		out = append(out, s.modelChanges(a)...)
	}
	for _, name := range a.agents() {
		if _, known := s.old.Agents[name]; !known {
			out = append(out, change{"agents." + quoted(name), agentMap(name, a)})
		}
	}
	out = append(out, ifSet("defaultAgent", a.Agent)...)
	if programs, ok := s.listed(a); ok {
		out = append(out, change{"builtin.allowCommands", programs})
	}
	if a.Commands != "" {
		out = append(out, s.permissions(a)...)
	}
	return out
}

// modelChanges make a model the default. The old default stays under its alias, so that it can be restored.
func (s *Setup) modelChanges(a Answers) (out []change) {
	alias := s.alias()
	if was, known := s.old.Models[alias]; known {
		url := s.old.Providers[was.Provider].BaseURL
		moved := a.BaseURL != "" && a.BaseURL != url
		same := a.Provider == was.Provider && (a.Model == "" || a.Model == was.Name)
		if !same || moved && a.Provider == was.Provider {
			s.Replaced = &protocol.SetupReplaced{Alias: alias, Provider: was.Provider, Model: was.Name, BaseURL: url}
		}
		if !same {
			alias = s.newAlias(a)
		}
	}
	if _, known := s.old.Models[alias]; !known {
		out = append(out, change{"models." + quoted(alias), modelMap(a)})
	}
	if s.old.DefaultModel != alias {
		out = append(out, change{"defaultModel", alias})
	}
	return out
}

// newAlias returns the requested model's alias, or a free one.
func (s *Setup) newAlias(a Answers) string {
	alias := a.Model
	for n := 2; ; n++ {
		m, known := s.old.Models[alias]
		if !known || m.Provider == a.Provider && m.Name == a.Model {
			return alias
		}
		alias = a.Model + "-" + strconv.Itoa(n)
	}
}

func ifSet(key, value string) []change {
	if value == "" {
		return nil
	}
	return []change{{key, value}}
}

// quoted quotes a key element that contains dots.
func quoted(part string) string {
	if strings.ContainsAny(part, ". \"") {
		return `"` + strings.ReplaceAll(part, `"`, `\"`) + `"`
	}
	return part
}

// providerMap returns a provider's config entry without empty fields.
func providerMap(a Answers) map[string]any {
	m := map[string]any{"baseUrl": a.BaseURL}
	if a.APIKey != "" {
		m["apiKey"] = a.APIKey
	}
	if a.APIKeyEnv != "" {
		m["apiKeyEnv"] = a.APIKeyEnv
	}
	return m
}

func modelMap(a Answers) map[string]any {
	return map[string]any{"provider": a.Provider, "name": a.Model}
}

// agentMap returns an agent's config entry.
func agentMap(name string, a Answers) map[string]any {
	m := map[string]any{"command": protocol.AgentName(name)}
	if a.Commands != "" && a.Commands != commandsAll && heedsPermission(protocol.AgentName(name)) {
		m["permission"] = editsOnly
	}
	return m
}

// heedsPermission reports whether a command's program supports permissions.
func heedsPermission(command string) bool {
	return config.IsAdapter(command) && config.HeedsPermission(command)
}

// header is the start of a new config file.
const header = `# The configuration of uwf. "uwf config list" shows what is in force, "uwf doctor" what is
# wrong with it. It holds keys: keep it to yourself (mode 0600).
#
# You choose the names of providers, models and agents. Instead of apiKey, apiKeyEnv gives the
# variable that holds the key. An agent is any program that follows the protocol; its permission is
# full, edits (no commands) or read-only. modelOverrides and agentOverrides choose for a role:
#   agentOverrides: { <workflow>: { <role>: <agent> } }
# builtin.allowCommands lists the programs that our own agents may run: "*" is any, [] is none.

`
