package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/safeopen"
	"github.com/united-workforce/uwf/util/yamldoc"
	"github.com/united-workforce/uwf/util/yamlstruct"
)

// ProjectFile returns the path of a project's settings, relative to the project's directory.
func ProjectFile() string { return filepath.Join(".uwf", "config.yaml") }

// project is the config of a project. It is untrusted, so it can select from the user's config and narrow it,
// but it can't add programs, endpoints or keys, or allow anything.
type project struct {
	Agents         map[string]projectAgent      `json:"agents"`
	Models         map[string]protocol.Model    `json:"models"`
	AgentOverrides map[string]map[string]string `json:"agentOverrides"`
	ModelOverrides map[string]string            `json:"modelOverrides"`
	Limits         *protocol.LimitsConfig       `json:"limits"`
	Timeout        string                       `json:"timeout" is:"span"`
}

// projectAgent contains the project's settings for one of the user's agents.
type projectAgent struct {
	Model        string         `json:"model"`
	Permission   string         `json:"permission" is:"full|edits|read-only"`
	Sandbox      projectSandbox `json:"sandbox"`
	Timeout      string         `json:"timeout" is:"span"`
	StartTimeout string         `json:"startTimeout" is:"span"`
	IdleTimeout  string         `json:"idleTimeout" is:"span"`
	MaxTurns     int            `json:"maxTurns"`
	MaxCostUSD   float64        `json:"maxCostUsd"`
	Resume       *bool          `json:"resume"`
}

// projectSandbox contains the project's settings for that agent's sandbox.
type projectSandbox struct {
	Mode string `json:"mode" is:"auto|required|none"`
}

// WithProject merges a project's config into the user's. path is the project's file, "" for none. The user's
// values take precedence, except that the stricter value of limits, times and permissions applies. Errors are
// as for [Load].
func WithProject(user protocol.Config, path string) (protocol.Config, error) {
	if path == "" {
		return user, nil
	}
	src, err := readProject(path)
	if errors.Is(err, fs.ErrNotExist) {
		return user, nil
	}
	if err != nil {
		return user, fmt.Errorf("read the project's config: %w", err)
	}
	return mergeProject(user, src, path)
}

// readProject reads the file without following links out of the project's directory.
func readProject(path string) ([]byte, error) {
	root, err := os.OpenRoot(filepath.Dir(filepath.Dir(path)))
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // opened for reading only
	return safeopen.ReadFileIn(root, ProjectFile(), maxFile)
}

func mergeProject(user protocol.Config, src []byte, path string) (protocol.Config, error) {
	r := &report{path: path, src: src}
	doc, err := yamldoc.Parse(src, yamldoc.Bounds{})
	if err != nil {
		r.addYAML(err)
		return user, r.err()
	}
	refused(r, doc.Root, "", reflect.TypeFor[protocol.Config](), reflect.TypeFor[project]())
	for alias, a := range entries(doc.Root.Get("agents")) {
		refused(r, a, "agents."+alias+".", reflect.TypeFor[protocol.Agent](), reflect.TypeFor[projectAgent]())
		refused(r, a.Get("sandbox"), "agents."+alias+".sandbox.", reflect.TypeFor[protocol.SandboxConfig](),
			reflect.TypeFor[projectSandbox]())
	}
	for alias, m := range entries(doc.Root.Get("models")) {
		for _, e := range m.Entries {
			if e.Key == "price" { // it would change the effect of the user's limit
				r.add(e.Pos, "", "a project cannot set models.%s.price; put it in your own config.yaml", alias)
			}
		}
	}
	for key, n := range entries(doc.Root.Get("limits")) {
		if key == "perDay" { // applies to all threads of the home, in any project
			r.add(n.Pos, "", "a project cannot set limits.perDay; put it in your own config.yaml")
		}
	}
	literal(r, doc.Root)
	var p project
	d := decoder(r, env.Env{})
	d.Decode(doc.Root, &p)
	if r.err() != nil {
		return user, r.err()
	}
	checkProject(r, doc.Root, user, p)
	if r.err() != nil {
		return user, r.err()
	}
	return p.under(user), nil
}

// refused reports and removes settings that are valid in a user's config but not in a project's.
func refused(r *report, n *yamldoc.Node, at string, users, projects reflect.Type) {
	if n == nil || n.Kind != yamldoc.Mapping {
		return
	}
	own, theirs := yamlstruct.Fields(users), yamlstruct.Fields(projects)
	n.Entries = slices.DeleteFunc(n.Entries, func(e yamldoc.Entry) bool {
		_, known := own[e.Key]
		_, may := theirs[e.Key]
		if known && !may {
			r.add(e.Pos, "a project can set "+strings.Join(keys(theirs), ", "),
				"a project cannot set %s%s; put it in your own config.yaml", at, e.Key)
		}
		return known && !may
	})
}

// literal rejects variables: a project must not read the environment.
func literal(r *report, n *yamldoc.Node) {
	if n == nil {
		return
	}
	if n.Kind == yamldoc.Scalar && hasVariable(n.Text) {
		r.add(n.Pos, "write the value itself", "a project's config cannot use environment variables")
	}
	for _, e := range n.Entries {
		literal(r, e.Value)
	}
	for _, item := range n.Items {
		literal(r, item)
	}
}

// checkProject checks the project's names against the user's config, and its keywords.
func checkProject(r *report, root *yamldoc.Node, user protocol.Config, p project) {
	k := checker{report: r, root: root, c: p.under(user)}
	known := func(name, what string, all []string, path ...string) {
		if name != "" && !slices.Contains(all, name) {
			k.add(k.at(path), yamlstruct.Nearest(name, all),
				"%s refers to %s %q, which is not in your own config.yaml", strings.Join(path, "."), what, name)
		}
	}
	plain := func(name string, path ...string) {
		if name != "" && !isPlainName(name) {
			k.add(k.at(path), "", "%s is not the name of a model", strings.Join(path, "."))
		}
	}
	agents := keys(user.Agents)
	for alias, a := range p.Agents {
		known(alias, "agent", agents, "agents", alias)
		plain(a.Model, "agents", alias, "model")
		if OwnsModels(user.Agents[alias].Command) {
			k.reference(a.Model, "model", keys(k.c.Models), "agents", alias, "model")
		}
	}
	for alias, m := range p.Models {
		k.required(m.Name, "", "models", alias, "name")
		k.required(m.Provider, "", "models", alias, "provider")
		known(m.Provider, "provider", keys(user.Providers), "models", alias, "provider")
		plain(m.Name, "models", alias, "name")
	}
	for workflow, roles := range p.AgentOverrides {
		for role, alias := range roles {
			path := []string{"agentOverrides", workflow, role}
			known(alias, "agent", agents, path...)
			if user.AgentOverrides[workflow][role] == "" && user.DefaultAgent != "" && wider(k.c, alias, user) {
				k.add(k.at(path), "to allow it, put it in your own config.yaml",
					"%s gives the role agent %q, which has more permissions than your %s", strings.Join(path, "."), alias, user.DefaultAgent)
			}
		}
	}
	for scenario, alias := range p.ModelOverrides {
		plain(alias, "modelOverrides", scenario)
		if k.ownsModels(scenario) && (scenario != scenarioExtract || alias != extractOff) {
			k.reference(alias, "model", keys(k.c.Models), "modelOverrides", scenario)
		}
	}
}

// wider reports whether an agent has more permissions, or a weaker sandbox, than the user's default agent.
func wider(c protocol.Config, alias string, user protocol.Config) bool {
	may := func(c protocol.Config, alias string) int {
		return max(0, slices.Index([]string{"full", "edits", "read-only"}, c.Agents[alias].Permission))
	}
	held := func(c protocol.Config, alias string) int {
		a, mode := c.Agents[alias], Sandbox(c, alias).Mode
		setting, _ := Confining(a, mode, Driven(append([]string{a.Command}, a.Args...)))
		if OwnsModels(a.Command) {
			setting = cmp.Or(mode, protocol.SandboxAuto)
		}
		return slices.Index([]string{protocol.SandboxNone, protocol.SandboxAuto, protocol.SandboxLandlock,
			protocol.SandboxRequired}, setting)
	}
	return may(c, alias) < may(user, user.DefaultAgent) || held(c, alias) < held(user, user.DefaultAgent)
}

// isPlainName reports whether no program can mistake a model name for an option.
func isPlainName(name string) bool {
	const longest = 200
	letter := func(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' }
	return len(name) <= longest && letter(rune(name[0])) &&
		!strings.ContainsFunc(name, func(r rune) bool { return !letter(r) && !strings.ContainsRune("._:/@+-", r) })
}

// under merges the project's config into the user's, and preserves all of the user's settings.
func (p project) under(user protocol.Config) protocol.Config {
	c := user
	c.Models = merge(user.Models, p.Models)
	for alias, m := range c.Models {
		for _, name := range keys(user.Models) { // its price is listed under another name
			own := user.Models[name]
			if m.Price == nil && own.Price != nil && own.Provider == m.Provider && own.Name == m.Name {
				m.Price = own.Price
				c.Models[alias] = m
			}
		}
	}
	c.ModelOverrides = merge(user.ModelOverrides, p.ModelOverrides)
	c.AgentOverrides = map[string]map[string]string{}
	maps.Copy(c.AgentOverrides, user.AgentOverrides)
	for workflow, roles := range p.AgentOverrides {
		c.AgentOverrides[workflow] = merge(user.AgentOverrides[workflow], roles)
	}
	c.Agents = merge(user.Agents, nil)
	for alias, a := range p.Agents {
		if was, known := c.Agents[alias]; known {
			c.Agents[alias] = a.under(was, c.Sandbox.Over(nil).Mode)
		}
	}
	if p.Limits != nil {
		users := cmp.Or(user.Limits, &protocol.LimitsConfig{})
		own, _ := users.Limits() // both have been checked
		theirs, _ := p.Limits.Limits()
		l := own.Narrower(theirs).Config()
		l.PerDay = users.PerDay
		c.Limits = &l
	}
	c.Timeout = shorter(user.Timeout, p.Timeout)
	return c
}

// under narrows one of the user's agents.
func (p projectAgent) under(a protocol.Agent, mode string) protocol.Agent {
	a.Model = cmp.Or(a.Model, p.Model)
	a.Permission = stricter(a.Permission, p.Permission, []string{"", "full", "edits", "read-only"})
	if p.Sandbox.Mode != "" {
		box := a.Sandbox.Over(nil)
		box.Mode = stricter(cmp.Or(box.Mode, mode), p.Sandbox.Mode, []string{protocol.SandboxNone, "",
			protocol.SandboxAuto, protocol.SandboxLandlock, protocol.SandboxRequired})
		a.Sandbox = &box
	}
	a.Timeout = shorter(a.Timeout, p.Timeout)
	a.StartTimeout = shorter(a.StartTimeout, p.StartTimeout)
	a.IdleTimeout = shorter(a.IdleTimeout, p.IdleTimeout)
	a.MaxTurns = fewer(a.MaxTurns, p.MaxTurns)
	a.MaxCostUSD = fewer(a.MaxCostUSD, p.MaxCostUSD)
	if a.Resume == nil {
		a.Resume = p.Resume
	}
	return a
}

// merge returns upper with the missing entries of lower.
func merge[V any](upper, lower map[string]V) map[string]V {
	out := make(map[string]V, len(upper)+len(lower))
	maps.Copy(out, lower)
	maps.Copy(out, upper)
	return out
}

// fewer returns the smaller of two limits; zero means none.
func fewer[N int | float64](a, b N) N {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// shorter returns the shorter of two valid durations; "" means none.
func shorter(a, b string) string {
	x, _ := time.ParseDuration(a)
	y, _ := time.ParseDuration(b)
	if a == "" || b != "" && y < x {
		return b
	}
	return a
}

// stricter returns the word that comes later in order; an empty project value is ignored.
func stricter(user, project string, order []string) string {
	if project == "" || slices.Index(order, project) < slices.Index(order, user) {
		return user
	}
	return project
}

// Distrust returns the reason why a home must not be used. config.yaml contains programs to run, and .env
// their environment, so anyone who can change them or their directory can run programs as the user. Like ssh,
// Distrust rejects files that are owned by another user, except root, or writable by others. A group whose
// only member is the user doesn't count, see [safeopen.OthersWrite]. It accepts files that it can't examine,
// and everything on systems without meaningful modes. The error is a *protocol.Error (code invalid).
func Distrust(dirs home.Dirs) error {
	if !modesMatter {
		return nil
	}
	for _, path := range []string{dirs.Home, dirs.Config(), dirs.DotEnv(), dirs.Remotes()} {
		info, err := os.Stat(path)
		if err != nil {
			continue // its reader reports the error
		}
		if owner, foreign := foreignOwner(info); foreign {
			return invalid([]string{fmt.Sprintf("if it is yours: chown -R %d %s", os.Geteuid(), dirs.Home),
				"to use another home: export UWF_HOME=DIR"},
				"%s belongs to another user (%d), who could run programs as you", path, owner)
		}
		if safeopen.OthersWrite(info) && safeopen.Reachable(path) {
			return &protocol.Error{
				Code: protocol.CodeInvalid,
				Message: fmt.Sprintf("%s is writable by other users (mode %04o), who could run programs as you", path,
					info.Mode().Perm()),
				Hints: []string{"chmod go-w " + plaintext.Word(path), "check whether it was changed"},
			}
		}
	}
	return nil
}
