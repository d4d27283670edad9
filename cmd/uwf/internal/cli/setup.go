package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cmd/uwf/internal/setup"
	"github.com/united-workforce/uwf/engine/discover"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/suggest"
	"github.com/united-workforce/uwf/util/terminal"
	"github.com/united-workforce/uwf/utilagent/llm"
)

func (a *app) setupCommand() *ucli.Command {
	return a.leaf(ucli.Command{
		Name: "setup", Usage: "write config.yaml: the model, its key, and the agents for the roles",
		Description: "On a terminal and without flags it asks. With flags it changes only what they name,\n" +
			"and asks nothing. Comments and all other values stay. The model is tried with one\n" +
			"short question; the config is kept even if it does not answer.\n\n" +
			"Known providers: " + strings.Join(setup.PresetNames(), ", ") + ".\n" +
			"Any other name needs --base-url. A key in an argument can be seen by others on this\n" +
			"machine while the command runs: --api-key - reads it from stdin, --api-key-env\n" +
			"keeps it in the environment.",
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "provider", Usage: "`NAME` of a known provider, or of your own"},
			&ucli.StringFlag{Name: "base-url", Usage: "base `URL` of its chat completions, up to /v1"},
			&ucli.StringFlag{Name: "api-key", Usage: "`KEY` to write into the config; - reads it from stdin"},
			&ucli.StringFlag{Name: "api-key-env", Usage: "environment `VARIABLE` that holds the key"},
			&ucli.StringFlag{Name: "model", Usage: "`NAME` of the model at the provider"},
			&ucli.StringFlag{Name: "agent", Usage: "`NAME` of the agent that plays the roles, such as builtin"},
			&ucli.BoolFlag{Name: "no-check", Usage: "do not try the model"},
		},
	}, a.setup)
}

func (a *app) setup(ctx context.Context, c *ucli.Context) error {
	answers, err := a.setupAnswers(c)
	if err != nil {
		return err
	}
	s, err := a.newSetup()
	if err != nil {
		return err
	}
	if answers.Empty() {
		if !terminal.Is(a.env.Stdin) || !terminal.Is(a.env.Stderr) {
			return usageError("there is no terminal to ask on", "uwf setup --provider openai --model NAME --agent builtin", "uwf setup --help")
		}
		answers, err = s.Dialog(ctx, setup.Terminal{In: a.env.Stdin, Out: a.env.Stderr}, a.ask)
		if err != nil {
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
	saved, err := config.Load(ctx, s.Dirs.Config(), s.Env)
	if err != nil {
		return err
	}
	out, err := a.setupResult(ctx, s, saved, c.Bool("no-check"))
	if err != nil {
		return err
	}
	return a.print(out, func(w io.Writer) error { return printSetup(w, out) })
}

// newSetup reads the config that is there.
func (a *app) newSetup() (*setup.Setup, error) {
	dirs, err := a.dirs()
	if err != nil {
		return nil, err
	}
	e, err := config.LoadDotEnv(dirs.DotEnv(), a.env)
	if err != nil {
		return nil, err
	}
	s := &setup.Setup{
		Env: e, Dirs: dirs, Try: askModel, Installed: discover.OnPath(e),
		Models: func(ctx context.Context, e config.Endpoint) ([]string, error) {
			return llm.New(e, llm.Options{}).Models(ctx)
		},
	}
	return s, s.Open()
}

// ask shows a line of a dialog.
func (a *app) ask(format string, args ...any) { fmt.Fprintf(a.env.Stderr, format+"\n", args...) }

// setupAnswers are the flags.
func (a *app) setupAnswers(c *ucli.Context) (setup.Answers, error) {
	for _, name := range []string{"provider", "base-url", "api-key", "api-key-env", "model", "agent"} {
		if c.IsSet(name) && strings.TrimSpace(c.String(name)) == "" {
			return setup.Answers{}, usageError("--" + name + " is empty")
		}
	}
	if c.IsSet("api-key") && c.IsSet("api-key-env") {
		return setup.Answers{}, usageError("--api-key and --api-key-env exclude each other")
	}
	answers := setup.Answers{
		Provider: c.String("provider"), BaseURL: c.String("base-url"), APIKey: c.String("api-key"),
		APIKeyEnv: c.String("api-key-env"), Model: c.String("model"), Agent: c.String("agent"),
	}
	if answers.APIKey != "-" {
		return answers, nil
	}
	line, err := bufio.NewReader(a.env.Stdin).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return answers, fmt.Errorf("read the key: %w", err)
	}
	if answers.APIKey = strings.TrimSpace(line); answers.APIKey == "" {
		return answers, usageError("--api-key -: stdin is empty")
	}
	return answers, nil
}

// notInstalled warns of an agent that is written down before it is there.
func (a *app) notInstalled(alias string, installed []string) {
	program := protocol.AgentName(alias)
	if near := suggest.Nearest(program, installed, 1); len(near) > 0 {
		a.say("uwf: warning: %s is not on PATH", program)
		a.hint("did you mean uwf setup --agent %s?", strings.TrimPrefix(near[0], protocol.AgentPrefix))
		return
	}
	a.say("uwf: warning: %s is not on PATH: go install %s/cmd/%[1]s@latest, if it is one of ours", program, protocol.ModulePath)
}

// setupResult tries what was written.
func (a *app) setupResult(ctx context.Context, s *setup.Setup, c protocol.Config, untried bool) (protocol.SetupOutput, error) {
	out := protocol.SetupOutput{ConfigPath: s.Dirs.Config(), DefaultAgent: c.DefaultAgent}
	if c.DefaultAgent != "" && c.Agents[c.DefaultAgent].Command == protocol.AgentName(c.DefaultAgent) &&
		!slices.Contains(s.Installed, protocol.AgentName(c.DefaultAgent)) {
		a.notInstalled(c.DefaultAgent, s.Installed)
	}
	e, named, err := s.Endpoint(c)
	if !named {
		return out, nil
	}
	out.Provider, out.Model = c.Models[c.DefaultModel].Provider, c.Models[c.DefaultModel].Name
	if untried {
		return out, nil
	}
	if err == nil {
		err = s.Try(ctx, e)
	}
	if ctx.Err() != nil {
		return out, context.Cause(ctx)
	}
	out.Validation = &protocol.SetupValidation{OK: err == nil}
	if err != nil {
		out.Validation.Error = err.Error()
	}
	return out, nil
}

// printSetup tells a person what is there now, and what to type next.
func printSetup(w io.Writer, out protocol.SetupOutput) error {
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
	if out.DefaultAgent != "" {
		fmt.Fprintf(&b, "Agent:   %s\n", plaintext.Line(out.DefaultAgent))
	}
	b.WriteString("\nNext:\n  uwf workflow new hello     # a workflow to begin with\n  uwf run hello -p \"…\"       # run it\n")
	_, err := io.WriteString(w, b.String())
	return err
}
