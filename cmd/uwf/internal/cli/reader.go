package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/fence"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/render"
)

// blockSeparator stands between the blocks of a document.
const blockSeparator = "\n\n---\n\n"

// reader renders a thread within a quota of characters. It walks from the newest
// step and stops when the quota is used up, so that reading costs the same
// however long the thread is.
//
// What is newest is always shown. It is the only step that is cut when it alone
// is too long, and then so is the task. Where there is no room for a word of them,
// it says so, whatever the quota.
type reader struct {
	store    cas.Store
	thread   *thread.Thread
	id       string
	workflow protocol.Workflow
	quota    int // of the text without the line break that ends it
}

// request is which part of a thread to read.
type request struct {
	start  bool   // with the task
	ending string // a block behind all that is shown; "": none
	newest string // a block behind all steps, already within the quota; "": none
}

func (r reader) read(ctx context.Context, q request) (string, error) {
	text, whole, err := r.compose(ctx, q, r.quota)
	if err == nil && !whole && q.start {
		// The task has at most half of what there is, and nothing if that leaves the
		// newest answer no room.
		text, _, err = r.compose(ctx, q, r.quota/2)
		if err == nil && length(text) > r.quota {
			text, _, err = r.compose(ctx, q, 0)
		}
	}
	return text, err
}

// compose puts the blocks together, with a start block of at most startQuota
// characters. It reports whether the newest step is there whole.
func (r reader) compose(ctx context.Context, q request, startQuota int) (text string, whole bool, err error) {
	var blocks []string
	used := 0
	if q.newest != "" {
		used = length(q.newest)
	}
	if q.start {
		blocks = append(blocks, r.startBlock(startQuota))
		used += length(blocks[0])
		if q.newest != "" {
			used += length(blockSeparator)
		}
	}
	ending := cutMiddle(q.ending, r.quota/4, leftOut)
	if ending != "" {
		used += length(ending) + length(blockSeparator)
	}
	f := fitting{reader: r, used: used, optional: q.newest != "", goals: map[string]bool{}}
	if err := f.collect(ctx); err != nil {
		return "", false, err
	}
	if hint := r.omitted(f.steps, q); hint != "" {
		blocks = append(blocks, hint)
	}
	blocks = append(blocks, f.blocks()...)
	if q.newest != "" {
		blocks = append(blocks, q.newest)
	}
	if ending != "" {
		blocks = append(blocks, ending)
	}
	text = strings.Join(blocks, blockSeparator)
	return text, !f.cut && length(text) <= r.quota, nil
}

// fitting collects the newest steps whose texts together stay within the quota.
type fitting struct {
	reader
	used     int         // by what is shown in any case
	optional bool        // no step need be shown
	steps    []shownStep // newest first
	goals    map[string]bool
	cut      bool // the newest step is not whole
}

// shownStep is a step with its text.
type shownStep struct {
	step    thread.Step
	head    string
	told    string // by the edge that led here, or by a person
	content string // the answer
	noGoal  bool   // there is no room for the role's goal
}

func (f *fitting) collect(ctx context.Context) error {
	for step, err := range f.thread.Steps(ctx) {
		if err != nil {
			return err
		}
		s, err := f.render(ctx, step)
		if err != nil {
			return err
		}
		if !f.add(s) {
			return nil
		}
	}
	return nil
}

// add takes a step if it fits, and reports whether another one may.
func (f *fitting) add(s shownStep) bool {
	hint := 0
	if s.step.Index > 0 {
		hint = length(f.omittedHint(s.step)) + length(blockSeparator)
	}
	room := f.quota - f.used - hint
	cost := f.cost(s)
	if cost > room {
		if len(f.steps) > 0 || f.optional {
			return false
		}
		s, f.cut = f.shorten(s, room), true
		f.steps = append(f.steps, s)
		return false
	}
	f.used += cost
	f.goals[s.step.Role] = true
	f.steps = append(f.steps, s)
	return true
}

// cost is how much longer the document becomes by a step.
func (f *fitting) cost(s shownStep) int {
	n := length(s.head) + length(instruction(s.told)) + length(output(s.content))
	if !f.goals[s.step.Role] && !s.noGoal {
		n += length(f.goal(s.step.Role))
	}
	if f.used > 0 {
		n += length(blockSeparator)
	}
	return n
}

// shorten makes a step fit, as far as that is possible.
func (f *fitting) shorten(s shownStep, room int) shownStep {
	content := s.content
	if length(s.told) > room/3 {
		s.told = notShown(s.told)
	}
	s.noGoal = length(f.goal(s.step.Role)) > room/3
	s.content = ""
	left := room - f.cost(s)
	for _, around := range []string{output("x"), "\n\n" + fence.Always(fence.Output, "x")} {
		s.content = cutMiddle(content, left-length(around)+1, func(n int) string {
			return fmt.Sprintf("\n\n*(%d characters left out, all with `uwf step read %s --quota %d`)*\n\n", n, s.step.Hash, 2*length(content)+1000)
		})
		if length(output(s.content)) <= left {
			break // else what is left needs a fence
		}
	}
	if s.content == "" && strings.TrimSpace(content) != "" { // never in silence
		s.content = notShown(content)
	}
	return s
}

// blocks are the texts of the steps, oldest first. A role's goal stands where the
// role is shown first.
func (f *fitting) blocks() []string {
	var blocks []string
	goals := map[string]bool{}
	for i := len(f.steps) - 1; i >= 0; i-- {
		s := f.steps[i]
		text := s.head
		if role := s.step.Role; !goals[role] && !s.noGoal {
			goals[role] = true
			text += f.goal(role)
		}
		blocks = append(blocks, text+instruction(s.told)+output(s.content))
	}
	return blocks
}

// startBlock is what the thread is about, in at most max characters if the task
// can be cut that far.
func (r reader) startBlock(max int) string {
	head := fmt.Sprintf("# Thread `%s`\n\n**Workflow:** %s (`%s`)\n\n%s## Task\n\n", r.id, r.workflow.Name, r.thread.Start.Workflow, inputsBlock(r.thread.Start.Inputs))
	task := cutMiddle(r.thread.Start.Prompt, max-length(head), leftOut)
	if task == "" && r.thread.Start.Prompt != "" {
		task = notShown(r.thread.Start.Prompt)
	}
	return head + task
}

// inputsBlock is what the thread was given besides its task.
func inputsBlock(given map[string]any) string {
	if len(given) == 0 {
		return ""
	}
	text, err := json.Marshal(given)
	if err != nil { // it was read from a node
		return ""
	}
	return "**Inputs:** " + firstLine(string(text), 500) + "\n\n"
}

// notShown stands for a text for which there is no room at all, unless it is itself
// the shorter one.
func notShown(text string) string {
	note := strings.TrimSpace(leftOut(length(text)))
	if length(text) <= length(note) {
		return text
	}
	return note
}

// omitted is the hint at steps that are not shown, "" if all are.
func (r reader) omitted(steps []shownStep, q request) string {
	if n := len(steps); n > 0 {
		if first := steps[n-1].step; first.Index > 0 {
			return r.omittedHint(first)
		}
		return ""
	}
	if q.newest == "" || r.thread.Last == nil {
		return ""
	}
	return fmt.Sprintf("*(%s, load with `uwf thread read %s`)*", earlier(r.thread.Len()), r.id)
}

func (r reader) omittedHint(first thread.Step) string {
	return fmt.Sprintf("*(%s, load with `uwf thread read %s --before %s`)*", earlier(first.Index), r.id, first.Hash)
}

func earlier(n int) string {
	if n == 1 {
		return "1 earlier step"
	}
	return fmt.Sprintf("%d earlier steps", n)
}

func (r reader) goal(role string) string {
	goal := strings.TrimSpace(r.workflow.Roles[role].Goal)
	if goal == "" { // no agent plays it
		return ""
	}
	return "\n\n<prompt>\n" + goal + "\n</prompt>"
}

func (r reader) render(ctx context.Context, s thread.Step) (shownStep, error) {
	content, err := thread.Content(ctx, r.store, s.Detail)
	if err != nil {
		return shownStep{}, err
	}
	out, err := r.thread.Shown(ctx, s)
	if err != nil {
		return shownStep{}, err
	}
	who := plaintext.Line(s.Agent)
	if s.Agent == protocol.PersonAgent {
		if detail, err := thread.ShownDetail(ctx, r.store, s.Detail); err == nil && detail.By != "" {
			who += " (" + plaintext.Line(detail.By) + ")"
		}
	}
	head := fmt.Sprintf("## Step %d: %s `%s`\n**Agent:** %s | **Time:** %s UTC | **Duration:** %s",
		s.Index+1, plaintext.Line(s.Role), s.Hash, who,
		time.UnixMilli(s.Timestamp).UTC().Format(time.DateTime), render.Duration(s.CompletedAtMs-s.StartedAtMs))
	if status := view.StatusOf(out.Value); status != "" {
		head += " | **Status:** " + plaintext.Line(status)
	}
	return shownStep{step: s, content: content, head: head, told: r.told(s.EdgePrompt)}, nil
}

// told is what a step was told, "" if that is the task. Within a quota the answers come
// first: a long instruction is cut.
func (r reader) told(prompt string) string {
	const least = 200
	prompt = strings.TrimSpace(prompt)
	if prompt == strings.TrimSpace(r.thread.Start.Prompt) {
		return ""
	}
	return strings.TrimSpace(cutMiddle(prompt, max(least, r.quota/8), leftOut))
}

func instruction(told string) string {
	if told == "" {
		return ""
	}
	return "\n\n" + fence.Body(fence.Instruction, told)
}

// endingOf is how a thread stands at its end: its closing words, or what it waits for.
func endingOf(s protocol.StepOutput) string {
	switch {
	case s.Status == protocol.StatusCompleted && strings.TrimSpace(s.Message) != "":
		return "## End\n\n" + strings.TrimSpace(s.Message)
	case s.Status == protocol.StatusSuspended && s.SuspendedRole != nil && s.SuspendMessage != nil:
		return "## Waiting: " + plaintext.Line(*s.SuspendedRole) + "\n\n" + strings.TrimSpace(*s.SuspendMessage)
	}
	return ""
}

// output wraps an answer: its own headings must not look like ours.
func output(content string) string {
	if strings.TrimSpace(content) == "" {
		return ""
	}
	return "\n\n" + fence.Body(fence.Output, strings.TrimRight(content, "\n"))
}

// cutMiddle shortens a text to max characters: its middle becomes what marker
// says of so many characters. "" if not even that has room.
func cutMiddle(s string, max int, marker func(left int) string) string {
	n := length(s)
	if n <= max {
		return s
	}
	keep := max - length(marker(n))
	if keep <= 0 {
		return ""
	}
	runes := []rune(s)
	front := keep - keep/3
	return string(runes[:front]) + marker(n-keep) + string(runes[n-keep+front:])
}

func length(s string) int { return utf8.RuneCountInString(s) }
