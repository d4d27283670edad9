package cas

import "context"

// Holder is a store from which what nothing names can be collected.
type Holder interface {
	// Hold keeps the collector away until release is called. Any number may
	// hold a store at once; nobody may for longer than an instant, because the
	// collector waits.
	Hold(ctx context.Context) (release func() error, err error)
}

// Hold holds a store if it can be held. Whoever puts nodes and then names the
// newest of them where the collector looks, in the index or in a run's record,
// holds the store from before the first read or put that it relies on until the
// name is written. See docs/storage.md.
func Hold(ctx context.Context, s Store) (release func() error, err error) {
	if h, ok := s.(Holder); ok {
		return h.Hold(ctx)
	}
	return func() error { return nil }, ctx.Err()
}
