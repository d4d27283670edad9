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
	Open  bool                // something of it is open although it has ended: it is played again
	Out   protocol.StepOutput // where it stands, while it is active
}

// Status is where a child stands; idle if it has not been started, and if who drove it was
// killed before it noted the end: a step does that.
func (k Kid) Status() protocol.Status {
	switch {
	case k.Head == "", k.Ended == nil && k.Out.Status == protocol.StatusCompleted:
		return protocol.StatusIdle
	case k.Ended != nil && !k.Open:
		return k.Ended.Status
	}
	return k.Out.Status
}

// failed reports whether a child cannot go on by itself.
func (k Kid) failed() bool {
	s := k.Status()
	return s == protocol.StatusError || s == protocol.StatusCorrupt
}

// Kids are all children of a position, in the order in which they are joined.
type Kids []Kid

// AllEnded reports whether they can be joined.
func (k Kids) AllEnded() bool {
	return !slices.ContainsFunc(k, func(k Kid) bool { return k.Ended == nil || k.Open })
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

// Asked is how often all children were asked for again.
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
	ids := make([]string, len(kids))
	for i, k := range kids {
		ids[i] = k.ID
	}
	stand, err := Look(ctx, x, ids, nil)
	for i := range kids {
		k := &kids[i]
		if at, known := stand[k.ID]; known {
			k.Head, k.Ended = at.Head, at.End
		}
	}
	return kids, err
}

// Look finds where threads stand, those that do not exist left out: the active ones in
// one pass, and the others, unless it is known how they have ended, in another one. What
// cannot be read is about one thread: if that is one of these, starting it says so.
func Look(ctx context.Context, x heads.Heads, ids []string, known map[string]heads.Ended) (map[string]heads.Standing, error) {
	const few = 3
	left := make(map[string]bool, len(ids))
	for _, id := range ids {
		left[id] = true
	}
	stand := make(map[string]heads.Standing, len(ids))
	if len(left) > few {
		for h, err := range x.Heads(ctx) {
			if err == nil && left[h.Thread] {
				stand[h.Thread] = heads.Standing{Head: h.Hash}
				delete(left, h.Thread)
			}
		}
	}
	for id := range left {
		if e, ok := known[id]; ok && len(ids) > few {
			stand[id] = heads.Standing{Head: e.Head, End: &e}
			delete(left, id)
		}
	}
	if len(left) > few {
		for e, err := range x.History(ctx) {
			if err == nil && left[e.Thread] { // the newest line counts
				stand[e.Thread] = heads.Standing{Head: e.Head, End: &e}
			}
		}
		return stand, ctx.Err()
	}
	for id := range left {
		switch at, err := heads.Find(ctx, x, id); {
		case err == nil:
			stand[id] = at
		case !errors.Is(err, heads.ErrNoThread):
			return stand, err
		}
	}
	return stand, ctx.Err()
}
