package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/sorting"
	"github.com/united-workforce/uwf/util/yamldoc"
	"github.com/united-workforce/uwf/util/yamlstruct"
)

// decoder returns a decoder from YAML nodes to the config.
func decoder(r *report, e env.Env) *yamlstruct.Decoder {
	d := &yamlstruct.Decoder{Of: "the config", Report: r.add, Lazy: isLazy}
	d.Text = func(n *yamldoc.Node, where string, lazy bool) (string, bool) {
		text, unset, msg := expand(n.Text, e)
		switch {
		case msg != "":
			r.add(n.Pos, "write $$ for a dollar sign", "%s%s", where, msg)
			return "", false
		case lazy:
			return n.Text, true
		case unset != "":
			r.add(n.Pos, "", "%sneeds the environment variable %s, which is not set", where, unset)
			return "", false
		}
		return text, true
	}
	d.Before = func(n *yamldoc.Node, into reflect.Type) *yamldoc.Node {
		if n.Kind == yamldoc.Scalar && into == reflect.TypeFor[protocol.Network]() { // a keyword instead of a list
			return &yamldoc.Node{Kind: yamldoc.Sequence, Pos: n.Pos, Items: []*yamldoc.Node{n}}
		}
		return n
	}
	d.After = func(n *yamldoc.Node, into any, path string) {
		if network, ok := into.(*protocol.Network); ok {
			r.network(n, *network, path)
		}
	}
	return d
}

// isLazy reports whether the variables in a key's value are expanded on use: it belongs to a provider, a
// model or an agent, which can be unused, and the rest of the config doesn't depend on it.
func isLazy(key string) bool {
	switch key {
	case "baseUrl", "apiKey", "apiKeyEnv", "name", "command", "args", "env", "url", "secret":
		return true
	}
	return false
}

// checker reports well-formed values that can't work: undefined names and missing values.
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
		k.required(m.Name, "the provider's name of the model", "models", alias, "name")
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
	k.passEnv()
	k.notify()
}

// at returns the position of a value, or of its nearest existing ancestor.
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
		k.add(k.at(at), example, "%s must start with https:// or http:// and a host", strings.Join(at, "."))
	}
	at[2] = "apiKeyEnv"
	if p.APIKeyEnv != "" && !hasVariable(p.APIKeyEnv) && !isVariable(p.APIKeyEnv) {
		k.add(k.at(at), "put a key itself into apiKey", "%s must be the name of an environment variable",
			strings.Join(at, "."))
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
		k.add(k.at([]string{"agents", alias, "onRateLimit"}), "agents."+alias+".fallback: [<alias>]",
			"agents.%s has onRateLimit: fallback but no fallback", alias)
	}
	if a.FallbackOn != nil && a.OnRateLimit == protocol.LimitFallback && !slices.Contains(a.FallbackOn,
		string(protocol.FailedRateLimit)) {
		k.add(k.at([]string{"agents", alias, "fallbackOn"}), "agents."+alias+".onRateLimit: stop",
			"agents.%s has onRateLimit: fallback but no rate-limit in fallbackOn", alias)
	}
	if a.MaxTurns < 0 || a.MaxCostUSD < 0 {
		k.add(k.at([]string{"agents", alias}), "", "agents.%s has a negative limit", alias)
	}
	if OwnsModels(a.Command) {
		k.reference(a.Model, "model", keys(k.c.Models), "agents", alias, "model")
	}
	for name := range a.Env {
		if !isVariable(name) {
			k.add(k.at([]string{"agents", alias, "env", name}), "",
				"agents.%s.env has an invalid variable name", alias)
		}
	}
}

// OwnsModels reports whether an agent can use only aliases in models. External programs have their own model
// names.
func OwnsModels(command string) bool {
	return slices.Contains(protocol.ModelAgents(), agentName(command))
}

// agentName returns the name of a command's program.
func agentName(command string) string { return strings.TrimSuffix(filepath.Base(command), ".exe") }

// AccountOf returns the default account name of a program: claude-code, codex.
func AccountOf(command string) string {
	return strings.TrimPrefix(agentName(command), protocol.AgentPrefix)
}

// concurrency checks that each key is the name of an account, because a misspelled one would have no effect.
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
			k.add(k.at(at), yamlstruct.Nearest(name, known),
				"concurrency has %q, which is neither an agent's account nor a provider", name)
		}
		if most < 1 {
			k.add(k.at(at), "such as 3", "%s must be at least 1", strings.Join(at, "."))
		}
	}
}

// choices checks the selected agents and models.
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
			k.add(k.at(at), "want extract, agent or <workflow>.<role>", "modelOverrides has the unknown key %q", scenario)
		}
	}
}

// ownsModels reports whether a scenario can use only aliases in models. A role, "<workflow>.<role>", can use
// other names unless the config assigns one of our agents to it: the command line can select another agent,
// and is checked then.
func (k checker) ownsModels(scenario string) bool {
	at := strings.LastIndexByte(scenario, '.')
	if at < 0 {
		return true
	}
	alias := first(k.c.AgentOverrides[scenario[:at]][scenario[at+1:]], k.c.DefaultAgent)
	return OwnsModels(k.c.Agents[alias].Command)
}

// locations checks the directories in which steps can run, which must not depend on the directory where uwf
// starts.
func (k checker) locations() {
	for i, dir := range k.c.AllowLocations {
		if slash := filepath.ToSlash(dir); filepath.IsAbs(dir) || slash == "~" || strings.HasPrefix(slash, "~/") {
			continue
		}
		k.add(k.at([]string{"allowLocations"}), "write an absolute path, or ~/…",
			"allowLocations[%d] must be an absolute directory", i)
	}
}

// workspace checks the workspace configuration.
func (k checker) workspace() {
	w := k.c.Workspace
	if w == nil {
		return
	}
	for i, dir := range w.Link {
		if !filepath.IsLocal(dir) || filepath.Clean(dir) == "." {
			k.add(k.at([]string{"workspace", "link"}), "write a directory of the repository, such as node_modules",
				"workspace.link[%d] must be a path within the repository", i)
		}
	}
	if len(w.Setup) > 0 && w.Setup[0] == "" {
		k.add(k.at([]string{"workspace", "setup"}), "write a list of words, such as [npm, ci]",
			"workspace.setup has no program")
	}
	if w.MaxFileMB < 0 {
		k.add(k.at([]string{"workspace", "maxFileMB"}), "write a number of MB, such as 20",
			"workspace.maxFileMB cannot be negative")
	}
}

// missingWords ends the message for a missing value.
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
	remedy := yamlstruct.Nearest(name, known)
	if remedy == "" {
		remedy = "to configure one: uwf setup"
	}
	k.add(k.at(path), remedy, "%s refers to %s %q, which is not in %ss", strings.Join(path, "."),
		what, name, what)
}

// providerOf warns about a model with a missing provider. It is an error only when the model is used; the
// other models can suffice.
func (k checker) providerOf(name, alias string) {
	if known := keys(k.c.Providers); !slices.Contains(known, name) {
		at := []string{"models", alias, "provider"}
		k.warn(k.at(at), yamlstruct.Nearest(name, known), "%s refers to provider %q, which is not in providers",
			strings.Join(at, "."), name)
	}
}

func keys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// InvalidError lists the problems in a file, in line order.
type InvalidError struct{ Problems []protocol.Problem }

func (e *InvalidError) Error() string {
	lines := make([]string, 0, len(e.Problems))
	for _, p := range e.Problems {
		line := fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Message)
		if p.Remedy != "" {
			line += "; " + p.Remedy
		}
		if p.Excerpt != "" {
			line += "\n    " + p.Excerpt
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// report collects problems.
type report struct {
	path     string
	src      []byte
	problems []protocol.Problem
	warnings []protocol.Problem // problems that affect only those who use the value
}

func (r *report) add(at yamldoc.Pos, remedy, format string, args ...any) {
	r.problems = append(r.problems, r.problem(at, remedy, format, args...))
}

func (r *report) warn(at yamldoc.Pos, remedy, format string, args ...any) {
	r.warnings = append(r.warnings, r.problem(at, remedy, format, args...))
}

func (r *report) problem(at yamldoc.Pos, remedy, format string, args ...any) protocol.Problem {
	return protocol.Problem{
		File: r.path, Line: at.Line, Column: at.Column,
		Message: fmt.Sprintf(format, args...), Remedy: remedy,
		Excerpt: excerpt(yamldoc.Line(r.src, at.Line)),
	}
}

// addYAML reports a YAML syntax error. The message contains none of the text.
func (r *report) addYAML(err error) {
	var bad *yamldoc.Error
	if !errors.As(err, &bad) {
		bad = &yamldoc.Error{Pos: yamldoc.Pos{Line: 1, Column: 1}, Message: "not YAML"}
	}
	r.add(bad.Pos, "", "%s", bad.Message)
}

func (r *report) err() error {
	if len(r.problems) == 0 {
		return nil
	}
	sortByPlace(r.problems)
	cause := &InvalidError{r.problems}
	return &protocol.Error{Code: protocol.CodeInvalid, Message: cause.Error(), Err: cause}
}

func sortByPlace(problems []protocol.Problem) {
	sorting.Func(problems, func(a, b protocol.Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Message, b.Message))
	})
}

// excerpt returns a line without its values, which might be secrets: only a key at its start.
func excerpt(line string) string {
	key := regexp.MustCompile(`^\s*(- )?[A-Za-z$_][A-Za-z0-9$_.-]*:(\s|$)`).FindString(line)
	if key == "" {
		return ""
	}
	shown := strings.TrimSpace(key)
	if rest := strings.TrimSpace(line[len(key):]); rest != "" {
		shown += " …"
	}
	return shown
}
