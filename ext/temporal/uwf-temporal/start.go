package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	ucli "github.com/united-workforce/uwf/internal/thirdparty/cli"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/catalog"
	"github.com/united-workforce/uwf/engine/host"
	"github.com/united-workforce/uwf/engine/remotes"
	"github.com/united-workforce/uwf/engine/worktree"
	"github.com/united-workforce/uwf/ext/temporal/flow"
	"github.com/united-workforce/uwf/moderator/inputs"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/formfields"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/safeopen"
	"github.com/united-workforce/uwf/util/threadid"
)

// started is the output of run.
type started struct {
	Thread string          `json:"thread"`
	Run    string          `json:"run"` // Temporal's run ID
	Status protocol.Status `json:"status"`
	Head   protocol.Hash   `json:"head,omitempty"`
}

// start starts a thread, pushes it to the remote, and starts its workflow. If it is interrupted, --thread
// continues it.
func (cmd *command) start(c *ucli.Context, conf config) error {
	thread := c.String("thread")
	switch {
	case thread == "" && c.Args().Len() == 0:
		return cmdline.UsageError("missing workflow", "uwf workflow list",
			"to continue a thread of the remote: "+program+" run --thread ID")
	case thread != "" && (c.Args().Len() > 0 || c.IsSet("prompt") || c.IsSet("var") || c.IsSet("title") ||
		c.IsSet("workspace")):
		return cmdline.UsageError("--thread cannot be used with a workflow, prompt, input, title or workspace")
	case thread != "" && !threadid.Valid(thread):
		return cmdline.UsageError("the id of a thread on a remote must be complete", "uwf remote list "+conf.Remote)
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

// begin starts the workflow of a thread at the remote, unless one is running.
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
			Message: fmt.Sprintf("thread %s is on remote %s, but starting its workflow failed: %v", thread, conf.Remote,
				err),
			Hints: []string{fmt.Sprintf("to retry: %s run --thread %s --remote %s", program, thread, conf.Remote)}}
	}
	return running, nil
}

// outcome waits for the end of a workflow and decodes its result.
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

// newThread starts a thread here and pushes it to the remote.
func (cmd *command) newThread(c *ucli.Context, conf config) (string, error) {
	ctx, process := c.Context, cmd.process()
	prompt, err := cmd.text(c.String("prompt"))
	if err != nil {
		return "", err
	}
	if strings.TrimSpace(prompt) == "" {
		return "", cmdline.UsageError("the prompt is empty", "-p '<task>'")
	}
	e, err := host.Open(ctx, process, host.Options{Events: cmd.warnings})
	if err != nil {
		return "", err
	}
	begun := protocol.Start{Prompt: prompt, Cwd: process.Dir}
	o := engine.StartOptions{Workspace: worktree.Options{Mode: cmp.Or(c.String("workspace"), worktree.ModeDefault)}}
	o.Check = func(s *protocol.Start) error {
		w, err := cas.Read[protocol.Workflow](ctx, e.Reader.Store, s.Workflow)
		if err != nil {
			return err
		}
		if s.Inputs, err = cmd.inputs(ctx, e, w, c.StringSlice("var")); err != nil {
			return err
		}
		return e.CheckBudget(ctx, w, protocol.Limits{}, engine.StepOptions{})
	}
	started, err := catalog.Of(e).Start(ctx, e, c.Args().First(), begun, o)
	if title := c.String("title"); err == nil && title != "" {
		err = e.SetTitle(ctx, started.Thread, title)
	}
	if err != nil {
		return "", err
	}
	link, done, err := remotes.Open(ctx, e, process, conf.Remote, remotes.OpenOptions{Program: program, Warn: cmd.logText})
	if err != nil {
		return "", err
	}
	defer done()
	_, err = link.Push(ctx, []string{started.Thread}, remotes.PushOptions{})
	return started.Thread, err
}

// inputs checks the inputs of a run and adds defaults.
func (cmd *command) inputs(ctx context.Context, e *engine.Engine, w protocol.Workflow,
	vars []string) (map[string]any, error) {
	declared, err := engine.Declared(ctx, e.Reader.Store, w)
	if err != nil {
		return nil, err
	}
	given := map[string]any{}
	for _, v := range vars {
		name, value, ok := strings.Cut(v, "=")
		if !ok || name == "" {
			return nil, cmdline.UsageError("--var "+plaintext.Word(v)+": missing value (want NAME=VALUE)", "--var NAME=VALUE")
		}
		if value, err = cmd.text(value); err != nil {
			return nil, err
		}
		if given[name], err = formfields.Of(declared[name].Schema).Value(value); err != nil {
			return nil, cmdline.Invalid(fmt.Sprintf("invalid input %s: %v", plaintext.Line(name), err))
		}
	}
	return inputs.Fill(ctx, declared, given)
}

// maxText is the maximum size of a text file in bytes.
const maxText = 4 << 20

// text returns a text from the command line. @FILE stands for the content of a file, and @@ for a leading @.
func (cmd *command) text(value string) (string, error) {
	name, isFile := strings.CutPrefix(value, "@")
	if !isFile || strings.HasPrefix(name, "@") {
		return name, nil
	}
	data, err := safeopen.ReadFile(cmd.env.Path(name), maxText, safeopen.Follow)
	if err != nil {
		return "", cmdline.NotFound(fmt.Sprintf("cannot read %s: %v", plaintext.Line(name), err))
	}
	return strings.TrimRight(string(data), "\r\n"), nil
}

// warnings prints the warnings of an engine.
func (cmd *command) warnings(ev engine.Event) {
	if ev.Kind == engine.Warning {
		cmd.logText("warning: " + ev.Text)
	}
}

// stop stops the work on a thread.
func (cmd *command) stop(c *ucli.Context, conf config) error {
	thread := c.Args().First()
	if !threadid.Valid(thread) {
		return cmdline.UsageError("the id of a thread on a remote must be complete", program+" list")
	}
	dialled, err := cmd.connect(c.Context, conf, identity(), quiet())
	if err != nil {
		return err
	}
	defer dialled.Close()
	err = dialled.CancelWorkflow(c.Context, flow.ID(conf.Remote, thread), "")
	if errors.As(err, new(*serviceerror.NotFound)) {
		return cmdline.NotFound(fmt.Sprintf("no worker has thread %s of remote %s", thread, conf.Remote), program+" list")
	}
	if err != nil {
		return err
	}
	return cmd.print(protocol.ThreadStopped{Thread: thread, Stopped: true}, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "stopping thread %s; to continue it: %s run --thread %s\n", thread, program, thread)
		return err
	})
}
