package doctor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/utilagent/box"
)

func TestConfinement(t *testing.T) {
	t.Parallel()
	ok, warning, problem := protocol.SeverityOK, protocol.SeverityWarning, protocol.SeverityProblem
	lacks := box.Diagnosis{Why: "x", Do: "install it"}
	boxed, lower := config.System{Confines: true, Namespaces: true}, config.System{Confines: true}
	for name, c := range map[string]struct {
		mode   string
		system config.System
		lacks  box.Diagnosis
		want   []protocol.Severity // for the machine, for commands, for the default agent
		do     string              // substring of the last remedy
	}{
		"all":                   {"", boxed, box.Diagnosis{}, []protocol.Severity{ok, ok, ok}, ""},
		"all, required":         {protocol.SandboxRequired, boxed, box.Diagnosis{}, []protocol.Severity{ok, ok, ok}, ""},
		"less":                  {"", lower, lacks, []protocol.Severity{warning, ok, ok}, "install it"},
		"less, which is enough": {protocol.SandboxLandlock, lower, lacks, []protocol.Severity{warning, ok, ok}, "install it"},
		"less, required":        {protocol.SandboxRequired, lower, lacks, []protocol.Severity{warning, problem, problem}, "install it; or"},
		"no remedy":             {protocol.SandboxRequired, lower, box.Diagnosis{Why: "x"}, []protocol.Severity{warning, problem, problem}, "agents.a.sandbox.mode landlock"},
		"bare, landlock":        {protocol.SandboxLandlock, config.System{}, lacks, []protocol.Severity{warning, problem, problem}, "auto"},
		"bare, auto":            {protocol.SandboxAuto, config.System{}, lacks, []protocol.Severity{warning, ok, ok}, "required"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := examination{
				Doctor: Doctor{Confinement: func() (string, config.System, box.Diagnosis) { return "x", c.system, c.lacks }},
				config: &protocol.Config{
					DefaultAgent: "a", Agents: map[string]protocol.Agent{"a": {Command: "uwf-claude-code"}},
					Sandbox: &protocol.SandboxConfig{Mode: c.mode},
				},
			}
			x.confinement(t.Context())
			var got []protocol.Severity
			do := ""
			for _, f := range x.findings {
				got = append(got, f.Severity)
				if f.Do != "" {
					do = f.Do
				}
			}
			require.Equal(t, c.want, got)
			require.Contains(t, do, c.do)
		})
	}
}
