// Package trace runs a program and everything that it starts under ptrace(2),
// counts the system calls with which they change the disk, and makes one of them
// go wrong: the process is killed before it or in its middle, or the call fails or is
// cut short. Or it records them all, so that the power can be cut after any of them.
//
// It works where the calls of the machine are known to it (Linux on amd64). A program
// needs no preparation, so what is tested is what ships.
package trace

import (
	"errors"
	"fmt"
	"os/exec"

	"github.com/united-workforce/uwf/util/durable/durabletest"
)

// ErrUnsupported means that this system's calls cannot be traced here.
var ErrUnsupported = errors.New("system calls can be traced only on Linux on amd64")

// Fault is what happens at a call, instead of it.
type Fault string

// The faults.
const (
	None    Fault = ""         // nothing: only count
	Kill    Fault = "kill"     // SIGKILL to the process that calls, before the call
	KillAll Fault = "kill all" // SIGKILL to every traced process, before the call
	EIO     Fault = "EIO"
	ENOSPC  Fault = "ENOSPC" // this and all later ones: the disk is full
	EROFS   Fault = "EROFS"  // the same: it is read-only
	EINTR   Fault = "EINTR"
	Short   Fault = "short" // only half of a write is written; other calls are left alone
	Torn    Fault = "torn"  // the same, and then SIGKILL
)

// Faults are all of them that do something.
func Faults() []Fault { return []Fault{Kill, KillAll, EIO, ENOSPC, EROFS, EINTR, Short, Torn} }

// lasts reports whether the calls behind the one in question fail, too.
func (f Fault) lasts() bool { return f == ENOSPC || f == EROFS }

// Says is what an error of uwf holds because of the fault; "" if that is not known.
func (f Fault) Says() string {
	switch f {
	case ENOSPC:
		return "no space left"
	case EROFS:
		return "read-only"
	}
	return ""
}

// Plan says which call goes wrong, and how.
type Plan struct {
	// Under is the directory in which changes count; writes to pipes count too,
	// since an acknowledgement is one, unless FilesOnly.
	Under     string
	FilesOnly bool
	// At is the number of the call from 1; 0: none.
	At    int
	Fault Fault
	// Own counts only the calls of the program itself, not those of what it starts.
	Own bool
	// Record keeps what was done to the disk below Under, for [durabletest.Replay].
	// It goes with no fault.
	Record bool
}

// Call is a system call that changes the disk, or tells somebody.
type Call struct {
	Process int
	Name    string // as in the manual: "renameat"
	Path    string // what it is about, as far as it can be seen
}

// String is for reports.
func (c Call) String() string { return fmt.Sprintf("%s %s", c.Name, c.Path) }

// Outcome is what was seen.
type Outcome struct {
	Calls  int  // that count
	Hit    Call // the one that went wrong, if the plan's number was reached
	WasHit bool
	Code   int    // exit status of the program; -1 if a signal ended it
	Signal string // which one
	Ops    []durabletest.Op
	Told   int // how many of Ops were done when the program began to print its last line
}

// Run starts cmd and returns when it and all its descendants have ended. Errors
// are those of starting and tracing, and [ErrUnsupported]; how the program ends is in
// the outcome.
func Run(cmd *exec.Cmd, plan Plan) (Outcome, error) { return run(cmd, plan) }
