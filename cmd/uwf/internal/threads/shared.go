package threads

import (
	"cmp"
	"context"
	"fmt"
	"time"

	ucli "github.com/united-workforce/uwf/internal/thirdparty/cli"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/host"
	"github.com/united-workforce/uwf/engine/remotes"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/render"
)

// remoteFlags returns the flags of commands that work on a thread at a remote.
func remoteFlags() []ucli.Flag {
	return []ucli.Flag{
		remoteFlag("`REMOTE` take the thread's lease on this remote, pull, run, push"),
		term.Checked(ucli.StringFlag{Name: "if-head", Usage: "`HEAD` fail unless this is the current head of the thread"}, func(_, text string) error {
			if _, err := protocol.ParseHash(text); err != nil {
				return cmdline.UsageError(fmt.Sprintf("--if-head: %v", err), "uwf thread show <thread>")
			}
			return nil
		}),
		leaseFlag(),
	}
}

func leaseFlag() ucli.Flag {
	f := term.Span(ucli.StringFlag{Name: "lease", Usage: "`DURATION` with --remote: time before another worker can take over (default " + protocol.Span(remotes.DefaultLease) + ")"})
	check := f.Action
	f.Action = func(c *ucli.Context, text string) error {
		if !c.IsSet("remote") {
			return cmdline.UsageError("--lease works only with --remote")
		}
		if d := term.SpanOf(c, "lease"); d > 0 && (d < remote.MinLease || d > remote.MaxLease) {
			return cmdline.UsageError(fmt.Sprintf("--lease must be %s to %s", protocol.Span(remote.MinLease), protocol.Span(remote.MaxLease)), "--lease 30s")
		}
		return check(c, text)
	}
	return f
}

func remoteFlag(usage string) ucli.Flag { return &ucli.StringFlag{Name: "remote", Usage: usage} }

// shared is a thread at a remote. The zero value is a local thread.
type shared struct {
	link  *remotes.Link
	id    string
	lease time.Duration
	done  func()
}

// atRemote resolves a command's thread at the remote given by --remote. If now is set, it also pulls the
// thread.
func (a Commands) atRemote(ctx context.Context, c *ucli.Context, show func(engine.Event), now bool) (s shared, err error) {
	if !c.IsSet("remote") {
		return s, nil
	}
	if s, err = a.linked(ctx, c, show); err != nil {
		return s, err
	}
	if s.id, err = a.ThreadAt(ctx, s.link, c.Args().First()); err != nil {
		return s, err
	}
	if _, unknown := s.link.Engine.Reader.Head(ctx, s.id); now || unknown != nil {
		_, err = s.link.Pull(ctx, []string{s.id}, remotes.PullOptions{})
	}
	return s, err
}

// linked connects to the remote given by --remote, with the lease to take there.
func (a Commands) linked(ctx context.Context, c *ucli.Context, show func(engine.Event)) (s shared, err error) {
	a.WorksAt = c.String("remote")
	s.lease = cmp.Or(term.SpanOf(c, "lease"), remotes.DefaultLease)
	if s.link, s.done, err = a.Link(ctx, c.String("remote"), show); err != nil {
		return s, err
	}
	if dir, err := a.movedTo(c); err == nil && dir != "" {
		s.link.Near = dir
	}
	return s, nil
}

// waitedFor waits until nothing works on a thread. At a remote it waits for the lease to be released and then
// pulls the thread.
func (a Commands) waitedFor(
	ctx, waiting context.Context, c *ucli.Context,
) (id string, e *engine.Engine, out protocol.StepOutput, done func(), err error) {
	if !c.IsSet("remote") {
		if id, e, err = a.ThreadAndEngine(ctx, c, nil); err == nil {
			out, err = e.Reader.Wait(waiting, id)
		}
		return id, e, out, func() {}, err
	}
	s, err := a.linked(ctx, c, nil)
	if err == nil {
		s.id, err = a.ThreadAt(ctx, s.link, c.Args().First())
	}
	if err == nil {
		err = s.link.Wait(waiting, s.id)
	}
	if err == nil {
		e, err = s.link.ViewOf(ctx, s.id)
	}
	if err == nil {
		out, err = e.Reader.Show(ctx, s.id)
	}
	return s.id, e, out, s.close, err
}

func (s shared) close() {
	if s.done != nil {
		s.done()
	}
}

// with calls do, under a lease if the thread is at a remote. Children of such a thread are left to other
// workers.
func (s shared) with(ctx context.Context, e *engine.Engine, w engine.Work, do func(*engine.Engine, engine.Work) error) error {
	if s.link == nil {
		return do(e, w)
	}
	patient, cancel := context.WithTimeout(ctx, answerPatience)
	defer cancel()
	for {
		err := s.link.With(ctx, s.id, w.Expect, remotes.Options{Lease: s.lease}, func(_ context.Context, e *engine.Engine) error {
			w := w
			if w.Expect = ""; w.Steps == engine.UntilEnd {
				w.Steps = remotes.Many
			}
			return do(e, w)
		})
		if err == nil || w.Do != engine.DoAnswer || engine.Code(err) != protocol.CodeLocked || s.link.Wait(patient, s.id) != nil {
			return err
		}
	}
}

// answerPatience bounds the time that an answer waits for the lease: a worker holds it briefly when it checks
// for answers.
const answerPatience = 10 * time.Second

// ListAt lists the threads at a remote, or with waiting only those that wait for a person.
func (a Commands) ListAt(ctx context.Context, name string, ended, waiting bool) error {
	f := view.Filter{Ended: ended}
	if waiting {
		f.Statuses = []protocol.Status{protocol.StatusSuspended}
	}
	return a.listAt(ctx, name, f)
}

func (a Commands) listAt(ctx context.Context, name string, f view.Filter) error {
	link, done, err := a.Link(ctx, name, nil)
	if err != nil {
		return err
	}
	defer done()
	e, leases, err := link.View(ctx, remote.Filter{Active: !f.Ended && len(f.Statuses) == 0})
	if err != nil {
		return err
	}
	entries := view.Listed(ctx, e.Reader.Heads, f, func(err error) {
		a.Messagef("uwf: %v", err)
		a.Status = app.Classify(err).Code
	})
	if !f.Ended && len(f.Statuses) == 0 {
		a.Hint("to include ended threads: uwf remote list %s --all", plaintext.Word(name))
	}
	items := func(yield func(protocol.ThreadItem) bool) {
		for item := range view.Items(ctx, e, entries, f) {
			item.WorkedOnBy = leases[item.Thread].Holder
			if !yield(item) {
				return
			}
		}
	}
	return render.PrintList(ctx, a.Env.Stdout, a.Format(nil), items, a.Page(func(w *term.Page) { listText(w, items, a.Env.Now()) }))
}

// threadSeen resolves the thread for a command that only reads it, here or at a remote.
func (a Commands) threadSeen(ctx context.Context, c *ucli.Context) (id string, e *engine.Engine, done func(), err error) {
	if !c.IsSet("remote") {
		id, e, err = a.ThreadAndEngine(ctx, c, nil)
		return id, e, func() {}, err
	}
	link, done, err := a.Link(ctx, c.String("remote"), nil)
	if err != nil {
		return "", nil, nil, err
	}
	if id, err = a.ThreadAt(ctx, link, c.Args().First()); err == nil {
		e, err = link.ViewOf(ctx, id)
	}
	if err != nil {
		done()
	}
	return id, e, done, err
}

// threadHere resolves the thread for a command that reads it before working on it: a thread at a remote is
// pulled first.
func (a Commands) threadHere(ctx context.Context, c *ucli.Context) (string, *engine.Engine, error) {
	if !c.IsSet("remote") {
		return a.ThreadAndEngine(ctx, c, nil)
	}
	s, err := a.atRemote(ctx, c, nil, true)
	defer s.close()
	if err != nil {
		return "", nil, err
	}
	return s.id, s.link.Engine, nil
}

type tickOutput struct {
	Threads []engine.Ticked `json:"threads"`
}

// Tick returns the command uwf run-due.
func (a Commands) Tick() *ucli.Command {
	return a.WithEngine(ucli.Command{
		Name: "run-due", Usage: "run the next step of every thread that can continue",
		Flags: []ucli.Flag{
			term.Number(ucli.StringFlag{Name: "parallel", Usage: "`N` maximum number of threads to run at once", Value: "1"}, 1, 4),
			term.Timeout("`DURATION` timeout of each step"),
		},
	}, func(ctx context.Context, c *ucli.Context, e *engine.Engine) error {
		host.Notices{Engine: e, Process: a.Env}.Flush()
		out := tickOutput{Threads: []engine.Ticked{}}
		err := e.Tick(ctx, term.NumberOf(c, "parallel"), a.stepOptions(c), func(t engine.Ticked) {
			out.Threads = append(out.Threads, t)
			a.Messagef("thread %s: %s", t.Thread, tickText(t))
			if t.Error != nil && a.Status == "" {
				a.Status = t.Error.Code
			}
		})
		failed := 0
		for _, t := range out.Threads {
			if t.Error != nil {
				failed++
			}
		}
		text := render.Count(len(out.Threads)-failed, "thread") + " continued"
		if failed > 0 {
			text += fmt.Sprintf(", %d failed", failed)
			a.Hint("uwf inbox")
		}
		return cmp.Or(a.Printf(out, "%s\n", text), err)
	})
}

func tickText(t engine.Ticked) string {
	role := ""
	if t.Output.Role != "" {
		role = string(t.Output.Role) + ": "
	}
	if t.Error != nil {
		return plaintext.Line(role + t.Error.Message)
	}
	if t.Output.Status == protocol.StatusSuspended {
		return plaintext.Line(role + app.StatusText(t.Output))
	}
	return plaintext.Line(role + app.StateText(t.Output))
}
