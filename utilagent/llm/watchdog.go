package llm

import (
	"context"
	"io"
	"time"
)

// watchdog ends a request whose endpoint is silent for too long, or does not
// come to an end.
type watchdog struct {
	timer  *time.Timer
	idle   time.Duration
	cancel context.CancelCauseFunc
	whole  context.CancelFunc
}

func watch(ctx context.Context, first, idle, whole time.Duration) (context.Context, *watchdog) {
	ctx, stop := context.WithTimeoutCause(ctx, whole, errEndless)
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(first, func() { cancel(errIdle) })
	return ctx, &watchdog{timer: timer, idle: idle, cancel: cancel, whole: stop}
}

// stop ends the request.
func (w *watchdog) stop() {
	w.timer.Stop()
	w.cancel(nil)
	w.whole()
}

// farewell is how long a reply's very end is waited for behind its last word.
const farewell = time.Second

// letGo ends a request whose reply has been read, beside what comes next. The
// connection can be used again only when the very end of the reply has come, too,
// which may be a moment after its last word. The channel is closed then.
func (w *watchdog) letGo(body io.ReadCloser) <-chan struct{} {
	w.timer.Stop()
	ended := make(chan struct{})
	late := time.AfterFunc(farewell, w.stop)
	go func() {
		defer close(ended)
		_, _ = io.CopyN(io.Discard, body, 64<<10) // as far as it comes: nobody misses it
		_ = body.Close()
		late.Stop()
		w.stop()
	}()
	return ended
}

// awaitConnection waits for the end of the reply before, but not for long: to set
// up another connection takes its time, too.
func (c *Client) awaitConnection(ctx context.Context) {
	const most = 20 * time.Millisecond
	before := c.ending.Load()
	if before == nil {
		return
	}
	late := time.NewTimer(most)
	defer late.Stop()
	select {
	case <-*before:
	case <-late.C:
	case <-ctx.Done():
	}
}

// reader wraps a body: every byte that comes buys it more time.
func (w *watchdog) reader(r io.Reader) io.Reader {
	w.timer.Reset(w.idle)
	return readerFunc(func(p []byte) (int, error) {
		n, err := r.Read(p)
		if n > 0 {
			w.timer.Reset(w.idle)
		}
		return n, err
	})
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
