// Package setup writes config.yaml from a few answers: who plays the roles
// (players.go), a provider, its key and a model if one of them needs it, and whether
// commands may run (commands.go). The answers come from flags or from a person
// (dialog.go); what is not asked for stays as it is, comments included (write.go).
package setup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/suggest"
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
	hints := []string{"uwf config set " + plaintext.Word("agents."+name+".command") + " <program>, if it is one of your own"}
	if near := suggest.Nearest(name, known, 1); len(near) > 0 {
		hints = append([]string{"did you mean --agent " + near[0] + "?"}, hints...)
	}
	return &protocol.Error{
		Code: protocol.CodeNotFound, Hints: hints,
		Message: fmt.Sprintf("there is no agent %q: %s is not on PATH, and it is none of ours", name, protocol.AgentName(name)),
	}
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
	return &protocol.Error{
		Code: protocol.CodeUsage, Message: "the base URL is not an http or https address",
		Hints: []string{"it looks like https://host/v1"},
	}
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
	hints := []string{"the address of " + provider + ", such as https://host/v1; known without it: " + strings.Join(PresetNames(), ", ")}
	if near := suggest.Nearest(provider, PresetNames(), 1); len(near) > 0 {
		hints = append([]string{"did you mean --provider " + near[0] + "?"}, hints...)
	}
	return &protocol.Error{Code: protocol.CodeUsage, Hints: hints, Message: fmt.Sprintf("provider %q is not known, and --base-url is missing", provider)}
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
