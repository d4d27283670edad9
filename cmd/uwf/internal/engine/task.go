package engine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/jsonschema/library"
)

// task is what the next step of a thread must be, whoever makes it.
type task struct {
	role       string
	prompt     string
	promptHash protocol.Hash // of the text node
	cwd        string        // absolute
	limitBase  int
	resumes    bool // it answers a suspension, or reopens a completed thread
	replaces   bool // it takes the place of the head
}

// task turns a decision to run a role into a task.
func (e *Engine) task(ctx context.Context, p *position, d moderator.Decision) (task, error) {
	t := task{role: d.Role, prompt: d.Prompt, cwd: d.Location, limitBase: p.limitBase()}
	start := p.thread.Start.Cwd
	if start == "" { // the original's first versions had none
		start = e.Env.Dir
	}
	if !filepath.IsAbs(t.cwd) { // "": the thread's own
		t.cwd = filepath.Join(start, t.cwd)
	}
	var err error
	t.promptHash, err = e.batch().Add(ctx, protocol.Text(t.prompt))
	return t, err
}

// limitBase is where the thread's limits count from.
func (p *position) limitBase() int {
	if p.thread.Last == nil {
		return 0
	}
	return p.thread.Last.LimitBase
}

// checkDir reports a directory that is not there before the agent does it in
// words that nobody understands.
func (t task) checkDir() error {
	info, err := os.Stat(t.cwd)
	switch {
	case err != nil && os.IsNotExist(err):
		return fail(protocol.CodeFailed, "role %q cannot work in %s: there is no such directory", t.role, t.cwd)
	case err != nil:
		return fmt.Errorf("role %q cannot work in its directory: %w", t.role, err)
	case !info.IsDir():
		return fail(protocol.CodeFailed, "role %q cannot work in %s: it is not a directory", t.role, t.cwd)
	}
	return nil
}

func (e *Engine) batch() *cas.Batch { return cas.NewBatch(e.Store, e.Env.Now, library.Judge) }
