package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
)

// retried is what retry prints.
type retried struct {
	Threads []started `json:"threads"`
}

// maxRetried bounds how many workflows are looked through.
const maxRetried = 10_000

// retry continues threads that have failed. Children are left to their parents, which start those
// that have failed again.
func (cmd *command) retry(c *ucli.Context, conf config) error {
	since, err := time.ParseDuration(c.String("since"))
	if !c.Bool("failed") || err != nil || since <= 0 {
		return cmdline.UsageError("--failed and --since, a duration such as 90m, say which threads",
			program+" retry --failed --since 1h")
	}
	dialled, err := cmd.connect(c.Context, conf, identity(), quiet())
	if err != nil {
		return err
	}
	defer dialled.Close()
	after := cmd.env.Now().Add(-since).UTC().Format(time.RFC3339)
	// The newest run of a thread counts. One that runs, or has succeeded since, is left alone.
	query := fmt.Sprintf("(%s OR CloseTime > '%s')", running, after)
	newest := map[string]int64{}
	failed := map[string]worked{}
	_, err = listed(c.Context, dialled, conf.Remote, query, maxRetried, func(w worked) bool {
		if w.StartedAt >= newest[w.Thread] {
			newest[w.Thread] = w.StartedAt
			delete(failed, w.Thread)
			if w.Status == workflowFailed && !w.Child {
				failed[w.Thread] = w
			}
		}
		return true
	})
	if err != nil {
		return err
	}
	out := retried{Threads: []started{}}
	var first error
	for thread := range failed {
		run, err := cmd.begin(c.Context, dialled, conf, thread)
		if err != nil {
			first = errors.Join(first, err)
			continue
		}
		out.Threads = append(out.Threads, started{Thread: thread, Run: run.GetRunID(), Status: protocol.StatusRunning})
	}
	return errors.Join(first, cmd.print(out, func(w io.Writer) error {
		for _, s := range out.Threads {
			if _, err := fmt.Fprintf(w, "thread %s: %s\n", s.Thread, s.Status); err != nil {
				return err
			}
		}
		return nil
	}))
}
