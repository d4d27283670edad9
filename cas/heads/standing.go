package heads

import (
	"context"
	"errors"

	"github.com/united-workforce/uwf/protocol"
)

// Standing is where a thread stands.
type Standing struct {
	Head protocol.Hash
	End  *Ended // nil: it is active
}

// Find finds a thread, active or ended; the error is [ErrNoThread] if there is none. It looks
// twice, because a thread may be reopened between the looks at the active and the ended ones.
func Find(ctx context.Context, x Heads, thread string) (at Standing, err error) {
	for range 2 {
		if at.Head, err = x.Head(ctx, thread); !errors.Is(err, ErrNoThread) {
			return at, err
		}
		ended, lost := x.Ended(ctx, thread)
		if lost == nil {
			return Standing{Head: ended.Head, End: &ended}, nil
		}
		if err = lost; !errors.Is(err, ErrNoThread) {
			break
		}
	}
	return Standing{}, err
}

// Standings returns every thread, active and ended. With an error for lines that
// cannot be read it returns all the others.
func Standings(ctx context.Context, x Heads) (map[string]Standing, error) {
	all := map[string]Standing{}
	var faults []error
	for e, err := range x.History(ctx) {
		if err != nil {
			faults = append(faults, err)
			continue
		}
		all[e.Thread] = Standing{Head: e.Head, End: &e}
	}
	for h, err := range x.Heads(ctx) {
		if err != nil {
			faults = append(faults, err)
			continue
		}
		all[h.Thread] = Standing{Head: h.Hash}
	}
	// One that ended between the two looks was active at the first and is not at
	// the second.
	for e, err := range x.History(ctx) {
		if _, known := all[e.Thread]; err == nil && !known {
			all[e.Thread] = Standing{Head: e.Head, End: &e}
		}
	}
	return all, errors.Join(faults...)
}
