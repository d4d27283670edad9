package wire

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote"
)

// Hello is the information that a client sends about itself.
type Hello struct {
	Hash    cas.Algorithm // hash function of its store, used to create a missing remote
	Program string        // for display
}

const (
	// heartbeat is the interval of a working side's heartbeats. It must be shorter than a stall, see
	// [Options].
	heartbeat = 2 * time.Second
	// Silence is the maximum time without data in the middle of a request.
	Silence = time.Minute
)

// Serve serves one client, with the remote that open returns, until the client disconnects. If the client
// violates the protocol, Serve reports that to the client and returns it.
func Serve(ctx context.Context, in io.Reader, out io.Writer,
	open func(ctx context.Context, h Hello) (remote.Remote, error)) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	source, ours := io.Pipe() // unlike in, a read from it can be interrupted
	go func() {
		_, err := io.Copy(ours, in)
		_ = ours.CloseWithError(err)
	}()
	defer context.AfterFunc(ctx, func() { _ = ours.CloseWithError(context.Cause(ctx)) })()
	s := &server{out: bufio.NewWriterSize(out, 1<<16), open: open}
	s.watch = time.AfterFunc(Silence, func() { cancel(&TimeoutError{For: Silence}) })
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
			s.watch.Stop() // an agent may work for hours between two requests
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

	mu  sync.Mutex // protects out, for whole messages
	out *bufio.Writer
}

// refuse sends an error and closes the connection.
func (s *server) refuse(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = writeJSON(s.out, end, answer{Error: failureOf(err)})
	_ = s.out.Flush() // the client may have gone
	return err
}

// handle reads the rest of a request and responds to it. An error closes the connection.
func (s *server) handle(ctx context.Context, message []byte) error {
	var a ask
	if err := readJSON("a request", message, &a); err != nil {
		return err
	}
	rest, err := s.rest(a.Verb)
	if err != nil {
		return err
	}
	s.watch.Stop() // it is the server's turn
	stop := s.beat()
	reply, err := s.answer(ctx, a, rest)
	stop()
	if errors.Is(err, errGone) {
		return err
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

// content is the content of a request.
type content struct {
	records []remote.Record
	objects []remote.Object
}

// rest reads the content of a request up to its end.
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

// beat sends heartbeats until stop is called.
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
				_ = write(s.out, alive) // sending the response reports the error
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

// answer carries out a request.
func (s *server) answer(ctx context.Context, a ask, rest content) (r answer, err error) {
	if a.Verb == hello {
		return s.hello(ctx, a)
	}
	if s.remote == nil {
		return r, remote.Faultf("%q before hello", a.Verb)
	}
	switch duration := time.Duration(min(max(a.Duration, 0),
		remote.MaxLease.Milliseconds()+1)) * time.Millisecond; a.Verb {
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
		err = list(s, s.remote.Threads(ctx, deref(a.Filter)), func(state remote.State) entry { return entry{State: &state} })
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
	case redactions:
		r.Listed, err = s.redactions(ctx, a.Known)
	default:
		err = &protocol.Error{Code: protocol.CodeUnsupportedVersion,
			Message: "the remote does not support " + a.Verb + "; a newer uwf requested it"}
	}
	return r, err
}

func (s *server) hello(ctx context.Context, a ask) (answer, error) {
	if s.remote != nil {
		return answer{}, remote.Faultf("hello twice")
	}
	if !slices.Contains(a.Versions, Version) {
		return answer{}, &protocol.Error{Code: protocol.CodeUnsupportedVersion,
			Message: "the remote supports only protocol version 1; upgrade it"}
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

// errGone means that writing to the client failed.
var errGone = errors.New("the client is gone")

// send writes a list as it is produced.
func send[T any](s *server, all iter.Seq2[T, error], write func(out *bufio.Writer, v T) error) error {
	for v, err := range all {
		if err != nil {
			return err
		}
		s.mu.Lock()
		err = write(s.out, v)
		s.mu.Unlock()
		if err != nil {
			return fmt.Errorf("%w: %w", errGone, err)
		}
	}
	return nil
}

// list is send for entries in JSON.
func list[T any](s *server, all iter.Seq2[T, error], of func(T) entry) error {
	return send(s, all, func(out *bufio.Writer, v T) error { return writeJSON(out, value, of(v)) })
}

// each yields the elements of a list.
func each[T any](all []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, v := range all {
			if !yield(v, nil) {
				return
			}
		}
	}
}

func (s *server) walk(ctx context.Context, a ask) error {
	const some = 4096
	var part []cas.Hash
	parts := func(yield func([]cas.Hash, error) bool) {
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
	return list(s, parts, func(part []cas.Hash) entry { return entry{Hashes: part} })
}

func (s *server) workflows(ctx context.Context) error {
	all, err := s.remote.Workflows(ctx)
	if err != nil {
		return err
	}
	return list(s, each(all), func(n heads.Named) entry { return entry{Name: n.Name, Hash: n.Hash} })
}

func (s *server) redactions(ctx context.Context, known string) (state string, err error) {
	all, state, err := s.remote.Redactions(ctx, known)
	if err != nil {
		return "", err
	}
	return state, list(s, each(all), func(r remote.Redaction) entry { return entry{Redaction: &r} })
}

func leaseOf(l remote.Lease, err error) (*remote.Lease, error) { return &l, err }

func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// simple makes a call whose response has no content.
func (c *Client) simple(ctx context.Context, a ask) (answer, error) {
	return c.call(ctx, a, nil, "", nil)
}

// entries makes a call whose response is a list in JSON.
func (c *Client) entries(ctx context.Context, a ask, each func(entry) error) (answer, error) {
	return c.call(ctx, a, nil, string(value), func(_ byte, message []byte) error {
		var e entry
		if err := readJSON("an entry of the answer to "+a.Verb, message, &e); err != nil {
			return err
		}
		return each(e)
	})
}

// Info implements [remote.Remote].
func (c *Client) Info(ctx context.Context) (remote.Info, error) {
	a, err := c.simple(ctx, ask{Verb: info})
	if err == nil && (a.Info == nil || a.Info.Hash != c.hash) {
		err = c.broken(remote.Faultf("the remote did not identify itself"))
	}
	return deref(a.Info), err
}

// Missing implements [remote.Remote].
func (c *Client) Missing(ctx context.Context, hashes []cas.Hash) ([]cas.Hash, error) {
	if err := remote.CheckHashes(hashes); err != nil {
		return nil, err
	}
	a, err := c.simple(ctx, ask{Verb: missing, Hashes: hashes})
	if err == nil {
		err = among(c, a.Hashes, hashes)
	}
	return a.Hashes, err
}

// among returns an error if got is not a subsequence of asked.
func among[T comparable](c *Client, got, asked []T) error {
	at := 0
	for _, h := range got {
		n := slices.Index(asked[at:], h)
		if n < 0 {
			return c.broken(remote.Faultf("the remote sent %v, which was not requested", h))
		}
		at += n + 1
	}
	return nil
}

// Walk implements [remote.Remote].
func (c *Client) Walk(ctx context.Context, roots, have []cas.Hash) iter.Seq2[cas.Hash, error] {
	return sequence(func(yield func(cas.Hash) error) error {
		if err := cmp.Or(remote.CheckHashes(roots), remote.CheckHashes(have)); err != nil {
			return err
		}
		seen := map[uint64]bool{}
		_, err := c.entries(ctx, ask{Verb: walk, Hashes: roots, Have: have}, func(e entry) error {
			for _, h := range e.Hashes {
				if !h.Valid() || seen[h.Number()] || len(seen) == remote.MaxNodes {
					return remote.Faultf("a walk with %q, with a duplicate or with too many nodes", h)
				}
				seen[h.Number()] = true
				if err := yield(h); err != nil {
					return err
				}
			}
			return nil
		})
		return err
	})
}

// Get implements [remote.Remote].
func (c *Client) Get(ctx context.Context, hashes []cas.Hash) iter.Seq2[remote.Record, error] {
	return fetch(ctx, c, ask{Verb: get, Hashes: hashes}, remote.CheckHashes(hashes), len(hashes),
		string([]byte{node, tombstone}), readRecord, func(i int, r remote.Record) error {
			if r.Hash != hashes[i] {
				return remote.Faultf("the remote sent node %s, which is not the next requested one", r.Hash)
			}
			_, _, err := r.Check(c.hash)
			return err
		})
}

// fetch makes a call whose response is n nodes or objects, which check checks. It fails with invalid, if that isn't nil.
func fetch[T any](ctx context.Context, c *Client, a ask, invalid error, n int, kinds string,
	read func(kind byte, message []byte) (T, error), check func(i int, v T) error) iter.Seq2[T, error] {
	return sequence(func(yield func(T) error) error {
		if invalid != nil {
			return invalid
		}
		got := 0
		_, err := c.call(ctx, a, nil, kinds, func(kind byte, message []byte) error {
			v, err := read(kind, message)
			if err == nil && got == n {
				err = remote.Faultf("the remote sent more than the %d requested", n)
			}
			if err == nil {
				err = check(got, v)
			}
			if err != nil {
				return err
			}
			got++
			return yield(v)
		})
		if err == nil && got < n {
			return c.broken(remote.Faultf("the remote sent %d of %d requested", got, n))
		}
		return err
	})
}

// Put implements [remote.Remote].
func (c *Client) Put(ctx context.Context, records []remote.Record) ([]cas.Hash, error) {
	if err := remote.CheckBatch(records); err != nil {
		return nil, err
	}
	a, err := c.call(ctx, ask{Verb: put}, func(out *bufio.Writer) error {
		for _, r := range records {
			if err := writeRecord(out, r); err != nil {
				return err
			}
		}
		return nil
	}, "", nil)
	if err != nil {
		return nil, err
	}
	sent := make(map[cas.Hash]bool, len(records))
	for _, r := range records {
		sent[r.Hash] = true
	}
	for _, h := range a.Hashes {
		if !sent[h] {
			return nil, c.broken(remote.Faultf("the remote confirmed %q, which was not sent, or twice", h))
		}
		delete(sent, h)
	}
	return a.Hashes, nil
}

// Thread implements [remote.Remote].
func (c *Client) Thread(ctx context.Context, thread string) (remote.State, error) {
	a, err := c.simple(ctx, ask{Verb: "thread", Thread: thread})
	if err != nil {
		return remote.State{}, err
	}
	s := deref(a.State)
	if s.Thread != thread {
		return s, c.broken(remote.Faultf("the remote sent thread %q instead of %q", s.Thread, thread))
	}
	return c.state(s)
}

// state checks a state received from the other side.
func (c *Client) state(s remote.State) (remote.State, error) {
	s.Facts = remote.Shared(s.Facts)
	if err := s.Check(); err != nil {
		return remote.State{}, c.broken(err)
	}
	return s, nil
}

// Threads implements [remote.Remote].
func (c *Client) Threads(ctx context.Context, f remote.Filter) iter.Seq2[remote.State, error] {
	return sequence(func(yield func(remote.State) error) error {
		last, count := "", 0
		_, err := c.entries(ctx, ask{Verb: threads, Filter: &f}, func(e entry) error {
			s := deref(e.State)
			s.Facts = remote.Shared(s.Facts)
			if err := s.Check(); err != nil {
				return err
			}
			if count++; s.Thread <= last || !f.Has(s) || f.Limit > 0 && count > f.Limit {
				return remote.Faultf("the remote listed thread %s, which was not requested or is out of order", s.Thread)
			}
			if count > remote.MaxThreads {
				return &remote.LimitError{Most: remote.MaxThreads, Of: "threads"}
			}
			last = s.Thread
			return yield(s)
		})
		return err
	})
}

// Swap implements [remote.Remote].
func (c *Client) Swap(ctx context.Context, s remote.Swap) error {
	s.Facts = remote.Shared(s.Facts)
	if err := s.Check(); err != nil {
		return err
	}
	_, err := c.simple(ctx, ask{Verb: swap, Swap: &s})
	return err
}

// Take implements [remote.Remote].
func (c *Client) Take(ctx context.Context, thread, holder string, duration time.Duration) (remote.Lease, error) {
	if err := remote.CheckLease(thread, holder, duration); err != nil {
		return remote.Lease{}, err
	}
	a, err := c.simple(ctx, ask{Verb: take, Thread: thread, Holder: holder, Duration: duration.Milliseconds()})
	return c.lease(a, err, thread)
}

// Renew implements [remote.Remote].
func (c *Client) Renew(ctx context.Context, thread string, fence int64, duration time.Duration) (remote.Lease, error) {
	if err := remote.CheckDuration(thread, duration); err != nil {
		return remote.Lease{}, err
	}
	a, err := c.simple(ctx, ask{Verb: renew, Thread: thread, Fence: fence, Duration: duration.Milliseconds()})
	l, err := c.lease(a, err, thread)
	if err == nil && l.Fence != fence {
		err = c.broken(remote.Faultf("the remote renewed the wrong lease"))
	}
	return l, err
}

func (c *Client) lease(a answer, err error, thread string) (remote.Lease, error) {
	l := deref(a.Lease)
	if err == nil && (l.Thread != thread || l.Fence <= 0 || l.LeftMs <= 0 || l.LeftMs > remote.MaxLease.Milliseconds()) {
		err = c.broken(remote.Faultf("the remote granted no lease and gave no reason"))
	}
	return l, err
}

// Release implements [remote.Remote].
func (c *Client) Release(ctx context.Context, thread string, fence int64) error {
	_, err := c.simple(ctx, ask{Verb: release, Thread: thread, Fence: fence})
	return err
}

// Workflows implements [remote.Remote].
func (c *Client) Workflows(ctx context.Context) ([]heads.Named, error) {
	var all []heads.Named
	_, err := c.entries(ctx, ask{Verb: workflows}, func(e entry) error {
		if err := remote.CheckName(e.Name, "", e.Hash); err != nil {
			return err
		}
		if n := len(all); n == remote.MaxHashes || n > 0 && e.Name <= all[n-1].Name {
			return remote.Faultf("the remote listed too many or unordered workflows")
		}
		all = append(all, heads.Named{Name: e.Name, Hash: e.Hash})
		return nil
	})
	return all, err
}

// Register implements [remote.Remote].
func (c *Client) Register(ctx context.Context, name string, was, workflow cas.Hash) error {
	if err := remote.CheckName(name, was, workflow); err != nil {
		return err
	}
	_, err := c.simple(ctx, ask{Verb: register, Name: name, Was: was, Workflow: workflow})
	return err
}

// MissingObjects implements [remote.Remote].
func (c *Client) MissingObjects(ctx context.Context, ids []protocol.Tree) ([]protocol.Tree, error) {
	if err := remote.CheckHashes(ids); err != nil {
		return nil, err
	}
	a, err := c.simple(ctx, ask{Verb: missingObjects, IDs: ids})
	if err == nil {
		err = among(c, a.IDs, ids)
	}
	return a.IDs, err
}

// GetObjects implements [remote.Remote].
func (c *Client) GetObjects(ctx context.Context, ids []protocol.Tree) iter.Seq2[remote.Object, error] {
	return fetch(ctx, c, ask{Verb: getObjects, IDs: ids}, remote.CheckHashes(ids), len(ids),
		string([]byte{file, directory}), readObject, func(i int, o remote.Object) error {
			if o.ID != ids[i] {
				return remote.Faultf("the remote sent object %s, which is not the next requested one", o.ID)
			}
			return o.Check()
		})
}

// PutObjects implements [remote.Remote]. It splits large requests into several.
func (c *Client) PutObjects(ctx context.Context, objects []remote.Object) error {
	for len(objects) > 0 {
		n, size := 0, 0
		for n < len(objects) && n < remote.MaxHashes && (n == 0 || size+len(objects[n].Content) <= remote.MaxBatch) {
			if err := objects[n].Check(); err != nil {
				return err
			}
			size += len(objects[n].Content)
			n++
		}
		_, err := c.call(ctx, ask{Verb: putObjects}, func(out *bufio.Writer) error {
			for _, o := range objects[:n] {
				if err := writeObject(out, o); err != nil {
					return err
				}
			}
			return nil
		}, "", nil)
		if err != nil {
			return err
		}
		objects = objects[n:]
	}
	return ctx.Err()
}

// Redactions implements [remote.Remote].
func (c *Client) Redactions(ctx context.Context, known string) (all []remote.Redaction, state string, err error) {
	a, err := c.entries(ctx, ask{Verb: redactions, Known: known}, func(e entry) error {
		r := deref(e.Redaction)
		if err := r.Check(); err != nil {
			return err
		}
		r.Reason = cas.CleanReason(r.Reason)
		all = append(all, r)
		return nil
	})
	switch {
	case errors.Is(err, &protocol.Error{Code: protocol.CodeUnsupportedVersion}): // an older helper
		err = fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	case err == nil && len(a.Listed) > remote.MaxState:
		err = c.broken(remote.Faultf("the state of a list has %d bytes; the limit is %d", len(a.Listed), remote.MaxState))
	}
	return all, a.Listed, err
}
