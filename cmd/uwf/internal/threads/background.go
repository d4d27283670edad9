package threads

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/children"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
)

// workerCommand is what a background worker is started with, behind "uwf thread".
const workerCommand = "worker"

// inBackground hands a thread to a worker, and prints what it says.
func (a Commands) inBackground(ctx context.Context, e *engine.Engine, id string, w engine.Work) error {
	args := []string{"--home", e.Dirs.Home, "--ocas-home", e.Dirs.Store, "thread", workerCommand, id}
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

func (a Commands) threadRunningCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "running", Usage: "list the threads with a process at work, and which",
	}, func(ctx context.Context, _ *ucli.Context) error {
		e, err := a.Engine(ctx, nil)
		if err != nil {
			return err
		}
		threads, err := e.Running(ctx)
		if err != nil {
			a.Say("uwf: %v", err)
			a.Status = app.Classify(err).Code
		}
		return a.Print(protocol.ThreadsRunning{Threads: threads}, func(w io.Writer) error {
			facts, _ := e.Heads.AllFacts(ctx) // of whose origin there is doubt has all of its id
			return runningText(w, threads, facts, a.Env.Now())
		})
	})
}

func runningText(w io.Writer, threads []protocol.RunningThread, facts map[string]heads.Facts, now time.Time) error {
	if len(threads) == 0 {
		_, err := fmt.Fprintln(w, "nothing is running")
		return err
	}
	t := term.NewTable("THREAD", "ROLE", "AGENT", "STARTED", "PID", "AGENT PID")
	for _, r := range threads {
		if root, key, child := strings.Cut(r.Path, "/"); child && facts[root].StartedHere() {
			r.Path = children.Address(app.Shortened(root), key)
		}
		pid := "gone"
		if r.Pid != 0 {
			pid = strconv.Itoa(r.Pid)
		}
		t.Row(children.Named(cmp.Or(r.Path, r.Thread), r.Label), r.Role, r.Agent, app.Started(&r.StartedAt, now), pid, strconv.Itoa(r.AgentPid))
	}
	return t.Print(w)
}
