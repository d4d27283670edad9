// Package children is about the threads that play a role of another thread together.
// Which they are follows from the chain of their parent; their ids follow from it, too, so
// a child either is in the heads or has not been started. Where the parent stands follows
// from where they stand.
package children

import (
	"context"
	"errors"
	"slices"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/threadid"
)

// Kid is a child of a position.
type Kid struct {
	moderator.Child
	ID    string
	Head  protocol.Hash // "": it has not been started
	Ended *heads.Ended
	Out   protocol.StepOutput // where it stands, while it is active
}

// Status is where a child stands; idle if it has not been started.
func (k Kid) Status() protocol.Status {
	switch {
	case k.Head == "":
		return protocol.StatusIdle
	case k.Ended != nil:
		return k.Ended.Status
	}
	return k.Out.Status
}

// failed reports whether a child cannot go on by itself.
func (k Kid) failed() bool {
	s := k.Status()
	return s == protocol.StatusFailed || s == protocol.StatusCorrupt
}

// Kids are all children of a position, in the order in which they are joined.
type Kids []Kid

// AllEnded reports whether they can be joined.
func (k Kids) AllEnded() bool {
	return !slices.ContainsFunc(k, func(k Kid) bool { return k.Ended == nil })
}

// Unstarted reports whether there is one that does not exist yet.
func (k Kids) Unstarted() bool {
	return slices.ContainsFunc(k, func(k Kid) bool { return k.Head == "" })
}

// KeyOf names an item by its content.
func KeyOf(item any) (string, error) {
	data, err := cas.Encode(item)
	return string(cas.XXH3.Sum("", data)), err
}

// Place is where a thread's children belong: a role, after a head.
type Place struct {
	Thread string
	Head   protocol.Hash
	Role   string
}

// AttemptKey is that of the facts for all children of a role, or, with a key, for one of
// them.
func (p Place) AttemptKey(key string) string {
	text := string(p.Head) + "/" + p.Role
	if key != "" {
		text += "/" + key
	}
	return text
}

// Asked is how often all children were asked for anew.
func (p Place) Asked(parent heads.Facts) int { return parent.Attempts[p.AttemptKey("")] }

// Attempt is the number of a child's attempt. Those of one child alone go on from those
// of all, with numbers that all never have.
func (p Place) Attempt(parent heads.Facts, key string) int {
	const apart = 1000
	return p.Asked(parent)*apart + parent.Attempts[p.AttemptKey(key)]
}

// Find finds the children of a place: of is what its role asks for.
func (p Place) Find(ctx context.Context, x heads.Heads, parent heads.Facts, of []moderator.Child) (Kids, error) {
	kids := make(Kids, len(of))
	for i, c := range of {
		id, err := threadid.Child(p.Thread, string(p.Head), p.Role, p.Attempt(parent, c.Key), c.Key)
		if err != nil {
			return nil, err
		}
		kids[i] = Kid{Child: c, ID: id}
	}
	const few = 3
	if len(kids) > few {
		return kids, kids.findAll(ctx, x)
	}
	for i := range kids {
		if err := kids[i].find(ctx, x); err != nil {
			return nil, err
		}
	}
	return kids, nil
}

// find looks a child up. One that is made active again between the two looks is found by
// another one.
func (k *Kid) find(ctx context.Context, x heads.Heads) error {
	for range 2 {
		head, err := x.Head(ctx, k.ID)
		if err == nil {
			k.Head = head
		}
		if !errors.Is(err, heads.ErrNoThread) {
			return err
		}
		ended, err := x.Ended(ctx, k.ID)
		if err == nil {
			k.Head, k.Ended = ended.Head, &ended
		}
		if !errors.Is(err, heads.ErrNoThread) {
			return err
		}
	}
	return nil
}

// findAll looks children up, the active ones in one pass, and the others, if any, in
// another one. What cannot be read is about one thread: if that is a child, starting it
// says so.
func (k Kids) findAll(ctx context.Context, x heads.Heads) error {
	byID := make(map[string]*Kid, len(k))
	for i := range k {
		byID[k[i].ID] = &k[i]
	}
	left := len(k)
	for h, err := range x.Heads(ctx) {
		if k := byID[h.Thread]; err == nil && k != nil {
			k.Head = h.Hash
			left--
		}
	}
	if left == 0 {
		return ctx.Err()
	}
	for line, err := range x.History(ctx) {
		if k := byID[line.Thread]; err == nil && k != nil && (k.Head == "" || k.Ended != nil) { // the newest line counts
			k.Head, k.Ended = line.Head, &line
		}
	}
	return ctx.Err()
}
