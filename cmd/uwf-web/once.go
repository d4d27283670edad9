package main

import (
	"context"
	"sync"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/protocol"
)

// onceHeads reads what is known of a thread once per page: the file of a large home is some megabytes, and a
// page asks many times. Other requests read it each time.
type onceHeads struct{ *fileHeads }

type fileHeads = fileheads.Heads

// page is the key of the page's [looked] in the context of a request.
type page struct{}

// looked holds what a page has read, by thread.
type looked struct {
	mu    sync.Mutex
	heads map[string]result[protocol.Hash]
	ended map[string]result[heads.Ended]
	facts map[string]result[heads.Facts]
}

type result[T any] struct {
	value T
	err   error
}

func onPage(ctx context.Context) context.Context {
	return context.WithValue(ctx, page{}, &looked{heads: map[string]result[protocol.Hash]{},
		ended: map[string]result[heads.Ended]{}, facts: map[string]result[heads.Facts]{}})
}

func once[T any](ctx context.Context, id string, of func(*looked) map[string]result[T],
	read func(context.Context, string) (T, error)) (T, error) {
	l, ok := ctx.Value(page{}).(*looked)
	if !ok {
		return read(ctx, id)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	known, ok := of(l)[id]
	if !ok {
		known.value, known.err = read(ctx, id)
		of(l)[id] = known
	}
	return known.value, known.err
}

// Head implements [heads.Heads].
func (o onceHeads) Head(ctx context.Context, id string) (protocol.Hash, error) {
	return once(ctx, id, func(l *looked) map[string]result[protocol.Hash] { return l.heads }, o.fileHeads.Head)
}

// Ended implements [heads.Heads].
func (o onceHeads) Ended(ctx context.Context, id string) (heads.Ended, error) {
	return once(ctx, id, func(l *looked) map[string]result[heads.Ended] { return l.ended }, o.fileHeads.Ended)
}

// Facts implements [heads.Heads].
func (o onceHeads) Facts(ctx context.Context, id string) (heads.Facts, error) {
	return once(ctx, id, func(l *looked) map[string]result[heads.Facts] { return l.facts }, o.fileHeads.Facts)
}
