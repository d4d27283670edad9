// Package transcript renders a thread as readable text.
package transcript

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/promptquote"
	"github.com/united-workforce/uwf/util/render"
)

// blockSeparator separates the blocks of a document.
const blockSeparator = "\n\n---\n\n"

// Reader renders a thread within a quota of characters. It walks back from the newest step and stops when the
// quota is used up, so the cost does not depend on the thread's length.
//
// The newest step is always shown. It is the only one that is shortened if it does not fit, and then the task
// is as well. If there is no room for any of its text, a note appears regardless of the quota.
type Reader struct {
	Store    cas.Store
	Thread   *thread.Thread
	ID       string
	Workflow protocol.Workflow
	Changes  map[protocol.Hash]protocol.FileTotals // file changes, by step
	Quota    int                                   // size of the text without the final line break
	Quoting
}

// Request selects the part of a thread to read.
type Request struct {
	Start  bool   // include the task
	Ending string // a block after everything else, or ""
	Newest string // a block after all steps, already within the quota, or ""
}

// Read renders the requested part.
func (r Reader) Read(ctx context.Context, q Request) (string, error) {
	text, whole, err := r.compose(ctx, q, r.Quota)
	if err == nil && !whole && q.Start {
		// The task gets at most half of the space, and none if that leaves no room for the newest answer.
		text, _, err = r.compose(ctx, q, r.Quota/2)
		if err == nil && term.Length(text) > r.Quota {
			text, _, err = r.compose(ctx, q, 0)
		}
	}
	return text, err
}

// compose joins the blocks, with a start block of at most startQuota characters. It reports whether the
// newest step is complete.
func (r Reader) compose(ctx context.Context, q Request, startQuota int) (text string, whole bool, err error) {
	var blocks []string
	used := 0
	if q.Newest != "" {
		used = term.Length(q.Newest)
	}
	if q.Start {
		blocks = append(blocks, r.startBlock(startQuota))
		used += term.Length(blocks[0])
		if q.Newest != "" {
			used += term.Length(blockSeparator)
		}
	}
	ending := CutMiddle(q.Ending, r.Quota/4, LeftOut)
	if ending != "" {
		used += term.Length(ending) + term.Length(blockSeparator)
	}
	f := fitting{Reader: r, used: used, optional: q.Newest != "", goals: map[string]bool{}}
	if err := f.collect(ctx); err != nil {
		return "", false, err
	}
	if hint := r.omitted(f.steps, q); hint != "" {
		blocks = append(blocks, hint)
	}
	blocks = append(blocks, f.blocks()...)
	if q.Newest != "" {
		blocks = append(blocks, q.Newest)
	}
	if ending != "" {
		blocks = append(blocks, ending)
	}
	text = strings.Join(blocks, blockSeparator)
	return text, !f.cut && term.Length(text) <= r.Quota, nil
}

// fitting collects the newest steps whose texts together fit within the quota.
type fitting struct {
	Reader
	used     int         // characters that are always shown
	optional bool        // showing no step is acceptable
	steps    []shownStep // newest first
	goals    map[string]bool
	cut      bool // the newest step is shortened
}

// shownStep is a step with its text.
type shownStep struct {
	step    thread.Step
	head    string
	prompt  string // instruction from the edge, or from a person
	content string // the answer
	noGoal  bool   // omit the role's goal for lack of space
}

func (f *fitting) collect(ctx context.Context) error {
	for step, err := range f.Thread.Steps(ctx) {
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

// add adds a step if it fits, and reports whether another one may fit.
func (f *fitting) add(s shownStep) bool {
	hint := 0
	if s.step.Index > 0 {
		hint = term.Length(f.omittedHint(s.step)) + term.Length(blockSeparator)
	}
	room := f.Quota - f.used - hint
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

// cost returns how many characters a step adds to the document.
func (f *fitting) cost(s shownStep) int {
	n := term.Length(s.head) + term.Length(f.instruction(s.prompt)) + term.Length(f.output(s.content))
	if !f.goals[s.step.Role] && !s.noGoal {
		n += term.Length(f.goal(s.step.Role))
	}
	if f.used > 0 {
		n += term.Length(blockSeparator)
	}
	return n
}

// shorten shortens a step to the available room if possible.
func (f *fitting) shorten(s shownStep, room int) shownStep {
	content := s.content
	if term.Length(s.prompt) > room/3 {
		s.prompt = notShown(s.prompt)
	}
	s.noGoal = term.Length(f.goal(s.step.Role)) > room/3
	s.content = ""
	left := room - f.cost(s)
	const tries = 4 // quoting the rest may add characters
	for room, n := left-term.Length(f.output("x"))+1, 0; n < tries; n++ {
		s.content = CutMiddle(content, room, func(n int) string {
			return fmt.Sprintf("\n\n*(%d characters left out, all with `uwf step read %s --quota %d`)*\n\n", n, s.step.Hash, 2*term.Length(content)+1000)
		})
		over := term.Length(f.output(s.content)) - left
		if over <= 0 {
			break
		}
		room -= over
		s.content = ""
	}
	if s.content == "" && strings.TrimSpace(content) != "" { // never omit a text without a note
		s.content = notShown(content)
	}
	return s
}

// blocks returns the texts of the steps, oldest first. A role's goal appears with its first step.
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
		blocks = append(blocks, text+f.instruction(s.prompt)+f.output(s.content))
	}
	return blocks
}

// startBlock returns the thread's description in at most max characters, if the task can be shortened that
// far.
func (r Reader) startBlock(max int) string {
	head := fmt.Sprintf("# Thread `%s`\n\n**Workflow:** %s (`%s`)\n\n%s## Task\n\n", r.ID, r.Workflow.Name, r.Thread.Start.Workflow, inputsBlock(r.Thread.Start.Inputs))
	asked := r.Thread.Task()
	task := CutMiddle(asked, max-term.Length(head), LeftOut)
	if task == "" && asked != "" {
		task = notShown(asked)
	}
	return head + task
}

// inputsBlock returns the thread's inputs.
func inputsBlock(given map[string]any) string {
	if len(given) == 0 {
		return ""
	}
	text, err := json.Marshal(given)
	if err != nil { // cannot happen: it was read from a node
		return ""
	}
	return "**Inputs:** " + term.FirstLine(string(text), 500) + "\n\n"
}

// notShown returns the note for a text without any room, or the text itself if that is shorter.
func notShown(text string) string {
	note := strings.TrimSpace(LeftOut(term.Length(text)))
	if term.Length(text) <= term.Length(note) {
		return text
	}
	return note
}

// omitted returns a note about steps that are not shown, or "".
func (r Reader) omitted(steps []shownStep, q Request) string {
	if n := len(steps); n > 0 {
		if first := steps[n-1].step; first.Index > 0 {
			return r.omittedHint(first)
		}
		return ""
	}
	if q.Newest == "" || r.Thread.Last == nil {
		return ""
	}
	return fmt.Sprintf("*(%s, load with `uwf thread read %s`)*", earlier(r.Thread.Len()), r.ID)
}

func (r Reader) omittedHint(first thread.Step) string {
	return fmt.Sprintf("*(%s, load with `uwf thread read %s --before %s`)*", earlier(first.Index), r.ID, first.Hash)
}

func earlier(n int) string {
	if n == 1 {
		return "1 earlier step"
	}
	return fmt.Sprintf("%d earlier steps", n)
}

func (r Reader) goal(role string) string {
	goal := strings.TrimSpace(r.Workflow.Roles[role].Goal)
	if goal == "" { // the role has no agent
		return ""
	}
	return "\n\n<prompt>\n" + goal + "\n</prompt>"
}

func (r Reader) render(ctx context.Context, s thread.Step) (shownStep, error) {
	content, err := thread.Content(ctx, r.Store, s.Detail)
	if err != nil {
		return shownStep{}, err
	}
	out, err := r.Thread.Shown(ctx, s)
	if err != nil {
		return shownStep{}, err
	}
	who := plaintext.Line(s.Agent)
	if s.Agent == protocol.PersonAgent {
		if detail, err := thread.ShownDetail(ctx, r.Store, s.Detail); err == nil && detail.By != "" {
			who += " (" + plaintext.Line(detail.By) + ")"
		}
	}
	head := fmt.Sprintf("## Step %d: %s `%s`\n**Agent:** %s | **Time:** %s UTC | **Duration:** %s",
		s.Index+1, plaintext.Line(s.Role), s.Hash, who,
		time.UnixMilli(s.Timestamp).UTC().Format(time.DateTime), render.Duration(s.CompletedAtMs-s.StartedAtMs))
	if status := view.StatusOf(out.Value); status != "" {
		head += " | **Status:** " + plaintext.Line(status)
	}
	if sum, ok := r.Changes[s.Hash]; ok {
		head += " | **Files:** " + view.Changes(sum)
	}
	for _, refused := range thread.Refused(ctx, r.Store, s.Detail) {
		head += "\n- " + r.refused(refused)
	}
	head += r.parts(ctx, s.Children)
	return shownStep{step: s, content: content, head: head, prompt: r.promptText(s.EdgePrompt)}, nil
}

// parts lists the threads that ran a step together, with their prompts. A small quota has room for only a
// few.
func (r Reader) parts(ctx context.Context, children []protocol.ChildEnded) string {
	text, most := "", min(max(r.Quota/800, 1), 30)
	for i, c := range children {
		if i == most {
			return text + fmt.Sprintf("\n- and %d more: uwf thread show %s", len(children)-most, r.ID)
		}
		text += fmt.Sprintf("\n- `%s/%s` %s", r.ID, plaintext.Line(c.Key), c.Status)
		if t, err := thread.Open(ctx, r.Store, c.Head); err == nil {
			text += ": " + term.FirstLine(t.Task(), 100)
		}
	}
	return text
}

// promptText returns a step's instruction, or "" if it equals the task. Answers have priority, so within a quota a
// long instruction is shortened.
func (r Reader) promptText(prompt string) string {
	const least = 200
	prompt = strings.TrimSpace(promptquote.Plain(prompt))
	if prompt == strings.TrimSpace(r.Thread.Task()) {
		return ""
	}
	return strings.TrimSpace(CutMiddle(prompt, max(least, r.Quota/8), LeftOut))
}

func (q Quoting) instruction(text string) string {
	if text == "" {
		return ""
	}
	return "\n\n" + q.document(promptquote.Instruction, text)
}

// EndingOf returns the end of a thread: its result, or what it waits for.
func EndingOf(s protocol.StepOutput) string {
	switch {
	case s.Status.AtEnd() && strings.TrimSpace(s.Message) != "":
		return "## End\n\n" + strings.TrimSpace(s.Message)
	case s.Status == protocol.StatusSuspended && s.SuspendedRole != "" && s.SuspendMessage != "":
		return "## Waiting: " + plaintext.Line(string(s.SuspendedRole)) + "\n\n" + strings.TrimSpace(string(s.SuspendMessage))
	}
	return ""
}

// output quotes an answer, so that its headings don't look like ours.
func (q Quoting) output(content string) string {
	if strings.TrimSpace(content) == "" {
		return ""
	}
	return "\n\n" + q.document(promptquote.Output, strings.TrimRight(content, "\n"))
}

// CutMiddle shortens a text to max characters by replacing its middle with the result of marker, which gets
// the number of omitted characters. It returns "" if that does not fit.
func CutMiddle(s string, max int, marker func(left int) string) string {
	n := term.Length(s)
	if n <= max {
		return s
	}
	keep := max - term.Length(marker(n))
	if keep <= 0 {
		return ""
	}
	runes := []rune(s)
	front := keep - keep/3
	return string(runes[:front]) + marker(n-keep) + string(runes[n-keep+front:])
}

// OmittedTurns is the note that not all turns fit.
const OmittedTurns = "\n\n_[Earlier turns omitted due to quota. Use --quota to increase.]_"

// TurnBlock renders a turn, or returns "" for an empty one.
func (q Quoting) TurnBlock(t protocol.Turn) string {
	if strings.TrimSpace(t.Content) == "" && len(t.ToolCalls) == 0 {
		return ""
	}
	if r := t.Refused; r != nil {
		return fmt.Sprintf("\n\n## Turn %d\n\n**uwf:** %s", t.Index+1, q.refused(*r))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n\n## Turn %d\n\n**Turn role:** %s", t.Index+1, plaintext.Line(string(t.Role)))
	for _, call := range t.ToolCalls {
		fmt.Fprintf(&b, "\n- **%s** — `%s`", plaintext.Line(call.Name), arguments(call.Args))
	}
	if t.Content != "" {
		b.WriteString("\n\n")
		b.WriteString(q.turnText(t.Content))
	}
	return b.String()
}

// arguments returns the arguments of a tool call as JSON. The original stores them as a string of JSON.
func arguments(args any) string {
	if text, ok := args.(string); ok && json.Valid([]byte(text)) {
		return plaintext.Line(text)
	}
	text, err := json.Marshal(args)
	if err != nil { // cannot happen: it came from the store
		return "?"
	}
	return string(text)
}

// JoinReversed joins blocks that were collected newest first.
func JoinReversed(blocks []string) string {
	var b strings.Builder
	for i := len(blocks) - 1; i >= 0; i-- {
		b.WriteString(blocks[i])
	}
	return b.String()
}

// FlightBlock renders the step in flight, or the last failed try: the newest turns that fit in two thirds of
// the quota, and the text being written. The newest part is shortened if necessary.
func (r Reader) FlightBlock(ctx context.Context, f status.Flight, now time.Time) (string, error) {
	head := flightHead(f, now)
	room := r.Quota*2/3 - term.Length(head)
	blocks, err := r.flightTurns(ctx, f, room)
	if err != nil || len(blocks) == 0 {
		return head, err
	}
	return head + "\n\n<turns>" + JoinReversed(blocks) + "\n</turns>", nil
}

func flightHead(f status.Flight, now time.Time) string {
	state, so := "running", "**So far:** "+render.Duration(now.Sub(f.Started).Milliseconds())
	if f.Failed != "" {
		state, so = "failed", "**Because:** "+term.FirstLine(f.Failed, 300)
	}
	agent := ""
	if f.Agent != "" {
		agent = "**Agent:** " + plaintext.Line(f.Agent) + " | "
	}
	return fmt.Sprintf("## Step %d: %s (%s)\n%s**Started:** %s UTC | %s",
		f.Number, plaintext.Line(f.Role), state, agent, f.Started.UTC().Format(time.DateTime), so)
}

// LeftOut returns the note for the omitted middle of a text.
func LeftOut(n int) string { return fmt.Sprintf("\n\n*(%d characters left out)*\n\n", n) }

// flightTurns returns the blocks of the newest turns that fit, newest first.
func (r Reader) flightTurns(ctx context.Context, f status.Flight, room int) ([]string, error) {
	room -= term.Length("\n\n<turns>\n</turns>") + term.Length(OmittedTurns)
	var blocks []string
	take := func(t protocol.Turn) bool {
		block := r.TurnBlock(t)
		if block == "" {
			return true
		}
		if term.Length(block) > room {
			if len(blocks) == 0 {
				blocks = append(blocks, CutMiddle(block, room, LeftOut))
			}
			blocks = append(blocks, OmittedTurns)
			return false
		}
		room -= term.Length(block)
		blocks = append(blocks, block)
		return true
	}
	if f.Printed != "" {
		take(f.PrintedTurn())
	}
	if f.Writing != "" {
		t, err := cas.Read[protocol.Turn](ctx, r.Store, f.Writing)
		if err != nil && !thread.IsNoMessage(err) { // it may have been replaced by the complete turn
			return nil, err
		}
		switch {
		case t.Role == protocol.TurnSystem: // a progress message
		case f.Failed == "":
			t.Content += "\n\n*(still being written)*"
		default:
			t.Content += "\n\n*(was being written)*"
		}
		if err == nil && !take(t) {
			return blocks, nil
		}
	}
	for i := len(f.Turns) - 1; i >= 0; i-- {
		t, err := thread.ShownTurn(ctx, r.Store, f.Turns[i])
		switch {
		case thread.IsNoMessage(err):
			continue
		case err != nil:
			return nil, err
		}
		if !take(t) {
			break
		}
	}
	return blocks, nil
}

// Quoting separates an agent's text from the surrounding document, so that it cannot pose as another step or
// turn.
type Quoting bool

const (
	// ForPeople quotes the text as a Markdown quotation.
	ForPeople Quoting = false
	// ForModels puts the text between tags that it cannot contain.
	ForModels Quoting = true
)

// document puts a text, which may contain headings, between tags with a name.
func (q Quoting) document(name promptquote.Name, text string) string {
	if q == ForModels {
		return promptquote.Text(name, text)
	}
	if ends := "</" + string(name); strings.Contains(strings.ReplaceAll(strings.ToLower(text), " ", ""), ends) {
		text = quotation(text)
	}
	return fmt.Sprintf("<%s>\n%s\n</%s>", name, text, name)
}

// turnText quotes the text of a turn, without tags.
func (q Quoting) turnText(text string) string {
	if q == ForModels {
		return promptquote.Text(promptquote.Turn, text)
	}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "# ") || strings.HasPrefix(line, "## ") {
			return quotation(text)
		}
	}
	return text
}

// refused describes why an answer was rejected, quoting the answer.
func (q Quoting) refused(r protocol.Refused) string {
	text := plaintext.Line(r.String())
	if q == ForModels {
		return promptquote.Word(promptquote.AnswerProblem, text, text)
	}
	return text
}

func quotation(text string) string { return "> " + strings.ReplaceAll(text, "\n", "\n> ") }
