package engine

import (
	"context"

	"github.com/united-workforce/uwf/engine/rundir"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/engine/workspace"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
)

// task is what the next step of a thread must be, whoever makes it.
type task struct {
	role       string
	prompt     string
	promptHash protocol.Hash // of the text node
	command    []string      // of a role that is one; nil for another, or where only the thread's history knows it
	cwd        string        // its location; once [Engine.Workplace] has judged it, the directory itself
	limitBase  int
	resumes    bool // it answers a suspension, or reopens a completed thread
	replaces   bool // it takes the place of the head
	// Of a step that is made again: putBack are the files from before it, with which the agent
	// begins, and known those after it; "": it begins with the files that are there.
	putBack, known protocol.Tree
	keepFiles      bool
	kept           *workspace.Keeping // with the files from before it laid already; nil: they are not
}

// graphTask turns the decision to run a role into a task.
func (e *Engine) graphTask(ctx context.Context, p *status.Position, d moderator.Decision) (task, error) {
	t := task{role: d.Role, prompt: d.Prompt, command: d.Command, cwd: d.Location, limitBase: p.LimitBase()}
	var err error
	t.promptHash, err = e.Batch().Add(ctx, protocol.Text(t.prompt))
	return t, err
}

// givenTo reports whether a run was given exactly this task.
func (t task) givenTo(r rundir.Record) bool {
	return r.Role == t.role && r.PromptHash == t.promptHash && r.LimitBase == t.limitBase &&
		r.Resumes == t.resumes && r.Replaces == t.replaces
}
