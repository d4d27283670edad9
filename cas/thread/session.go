package thread

import (
	"context"
	"errors"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/protocol"
)

// SessionID is the id of the session in which a step was made. The original's steps
// do not name it, but their details do; "" if these are of an unknown form, or
// redacted. Errors: those of [cas.Read].
func (t *Thread) SessionID(ctx context.Context, s Step) (string, error) {
	return SessionID(ctx, t.reader, s.Step)
}

// SessionID is [Thread.SessionID] for a step alone.
func SessionID(ctx context.Context, r cas.Reader, s protocol.Step) (string, error) {
	if s.SessionID != "" {
		return s.SessionID, nil
	}
	d, err := cas.Read[protocol.Detail](ctx, r, s.Detail)
	var other *cas.TypeError
	if _, redacted := cas.AsRedacted(err); redacted || errors.As(err, &other) {
		return "", nil
	}
	return d.SessionID, err
}
