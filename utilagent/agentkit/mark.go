package agentkit

import (
	"cmp"
	"fmt"
	"path/filepath"

	"github.com/united-workforce/uwf/util/proc"
)

// envMark marks what an agent has started for its step. Its value is the same for
// all tries of a thread's steps.
const envMark = "UWF_STARTED_FOR"

// Mark returns an entry for the environment of what an agent starts and may
// outlive it: programs, commands. What has it from a try that was killed is ended
// now, since it would work beside this one; what has it when the step is over is
// ended then. Only Linux shows who has it.
func (r *Request) Mark() string {
	run := cmp.Or(r.RunDir, filepath.Join(r.Dirs.Home, string(r.kit.thread.Head)))
	entry := envMark + "=" + run
	r.adopt()
	if r.kit.marks || r.Env.Get(envMark) == run {
		return entry // or we were started by such a one: to end it would end us
	}
	r.kit.marks = true
	n, err := proc.KillMarked(entry)
	r.tellEnded(n, err, "of an interrupted try, still at work, ended")
	r.AtEnd(func() {
		n, err := proc.KillMarked(entry)
		r.tellEnded(n, err, "left running, ended with the step")
	})
	return entry
}

// adopt makes us the parent of all that what we start leaves behind, so that it can
// be ended whatever it has done to its environment.
func (r *Request) adopt() {
	if r.kit.adopts || !r.kit.opts.process || !proc.Adopt() {
		return
	}
	r.kit.adopts = true
	r.AtEnd(r.EndChildren)
}

// Adopts tells whether what is started for the step becomes a child of this process
// when it loses its parent, after [Request.Mark]: then [Request.EndChildren] and
// proc.KillChildren find it. Only Linux can do that, and only a process that is an
// agent, by [Process], does.
func (r *Request) Adopts() bool { return r.kit.adopts }

// EndChildren ends all that this process has started or adopted, and tells a person
// of them. Nothing may be at work that somebody waits for.
func (r *Request) EndChildren() {
	if r.kit.adopts {
		n, err := proc.KillChildren(nil)
		r.tellEnded(n, err, "left running with an environment of their own, ended")
	}
}

// tellEnded tells a person of processes that were ended.
func (r *Request) tellEnded(n int, err error, what string) {
	if n > 0 {
		fmt.Fprintf(r.Env.Stderr, "warning: processes %s: %d\n", what, n)
	}
	if err != nil {
		fmt.Fprintf(r.Env.Stderr, "warning: processes that were left running: %v\n", err)
	}
}
