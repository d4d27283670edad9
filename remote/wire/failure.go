package wire

import (
	"errors"
	"fmt"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/util/plaintext"
)

// failure is an error as it travels.
type failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`

	Thread   string        `json:"thread,omitempty"`
	Want     cas.Hash      `json:"want,omitempty"`
	Got      cas.Hash      `json:"got,omitempty"`
	WantEnd  bool          `json:"wantEnded,omitempty"`
	Ends     bool          `json:"ended,omitempty"`
	Fence    int64         `json:"fence,omitempty"`
	Lease    *remote.Lease `json:"lease,omitempty"`
	Hash     string        `json:"hash,omitempty"`
	Name     string        `json:"name,omitempty"`
	Versions []int         `json:"versions,omitempty"`
}

// Codes of errors.
const (
	conflict    = "conflict"
	leased      = "leased"
	fenced      = "lease-expired"
	absent      = "missing"
	noThread    = "no_thread"
	taken       = "name-conflict"
	collision   = "collision"
	corrupt     = "corrupt"
	newer       = "unsupported-version"
	fault       = "invalid-request"
	unsupported = "unsupported"
	locked      = "locked"
	failed      = "failed"
)

// RemoteError is a failure of the other side that this side has no word for.
type RemoteError struct{ Code, Message string }

// Error implements error.
func (e *RemoteError) Error() string { return plaintext.Line(e.Message) }

// failureOf tells the other side of an error.
func failureOf(err error) *failure {
	f := &failure{Code: failed, Message: err.Error()}
	var (
		moved   *remote.ConflictError
		lease   *remote.LeasedError
		fence   *remote.FenceError
		missing *remote.MissingError
		name    *remote.NameError
		wrong   *remote.FaultError
		two     *cas.CollisionError
		damaged *cas.CorruptError
		coded   *protocol.Error
	)
	switch {
	case errors.As(err, &moved):
		f.Code, f.Thread, f.Want, f.Got, f.WantEnd, f.Ends = conflict, moved.Thread, moved.Want, moved.Got, moved.WantEnd, moved.Ends
	case errors.As(err, &lease):
		public := lease.Lease.Public()
		f.Code, f.Lease = leased, &public
	case errors.As(err, &fence):
		f.Code, f.Thread, f.Fence = fenced, fence.Thread, fence.Fence
	case errors.As(err, &missing):
		f.Code, f.Hash = absent, missing.Hash
	case errors.Is(err, heads.ErrNoThread):
		f.Code = noThread
	case errors.As(err, &name):
		f.Code, f.Name, f.Want, f.Got = taken, name.Name, name.Want, name.Got
	case errors.As(err, &two):
		f.Code, f.Hash = collision, string(two.Hash)
	case errors.As(err, &damaged):
		f.Code, f.Hash, f.Message = corrupt, string(damaged.Hash), damaged.Reason
	case errors.As(err, &wrong):
		f.Code = fault
	case errors.Is(err, errors.ErrUnsupported):
		f.Code = unsupported
	case errors.As(err, &coded) && coded.Code == protocol.CodeLocked:
		f.Code = locked
	case errors.As(err, &coded) && coded.Code == protocol.CodeUnsupportedVersion:
		f.Code = newer
	case errors.As(err, &coded) && coded.Code == protocol.CodeCorrupt: // of an object
		f.Code = corrupt
	}
	const longest = 4 << 10
	if len(f.Message) > longest {
		f.Message = f.Message[:longest]
	}
	return f
}

// err is what the other side has told.
func (f *failure) err() error {
	said := plaintext.Line(f.Message)
	switch f.Code {
	case conflict:
		return &remote.ConflictError{Thread: plaintext.Line(f.Thread), Want: clean(f.Want), Got: clean(f.Got), WantEnd: f.WantEnd, Ends: f.Ends}
	case leased:
		if f.Lease != nil {
			lease := f.Lease.Public()
			lease.LeftMs = min(max(lease.LeftMs, 0), remote.MaxLease.Milliseconds())
			return &remote.LeasedError{Lease: lease}
		}
	case fenced:
		return &remote.FenceError{Thread: plaintext.Line(f.Thread), Fence: f.Fence}
	case absent:
		return &remote.MissingError{Hash: f.Hash}
	case noThread:
		return fmt.Errorf("%w: %s", heads.ErrNoThread, said)
	case taken:
		return &remote.NameError{Name: f.Name, Want: clean(f.Want), Got: clean(f.Got)}
	case collision:
		return &cas.CollisionError{Hash: clean(cas.Hash(f.Hash))}
	case corrupt:
		if !cas.Hash(f.Hash).Valid() {
			return &protocol.Error{Code: protocol.CodeCorrupt, Message: said}
		}
		return &cas.CorruptError{Hash: cas.Hash(f.Hash), Reason: said}
	case newer:
		return &protocol.Error{Code: protocol.CodeUnsupportedVersion, Message: said}
	case fault:
		return &remote.FaultError{Problem: said}
	case unsupported:
		return fmt.Errorf("%w by the remote: %s", errors.ErrUnsupported, said)
	case locked:
		return &protocol.Error{Code: protocol.CodeLocked, Message: said}
	}
	return &RemoteError{Code: plaintext.Line(f.Code), Message: f.Message}
}

// clean is a hash that a stranger has named; "" if it is none.
func clean(h cas.Hash) cas.Hash {
	if !h.Valid() {
		return ""
	}
	return h
}
