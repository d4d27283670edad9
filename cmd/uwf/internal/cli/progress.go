package cli

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/united-workforce/uwf/cmd/uwf/internal/engine"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/frontmatter"
)

// progress tells on stderr what a step does while it runs: on a terminal each
// tool as it is called and a line that counts up; elsewhere one line when a
// step begins and one when it ends.
func (a *app) progress() engine.Progress {
	if a.flags.quiet {
		return nil
	}
	p := &progress{w: a.env.Stderr, now: a.env.Now}
	if cmdline.IsTerminal(a.env.Stderr) {
		p.live = true
	}
	return p
}

type progress struct {
	w    io.Writer
	now  func() time.Time
	live bool

	mu     sync.Mutex // the ticker writes too
	stop   chan struct{}
	ended  sync.WaitGroup
	turns  int
	tokens int64
	// writing is the end of what the agent is writing.
	writing string
}

// StepStarted implements engine.Progress.
func (p *progress) StepStarted(s engine.StepInfo) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turns, p.tokens = 0, 0
	what := ""
	if s.Adopted {
		what = ", adopting the result of an interrupted run"
	}
	p.line("step %d: %s (%s)%s", s.Number, clean(s.Role), clean(s.Agent), what)
	if p.live {
		p.stop = make(chan struct{})
		p.ended.Add(1)
		go p.tick(s, p.stop)
	}
}

// tick keeps the counting line up to date until the step ends.
func (p *progress) tick(s engine.StepInfo, stop <-chan struct{}) {
	defer p.ended.Done()
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for {
		select {
		case <-stop:
			return
		case <-t.C:
			p.mu.Lock()
			p.counter(s)
			p.mu.Unlock()
		}
	}
}

// Turn implements engine.Progress.
func (p *progress) Turn(s engine.StepInfo, t protocol.Turn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t.Role == protocol.TurnAssistant {
		p.turns++
	}
	if t.Usage != nil {
		p.tokens += t.Usage.InputTokens + t.Usage.CacheReadTokens + t.Usage.CacheWriteTokens + t.Usage.OutputTokens
	}
	if !p.live {
		return
	}
	for _, call := range t.ToolCalls {
		p.line("  → %s %s", clean(call.Name), firstLine(argument(call.Args), 80))
	}
	if t.Role == protocol.TurnAssistant && len(t.ToolCalls) == 0 && t.Content != "" {
		p.line("  ✎ %s", firstLine(said(t.Content), 90))
	}
	p.counter(s)
}

// Writing implements engine.Progress.
func (p *progress) Writing(s engine.StepInfo, t protocol.Turn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writing = lastWords(said(t.Content), 60)
	if p.live {
		p.counter(s)
	}
}

// StepEnded implements engine.Progress.
func (p *progress) StepEnded(s engine.StepInfo, out protocol.StepOutput, err error) {
	if p.stop != nil {
		close(p.stop)
		p.ended.Wait()
		p.stop = nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	took := duration(p.now().Sub(s.Started).Milliseconds())
	if err != nil {
		p.line("step %d: %s failed after %s", s.Number, clean(s.Role), took)
		return
	}
	cost := ""
	if out.Usage != nil {
		cost = ", " + tokens(out.Usage)
	}
	p.line("step %d: %s done in %s%s; %s", s.Number, clean(s.Role), took, cost, clean(statusText(out)))
}

// line prints a whole line, in place of the counting one.
func (p *progress) line(format string, args ...any) {
	if p.live {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
	fmt.Fprintf(p.w, format+"\n", args...)
}

// counter is the line that stays last while a step runs.
func (p *progress) counter(s engine.StepInfo) {
	took := p.now().Sub(s.Started).Round(time.Second)
	fmt.Fprintf(p.w, "\r\x1b[K  %s · %s · %d turns · %d tokens", clean(s.Role), took, p.turns, p.tokens)
}

// said is what an answer says to people: the text behind its frontmatter, if it
// has both.
func said(content string) string {
	if answer, err := frontmatter.Parse(content); err == nil && strings.TrimSpace(answer.Body) != "" {
		return answer.Body
	}
	return content
}

// argument is the most telling argument of a tool call.
func argument(args any) string {
	switch args := args.(type) {
	case string:
		return args
	case map[string]any:
		for _, key := range []string{"command", "path", "pattern", "url", "query"} {
			if s, ok := args[key].(string); ok {
				return s
			}
		}
	}
	return ""
}
