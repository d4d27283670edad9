// Package doctor looks at everything that a step needs, and says what is in its
// way and what to do about it. It changes nothing.
//
// One file per area: home.go, store.go, threads.go, config.go, overrides.go, agents.go,
// models.go, confinement.go, git.go. A finding is a problem if a step could not run as things are:
// it stops every one, or those of the agent that plays unless something else is said.
// Whatever touches another agent, model or file is a warning.
package doctor

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/utilagent/box"
)

// Doctor examines one home.
type Doctor struct {
	Env  env.Env
	Dirs home.Dirs
	// Running lists the threads that somebody works on; nil: it is not looked at.
	Running func(ctx context.Context) ([]protocol.RunningThread, error)
	// Confinement says what holds commands of models back on this machine, what the system can do,
	// and why they get no namespaces; nil: it is not looked at.
	Confinement func() (text string, can config.System, lacks box.Diagnosis)
	// Ask puts a question to a model and says why there is no answer; nil: the
	// models are not asked, only looked up.
	Ask func(ctx context.Context, e config.Endpoint) error
	// AskAgent lets an agent answer a question; nil: none is asked.
	AskAgent func(ctx context.Context, alias string) *protocol.SetupProbe
	Root     bool // steps run as root
}

// examination collects findings.
type examination struct {
	Doctor
	index    *fileheads.Heads
	config   *protocol.Config // nil: it cannot be read
	findings []protocol.Finding
}

// Examine looks at everything. It ends early only with ctx.
func (d Doctor) Examine(ctx context.Context) protocol.Diagnosis {
	x := &examination{Doctor: d, index: fileheads.Open(d.Dirs.Home, durable.OS())}
	for _, look := range []func(context.Context){x.home, x.disk, x.store, x.threads, x.readConfig, x.day, x.overrides, x.agents, x.models, x.confinement, x.git} {
		if ctx.Err() == nil {
			look(ctx)
		}
	}
	healthy := !slices.ContainsFunc(x.findings, func(f protocol.Finding) bool { return f.Severity == protocol.SeverityProblem })
	return protocol.Diagnosis{Healthy: healthy, Findings: x.findings}
}

// find adds a finding. do may be empty only where nothing is to be done.
func (x *examination) find(s protocol.Severity, area, do, format string, args ...any) {
	x.findings = append(x.findings, protocol.Finding{Area: area, Severity: s, What: fmt.Sprintf(format, args...), Do: do})
}

func (x *examination) ok(area, format string, args ...any) {
	x.find(protocol.SeverityOK, area, "", format, args...)
}

func (x *examination) note(area, do, format string, args ...any) {
	x.find(protocol.SeverityNote, area, do, format, args...)
}

func (x *examination) warn(area, do, format string, args ...any) {
	x.find(protocol.SeverityWarning, area, do, format, args...)
}

func (x *examination) problem(area, do, format string, args ...any) {
	x.find(protocol.SeverityProblem, area, do, format, args...)
}

// agentless adds that no agent is configured: commands and people need none.
func (x *examination) agentless(do, format string, args ...any) {
	x.problem("config", do, format, args...)
	x.findings[len(x.findings)-1].ForAgents = true
}

// existing is path, or the nearest directory above it that is there.
func existing(path string) string {
	for !exists(path) && filepath.Dir(path) != path {
		path = filepath.Dir(path)
	}
	return path
}
