// Package threaddiff finds where two threads part: the first step that differs in
// what was asked, who answered, or what was delivered. That the same thing took
// longer or cost more parts nothing, but is told of the step where they part.
//
// Both chains are read from their heads back to the first node that they share,
// so comparing a thread with its fork costs what came after the fork.
package threaddiff

import (
	"context"
	"slices"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/protocol"
)

// Diff is how two threads differ.
type Diff struct {
	Equal   bool     `json:"equal"`  // in substance
	Shared  int      `json:"shared"` // steps that are the same nodes
	Same    int      `json:"same"`   // steps from the first one that are the same in substance, with the shared ones
	At      *int     `json:"at"`     // number of the step where they part, from 1; 0: the start; null: they do not
	Changes []Change `json:"changes"`
	Rest    []Pair   `json:"rest"` // the steps after that
}

// Change is a field that differs. A side that does not have it is null.
type Change struct {
	Field string `json:"field"`
	Old   any    `json:"old"`
	New   any    `json:"new"`
}

// Pair are the steps of both threads with one number; null where one has ended.
type Pair struct {
	Number int    `json:"number"`
	Old    *Brief `json:"old"`
	New    *Brief `json:"new"`
}

// Brief is a step in a line.
type Brief struct {
	Hash   protocol.Hash `json:"hash"`
	Role   string        `json:"role"`
	Output any           `json:"output"`
}

// Compare compares the threads with these heads. Errors are those of reading
// them; a node that is missing wraps cas.ErrNotFound.
func Compare(ctx context.Context, r cas.Reader, before, after protocol.Hash) (Diff, error) {
	d := Diff{Changes: []Change{}, Rest: []Pair{}}
	a, b, err := open(ctx, r, before, after)
	if err != nil {
		return d, err
	}
	if err := d.part(ctx, a, b); err != nil {
		return d, err
	}
	d.Equal = d.At == nil
	return d, nil
}

// part walks both tails forward, beginning with the starts.
func (d *Diff) part(ctx context.Context, a, b *side) error {
	d.Shared, d.Same = a.shared, a.shared
	if changes := startChanges(a.Start, b.Start); len(changes) > 0 {
		at := 0
		d.At, d.Changes = &at, changes
	}
	for i := range max(len(a.tail), len(b.tail)) {
		number := a.shared + i + 1
		if d.At != nil {
			pair, err := pairOf(ctx, a, b, i, number)
			if err != nil {
				return err
			}
			d.Rest = append(d.Rest, pair)
			continue
		}
		changes, err := stepChanges(ctx, a, b, i)
		if err != nil {
			return err
		}
		if len(changes) == 0 {
			d.Same++
			continue
		}
		d.At, d.Changes = &number, changes
	}
	return nil
}

// side is one of the threads.
type side struct {
	*thread.Thread
	r      cas.Reader
	shared int           // steps before the tail
	tail   []thread.Step // those that are not shared, oldest first
}

func open(ctx context.Context, r cas.Reader, before, after protocol.Hash) (a, b *side, err error) {
	if a, err = openSide(ctx, r, before); err != nil {
		return nil, nil, err
	}
	if b, err = openSide(ctx, r, after); err != nil {
		return nil, nil, err
	}
	if err := meet(ctx, a, b); err != nil {
		return nil, nil, err
	}
	slices.Reverse(a.tail)
	slices.Reverse(b.tail)
	return a, b, nil
}

func openSide(ctx context.Context, r cas.Reader, head protocol.Hash) (*side, error) {
	t, err := thread.Open(ctx, r, head)
	if err != nil {
		return nil, err
	}
	return &side{Thread: t, r: r}, nil
}

// meet reads both chains back, the longer one first, to what they share.
func meet(ctx context.Context, a, b *side) error {
	nextA, stopA := pull(ctx, a.Thread)
	defer stopA()
	nextB, stopB := pull(ctx, b.Thread)
	defer stopB()
	x, errA := nextA()
	y, errB := nextB()
	for {
		switch {
		case errA != nil:
			return errA
		case errB != nil:
			return errB
		case x == nil && y == nil:
			return nil
		case x != nil && y != nil && x.Hash == y.Hash:
			a.shared, b.shared = x.Index+1, x.Index+1
			return nil
		}
		longer, shorter := index(x), index(y)
		if longer >= shorter {
			a.tail = append(a.tail, *x)
			x, errA = nextA()
		}
		if shorter >= longer {
			b.tail = append(b.tail, *y)
			y, errB = nextB()
		}
	}
}

func index(s *thread.Step) int {
	if s == nil {
		return -1
	}
	return s.Index
}
