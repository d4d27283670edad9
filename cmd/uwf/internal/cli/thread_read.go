package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/protocol"
)

// defaultQuota is how many characters a reader gets without asking for more.
const defaultQuota = "4000"

// blockSeparator stands between the blocks of a document.
const blockSeparator = "\n\n---\n\n"

func quotaFlag() ucli.Flag {
	return &ucli.StringFlag{Name: "quota", Usage: "at most `N` characters; the newest are kept, at least one", Value: defaultQuota}
}

func quotaOf(c *ucli.Context) (int, error) {
	n, err := positive(c.String("quota"))
	if err != nil {
		return 0, usageError("invalid --quota: must be a positive integer, got: " + c.String("quota"))
	}
	return n, nil
}

func (a *app) threadReadCommand() *ucli.Command {
	return a.leaf(ucli.Command{
		Name: "read", ArgsUsage: "<thread>", Usage: "read a thread as Markdown, the newest steps that fit",
		Flags: []ucli.Flag{
			quotaFlag(),
			&ucli.StringFlag{Name: "before", Usage: "only steps before the step with this `HASH`"},
			&ucli.BoolFlag{Name: "start", Usage: "with the task, also together with --before"},
		},
	}, a.threadRead)
}

func (a *app) threadRead(ctx context.Context, c *ucli.Context) error {
	quota, err := quotaOf(c)
	if err != nil {
		return err
	}
	id, head, err := a.threadHead(ctx, c)
	if err != nil {
		return err
	}
	t, err := a.openThread(ctx, head)
	if err != nil {
		return err
	}
	wf, err := t.Workflow(ctx)
	if err != nil {
		return err
	}
	s, err := a.store(ctx)
	if err != nil {
		return err
	}
	r := reader{store: s, thread: t, id: id, workflow: wf, quota: quota}
	before := cas.Hash("")
	if c.IsSet("before") {
		if before, err = a.node(ctx, c.String("before")); err != nil {
			return err
		}
	}
	text, err := r.read(ctx, before, before == "" || c.Bool("start"))
	if err != nil {
		return err
	}
	_, err = io.WriteString(a.env.Stdout, text+"\n")
	return err
}

// reader renders a thread within a quota of characters. It walks from the
// newest step and stops when the quota is used up, so that reading costs the
// same however long the thread is.
type reader struct {
	store    cas.Store
	thread   *thread.Thread
	id       string
	workflow protocol.Workflow
	quota    int
}

// shownStep is a step that fits, with its text but for the role's goal.
type shownStep struct {
	step thread.Step
	head string // up to where the goal is put in
	tail string
}

func (r reader) read(ctx context.Context, before cas.Hash, withStart bool) (string, error) {
	var blocks []string
	used := 0
	if withStart {
		blocks = append(blocks, r.startBlock())
		used = utf8.RuneCountInString(blocks[0])
	}
	steps, err := r.fitting(ctx, before, used)
	if err != nil {
		return "", err
	}
	if n := len(steps); n > 0 && steps[n-1].step.Index > 0 {
		blocks = append(blocks, r.omittedHint(steps[n-1].step))
	}
	goals := map[string]bool{}
	for i := len(steps) - 1; i >= 0; i-- {
		s := steps[i]
		text := s.head
		if !goals[s.step.Role] {
			goals[s.step.Role] = true
			text += r.goal(s.step.Role)
		}
		blocks = append(blocks, text+s.tail)
	}
	return strings.Join(blocks, blockSeparator), nil
}

// fitting collects the newest steps, newest first, whose texts together stay
// within the quota; at least one.
func (r reader) fitting(ctx context.Context, before cas.Hash, used int) ([]shownStep, error) {
	var steps []shownStep
	goals := map[string]bool{}
	waiting := before != ""
	for step, err := range r.thread.Steps(ctx) {
		if err != nil {
			return nil, err
		}
		if waiting {
			waiting = step.Hash != before
			continue
		}
		s, err := r.render(ctx, step)
		if err != nil {
			return nil, err
		}
		cost := length(s.head) + length(s.tail)
		if !goals[step.Role] {
			cost += length(r.goal(step.Role))
		}
		if used > 0 {
			cost += length(blockSeparator)
		}
		hint := 0
		if step.Index > 0 {
			hint = length(r.omittedHint(step)) + length(blockSeparator)
		}
		if len(steps) > 0 && used+cost+hint > r.quota {
			return steps, nil
		}
		goals[step.Role] = true
		used += cost
		steps = append(steps, s)
	}
	if waiting {
		return nil, notFound(fmt.Sprintf("step %s not found in thread %s", before, r.id), "uwf thread steps "+r.id)
	}
	return steps, nil
}

func (r reader) startBlock() string {
	return fmt.Sprintf("# Thread `%s`\n\n**Workflow:** %s (`%s`)\n\n## Task\n\n%s",
		r.id, r.workflow.Name, r.thread.Start.Workflow, r.thread.Start.Prompt)
}

func (r reader) omittedHint(first thread.Step) string {
	plural := "s"
	if first.Index == 1 {
		plural = ""
	}
	return fmt.Sprintf("*(%d earlier step%s, load with `uwf thread read %s --before %s`)*", first.Index, plural, r.id, first.Hash)
}

func (r reader) goal(role string) string {
	return "\n\n<prompt>\n" + strings.TrimSpace(r.workflow.Roles[role].Goal) + "\n</prompt>"
}

func (r reader) render(ctx context.Context, s thread.Step) (shownStep, error) {
	content, err := thread.Content(ctx, r.store, s.Detail)
	if err != nil {
		return shownStep{}, err
	}
	out := shownStep{step: s, head: fmt.Sprintf("## Step %d: %s `%s`\n**Agent:** %s | **Time:** %s | **Duration:** %s",
		s.Index+1, s.Role, s.Hash, s.Agent,
		time.UnixMilli(s.Timestamp).UTC().Format(time.DateTime), duration(s.CompletedAtMs-s.StartedAtMs))}
	if strings.TrimSpace(content) != "" {
		out.tail = "\n\n<output>\n" + strings.TrimRight(content, "\n") + "\n</output>"
	}
	return out, nil
}

func length(s string) int { return utf8.RuneCountInString(s) }
