package runenv

import (
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/proc"
)

// Mark returns an entry for the environment of what an agent starts and may
// outlive it: programs, commands. What has it from a try that was killed is ended
// now, since it would work beside this one; what has it when the step is over is
// ended then. Only Linux shows who has it.
func (r *Run) Mark() string {
	entry := protocol.EnvStartedFor + "=" + r.Key
	r.adopt()
	if r.marks || r.Env.Get(protocol.EnvStartedFor) == r.Key {
		return entry // or we were started by such a one: to end it would end us
	}
	r.marks = true
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
func (r *Run) adopt() {
	if r.adopts || !r.Process || !proc.Adopt() {
		return
	}
	r.adopts = true
	r.AtEnd(r.EndChildren)
}

// Adopts tells whether what is started for the step becomes a child of this process
// when it loses its parent, after [Run.Mark]: then [Run.EndChildren] and
// proc.KillChildren find it. Only Linux can do that, and only a process that is an
// agent does.
func (r *Run) Adopts() bool { return r.adopts }

// EndChildren ends all that this process has started or adopted, and tells a person
// of them. Nothing may be at work that somebody waits for.
func (r *Run) EndChildren() {
	if r.adopts {
		n, err := proc.KillChildren(nil)
		r.tellEnded(n, err, "left running with an environment of their own, ended")
	}
}

// tellEnded tells a person of processes that were ended.
func (r *Run) tellEnded(n int, err error, what string) {
	if n > 0 {
		r.Warn("processes %s: %d", what, n)
	}
	if err != nil {
		r.Warn("processes that were left running: %v", err)
	}
}
