package runenv

import (
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/proc"
)

// Mark returns an environment entry for the processes that an agent starts and that may
// outlive it. Processes that still carry the mark of a killed try are ended now, since they
// would work alongside this one; those that carry it when the step is over are ended then.
// Only Linux shows which processes carry it.
func (r *Run) Mark() string {
	entry := protocol.EnvStartedFor + "=" + r.Key
	r.adopt()
	if r.marks || r.Env.Get(protocol.EnvStartedFor) == r.Key {
		return entry // or a marked process started us: ending it would end us
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

// adopt makes this process the parent of all orphans among its descendants, so that they
// can be ended whatever they have done to their environment.
func (r *Run) adopt() {
	if r.adopts || !r.Process || !proc.Adopt() {
		return
	}
	r.adopts = true
	r.AtEnd(r.EndChildren)
}

// Adopts reports whether what is started for the step becomes a child of this process
// when it loses its parent, after [Run.Mark]: then [Run.EndChildren] and
// proc.KillChildren find it. Only Linux can do that, and only a process that is an
// agent does.
func (r *Run) Adopts() bool { return r.adopts }

// EndChildren ends all processes that this one has started or adopted, and warns the user.
// No child that somebody waits for may be running.
func (r *Run) EndChildren() {
	if r.adopts {
		n, err := proc.KillChildren(nil)
		r.tellEnded(n, err, "left running with an environment of their own, ended")
	}
}

// tellEnded warns the user of processes that were ended.
func (r *Run) tellEnded(n int, err error, what string) {
	if n > 0 {
		r.Warn("processes %s: %d", what, n)
	}
	if err != nil {
		r.Warn("processes that were left running: %v", err)
	}
}
