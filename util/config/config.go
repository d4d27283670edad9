// Package config reads config.yaml and .env and resolves their values. Errors include line numbers and never
// contain a secret.
//
// Strings can contain environment variables: ${NAME}. "$$" is a dollar sign, as is a dollar sign before
// anything else. [ResolveModel] and [ResolveAgent] expand the fields that a provider, a model or an agent
// needs only when it is used: its address, key, name, command, arguments and environment. A missing key of an
// unused model therefore doesn't affect an agent. Everything else is expanded when the file is read.
package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/hostlist"
	"github.com/united-workforce/uwf/util/safeopen"
	"github.com/united-workforce/uwf/util/sorting"
	"github.com/united-workforce/uwf/util/suggest"
	"github.com/united-workforce/uwf/util/yamldoc"
	"github.com/united-workforce/uwf/util/yamlstruct"
)

// maxFile bounds config.yaml and .env, in bytes.
const maxFile = 1 << 20

// ReadFile reads the text of config.yaml, following links.
func ReadFile(path string) ([]byte, error) {
	return safeopen.ReadFile(path, maxFile, safeopen.Follow)
}

// Parse is [Files.Load] for a text; errors contain path.
func Parse(src []byte, path string, e env.Env) (protocol.Config, error) {
	c, r := read(src, path, e)
	if err := r.err(); err != nil {
		return protocol.Config{}, err
	}
	return c, nil
}

// ParseUnfinished is [Parse] for an incomplete config, in which missing values aren't errors.
func ParseUnfinished(src []byte, path string, e env.Env) (protocol.Config, error) {
	c, r := read(src, path, e)
	r.problems = slices.DeleteFunc(r.problems, func(p protocol.Problem) bool {
		return strings.HasSuffix(p.Message, missingWords)
	})
	if err := r.err(); err != nil {
		return protocol.Config{}, err
	}
	return c, nil
}

// Warnings returns problems that affect only those who use the value, such as a model with a missing
// provider. [ResolveModel] rejects that model, and [Set] the name.
func Warnings(src []byte, path string, e env.Env) []protocol.Problem {
	_, r := read(src, path, e)
	sortByPlace(r.warnings)
	return r.warnings
}

// read parses a config and reports all problems.
func read(src []byte, path string, e env.Env) (c protocol.Config, r report) {
	r = report{path: path, src: src}
	doc, err := yamldoc.Parse(src, yamldoc.Bounds{})
	c = r.decode(doc, err, e)
	return c, r
}

// decode decodes and checks a config, given its document or why it couldn't be parsed.
func (r *report) decode(doc *yamldoc.Doc, err error, e env.Env) (c protocol.Config) {
	if err != nil {
		r.addYAML(err)
		return c
	}
	decoder(r, e).Decode(doc.Root, &c)
	check(r, doc.Root, c)
	return c
}

// The scenarios of modelOverrides other than "<workflow>.<role>".
const (
	scenarioExtract = "extract"
	scenarioAgent   = "agent"
)

// Endpoint is a resolved model. Formatting one doesn't reveal its key.
type Endpoint struct {
	Alias, Provider string
	BaseURL         string // without a trailing slash
	APIKey          string // "" if not needed
	Model           string
	// KeySource is the location of the key, or where it is missing, for error messages: "config.yaml
	// providers.x.apiKey", "environment OPENAI_API_KEY".
	KeySource     string
	Stream        bool
	ContextWindow int // tokens; 0: unknown
	Price         *protocol.Price
	IdleTimeout   time.Duration // maximum silence; 0 if not set
	CacheControl  bool          // requests mark what the prompt cache should keep
}

// String returns the endpoint without its key.
func (e Endpoint) String() string {
	return fmt.Sprintf("model %s (%s of provider %s)", e.Alias, e.Model, e.Provider)
}

// GoString is String: %#v must not show the key either.
func (e Endpoint) GoString() string { return e.String() }

// ResolveModel resolves a model alias. A provider without a configured key needs none; a configured key
// without a value is an error. Errors are *protocol.Error (code invalid) and describe what is missing.
func ResolveModel(c protocol.Config, alias string, e env.Env) (Endpoint, error) {
	if alias == "" {
		return Endpoint{}, invalid([]string{"uwf config set defaultModel <alias>"},
			"no model configured: config.yaml has no defaultModel")
	}
	m, ok := c.Models[alias]
	if !ok {
		return Endpoint{}, invalid(hints(alias, keys(c.Models)),
			"unknown model %q: not in models of config.yaml", alias)
	}
	p, ok := c.Providers[m.Provider]
	if !ok {
		return Endpoint{}, invalid(hints(m.Provider, keys(c.Providers)),
			"unknown provider %q of model %q: not in providers of config.yaml", m.Provider, alias)
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
			return Endpoint{}, invalid(nil, "invalid models.%s.idleTimeout %q: want a duration", alias, m.IdleTimeout)
		}
	}
	return out, nil
}

// takesCacheControl reports whether an endpoint is known to need cache markers: those that forward requests
// to Anthropic's models. All others cache automatically or not at all.
func takesCacheControl(e Endpoint) bool {
	name := strings.ToLower(e.Model)
	return strings.Contains(name, "claude") || strings.HasPrefix(name, "anthropic/")
}

// key returns the key of a provider.
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

// AgentModel returns the model alias for a role: modelOverrides "<workflow>.<role>", the agent's model,
// modelOverrides "agent", or the default model, in this order; "" if none is set.
func AgentModel(c protocol.Config, agentAlias, workflow, role string) string {
	return cmp.Or(c.ModelOverrides[workflow+"."+role], c.Agents[agentAlias].Model, c.ModelOverrides[scenarioAgent],
		c.DefaultModel)
}

// ExternalModel returns the model for a role played by an external program, as the program names it:
// modelOverrides "<workflow>.<role>" or the agent's model; "" if neither is set, because the program doesn't
// use the other models in the config, or if the agent doesn't pass a model to its program. A value that isn't
// an alias in models is itself such a name. The price comes from the alias, or is nil. command starts the
// agent.
func ExternalModel(c protocol.Config, command, agentAlias, workflow, role string,
	e env.Env) (string, *protocol.Price, error) {
	if agent := agentName(command); agent == "uwf-exec" || agent == "uwf-mock" {
		return "", nil, nil
	}
	name := cmp.Or(c.ModelOverrides[workflow+"."+role], c.Agents[agentAlias].Model)
	m, ok := c.Models[name]
	if !ok {
		return name, nil, nil
	}
	use := user{env: e}
	name = use.value(m.Name, "models."+name+".name")
	return name, m.Price, use.err
}

// extractOff in modelOverrides.extract disables extraction by a model.
const extractOff = "off"

// ExtractModel returns the model alias for extraction: modelOverrides.extract, models.extract, or the default
// model, in this order; "" if none is set or modelOverrides.extract is "off".
func ExtractModel(c protocol.Config) string {
	chosen := c.ModelOverrides[scenarioExtract]
	if _, isModel := c.Models[chosen]; chosen == extractOff && !isModel {
		return ""
	}
	if _, ok := c.Models[scenarioExtract]; ok && chosen == "" {
		return scenarioExtract
	}
	return cmp.Or(chosen, c.DefaultModel)
}

func invalid(hints []string, format string, args ...any) error {
	return &protocol.Error{Code: protocol.CodeInvalid, Message: fmt.Sprintf(format, args...), Hints: hints}
}

func hints(word string, known []string) []string {
	if s := yamlstruct.Nearest(word, known); s != "" {
		return []string{s}
	}
	return nil
}

// NoPrice explains why the cost of a role's agent is unknown before it runs; "" if it can be known because
// the program reports it or the config has a price. model is the model in the agent's own command line, or
// "". alias is the model alias that needs the price, "" if there is none yet.
func NoPrice(c protocol.Config, command, model, agentAlias, workflow, role string, e env.Env) (why, alias string) {
	switch a, _ := protocol.AdapterOf(agentName(command)); {
	case OwnsModels(command):
		alias = cmp.Or(model, AgentModel(c, agentAlias, workflow, role))
		m, known := c.Models[alias]
		if !known || m.Price != nil || reportsCost(c.Providers[m.Provider]) {
			return "", ""
		}
		return fmt.Sprintf("models.%s has no price", alias), alias
	case a.NoCost:
		_, price, err := ExternalModel(c, command, agentAlias, workflow, role, e)
		if err != nil || price != nil {
			return "", ""
		}
		if alias = cmp.Or(c.ModelOverrides[workflow+"."+role], c.Agents[agentAlias].Model); c.Models[alias].Name == "" {
			alias = ""
		}
		return fmt.Sprintf("%s does not report its cost, and its model has no price in config.yaml", a.Name), alias
	}
	return "", ""
}

// reportsCost reports whether a provider includes the cost in each reply.
func reportsCost(p protocol.Provider) bool {
	u, err := url.Parse(p.BaseURL)
	return err == nil && (u.Hostname() == "openrouter.ai" || strings.HasSuffix(u.Hostname(), ".openrouter.ai"))
}

// ResolveAgent returns an agent of the config with its variables expanded, ready to start. Errors are
// *protocol.Error (code invalid).
func ResolveAgent(c protocol.Config, alias string, e env.Env) (protocol.Agent, error) {
	a, ok := c.Agents[alias]
	if !ok {
		return protocol.Agent{}, invalid(hints(alias, keys(c.Agents)),
			"unknown agent %q: not in agents of config.yaml", alias)
	}
	use, at := user{env: e}, "agents."+alias+"."
	a.Command = use.value(a.Command, at+"command")
	a.Account = use.value(a.Account, at+"account")
	args := make([]string, len(a.Args))
	for i, arg := range a.Args {
		args[i] = use.value(arg, fmt.Sprintf("%sargs[%d]", at, i))
	}
	environ := make(map[string]string, len(a.Env))
	for _, name := range keys(a.Env) {
		environ[name] = use.value(a.Env[name], at+"env."+name)
	}
	a.Args, a.Env = args, environ
	if use.err != nil {
		return protocol.Agent{}, use.err
	}
	return a, nil
}

// Notify is the resolved notify configuration. Formatting one doesn't reveal its secrets.
type Notify struct {
	On      []string
	Command []string // nil: no command
	Webhook string   // URL for notifications; "" for none
	Secret  string   // signs notifications; "": unsigned
	Address string   // of answer links, without a trailing slash; "": no links
	Ends    time.Duration
}

// String hides all values, because a webhook's address is often its key.
func (n Notify) String() string { return "notify" }

// GoString is String: %#v must not show the addresses either.
func (n Notify) GoString() string { return n.String() }

// linkExpires is the default lifetime of an answer link, mostLinkEnds the maximum.
const (
	linkExpires  = 24 * time.Hour
	mostLinkEnds = 30 * 24 * time.Hour
)

// ResolveNotify resolves the notify configuration. Without one there are no notifications. Errors are
// *protocol.Error (code invalid) and describe what is missing.
func ResolveNotify(c protocol.Config, e env.Env) (Notify, error) {
	n := c.Notify
	if n == nil {
		return Notify{}, nil
	}
	use := user{env: e}
	out := Notify{On: n.On, Ends: linkExpires}
	if len(out.On) == 0 {
		out.On = notices()
	}
	for _, word := range n.Command {
		out.Command = append(out.Command, use.value(word, "notify.command"))
	}
	if n.Webhook != nil {
		out.Webhook = use.value(n.Webhook.URL, "notify.webhook.url")
		out.Secret = use.value(n.Webhook.Secret, "notify.webhook.secret")
	}
	if n.Links != nil {
		out.Address = strings.TrimRight(n.Links.Address, "/")
		if n.Links.ExpiresIn != "" {
			out.Ends, _ = time.ParseDuration(n.Links.ExpiresIn) // already checked
		}
	}
	if use.err == nil && out.Webhook != "" && !isPrivate(out.Webhook) {
		use.err = invalid(nil, "notify.webhook.url in config.yaml must start with https:// (http:// only for this "+
			"machine)")
	}
	if use.err != nil {
		return Notify{}, use.err
	}
	return out, nil
}

func notices() []string {
	return []string{protocol.NoticeWaiting, protocol.NoticeError, protocol.NoticeFailed, protocol.NoticeCompleted,
		protocol.NoticeLimit}
}

// isPrivate reports whether connections to an address are safe from eavesdroppers.
func isPrivate(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "https" || u.Scheme == "http" && (u.Hostname() == "localhost" || ip != nil && ip.IsLoopback())
}

// notify checks the notify configuration.
func (k checker) notify() {
	n := k.c.Notify
	if n == nil {
		return
	}
	for _, event := range n.On {
		if event == "" {
			k.add(k.at([]string{"notify", "on"}), "one of "+strings.Join(notices(), ", "), "notify.on has an empty string")
		}
	}
	if slices.Contains(n.Command[:min(len(n.Command), 1)], "") {
		k.add(k.at([]string{"notify", "command"}), "write a list of words, such as [notify-me, --now]", "notify.command has no program")
	}
	if w := n.Webhook; w != nil {
		k.required(w.URL, "such as https://example.org/hook", "notify", "webhook", "url")
		if w.URL != "" && !hasVariable(w.URL) && !isPrivate(w.URL) {
			k.add(k.at([]string{"notify", "webhook", "url"}), "use http:// only for this machine",
				"notify.webhook.url must start with https:// and a host")
		}
	}
	l := n.Links
	if l == nil {
		return
	}
	k.required(l.Address, "the address of uwf web --actions, such as https://uwf.example.org", "notify",
		"links", "address")
	if u, err := url.Parse(l.Address); l.Address != "" && (!isPrivate(l.Address) || err != nil || strings.Trim(u.Path,
		"/") != "" || u.RawQuery != "" || u.User != nil) {
		k.add(k.at([]string{"notify", "links", "address"}), "such as https://uwf.example.org",
			"notify.links.address must be https:// and a host without a path (http:// only for this machine)")
	}
	if d, err := time.ParseDuration(l.ExpiresIn); err == nil && d > mostLinkEnds {
		k.add(k.at([]string{"notify", "links", "expiresIn"}), "at most 720h", "notify.links.expiresIn is too long")
	}
}

// Network returns the network access of a role. Its entry in networkOverrides takes precedence over the
// sandbox of its agent; alias "" means a command role.
func Network(c protocol.Config, alias, workflow, role string) protocol.Network {
	box := CommandSandbox(c)
	if alias != "" {
		box = Sandbox(c, alias)
	}
	for _, n := range []protocol.Network{c.NetworkOverrides[workflow+"."+role], box.Network} {
		if n != nil {
			return n
		}
	}
	return protocol.Network{protocol.NetworkAll}
}

// Reaches describes a role's network access, to follow the description of its other access; "" if
// unrestricted.
func Reaches(n protocol.Network) string {
	switch {
	case n.All():
		return ""
	case len(n.Hosts()) == 0:
		return "; its commands reach no network"
	}
	return "; its commands reach " + n.String()
}

func networkWords() []string { return []string{protocol.NetworkAll, protocol.NetworkNone} }

// network checks a host list, or a word in its place.
func (r *report) network(n *yamldoc.Node, v protocol.Network, path string) {
	switch {
	case n.Kind == yamldoc.Scalar && len(v) == 1 && v[0] != "" && !slices.Contains(networkWords(), v[0]):
		remedy := "a list, such as [api.example.com]"
		if near := suggest.Nearest(v[0], networkWords(), 1); len(near) > 0 {
			remedy = yamlstruct.Nearest(v[0], networkWords())
		} else if _, err := hostlist.Parse(v); err == nil {
			remedy = "write [" + v[0] + "]"
		}
		r.add(n.Pos, remedy, "%s must be %s or a list of hosts", path, yamlstruct.Quoted(networkWords(), ", "))
	case n.Kind == yamldoc.Sequence && len(n.Items) == 0:
		r.add(n.Pos, "write none", "%s is an empty list", path)
	case n.Kind == yamldoc.Sequence:
		for i, host := range v {
			r.host(n.Items[i], host, path)
		}
	}
}

func (r *report) host(n *yamldoc.Node, host, path string) {
	_, err := hostlist.Parse([]string{host})
	word := slices.Contains(networkWords(), host)
	if n.Kind != yamldoc.Scalar || n.Text != "" && host == "" || err == nil && !word {
		return // or already reported
	}
	bare := host
	if _, rest, ok := strings.Cut(host, "://"); ok {
		bare, _, _ = strings.Cut(rest, "/")
	} else if rest, ok := strings.CutPrefix(host, "*"); ok && rest != "" {
		bare = "*." + strings.TrimPrefix(rest, ".")
	}
	remedy := "such as example.com, example.com:8080, *.example.com or example.com:*"
	if host == "*" {
		word, bare = true, protocol.NetworkAll
	}
	if word {
		remedy = "write " + bare + " without a list"
	} else if _, err := hostlist.Parse([]string{bare}); err == nil {
		remedy = "write " + bare
	}
	r.add(n.Pos, remedy, "%s has an invalid host", path)
}

// networks checks that a sandbox can enforce network access, and that role names are complete.
func (k checker) networks() {
	held := func(box protocol.SandboxConfig, at ...string) {
		if box.Mode == protocol.SandboxNone && !box.Network.All() {
			path := strings.Join(at, ".")
			k.add(k.at(at), "remove it, or set "+path+".mode: required", "%s.network needs a sandbox, but mode is none", path)
		}
	}
	if k.c.Sandbox != nil {
		held(*k.c.Sandbox, "sandbox")
	}
	if k.c.Commands != nil && k.c.Commands.Sandbox != nil {
		held(CommandSandbox(k.c), "commands", "sandbox")
	}
	for alias, a := range k.c.Agents {
		if a.Sandbox != nil {
			held(Sandbox(k.c, alias), "agents", alias, "sandbox")
		}
	}
	for name := range k.c.NetworkOverrides {
		if i := strings.LastIndexByte(name, '.'); i <= 0 || i == len(name)-1 {
			k.add(k.at([]string{"networkOverrides", name}), "want <workflow>.<role>",
				"networkOverrides has the unknown key %q", name)
		}
	}
}

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
		known = append(known, cmp.Or(a.Account, AccountOf(a.Command)))
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
	alias := cmp.Or(k.c.AgentOverrides[scenario[:at]][scenario[at+1:]], k.c.DefaultAgent)
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
