// Package setup writes config.yaml from a few answers: who plays the roles
// a provider, its key and a model if one of them needs it, and whether commands may
// run. The answers come from flags or from a person (dialog.go); what is not asked for
// stays as it is, comments included.
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
	Env  env.Env // with .env
	Dirs home.Dirs
	// Models lists what an endpoint has; Try asks a model for one word.
	Models func(ctx context.Context, e config.Endpoint) ([]string, error)
	Try    func(ctx context.Context, e config.Endpoint) error
	// Installed are the names of the agents on PATH, such as "uwf-builtin".
	Installed []string
	// Players are who can play roles here, see [FindPlayers].
	Players func(ctx context.Context) []Player
	// Confined: commands of agents can be kept from writing elsewhere.
	Confined bool
	// Replaced is the model that [Setup.Text] has replaced; nil: none.
	Replaced *protocol.SetupReplaced

	src []byte          // config.yaml as it is; empty: there is none
	old protocol.Config // what it says
}

// Answers are what is asked for. Empty fields stay as they are.
type Answers struct {
	Provider, BaseURL string
	APIKey            string
	APIKeyEnv         string // the variable that holds the key, instead of the key
	Model             string // its name at the provider
	// Agent plays the roles, and More are written down beside it; all with or without "uwf-".
	Agent, More string // More has commas between the names
	Commands    string // all, none, or programs with commas between them
}

// Empty reports that nothing is asked for.
func (a Answers) Empty() bool { return a == Answers{} }

// model reports that something about the model is asked for.
func (a Answers) model() bool {
	a.Agent, a.More, a.Commands = "", "", ""
	return !a.Empty()
}

// agents are all that are named.
func (a Answers) agents() []string {
	return strings.FieldsFunc(a.Agent+","+a.More, func(r rune) bool { return r == ',' })
}

// Open reads the config that is there. A config that cannot be read is an
// error: it is never replaced.
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

// Text is config.yaml with the answers in it, made of the text that is there.
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

// complete fills in what follows from what is known, and says what is missing.
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
			return missing("--api-key", "or put it into the environment: export "+known.KeyEnv+"=…")
		}
		a.APIKeyEnv = known.KeyEnv
	}
	if a.Model == "" && s.old.Models[s.alias()].Provider != a.Provider {
		return missing("--model", "the model's name at "+a.Provider)
	}
	return nil
}

// knownAgent refuses a name that is neither in the config nor installed nor ours:
// it is a slip, and would stop every step.
func (s *Setup) knownAgent(name string) error {
	var known []string
	for _, program := range slices.Concat(protocol.OwnAgents(), s.Installed) { // ours may be installed later
		known = append(known, strings.TrimPrefix(program, protocol.AgentPrefix))
	}
	known = append(known, slices.Sorted(maps.Keys(s.old.Agents))...)
	if name == "" || slices.Contains(known, name) {
		return nil
	}
	return cmdline.NotFound(fmt.Sprintf("there is no agent %q: %s is not on PATH, and it is none of ours", name, protocol.AgentName(name)),
		append(cmdline.DidYouMean("--agent ", name, known), "uwf config set "+plaintext.Word("agents."+name+".command")+" <program>, if it is one of your own")...)
}

// checkURL refuses what no endpoint can be reached by; a variable in it is
// replaced when it is used.
func checkURL(address string) error {
	if address == "" || strings.Contains(address, "${") {
		return nil
	}
	u, err := url.Parse(address)
	if err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" {
		return nil
	}
	return cmdline.UsageError("the base URL is not an http or https address", "it looks like https://host/v1")
}

// alias is the model that setup is about.
func (s *Setup) alias() string {
	if s.old.DefaultModel != "" {
		return s.old.DefaultModel
	}
	return "default"
}

// noAddress is the error for a provider that nobody knows, mistyped or new.
func noAddress(provider string) error {
	return cmdline.UsageError(fmt.Sprintf("provider %q is not known, and --base-url is missing", provider), append(cmdline.DidYouMean("--provider ", provider, PresetNames()),
		"the address of "+provider+", such as https://host/v1; known without it: "+strings.Join(PresetNames(), ", "))...)
}

func missing(flag string, hints ...string) error {
	return &protocol.Error{Code: protocol.CodeUsage, Message: flag + " is missing", Hints: hints}
}

// Endpoint is the model that a config uses by default, with its key; ok is
// false if it names none.
func (s *Setup) Endpoint(c protocol.Config) (e config.Endpoint, ok bool, err error) {
	if c.DefaultModel == "" {
		return e, false, nil
	}
	e, err = config.ResolveModel(c, c.DefaultModel, s.Env)
	return e, true, err
}

// The words of --commands, beside a list of programs.
const (
	commandsAll  = "all"
	commandsNone = "none"
)

// editsOnly is the permission of an agent that runs no commands.
const editsOnly = "edits"

// programs is what --commands means for our own agents: the programs that they may run.
func programs(commands string) []string {
	switch commands {
	case commandsAll:
		return []string{config.AnyProgram}
	case commandsNone:
		return []string{}
	}
	return strings.FieldsFunc(commands, func(r rune) bool { return r == ',' || r == ' ' })
}

// checkCommands refuses what is neither a word nor a list of programs.
func checkCommands(commands string) error {
	if commands == "" || len(programs(commands)) > 0 && !strings.ContainsAny(commands, "*/\\'\"") || commands == commandsNone {
		return nil
	}
	return cmdline.UsageError(fmt.Sprintf("--commands %q is neither all, none nor a list of programs", commands),
		"--commands all", "--commands none", "--commands go,git")
}

// listed is builtin.allowCommands as it is asked for; ok is false if nobody asks, or no
// agent of ours is concerned.
func (s *Setup) listed(a Answers) (_ []any, ok bool) {
	if a.Commands == "" || !s.asksModels(s.concerned(a)) {
		return nil, false
	}
	out := []any{} // as the config's editor takes it
	for _, program := range programs(a.Commands) {
		out = append(out, program)
	}
	return out, true
}

// current is --commands as the config says it for some agents.
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

// asksModels reports whether one of some agents asks a model of the config.
func (s *Setup) asksModels(agents []string) bool {
	return slices.ContainsFunc(agents, func(name string) bool { return config.OwnsModels(s.program(name)) })
}

// program is what an agent is or will be started by.
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
	d.say("\nMay it run commands, such as your tests? %s", where)
	d.say("   all   any program")
	if d.asksModels(agents) {
		d.say("   LIST  only these programs, such as go,git,npm")
	}
	d.say("   none  it reads and changes files, and says what should be run")
	for {
		answer, err := d.person.Line(ctx, "Commands ["+fallback+"]: ")
		if err != nil {
			return err
		}
		if answer == "" {
			answer = fallback
		}
		if answer == fallback && d.known(agents) {
			return nil // as it is
		}
		if len(programs(answer)) > 0 && answer != commandsAll && !d.asksModels(agents) {
			d.say("%s cannot be held to a list: all or none.", strings.Join(agents, ", "))
			continue
		}
		if err := checkCommands(answer); err != nil {
			d.say("Type all, none, or the names of programs with commas between them.")
			continue
		}
		a.Commands = answer
		return nil
	}
}

// known reports whether the config says something of these agents already.
func (s *Setup) known(agents []string) bool {
	return !slices.ContainsFunc(agents, func(name string) bool { _, known := s.old.Agents[name]; return !known })
}

// concerned are the agents for which --commands is said: those that are named with it,
// else all.
func (s *Setup) concerned(a Answers) []string {
	if names := a.agents(); len(names) > 0 {
		return names
	}
	return slices.Sorted(maps.Keys(s.old.Agents))
}

// permissions are the changes that --commands makes to agents that drive programs: of
// those programs only all or none can be asked.
func (s *Setup) permissions(a Answers) []change {
	var out []change
	for _, name := range s.concerned(a) {
		agent, known := s.old.Agents[name]
		if !known {
			continue // written with it, see agentMap
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

// text is config.yaml with the answers in it.
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
		// What is missing beside one value comes with the next one.
		if text, _, err = config.Set(text, s.Dirs.Config(), key, c.value, s.Env); err != nil {
			return nil, err
		}
	}
	_, err := config.Parse(text, s.Dirs.Config(), s.Env)
	return text, err
}

// change is one value of the config.
type change struct {
	key   string
	value any
}

// changes are the values that differ from what the config says.
func (s *Setup) changes(a Answers) []change {
	var out []change
	if a.model() {
		provider := "providers." + quoted(a.Provider)
		if was, known := s.old.Providers[a.Provider]; !known || a.APIKey != "" && was.APIKeyEnv != "" || a.APIKeyEnv != "" && was.APIKey != "" {
			// A new one, or one whose key moves: written as a whole.
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

// modelChanges make a model the default. The old default stays under its alias, so that it can be
// restored.
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

// quoted is a part of a key that may hold dots.
func quoted(part string) string {
	if strings.ContainsAny(part, ". \"") {
		return `"` + strings.ReplaceAll(part, `"`, `\"`) + `"`
	}
	return part
}

// providerMap is a provider as it is written, without what it has not.
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

// agentMap is an agent as it is written.
func agentMap(name string, a Answers) map[string]any {
	m := map[string]any{"command": protocol.AgentName(name)}
	if a.Commands != "" && a.Commands != commandsAll && heedsPermission(protocol.AgentName(name)) {
		m["permission"] = editsOnly
	}
	return m
}

// heedsPermission reports whether a command drives a program that is told what it may do.
func heedsPermission(command string) bool {
	return config.IsAdapter(command) && config.HeedsPermission(command)
}

// header begins the config of a home that has none.
const header = `# The configuration of uwf. "uwf config list" shows what is in force, "uwf doctor" what is
# wrong with it. It holds keys: keep it to yourself (mode 0600).
#
# Providers, models and agents have names of your own. Instead of apiKey, apiKeyEnv names the
# variable that holds it. An agent is any program that follows the protocol; its permission is
# full, edits (no commands) or read-only. modelOverrides and agentOverrides choose for a role:
#   agentOverrides: { <workflow>: { <role>: <agent> } }
# builtin.allowCommands lists the programs that our own agents may run: "*" is any, [] is none.

`
