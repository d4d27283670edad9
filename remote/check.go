package remote

import (
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/gitobject"
	"github.com/united-workforce/uwf/util/threadid"
)

// Argument checks for implementations of Remote. All errors are [*FaultError].

// CheckHashes returns an error if there are too many hashes or git object IDs, or if one is invalid.
func CheckHashes[H interface {
	~string
	Valid() bool
}](hashes []H) error {
	if len(hashes) > MaxHashes {
		return Faultf("%d hashes exceed the limit of %d per call", len(hashes), MaxHashes)
	}
	for _, h := range hashes {
		if !h.Valid() {
			return Faultf("%q is not a hash", h)
		}
	}
	return nil
}

// Check returns an error if the swap is invalid.
func (s Swap) Check() error {
	switch {
	case !threadid.Valid(s.Thread):
		return Faultf("%q is not a thread id", s.Thread)
	case s.Was != "" && !s.Was.Valid():
		return Faultf("thread %s: %q is not a hash", s.Thread, s.Was)
	case !s.Head.Valid():
		return Faultf("thread %s: %q is not a hash", s.Thread, s.Head)
	case s.Was == "" && s.WasEnded:
		return Faultf("thread %s: an unknown thread cannot have an end", s.Thread)
	case s.Was == "" && s.Fence != 0:
		return Faultf("thread %s: an unknown thread cannot have a lease", s.Thread)
	case s.Fence < 0:
		return Faultf("thread %s: invalid fencing token %d", s.Thread, s.Fence)
	}
	if e := s.Ended; e != nil && (!e.Status.Ends() || e.Workflow == "") {
		return Faultf("thread %s: invalid end status %q or no workflow", s.Thread, e.Status)
	}
	if facts, err := json.Marshal(Shared(s.Facts)); err != nil || len(facts) > MaxFacts {
		return Faultf("thread %s: its facts have %d bytes; the limit is %d (%v)", s.Thread, len(facts), MaxFacts, err)
	}
	return s.Ended.check(s.Thread)
}

func (e *Ended) check(thread string) error {
	switch {
	case e == nil:
	case e.Status == "" || e.Status == protocol.StatusResumed || len(e.Status) > 32 ||
		strings.Trim(string(e.Status), "abcdefghijklmnopqrstuvwxyz_") != "":
		return Faultf("thread %s: invalid end status %q", thread, e.Status)
	case e.CompletedAt < 0 || e.CompletedAt > heads.LastMs:
		return Faultf("thread %s: invalid time %d", thread, e.CompletedAt)
	case e.Workflow != "" && !e.Workflow.Valid(): // a home can end a thread whose workflow is unreadable
		return Faultf("thread %s: %q is not a hash", thread, e.Workflow)
	}
	return nil
}

// Check returns an error if the redaction is invalid.
func (r Redaction) Check() error {
	switch {
	case !r.Hash.Valid():
		return Faultf("%q is not a hash", r.Hash)
	case r.Thread != "" && !threadid.Valid(r.Thread):
		return Faultf("%q is not a thread id", r.Thread)
	case len(r.Reason) > cas.MaxReason:
		return Faultf("the reason of a redaction has %d bytes; the limit is %d", len(r.Reason), cas.MaxReason)
	}
	return nil
}

// Compare is the comparison of the compare-and-swap. is is the thread's state, or nil if the remote doesn't
// have the thread. The error is a [*ConflictError].
func (s Swap) Compare(is *State) error {
	var got State
	if is != nil {
		got = *is
	}
	if got.Head == s.Was && (got.Ended != nil) == s.WasEnded {
		return nil
	}
	return &ConflictError{Thread: s.Thread, Want: s.Was, WantEnd: s.WasEnded, Got: got.Head, Ends: got.Ended != nil}
}

// CheckFence compares the fencing token of a swap with the current lease, which is nil if there is none.
func (s Swap) CheckFence(lease *Lease) error {
	switch {
	case s.Fence == 0 && lease != nil:
		return &LeasedError{Lease: lease.Public()}
	case s.Fence != 0 && (lease == nil || lease.Fence != s.Fence):
		return &FenceError{Thread: s.Thread, Fence: s.Fence}
	}
	return nil
}

// Public returns the lease without its fencing token, as other clients see it.
func (l Lease) Public() Lease {
	l.Fence = 0
	return l
}

// CheckLease returns an error if the arguments of a lease are invalid.
func CheckLease(thread, holder string, duration time.Duration) error {
	if holder == "" || len(holder) > MaxHolder || !utf8.ValidString(holder) {
		return Faultf("thread %s: lease holder name must have 1 to %d bytes", thread, MaxHolder)
	}
	return CheckDuration(thread, duration)
}

// CheckDuration returns an error if the duration of a lease is invalid.
func CheckDuration(thread string, duration time.Duration) error {
	switch {
	case !threadid.Valid(thread):
		return Faultf("%q is not a thread id", thread)
	case duration < MinLease || duration > MaxLease:
		return Faultf("thread %s: invalid lease duration %s: want %s to %s", thread, duration, MinLease, MaxLease)
	}
	return nil
}

// CheckName returns an error if the arguments of [Remote.Register] are invalid.
func CheckName(name string, was, workflow cas.Hash) error {
	switch {
	case name == "" || len(name) > MaxName || !utf8.ValidString(name):
		return Faultf("invalid workflow name %q", name)
	case was != "" && !was.Valid():
		return Faultf("%q is not a hash", was)
	case !workflow.Valid():
		return Faultf("%q is not a hash", workflow)
	}
	return nil
}

// Check decodes a record and returns its node or tombstone. It returns an error if the content doesn't match
// the hash: [*cas.CorruptError], or an error of [cas.Algorithm.Check].
func (r Record) Check(a cas.Algorithm) (cas.Node, *cas.Tombstone, error) {
	n, err := a.UnmarshalFile(r.Hash, r.File)
	if redacted, ok := cas.AsRedacted(err); ok {
		t := redacted.Tombstone
		if t.Foreign {
			return n, nil, Faultf("the tombstone of %s is marked as foreign, which is allowed only in a store", r.Hash)
		}
		return n, &t, nil
	}
	if err == nil {
		err = a.Check(n)
	}
	return n, nil, err
}

// Check returns an error if the content doesn't match the ID.
func (o Object) Check() error {
	if o.Kind != gitobject.File && o.Kind != gitobject.Directory {
		return Faultf("unknown object kind %s", string(o.Kind))
	}
	if len(o.Content) > gitobject.MaxSize {
		return Faultf("object %s has %d bytes; the limit is %d", o.ID, len(o.Content), gitobject.MaxSize)
	}
	if !o.ID.Valid() || gitobject.ID(o.Kind, o.Content, o.ID.Function()) != o.ID {
		return Faultf("object %q does not match its name", o.ID)
	}
	return nil
}

// Check returns an error if the state is invalid.
func (s State) Check() error {
	switch {
	case s.Fault != "":
		return nil
	case !threadid.Valid(s.Thread):
		return Faultf("%q is not a thread id", s.Thread)
	case !s.Head.Valid():
		return Faultf("thread %s: %q is not a hash", s.Thread, s.Head)
	case s.Lease != nil && (len(s.Lease.Holder) > MaxHolder || s.Lease.LeftMs < 0 ||
		s.Lease.LeftMs > MaxLease.Milliseconds()):
		return Faultf("thread %s: invalid lease", s.Thread)
	}
	return s.Ended.check(s.Thread)
}
