package threads

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/children"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
)

// workerCommand is what a background worker is started with, behind "uwf thread".
const workerCommand = "worker"

// inBackground hands a thread to a worker, and prints what it says.
func (a Commands) inBackground(ctx context.Context, e *engine.Engine, id string, w engine.Work) error {
	args := []string{"--home", e.Dirs.Home, "--store", e.Dirs.Store, "thread", workerCommand, id}
	if a.Flags.Debug {
		args = append([]string{"--debug"}, args...)
	}
	out, err := e.Background(ctx, id, w, args)
	if err != nil {
		return err
	}
	if out.Status == protocol.StatusRunning {
		a.Say("uwf: thread %s runs in the background; it says what it does in %s", id, e.WorkerLog(id))
	}
	return a.Stands(app.OutcomeAt(ctx, e, out, nil), w.Steps == engine.UntilEnd, nil)
}

// threadWorkerCommand is not for people: it is the other side of --background.
func (a Commands) threadWorkerCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: workerCommand, Hidden: true, ArgsUsage: "<thread> <lock>",
		Usage: "work on a thread whose lock was inherited",
	}, func(ctx context.Context, c *ucli.Context) error {
		lock, err := strconv.ParseUint(c.Args().Get(1), 10, 32)
		if err != nil {
			return cmdline.UsageError("this command is for uwf itself", "uwf thread step <thread> --background")
		}
		e, err := a.Engine(ctx, a.Progress())
		if err != nil {
			return err
		}
		return e.Worker(ctx, c.Args().First(), uintptr(lock), a.Env.Stdout)
	})
}

// running lists the threads with a process at work, children included, and which process that is.
func (a Commands) running(ctx context.Context, f view.Filter) (iter.Seq[protocol.ThreadItem], error) {
	e, err := a.Engine(ctx, nil)
	if err != nil {
		return nil, err
	}
	runs, err := e.Running(ctx)
	if err != nil {
		a.Say("uwf: %v", err)
		a.Status = app.Classify(err).Code
	}
	byThread := map[string]*protocol.RunningThread{}
	for i, r := range runs {
		byThread[r.Thread] = &runs[i]
	}
	f.Children, f.Statuses = true, nil // between two steps of one process a thread is idle
	entries := slices.DeleteFunc(view.Listed(ctx, e.Heads, f, func(error) {}), func(l status.Listed) bool {
		return byThread[l.Thread] == nil
	})
	return func(yield func(protocol.ThreadItem) bool) {
		for item := range view.Items(ctx, e, entries, f) {
			item.Status, item.Run = protocol.StatusRunning, byThread[item.Thread]
			if !yield(item) {
				return
			}
		}
	}, nil
}

func runningText(w io.Writer, items iter.Seq[protocol.ThreadItem], now time.Time) error {
	t, some := term.NewTable("THREAD", "ROLE", "AGENT", "STARTED", "PID", "AGENT PID"), false
	for it := range items {
		r, pid := *it.Run, "gone"
		if root, key, child := strings.Cut(r.Path, "/"); child && !it.Imported {
			r.Path = children.Address(app.Shortened(root), key)
		}
		if some = true; r.Pid != 0 {
			pid = strconv.Itoa(r.Pid)
		}
		t.Row(children.Named(cmp.Or(r.Path, r.Thread), r.Label), r.Role, r.Agent, app.Started(&r.StartedAt, now), pid, strconv.Itoa(r.AgentPid))
	}
	if !some {
		_, err := fmt.Fprintln(w, "nothing is running")
		return err
	}
	return t.Print(w)
}
