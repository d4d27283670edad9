package threads

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/suggest"
)

// agentsByRole reads --agent. What stands before the first "=" is a role if it
// could be one: a command line with "=" in its first word needs quotes there. The
// workflow is asked for only if a role is named.
func agentsByRole(values []string, workflow func() (protocol.Workflow, error), o *engine.StepOptions) error {
	for _, v := range values {
		role, agent, found := strings.Cut(v, "=")
		if !found || strings.ContainsAny(role, " /\\'\"") {
			role, agent = "", v
		}
		if strings.TrimSpace(agent) == "" || (found && role == "" && agent != v) {
			return cmdline.UsageError("--agent is empty", "--agent <alias or command>", "--agent <role>=<alias or command>")
		}
		if role == "" {
			o.Agent = agent
			continue
		}
		wf, err := workflow()
		if err != nil {
			return err
		}
		if _, known := wf.Roles[role]; !known {
			roles := slices.Sorted(maps.Keys(wf.Roles))
			hints := []string{"the roles of workflow " + wf.Name + " are " + strings.Join(roles, ", ")}
			if near := suggest.Nearest(role, roles, 1); len(near) > 0 {
				hints = append([]string{fmt.Sprintf("did you mean --agent %s?", plaintext.Word(near[0]+"="+agent))}, hints...)
			}
			return &protocol.Error{Code: protocol.CodeUsage, Message: fmt.Sprintf("--agent names role %q, which the workflow does not have", role), Hints: hints}
		}
		if player := wf.Roles[role].Player(); player != protocol.PlayedByAgent {
			return &protocol.Error{Code: protocol.CodeUsage, Message: fmt.Sprintf("role %q is played by a %s: no agent can play it", role, player)}
		}
		if o.Agents == nil {
			o.Agents = map[string]string{}
		}
		o.Agents[role] = agent
	}
	return nil
}
