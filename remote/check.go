package remote

import (
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/threadid"
)

// What every remote checks of its arguments. All errors are [*FaultError].

// CheckHashes refuses too many hashes, and what is none.
func CheckHashes(hashes []cas.Hash) error {
	if len(hashes) > MaxHashes {
		return Faultf("%d hashes are too many for one call: at most %d", len(hashes), MaxHashes)
	}
	for _, h := range hashes {
		if !h.Valid() {
			return Faultf("%q is not a hash", h)
		}
	}
	return nil
}

// CheckObjects is [CheckHashes] for the names of git objects.
func CheckObjects(ids []protocol.Tree) error {
	if len(ids) > MaxHashes {
		return Faultf("%d objects are too many for one call: at most %d", len(ids), MaxHashes)
	}
	for _, id := range ids {
		if !id.Valid() {
			return Faultf("%q is not an object", id)
		}
	}
	return nil
}

// Check refuses a swap that cannot be one.
func (s Swap) Check() error {
	switch {
	case !threadid.Valid(s.Thread):
		return Faultf("%q is not a thread id", s.Thread)
	case s.Was != "" && !s.Was.Valid():
		return Faultf("thread %s: %q is not a hash", s.Thread, s.Was)
	case !s.Head.Valid():
		return Faultf("thread %s: %q is not a hash", s.Thread, s.Head)
	case s.Was == "" && s.WasEnded:
		return Faultf("thread %s: one that is not known has not ended", s.Thread)
	case s.Was == "" && s.Fence != 0:
		return Faultf("thread %s: one that is not known has no lease", s.Thread)
	case s.Fence < 0:
		return Faultf("thread %s: %d is not a fence", s.Thread, s.Fence)
	}
	if facts, err := json.Marshal(Shared(s.Facts)); err != nil || len(facts) > MaxFacts {
		return Faultf("thread %s: what is known of it has %d bytes: at most %d (%v)", s.Thread, len(facts), MaxFacts, err)
	}
	return s.Ended.check(s.Thread)
}

func (e *Ended) check(thread string) error {
	switch {
	case e == nil:
	case e.Status == "" || e.Status == protocol.StatusResumed || len(e.Status) > 32 || strings.Trim(string(e.Status),
		"abcdefghijklmnopqrstuvwxyz_") != "":
		return Faultf("thread %s cannot end with the status %q", thread, e.Status)
	case e.CompletedAt < 0:
		return Faultf("thread %s: %d is not a time", thread, e.CompletedAt)
	case !e.Workflow.Valid():
		return Faultf("thread %s: %q is not a hash", thread, e.Workflow)
	}
	return nil
}

// Compare is the compare of compare-and-swap; is is where the thread stands, nil if it
// is not known. The error is a [*ConflictError].
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

// CheckFence holds the fence of a swap against the lease that lasts; nil: there is none.
func (s Swap) CheckFence(lease *Lease) error {
	switch {
	case s.Fence == 0 && lease != nil:
		return &LeasedError{Lease: lease.Public()}
	case s.Fence != 0 && (lease == nil || lease.Fence != s.Fence):
		return &FenceError{Thread: s.Thread, Fence: s.Fence}
	}
	return nil
}

// Public is a lease as those see it who do not have it: without its fence.
func (l Lease) Public() Lease {
	l.Fence = 0
	return l
}

// CheckLease refuses what cannot be a lease.
func CheckLease(thread, holder string, duration time.Duration) error {
	if holder == "" || len(holder) > MaxHolder || !utf8.ValidString(holder) {
		return Faultf("thread %s: who takes the lease must have a name of at most %d bytes", thread, MaxHolder)
	}
	return CheckDuration(thread, duration)
}

// CheckDuration refuses what cannot be how long a lease lasts.
func CheckDuration(thread string, duration time.Duration) error {
	switch {
	case !threadid.Valid(thread):
		return Faultf("%q is not a thread id", thread)
	case duration < MinLease || duration > MaxLease:
		return Faultf("thread %s: a lease cannot last %s: %s to %s", thread, duration, MinLease, MaxLease)
	}
	return nil
}

// CheckName refuses what cannot be the name of a workflow.
func CheckName(name string, was, workflow cas.Hash) error {
	switch {
	case name == "" || len(name) > MaxName || !utf8.ValidString(name):
		return Faultf("%q is not the name of a workflow", name)
	case was != "" && !was.Valid():
		return Faultf("%q is not a hash", was)
	case !workflow.Valid():
		return Faultf("%q is not a hash", workflow)
	}
	return nil
}

// Merge is a copy of what is known of a thread, with a change to it.
func Merge(known, change heads.Facts) (merged heads.Facts, err error) {
	for _, f := range []heads.Facts{known, Shared(change)} {
		data, err := json.Marshal(f)
		if err == nil {
			err = json.Unmarshal(data, &merged)
		}
		if err != nil {
			return known, err
		}
	}
	return merged, nil
}

// Check refuses a record that is neither the node nor the tombstone that it says.
// Errors: [*cas.CorruptError]; those of [cas.Algorithm.Check].
func (r Record) Check(a cas.Algorithm) (cas.Node, *cas.Tombstone, error) {
	n, err := a.UnmarshalFile(r.Hash, r.File)
	if redacted, ok := cas.AsRedacted(err); ok {
		t := redacted.Tombstone
		if t.Foreign {
			return n, nil, Faultf("the tombstone of %s is marked as foreign, which only a store's own file is", r.Hash)
		}
		return n, &t, nil
	}
	if err == nil {
		err = a.Check(n)
	}
	return n, nil, err
}

// Check refuses an object that is not what its name says.
func (o Object) Check() error {
	if o.Kind != File && o.Kind != Directory {
		return Faultf("%s is not a kind of object", string(o.Kind))
	}
	if len(o.Content) > MaxObject {
		return Faultf("object %s has %d bytes: at most %d", o.ID, len(o.Content), MaxObject)
	}
	if !o.ID.Valid() || ObjectID(o.Kind, o.Content, o.ID.Function()) != o.ID {
		return Faultf("object %q is not what its name says", o.ID)
	}
	return nil
}

// Check refuses what a remote cannot say of a thread.
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
		return Faultf("thread %s: that is not a lease", s.Thread)
	}
	return s.Ended.check(s.Thread)
}
