package storeremote

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/util/careful"
	"github.com/united-workforce/uwf/util/durable"
)

// kept is the file of a lease. It stays when the lease has ended: no fence is given twice.
// A fence is at least the time at which it was given, in ms, so that this holds also when
// a file is lost or has to be removed.
type kept struct {
	Fence    int64  `json:"fence"`
	Holder   string `json:"holder"`
	UntilMs  int64  `json:"untilMs"` // 0: released
	LengthMs int64  `json:"lengthMs"`
}

const maxKept = 8 << 10

func (r *Remote) leaseFile(thread string) string {
	return filepath.Join(r.dir, "leases", thread+".json")
}

func (r *Remote) readLease(thread string) (k kept, err error) {
	path := r.leaseFile(thread)
	text, err := careful.ReadFile(path, maxKept, careful.NoFollow)
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &k)
	}
	if err == nil && (k.Fence <= 0 || k.Fence >= maxFence) {
		err = fmt.Errorf("%d is not a fence", k.Fence)
	}
	if err != nil {
		return kept{}, &unreadableError{thread: thread, path: path, err: err}
	}
	return k, nil
}

// maxFence leaves room to count on, also for what reads JSON numbers as floats.
const maxFence = 1 << 52

// unreadableError: nobody knows who works on a thread. It travels as its words only, which
// name the way out.
type unreadableError struct {
	thread, path string
	err          error
}

// Error implements error.
func (e *unreadableError) Error() string {
	return fmt.Sprintf("%s, which says who works on thread %s, cannot be read (%v); once nobody works on that thread, remove the file: "+
		"whoever had a lease before cannot move the thread then, for later fences are greater (they come from the clock)", e.path, e.thread, e.err)
}

// Unwrap returns the cause.
func (e *unreadableError) Unwrap() error { return e.err }

// shown is the lease of a thread as those see it who only look. One that cannot be read
// is doubted, and hides no thread.
func (r *Remote) shown(thread string) *remote.Lease {
	lease, err := r.lease(thread)
	switch {
	case err != nil:
		return &remote.Lease{Thread: thread, Holder: "nobody knows: leases/" + thread + ".json cannot be read"}
	case lease == nil:
		return nil
	}
	public := lease.Public()
	return &public
}

// lease is the one that lasts; nil: there is none.
func (r *Remote) lease(thread string) (*remote.Lease, error) {
	k, err := r.readLease(thread)
	if err != nil {
		return nil, err
	}
	l := &remote.Lease{Thread: thread, Holder: k.Holder, Fence: k.Fence, Until: k.UntilMs}
	// After a clock was set back a lease lasts no longer than it was given for, from now.
	if l.LeftMs = min(k.UntilMs-r.nowMs(), k.LengthMs); l.LeftMs <= 0 {
		return nil, nil
	}
	return l, nil
}

// keep writes a lease down.
func (r *Remote) keep(thread string, k kept) error {
	if err := durable.MkdirAll(r.disk, filepath.Join(r.dir, "leases"), 0o700); err != nil {
		return err
	}
	return durable.ReplaceJSON(r.disk, r.leaseFile(thread), k)
}

// Take implements [remote.Remote].
func (r *Remote) Take(ctx context.Context, thread, holder string, duration time.Duration) (l remote.Lease, err error) {
	if err := cmp.Or(ctx.Err(), remote.CheckLease(thread, holder, duration)); err != nil {
		return l, err
	}
	if _, err := r.standing(ctx, thread); err != nil {
		return l, err
	}
	err = r.locked(ctx, func() error {
		if lasts, err := r.lease(thread); err != nil || lasts != nil {
			if err == nil {
				err = &remote.LeasedError{Lease: lasts.Public()}
			}
			return err
		}
		k, err := r.readLease(thread)
		if err != nil {
			return err
		}
		k.Fence, k.Holder = max(k.Fence+1, r.nowMs()), holder
		l, err = r.extend(thread, k, duration)
		return err
	})
	return l, err
}

// extend lets a lease last so long from now.
func (r *Remote) extend(thread string, k kept, duration time.Duration) (remote.Lease, error) {
	k.LengthMs = duration.Milliseconds()
	k.UntilMs = r.nowMs() + k.LengthMs
	l := remote.Lease{Thread: thread, Holder: k.Holder, Fence: k.Fence, Until: k.UntilMs, LeftMs: k.LengthMs}
	return l, r.keep(thread, k)
}

// Renew implements [remote.Remote].
func (r *Remote) Renew(ctx context.Context, thread string, fence int64, duration time.Duration) (l remote.Lease, err error) {
	if err := cmp.Or(ctx.Err(), remote.CheckDuration(thread, duration)); err != nil {
		return l, err
	}
	err = r.locked(ctx, func() error {
		lasts, err := r.lease(thread)
		if err != nil {
			return err
		}
		if lasts == nil || lasts.Fence != fence {
			return &remote.FenceError{Thread: thread, Fence: fence}
		}
		l, err = r.extend(thread, kept{Fence: fence, Holder: lasts.Holder}, duration)
		return err
	})
	return l, err
}

// Release implements [remote.Remote].
func (r *Remote) Release(ctx context.Context, thread string, fence int64) error {
	if err := cmp.Or(ctx.Err(), remote.CheckDuration(thread, remote.MinLease)); err != nil {
		return err
	}
	return r.locked(ctx, func() error {
		k, err := r.readLease(thread)
		if err != nil || k.Fence != fence || k.UntilMs == 0 {
			return err
		}
		k.UntilMs = 0
		return r.keep(thread, k)
	})
}
