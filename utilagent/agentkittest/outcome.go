package agentkittest

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/graph"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/protocol"
)

// Outcome is the result of an agent's run.
type Outcome struct {
	ExitCode       int
	Stdout, Stderr string
	Result         protocol.Result // the last line of stdout
	Announced      []protocol.Turn // turns announced while the agent ran

	// The step, if one was made. Detail and Turns are also set for a failed step.
	Step      protocol.Step
	Output    any    // as a JSON value
	Suspended string // why the step waits for a person, or ""
	Detail    protocol.Detail
	Turns     []protocol.Turn
	Content   string // the answer, as `uwf thread read` shows it
	Prompt    string // the agent's prompt

	Raw string // the rejected text of a failed step

	th *Thread
}

// Succeeded fails the test if the agent made no step.
func (o *Outcome) Succeeded() *Outcome {
	o.th.t.Helper()
	require.Equal(o.th.t, 0, o.ExitCode, "stderr: %s\nstdout: %s", o.Stderr, o.Stdout)
	require.NotEmpty(o.th.t, o.Result.StepHash)
	return o
}

// Failed fails the test if the agent made a step, or if its error on stderr and in the last line does not
// contain the given texts.
func (o *Outcome) Failed(because ...string) *Outcome {
	o.th.t.Helper()
	require.NotEqual(o.th.t, 0, o.ExitCode)
	require.Empty(o.th.t, o.Result.StepHash)
	flat := func(text string) string { return strings.ReplaceAll(text, "\n  ", "\n") } // continuation lines are indented on stderr
	shown := flat(flat(o.Stderr))
	require.Contains(o.th.t, shown, flat(flat(o.Result.Error)))
	for _, part := range because {
		require.Contains(o.th.t, flat(o.Stderr), part)
		require.Contains(o.th.t, o.ErrorText(), part)
	}
	return o
}

// ErrorText returns the error and hints of the result line in the form printed on stderr.
func (o *Outcome) ErrorText() string {
	return strings.Join(append([]string{o.Result.Error}, o.Result.Hints...), "\nhint: ")
}

// read parses an agent's output and moves the head if a step was made.
func (th *Thread) read(code int, stdout, stderr string) *Outcome {
	th.t.Helper()
	o := &Outcome{ExitCode: code, Stdout: stdout, Stderr: stderr, th: th}
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	for _, line := range lines {
		var announced protocol.TurnLine
		if json.Unmarshal([]byte(line), &announced) == nil && announced.UWF == "turn" {
			o.Announced = append(o.Announced, node[protocol.Turn](th, announced.Hash))
		}
	}
	// After an early failure the last line may be anything; Result stays empty.
	if json.Unmarshal([]byte(lines[len(lines)-1]), &o.Result) != nil {
		o.Result = protocol.Result{}
	}
	if o.Result.RawHash != "" {
		o.Raw = string(node[protocol.Text](th, o.Result.RawHash))
	}
	switch {
	case code == 0 && o.Result.StepHash != "":
		th.readStep(o)
	case o.Result.DetailHash != "":
		th.readDetail(o, o.Result.DetailHash)
	}
	return o
}

func (th *Thread) readDetail(o *Outcome, h cas.Hash) {
	th.t.Helper()
	o.Detail = node[protocol.Detail](th, h)
	for _, h := range o.Detail.Turns {
		o.Turns = append(o.Turns, node[protocol.Turn](th, h))
	}
}

func (th *Thread) readStep(o *Outcome) {
	th.t.Helper()
	ctx := th.ctx()
	o.Step = node[protocol.Step](th, o.Result.StepHash)
	th.checkPlace(o.Step)
	at, err := thread.Open(ctx, th.store, o.Result.StepHash)
	require.NoError(th.t, err)
	out, err := at.Output(ctx, *at.Last)
	require.NoError(th.t, err)
	o.Output = out.Value
	if out.Suspend != nil {
		o.Suspended = out.Suspend.Reason
	}
	th.readDetail(o, o.Step.Detail)
	o.Content, err = thread.Content(ctx, th.store, o.Step.Detail)
	require.NoError(th.t, err)
	if o.Step.Prompt != nil {
		o.Prompt = string(node[protocol.Text](th, *o.Step.Prompt))
	}
	for n, err := range graph.Walk(ctx, th.store, []cas.Hash{o.Result.StepHash}, graph.WalkOptions{FollowTypes: true}) {
		require.NoError(th.t, err, "node %s", n.Hash)
	}
	th.move(o.Result.StepHash)
}

// checkPlace checks, as the engine does, that the step follows the head and belongs to the role.
func (th *Thread) checkPlace(s protocol.Step) {
	th.t.Helper()
	at, err := thread.Open(th.ctx(), th.store, th.Head)
	require.NoError(th.t, err)
	require.Equal(th.t, at.StartHash, s.Start)
	require.Equal(th.t, at.Len(), s.Index)
	require.Equal(th.t, th.Role, s.Role)
	if at.Last != nil {
		require.Equal(th.t, th.Head, *s.Prev)
	}
}

func node[P protocol.Payload](th *Thread, h cas.Hash) P {
	th.t.Helper()
	p, err := cas.Read[P](th.ctx(), th.store, h)
	require.NoError(th.t, err)
	return p
}

// buffer is a bytes.Buffer that is safe for concurrent writes.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
