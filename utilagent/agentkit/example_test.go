package agentkit_test

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/utilagent/agentkit"
)

// This is a complete agent: it asks a program on PATH, "oracle", which takes a prompt as its last argument
// and keeps sessions. It is the whole main.go.
func Example() {
	agentkit.Run(agentkit.Options{
		Name:     "oracle",
		Resumes:  true,
		Run:      consult,
		Continue: say,
		Usage:    "Asks the program oracle, which must be on PATH.",
	})
}

// consult sends the role's task, to the session of its last visit if there is one.
func consult(ctx context.Context, req *agentkit.Request) (agentkit.Result, error) {
	session := req.SessionID
	if session == "" {
		session = req.Thread + "-" + req.Role
	}
	return say(ctx, session, req.Prompt, req)
}

// say sends a message to a session.
func say(ctx context.Context, session, message string, req *agentkit.Request) (agentkit.Result, error) {
	cmd := exec.CommandContext(ctx, "oracle", "--session", session, message)
	cmd.Dir, cmd.Env = req.Cwd, req.Environ()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	answer, err := cmd.Output()
	if err != nil {
		return agentkit.Result{}, fmt.Errorf("oracle: %w: %s", err, bytes.TrimSpace(stderr.Bytes()))
	}
	if err := req.Turn(ctx, protocol.Turn{Role: protocol.TurnAssistant, Content: string(answer)}); err != nil {
		return agentkit.Result{}, err
	}
	return agentkit.Result{Output: string(answer), SessionID: session}, nil
}

// An agent with its own logic returns data and needs no frontmatter.
func Example_structured() {
	agentkit.Run(agentkit.Options{
		Name: "gate", Structured: true,
		Run: func(ctx context.Context, req *agentkit.Request) (agentkit.Result, error) {
			if req.Visit > 2 {
				return agentkit.Result{Suspend: "It still does not pass: go on?", SessionID: req.Thread}, nil
			}
			return agentkit.Result{Value: map[string]any{"$status": "approved"}, SessionID: req.Thread}, nil
		},
	})
}
