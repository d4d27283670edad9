package steps

import (
	"context"
	"errors"
	"fmt"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/engine/agentproc"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/runfiles"
)

// assignment is the step that the agent around this process is to make, read
// from the environment that the engine gave it (docs/protocol.md 1).
type assignment struct {
	step.Assignment
	head      cas.Hash
	runDir    string
	limitBase *int
	agent     string   // its alias; "" if it has none
	command   []string // as the user wrote it; nil: unknown
	startedMs int64    // 0: unknown
}

// assignment reads the environment. role overrides UWF_ROLE when it is set.
func (a Commands) assignment(ctx context.Context) (assignment, error) {
	head := cas.Hash(a.Env.Get(protocol.EnvHead))
	if head == "" {
		return assignment{}, cmdline.UsageError("this command makes a step for the agent that runs it, and "+protocol.EnvHead+" is not set",
			"it is set for every program that uwf starts as an agent: uwf thread step <thread> --agent <your-program>")
	}
	as := assignment{
		Assignment: step.Assignment{
			Thread: a.Env.Get(protocol.EnvThread), Role: a.Env.Get(protocol.EnvRole), Cwd: a.Env.Dir,
		},
		head: head, runDir: a.Env.Get(protocol.EnvRunDir), agent: a.Env.Get(protocol.EnvAgent),
	}
	if as.Role == "" {
		return as, cmdline.UsageError(protocol.EnvRole+" is not set", "uwf sets it for the agent beside "+protocol.EnvHead+"; by hand: "+protocol.EnvRole+"=<role>")
	}
	if v := a.Env.Get(protocol.EnvLimitBase); v != "" {
		n, err := term.Natural(v)
		if err != nil {
			return as, cmdline.UsageError(fmt.Sprintf("%s: %v", protocol.EnvLimitBase, err), "unset "+protocol.EnvLimitBase+", or pass on what uwf has set")
		}
		as.limitBase = &n
	}
	if err := a.readEdgePrompt(ctx, &as); err != nil {
		return as, err
	}
	if began := runfiles.Dir(as.runDir).Record().Began(); !began.IsZero() {
		as.startedMs = began.UnixMilli()
	}
	return as, nil
}

func (a Commands) readEdgePrompt(ctx context.Context, as *assignment) error {
	ref := cas.Hash(a.Env.Get(protocol.EnvPrompt))
	if ref == "" {
		return nil
	}
	s, err := a.Store(ctx)
	if err != nil {
		return err
	}
	text, err := cas.Read[protocol.Text](ctx, s, ref)
	if err != nil {
		return fmt.Errorf("edge prompt %s: %w", ref, err)
	}
	as.EdgePrompt = string(text)
	return nil
}

// announced are the turns that this run has announced on its stdout so far.
func (as assignment) announced(ctx context.Context) ([]cas.Hash, error) {
	if as.runDir == "" {
		return nil, nil
	}
	told, err := agentproc.Announced(ctx, as.runDir)
	return told.Turns, err
}

// brief opens the thread at the head and reads what the role is told.
func (a Commands) brief(ctx context.Context, as assignment) (*thread.Thread, step.Brief, error) {
	s, err := a.Store(ctx)
	if err != nil {
		return nil, step.Brief{}, err
	}
	r := cas.Recalling(s)
	t, err := thread.Open(ctx, r, as.head)
	if err != nil {
		return nil, step.Brief{}, fmt.Errorf("%s %s: %w", protocol.EnvHead, as.head, err)
	}
	b, err := step.NewBrief(ctx, r, t, as.Assignment)
	var unknown *step.RoleError
	if errors.As(err, &unknown) {
		return nil, b, cmdline.NotFound(unknown.Error(), cmdline.DidYouMean(protocol.EnvRole+"=", unknown.Role, unknown.Roles)...)
	}
	return t, b, err
}
