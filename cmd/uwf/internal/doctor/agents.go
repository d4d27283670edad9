package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/discover"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/hints"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/suggest"
	"github.com/united-workforce/uwf/utilagent/box"
)

// atOnce bounds how many agents are queried concurrently, since each is a new process.
const atOnce = 4

// candidate is an agent's command line to query.
type candidate struct {
	command string
	args    []string // from the config
	aliases []string // that the config gives it; empty if it is only installed
}

// agents asks the agents in the config and other installed ones for their versions, programs and problems.
func (x *examination) agents(ctx context.Context) {
	all := x.candidates()
	if len(all) == 0 {
		x.note("agents", "go install "+protocol.ModulePath+"/cmd/uwf-builtin@latest", "no agent is configured, and no uwf-* program is on PATH")
		return
	}
	seen := make([]discover.Agent, len(all))
	var group sync.WaitGroup
	room := make(chan struct{}, atOnce)
	for i, c := range all {
		group.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			seen[i] = discover.Ask(ctx, c.command, c.args, x.Env)
		})
	}
	group.Wait()
	for i, agent := range seen {
		x.agent(agent, all[i].aliases)
	}
	x.asRoot()
	if x.AskAgent == nil || x.config == nil || x.config.DefaultAgent == "" || x.asksModel() { // models does that
		return
	}
	p := x.AskAgent(ctx, x.config.DefaultAgent)
	if p.OK {
		x.ok("agents", "%s answers", x.config.DefaultAgent)
		return
	}
	x.problem("agents", cmp.Or(strings.Join(p.Hints, "; "), "uwf setup"), "%s does not answer: %s", x.config.DefaultAgent, p.Error)
}

// asRoot reports agents whose program refuses to run as root.
func (x *examination) asRoot() {
	if !x.Root || x.config == nil {
		return
	}
	for _, alias := range slices.Sorted(maps.Keys(x.config.Agents)) {
		a := x.config.Agents[alias]
		sandbox := cmp.Or(a.Env["IS_SANDBOX"], x.Env.Get("IS_SANDBOX"))
		if filepath.Base(a.Command) != "uwf-claude-code" || sandbox != "" || a.Permission != "" && a.Permission != "full" {
			continue
		}
		key := plaintext.Word("agents." + alias)
		x.reporter(alias)("agents", "uwf config set "+key+".permission edits, or on a throw-away machine: uwf config set "+key+".env.IS_SANDBOX 1", "%s: claude refuses to run as root with permission full", alias)
	}
}

// candidates returns the agents in the config by alias, then the others on PATH by name.
func (x *examination) candidates() []candidate {
	var all []candidate
	known := map[string]bool{}
	if x.config != nil {
		for _, alias := range slices.Sorted(maps.Keys(x.config.Agents)) {
			a, err := config.ResolveAgent(*x.config, alias, x.Env)
			if err != nil {
				x.reporter(alias)("agents", remedy(err, "correct agents."+alias+" in "+x.Dirs.Config()), "%s: %v", alias, err)
				continue
			}
			known[filepath.Base(a.Command)] = true
			same := slices.IndexFunc(all, func(c candidate) bool { return c.command == a.Command && slices.Equal(c.args, a.Args) })
			if same < 0 {
				all, same = append(all, candidate{command: a.Command, args: a.Args}), len(all)
			}
			all[same].aliases = append(all[same].aliases, alias)
		}
	}
	for _, name := range discover.OnPath(x.Env) {
		if !known[name] {
			all = append(all, candidate{command: name})
		}
	}
	return all
}

// agent reports the result of querying one agent.
func (x *examination) agent(a discover.Agent, aliases []string) {
	name := a.Command
	if len(aliases) > 0 && !slices.Equal(aliases, []string{a.Command}) {
		name = fmt.Sprintf("%s (%s)", strings.Join(aliases, ", "), a.Command)
	}
	if a.Err != nil {
		x.reporter(aliases...)("agents", installing(a.Command), "%s: %v", name, a.Err)
		return
	}
	text := strings.TrimSpace(name + " " + a.Version)
	if a.Check == nil {
		x.ok("agents", "%s", text)
		return
	}
	if a.Check.Program != "" {
		text += strings.TrimRight(": drives "+a.Check.Program+" "+a.Check.Version, " ")
	}
	if len(a.Check.Problems) == 0 {
		x.ok("agents", "%s", text)
		return
	}
	for _, p := range a.Check.Problems {
		report := x.reporter(aliases...)
		if len(aliases) == 0 { // installed but not in the config
			report = x.note
		}
		report("agents", p.Do, "%s: %s", text, p.What)
	}
}

// reporter returns the function that reports a failure of an agent with these names: problem or warn.
func (x *examination) reporter(aliases ...string) func(area, do, format string, args ...any) {
	if x.includesDefault(aliases) {
		return x.problem
	}
	return x.warn
}

// includesDefault reports whether aliases include the default agent, whose failure stops every step.
func (x *examination) includesDefault(aliases []string) bool {
	return x.config != nil && x.config.DefaultAgent != "" && slices.Contains(aliases, x.config.DefaultAgent)
}

// installing returns the command that installs a missing uwf-* program. For another one, it lists the config.
func installing(command string) string {
	name := path.Base(filepath.ToSlash(command))
	if strings.HasPrefix(name, protocol.AgentPrefix) {
		return "go install " + protocol.ModulePath + "/cmd/" + name + "@latest"
	}
	return "uwf config list"
}

// readConfig checks config.yaml and .env. If the config is unreadable, checks that need it are skipped.
func (x *examination) readConfig(ctx context.Context) {
	path, files := x.Dirs.Config(), config.Of(x.Dirs)
	if e, err := files.WithDotEnv(x.Env); err != nil {
		x.problem("config", "correct "+x.Dirs.DotEnv(), "%v", err)
	} else {
		x.Env = e
	}
	c, err := files.Load(ctx, x.Env)
	if err != nil {
		x.broken(err)
		return
	}
	if c, err = x.withProject(c); err != nil {
		x.broken(err)
		return
	}
	x.config = &c
	for _, line := range config.GetsAll(c, &x.Env) {
		x.ok("config", "commands.passEnv: %s", plaintext.Line(line))
	}
	for _, warning := range files.Exposed() {
		what, do, _ := strings.Cut(warning, ": ")
		x.warn("config", do, "%s", what)
	}
	switch {
	case !exists(path):
		x.agentless("uwf setup", "%s does not exist, so there is no default agent", path)
	case c.DefaultAgent == "" && len(c.AgentOverrides) == 0:
		x.agentless("uwf setup --agent NAME", "%s has no defaultAgent; agent roles need --agent", path)
	case c.DefaultAgent == "":
		x.note("config", "uwf setup --agent NAME", "%s has no defaultAgent; roles without an override need --agent", path)
	default:
		x.ok("config", "%s", path)
	}
}

// withProject merges the config with the project's settings.
func (x *examination) withProject(c protocol.Config) (protocol.Config, error) {
	path, ignored, err := engine.ProjectConfig(x.Env, x.Env.Dir, x.Dirs)
	for _, i := range ignored {
		x.warn("config", "", "ignored %s: it %s", i.Path, i.Reason)
	}
	if err != nil || path == "" {
		return c, err
	}
	if c, err = config.WithProject(c, path); err == nil {
		x.ok("config", "%s (project)", path)
	}
	return c, err
}

// broken reports each mistake in the config with its position.
func (x *examination) broken(err error) {
	var invalid *config.InvalidError
	if !errors.As(err, &invalid) {
		x.problem("config", remedy(err, "correct "+x.Dirs.Config()), "%v", err)
		return
	}
	for _, p := range invalid.Problems {
		do := cmp.Or(p.Remedy, "correct "+x.Dirs.Config())
		x.problem("config", do, "%s:%d:%d: %s", p.File, p.Line, p.Column, p.Message)
	}
}

// remedy returns the first hint of an error, or else other.
func remedy(err error, other string) string {
	var e *protocol.Error
	if errors.As(err, &e) && app.HasHints(e) {
		return hints.All("", e)[0]
	}
	return other
}

// overrides checks that the overrides in the config match existing roles: the only other sign of a typo is
// that the wrong agent runs. Only registered workflows are known.
func (x *examination) overrides(ctx context.Context) {
	if x.config == nil {
		return
	}
	for _, workflow := range slices.Sorted(maps.Keys(x.config.AgentOverrides)) {
		for _, role := range slices.Sorted(maps.Keys(x.config.AgentOverrides[workflow])) {
			x.override(ctx, "agentOverrides", workflow, role)
		}
	}
	for _, scenario := range slices.Sorted(maps.Keys(x.config.ModelOverrides)) {
		if at := strings.LastIndexByte(scenario, '.'); at > 0 {
			x.override(ctx, "modelOverrides", scenario[:at], scenario[at+1:])
		}
	}
}

func (x *examination) override(ctx context.Context, section, workflow, role string) {
	h, err := x.index.Workflow(ctx, workflow)
	if errors.Is(err, heads.ErrNoWorkflow) {
		names, _ := x.index.Workflows(ctx) // errors are reported elsewhere
		var known []string
		for _, n := range names {
			known = append(known, n.Name)
		}
		if near := suggest.Nearest(workflow, known, 1); len(near) > 0 {
			x.warn("config", "did you mean "+near[0]+"? uwf config unset "+plaintext.Word(section+"."+workflow), "%s has an entry for workflow %q, which is not registered", section, workflow)
		}
		return
	}
	if err != nil {
		return
	}
	s, err := fsstore.Open(ctx, x.Dirs.Store, fsstore.Options{Home: x.Dirs.Home})
	if err != nil {
		return // the store check reports the reason
	}
	w, err := cas.Read[protocol.Workflow](ctx, s, h)
	if _, known := w.Roles[role]; err != nil || known {
		return
	}
	do := "uwf config unset " + plaintext.Word(section+"."+workflow+"."+role)
	if near := suggest.Nearest(role, slices.Collect(maps.Keys(w.Roles)), 1); len(near) > 0 {
		do = "did you mean " + near[0] + "? " + do
	}
	x.warn("config", do, "%s has an entry for role %q, which workflow %s does not have", section, role, workflow)
}

// models checks each model's endpoint and key, and optionally sends a request.
func (x *examination) models(ctx context.Context) {
	if x.config == nil {
		return
	}
	needed := x.neededModel()
	if needed != "" && x.config.Models[needed].Name == "" || needed == "" && x.asksModel() && !slices.Contains(x.config.Agents[x.config.DefaultAgent].Args, "--model") {
		x.problem("models", "uwf setup", "no model is configured for %s", x.config.DefaultAgent)
	}
	for _, alias := range slices.Sorted(maps.Keys(x.config.Models)) {
		report := x.warn
		if alias == needed {
			report = x.problem
		}
		e, err := config.ResolveModel(*x.config, alias, x.Env)
		if err != nil {
			report("models", remedy(err, "correct "+x.Dirs.Config()), "%s: %v", alias, err)
			continue
		}
		if x.Ask == nil {
			x.ok("models", "%s: %s at %s", alias, e.Model, e.BaseURL)
			continue
		}
		if err := x.Ask(ctx, e); err != nil {
			report("models", remedy(err, "correct models."+alias+" in "+x.Dirs.Config()), "%s does not answer: %v", alias, err)
			continue
		}
		x.ok("models", "%s: %s at %s answers", alias, e.Model, e.BaseURL)
	}
}

// asksModel reports whether the default agent takes its model from the config.
func (x *examination) asksModel() bool {
	return x.config.DefaultAgent != "" && config.OwnsModels(x.config.Agents[x.config.DefaultAgent].Command)
}

// neededModel returns the alias of the model that the default agent requires, or "".
func (x *examination) neededModel() string {
	if !x.asksModel() || slices.Contains(x.config.Agents[x.config.DefaultAgent].Args, "--model") {
		return ""
	}
	return config.AgentModel(*x.config, x.config.DefaultAgent, "", "")
}

// confinement reports how this machine restricts models' commands.
func (x *examination) confinement(context.Context) {
	const area = "sandbox"
	if x.Confinement == nil {
		return
	}
	text, system, lacks := x.Confinement()
	defer func() { x.access(area, system, lacks) }()
	switch {
	case system.Namespaces:
		x.ok(area, "commands are confined by %s", text)
	case system.Confines:
		x.warn(area, lacks.Do, "commands are confined by %s; no namespaces: %s", text, lacks.Why)
	default:
		x.warn(area, "uwf config set sandbox.mode required",
			"commands cannot be confined on this machine (%s; namespaces: %s)", text, lacks.Why)
	}
}

// access reports what each agent in the config may do.
func (x *examination) access(area string, s config.System, lacks box.Diagnosis) {
	if x.config == nil {
		return
	}
	mode := config.CommandSandbox(*x.config).Mode
	may := config.CommandAccess(*x.config, s) + config.Reaches(config.Network(*x.config, "", "", ""))
	if mode == protocol.SandboxNone {
		x.note(area, "uwf config set commands.sandbox.mode auto", "command roles: %s", may)
	} else {
		x.sandboxed(area, "commands", mode, "command roles: "+may, s, lacks)
	}
	for _, alias := range slices.Sorted(maps.Keys(x.config.Agents)) {
		a := x.config.Agents[alias]
		argv := append([]string{a.Command}, a.Args...)
		may := config.Access(*x.config, alias, argv, x.Env, s) + config.Reaches(config.Network(*x.config, alias, "", ""))
		if s.Confines && config.IsUnknown(*x.config, alias, argv) {
			x.warn(area, "uwf config set "+plaintext.Word("agents."+alias+".sandbox.mode")+" auto", "%s: %s", alias, may)
			continue
		}
		// The built-in agent can run only the commands that the config allows, here none; uwf-llm never runs any.
		if config.OwnsModels(a.Command) && a.Permission == "" && noCommands(x.config.Builtin) && !config.AnyCommand(x.config.Builtin, x.Env) && a.Command != "uwf-llm" {
			x.note(area, "uwf setup --commands all", "%s: %s", alias, may)
			continue
		}
		mode := config.Sandbox(*x.config, alias).Mode
		if !x.includesDefault([]string{alias}) {
			mode = ""
		}
		x.sandboxed(area, "agents."+alias, mode, alias+": "+may, s, lacks)
	}
}

// sandboxed reports the text, as a problem if this system doesn't support the sandbox mode of key.
func (x *examination) sandboxed(area, key, mode, text string, s config.System, lacks box.Diagnosis) {
	set := "uwf config set " + plaintext.Word(key+".sandbox.mode")
	switch {
	case mode == protocol.SandboxRequired && !s.Namespaces:
		do := set + " landlock"
		if lacks.Do != "" {
			do = lacks.Do + "; or " + do
		}
		x.problem(area, do, "%s", text)
	case mode == protocol.SandboxLandlock && !s.Confines:
		x.problem(area, set+" auto", "%s", text)
	default:
		x.ok(area, "%s", text)
	}
}

func noCommands(b *protocol.BuiltinConfig) bool { return b == nil || len(b.AllowCommands) == 0 }
