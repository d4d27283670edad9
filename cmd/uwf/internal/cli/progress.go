package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/moderator/diagram"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/frontmatter"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/render"
	"github.com/united-workforce/uwf/util/terminal"
)

// progress tells on stderr what a step does while it runs.
func (a *app) progress() engine.Progress {
	if a.flags.quiet {
		return nil
	}
	return a.display(a.env.Stderr)
}

// display tells what steps do, whoever makes them: on a terminal each tool as it is
// called and a line that counts up; elsewhere one line when a step begins and one
// when it ends.
func (a *app) display(w io.Writer) *display {
	return &display{
		w: w, now: a.env.Now, live: terminal.Is(w), colours: cmdline.Colours(a.env, w),
		width: func() int { columns, _ := terminal.Size(w); return columns },
	}
}

type display struct {
	w       io.Writer
	now     func() time.Time
	live    bool
	colours bool
	width   func() int // of the terminal in columns; 0: unknown

	mu      sync.Mutex // the ticker writes too
	stop    chan struct{}
	ended   sync.WaitGroup
	turns   int
	calls   map[string]string // names by id
	failed  int               // calls
	tokens  int64
	known   bool // the tokens are
	writing string
}

// StepStarted implements engine.Progress.
func (v *display) StepStarted(s engine.StepInfo) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.turns, v.tokens, v.known, v.writing = 0, 0, false, ""
	v.calls, v.failed = map[string]string{}, 0
	what := ""
	if s.Adopted {
		what = ", adopting the result of an interrupted run"
	}
	v.line(terminal.Bold, "step %d: %s (%s)%s", s.Number, plaintext.Line(s.Role), plaintext.Line(s.Agent), what)
	if v.live && s.Ended.IsZero() {
		v.stop = make(chan struct{})
		v.ended.Add(1)
		go v.tick(s, v.stop)
	}
}

// tick keeps the counting line up to date until the step ends.
func (v *display) tick(s engine.StepInfo, stop <-chan struct{}) {
	defer v.ended.Done()
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for {
		select {
		case <-stop:
			return
		case <-t.C:
			v.mu.Lock()
			v.counter(s)
			v.mu.Unlock()
		}
	}
}

// Turn implements engine.Progress.
func (v *display) Turn(s engine.StepInfo, t protocol.Turn) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if t.Role == protocol.TurnAssistant {
		v.turns++
		v.writing = ""
	}
	if t.Usage.Counted() {
		v.known = true
		v.tokens += t.Usage.InputTokens + t.Usage.CacheReadTokens + t.Usage.CacheWriteTokens + t.Usage.OutputTokens
	}
	why := failure(t)
	if why != "" {
		v.failed++
	}
	for _, call := range t.ToolCalls {
		v.calls[call.ID] = call.Name
	}
	name := v.calls[t.ToolCallID]
	if t.Role == protocol.TurnTool {
		delete(v.calls, t.ToolCallID)
	}
	if !v.live {
		return
	}
	if why != "" {
		v.line(terminal.Red, "%s", v.fit("  ✗ "+joined(plaintext.Line(name), firstLine(why, 200))))
	}
	for _, call := range t.ToolCalls {
		v.line(terminal.Faint, "%s", v.fit(strings.TrimRight(fmt.Sprintf("  → %s %s", plaintext.Line(call.Name), firstLine(argument(call.Args), 200)), " ")))
	}
	if t.Role == protocol.TurnAssistant && len(t.ToolCalls) == 0 && strings.TrimSpace(t.Content) != "" {
		v.line(terminal.Plain, "%s", v.fit("  ✎ "+firstLine(said(t.Content), 200)))
	}
	v.counter(s)
}

// Writing implements engine.Progress.
func (v *display) Writing(s engine.StepInfo, t protocol.Turn) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.writing = lastWords(said(t.Content), 60)
	if v.live {
		v.counter(s)
	}
}

// StepEnded implements engine.Progress.
func (v *display) StepEnded(s engine.StepInfo, out protocol.StepOutput, err error) {
	if v.stop != nil {
		close(v.stop)
		v.ended.Wait()
		v.stop = nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	end := s.Ended
	if end.IsZero() {
		end = v.now()
	}
	took := sinceText(s.Started, end)
	failed := ""
	if v.failed > 0 {
		failed = render.Count(v.failed, "tool call") + " failed"
	}
	if err != nil {
		how := "failed"
		if signal := (*engine.SignalError)(nil); errors.As(err, &signal) {
			how = "stopped"
		}
		v.line(terminal.Red, "%s", joined("✗ "+plaintext.Line(s.Role)+" "+how, took, failed))
		return
	}
	colour := terminal.Green
	if out.Status != protocol.StatusIdle {
		colour = mood(out)
	}
	v.line(colour, "%s", joined(mark(out)+" "+route(s.Role, out), took, spent(out.Usage, 0, 0), failed))
}

// line prints a whole line, in place of the counting one.
func (v *display) line(in terminal.Sequence, format string, args ...any) {
	var frame terminal.Painter
	if v.live {
		frame.Control(terminal.ClearLine)
	}
	if !v.colours {
		in = terminal.Plain
	}
	painted(&frame, in, fmt.Sprintf(format, args...))
	frame.Text("\n")
	_ = frame.Draw(v.w) // nobody is there to be told
}

// counter is the line that stays last while a step runs. It keeps within the
// terminal: a line that wraps could not be taken back.
func (v *display) counter(s engine.StepInfo) {
	parts := []string{plaintext.Line(s.Role), max(0, v.now().Sub(s.Started)).Round(time.Second).String(), render.Count(v.turns, "turn")}
	if v.known {
		parts = append(parts, view.Thousands(v.tokens)+" tokens")
	}
	if v.writing != "" {
		parts = append(parts, v.writing)
	}
	text := "  " + strings.Join(parts, " · ")
	var frame terminal.Painter
	frame.Control(terminal.ClearLine)
	frame.Text(v.fit(text))
	_ = frame.Draw(v.w)
}

// fit cuts a text to the terminal.
func (v *display) fit(text string) string {
	const unknown = 100
	width := v.width()
	if width == 0 {
		width = unknown
	}
	return diagram.Cut(text, width-1)
}

// said is what an answer says to people: the text behind its frontmatter, if it
// has both.
func said(content string) string {
	if answer, err := frontmatter.Parse(content); err == nil && strings.TrimSpace(answer.Body) != "" {
		return answer.Body
	}
	return content
}

// failure says why a tool call was refused or has failed, "" if it has not. Tools and
// adapters say so in the first word, and commands in their last line.
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

// argument is the most telling argument of a tool call.
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

// sinceText is a span of time for people.
func sinceText(from, to time.Time) string { return render.Duration(to.Sub(from).Milliseconds()) }
