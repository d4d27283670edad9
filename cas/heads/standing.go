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
