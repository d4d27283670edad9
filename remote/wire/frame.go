package wire

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/util/gitobject"
	"github.com/united-workforce/uwf/util/plaintext"
)

// Magic is the first line that each side sends.
const Magic = "uwf remote\n"

// Kinds of messages.
const (
	request   byte = 'q'            // JSON: a request
	node      byte = 'n'            // a hash of 13 characters, and the node's file
	tombstone byte = 't'            // a hash of 13 characters, and the tombstone's file
	file           = gitobject.File // a byte with the size of the hash, the hash in git's form, and the content
	directory      = gitobject.Directory
	value     byte = 'v' // JSON: a list entry
	alive     byte = 'k' // empty: a heartbeat
	end       byte = '.' // JSON: the end of a request or of a response
)

// Limits of a stream.
const (
	MaxFrame = 1 << 20   // bytes per frame, without its header
	maxJSON  = 8 << 20   // bytes per JSON message
	MaxList  = 512 << 20 // bytes of all entries of a list; 100,000 threads need about 100 MB
	more     = 1 << 31   // bit in a frame's length that means that the message continues

	hashSize = 13
)

// maxMessage returns the maximum length of a message kind, or 0 if the kind is unknown.
func maxMessage(kind byte) int {
	switch kind {
	case request, value, end:
		return maxJSON
	case node:
		return hashSize + cas.MaxFile
	case tombstone:
		return hashSize + cas.MaxTombstone
	case file, directory:
		return 1 + 32 + gitobject.MaxSize
	case alive:
		return 0
	}
	return -1
}

// reader reads untrusted messages.
type reader struct {
	in     *bufio.Reader
	useful func() // called when data of a message arrives
}

// newReader returns a reader that calls moved when data arrives, and useful if it belongs to a message.
func newReader(in io.Reader, moved, useful func()) *reader {
	return &reader{in: bufio.NewReaderSize(movingReader{in, moved}, 1<<16), useful: useful}
}

// begin reads the other side's magic line.
func (r *reader) begin() error {
	head := make([]byte, len(Magic))
	for i := range head {
		b, err := r.in.ReadByte()
		if err != nil {
			return cut(err)
		}
		head[i] = b
		if b == Magic[i] {
			continue
		}
		rest, _ := r.in.Peek(min(r.in.Buffered(), 200))
		return remote.Faultf("the other side does not use this protocol: it starts with %q", append(head[:i+1], rest...))
	}
	return nil
}

// next reads the next message, which must be one of the given kinds. It skips heartbeats.
func (r *reader) next(kinds string) (kind byte, message []byte, err error) {
	for {
		kind, message, err = r.message(kinds)
		if err != nil || kind != alive {
			return kind, message, err
		}
	}
}

func (r *reader) message(kinds string) (kind byte, message []byte, err error) {
	for {
		var head [5]byte
		if _, err := io.ReadFull(r.in, head[:]); err != nil {
			if len(message) > 0 {
				err = cut(err)
			}
			return 0, nil, err
		}
		first, length := kind == 0, binary.BigEndian.Uint32(head[1:])
		continued := length&more != 0
		length &^= more
		switch {
		case !first && head[0] != kind:
			return 0, nil, remote.Faultf("message %q continues as %q", kind, head[0])
		case first && head[0] != alive && strings.IndexByte(kinds, head[0]) < 0:
			return 0, nil, remote.Faultf("got message %q, want %q", head[0], kinds)
		case length > MaxFrame:
			return 0, nil, remote.Faultf("a frame has %d bytes; the limit is %d", length, MaxFrame)
		case continued && length == 0:
			return 0, nil, remote.Faultf("an empty frame is continued")
		}
		kind = head[0]
		if len(message)+int(length) > maxMessage(kind) {
			return 0, nil, remote.Faultf("message %q has more than %d bytes", kind, maxMessage(kind))
		}
		at := len(message)
		message = append(message, make([]byte, length)...)
		if _, err := io.ReadFull(movingReader{r.in, r.useful}, message[at:]); err != nil {
			return 0, nil, cut(err)
		}
		if !continued {
			return kind, message, nil
		}
	}
}

// errCut means that a stream ends in the middle of a message.
var errCut = fmt.Errorf("unexpected end of stream: %w", io.ErrUnexpectedEOF)

func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errCut
	}
	return err
}

// write writes a message, without flushing.
func write(out *bufio.Writer, kind byte, parts ...[]byte) error {
	left := 0
	for _, p := range parts {
		left += len(p)
	}
	if left > maxMessage(kind) {
		return remote.Faultf("message %q has %d bytes; the limit is %d", kind, left, maxMessage(kind))
	}
	for first := true; first || left > 0; first = false {
		room := min(left, MaxFrame)
		left -= room
		head := [5]byte{kind}
		binary.BigEndian.PutUint32(head[1:], uint32(room))
		if left > 0 {
			head[1] |= more >> 24
		}
		if _, err := out.Write(head[:]); err != nil {
			return err
		}
		for room > 0 {
			n := min(room, len(parts[0]))
			if _, err := out.Write(parts[0][:n]); err != nil {
				return err
			}
			if parts[0], room = parts[0][n:], room-n; len(parts[0]) == 0 {
				parts = parts[1:]
			}
		}
	}
	return nil
}

// Version is the version of the protocol.
const Version = 1

// ask is a request. Each verb uses some of the fields.
type ask struct {
	Verb string `json:"verb"`

	Versions []int         `json:"versions,omitempty"` // hello
	Program  string        `json:"program,omitempty"`
	Hash     cas.Algorithm `json:"hash,omitempty"`

	Hashes []cas.Hash      `json:"hashes,omitempty"` // missing and get; roots of a walk
	Have   []cas.Hash      `json:"have,omitempty"`
	IDs    []protocol.Tree `json:"ids,omitempty"` // for objects

	Filter   *remote.Filter `json:"filter,omitempty"`
	Swap     *remote.Swap   `json:"swap,omitempty"`
	Thread   string         `json:"thread,omitempty"`
	Holder   string         `json:"holder,omitempty"`
	Duration int64          `json:"ms,omitempty"`
	Fence    int64          `json:"fence,omitempty"`

	Name     string   `json:"name,omitempty"`
	Was      cas.Hash `json:"was,omitempty"`
	Workflow cas.Hash `json:"workflow,omitempty"`

	Known string `json:"known,omitempty"` // for redactions
}

// answer is the end of a response.
type answer struct {
	Error *failure `json:"error,omitempty"`

	Version int             `json:"version,omitempty"` // hello
	Info    *remote.Info    `json:"info,omitempty"`
	Hashes  []cas.Hash      `json:"hashes,omitempty"`
	IDs     []protocol.Tree `json:"ids,omitempty"`
	State   *remote.State   `json:"state,omitempty"`
	Lease   *remote.Lease   `json:"lease,omitempty"`
	Listed  string          `json:"listed,omitempty"` // state of the list of redactions
}

// entry is a list entry.
type entry struct {
	Hashes []cas.Hash    `json:"hashes,omitempty"` // for a walk
	State  *remote.State `json:"state,omitempty"`
	Name   string        `json:"name,omitempty"`
	Hash   cas.Hash      `json:"hash,omitempty"`
	// Redaction is an entry of the list of redactions.
	Redaction *remote.Redaction `json:"redaction,omitempty"`
}

// Verbs of requests.
const (
	hello          = "hello"
	info           = "info"
	missing        = "missing"
	walk           = "walk"
	get            = "get"
	put            = "put"
	thread         = "thread"
	threads        = "threads"
	swap           = "swap"
	take           = "take"
	renew          = "renew"
	release        = "release"
	workflows      = "workflows"
	register       = "register"
	missingObjects = "missing-objects"
	getObjects     = "get-objects"
	putObjects     = "put-objects"
	redactions     = "redactions"
)

func writeJSON(out *bufio.Writer, kind byte, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return write(out, kind, text)
}

// readJSON decodes a message; what describes it in errors.
func readJSON(what string, message []byte, into any) error {
	err := json.Unmarshal(message, into)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
		return remote.Faultf("cannot parse %s: field %s has the wrong type", what, wrong.Field)
	}
	if err != nil {
		return remote.Faultf("cannot parse %s: it does not match the protocol", what)
	}
	return nil
}

func writeRecord(out *bufio.Writer, r remote.Record) error {
	kind := node
	if cas.IsTombstone(r.File) {
		kind = tombstone
	}
	if len(r.Hash) != hashSize {
		return remote.Faultf("%q is not a hash", r.Hash)
	}
	return write(out, kind, []byte(r.Hash), r.File)
}

// readRecord decodes a node message, without verifying the hash.
func readRecord(kind byte, message []byte) (remote.Record, error) {
	if len(message) < hashSize || !cas.Hash(message[:hashSize]).Valid() {
		return remote.Record{}, remote.Faultf("a node without a hash")
	}
	r := remote.Record{Hash: cas.Hash(message[:hashSize]), File: message[hashSize:]}
	if cas.IsTombstone(r.File) != (kind == tombstone) {
		return remote.Record{}, remote.Faultf("node %s has another kind than stated", r.Hash)
	}
	return r, nil
}

func writeObject(out *bufio.Writer, o remote.Object) error {
	name, err := gitobject.AppendID(nil, o.ID)
	if err != nil {
		return remote.Faultf("%v", err)
	}
	return write(out, o.Kind, name, o.Content)
}

// readObject is like [readRecord] for a git object.
func readObject(kind byte, message []byte) (remote.Object, error) {
	id, content, ok := gitobject.CutID(message)
	if !ok {
		return remote.Object{}, remote.Faultf("an object without a name")
	}
	return remote.Object{ID: id, Kind: kind, Content: content}, nil
}

// failure is an error in transfer format.
type failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`

	Thread  string        `json:"thread,omitempty"`
	Want    cas.Hash      `json:"want,omitempty"`
	Got     cas.Hash      `json:"got,omitempty"`
	WantEnd bool          `json:"wantEnded,omitempty"`
	Ends    bool          `json:"ended,omitempty"`
	Fence   int64         `json:"fence,omitempty"`
	Lease   *remote.Lease `json:"lease,omitempty"`
	Hash    string        `json:"hash,omitempty"`
	Name    string        `json:"name,omitempty"`
}

// conversion converts the errors of one code to transfer format, if fill accepts them, and back.
type conversion struct {
	code string
	fill func(err error, f *failure) bool
	err  func(f *failure) error
}

// typed is the conversion of a type of errors.
func typed[E error](code string, fill func(e E, f *failure), err func(f *failure) error) conversion {
	return conversion{code, func(err error, f *failure) bool {
		e, ok := errors.AsType[E](err)
		if ok {
			fill(e, f)
		}
		return ok
	}, err}
}

// like is the conversion of errors that are a target.
func like(code string, target error, err func(f *failure) error) conversion {
	return conversion{code, func(err error, _ *failure) bool { return errors.Is(err, target) }, err}
}

// coded is the conversion of errors with a code.
func coded(code string, as protocol.Code) conversion {
	return like(code, &protocol.Error{Code: as}, func(f *failure) error { return &protocol.Error{Code: as, Message: f.Message} })
}

// conversions lists the codes that have a meaning for the other side.
func conversions() []conversion {
	return []conversion{
		typed("conflict", func(e *remote.ConflictError, f *failure) {
			f.Thread, f.Want, f.Got, f.WantEnd, f.Ends = e.Thread, e.Want, e.Got, e.WantEnd, e.Ends
		}, func(f *failure) error {
			return &remote.ConflictError{Thread: f.Thread, Want: f.Want, Got: f.Got, WantEnd: f.WantEnd, Ends: f.Ends}
		}),
		typed("leased", func(e *remote.LeasedError, f *failure) {
			public := e.Lease.Public()
			f.Lease = &public
		}, func(f *failure) error {
			lease := deref(f.Lease).Public()
			lease.LeftMs = min(max(lease.LeftMs, 0), remote.MaxLease.Milliseconds())
			return &remote.LeasedError{Lease: lease}
		}),
		typed("lease-expired", func(e *remote.FenceError, f *failure) { f.Thread, f.Fence = e.Thread, e.Fence },
			func(f *failure) error { return &remote.FenceError{Thread: f.Thread, Fence: f.Fence} }),
		typed("missing", func(e *remote.MissingError, f *failure) { f.Hash = e.Hash },
			func(f *failure) error { return &remote.MissingError{Hash: f.Hash} }),
		like("no_thread", heads.ErrNoThread,
			func(f *failure) error { return fmt.Errorf("%w: %s", heads.ErrNoThread, f.Message) }),
		typed("gone", func(e *remote.GoneError, f *failure) { f.Thread = e.Thread },
			func(f *failure) error { return &remote.GoneError{Thread: f.Thread} }),
		typed("name-conflict", func(e *remote.NameError, f *failure) { f.Name, f.Want, f.Got = e.Name, e.Want, e.Got },
			func(f *failure) error { return &remote.NameError{Name: f.Name, Want: f.Want, Got: f.Got} }),
		typed("collision", func(e *cas.CollisionError, f *failure) { f.Hash = string(e.Hash) },
			func(f *failure) error { return &cas.CollisionError{Hash: clean(cas.Hash(f.Hash))} }),
		typed("corrupt", func(e *cas.CorruptError, f *failure) { f.Hash, f.Message = string(e.Hash), e.Reason },
			func(f *failure) error {
				if !cas.Hash(f.Hash).Valid() { // an object
					return &protocol.Error{Code: protocol.CodeCorrupt, Message: f.Message}
				}
				return &cas.CorruptError{Hash: cas.Hash(f.Hash), Reason: f.Message}
			}),
		typed("invalid-request", func(*remote.FaultError, *failure) {},
			func(f *failure) error { return &remote.FaultError{Problem: f.Message} }),
		like("unsupported", errors.ErrUnsupported,
			func(f *failure) error { return fmt.Errorf("%w by the remote: %s", errors.ErrUnsupported, f.Message) }),
		coded("locked", protocol.CodeLocked), coded("unsupported-version", protocol.CodeUnsupportedVersion),
		coded("corrupt", protocol.CodeCorrupt),
	}
}

// failureOf converts an error to transfer format.
func failureOf(err error) *failure {
	f := &failure{Code: "failed", Message: err.Error()}
	for _, c := range conversions() {
		if c.fill(err, f) {
			f.Code = c.code
			break
		}
	}
	const longest = 4 << 10
	f.Message = f.Message[:min(len(f.Message), longest)]
	return f
}

// error converts a failure from the other side, which can contain anything, to an error.
func (f *failure) error() error {
	for _, text := range []*string{&f.Message, &f.Thread, &f.Name, &f.Hash} {
		*text = plaintext.Line(*text)
	}
	f.Want, f.Got = clean(f.Want), clean(f.Got)
	for _, c := range conversions() {
		if c.code == f.Code {
			return c.err(f)
		}
	}
	return errors.New(f.Message) // of a code that this side does not know
}

// clean returns an untrusted hash, or "" if it is invalid.
func clean(h cas.Hash) cas.Hash {
	if !h.Valid() {
		return ""
	}
	return h
}
