// Package proc starts a child in a process group of its own and ends the whole
// group in bounded time, whatever the child does.
package proc

import (
	"context"
	"os"
	"time"
)

// Command is a child to start. Stdin is closed; Stdout and Stderr are files, so
// that the child outlives its parent.
type Command struct {
	Path   string
	Args   []string // without the program's name
	Dir    string
	Env    []string
	Stdout *os.File
	Stderr *os.File
	// Inherit is passed to the child, from descriptor 3 on.
	Inherit []*os.File
}

// Child is a started process, the leader of its group.
type Child struct{ _ struct{} }

// Start starts the child.
func Start(c Command) (*Child, error) { panic("unwritten") }

// Pid is the child's process id and its group's.
func (c *Child) Pid() int { panic("unwritten") }

// Wait waits for the child. When ctx ends first the group is asked to stop
// (SIGTERM, or SIGINT if that is the cause), killed after grace, and Wait
// returns ctx's cause. When the child has ended, what is left of its group is
// killed too.
func (c *Child) Wait(ctx context.Context, grace time.Duration) (Status, error) { panic("unwritten") }

// Status is how a child ended.
type Status struct {
	Code   int    // exit status; -1 if a signal ended it
	Signal string // such as "killed"; "" if it exited
}

// StopGroup asks a group of a child that is not ours to stop and kills it after grace.
// alive tells whether it still runs (for an agent: whether its lock is held).
func StopGroup(ctx context.Context, pid int, grace time.Duration, alive func() bool) error {
	panic("unwritten")
}
