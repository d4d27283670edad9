package settings

import (
	"testing"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
)

// Important findings are not buried under unused agents.
func TestUnusedAgentsShareLine(t *testing.T) {
	t.Parallel()
	prosetest.Text(t, diagnosisText(protocol.Diagnosis{Findings: []protocol.Finding{
		{Area: "agents", Severity: protocol.SeverityNote, What: "uwf-codex 1.2.3: codex is not installed", Do: "npm install"},
		{Area: "agents", Severity: protocol.SeverityNote, What: "uwf-gemini: gemini is not installed", Do: "npm install"},
		{Area: "agents", Severity: protocol.SeverityNote, What: "uwf-gemini: it has no login", Do: "gemini"},
		{Area: "agents", Severity: protocol.SeverityProblem, What: "mine: cannot be started", Do: "mend it"},
	}}, 80))
}
