package gc

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/threadid"
)

// sweepLocks removes lock files that killed processes left for threads that are not active.
// A lock that is held or that names a living agent stays. The files are small, so errors
// are ignored.
func sweepLocks(ctx context.Context, home string) {
	active := map[string]bool{}
	for h, err := range fileheads.Open(home, durable.OS()).Heads(ctx) {
		if err != nil {
			return
		}
		active[h.Thread] = true
	}
	locks, _ := filepath.Glob(filepath.Join(home, "locks", "*.lock"))
	for _, path := range locks {
		thread := strings.TrimSuffix(filepath.Base(path), ".lock")
		if ctx.Err() != nil || active[thread] || !threadid.Valid(thread) {
			continue
		}
		if who, err := durable.ReadHolder(path); err == nil && proc.Lives(who.Child, who.Birth) {
			continue
		}
		if held, err := durable.TryLock(path); err == nil {
			_ = held.RemoveAndUnlock()
		}
	}
}
