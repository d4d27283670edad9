package verify

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/internal/cwd"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/secret"
)

// misstated returns an impossible claim that a step makes about its run, or "". The claims must be checked
// because later steps and readers rely on them.
func (a Asked) misstated(ctx context.Context, s protocol.Step) string {
	if reason := a.checkTask(ctx, s); reason != "" {
		return reason
	}
	if reason := a.madeElsewhere(s); reason != "" {
		return reason
	}
	return a.checkTimes(ctx, s)
}

// checkTask compares the prompt in a step with the original one. The step's prompt may have secrets
// removed, and if the prompt is empty, the step may contain the role's description instead.
func (a Asked) checkTask(ctx context.Context, s protocol.Step) string {
	given, known := a.taskPrompt(ctx)
	switch {
	case !known, s.EdgePrompt == given, hides(s.EdgePrompt, given):
		return ""
	case strings.TrimSpace(given) == "" && (strings.TrimSpace(s.EdgePrompt) == "" ||
		s.EdgePrompt == a.Workflow.Roles[s.Role].Description):
		return ""
	}
	return "has another edgePrompt than it was given"
}

// taskPrompt returns the prompt of the task. It returns false if only its hash is known because the node is
// gone.
func (a Asked) taskPrompt(ctx context.Context) (string, bool) {
	prompt := a.Prompt
	if prompt == "" {
		text, err := cas.Read[protocol.Text](ctx, a.Nodes, a.PromptHash)
		if err != nil {
			return "", false
		}
		prompt = string(text)
	}
	return strings.ToValidUTF8(prompt, "\uFFFD"), true
}

// hides reports whether text equals whole with secrets removed.
func hides(text, whole string) bool {
	parts := strings.Split(text, secret.Hidden)
	first, last := parts[0], parts[len(parts)-1]
	if len(parts) == 1 || !strings.HasPrefix(whole, first) || !strings.HasSuffix(whole[len(first):], last) {
		return false
	}
	whole = whole[len(first) : len(whole)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		at := strings.Index(whole, part)
		if at < 0 {
			return false
		}
		whole = whole[at+len(part):]
	}
	return true
}

// madeElsewhere compares the directory in a step with the one in which its agent was started. A resumed role
// works in this directory again.
func (a Asked) madeElsewhere(s protocol.Step) string {
	want := a.RanIn
	if !filepath.IsAbs(want) { // the record of an adopted result is unknown
		var err error
		if want, err = a.Place(a.Role, a.Cwd); err != nil {
			want = ""
		}
	}
	if s.Cwd == want {
		return ""
	}
	is, err := a.Place(s.Role, s.Cwd)
	no := new(cwd.RefusedError)
	switch {
	case errors.As(err, &no) && (no.Kind == cwd.Outside || no.Kind == cwd.Home):
		return fmt.Sprintf("has a directory where it must not work: %v", err)
	case want == "", err == nil && is == want: // another path to the same directory
		return ""
	}
	return fmt.Sprintf("has directory %s, but its agent was started in %s", cwd.Shown(s.Cwd), cwd.Shown(want))
}

// clockTolerance is the accepted error of a step's times. They come from two processes and a file, and clocks
// are corrected.
const clockTolerance = 5 * time.Minute

// checkTimes checks the times of a step against its thread and its run. If the clock was changed in
// between, the run's record or the current time shows it, and the difference is accepted. A missing time is
// unknown and not checked.
func (a Asked) checkTimes(ctx context.Context, s protocol.Step) string {
	now, begun := a.Now, a.StartedAt
	if begun == 0 {
		begun = now
	}
	earliest := min(now, begun)
	if start, err := a.Nodes.Get(ctx, s.Start); err == nil {
		earliest = min(earliest, start.Timestamp)
	}
	earliest -= clockTolerance.Milliseconds()
	latest := max(now, begun) + clockTolerance.Milliseconds()
	setBack := max(0, begun-now) + clockTolerance.Milliseconds()
	for i, at := range []int64{s.StartedAtMs, s.CompletedAtMs} {
		what := []string{"began", "ended"}[i]
		switch {
		case at == 0:
		case at < earliest:
			return fmt.Sprintf("%s before its thread: at %d ms", what, at)
		case at > latest:
			return fmt.Sprintf("%s in the future: at %d ms", what, at)
		}
	}
	if s.CompletedAtMs != 0 && s.StartedAtMs-setBack > s.CompletedAtMs {
		return fmt.Sprintf("ended before it started: at %d ms and %d ms", s.CompletedAtMs, s.StartedAtMs)
	}
	return ""
}

// borrowed returns a node of an earlier step that a step claims as its own, or "". Nodes with equal content
// are identical, so sharing one is legitimate if nothing in it depends on the time, or if both steps had the
// same prompt.
func (a Asked) borrowed(ctx context.Context, s protocol.Step) (string, error) {
	oldPrompt, err := a.oldPrompt(ctx, s)
	if err != nil {
		return "", err
	}
	oldDetail := a.oldDetail(ctx, s)
	if !oldPrompt && !oldDetail {
		return "", nil
	}
	t, err := thread.Open(ctx, a.Nodes, a.Head)
	if err != nil {
		return "", err
	}
	looked := 0
	for earlier, err := range t.Steps(ctx) {
		looked++
		switch {
		case looked > farBack:
			return "", nil
		case err != nil:
			return "", nil //nolint:nilerr // damage in an earlier step doesn't invalidate this one
		case oldDetail && earlier.Detail == s.Detail:
			return fmt.Sprintf("has the detail of an earlier step, %s", earlier.Hash), nil
		case oldPrompt && earlier.Role != s.Role && earlier.Prompt != nil && *earlier.Prompt == *s.Prompt:
			return fmt.Sprintf("has the assembledPrompt of a step of role %q, %s", earlier.Role, earlier.Hash), nil
		}
	}
	return "", nil
}

// farBack is the maximum number of earlier steps to compare.
const farBack = 1000

// oldPrompt reports whether the prompt that a step claims to have assembled existed before its run and
// doesn't contain its task. The error means that it is not a text.
func (a Asked) oldPrompt(ctx context.Context, s protocol.Step) (bool, error) {
	if s.Prompt == nil || *s.Prompt == a.PromptHash {
		return false, nil
	}
	n, err := a.Nodes.Get(ctx, *s.Prompt)
	if fault.IsRedacted(err) {
		return false, nil
	}
	var prompt protocol.Text
	if err == nil {
		prompt, err = cas.As[protocol.Text](ctx, a.Nodes, n)
	}
	if err != nil || n.Timestamp >= a.StartedAt {
		return false, err
	}
	return !strings.Contains(string(prompt), strings.TrimSpace(s.EdgePrompt)), nil
}

// oldDetail reports whether the last turn of a detail has a time before the step's run.
func (a Asked) oldDetail(ctx context.Context, s protocol.Step) bool {
	detail, err := cas.Read[protocol.Detail](ctx, a.Nodes, s.Detail)
	if err != nil || len(detail.Turns) == 0 {
		return false
	}
	last, err := cas.Read[protocol.Turn](ctx, a.Nodes, detail.Turns[len(detail.Turns)-1])
	return err == nil && last.AtMs > 0 && last.AtMs < a.StartedAt
}
