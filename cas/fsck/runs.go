package fsck

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/util/runfiles"
)

// checkLost reports threads that exist and are in no file of the index.
func (c *check) checkLost(ctx context.Context) error {
	lost, err := c.index.Lost(ctx)
	if err != nil {
		c.unreadableLine(c.index.ThreadsPath(), err)
	}
	for _, id := range lost {
		run := runfiles.Dir(filepath.Join(c.home, "runs", id))
		what, path := "has run", run.File(runfiles.RecordFile)
		if _, err := os.Lstat(path); err != nil {
			what, path = "is known", c.index.FactsPath()
		}
		message := fmt.Sprintf("thread %s %s, but neither threads.yaml nor history.jsonl has it: "+
			"its line was lost, or its id is damaged there", id, what)
		if head := headOfRun(run.Record()); head != "" {
			message += fmt.Sprintf("; its head was %s, and uwf thread fork %s goes on from there. If nobody misses it, remove its directory", head, head)
		}
		c.fault(Fault{Kind: Index, Path: path, Message: message})
	}
	return ctx.Err()
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
