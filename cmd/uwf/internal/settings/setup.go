package settings

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	ucli "github.com/united-workforce/uwf/internal/thirdparty/cli"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/prune"
	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/doctor"
	"github.com/united-workforce/uwf/cmd/uwf/internal/guide"
	"github.com/united-workforce/uwf/cmd/uwf/internal/setup"
	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/discover"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/hints"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/safeopen"
	"github.com/united-workforce/uwf/util/suggest"
	"github.com/united-workforce/uwf/util/terminal"
	"github.com/united-workforce/uwf/utilagent/box"
	"github.com/united-workforce/uwf/utilagent/confine"
	"github.com/united-workforce/uwf/utilagent/modelcall"
)

// Setup returns the command uwf setup.
func (a Commands) Setup() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "setup", Usage: "configure agents and models",
		Description: "Known providers: " + strings.Join(setup.PresetNames(), ", ") + ". Any other name needs --base-url.",
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "provider", Usage: "`NAME` provider: a known one, or any name with --base-url"},
			&ucli.StringFlag{Name: "base-url", Usage: "`URL` root of an OpenAI-compatible API, up to /v1"},
			&ucli.StringFlag{
				Name: "api-key", Usage: "`KEY` API key to store in the config; - reads stdin",
				Action: cmdline.Excludes[string]("api-key", "api-key-env"),
			},
			&ucli.StringFlag{Name: "api-key-env", Usage: "`NAME` environment variable that holds the API key"},
			&ucli.StringFlag{Name: "model", Usage: "`NAME` model, as the provider calls it"},
			&ucli.StringSliceFlag{Name: "agent", Usage: "`NAME` agent to set up, such as claude-code; the first is the default"},
			&ucli.StringFlag{Name: "commands", Usage: "`LIST` programs that agents can run: all, none, or a list such as go,git"},
			&ucli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "accept all defaults without prompting"},
			&ucli.BoolFlag{Name: "skill", Usage: "install a skill that teaches coding agents to use uwf"},
			&ucli.BoolFlag{Name: "no-probe", Aliases: []string{"no-check"}, Usage: "don't test the model and the agent"},
		},
	}, a.setup)
}

func (a Commands) setup(ctx context.Context, c *ucli.Context) error {
	answers, err := a.setupAnswers(c)
	if err != nil {
		return err
	}
	if c.Bool("skill") && answers.Empty() && !c.Bool("yes") {
		out := protocol.SetupOutput{}
		if out.Skills, err = a.installSkill(); err != nil {
			return fmt.Errorf("install the skill: %w", err)
		}
		return a.Print(out, func(w *term.Page) { printSkills(w, out.Skills) })
	}
	s, err := a.newSetup()
	if err != nil {
		return err
	}
	var person setup.Person
	switch {
	case c.Bool("yes"):
		person = &setup.Agreeing{}
	case !answers.Empty():
	case !terminal.Is(a.Env.Stdin) || !terminal.Is(a.Env.Stderr):
		return cmdline.UsageError("stdin is not a terminal", "to use what is found on this machine: uwf "+
			"setup --yes", "uwf setup --agent claude-code",
			"uwf setup --agent builtin --provider openai --model NAME --commands all", "uwf setup --help")
	default:
		person = setup.Terminal{In: a.Env.Stdin, Out: a.Env.Stderr}
	}
	if person != nil {
		a.setupThere(ctx, s)
		if answers, err = s.Dialog(ctx, person, a.ask, answers); err != nil {
			return err
		}
	}
	skill := c.Bool("skill")
	if !skill && person != nil {
		if skill, err = a.offerSkill(ctx, person); err != nil {
			return err
		}
	}
	_, err = a.changeConfig(ctx, func(src []byte, _ string) ([]byte, []protocol.Problem, error) {
		text, err := s.Text(src, answers)
		return text, nil, err
	})
	if err != nil {
		return err
	}
	saved, err := config.Of(s.Dirs).Load(ctx, s.Env)
	if err != nil {
		return err
	}
	out, err := a.setupResult(ctx, s, saved, c.Bool("no-probe"))
	if err != nil {
		return err
	}
	if skill {
		if out.Skills, err = a.installSkill(); err != nil {
			return fmt.Errorf("install the skill: %w", err)
		}
	}
	if v, p := out.Validation, out.Probe; v != nil && !v.OK || p != nil && !p.OK {
		a.Status = protocol.CodeFailed
	}
	return a.Print(out, func(w *term.Page) { printSetup(w, out) })
}

// newSetup reads the existing config.
func (a Commands) newSetup() (*setup.Setup, error) {
	dirs, err := a.Dirs()
	if err != nil {
		return nil, err
	}
	e, err := config.Of(dirs).WithDotEnv(a.Env)
	if err != nil {
		return nil, err
	}
	installed := discover.OnPath(e)
	s := &setup.Setup{
		Env: e, Dirs: dirs, Try: try(e), Installed: installed, Confined: confine.Level() > 0,
		Players: func(ctx context.Context) []setup.Player { return setup.FindPlayers(ctx, e, installed) },
		Models: func(ctx context.Context, m config.Endpoint) ([]string, error) {
			reply, err := modelcall.Do(ctx, e, modelcall.Request{Verb: modelcall.List, Endpoint: m})
			return reply.Models, err
		},
	}
	return s, s.Open()
}

// ask prints a line of a dialog.
func (a Commands) ask(format string, args ...any) { fmt.Fprintf(a.Env.Stderr, format+"\n", args...) }

// setupAnswers converts the flags to answers.
func (a Commands) setupAnswers(c *ucli.Context) (setup.Answers, error) {
	agents := c.StringSlice("agent")
	if slices.Contains(agents, "") {
		return setup.Answers{}, cmdline.UsageError("--agent is empty")
	}
	answers := setup.Answers{
		Provider: c.String("provider"), BaseURL: c.String("base-url"), APIKey: c.String("api-key"),
		APIKeyEnv: c.String("api-key-env"), Model: c.String("model"), Commands: c.String("commands"),
	}
	if len(agents) > 0 {
		answers.Agent, answers.More = agents[0], strings.Join(agents[1:], ",")
	}
	if answers.APIKey != "-" {
		return answers, nil
	}
	line, err := bufio.NewReader(a.Env.Stdin).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return answers, fmt.Errorf("read the key: %w", err)
	}
	if answers.APIKey = strings.TrimSpace(line); answers.APIKey == "" {
		return answers, cmdline.UsageError("--api-key -: stdin is empty")
	}
	return answers, nil
}

// notInstalled warns about a configured agent that is not installed.
func (a Commands) notInstalled(alias string, installed []string) {
	program := protocol.AgentName(alias)
	if near := suggest.Nearest(program, installed, 1); len(near) > 0 {
		a.Warnf("%s is not on PATH", program)
		a.Hint("did you mean uwf setup --agent %s?", strings.TrimPrefix(near[0], protocol.AgentPrefix))
		return
	}
	a.Warnf("%s is not on PATH; to install one of uwf's agents: go install %s/cmd/%[1]s@latest", program, protocol.ModulePath)
}

// setupThere shows the existing configuration.
func (a Commands) setupThere(ctx context.Context, s *setup.Setup) {
	c, err := config.Of(s.Dirs).Load(ctx, s.Env)
	if err != nil || c.DefaultAgent == "" {
		return
	}
	a.ask("%s exists; press Enter to keep its values.", s.Dirs.Config())
	a.ask("  agent: %s, which %s", plaintext.Line(c.DefaultAgent), plaintext.Line(a.may(c, c.DefaultAgent)))
	if m := c.Models[c.DefaultModel]; m.Name != "" {
		a.ask("  model: %s at %s", plaintext.Line(m.Name), plaintext.Line(m.Provider))
	}
	a.ask("")
}

// may describes what an agent in the config may do.
func (a Commands) may(c protocol.Config, alias string) string {
	agent := c.Agents[alias]
	argv := append([]string{agent.Command}, agent.Args...)
	system, _ := a.System()
	return config.Access(c, alias, argv, a.Env, system)
}

// setupResult tests the new config: first the model, if one is needed, because its own error is clearest;
// then a run with one role.
func (a Commands) setupResult(ctx context.Context, s *setup.Setup, c protocol.Config, untried bool) (protocol.SetupOutput, error) {
	out := protocol.SetupOutput{ConfigPath: s.Dirs.Config(), DefaultAgent: c.DefaultAgent, Replaced: s.Replaced}
	command := c.Agents[c.DefaultAgent].Command
	absent := c.DefaultAgent != "" && command == protocol.AgentName(c.DefaultAgent) && !slices.Contains(s.Installed, command)
	if absent {
		a.notInstalled(c.DefaultAgent, s.Installed)
	}
	if c.DefaultAgent != "" {
		out.May = a.may(c, c.DefaultAgent)
	}
	e, named, err := s.Endpoint(c)
	if named {
		out.Provider, out.Model = c.Models[c.DefaultModel].Provider, c.Models[c.DefaultModel].Name
	}
	if untried {
		return out, nil
	}
	if named && (command == "" || config.OwnsModels(command)) {
		if err == nil {
			err = s.Try(ctx, e)
		}
		out.Validation = &protocol.SetupValidation{OK: err == nil}
		if err != nil {
			out.Validation.Error = err.Error()
		}
	}
	switch {
	case ctx.Err() != nil:
	case absent:
		out.Probe = &protocol.SetupProbe{Error: command + " is not on PATH"}
	case c.DefaultAgent != "" && (out.Validation == nil || out.Validation.OK):
		out.Probe = a.probe(ctx, c.DefaultAgent)
	}
	if ctx.Err() != nil {
		return out, context.Cause(ctx)
	}
	return out, nil
}

// printSetup prints the resulting configuration and what to type next.
func printSetup(w *term.Page, out protocol.SetupOutput) {
	var b strings.Builder
	fmt.Fprintf(&b, "Written: %s\n", out.ConfigPath)
	if out.Model != "" {
		fmt.Fprintf(&b, "Model:   %s at %s", plaintext.Line(out.Model), plaintext.Line(out.Provider))
		switch v := out.Validation; {
		case v == nil:
			b.WriteString(" (not tried)\n")
		case v.OK:
			b.WriteString(" answers\n")
		default:
			fmt.Fprintf(&b, " does not answer: %s\n         uwf doctor --check tries again\n", plaintext.Line(v.Error))
		}
	}
	if r := out.Replaced; r != nil {
		fmt.Fprintf(&b, "Before:  %s at %s (%s)\n",
			plaintext.Line(r.Model), plaintext.Line(r.Provider), plaintext.Line(r.BaseURL))
		if r.Model != out.Model || r.Provider != out.Provider {
			fmt.Fprintf(&b, "         uwf config set defaultModel %s restores it\n", plaintext.Word(r.Alias))
		}
	}
	if out.DefaultAgent != "" {
		fmt.Fprintf(&b, "Agent:   %s, which %s\n", plaintext.Line(out.DefaultAgent), plaintext.Line(out.May))
	}
	if p := out.Probe; p != nil && p.OK {
		fmt.Fprintf(&b, "Answer:  %s\n", plaintext.Line(p.Answer))
	} else if p != nil {
		fmt.Fprintf(&b, "Answer:  none: %s\n", term.Lines(p.Error, "         "))
		for _, hint := range p.Hints {
			fmt.Fprintf(&b, "         %s\n", plaintext.Line(hint))
		}
		b.WriteString("         once that is fixed, run uwf setup again; uwf doctor checks everything else\n")
	}
	if out.DefaultAgent != "" {
		b.WriteString("\nNext:\n  uwf workflow new hello     # a workflow to begin with\n  uwf run ./hello.yaml -p 'Write a short poem about this directory into poem.txt'\n  uwf thread read @          # all that happened\n")
	} else {
		b.WriteString("\nNext:\n  uwf setup     # asks who plays the roles\n")
	}
	w.Printf("%s", b.String())
	printSkills(w, out.Skills)
}

// probeWorkflow has one role that answers one question.
const probeWorkflow = `name: setup-probe
description: One role answers one question. uwf setup makes such a run.
roles:
  probe:
    description: Answers a question.
    goal: You answer one question in one sentence, from what you know. You use no tools.
    capabilities: []
    procedure: Answer at once.
    output: The answer, in one sentence.
    frontmatter:
      type: object
      properties: { $status: { const: done }, answer: { type: string } }
      required: [$status, answer]
graph:
  $START: { role: probe, prompt: "{{$prompt}}" }
  probe: { done: { role: $END, prompt: "{{answer}}" } }
`

const (
	probeQuestion = "Who are you? Say in one sentence which model or program you are."
	probeTime     = 3 * time.Minute
)

// probe has an agent answer one question in a temporary thread and an empty directory. The thread is removed
// afterwards, so it appears in no list or total.
func (a Commands) probe(ctx context.Context, agent string) *protocol.SetupProbe {
	a.Messagef("asking %s one question …", agent)
	p := &protocol.SetupProbe{}
	id, err := a.runProbe(ctx, p)
	if id != "" {
		if err := a.forget(context.WithoutCancel(ctx), id); err != nil {
			a.Warnf("could not remove thread %s of this question: %v", id, err)
		}
	}
	if err == nil {
		p.OK = true
		return p
	}
	coded := app.Classify(err)
	p.Error = coded.Message
	for _, hint := range hints.All("", coded) {
		if id == "" || !strings.Contains(hint, id) {
			p.Hints = append(p.Hints, hint)
		}
	}
	return p
}

// forget ends a thread and removes it.
func (a Commands) forget(ctx context.Context, id string) error {
	e, err := a.Engine(ctx, nil)
	if err != nil {
		return err
	}
	if at, err := e.Reader.Show(ctx, id); err == nil && at.Status != protocol.StatusCompleted {
		if err := e.Kill(ctx, id); err != nil {
			return err
		}
	}
	_, err = e.Files().Prune(ctx, prune.Options{Home: e.Reader.Dirs.Home, Now: a.Env.Now(), Threads: []string{id}}, true)
	return err
}

func (a Commands) runProbe(ctx context.Context, p *protocol.SetupProbe) (id string, err error) {
	dir, err := os.MkdirTemp("", "uwf-setup-")
	if err != nil {
		return id, err
	}
	defer func() { err = errors.Join(err, safeopen.RemoveAll(dir)) }()
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return id, err
	}
	file := filepath.Join(dir, "setup-probe.yaml")
	if err := os.WriteFile(file, []byte(probeWorkflow), 0o600); err != nil {
		return id, err
	}
	e, err := a.Engine(ctx, nil)
	if err != nil {
		return id, err
	}
	o := engine.StepOptions{Timeout: probeTime}
	started, err := a.Workflows().Start(ctx, e, file, protocol.Start{Prompt: probeQuestion, Cwd: dir},
		engine.StartOptions{Check: func(s *protocol.Start) error { return e.CheckFirst(ctx, *s, o) }})
	if err != nil {
		return id, err
	}
	id = started.Thread
	results, err := e.Do(ctx, started.Thread, engine.Work{Steps: engine.UntilEnd, StepOptions: o})
	if err != nil {
		return id, err
	}
	last := results[len(results)-1]
	if last.Status != protocol.StatusCompleted {
		return id, fmt.Errorf("the run is %s: %s", last.Status, app.StatusText(last))
	}
	step, err := cas.Read[protocol.Step](ctx, e.Reader.Store, last.Head)
	if err != nil {
		return id, err
	}
	output, err := e.Reader.Store.Get(ctx, step.Output)
	if err != nil {
		return id, err
	}
	value, err := output.Value()
	if err != nil {
		return id, err
	}
	fields, _ := value.(map[string]any)
	p.Answer, _ = fields["answer"].(string)
	return id, nil
}

// Doctor returns the command uwf doctor.
func (a Commands) Doctor() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "doctor", Usage: "check the setup and suggest fixes",
		Flags: []ucli.Flag{
			&ucli.BoolFlag{Name: "check", Usage: "also send a short request to each model or to the default agent"},
			&ucli.BoolFlag{Name: "unattended", Usage: "check only what should be set before you leave runs alone"},
		},
	}, a.doctor)
}

func (a Commands) doctor(ctx context.Context, c *ucli.Context) error {
	dirs, err := a.Dirs()
	if err != nil {
		return err
	}
	d := doctor.Doctor{Env: a.Env, Dirs: dirs, Running: a.runningThreads, Root: os.Geteuid() == 0}
	d.Confinement = func() (string, config.System, box.Diagnosis) {
		system, lacks := a.System()
		if system.Namespaces {
			return "namespaces, " + confine.Describe(), system, lacks
		}
		return confine.Describe() + confine.Open(false), system, lacks
	}
	if c.Bool("check") {
		d.Ask, d.AskAgent = try(a.Env), a.probe
	}
	examine := d.Examine
	if c.Bool("unattended") {
		examine = d.Unattended
	}
	diagnosis := examine(ctx)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if !diagnosis.Healthy {
		a.Status = protocol.CodeFailed
	}
	return a.Print(diagnosis, func(w *term.Page) {
		w.Coloured(diagnosisText(diagnosis, cmp.Or(a.Width(), cmdline.Columns)), term.OfFinding)
	})
}

func (a Commands) runningThreads(ctx context.Context) ([]protocol.RunningThread, error) {
	e, err := a.Engine(ctx, nil)
	if err != nil {
		return nil, err
	}
	return e.Reader.Running(ctx)
}

// try asks a model for one word, without retries.
func try(e env.Env) func(context.Context, config.Endpoint) error {
	return func(ctx context.Context, m config.Endpoint) error {
		_, err := modelcall.Do(ctx, e, modelcall.Request{Verb: modelcall.Probe, Endpoint: m})
		return err
	}
}

// diagnosisText prints findings with their remedies, which are not wrapped so that they can be pasted. Unused
// agents with problems share a line.
func diagnosisText(d protocol.Diagnosis, width int) string {
	findings, lacking := []protocol.Finding{}, []string{}
	for _, f := range d.Findings {
		if f.Area == "agents" && f.Severity == protocol.SeverityNote && strings.HasPrefix(f.What, protocol.AgentPrefix) {
			name, _, _ := strings.Cut(strings.TrimPrefix(f.What, protocol.AgentPrefix), " ")
			lacking = append(lacking, strings.TrimSuffix(name, ":"))
			continue
		}
		findings = append(findings, f)
	}
	if len(lacking) > 0 {
		findings = append(findings, protocol.Finding{
			Area: "agents", Severity: protocol.SeverityNote,
			What: "not ready and not used: " + strings.Join(slices.Compact(lacking), ", "), Do: "uwf setup --agent NAME",
		})
	}
	var b strings.Builder
	const indent = 18
	for _, f := range findings {
		words := map[protocol.Severity]string{protocol.SeverityWarning: "warn", protocol.SeverityProblem: "fail"}
		first := fmt.Sprintf("%-4s  %-10s  ", cmp.Or(words[f.Severity], string(f.Severity)), f.Area)
		for _, line := range cmdline.Wrap(plaintext.Line(f.What), width-indent) {
			fmt.Fprintf(&b, "%-*s%s\n", indent, first, line)
			first = ""
		}
		if f.Do != "" {
			fmt.Fprintf(&b, "%-*s→ %s\n", indent, "", plaintext.Line(f.Do))
		}
	}
	return b.String()
}

// skillStart begins every version of the uwf skill. A file that begins otherwise is the user's.
const skillStart = "---\nname: uwf\n"

// skillFiles returns where agents look for the uwf skill: Claude Code in its own directory, Codex,
// Gemini CLI, opencode and others in ~/.agents.
func (a Commands) skillFiles() []string {
	user := cmp.Or(a.Env.Get("HOME"), a.Env.Get("USERPROFILE"))
	if user == "" {
		return nil
	}
	claude := cmp.Or(a.Env.Get("CLAUDE_CONFIG_DIR"), filepath.Join(user, ".claude"))
	var files []string
	for _, dir := range []string{claude, filepath.Join(user, ".agents")} {
		files = append(files, filepath.Join(a.Env.Path(dir), "skills", "uwf", "SKILL.md"))
	}
	return files
}

// offerSkill asks whether to install the skill where it is missing or out of date.
func (a Commands) offerSkill(ctx context.Context, p setup.Person) (bool, error) {
	if _, ok := p.(setup.Terminal); !ok { // --yes writes nothing outside the home
		return false, nil
	}
	for _, file := range a.skillFiles() {
		text, err := os.ReadFile(file)
		if err == nil && (string(text) == guide.Skill() || !strings.HasPrefix(string(text), skillStart)) {
			continue
		}
		answer, err := p.Line(ctx, "Install a skill that teaches Claude Code, Codex and other agents to use uwf? [y/N] ")
		return strings.HasPrefix(strings.ToLower(strings.TrimSpace(answer)), "y"), err
	}
	return false, nil
}

// installSkill writes the skill, and returns the files that it wrote. A file that isn't a version
// of this skill stays.
func (a Commands) installSkill() (written []string, err error) {
	for _, file := range a.skillFiles() {
		switch text, err := os.ReadFile(file); {
		case err == nil && !strings.HasPrefix(string(text), skillStart):
			a.Warnf("%s is not a skill of uwf and stays", file)
			continue
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return written, err
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return written, err
		}
		if err := durable.WriteFile(durable.OS(), file, []byte(guide.Skill()), 0o644); err != nil {
			return written, err
		}
		written = append(written, file)
	}
	return written, nil
}

func printSkills(w *term.Page, files []string) {
	for _, file := range files {
		w.Printf("Skill:   %s\n", plaintext.Line(file))
	}
}
