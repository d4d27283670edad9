package settings

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cmd/uwf/internal/doctor"
	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/utilagent/box"
	"github.com/united-workforce/uwf/utilagent/confine"
	"github.com/united-workforce/uwf/utilagent/llm"
)

// Doctor is uwf doctor.
func (a Commands) Doctor() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "doctor", Usage: "check the setup and suggest fixes",
		Description: "Checks the home, the store and how it flushes, the threads, the config and the\n" +
			"project's, overrides, the agents in the config and on PATH with their versions and\n" +
			"logins, what they may run, confinement, the models and the space on disk. It changes\n" +
			"nothing. Whether each node is whole, `uwf cas fsck` tells.\n\n" +
			"Exits with 1 if there is a problem: then a step could not run as things are. Notes\n" +
			"and warnings are about other agents, models and files.",
		Flags: []ucli.Flag{
			&ucli.BoolFlag{Name: "check", Usage: "also ask each model for one word, or the agent that plays one question (this costs a few tokens)"},
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
		d.Ask, d.AskAgent = askModel, a.probe
	}
	diagnosis := d.Examine(ctx)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if !diagnosis.Healthy {
		a.Status = protocol.CodeFailed
	}
	return a.Print(diagnosis, func(w io.Writer) error {
		var text strings.Builder
		if err := printDiagnosis(&text, diagnosis); err != nil {
			return err
		}
		return a.InColours(w, text.String(), term.OfFinding)
	})
}

// runningThreads lists the threads that somebody works on.
func (a Commands) runningThreads(ctx context.Context) ([]protocol.RunningThread, error) {
	e, err := a.Engine(ctx, nil)
	if err != nil {
		return nil, err
	}
	return e.Running(ctx)
}

// askModel asks a model for one word, once.
func askModel(ctx context.Context, e config.Endpoint) error {
	e.Stream = false
	_, err := llm.New(e, llm.Options{Once: true}).Complete(ctx, llm.Request{
		Messages: []llm.Message{llm.User("Answer with the word yes.")},
	})
	return err
}

// printDiagnosis lists the findings for people, remedies below what they are for. Of the
// agents that nobody asks for, those that lack something share a line.
func printDiagnosis(w io.Writer, d protocol.Diagnosis) error {
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
			What: "not ready, and not asked for: " + strings.Join(slices.Compact(lacking), ", "), Do: "uwf setup --agent NAME says what one lacks",
		})
	}
	for _, f := range findings {
		if _, err := fmt.Fprintf(w, "%-8s %-8s %s\n", f.Severity, f.Area, plaintext.Line(f.What)); err != nil {
			return err
		}
		if f.Do == "" {
			continue
		}
		if _, err := fmt.Fprintf(w, "%-17s → %s\n", "", plaintext.Line(f.Do)); err != nil {
			return err
		}
	}
	return nil
}
