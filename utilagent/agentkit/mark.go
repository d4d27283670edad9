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
	if r.kit.marks || r.Env.Get(envMark) == run {
		return entry // or we were started by such a one: to end it would end us
	}
	r.kit.marks = true
	r.endMarked(entry, "of an interrupted try, still at work, ended")
	r.AtEnd(func() { r.endMarked(entry, "left running, ended with the step") })
	return entry
}

// endMarked ends processes and tells a person of them.
func (r *Request) endMarked(entry, what string) {
	n, err := proc.KillMarked(entry)
	if n > 0 {
		fmt.Fprintf(r.Env.Stderr, "warning: processes %s: %d\n", what, n)
	}
	if err != nil {
		fmt.Fprintf(r.Env.Stderr, "warning: processes that were left running: %v\n", err)
	}
}
