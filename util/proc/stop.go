package proc

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Between two looks whether something has ended.
const (
	minPause = time.Millisecond
	maxPause = 50 * time.Millisecond
)

// StopGroup asks a group of a child that is not ours to stop and kills it after
// grace. alive reports whether it still runs (for an agent: whether its lock is
// held); nothing is signalled unless it says so just before, because process
// ids are used again. Errors: [ErrAlive], ctx's cause.
func StopGroup(ctx context.Context, pid int, grace time.Duration, alive func() bool) error {
	g, err := groupOf(pid)
	if err != nil {
		return fmt.Errorf("stop process %d: %w", pid, err)
	}
	err = stop(ctx, grace, alive, func(hard bool) error {
		if !hard {
			return g.ask(nil)
		}
		return errors.Join(g.kill(), g.killSession())
	})
	if err != nil {
		return fmt.Errorf("stop process %d: %w", pid, err)
	}
	return nil
}

// StopHolders is StopGroup for whoever holds a lock on the file at path: a child
// whose parent was killed, so that its id was never recorded, or is no longer
// its own. Of each holder that leads a group the whole group is stopped, of
// another only that process; never ourselves. Where holders cannot be found
// (only Linux shows them) it is StopGroup of pid, unless that is 0.
func StopHolders(ctx context.Context, path string, pid int, grace time.Duration, alive func() bool) error {
	holders, err := lockHolders(path)
	if err != nil {
		return fmt.Errorf("stop who holds %s: %w", path, err)
	}
	if len(holders) == 0 && pid != 0 {
		return StopGroup(ctx, pid, grace, alive)
	}
	err = stop(ctx, grace, alive, func(hard bool) error { return signalHolders(path, hard) })
	if err != nil {
		return fmt.Errorf("stop who holds %s: %w", path, err)
	}
	return nil
}

// stop asks, waits, kills and waits, as long as alive says so.
func stop(ctx context.Context, grace time.Duration, alive func() bool, signal func(hard bool) error) error {
	if !alive() {
		return nil
	}
	if err := signal(false); err != nil {
		return err
	}
	gone, err := waitUntil(ctx, grace, func() bool { return !alive() })
	if gone || err != nil {
		return err
	}
	if err := signal(true); err != nil {
		return err
	}
	gone, err = waitUntil(ctx, settle, func() bool { return !alive() })
	if gone || err != nil {
		return err
	}
	return ErrAlive
}

// waitUntil looks until a condition holds or the limit is over. The pauses grow
// with the time that was waited already. The error is ctx's cause.
func waitUntil(ctx context.Context, limit time.Duration, holds func() bool) (bool, error) {
	for waited := time.Duration(0); ; {
		if holds() {
			return true, nil
		}
		if waited >= limit {
			return false, nil
		}
		pause := min(max(waited/10, minPause), maxPause, limit-waited)
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return false, context.Cause(ctx)
		case <-timer.C:
			waited += pause
		}
	}
}
