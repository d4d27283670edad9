package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	ucli "github.com/united-workforce/uwf/internal/thirdparty/cli"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
)

// retried is the output of retry.
type retried struct {
	Threads []started `json:"threads"`
}

// maxRetried is the maximum number of workflows to examine.
const maxRetried = 10_000

// retry continues failed threads. It skips children, because their parents start failed ones again.
func (cmd *command) retry(c *ucli.Context, conf config) error {
	since, err := time.ParseDuration(c.String("since"))
	if !c.Bool("failed") || err != nil || since <= 0 {
		return cmdline.UsageError("--failed and --since are required",
			program+" retry --failed --since 1h")
	}
	dialled, err := cmd.connect(c.Context, conf, identity(), quiet())
	if err != nil {
		return err
	}
	defer dialled.Close()
	after := cmd.env.Now().Add(-since).UTC().Format(time.RFC3339)
	// Only the newest run of a thread counts. Skip threads that run or have succeeded since.
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
