package wire

import (
	"bufio"
	"context"
	"iter"
	"slices"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote"
)

// simple is a call whose answer is its end.
func (c *Client) simple(ctx context.Context, a ask) (answer, error) {
	return c.call(ctx, a, nil, "", nil)
}

// Info implements [remote.Remote].
func (c *Client) Info(ctx context.Context) (remote.Info, error) {
	a, err := c.simple(ctx, ask{Verb: info})
	if err == nil && (a.Info == nil || a.Info.Hash != c.hash) {
		err = c.broken(remote.Faultf("the remote does not say what it is"))
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

// among refuses an answer that has more than the question, or another order.
func among[T comparable](c *Client, got, asked []T) error {
	at := 0
	for _, h := range got {
		n := slices.Index(asked[at:], h)
		if n < 0 {
			return c.broken(remote.Faultf("the remote names %v, of which it was not asked", h))
		}
		at += n + 1
	}
	return nil
}

// Walk implements [remote.Remote].
func (c *Client) Walk(ctx context.Context, roots, have []cas.Hash) iter.Seq2[cas.Hash, error] {
	return list(func(yield func(cas.Hash) error) error {
		if err := remote.CheckHashes(roots); err != nil {
			return err
		}
		if err := remote.CheckHashes(have); err != nil {
			return err
		}
		seen := map[cas.Hash]bool{}
		_, err := c.call(ctx, ask{Verb: walk, Hashes: roots, Have: have}, nil, string(value), func(_ byte, message []byte) error {
			var e entry
			if err := readJSON("an entry of the answer to "+walk, message, &e); err != nil {
				return err
			}
			for _, h := range e.Hashes {
				if !h.Valid() || seen[h] || len(seen) == remote.MaxNodes {
					return remote.Faultf("a walk with %q, with a node twice, or with too many", h)
				}
				seen[h] = true
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
	return list(func(yield func(remote.Record) error) error {
		if err := remote.CheckHashes(hashes); err != nil {
			return err
		}
		next := 0
		_, err := c.call(ctx, ask{Verb: get, Hashes: hashes}, nil, string([]byte{node, tombstone}), func(kind byte, message []byte) error {
			r, err := readRecord(kind, message)
			if err != nil {
				return err
			}
			if next == len(hashes) || r.Hash != hashes[next] {
				return remote.Faultf("the remote sends node %s, which is not the next one that it was asked for", r.Hash)
			}
			if _, _, err := r.Check(c.hash); err != nil {
				return err
			}
			next++
			return yield(r)
		})
		return c.whole(err, next, len(hashes))
	})
}

// whole refuses a list that ends well, and early.
func (c *Client) whole(err error, got, asked int) error {
	if err == nil && got < asked {
		return c.broken(remote.Faultf("the remote sends %d of the %d that it was asked for", got, asked))
	}
	return err
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
			return nil, c.broken(remote.Faultf("the remote names %q, which was not sent, or twice", h))
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
		return s, c.broken(remote.Faultf("the remote speaks of thread %q, and was asked of %q", s.Thread, thread))
	}
	return c.state(s)
}

// state checks what is said of a thread.
func (c *Client) state(s remote.State) (remote.State, error) {
	s.Facts = remote.Shared(s.Facts)
	if err := s.Check(); err != nil {
		return remote.State{}, c.broken(err)
	}
	return s, nil
}

// Threads implements [remote.Remote].
func (c *Client) Threads(ctx context.Context, f remote.Filter) iter.Seq2[remote.State, error] {
	return list(func(yield func(remote.State) error) error {
		last, count := "", 0
		_, err := c.call(ctx, ask{Verb: threads, Filter: &f}, nil, string(value), func(_ byte, message []byte) error {
			var e entry
			if err := readJSON("an entry of the answer to "+threads, message, &e); err != nil {
				return err
			}
			s := deref(e.State)
			s.Facts = remote.Shared(s.Facts)
			if err := s.Check(); err != nil {
				return err
			}
			if count++; s.Thread <= last || !f.Has(s) || f.Limit > 0 && count > f.Limit {
				return remote.Faultf("the remote lists thread %s, which was not asked for, or not in its place", s.Thread)
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
		err = c.broken(remote.Faultf("the remote renews another lease than it was asked to"))
	}
	return l, err
}

func (c *Client) lease(a answer, err error, thread string) (remote.Lease, error) {
	l := deref(a.Lease)
	if err == nil && (l.Thread != thread || l.Fence <= 0 || l.LeftMs <= 0 || l.LeftMs > remote.MaxLease.Milliseconds()) {
		err = c.broken(remote.Faultf("the remote gives no lease, and no reason"))
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
	_, err := c.call(ctx, ask{Verb: workflows}, nil, string(value), func(_ byte, message []byte) error {
		var e entry
		if err := readJSON("an entry of the answer to "+workflows, message, &e); err != nil {
			return err
		}
		if err := remote.CheckName(e.Name, "", e.Hash); err != nil {
			return err
		}
		if n := len(all); n == remote.MaxHashes || n > 0 && e.Name <= all[n-1].Name {
			return remote.Faultf("the remote names too many workflows, or not in order")
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
	if err := remote.CheckObjects(ids); err != nil {
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
	return list(func(yield func(remote.Object) error) error {
		if err := remote.CheckObjects(ids); err != nil {
			return err
		}
		next := 0
		_, err := c.call(ctx, ask{Verb: getObjects, IDs: ids}, nil, string([]byte{file, directory}), func(kind byte, message []byte) error {
			o, err := readObject(kind, message)
			if err != nil {
				return err
			}
			if next == len(ids) || o.ID != ids[next] {
				return remote.Faultf("the remote sends object %s, which is not the next one that it was asked for", o.ID)
			}
			if err := o.Check(); err != nil {
				return err
			}
			next++
			return yield(o)
		})
		return c.whole(err, next, len(ids))
	})
}

// PutObjects implements [remote.Remote]. What is more than a batch goes in several.
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
