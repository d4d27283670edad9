// Package trace runs a program and its descendants under ptrace(2), counts the system calls with which they
// change the disk, and makes one of them fail: the process is killed before or during the call, or the call
// fails or is cut short. Alternatively it records all calls, to simulate a power failure after any of them.
//
// It works only for system calls that it knows (Linux on amd64). Programs need no preparation, so the
// released ones can be tested.
package trace

import (
	"errors"
	"fmt"
	"os/exec"

	"github.com/united-workforce/uwf/util/durable/durabletest"
)

// ErrUnsupported reports that system calls cannot be traced on this system.
var ErrUnsupported = errors.New("system calls can be traced only on Linux on amd64")

// Fault is an effect that replaces a call.
type Fault string

// Faults.
const (
	None    Fault = ""         // nothing: only count
	Kill    Fault = "kill"     // SIGKILL to the calling process, before the call
	KillAll Fault = "kill all" // SIGKILL to every traced process, before the call
	EIO     Fault = "EIO"
	ENOSPC  Fault = "ENOSPC" // this and all later calls: the disk is full
	EROFS   Fault = "EROFS"  // this and all later calls: the disk is read-only
	EINTR   Fault = "EINTR"
	Short   Fault = "short" // only half of a write is written; other calls are unaffected
	Torn    Fault = "torn"  // the same, followed by SIGKILL
)

// Faults returns all faults except None.
func Faults() []Fault { return []Fault{Kill, KillAll, EIO, ENOSPC, EROFS, EINTR, Short, Torn} }

// lasts reports whether later calls fail as well.
func (f Fault) lasts() bool { return f == ENOSPC || f == EROFS }

// Says returns the text of uwf's error for the fault, or "" if unknown.
func (f Fault) Says() string {
	switch f {
	case ENOSPC:
		return "no space left"
	case EROFS:
		return "read-only"
	}
	return ""
}

// Plan selects the call and the fault.
type Plan struct {
	// Under is the directory in which changes count. Writes to pipes, such as acknowledgements, count as
	// well, unless FilesOnly is set.
	Under     string
	FilesOnly bool
	// At is the number of the call, from 1; 0 means none.
	At    int
	Fault Fault
	// Own counts only the calls of the program itself, not of its descendants.
	Own bool
	// Record records changes to the disk below Under for [durabletest.Replay]. It cannot be combined with a
	// fault.
	Record bool
}

// Call is a system call that changes the disk or writes to a pipe.
type Call struct {
	Process int
	Name    string // as in the manual: "renameat"
	Path    string // its object, if known
}

// String formats the call for reports.
func (c Call) String() string { return fmt.Sprintf("%s %s", c.Name, c.Path) }

// Outcome is the result of a run.
type Outcome struct {
	Calls  int  // number of calls that count
	Hit    Call // the call with the fault, if it was reached
	WasHit bool
	Code   int    // exit status of the program; -1 after a signal
	Signal string // name of the signal
	Ops    []durabletest.Op
	Told   int // how many Ops were done when the program began to print its last line
}

// Run starts cmd and returns when it and all its descendants have ended. Errors concern starting and tracing,
// or are [ErrUnsupported]; the program's exit status is in the outcome.
func Run(cmd *exec.Cmd, plan Plan) (Outcome, error) { return run(cmd, plan) }
