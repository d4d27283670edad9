package ocascli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
)

// evicted answers fsck --evict.
type evicted struct {
	Hash cas.Hash `json:"evicted"`
	To   string   `json:"to"`
}

// evict moves the file of a node to the quarantine, whatever is in it, so that other
// content with the same hash can be put: who came first with a collision would keep
// the place for ever.
func (c *CLI) evict(ctx context.Context, s *fsstore.Store, arg string) (err error) {
	h := cas.Hash(protocol.FoldCrockford(arg))
	if !h.Valid() {
		return cmdline.UsageError(fmt.Sprintf("--evict %q is not a hash", arg), c.Program+" fsck --evict <hash>, all 13 characters")
	}
	if s.Kinds().InFoundation(h) {
		return cmdline.Invalid("node "+string(h)+" is a schema that every store begins with: nothing else may be in its place", c.Program+" fsck --repair makes it again if it is damaged")
	}
	there, err := s.Has(ctx, h)
	if err != nil {
		return err
	}
	if !there {
		return cmdline.NotFound("there is no node "+string(h), c.Program+" fsck")
	}
	_, err = s.Get(ctx, h)
	if redacted, ok := cas.AsRedacted(err); ok && !redacted.Tombstone.Foreign {
		return cmdline.Invalid("node "+string(h)+" was redacted here, and its tombstone keeps the content away: it stays",
			"to take the redaction back, remove "+s.Path(h)+" by hand, and put the content again")
	}
	sole, err := s.Alone(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sole.Release()) }()
	to, err := sole.Quarantine(s.Path(h))
	if err != nil {
		return err
	}
	return c.print(evicted{Hash: h, To: to}, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "node %s was moved to %s: put or import the right content, then %s fsck\n", h, to, c.Program)
		return err
	})
}
