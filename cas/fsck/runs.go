package fsck

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/util/runfiles"
	"github.com/united-workforce/uwf/util/threadid"
)

// checkRuns names the threads that have run and that no file of the index knows:
// their line was lost, or its id is damaged and looks like another.
func (c *check) checkRuns(ctx context.Context, known map[string]bool) error {
	entries, err := os.ReadDir(filepath.Join(c.home, "runs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.fault(Fault{Kind: Unreadable, Path: filepath.Join(c.home, "runs"), Message: err.Error()})
	}
	for _, e := range entries {
		id := e.Name()
		if known[id] || !threadid.Valid(id) {
			continue
		}
		run := runfiles.Dir(filepath.Join(c.home, "runs", id))
		if _, err := run.Read(runfiles.RecordFile, runfiles.MaxRecord); err != nil || !c.unknown(ctx, id) {
			continue
		}
		message := fmt.Sprintf("thread %s has run, but neither threads.yaml nor history.jsonl has it: its line was lost, or its id is damaged there", id)
		if head := headOfRun(run.Record()); head != "" {
			message += fmt.Sprintf("; its head was %s, and uwf thread fork %s goes on from there. If nobody misses it, remove its directory", head, head)
		}
		c.fault(Fault{Kind: Index, Path: run.File(runfiles.RecordFile), Message: message})
	}
	return ctx.Err()
}

// unknown looks once more: a thread may have begun, or have gone on, meanwhile. A
// line that cannot be read and mentions it has been told.
func (c *check) unknown(ctx context.Context, id string) bool {
	if _, err := c.index.Head(ctx, id); !errors.Is(err, heads.ErrNoThread) {
		return false
	}
	_, err := c.index.Ended(ctx, id)
	return errors.Is(err, heads.ErrNoThread)
}

// headOfRun is where the thread of a record stood, "" if that does not say it.
func headOfRun(r runfiles.Record) cas.Hash {
	if r.Status == "done" && r.StepHash.Valid() {
		return r.StepHash
	}
	if r.Head.Valid() {
		return r.Head
	}
	return ""
}
