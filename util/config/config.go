// Package config reads config.yaml and .env and resolves what they say. Errors
// name the line and never hold a secret.
//
// Strings may name environment variables: ${NAME}. "$$" is a dollar sign, and a
// dollar sign before anything else stands for itself. What a provider, a model or
// an agent needs only when it is used (its address, key, name, command, arguments
// and environment) is expanded by [ResolveModel] and [ResolveAgent], so that a
// key that one model lacks does not stop an agent that never asks it; everything
// else when the file is read.
package config

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/hostlist"
	"github.com/united-workforce/uwf/util/safeopen"
	"github.com/united-workforce/uwf/util/suggest"
	"github.com/united-workforce/uwf/util/yamldoc"
	"github.com/united-workforce/uwf/util/yamlstruct"
)

// Load reads config.yaml. A missing file is an empty config. Every problem is
// in one *protocol.Error (code invalid) with file, line and a suggestion; its
// cause is an *InvalidError.
func Load(ctx context.Context, path string, e env.Env) (protocol.Config, error) {
	if err := ctx.Err(); err != nil {
		return protocol.Config{}, err
	}
	src, err := ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return protocol.Config{}, nil
	}
	if err != nil {
		return protocol.Config{}, fmt.Errorf("read config: %w", err)
	}
	return Parse(src, path, e)
}

// maxFile bounds config.yaml, in bytes.
const maxFile = 1 << 20

// ReadFile reads the text of config.yaml. A link is followed.
func ReadFile(path string) ([]byte, error) {
	return safeopen.ReadFile(path, maxFile, safeopen.Follow)
}

// Parse is [Load] for a text; path is only named in errors.
func Parse(src []byte, path string, e env.Env) (protocol.Config, error) {
	c, r := read(src, path, e)
	if err := r.err(); err != nil {
		return protocol.Config{}, err
	}
	return c, nil
}

// ParseUnfinished is [Parse] for a config that is being written: values that are
// merely missing yet are no error.
func ParseUnfinished(src []byte, path string, e env.Env) (protocol.Config, error) {
	c, r := read(src, path, e)
	r.problems = slices.DeleteFunc(r.problems, func(p protocol.Problem) bool {
		return strings.HasSuffix(p.Message,
			missingWords)
	})
	if err := r.err(); err != nil {
		return protocol.Config{}, err
	}
	return c, nil
}

// Warnings are what is wrong in a config and stops nobody who does not use it: a model
// whose provider is not there. [ResolveModel] refuses the model, and [Set] the name.
func Warnings(src []byte, path string, e env.Env) []protocol.Problem {
	_, r := read(src, path, e)
	sortByPlace(r.warnings)
	return r.warnings
}

// read reads a config with all that is wrong in it.
func read(src []byte, path string, e env.Env) (c protocol.Config, r report) {
	r = report{path: path, src: src}
	doc, err := yamldoc.Parse(src, yamldoc.Bounds{})
	if err != nil {
		r.addYAML(err)
		return c, r
	}
	d := decoder(&r, e)
	d.Decode(doc.Root, &c)
	check(&r, doc.Root, c)
	return c, r
}

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
		return Endpoint{}, invalid([]string{"add to config.yaml: defaultModel: <alias>"},
			"no model is chosen: config.yaml has no defaultModel")
	}
	m, ok := c.Models[alias]
	if !ok {
		return Endpoint{}, invalid(hints(alias, keys(c.Models)),
			"unknown model alias %q: it is not in models of config.yaml", alias)
	}
	p, ok := c.Providers[m.Provider]
	if !ok {
		return Endpoint{}, invalid(hints(m.Provider, keys(c.Providers)),
			"unknown provider %q for model %q: it is not in providers of config.yaml", m.Provider, alias)
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
	return first(c.ModelOverrides[workflow+"."+role], c.Agents[agentAlias].Model, c.ModelOverrides[scenarioAgent],
		c.DefaultModel)
}

// ExternalModel is the model for a role that an external program plays, as the
// program calls it: modelOverrides "<workflow>.<role>", then the agent's own; ""
// if neither is set, since other models of the config are not the program's, or if
// the agent tells its program none. What is not an alias in models is such a name
// itself. The price is that of the alias, nil if there is none. command starts the agent.
func ExternalModel(c protocol.Config, command, agentAlias, workflow, role string,
	e env.Env) (string, *protocol.Price, error) {
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
	if s := yamlstruct.Nearest(word, known); s != "" {
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

// ResolveAgent is an agent of the config with its variables replaced, ready to
// be started. Errors are *protocol.Error (code invalid).
func ResolveAgent(c protocol.Config, alias string, e env.Env) (protocol.Agent, error) {
	a, ok := c.Agents[alias]
	if !ok {
		return protocol.Agent{}, invalid(hints(alias, keys(c.Agents)),
			"unknown agent alias %q: it is not in agents of config.yaml", alias)
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

// Notify is what notify says, resolved. Printing one does not print its secrets.
type Notify struct {
	On      []string
	Command []string // nil: none is run
	Webhook string   // where notices are posted; "": nowhere
	Secret  string   // signs them; "": nothing does
	Address string   // of answer links, without a slash at its end; "": there are none
	Ends    time.Duration
}

// String says nothing: the address of a webhook is often its key.
func (n Notify) String() string { return "notify" }

// GoString is String, for %#v.
func (n Notify) GoString() string { return n.String() }

// linkExpires is how long an answer link counts, mostLinkEnds how long it can.
const (
	linkExpires  = 24 * time.Hour
	mostLinkEnds = 30 * 24 * time.Hour
)

// ResolveNotify resolves what notify says; nobody is told if it says nothing. Errors are
// *protocol.Error (code invalid) and name what is missing.
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
			out.Ends, _ = time.ParseDuration(n.Links.ExpiresIn) // it was checked
		}
	}
	if use.err == nil && out.Webhook != "" && !isPrivate(out.Webhook) {
		use.err = invalid(nil, "notify.webhook.url in config.yaml must begin with https://; http:// is for this machine only")
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

// isPrivate reports whether nobody between here and an address can read along.
func isPrivate(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "https" || u.Scheme == "http" && (u.Hostname() == "localhost" || ip != nil && ip.IsLoopback())
}

// notify checks who is told of threads that come to rest.
func (k checker) notify() {
	n := k.c.Notify
	if n == nil {
		return
	}
	for _, event := range n.On {
		if event == "" {
			k.add(k.at([]string{"notify", "on"}), "one of "+strings.Join(notices(), ", "), "notify.on has an empty text")
		}
	}
	if slices.Contains(n.Command[:min(len(n.Command), 1)], "") {
		k.add(k.at([]string{"notify", "command"}), "write a program and its arguments, word by word, such as [notify-me, "+
			"--now]", "notify.command names no program")
	}
	if w := n.Webhook; w != nil {
		k.required(w.URL, "such as https://example.org/hook", "notify", "webhook", "url")
		if w.URL != "" && !hasVariable(w.URL) && !isPrivate(w.URL) {
			k.add(k.at([]string{"notify", "webhook", "url"}), "http:// is for this machine only",
				"notify.webhook.url must begin with https:// and a host")
		}
	}
	l := n.Links
	if l == nil {
		return
	}
	k.required(l.Address, "where a uwf web --actions can be reached, such as https://uwf.example.org", "notify",
		"links", "address")
	if u, err := url.Parse(l.Address); l.Address != "" && (!isPrivate(l.Address) || err != nil || strings.Trim(u.Path,
		"/") != "" || u.RawQuery != "" || u.User != nil) {
		k.add(k.at([]string{"notify", "links", "address"}), "such as https://uwf.example.org",
			"notify.links.address must be https:// and a host, without a path; http:// is for this machine only")
	}
	if d, err := time.ParseDuration(l.ExpiresIn); err == nil && d > mostLinkEnds {
		k.add(k.at([]string{"notify", "links", "expiresIn"}), "at most 720h", "notify.links.expiresIn is too long")
	}
}

// Network returns what a role can reach. Its own entry in networkOverrides counts first, then the
// sandbox of the agent that plays it; alias "" is for a role that is a command.
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

// Reaches says what a role can reach, to follow what it may do; "": everything.
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

// network checks what a list, or a word in its place, says.
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
		return // or it is reported already
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
	r.add(n.Pos, remedy, "%s has an entry that is no host", path)
}

// networks checks that a sandbox holds what can be reached, and that roles are named in full.
func (k checker) networks() {
	held := func(box protocol.SandboxConfig, at ...string) {
		if box.Mode == protocol.SandboxNone && !box.Network.All() {
			path := strings.Join(at, ".")
			k.add(k.at(at), "remove it, or set "+path+".mode: required", "%s.network needs a sandbox, and mode is none", path)
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
			k.add(k.at([]string{"networkOverrides", name}), "it must be <workflow>.<role>",
				"networkOverrides has the unknown key %q", name)
		}
	}
}
