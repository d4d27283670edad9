package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/threadid"
)

// astray refuses to run a step if its finished result may be waiting under a nearly identical
// id that no thread has: an id that was damaged in threads.yaml still looks valid, and
// finished work is not paid for twice.
func (e *Engine) astray(ctx context.Context, h *lockedThread) error {
	entries, err := os.ReadDir(filepath.Dir(e.Dirs.Run(h.id)))
	if err != nil {
		return nil // there are no runs
	}
	for _, entry := range entries {
		id := entry.Name()
		if !threadid.Near(id, h.id) {
			continue
		}
		if _, _, err := e.Lookup(ctx, id); !errors.Is(err, heads.ErrNoThread) {
			continue
		}
		dir := e.RunDir(id)
		if last := dir.Read(); last.Damaged || !last.Unfinished(h.head) {
			continue
		}
		if result, err := dir.Left(); err == nil && result.StepHash != "" {
			return fault.Hinted(fault.New(protocol.CodeCorrupt, "thread %s, which is nowhere, has finished this step: its result waits in %s, so the id of thread %s may be damaged in threads.yaml", id, dir.Path, h.id),
				"write "+id+" in threads.yaml if that is its id; uwf thread step "+id+" takes the result over", "uwf thread step "+h.id+" --discard-result runs the step again")
		}
	}
	return ctx.Err()
}
