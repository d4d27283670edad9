package config

import (
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/yamldoc"
)

// checker reports what is well-formed but cannot work: names that nothing
// defines, and missing values.
type checker struct {
	*report
	root *yamldoc.Node
	c    protocol.Config
}

func check(r *report, root *yamldoc.Node, c protocol.Config) {
	k := checker{r, root, c}
	for name, p := range c.Providers {
		k.provider(p, name)
	}
	for alias, m := range c.Models {
		k.required(m.Name, "it is what the provider calls the model", "models", alias, "name")
		k.required(m.Provider, "", "models", alias, "provider")
		if m.Provider != "" {
			k.providerOf(m.Provider, alias)
		}
	}
	for alias, a := range c.Agents {
		k.agent(a, alias)
	}
	k.choices()
	k.locations()
	k.networks()
	k.concurrency()
	k.workspace()
	k.notify()
}

// at is the place of a value, or of the innermost thing around it that exists.
func (k checker) at(path []string) yamldoc.Pos {
	n := k.root
	for _, key := range path {
		i := slices.IndexFunc(n.Entries, func(e yamldoc.Entry) bool { return e.Text == key })
		if i < 0 {
			break
		}
		n = n.Entries[i].Value
	}
	return n.Pos
}

func (k checker) provider(p protocol.Provider, name string) {
	const example = "such as https://api.openai.com/v1"
	at := []string{"providers", name, "baseUrl"}
	k.required(p.BaseURL, example, at...)
	if p.BaseURL != "" && !hasVariable(p.BaseURL) && !isEndpoint(p.BaseURL) {
		k.add(k.at(at), example, "%s must begin with https:// or http:// and a host", strings.Join(at, "."))
	}
	at[2] = "apiKeyEnv"
	if p.APIKeyEnv != "" && !hasVariable(p.APIKeyEnv) && !isVariable(p.APIKeyEnv) {
		k.add(k.at(at), "a key itself belongs into apiKey", "%s must be the name of an environment variable", strings.Join(at, "."))
	}
	if p.APIKeyEnv != "" && p.APIKey != "" {
		k.add(k.at(at), "remove one of them", "providers.%s has both apiKey and apiKeyEnv", name)
	}
}

func isEndpoint(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != ""
}

func (k checker) agent(a protocol.Agent, alias string) {
	k.required(a.Command, "", "agents", alias, "command")
	for _, other := range a.Fallback {
		k.reference(other, "agent", keys(k.c.Agents), "agents", alias, "fallback")
	}
	if a.OnRateLimit == protocol.LimitFallback && len(a.Fallback) == 0 {
		k.add(k.at([]string{"agents", alias, "onRateLimit"}), "agents."+alias+".fallback: [<alias>]", "agents.%s has onRateLimit: fallback, and no fallback", alias)
	}
	if a.FallbackOn != nil && a.OnRateLimit == protocol.LimitFallback && !slices.Contains(a.FallbackOn, string(protocol.FailedRateLimit)) {
		k.add(k.at([]string{"agents", alias, "fallbackOn"}), "agents."+alias+".onRateLimit: stop", "agents.%s has onRateLimit: fallback, and no rate-limit in fallbackOn", alias)
	}
	if a.MaxTurns < 0 || a.MaxCostUSD < 0 {
		k.add(k.at([]string{"agents", alias}), "", "agents.%s has a limit below zero", alias)
	}
	if OwnsModels(a.Command) {
		k.reference(a.Model, "model", keys(k.c.Models), "agents", alias, "model")
	}
	for name := range a.Env {
		if !isVariable(name) {
			k.add(k.at([]string{"agents", alias, "env", name}), "", "agents.%s.env has a key that cannot be the name of an environment variable", alias)
		}
	}
}

// OwnsModels reports whether an agent can only use what is in models. An external
// program has names of its own.
func OwnsModels(command string) bool {
	return slices.Contains(protocol.ModelAgents(), agentName(command))
}

// agentName is the name of the program that a command starts.
func agentName(command string) string { return strings.TrimSuffix(filepath.Base(command), ".exe") }

// AccountOf is the name of the account of a program whose agent names none: claude-code, codex.
func AccountOf(command string) string {
	return strings.TrimPrefix(agentName(command), protocol.AgentPrefix)
}

// concurrency checks that each key is the name of an account, so that a misspelt one is no cap
// that holds nothing.
func (k checker) concurrency() {
	known := keys(k.c.Providers)
	for _, program := range protocol.OwnAgents() {
		known = append(known, AccountOf(program))
	}
	for _, a := range k.c.Agents {
		known = append(known, first(a.Account, AccountOf(a.Command)))
	}
	for name, most := range k.c.Concurrency {
		at := []string{"concurrency", name}
		if !slices.Contains(known, name) && !slices.ContainsFunc(known, hasVariable) {
			k.add(k.at(at), nearest(name, known), "concurrency has %q, which is neither an account of an agent nor a provider", name)
		}
		if most < 1 {
			k.add(k.at(at), "such as 3", "%s must be at least 1", strings.Join(at, "."))
		}
	}
}

// choices checks which agents and models are chosen for what.
func (k checker) choices() {
	agents, models := keys(k.c.Agents), keys(k.c.Models)
	k.reference(k.c.DefaultAgent, "agent", agents, "defaultAgent")
	for workflow, roles := range k.c.AgentOverrides {
		for role, alias := range roles {
			k.reference(alias, "agent", agents, "agentOverrides", workflow, role)
		}
	}
	k.reference(k.c.DefaultModel, "model", models, "defaultModel")
	for scenario, alias := range k.c.ModelOverrides {
		at := []string{"modelOverrides", scenario}
		if (scenario != scenarioExtract || alias != extractOff) && k.ownsModels(scenario) {
			k.reference(alias, "model", models, at...)
		}
		if scenario != scenarioExtract && scenario != scenarioAgent && !strings.Contains(scenario, ".") {
			k.add(k.at(at), "it must be extract, agent or <workflow>.<role>", "modelOverrides has the unknown key %q", scenario)
		}
	}
}

// ownsModels reports whether a scenario can only use what is in models. A role,
// "<workflow>.<role>", can use other names unless an agent of ours is configured to play
// it: who plays it may be said on the command line, and is judged then.
func (k checker) ownsModels(scenario string) bool {
	at := strings.LastIndexByte(scenario, '.')
	if at < 0 {
		return true
	}
	alias := first(k.c.AgentOverrides[scenario[:at]][scenario[at+1:]], k.c.DefaultAgent)
	return OwnsModels(k.c.Agents[alias].Command)
}

// locations checks the directories in which steps may work: what they are must
// not depend on where uwf is started.
func (k checker) locations() {
	for i, dir := range k.c.AllowLocations {
		if slash := filepath.ToSlash(dir); filepath.IsAbs(dir) || slash == "~" || strings.HasPrefix(slash, "~/") {
			continue
		}
		k.add(k.at([]string{"allowLocations"}), "write the whole path, or ~/…", "allowLocations[%d] must be an absolute directory", i)
	}
}

// workspace checks how the files of threads are kept.
func (k checker) workspace() {
	w := k.c.Workspace
	if w == nil {
		return
	}
	for i, dir := range w.Link {
		if !filepath.IsLocal(dir) || filepath.Clean(dir) == "." {
			k.add(k.at([]string{"workspace", "link"}), "write a directory of the repository, such as node_modules", "workspace.link[%d] must be a path within the repository", i)
		}
	}
	if len(w.Setup) > 0 && w.Setup[0] == "" {
		k.add(k.at([]string{"workspace", "setup"}), "write a command, word by word, such as [npm, ci]", "workspace.setup names no program")
	}
	if w.MaxFileMB < 0 {
		k.add(k.at([]string{"workspace", "maxFileMB"}), "write a number of MB, such as 20", "workspace.maxFileMB cannot be negative")
	}
}

// missingWords end the report of what is not there yet.
const missingWords = " is missing"

func (k checker) required(value, remedy string, path ...string) {
	if value == "" {
		k.add(k.at(path), remedy, "%s"+missingWords, strings.Join(path, "."))
	}
}

// reference checks the name of a provider, model or agent.
func (k checker) reference(name, what string, known []string, path ...string) {
	if name == "" || slices.Contains(known, name) {
		return
	}
	k.add(k.at(path), nearest(name, known), "%s names %s %q, which is not in %ss", strings.Join(path, "."), what, name, what)
}

// providerOf warns of a model whose provider is not there: that is an error only for
// who uses the model, and the others may be all that somebody needs.
func (k checker) providerOf(name, alias string) {
	if known := keys(k.c.Providers); !slices.Contains(known, name) {
		at := []string{"models", alias, "provider"}
		k.warn(k.at(at), nearest(name, known), "%s names provider %q, which is not in providers", strings.Join(at, "."), name)
	}
}

func keys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
