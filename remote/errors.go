package remote

import (
	"fmt"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/util/plaintext"
)

// ConflictError means that a thread was not where the caller thought.
type ConflictError struct {
	Thread        string
	Want, Got     cas.Hash // "": not known
	WantEnd, Ends bool     // whether it should have ended, and has
}

// Error implements error.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("thread %s has moved at the remote: it should be %s, and is %s", e.Thread, place(e.Want, e.WantEnd), place(e.Got, e.Ends))
}

func place(h cas.Hash, ended bool) string {
	switch {
	case h == "":
		return "unknown"
	case ended:
		return "ended at " + string(h)
	}
	return "active at " + string(h)
}

// LeasedError means that somebody works on a thread.
type LeasedError struct{ Lease Lease }

// Error implements error.
func (e *LeasedError) Error() string {
	return fmt.Sprintf("%s works on thread %s, for %d ms from now at least", plaintext.Line(e.Lease.Holder), e.Lease.Thread, e.Lease.LeftMs)
}

// FenceError means that a lease has ended, or is somebody else's by now.
type FenceError struct {
	Thread string
	Fence  int64
}

// Error implements error.
func (e *FenceError) Error() string {
	return fmt.Sprintf("the lease %d of thread %s has ended: somebody else may work on it", e.Fence, e.Thread)
}

// MissingError means that a node or an object is not there.
type MissingError struct {
	Hash string // or a git object's name
}

// Error implements error.
func (e *MissingError) Error() string {
	return fmt.Sprintf("%s is not there", plaintext.Line(e.Hash))
}

// Is reports that it is one of [cas.ErrNotFound].
func (e *MissingError) Is(target error) bool { return target == cas.ErrNotFound }

// NameError means that a name stands for another workflow than the caller thought.
type NameError struct {
	Name      string
	Want, Got cas.Hash // "": for none
}

// Error implements error.
func (e *NameError) Error() string {
	if e.Got == "" {
		return fmt.Sprintf("the name %s stands for no workflow at the remote, not for %s", plaintext.Line(e.Name), e.Want)
	}
	return fmt.Sprintf("the name %s stands for the workflow %s at the remote", plaintext.Line(e.Name), e.Got)
}

// FaultError means that one side has said what the protocol does not allow.
type FaultError struct{ Problem string }

// Error implements error.
func (e *FaultError) Error() string { return plaintext.Line(e.Problem) }

// LimitError means that the other side's list does not end where every honest one has.
type LimitError struct {
	Most int64
	Of   string // what is counted, for people
}

// Error implements error.
func (e *LimitError) Error() string {
	return fmt.Sprintf("its list has more than %d %s: the rest was not read", e.Most, e.Of)
}

// Faultf is a [*FaultError].
func Faultf(format string, args ...any) error {
	return &FaultError{Problem: fmt.Sprintf(format, args...)}
}

// HashError means that a remote and the store here have different hash functions.
type HashError struct{ Remote, Here cas.Algorithm }

// Error implements error.
func (e *HashError) Error() string {
	return fmt.Sprintf("the remote has %s hashes and the store has %s: nodes cannot go from one to the other", e.Remote, e.Here)
}
