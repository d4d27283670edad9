package builtin_test

import (
	"context"
	"fmt"

	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/builtin"
	"github.com/united-workforce/uwf/utilagent/tools"
)

// This is the complete main.go of an agent with an additional tool, in addition to the tools of uwf-builtin.
func Example() {
	type args struct {
		Ticket string `json:"ticket" doc:"such as ABC-12"`
	}
	read := tools.New(tools.Spec{
		Name:        "read_ticket",
		Description: "Read a ticket of our tracker.",
	}, func(_ context.Context, a args) (string, error) {
		if a.Ticket != "ABC-12" {
			return "", fmt.Errorf("there is no ticket %s. Look for its number in the task", a.Ticket)
		}
		return "ABC-12: the total is wrong", nil
	})
	o := builtin.Options(read)
	o.Name = "tracker" // the program is uwf-tracker
	agentkit.Run(o)
}
