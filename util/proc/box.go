package proc

import (
	"errors"
	"os"
	"syscall"
)

// Box makes a child the first process of user, mount, pid and IPC namespaces of its own. Its
// program, uwf-box, does there what its plan says, and runs another program; all that this has
// started ends with the child.
type Box struct {
	Plan    []byte   // the child reads it from descriptor 3
	Network bool     // it has a network namespace, too
	Owner   *Owner   // whose files it writes, besides its user's
	Status  *os.File // the child writes there how the program ended, for who comes after us; may be nil
	// Listener gets the listener that uwf-box makes in its network, if the plan has one. It owns it.
	Listener func(*os.File)
	// Else is what is started where the child could not do its part, with the reason. Nil: nothing is.
	Else func(why *BoxError) (Command, error)
}

// Owner is a user that has files.
type Owner struct{ UID, GID int }

// BoxError is why a program could not be run in namespaces of its own.
type BoxError struct {
	Stage string // what could not be done, such as "namespaces", "mount"
	Err   error
}

// Error implements error.
func (e *BoxError) Error() string { return e.Stage + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *BoxError) Unwrap() error { return e.Err }

// refusal is what the child said: an error text of its own with the number of the kernel's error.
type refusal struct {
	text string
	no   syscall.Errno
}

// Error implements error.
func (r refusal) Error() string { return r.text }

// Is compares the kernel's error.
func (r refusal) Is(target error) bool { return r.no != 0 && errors.Is(r.no, target) }

// startBox starts the child, or what is to be started instead.
func startBox(c Command) (*Child, error) {
	box := c.Box
	c.Box = nil
	child, err := box.start(c)
	var why *BoxError
	if err == nil || !errors.As(err, &why) {
		return child, err
	}
	if box.Else == nil {
		return nil, why
	}
	instead, err := box.Else(why)
	if err != nil {
		return nil, err
	}
	instead.Stdin, instead.Stdout, instead.Stderr = c.Stdin, c.Stdout, c.Stderr
	instead.Session, instead.WithParent = c.Session, c.WithParent
	instead.Inherit = append(c.Inherit, instead.Inherit...)
	return Start(instead)
}
