package wire

import (
	"bufio"
	"context"
	"errors"
	"io"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote"
)

// Hello is what a client says of itself.
type Hello struct {
	Hash    cas.Algorithm // of its store; a remote that does not exist yet is made with it
	Program string        // for people
}

const (
	// heartbeat is the time between two signs of life of a side that works: shorter than a stall,
	// see [Options].
	heartbeat = 2 * time.Second
	// Silence is how long the other side may say nothing in the middle of a request.
	Silence = time.Minute
)

// Serve serves one client with the remote that open opens, until the client ends. A
// client that says what the protocol does not allow is told so, and that is the error.
func Serve(ctx context.Context, in io.Reader, out io.Writer, open func(ctx context.Context, h Hello) (remote.Remote, error)) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	source, ours := io.Pipe() // a read from it can be ended
	go func() {
		_, err := io.Copy(ours, in)
		_ = ours.CloseWithError(err)
	}()
	defer context.AfterFunc(ctx, func() { _ = ours.CloseWithError(context.Cause(ctx)) })()
	s := &server{out: bufio.NewWriterSize(out, 1<<16), open: open}
	s.watch = time.AfterFunc(Silence, func() { cancel(&SilentError{Silence}) })
	defer s.watch.Stop()
	s.in = newReader(source, func() { s.watch.Reset(Silence) }, func() {})
	defer func() {
		_ = source.Close()
		if s.remote != nil {
			err = errors.Join(err, s.remote.Close())
		}
	}()
	if _, err := io.WriteString(s.out, Magic); err != nil {
		return err
	}
	if err := s.out.Flush(); err != nil {
		return err
	}
	if err := s.in.begin(); err != nil {
		return s.refuse(err)
	}
	for {
		if s.remote != nil {
			s.watch.Stop() // between two requests an agent may work for hours
		}
		_, message, err := s.in.next(string(request))
		if errors.Is(err, io.EOF) && !errors.Is(err, errCut) {
			return nil
		}
		if err == nil {
			err = s.handle(ctx, message)
		}
		if err != nil {
			return s.refuse(err)
		}
	}
}

// server is one connection.
type server struct {
	in     *reader
	open   func(ctx context.Context, h Hello) (remote.Remote, error)
	remote remote.Remote // nil before hello
	watch  *time.Timer

	mu  sync.Mutex // of out: whole messages
	out *bufio.Writer
}

// refuse ends the connection with a last word.
func (s *server) refuse(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = writeJSON(s.out, end, answer{Error: failureOf(err)})
	_ = s.out.Flush() // whoever it is may have gone
	return err
}

// handle reads the rest of a request, and answers it. An error ends the connection.
func (s *server) handle(ctx context.Context, message []byte) error {
	var a ask
	if err := readJSON("a request", message, &a); err != nil {
		return err
	}
	rest, err := s.rest(a.Verb)
	if err != nil {
		return err
	}
	s.watch.Stop() // it is our turn
	stop := s.beat()
	reply, err := s.answer(ctx, a, rest)
	stop()
	if gone, ok := errors.AsType[*goneError](err); ok {
		return gone.err
	}
	if err != nil {
		reply = answer{Error: failureOf(err)}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := writeJSON(s.out, end, reply); err != nil {
		return err
	}
	return s.out.Flush()
}

// content is what comes with a request.
type content struct {
	records []remote.Record
	objects []remote.Object
}

// rest reads up to the end of a request.
func (s *server) rest(verb string) (c content, err error) {
	kinds := string(end)
	switch verb {
	case put:
		kinds = string([]byte{node, tombstone, end})
	case putObjects:
		kinds = string([]byte{file, directory, end})
	}
	size := 0
	for {
		kind, message, err := s.in.next(kinds)
		if err != nil {
			return c, cut(err)
		}
		switch kind {
		case end:
			return c, nil
		case node, tombstone:
			r, err := readRecord(kind, message)
			if err != nil {
				return c, err
			}
			c.records = append(c.records, r)
		default:
			o, err := readObject(kind, message)
			if err != nil {
				return c, err
			}
			c.objects = append(c.objects, o)
		}
		n := len(c.records) + len(c.objects)
		if size += len(message); n > remote.MaxHashes || n > 1 && size > remote.MaxBatch+n*64 {
			return c, remote.Faultf("more than %d nodes or %d bytes in one request", remote.MaxHashes, remote.MaxBatch)
		}
	}
}

// beat says that we are at work, until stop is called.
func (s *server) beat() (stop func()) {
	ticker, done := time.NewTicker(heartbeat), make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				s.mu.Lock()
				_ = write(s.out, alive) // the answer finds out who has gone
				_ = s.out.Flush()
				s.mu.Unlock()
			}
		}
	})
	return func() {
		ticker.Stop()
		close(done)
		group.Wait()
	}
}

// answer does what is asked.
func (s *server) answer(ctx context.Context, a ask, rest content) (r answer, err error) {
	if a.Verb == hello {
		return s.hello(ctx, a)
	}
	if s.remote == nil {
		return r, remote.Faultf("%q before hello", a.Verb)
	}
	switch duration := time.Duration(min(max(a.Duration, 0), remote.MaxLease.Milliseconds()+1)) * time.Millisecond; a.Verb {
	case info:
		var i remote.Info
		i, err = s.remote.Info(ctx)
		r.Info = &i
	case missing:
		r.Hashes, err = s.remote.Missing(ctx, a.Hashes)
	case walk:
		err = s.walk(ctx, a)
	case get:
		err = send(s, s.remote.Get(ctx, a.Hashes), writeRecord)
	case put:
		r.Hashes, err = s.remote.Put(ctx, rest.records)
	case thread:
		var state remote.State
		state, err = s.remote.Thread(ctx, a.Thread)
		r.State = &state
	case threads:
		err = send(s, s.remote.Threads(ctx, deref(a.Filter)), func(out *bufio.Writer, state remote.State) error {
			return writeJSON(out, value, entry{State: &state})
		})
	case swap:
		err = s.remote.Swap(ctx, deref(a.Swap))
	case take:
		r.Lease, err = leaseOf(s.remote.Take(ctx, a.Thread, a.Holder, duration))
	case renew:
		r.Lease, err = leaseOf(s.remote.Renew(ctx, a.Thread, a.Fence, duration))
	case release:
		err = s.remote.Release(ctx, a.Thread, a.Fence)
	case workflows:
		err = s.workflows(ctx)
	case register:
		err = s.remote.Register(ctx, a.Name, a.Was, a.Workflow)
	case missingObjects:
		r.IDs, err = s.remote.MissingObjects(ctx, a.IDs)
	case getObjects:
		err = send(s, s.remote.GetObjects(ctx, a.IDs), writeObject)
	case putObjects:
		err = s.remote.PutObjects(ctx, rest.objects)
	default:
		err = &protocol.Error{Code: protocol.CodeUnsupportedVersion, Message: "the remote does not know " + a.Verb + ", which a newer uwf asks for"}
	}
	return r, err
}

func (s *server) hello(ctx context.Context, a ask) (answer, error) {
	if s.remote != nil {
		return answer{}, remote.Faultf("hello twice")
	}
	if !slices.Contains(a.Versions, Version) {
		return answer{}, &protocol.Error{Code: protocol.CodeUnsupportedVersion, Message: "the remote speaks version 1 of the protocol only: upgrade it"}
	}
	if !a.Hash.Known() {
		return answer{}, remote.Faultf("%q is not a hash function", a.Hash)
	}
	r, err := s.open(ctx, Hello{Hash: a.Hash, Program: a.Program})
	if err != nil {
		return answer{}, err
	}
	s.remote = r
	i, err := r.Info(ctx)
	return answer{Version: Version, Info: &i}, err
}

// goneError: the client cannot be written to.
type goneError struct{ err error }

// Error implements error.
func (e *goneError) Error() string { return e.err.Error() }

// send writes a list as it comes.
func send[T any](s *server, all iter.Seq2[T, error], write func(out *bufio.Writer, v T) error) error {
	for v, err := range all {
		if err != nil {
			return err
		}
		s.mu.Lock()
		err = write(s.out, v)
		s.mu.Unlock()
		if err != nil {
			return &goneError{err}
		}
	}
	return nil
}

func (s *server) walk(ctx context.Context, a ask) error {
	const some = 4096
	var part []cas.Hash
	list := func(yield func([]cas.Hash, error) bool) {
		for h, err := range s.remote.Walk(ctx, a.Hashes, a.Have) {
			if err != nil {
				yield(nil, err)
				return
			}
			if part = append(part, h); len(part) == some {
				if !yield(part, nil) {
					return
				}
				part = part[:0]
			}
		}
		if len(part) > 0 {
			yield(part, nil)
		}
	}
	return send(s, list, func(out *bufio.Writer, part []cas.Hash) error { return writeJSON(out, value, entry{Hashes: part}) })
}

func (s *server) workflows(ctx context.Context) error {
	all, err := s.remote.Workflows(ctx)
	if err != nil {
		return err
	}
	return send(s, func(yield func(entry, error) bool) {
		for _, n := range all {
			if !yield(entry{Name: n.Name, Hash: n.Hash}, nil) {
				return
			}
		}
	}, func(out *bufio.Writer, e entry) error { return writeJSON(out, value, e) })
}

func leaseOf(l remote.Lease, err error) (*remote.Lease, error) { return &l, err }

func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
