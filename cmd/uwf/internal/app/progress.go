package app

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/names"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/moderator/diagram"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/frontmatter"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/render"
	"github.com/united-workforce/uwf/util/sorting"
	"github.com/united-workforce/uwf/util/terminal"
)

// Progress returns a function that shows running steps on stderr, or nil if nothing is shown.
func (a *App) Progress() func(engine.Event) {
	if a.Flags.Quiet {
		return nil
	}
	return a.Display(a.Env.Stderr).Show
}

// Display returns a display of steps, whether this process or another runs them. On a terminal it shows tool
// calls and a progress line per running step; elsewhere, one line when a step begins and one when it ends. For
// child threads, the terminal shows a tree of as many lines as fit, and counts the rest.
func (a *App) Display(w io.Writer) *Display {
	v := &Display{
		w: w, now: a.Env.Now, live: terminal.Is(w), colours: cmdline.Colours(a.Env, w),
		size: func() (int, int) { return terminal.Size(w) },
	}
	a.shown.Store(v)
	return v
}

// Display shows running steps; see [App.Display].
type Display struct {
	w       io.Writer
	now     func() time.Time
	live    bool
	colours bool
	size    func() (columns, lines int) // of the terminal; 0 if unknown

	mu       sync.Mutex         // the ticker writes as well
	stop     chan struct{}      // closed to end the ticker; nil if there is none
	ended    sync.WaitGroup     // waits for the ticker
	steps    []*stepAtWork      // running, oldest first
	families map[string]*family // by the path of their parent
	drawn    []int              // widths of the progress lines on the screen
	drawnAt  time.Time
	changed  bool // since the last redraw
}

// stepAtWork is a running step.
type stepAtWork struct {
	engine.StepInfo
	turns   int
	calls   map[string]string // tool names by call ID, until their results arrive
	failed  int               // number of tool calls
	tokens  int64
	known   bool   // the agent reports tokens
	writing string // latest text or call
}

// Show displays an event.
func (v *Display) Show(ev engine.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch ev.Kind {
	case engine.StepStarted:
		v.stepStarted(ev.Step)
	case engine.Turn:
		v.turn(ev.Step, *ev.Turn)
	case engine.Writing:
		v.writing(ev.Step, *ev.Turn)
	case engine.StepEnded:
		v.stepEnded(ev.Step, *ev.Output, ev.Err)
	case engine.Children:
		v.children(ev.Step, ev.Children)
	}
}

func (v *Display) stepStarted(s engine.StepInfo) {
	v.steps = append(v.steps, &stepAtWork{StepInfo: s, calls: map[string]string{}})
	what := ""
	if s.Adopted {
		what = ", adopting the result of an interrupted run"
	}
	if s.Earlier {
		what = ", from an earlier --agent"
	}
	if !v.live || s.Path == "" {
		v.line(terminal.Bold, "%sstep %d: %s (%s)%s", childPrefix(s), s.Number, plaintext.Line(s.Role), plaintext.Line(s.Agent), what)
	} else {
		v.changed = true
	}
	if v.live && s.Ended.IsZero() && v.stop == nil {
		v.stop = make(chan struct{})
		v.ended.Add(1)
		go v.tick(v.stop)
	}
}

// childPrefix returns the prefix of a line about a child; "" for the thread itself.
func childPrefix(s engine.StepInfo) string {
	if s.Path == "" {
		return ""
	}
	return names.Child(s.Path, s.Label) + ": "
}

// running returns the running step for s, or an empty one that isn't displayed.
func (v *Display) running(s engine.StepInfo) *stepAtWork {
	for _, at := range v.steps {
		if at.Thread == s.Thread && at.Path == s.Path {
			return at
		}
	}
	return &stepAtWork{StepInfo: s, calls: map[string]string{}}
}

// tick updates the progress lines until no step is running.
func (v *Display) tick(stop <-chan struct{}) {
	defer v.ended.Done()
	t := time.NewTicker(time.Second / 10)
	defer t.Stop()
	for {
		select {
		case <-stop:
			return
		case <-t.C:
			v.mu.Lock()
			if v.changed || v.now().Sub(v.drawnAt) >= time.Second {
				v.redraw()
			}
			v.mu.Unlock()
		}
	}
}

func (v *Display) turn(s engine.StepInfo, t protocol.Turn) {
	at := v.running(s)
	if t.Role == protocol.TurnAssistant {
		at.turns++
		at.writing = ""
		if s.Path != "" {
			at.writing = term.FirstLine(answerText(t.Content), maxWriting)
		}
	}
	if t.Usage.Counted() {
		at.known = true
		at.tokens += t.Usage.InputTokens + t.Usage.CacheReadTokens + t.Usage.CacheWriteTokens + t.Usage.OutputTokens
	}
	why := failure(t)
	if why != "" {
		at.failed++
	}
	for _, call := range t.ToolCalls {
		at.calls[call.ID] = call.Name
	}
	if t.Refused != nil && v.live && s.Path != "" {
		at.writing = "✗ " + term.FirstLine(t.Refused.String(), maxWriting)
	} else if t.Refused != nil {
		v.line(terminal.Yellow, "  ✗ %s%s", childPrefix(s), plaintext.Line(t.Refused.String()))
	}
	name := at.calls[t.ToolCallID]
	if t.Role == protocol.TurnTool {
		delete(at.calls, t.ToolCallID)
	}
	if !v.live {
		return
	}
	if s.Path != "" { // with many children, only a word in the child's own line
		for _, call := range t.ToolCalls {
			at.writing = strings.TrimSpace(plaintext.Line(call.Name) + " " + term.FirstLine(argument(call.Args), maxWriting))
		}
		if why != "" {
			at.writing = "✗ " + term.Joined(plaintext.Line(name), term.FirstLine(why, maxWriting))
		}
		v.changed = true
		return
	}
	if why != "" {
		v.line(terminal.Red, "%s", v.fit("  ✗ "+term.Joined(plaintext.Line(name), term.FirstLine(why, 200))))
	}
	for _, call := range t.ToolCalls {
		v.line(terminal.Faint, "%s", v.fit(strings.TrimRight(fmt.Sprintf("  → %s %s", plaintext.Line(call.Name), term.FirstLine(argument(call.Args), 200)), " ")))
	}
	if t.Role == protocol.TurnAssistant && len(t.ToolCalls) == 0 && strings.TrimSpace(t.Content) != "" {
		v.line(terminal.Plain, "%s", v.fit("  ✎ "+term.FirstLine(answerText(t.Content), 200)))
	}
	v.redraw()
}

// maxWriting bounds the text kept for a step's line, in characters.
const maxWriting = 60

func (v *Display) writing(s engine.StepInfo, t protocol.Turn) {
	v.running(s).writing = term.LastWords(answerText(t.Content), maxWriting)
	if v.live && s.Path == "" {
		v.redraw()
	}
	v.changed = true
}

func (v *Display) stepEnded(s engine.StepInfo, out protocol.StepOutput, err error) {
	at := v.running(s)
	v.steps = slices.DeleteFunc(v.steps, func(other *stepAtWork) bool { return other == at })
	if stop := v.stop; stop != nil && len(v.steps) == 0 {
		v.stop = nil
		close(stop)
		v.mu.Unlock() // the ticker may be waiting for it
		v.ended.Wait()
		v.mu.Lock()
	}
	end := s.Ended
	if end.IsZero() {
		end = v.now()
	}
	took := render.Duration(end.Sub(s.Started).Milliseconds())
	failed := ""
	if at.failed > 0 {
		failed = render.Count(at.failed, "tool call") + " failed"
	}
	if err != nil && out.StepHash == "" { // otherwise the step was made, whatever failed later
		how := "failed"
		if signal := (*engine.SignalError)(nil); errors.As(err, &signal) {
			how = "stopped"
		}
		if s.Refused {
			v.setStatus(s, protocol.StatusRateLimited)
			v.line(terminal.Yellow, "%s", term.Joined("? "+childPrefix(s)+plaintext.Line(s.Role)+" was refused: rate limit", took, failed))
			return
		}
		v.setStatus(s, protocol.StatusError)
		v.line(terminal.Red, "%s", term.Joined("✗ "+childPrefix(s)+plaintext.Line(s.Role)+" "+how, took, failed))
		return
	}
	joined := v.joined(s)
	v.setStatus(s, out.Status)
	// On a terminal, the counts are enough for a child that continues, and for one of a list ("each") that is done.
	if v.live && s.Path != "" && (out.Status == protocol.StatusIdle || out.Status == protocol.StatusCompleted && s.Label != "") {
		if v.changed = true; len(v.steps) == 0 {
			v.redraw()
		}
		return
	}
	colour := terminal.Green
	if out.Status != protocol.StatusIdle {
		colour = mood(out)
	}
	v.line(colour, "%s", term.Joined(mark(out)+" "+childPrefix(s)+route(s.Role, out), took, joined, term.Spent(out.Usage, 0, 0), failed))
}

// note prints a line that belongs to no step.
func (v *Display) note(text string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.line(terminal.Plain, "%s", text)
}

// line prints a line above the progress lines.
func (v *Display) line(in terminal.Sequence, format string, args ...any) {
	var frame terminal.Painter
	if v.live {
		if v.goBack(&frame) > 0 {
			frame.Control(terminal.ClearBelow)
		}
		frame.Control(terminal.ClearLine)
	}
	if !v.colours {
		in = terminal.Plain
	}
	term.Painted(&frame, in, fmt.Sprintf(format, args...))
	frame.Text("\n")
	if v.live {
		v.drawProgress(&frame)
	}
	_ = frame.Draw(v.w) // an error has no recipient
}

// redraw redraws the progress lines below everything else. They never exceed the terminal's width, because
// a wrapped line could not be erased.
func (v *Display) redraw() {
	if !v.live {
		return
	}
	var frame terminal.Painter
	drawn := len(v.drawn) > 0
	up := v.goBack(&frame)
	v.drawProgress(&frame)
	if drawn && len(v.drawn) == 0 {
		frame.Control(terminal.ClearLine)
	}
	if up >= max(len(v.drawn), 1) { // there were more lines
		frame.Control(terminal.ClearBelow)
	}
	_ = frame.Draw(v.w)
}

// goBack moves to the first progress line and returns by how many lines. It accounts for lines that wrapped
// when the terminal became narrower.
func (v *Display) goBack(frame *terminal.Painter) (up int) {
	if len(v.drawn) == 0 {
		return 0
	}
	columns, _ := v.size()
	for _, n := range v.drawn {
		up++
		if columns > 0 && n > columns {
			up += (n - 1) / columns
		}
	}
	if up--; up > 0 {
		frame.Up(up)
	}
	return up
}

// drawProgress draws the progress lines over the old ones, which avoids flicker.
func (v *Display) drawProgress(frame *terminal.Painter) {
	v.drawn, v.changed = nil, false
	for i, text := range v.progressLines() {
		if i > 0 {
			frame.Text("\n")
		}
		text = v.fit(text)
		frame.Control(terminal.ClearLine)
		frame.Text(text)
		v.drawn, v.drawnAt = append(v.drawn, diagram.Columns(text)), v.now()
	}
}

// progressLines returns a line for each running step, as many as fit, and one that counts the rest.
func (v *Display) progressLines() []string {
	const unknown, around = 24, 4 // height of a terminal of unknown size; lines left for the text above
	if len(v.steps) == 0 {
		return nil
	}
	_, most := v.size()
	if most == 0 {
		most = unknown
	}
	return v.tree(max(most-around, 1))
}

func (v *Display) progressLine(s *stepAtWork) string {
	parts := []string{plaintext.Line(s.Role), max(0, v.now().Sub(s.Started)).Round(time.Second).String()}
	if s.Agent != protocol.CommandAgent {
		parts = append(parts, render.Count(s.turns, "turn"))
	}
	if s.known {
		parts = append(parts, view.Thousands(s.tokens)+" tokens")
	}
	if s.writing != "" {
		parts = append(parts, s.writing)
	}
	return strings.Join(parts, " · ")
}

// fit truncates a text to the terminal's width.
func (v *Display) fit(text string) string {
	const unknown = 100
	width, _ := v.size()
	if width == 0 {
		width = unknown
	}
	return diagram.Cut(text, width-1)
}

// answerText returns the part of an answer for people: the text after the frontmatter, if it has both.
func answerText(content string) string {
	if answer, err := frontmatter.Parse(content); err == nil && strings.TrimSpace(answer.Body) != "" {
		return answer.Body
	}
	return content
}

// failure returns why a tool call was denied or failed, or "". Tools and adapters report it in the first
// word, commands in their last line.
func failure(t protocol.Turn) string {
	if t.Role != protocol.TurnTool {
		return ""
	}
	text := strings.TrimSpace(t.Content)
	for _, prefix := range []string{"Error:", "[failed]"} {
		if why, failed := strings.CutPrefix(text, prefix); failed {
			return cmp.Or(strings.TrimSpace(why), "failed")
		}
	}
	last := text[strings.LastIndexByte(text, '\n')+1:]
	if strings.HasSuffix(last, "]") && !strings.HasPrefix(last, "[exit 0") &&
		(strings.HasPrefix(last, "[exit ") || strings.HasPrefix(last, "[ended by signal ")) {
		return strings.Trim(last, "[]")
	}
	return ""
}

// argument returns the most informative argument of a tool call.
func argument(args any) string {
	switch args := args.(type) {
	case string:
		return args
	case map[string]any:
		for _, key := range []string{"command", "path", "file_path", "pattern", "url", "query"} {
			if s, ok := args[key].(string); ok {
				return s
			}
		}
	}
	return ""
}

// Leave erases the progress lines.
func (v *Display) Leave() {
	if v.stop != nil {
		close(v.stop)
		v.ended.Wait()
		v.stop = nil
	}
	v.steps = nil
	v.redraw()
}

// family describes the children that play one role of their parent.
type family struct {
	engine.StepInfo // the step that will join them
	since           time.Time
	status          map[string]protocol.Status // of the children, by key
}

func (v *Display) children(of engine.StepInfo, all []protocol.ChildOutput) {
	f := v.families[of.Path]
	if f == nil || f.Number != of.Number || f.Thread != of.Thread {
		f = &family{StepInfo: of, since: v.now(), status: map[string]protocol.Status{}}
		if v.families == nil {
			v.families = map[string]*family{}
		}
		v.families[of.Path] = f
	}
	for _, c := range all {
		f.status[c.Key] = c.Status
	}
	v.changed = true
}

// setStatus records a thread's status after a step, for the counts of its parent.
func (v *Display) setStatus(s engine.StepInfo, at protocol.Status) {
	delete(v.families, s.Path) // its children are joined
	parent, key := cutPath(s.Path)
	if f := v.families[parent]; f != nil && s.Path != "" {
		f.status[key] = at
	}
}

// joined describes the children that a step has joined, or returns "".
func (v *Display) joined(s engine.StepInfo) string {
	f := v.families[s.Path]
	if f == nil || f.Number != s.Number || len(f.status) < 2 {
		return ""
	}
	return v.childCounts(f)
}

// cutPath splits off the last key of a path.
func cutPath(path string) (parent, key string) {
	i := strings.LastIndexByte(path, '/')
	return path[:max(i, 0)], path[i+1:]
}

// branch is a line in the tree of running threads.
type branch struct {
	path       []string // keys
	name, text string
	leaf       bool // a step; otherwise a count of children
}

// tree returns the running steps and the counts of children as at most most lines: those nearest to the root,
// and one that counts the rest.
func (v *Display) tree(most int) []string {
	var all []branch
	add := func(path, label, text string, leaf bool) {
		keys := strings.FieldsFunc(path, func(c rune) bool { return c == '/' })
		_, name := cutPath(cmp.Or(label, path))
		all = append(all, branch{keys, name, text, leaf})
	}
	roles := map[string]bool{} // roles at which children work; one alone isn't worth repeating in each line
	for _, s := range v.steps {
		if s.Path != "" {
			roles[s.Role] = true
		}
	}
	for _, s := range v.steps {
		text := v.progressLine(s)
		if s.Path != "" {
			text = v.since(s.Started)
			if len(roles) > 1 {
				text = plaintext.Line(s.Role) + " " + text
			}
			if s.writing != "" {
				text += " · " + s.writing
			}
		}
		add(s.Path, s.Label, text, true)
	}
	for path, f := range v.families {
		add(path, f.Label, plaintext.Line(f.Role)+" · "+v.childCounts(f)+" · "+v.since(f.since), false)
	}
	left := 0
	if len(all) > most {
		sorting.Stable(all, func(a, b branch) int {
			return cmp.Or(cmp.Compare(len(a.path), len(b.path)), slices.Compare(a.path, b.path))
		})
		for _, b := range all[max(most-1, 1):] {
			if b.leaf {
				left++
			}
		}
		all = all[:max(most-1, 1)]
	}
	sorting.Stable(all, func(a, b branch) int { return slices.Compare(a.path, b.path) })
	lines := v.aligned(all)
	if left > 0 && len(lines) < most {
		lines = append(lines, fmt.Sprintf("  … and %d more at work", left))
	}
	return lines
}

// aligned formats branches as lines, with the names at each depth aligned.
func (v *Display) aligned(all []branch) []string {
	columns, _ := v.size()
	most := max(8, cmp.Or(columns, 80)*2/5)
	wide := map[int]int{}
	for i := range all {
		b := &all[i]
		b.name = diagram.Cut(plaintext.Line(b.name), most)
		if b.leaf {
			wide[len(b.path)] = max(wide[len(b.path)], diagram.Columns(b.name))
		}
	}
	lines := make([]string, len(all))
	for i, b := range all {
		if b.name != "" {
			b.name += strings.Repeat(" ", max(0, wide[len(b.path)]-diagram.Columns(b.name))) + "  "
		}
		lines[i] = strings.Repeat("  ", len(b.path)) + "  " + b.name + b.text
	}
	return lines
}

// childCounts describes the number of children by status.
func (v *Display) childCounts(f *family) string {
	atWork := map[string]bool{}
	for _, s := range v.steps {
		if rest, below := strings.CutPrefix("/"+s.Path, strings.TrimSuffix("/"+f.Path, "/")+"/"); below && rest != "" {
			key, _, _ := strings.Cut(rest, "/")
			atWork[key] = true
		}
	}
	var done, failed, asks, limited, busy, left int
	for key, at := range f.status {
		switch {
		case atWork[key]:
			busy++
		case at == protocol.StatusCompleted:
			done++
		case at == protocol.StatusError, at == protocol.StatusCorrupt, at == protocol.StatusFailed, at == protocol.StatusCancelled:
			failed++
		case at == protocol.StatusSuspended:
			asks++
		case at == protocol.StatusRateLimited:
			limited++
		default:
			left++
		}
	}
	words := []string{fmt.Sprintf("%d of %d done", done, len(f.status))}
	for _, more := range []struct {
		n    int
		what string
	}{{failed, "failed"}, {asks, "waiting for you"}, {limited, "rate-limited"}, {busy, "at work"}, {left, "to come"}} {
		if more.n > 0 {
			words = append(words, fmt.Sprintf("%d %s", more.n, more.what))
		}
	}
	return strings.Join(words, ", ")
}

func (v *Display) since(at time.Time) string {
	return max(0, v.now().Sub(at)).Round(time.Second).String()
}
