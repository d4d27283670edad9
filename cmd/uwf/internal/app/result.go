package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/gc"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/ocascli"
	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/names"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/engine/worktree"
	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/hints"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/render"
	"github.com/united-workforce/uwf/util/terminal"
)

// Conclude ends a command that has made steps, with the error that ended them: it prints the thread's state and
// returns the error. judged means that the state sets the exit status.
func (a *App) Conclude(ctx context.Context, e *engine.Engine, id string, made []protocol.StepOutput, err error, judged bool) error {
	out, showErr := Outcome(ctx, e, id, made, err)
	if showErr != nil {
		return errors.Join(err, showErr)
	}
	printErr := a.PrintOutcome(ctx, e, out, judged, err)
	if changed := FilesText(out.Steps); changed != "" && out.Status == protocol.StatusCompleted && err == nil {
		if facts, err := e.Reader.Heads.Facts(context.WithoutCancel(ctx), id); err == nil && facts.Workspace != nil && facts.Workspace.Mode == worktree.InWorktree {
			a.Hint("to bring its changes to your branch: uwf thread apply %s", id)
		}
	}
	return errors.Join(printErr, err)
}

// FilesText lists some of the files that steps have changed, or returns "".
func FilesText(steps []protocol.StepOutput) string {
	how := map[string]string{}
	for _, s := range steps {
		if s.Files == nil {
			continue
		}
		for _, path := range s.Files.Changed {
			how[path] += "" // a new file stays new
		}
		for _, path := range s.Files.Added {
			how[path] = " (new)"
		}
		for _, path := range s.Files.Removed {
			how[path] = " (removed)"
		}
	}
	const most = 5
	var words []string
	for i, path := range slices.Sorted(maps.Keys(how)) {
		if i == most {
			words = append(words, fmt.Sprintf("and %d more", len(how)-most))
			break
		}
		words = append(words, plaintext.Line(path)+how[path])
	}
	return strings.Join(words, ", ")
}

// Outcome returns the state of a thread after steps, and the error that ended them.
func Outcome(ctx context.Context, e *engine.Engine, id string, made []protocol.StepOutput, err error) (protocol.RunOutput, error) {
	if n := len(made); n > 0 && (err == nil || made[n-1].Status != protocol.StatusIdle) {
		return OutcomeAt(ctx, e, made[n-1], made), nil
	}
	// The run was interrupted, so the last result is not the thread's state.
	at, err := e.Reader.Show(context.WithoutCancel(ctx), id)
	return OutcomeAt(ctx, e, at, made), err
}

// OutcomeAt returns the result of a command that has made steps, with the thread's totals.
func OutcomeAt(ctx context.Context, e *engine.Engine, at protocol.StepOutput, made []protocol.StepOutput) protocol.RunOutput {
	out := protocol.RunOutput{StepOutput: at, Steps: append([]protocol.StepOutput{}, made...)}
	if sum, err := e.Reader.Totals(context.WithoutCancel(ctx), at.Thread, at.Head); err == nil {
		out.Totals = &sum
	}
	return out
}

// PrintOutcome ends a command that reports a thread's state. failed is an error that is reported later.
func (a *App) PrintOutcome(ctx context.Context, e *engine.Engine, out protocol.RunOutput, judged bool, failed error) error {
	err := a.Print(out, func(w *term.Page) { a.ResultText(w, out.StepOutput) })
	a.PrintState(ctx, e, out, judged, failed)
	return err
}

// PrintState prints on stderr a thread's state, its cost and what to type next. judged and failed are as for
// [App.Conclude] and [App.PrintOutcome].
func (a *App) PrintState(ctx context.Context, e *engine.Engine, out protocol.RunOutput, judged bool, failed error) {
	at := out.StepOutput
	if judged {
		a.EndsAs(at)
	}
	text := StateText(at)
	switch {
	case stopped(at) && a.resultOnStdout():
		text = "stopped" // the reason has been printed
	case stopped(at):
	case at.Status == protocol.StatusSuspended && at.Question != nil:
		text += ", waiting for an answer"
	case at.Error != nil && failed == nil:
		text = StatusText(at)
	}
	sign := mark(at)
	if failed != nil && at.Status == protocol.StatusIdle {
		sign, text = "■", "stopped, "+text
	}
	words := []string{fmt.Sprintf("%s thread %s: %s", sign, at.Thread, text)}
	if sum := out.Totals; sum != nil && sum.Steps+sum.FailedTries > 0 {
		words = append(words, madeText(*sum), render.Duration(sum.DurationMs),
			term.Spent(sum.Usage, sum.StepsWithoutUsage, sum.StepsWithoutCost))
	}
	a.messageIn(mood(at), "%s", term.Joined(words...))
	if changed := FilesText(out.Steps); changed != "" {
		a.Messagef("files: %s", changed)
	}
	if at.Question != nil {
		a.messageIn(terminal.Yellow, "? %s asks: %s", plaintext.Line(at.Question.Role), at.Question.Text)
	}
	if failed == nil || !HasHints(Classify(failed)) { // otherwise the error's hints follow
		a.PrintNext(ctx, e, at)
	}
}

// madeText describes the number of steps, and of failed tries since the last one.
func madeText(sum protocol.Totals) string {
	switch steps := render.Count(sum.Steps, "step"); sum.FailedTries {
	case 0:
		return steps
	case 1:
		return steps + ", 1 failed try"
	default:
		return fmt.Sprintf("%s, %d failed tries", steps, sum.FailedTries)
	}
}

// stopped reports whether a thread is suspended for a reason other than a question, such as a limit.
func stopped(r protocol.StepOutput) bool {
	return r.Status == protocol.StatusSuspended && r.Question == nil && r.SuspendMessage != ""
}

// resultOnStdout reports whether stdout showed the thread's state as text; see [App.ResultText].
func (a *App) resultOnStdout() bool {
	return a.Format(nil) == render.Text && !a.sameScreen()
}

// sameScreen reports whether stderr and stdout's text appear on the same terminal.
func (a *App) sameScreen() bool {
	return !a.Flags.Quiet && a.OnTerminal() && terminal.Is(a.Env.Stderr)
}

// ResultText prints a thread's result: its text and the data of its last answer, or why there is none yet.
func (a *App) ResultText(w *term.Page, r protocol.StepOutput) {
	switch {
	case r.Status.AtEnd() && (r.Message != "" || r.Output != nil):
		if r.Message != "" {
			w.Printf("%s\n", strings.TrimRight(r.Message, "\n"))
		}
		if r.Message != "" && r.Output != nil {
			w.Printf("\n")
		}
		if r.Message == "" || r.Output != nil {
			a.dataText(w, r)
		}
	case a.sameScreen(): // stderr shows it on the same screen
	default:
		w.Printf("thread %s: %s\n", r.Thread, StatusText(r))
	}
}

// dataText prints the data of a thread's last answer. On a terminal it leaves room for the surrounding lines.
func (a *App) dataText(w *term.Page, r protocol.StepOutput) {
	const around, least = 8, 16
	var text strings.Builder
	w.Fail(render.Print(&text, render.Text, r.Output, nil))
	lines := strings.SplitAfter(text.String(), "\n")
	_, most := terminal.Size(a.Env.Stdout)
	if most = max(most-around, least); !a.OnTerminal() || len(lines) <= most {
		w.Printf("%s", text.String())
		return
	}
	w.Printf("%s… and %d more lines: uwf thread read %s\n", strings.Join(lines[:most-1], ""), len(lines)-most, r.Thread)
}

// StatusText describes a thread's state and the reason.
func StatusText(r protocol.StepOutput) string {
	switch {
	case r.Status == protocol.StatusSuspended && r.Question != nil && r.SuspendMessage != "":
		return plaintext.Line("suspended: " + string(r.SuspendMessage))
	case r.Status == protocol.StatusRateLimited && r.Error != nil:
		return plaintext.Line(StateText(r) + ": " + r.Error.Message)
	case r.Error != nil && !stopped(r):
		return plaintext.Line(string(r.Status) + ": " + r.Error.Message)
	}
	return StateText(r)
}

// StateText describes a thread's state without a question or an error, which are shown elsewhere.
func StateText(r protocol.StepOutput) string {
	switch {
	case stopped(r):
		return plaintext.Line("stopped: " + string(r.SuspendMessage))
	case r.Status == protocol.StatusRateLimited && r.RateLimitedUntil != nil:
		return "rate-limited until " + time.UnixMilli(*r.RateLimitedUntil).Format(time.DateTime)
	case r.Status == protocol.StatusIdle && r.CurrentRole != "":
		return plaintext.Line("next is " + string(r.CurrentRole))
	case r.Status == protocol.StatusRunning && r.CurrentRole != "":
		return plaintext.Line("running: " + string(r.CurrentRole))
	case r.Status == protocol.StatusWaitingForChildren && r.CurrentRole != "":
		return plaintext.Line("waiting for the children of " + string(r.CurrentRole) + ": " + ChildrenText(r.Children))
	}
	return string(r.Status)
}

// ChildrenText counts children by status.
func ChildrenText(children []protocol.ChildOutput) string {
	count := map[protocol.Status]int{}
	for _, c := range children {
		count[c.Status]++
	}
	var words []string
	for _, s := range slices.Sorted(maps.Keys(count)) {
		words = append(words, fmt.Sprintf("%d %s", count[s], s))
	}
	return strings.Join(words, ", ")
}

// route describes the decision of a step: its role, the status, and the next role.
func route(role string, r protocol.StepOutput) string {
	words := []string{role}
	if status := view.StatusOf(r.Output); status != "" && status != protocol.SuspendNode {
		words = append(words, status)
	}
	switch {
	case r.Status == protocol.StatusCompleted:
		words = append(words, protocol.EndNode)
	case r.Status == protocol.StatusFailed:
		words = append(words, protocol.FailNode)
	case r.Status == protocol.StatusSuspended && r.Question == nil:
		words = append(words, "a limit")
	case r.Status == protocol.StatusSuspended:
		words = append(words, "a person")
	case r.Status == protocol.StatusError:
		words = append(words, string(r.Status))
	case r.CurrentRole != "":
		words = append(words, string(r.CurrentRole))
	}
	return plaintext.Line(strings.Join(words, " → "))
}

// mark returns the first character of a line about a thread, and mood its colour.
func mark(r protocol.StepOutput) string {
	switch r.Status {
	case protocol.StatusSuspended, protocol.StatusRateLimited:
		return "?"
	case protocol.StatusError, protocol.StatusCorrupt, protocol.StatusFailed:
		return "✗"
	case protocol.StatusRunning, protocol.StatusWaitingForChildren:
		return "…"
	}
	return "✓"
}

func mood(r protocol.StepOutput) terminal.Sequence {
	switch r.Status {
	case protocol.StatusSuspended, protocol.StatusRateLimited:
		return terminal.Yellow
	case protocol.StatusError, protocol.StatusCorrupt, protocol.StatusFailed:
		return terminal.Red
	case protocol.StatusCompleted:
		return terminal.Green
	}
	return terminal.Plain
}

// PrintNext prints the next command to type.
func (a *App) PrintNext(ctx context.Context, e *engine.Engine, r protocol.StepOutput) {
	if a.Flags.Quiet {
		return
	}
	if r.Status == protocol.StatusSuspended && status.AtLimit(r) {
		for hint := range strings.Lines(r.Error.Hint) {
			a.Hint("%s", strings.TrimSuffix(hint, "\n"))
		}
		return
	}
	if r.Status == protocol.StatusRateLimited {
		now := hints.Command(a.WorksAt, "thread", "resume", r.Thread)
		if r.Error != nil {
			now = r.Error.Hint
		}
		a.Hint("to continue all such threads then: uwf run-due; to continue now: %s", now)
		return
	}
	if can, err := e.Reader.Actions(context.WithoutCancel(ctx), r.Thread); err == nil && len(can) > 0 { // on an error there is no hint
		a.Hint("%s", hints.Command(a.WorksAt, can[0].Command...))
	}
}

// messageIn is Messagef in a colour, if stderr supports colours.
func (a *App) messageIn(colour terminal.Sequence, format string, args ...any) {
	if !a.Flags.Quiet {
		term.PaintLine(a.Env.Stderr, a.Colour(a.Env.Stderr, colour), plaintext.Indent(fmt.Sprintf(format, args...)))
	}
}

// TitleText returns a thread's title and its origin if it is a fork.
func TitleText(title string, of *protocol.ForkedFrom) string {
	const most = 60 // enough to choose from a list
	title = term.FirstLine(title, most)
	if of == nil {
		return title
	}
	from := string(of.Step)
	if of.Thread != "" {
		from = names.Short(of.Thread)
	}
	return term.Joined(title, "(fork of "+from+")")
}

// TimeText formats a time: relative within the last two days, otherwise absolute; "" for nil.
func TimeText(ms *int64, now time.Time) string {
	if ms == nil {
		return ""
	}
	at := time.UnixMilli(*ms)
	switch ago := now.Sub(at); {
	case ago < 0:
		return at.In(now.Location()).Format("2006-01-02 15:04")
	case ago < time.Minute:
		return "just now"
	case ago < time.Hour:
		return fmt.Sprintf("%d min ago", int(ago.Minutes()))
	case ago < 48*time.Hour:
		return fmt.Sprintf("%d h ago", int(ago.Hours()))
	}
	return at.In(now.Location()).Format("2006-01-02 15:04")
}

func isRedacted(err error) bool {
	_, redacted := cas.AsRedacted(err)
	return redacted
}

// Classify assigns a code to every error, and a hint to a disk error.
func Classify(err error) *protocol.Error {
	coded := translate(err)
	if isUnprinted(err) {
		if errors.As(err, new(*protocol.Error)) {
			return coded // more important than that the result could not be printed
		}
		return &protocol.Error{
			Code: protocol.CodeOutputFailed, Message: "done, but printing the result failed: " + err.Error(), Err: err,
			Hints: []string{"before you repeat it: uwf thread list --all"},
		}
	}
	var failed *fs.PathError
	switch {
	case errors.As(err, new(*proc.BoxError)): // its error numbers mean limits of namespaces, not disks
		return withHint(coded, "to find out why: uwf doctor")
	case errors.Is(err, syscall.ENOSPC):
		return withHint(coded, "free some space, then run the command again: uwf cas gc")
	case errors.Is(err, syscall.EROFS):
		return withHint(coded, "the file system is read-only; remount it, or use another home: export UWF_HOME=DIR")
	case errors.Is(err, fs.ErrPermission) && !HasHints(coded) && errors.As(err, &failed) && failed.Op == "fork/exec":
		return withHint(coded, "to make it executable: chmod +x "+plaintext.Word(failed.Path))
	case errors.Is(err, fs.ErrPermission) && !HasHints(coded):
		return withHint(coded, "uwf doctor")
	}
	return coded
}

// isUnprinted reports whether stdout could not be written. The command has done its work and must not be
// repeated for that.
func isUnprinted(err error) bool {
	var failed *fs.PathError
	return errors.As(err, &failed) && failed.Op == "write" && failed.Path == "/dev/stdout" // the name of os.Stdout on every system
}

// HasHints reports whether an error has hints.
func HasHints(e *protocol.Error) bool { return len(hints.All("", e)) > 0 }

// withHint returns a copy of an error with a hint inserted before the others.
func withHint(e *protocol.Error, hint string) *protocol.Error {
	more := *e
	more.Hints = append([]string{hint}, e.Hints...)
	return &more
}

// translate assigns codes to errors of the engine and lower layers.
func translate(err error) *protocol.Error {
	var (
		coded    *protocol.Error
		corrupt  *cas.CorruptError
		kind     *cas.TypeError
		schema   *cas.SchemaError
		problems *workflow.Problems
	)
	_, damaged := errors.AsType[*gc.DamagedError](err)
	out := &protocol.Error{Code: engine.Code(err), Message: err.Error(), Err: err}
	switch {
	case damaged:
		return ocascli.Classify(err, CasProgram)
	case errors.As(err, &coded) && coded.Message == err.Error():
		return coded
	case coded != nil: // as set by the case above
		out.Hints, out.Reasons = coded.Hints, coded.Reasons
	case errors.As(err, new(*engine.SignalError)):
	case errors.As(err, &corrupt), errors.Is(err, cas.ErrNotFound) && !isRedacted(err):
		out.Hints = damageHints()
	case errors.As(err, &problems):
		out.Code, out.Hints = protocol.CodeInvalid, problemHints(problems)
	case errors.As(err, &kind) && !isRedacted(err):
		out.Code = protocol.CodeInvalid
	case errors.Is(err, heads.ErrNoWorkflow):
		out.Code = protocol.CodeNotFound
	case out.Code == protocol.CodeFailed, errors.As(err, &schema), isRedacted(err):
		return ocascli.Classify(err, CasProgram)
	}
	return out
}

// damageHints returns the hints for a damaged or missing node.
func damageHints() []string {
	return []string{
		"restore the node from a backup",
		"to list the threads that need it: uwf cas fsck",
		"to find the last step before it: uwf thread diagnose <thread>",
	}
}

// problemHints returns the hints for an invalid workflow file: none if its problems have remedies.
func problemHints(problems *workflow.Problems) []string {
	if slices.ContainsFunc(problems.List, func(p protocol.Problem) bool { return p.Remedy != "" }) {
		return nil
	}
	return []string{"for the format of workflow files: uwf guide author"}
}
