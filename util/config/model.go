package config

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
)

// The scenarios of modelOverrides, beside "<workflow>.<role>".
const (
	scenarioExtract = "extract"
	scenarioAgent   = "agent"
)

// Endpoint is a resolved model. Printing one does not print its key.
type Endpoint struct {
	Alias, Provider string
	BaseURL         string // without a slash at its end
	APIKey          string // "" for an endpoint that needs none
	Model           string
	// KeySource says where the key came from or belongs, for error messages:
	// "config.yaml providers.x.apiKey", "environment OPENAI_API_KEY".
	KeySource     string
	Stream        bool
	ContextWindow int // tokens; 0: unknown
	Price         *protocol.Price
	IdleTimeout   time.Duration // how long it may be silent; 0: not said
	CacheControl  bool          // it is told what its prompt cache should keep
}

// String names the endpoint.
func (e Endpoint) String() string {
	return fmt.Sprintf("model %s (%s of provider %s)", e.Alias, e.Model, e.Provider)
}

// GoString is String, for %#v.
func (e Endpoint) GoString() string { return e.String() }

// ResolveModel resolves a model alias. A provider that names no key needs none;
// a key that is named but not set is an error. Errors are *protocol.Error (code
// invalid) and name what is missing.
func ResolveModel(c protocol.Config, alias string, e env.Env) (Endpoint, error) {
	if alias == "" {
		return Endpoint{}, invalid([]string{"add to config.yaml: defaultModel: <alias>"}, "no model is chosen: config.yaml has no defaultModel")
	}
	m, ok := c.Models[alias]
	if !ok {
		return Endpoint{}, invalid(hints(alias, keys(c.Models)), "unknown model alias %q: it is not in models of config.yaml", alias)
	}
	p, ok := c.Providers[m.Provider]
	if !ok {
		return Endpoint{}, invalid(hints(m.Provider, keys(c.Providers)), "unknown provider %q for model %q: it is not in providers of config.yaml", m.Provider, alias)
	}
	use := user{env: e}
	out := Endpoint{
		Alias: alias, Provider: m.Provider, Model: use.value(m.Name, "models."+alias+".name"),
		Stream: m.Stream == nil || *m.Stream, ContextWindow: m.ContextWindow, Price: m.Price,
	}
	at := "providers." + m.Provider
	out.BaseURL = strings.TrimRight(use.value(p.BaseURL, at+".baseUrl"), "/")
	out.APIKey, out.KeySource = key(p, at, &use)
	if use.err != nil {
		return Endpoint{}, use.err
	}
	out.CacheControl = m.CacheControl == "on" || m.CacheControl != "off" && takesCacheControl(out)
	if m.IdleTimeout != "" {
		var err error
		if out.IdleTimeout, err = time.ParseDuration(m.IdleTimeout); err != nil {
			return Endpoint{}, invalid(nil, "models.%s.idleTimeout %q is not a length of time", alias, m.IdleTimeout)
		}
	}
	return out, nil
}

// takesCacheControl reports whether an endpoint is known to want to be told what its
// prompt cache should keep: those that pass questions on to Anthropic's models. All
// others cache by themselves, or not at all.
func takesCacheControl(e Endpoint) bool {
	name := strings.ToLower(e.Model)
	return strings.Contains(name, "claude") || strings.HasPrefix(name, "anthropic/")
}

// key finds the key of a provider.
func key(p protocol.Provider, at string, use *user) (key, source string) {
	if p.APIKeyEnv == "" {
		return use.value(p.APIKey, at+".apiKey"), "config.yaml " + at + ".apiKey"
	}
	name := use.value(p.APIKeyEnv, at+".apiKeyEnv")
	key = use.env.Get(name)
	if key == "" && use.err == nil {
		use.err = notSet(name, at+".apiKeyEnv")
	}
	return key, "environment " + name
}

// AgentModel is the alias of the model for a role: modelOverrides
// "<workflow>.<role>", then the agent's own, then modelOverrides "agent", then
// the default model; "" if none of them is set.
func AgentModel(c protocol.Config, agentAlias, workflow, role string) string {
	return first(c.ModelOverrides[workflow+"."+role], c.Agents[agentAlias].Model, c.ModelOverrides[scenarioAgent], c.DefaultModel)
}

// ExternalModel is the model for a role that an external program plays, as the
// program calls it: modelOverrides "<workflow>.<role>", then the agent's own; ""
// if neither is set, since other models of the config are not the program's, or if
// the agent tells its program none. What is not an alias in models is such a name
// itself. The price is that of the alias, nil if there is none. command starts the agent.
func ExternalModel(c protocol.Config, command, agentAlias, workflow, role string, e env.Env) (string, *protocol.Price, error) {
	if agent := agentName(command); agent == "uwf-exec" || agent == "uwf-mock" {
		return "", nil, nil
	}
	name := first(c.ModelOverrides[workflow+"."+role], c.Agents[agentAlias].Model)
	m, ok := c.Models[name]
	if !ok {
		return name, nil, nil
	}
	use := user{env: e}
	name = use.value(m.Name, "models."+name+".name")
	return name, m.Price, use.err
}

// extractOff in modelOverrides.extract switches the extraction off.
const extractOff = "off"

// ExtractModel is the alias of the model for LLM extraction: modelOverrides.extract,
// else models.extract, else the default model; "" if there is none of them, or
// modelOverrides.extract is "off".
func ExtractModel(c protocol.Config) string {
	chosen := c.ModelOverrides[scenarioExtract]
	if _, isModel := c.Models[chosen]; chosen == extractOff && !isModel {
		return ""
	}
	if _, ok := c.Models[scenarioExtract]; ok && chosen == "" {
		return scenarioExtract
	}
	return first(chosen, c.DefaultModel)
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

func invalid(hints []string, format string, args ...any) error {
	return &protocol.Error{Code: protocol.CodeInvalid, Message: fmt.Sprintf(format, args...), Hints: hints}
}

func hints(word string, known []string) []string {
	if s := nearest(word, known); s != "" {
		return []string{s}
	}
	return nil
}

// NoPrice says why nobody can know what a role's agent costs before it has run, "" if
// that may be known: the agent's program tells it, or the config has a price. model is
// what the agent's own command line names, "" if it names none. alias is that of the
// model to which the price belongs; "": it has none yet.
func NoPrice(c protocol.Config, command, model, agentAlias, workflow, role string, e env.Env) (why, alias string) {
	switch a, _ := protocol.AdapterOf(agentName(command)); {
	case OwnsModels(command):
		alias = first(model, AgentModel(c, agentAlias, workflow, role))
		m, known := c.Models[alias]
		if !known || m.Price != nil || tellsCost(c.Providers[m.Provider]) {
			return "", ""
		}
		return fmt.Sprintf("models.%s has no price", alias), alias
	case a.NoCost:
		_, price, err := ExternalModel(c, command, agentAlias, workflow, role, e)
		if err != nil || price != nil {
			return "", ""
		}
		if alias = first(c.ModelOverrides[workflow+"."+role], c.Agents[agentAlias].Model); c.Models[alias].Name == "" {
			alias = ""
		}
		return fmt.Sprintf("%s does not tell what it costs, and its model has no price in config.yaml", a.Name), alias
	}
	return "", ""
}

// tellsCost reports whether a provider tells the cost with each reply.
func tellsCost(p protocol.Provider) bool {
	u, err := url.Parse(p.BaseURL)
	return err == nil && (u.Hostname() == "openrouter.ai" || strings.HasSuffix(u.Hostname(), ".openrouter.ai"))
}
