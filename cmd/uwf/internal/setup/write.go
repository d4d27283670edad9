package setup

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/yamltext"
)

// text is config.yaml with the answers in it.
func (s *Setup) text(a Answers) ([]byte, error) {
	if len(bytes.TrimSpace(s.src)) == 0 {
		return s.fresh(a)
	}
	text := s.src
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
			out = append(out, change{provider, plain(providerMap(a))})
		} else {
			out = append(out, ifSet(provider+".baseUrl", a.BaseURL)...)
			out = append(out, ifSet(provider+".apiKey", a.APIKey)...)
			out = append(out, ifSet(provider+".apiKeyEnv", a.APIKeyEnv)...)
		}
		out = append(out, s.modelChanges(a)...)
	}
	for _, name := range a.agents() {
		if _, known := s.old.Agents[name]; !known {
			out = append(out, change{"agents." + quoted(name), plain(agentMap(name, a))})
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
		out = append(out, change{"models." + quoted(alias), plain(modelMap(a))})
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
func providerMap(a Answers) yamltext.Map {
	m := yamltext.Map{{Key: "baseUrl", Value: a.BaseURL}}
	if a.APIKey != "" {
		m = append(m, yamltext.Entry{Key: "apiKey", Value: a.APIKey})
	}
	if a.APIKeyEnv != "" {
		m = append(m, yamltext.Entry{Key: "apiKeyEnv", Value: a.APIKeyEnv})
	}
	return m
}

func modelMap(a Answers) yamltext.Map {
	return yamltext.Map{{Key: "provider", Value: a.Provider}, {Key: "name", Value: a.Model}}
}

// plain is a mapping without an order, as the config's editor takes it.
func plain(m yamltext.Map) map[string]any {
	out := map[string]any{}
	for _, e := range m {
		out[e.Key] = e.Value
	}
	return out
}

// agentMap is an agent as it is written.
func agentMap(name string, a Answers) yamltext.Map {
	program := protocol.AgentName(name)
	m := yamltext.Map{{Key: "command", Value: program}}
	if a.Commands != "" && a.Commands != commandsAll && config.IsAdapter(program) && config.HeedsPermission(program) {
		m = append(m, yamltext.Entry{Key: "permission", Value: editsOnly})
	}
	return m
}

// fresh is a config for a home that has none.
func (s *Setup) fresh(a Answers) ([]byte, error) {
	out := bytes.NewBufferString("# The configuration of uwf. `uwf config list` shows what is in force, `uwf doctor`\n" +
		"# what is wrong with it. It holds keys: keep it to yourself (mode 0600).\n")
	one := func(key string, value any) yamltext.Map { return yamltext.Map{{Key: key, Value: value}} }
	var err error
	section := func(comment string, m yamltext.Map) {
		text, marshalErr := yamltext.Marshal(m)
		if err == nil {
			err = marshalErr
		}
		out.WriteString("\n" + comment)
		out.Write(text)
	}
	if a.model() {
		section("# Where models are. Instead of apiKey, apiKeyEnv names the variable that holds it.\n",
			one("providers", one(a.Provider, providerMap(a))))
		section("# Models by a name of your own. More of them: agents and roles can have their own\n# (agents.<name>.model, modelOverrides).\n",
			one("models", one(s.alias(), modelMap(a))))
		section("", one("defaultModel", s.alias()))
	}
	if a.Agent != "" {
		agents := yamltext.Map{}
		for _, name := range a.agents() {
			agents = append(agents, yamltext.Entry{Key: name, Value: agentMap(name, a)})
		}
		section("# Agents by a name of your own: any program that follows the protocol. permission says\n# what one may do: full (anything), edits (no commands), read-only.\n", one("agents", agents))
		section("# Who plays the roles. Others for some of them:\n# agentOverrides: { <workflow>: { <role>: <agent> } }\n", one("defaultAgent", a.Agent))
	}
	if programs, ok := s.listed(a); ok {
		section("# Which programs uwf's own agents may run, such as [go, git]: \"*\" is any, [] is none.\n# They can write only in the directory where a step works.\n",
			one("builtin", one("allowCommands", programs)))
	}
	return out.Bytes(), err
}
