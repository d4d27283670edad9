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

// Display returns a display of steps in any process. On a terminal it shows tool calls and a progress line
// per running step; elsewhere, one line when a step begins and one when it ends. For concurrent threads, the
// terminal shows a tree of as many lines as fit, and counts the rest.
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

	mu       sync.Mutex // the ticker writes as well
	stop     chan struct{}
	ended    sync.WaitGroup
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
	calls   map[string]string // tool names by call ID
	failed  int               // number of calls
	tokens  int64
	known   bool   // the token count is known
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
		v.line(terminal.Bold, "%sstep %d: %s (%s)%s", under(s), s.Number, plaintext.Line(s.Role), plaintext.Line(s.Agent), what)
	} else {
		v.changed = true
	}
	if v.live && s.Ended.IsZero() && v.stop == nil {
		v.stop = make(chan struct{})
		v.ended.Add(1)
		go v.tick(v.stop)
	}
}

// under returns the prefix of a line about a child.
func under(s engine.StepInfo) string {
	if s.Path == "" {
		return ""
	}
	return names.Child(s.Path, s.Label) + ": "
}

// shown returns the running step for s.
func (v *Display) shown(s engine.StepInfo) *stepAtWork {
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
				v.counters()
			}
			v.mu.Unlock()
		}
	}
}

func (v *Display) turn(s engine.StepInfo, t protocol.Turn) {
	at := v.shown(s)
	if t.Role == protocol.TurnAssistant {
		at.turns++
		at.writing = ""
		if s.Path != "" {
			at.writing = term.FirstLine(answerText(t.Content), lastWord)
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
		at.writing = "✗ " + term.FirstLine(t.Refused.String(), lastWord)
	} else if t.Refused != nil {
		v.line(terminal.Yellow, "  ✗ %s%s", under(s), plaintext.Line(t.Refused.String()))
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
			at.writing = strings.TrimSpace(plaintext.Line(call.Name) + " " + term.FirstLine(argument(call.Args), lastWord))
		}
		if why != "" {
			at.writing = "✗ " + term.Joined(plaintext.Line(name), term.FirstLine(why, lastWord))
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
	v.counters()
}

// lastWord bounds the text kept for a step's line.
const lastWord = 60

func (v *Display) writing(s engine.StepInfo, t protocol.Turn) {
	v.shown(s).writing = term.LastWords(answerText(t.Content), lastWord)
	if v.live && s.Path == "" {
		v.counters()
	}
	v.changed = true
}

func (v *Display) stepEnded(s engine.StepInfo, out protocol.StepOutput, err error) {
	at := v.shown(s)
	v.steps = slices.DeleteFunc(v.steps, func(other *stepAtWork) bool { return other == at })
	if stop := v.stop; stop != nil && len(v.steps) == 0 {
		v.stop = nil
		close(stop)
		v.mu.Unlock()
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
			v.rests(s, protocol.StatusRateLimited)
			v.line(terminal.Yellow, "%s", term.Joined("? "+under(s)+plaintext.Line(s.Role)+" was refused: rate limit", took, failed))
			return
		}
		v.rests(s, protocol.StatusError)
		v.line(terminal.Red, "%s", term.Joined("✗ "+under(s)+plaintext.Line(s.Role)+" "+how, took, failed))
		return
	}
	joined := v.joined(s)
	v.rests(s, out.Status)
	if v.live && s.Path != "" && (out.Status == protocol.StatusIdle || out.Status == protocol.StatusCompleted && s.Label != "") {
		if v.changed = true; len(v.steps) == 0 {
			v.counters()
		}
		return
	}
	colour := terminal.Green
	if out.Status != protocol.StatusIdle {
		colour = mood(out)
	}
	v.line(colour, "%s", term.Joined(mark(out)+" "+under(s)+route(s.Role, out), took, joined, term.Spent(out.Usage, 0, 0), failed))
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
		v.count(&frame)
	}
	_ = frame.Draw(v.w) // an error has no recipient
}

// counters redraws the progress lines below everything else. They never exceed the terminal's width, because
// a wrapped line could not be erased.
func (v *Display) counters() {
	if !v.live {
		return
	}
	var frame terminal.Painter
	drawn := len(v.drawn) > 0
	up := v.goBack(&frame)
	v.count(&frame)
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

// count draws the progress lines over the old ones, which avoids flicker.
func (v *Display) count(frame *terminal.Painter) {
	v.drawn, v.changed = nil, false
	for i, text := range v.countingLines() {
		if i > 0 {
			frame.Text("\n")
		}
		text = v.fit(text)
		frame.Control(terminal.ClearLine)
		frame.Text(text)
		v.drawn, v.drawnAt = append(v.drawn, diagram.Columns(text)), v.now()
	}
}

// countingLines returns a line for each running step, as many as fit, and one that counts the rest.
func (v *Display) countingLines() []string {
	const unknown, around = 24, 4
	if len(v.steps) == 0 {
		return nil
	}
	_, most := v.size()
	if most == 0 {
		most = unknown
	}
	return v.tree(max(most-around, 1))
}

func (v *Display) counting(s *stepAtWork) string {
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
	v.counters()
}

// family describes the states of children that run a role together.
type family struct {
	engine.StepInfo // the step that will join them
	since           time.Time
	stand           map[string]protocol.Status // by key
}

func (v *Display) children(of engine.StepInfo, stand []protocol.ChildOutput) {
	f := v.families[of.Path]
	if f == nil || f.Number != of.Number || f.Thread != of.Thread {
		f = &family{StepInfo: of, since: v.now(), stand: map[string]protocol.Status{}}
		if v.families == nil {
			v.families = map[string]*family{}
		}
		v.families[of.Path] = f
	}
	for _, c := range stand {
		f.stand[c.Key] = c.Status
	}
	v.changed = true
}

// rests records a thread's status after a step.
func (v *Display) rests(s engine.StepInfo, at protocol.Status) {
	delete(v.families, s.Path) // its children are joined
	parent, key := cutPath(s.Path)
	if f := v.families[parent]; f != nil && s.Path != "" {
		f.stand[key] = at
	}
}

// joined describes the children that a step has joined, or returns "".
func (v *Display) joined(s engine.StepInfo) string {
	f := v.families[s.Path]
	if f == nil || f.Number != s.Number || len(f.stand) < 2 {
		return ""
	}
	return v.counted(f)
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

// tree returns the running threads in at most most lines. Those nearest to the root come first; the rest are
// counted.
func (v *Display) tree(most int) []string {
	var all []branch
	add := func(path, label, text string, leaf bool) {
		keys := strings.FieldsFunc(path, func(c rune) bool { return c == '/' })
		_, name := cutPath(cmp.Or(label, path))
		all = append(all, branch{keys, name, text, leaf})
	}
	roles := map[string]bool{} // roles that children run
	for _, s := range v.steps {
		if s.Path != "" {
			roles[s.Role] = true
		}
	}
	for _, s := range v.steps {
		text := v.counting(s)
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
		add(path, f.Label, plaintext.Line(f.Role)+" · "+v.counted(f)+" · "+v.since(f.since), false)
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

// counted describes the number of children by status.
func (v *Display) counted(f *family) string {
	atWork := map[string]bool{}
	for _, s := range v.steps {
		if rest, below := strings.CutPrefix("/"+s.Path, strings.TrimSuffix("/"+f.Path, "/")+"/"); below && rest != "" {
			key, _, _ := strings.Cut(rest, "/")
			atWork[key] = true
		}
	}
	var done, failed, asks, limited, busy, left int
	for key, at := range f.stand {
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
	words := []string{fmt.Sprintf("%d of %d done", done, len(f.stand))}
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
