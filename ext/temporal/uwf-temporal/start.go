package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"

	ucli "github.com/urfave/cli/v2"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/united-workforce/uwf/ext/temporal/flow"
	"github.com/united-workforce/uwf/ext/temporal/slot"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/threadid"
)

// started is what run prints.
type started struct {
	Thread string          `json:"thread"`
	Run    string          `json:"run"` // of Temporal
	Status protocol.Status `json:"status"`
	Head   protocol.Hash   `json:"head,omitempty"`
}

// start starts a thread, takes it to the remote, and starts its workflow. Stopped in
// between, it goes on with --thread.
func (cmd *command) start(c *ucli.Context, conf config) error {
	thread := c.String("thread")
	switch {
	case thread == "" && c.Args().Len() == 0:
		return cmdline.UsageError("which workflow?", "uwf workflow list",
			program+" run --thread ID goes on with one that is at the remote")
	case thread != "" && (c.Args().Len() > 0 || c.IsSet("prompt") || c.IsSet("var") || c.IsSet("title") ||
		c.IsSet("workspace")):
		return cmdline.UsageError("--thread goes on with a thread: it takes no workflow, prompt, input, title or workspace")
	case thread != "" && !threadid.Valid(thread):
		return cmdline.UsageError("a thread at a remote is named by its whole id", "uwf remote list "+conf.Remote)
	}
	dialled, err := cmd.connect(c.Context, conf, identity(), quiet())
	if err != nil {
		return err
	}
	defer dialled.Close()
	if thread == "" {
		if thread, err = cmd.newThread(c, conf); err != nil {
			return err
		}
	}
	running, err := cmd.begin(c.Context, dialled, conf, thread)
	if err != nil {
		return err
	}
	s := started{Thread: thread, Run: running.GetRunID(), Status: protocol.StatusRunning}
	var failed error
	if c.Bool("wait") {
		var ended flow.Ended
		if failed = outcome(c.Context, running, &ended); failed == nil {
			s.Status, s.Head = ended.Status, ended.Head
		} else {
			s.Status = protocol.StatusError
		}
	}
	return errors.Join(failed, cmd.print(s, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "thread %s: %s\n", s.Thread, s.Status)
		return err
	}))
}

// begin starts the workflow of a thread that is at the remote, unless one is running.
func (cmd *command) begin(ctx context.Context, dialled client.Client, conf config,
	thread string) (client.WorkflowRun, error) {
	running, err := dialled.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: flow.ID(conf.Remote, thread), TaskQueue: conf.Queue,
		WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		WorkflowIDReusePolicy:    enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
	}, flow.Name, flow.Thread{
		Remote: conf.Remote, Thread: thread, Silence: int((time.Duration(conf.Silence) + time.Second - 1) / time.Second),
	})
	if err != nil {
		return nil, &protocol.Error{Code: protocol.CodeFailed, Err: err,
			Message: fmt.Sprintf("thread %s is at remote %s, but its workflow could not be started: %v", thread, conf.Remote,
				err),
			Hints: []string{fmt.Sprintf("%s run --thread %s --remote %s tries again", program, thread, conf.Remote)}}
	}
	return running, nil
}

// outcome waits for the end of a workflow.
func outcome(ctx context.Context, running client.WorkflowRun, ended *flow.Ended) error {
	err := running.Get(ctx, ended)
	if failed, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		code := protocol.CodeFailed
		switch failed.Type() {
		case flow.Failed, flow.Children:
			code = protocol.CodeAgent
		case flow.Budget:
			code = protocol.CodeLimit
		case flow.Broken:
			code = protocol.CodeCorrupt
		case flow.Refused:
			code = protocol.CodeInvalid
		}
		return &protocol.Error{Code: code, Message: failed.Message(), Err: err}
	}
	return err
}

// newThread starts a thread here and takes it to the remote.
func (cmd *command) newThread(c *ucli.Context, conf config) (string, error) {
	words := []string{"thread", "start", c.Args().First()}
	for _, flag := range []string{"prompt", "title", "workspace"} {
		if c.IsSet(flag) {
			words = append(words, "--"+flag+"="+c.String(flag))
		}
	}
	for _, v := range c.StringSlice("var") {
		words = append(words, "--var="+v)
	}
	var begun protocol.ThreadStarted
	if err := cmd.ask(c.Context, &begun, words...); err != nil {
		return "", err
	}
	return begun.Thread, cmd.ask(c.Context, nil, "push", begun.Thread, conf.Remote)
}

// ask runs a command of uwf in the user's own home. What it says of an error is what the
// user reads.
func (cmd *command) ask(ctx context.Context, answer any, words ...string) error {
	uwf, environ, err := cmd.uwf()
	if err != nil {
		return err
	}
	var stdout, stderr bytes.Buffer
	child := exec.CommandContext(ctx, uwf, append(words, "--format", "json")...)
	child.Dir, child.Env, child.Stdout, child.Stderr = cmd.env.Dir, environ, &stdout, &stderr
	const grace = 10 * time.Second
	child.WaitDelay = grace
	if err := child.Run(); err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			if answer != nil && stdout.Len() > 0 {
				_ = json.Unmarshal(stdout.Bytes(), answer) // as far as there is one
			}
			return slot.Problem(stderr.Bytes(), exit.ExitCode())
		}
		return fmt.Errorf("uwf: %w", err)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(stdout.Bytes(), answer)
}

// stop ends the work on a thread.
func (cmd *command) stop(c *ucli.Context, conf config) error {
	thread := c.Args().First()
	if !threadid.Valid(thread) {
		return cmdline.UsageError("a thread at a remote is named by its whole id", program+" list")
	}
	dialled, err := cmd.connect(c.Context, conf, identity(), quiet())
	if err != nil {
		return err
	}
	defer dialled.Close()
	err = dialled.CancelWorkflow(c.Context, flow.ID(conf.Remote, thread), "")
	if errors.As(err, new(*serviceerror.NotFound)) {
		return cmdline.NotFound(fmt.Sprintf("nobody works on thread %s of remote %s", thread, conf.Remote), program+" list")
	}
	if err != nil {
		return err
	}
	return cmd.print(protocol.ThreadStopped{Thread: thread, Stopped: true}, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "thread %s is being stopped; %s run --thread %s goes on with it\n", thread, program, thread)
		return err
	})
}
