// Package threads implements the commands that start, run, show and maintain threads.
package threads

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	ucli "github.com/united-workforce/uwf/internal/thirdparty/cli"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/bundles"
	"github.com/united-workforce/uwf/cmd/uwf/internal/steps"
	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/cmd/uwf/internal/workflows"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/host"
	"github.com/united-workforce/uwf/engine/names"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/engine/worktree"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/plaintext"
)

// Commands provides the commands of this package.
type Commands struct{ *app.App }

// Command returns the command uwf thread: with all commands, or with those whose names include a word.
func (a Commands) Command(words ...string) *ucli.Command {
	step, bundle := steps.Commands{App: a.App}, bundles.Commands{App: a.App}
	on := cmdline.NewBranch
	reads := func(build func() *ucli.Command) func() *ucli.Command {
		return func() *ucli.Command { return a.Reads(build()) }
	}
	below := slices.Concat(
		cmdline.Branches(words, cmdline.Common, on("start", a.threadStartCommand),
			on("step exec", a.threadStepCommand), on("resume", a.threadResumeCommand),
			on("answer", a.threadAnswerCommand), on("list ls", reads(a.threadListCommand)),
			on("show", reads(a.threadShowCommand)), on("read", reads(a.threadReadCommand))),
		cmdline.Branches(words, "Run", on("retry poke", a.threadRetryCommand),
			on("message", a.threadMessageCommand), on("wait", a.threadWaitCommand),
			on("watch", a.threadWatchCommand), on("stop", a.threadStopCommand),
			on("kill cancel", a.threadKillCommand), on("undo", a.threadUndoCommand),
			on("redo", a.threadRedoCommand), on("fork", a.Fork), on("replay", a.threadReplayCommand),
			on("apply", a.threadApplyCommand)),
		cmdline.Branches(words, "Share", on("export", bundle.Export), on("import", bundle.Import),
			on("trust", a.threadTrustCommand), on("seal", bundle.Seal), on("redact", bundle.Redact)),
		cmdline.Branches(words, "Inspect", on("steps", reads(a.History)), on("step-details", reads(step.Details)),
			on("diff", a.threadDiffCommand), on("graph", reads(a.threadGraphCommand)),
			on("diagnose", a.threadDiagnoseCommand), on("bisect", a.threadBisectCommand)),
		cmdline.Branches(words, "Manage", on("title", a.threadTitleCommand), on("notify", a.threadNotifyCommand),
			on("rm", a.threadRemoveCommand), on("prune", a.threadPruneCommand),
			on("worktrees", a.threadWorktreesCommand)),
	)
	if len(below) == 0 {
		return a.Command()
	}
	return a.Group(ucli.Command{Name: "thread", Usage: "start, step and inspect threads", Subcommands: below})
}

func promptFlag(required bool, usage string) ucli.Flag {
	return &ucli.StringFlag{Name: "prompt", Aliases: []string{"p"}, Usage: usage, Required: required}
}

func cwdFlag() ucli.Flag {
	return &ucli.StringFlag{Name: "cwd", Usage: "`DIR` working directory of the agents (default the current directory)"}
}

// moveFlag returns --cwd for commands that run agents in an existing thread.
func moveFlag() ucli.Flag {
	return &ucli.StringFlag{Name: "cwd", Usage: "`DIR` new working directory; an imported thread needs it once"}
}

// movedTo returns the value of --cwd, or "".
func (a Commands) movedTo(c *ucli.Context) (string, error) {
	if !c.IsSet("cwd") {
		return "", nil
	}
	return a.workDir(c.String("cwd"))
}

func (a Commands) threadStartCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "start", Usage: "start a thread without running a step", ArgsUsage: "<workflow>",
		Flags: append(slices.Concat(varFlags(), limitFlags(), treeFlags()), titleFlag(), promptFlag(true, "`TEXT` task; - reads it from stdin, @FILE from a file"), cwdFlag(), workflows.YesFlag()),
	}, func(ctx context.Context, c *ucli.Context) error {
		l := limitsOf(c)
		started, err := a.start(ctx, c, l, func(e *engine.Engine, s protocol.Start) error { return checkBudget(ctx, e, s, l, engine.StepOptions{}) })
		if err != nil {
			return err
		}
		a.Hint("uwf thread step %s", started.Thread)
		return a.Printf(started, "%v\n", started.Thread)
	})
}

// start implements the common part of thread start and run. l are limits for this run alone; check may reject
// the thread before it is created.
func (a Commands) start(ctx context.Context, c *ucli.Context, l protocol.Limits, check func(*engine.Engine, protocol.Start) error) (protocol.ThreadStarted, error) {
	none := protocol.ThreadStarted{}
	a.Confirms, a.Yes = true, c.Bool("yes")
	prompt, err := a.taskText(c)
	if err != nil {
		return none, err
	}
	cwd, err := a.workDir(c.String("cwd"))
	if err != nil {
		return none, err
	}
	e, err := a.Engine(ctx, nil)
	if err == nil {
		e, err = e.InProject(cwd)
	}
	if err != nil {
		return none, err
	}
	may := func(s *protocol.Start) error {
		if err := a.complete(ctx, c, e, s); err != nil {
			return err
		}
		return check(e, *s)
	}
	title := c.String("title")
	var out protocol.ThreadStarted
	err = e.Trusting(ctx, a.AskTrust, func() (err error) {
		out, err = a.Workflows().Start(ctx, e, c.Args().First(), protocol.Start{Prompt: prompt, Cwd: cwd}, engine.StartOptions{Limits: l, Workspace: workspaceOptions(c), Check: may})
		return err
	})
	if err == nil {
		a.printWorktree(ctx, e, out.Thread)
	}
	if err == nil && title != "" {
		err = e.SetTitle(ctx, out.Thread, title)
	}
	return out, err
}

func titleFlag() ucli.Flag {
	f := ucli.StringFlag{Name: "title", Usage: "`TITLE` title in lists (default the task's first line)"}
	return term.Checked(f, func(_, title string) error { return names.CheckTitle(title) })
}

func (a Commands) threadTitleCommand() *ucli.Command {
	return a.OnThread(ucli.Command{
		Name: "title", Usage: "print or change the title of a thread", ArgsUsage: "<thread> [title]",
	}, func(ctx context.Context, c *ucli.Context, e *engine.Engine, id string) error {
		if c.Args().Len() > 1 {
			if err := e.SetTitle(ctx, id, c.Args().Get(1)); err != nil {
				return err
			}
		}
		show, err := view.Thread(ctx, e, id, false)
		if err != nil {
			return err
		}
		return a.Printf(protocol.ThreadTitled{Thread: id, Title: show.Title}, "%s\n", plaintext.Line(show.Title))
	})
}

// taskText returns the task of a thread.
func (a Commands) taskText(c *ucli.Context) (string, error) {
	prompt, err := a.promptText(c.String("prompt"))
	if err == nil && strings.TrimSpace(prompt) == "" {
		err = cmdline.UsageError("the prompt is empty", "-p '<task>'")
	}
	return prompt, err
}

// maxPrompt bounds the size of a prompt file, in bytes.
const maxPrompt = 4 << 20

// promptText returns the value of -p: see [Commands.valueText]; "-" is stdin.
func (a Commands) promptText(value string) (string, error) {
	if value == "-" {
		return a.OrStdin(value)
	}
	return a.valueText(value)
}

// workDir returns the resolved working directory of a thread. It must exist, because an agent would otherwise
// fail with a less helpful error.
func (a Commands) workDir(flag string) (string, error) {
	if flag == "" {
		return engine.RealDir(a.Env.Dir)
	}
	dir, err := engine.RealDir(a.Env.Path(flag))
	if err != nil {
		return "", cmdline.NotFound(fmt.Sprintf("--cwd %s is not a directory", flag), "mkdir -p "+plaintext.Word(flag))
	}
	return dir, nil
}

// Fork returns the command uwf thread fork.
func (a Commands) Fork() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "fork", Usage: "start a thread from a step of another thread", ArgsUsage: "<step>",
		Flags: []ucli.Flag{moveFlag(), term.OneOf(ucli.StringFlag{
			Name: "files", Usage: "`MODE` files of the fork: worktree (restored into a new worktree; the default if there are snapshots), " +
				"here (restored in the other thread's directory) or keep (unchanged in that directory)",
		}, worktree.FilesWorktree, worktree.FilesHere, worktree.FilesKeep)},
	}, func(ctx context.Context, c *ucli.Context) error {
		of, h, err := a.Place(ctx, c.Args().First())
		if err != nil {
			return err
		}
		e, err := a.Engine(ctx, nil)
		if err != nil {
			return err
		}
		cwd, err := a.movedTo(c)
		if err != nil {
			return err
		}
		id, err := e.Fork(ctx, h, engine.ForkOptions{Thread: of, Cwd: cwd, Files: c.String("files")})
		if err != nil {
			return err
		}
		a.printWorktree(ctx, e, id)
		switch at, err := e.Reader.Show(ctx, id); {
		case err == nil && at.Status.AtEnd():
			a.Hint("to continue an ended thread: uwf thread resume %s -p '<what else to do>'", id)
		case err == nil && at.Status == protocol.StatusSuspended:
			a.PrintNext(ctx, e, at)
		default:
			a.Hint("uwf thread step %s", id)
		}
		return a.Printf(protocol.ThreadForked{Thread: id, ForkedFrom: protocol.ForkedFrom{Thread: of, Step: h}}, "%v\n", id)
	})
}

func (a Commands) threadKillCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "kill", Aliases: []string{"cancel"}, ArgsUsage: "<thread>",
		Usage: "stop a thread and archive it as cancelled",
		Flags: []ucli.Flag{remoteFlag("`REMOTE` also cancel it on this remote, unless another process works on it there")},
	}, a.threadKill)
}

func (a Commands) threadKill(ctx context.Context, c *ucli.Context) error {
	at, err := a.atRemote(ctx, c, nil, false)
	defer at.close()
	if err != nil {
		return err
	}
	id := at.id
	if id == "" {
		if id, err = a.Thread(ctx, c.Args().First()); err != nil {
			return err
		}
	}
	e, err := a.Engine(ctx, nil)
	if err != nil {
		return err
	}
	if err := at.with(ctx, e, engine.Work{Do: engine.DoAnswer}, func(e *engine.Engine, _ engine.Work) error { return e.Kill(ctx, id) }); err != nil {
		return err
	}
	return a.Printf(protocol.ThreadKilled{Thread: id, Archived: true, Cancelled: true}, "%s  cancelled\n", id)
}

func (a Commands) threadStopCommand() *ucli.Command {
	return a.OnThread(ucli.Command{
		Name: "stop", ArgsUsage: "<thread>", Usage: "stop the running step; the thread stays active",
	}, a.threadStop)
}

func (a Commands) threadStop(ctx context.Context, c *ucli.Context, e *engine.Engine, id string) error {
	stopped, err := e.Stop(ctx, id)
	if err != nil {
		return err
	}
	if !stopped {
		a.Messagef("uwf: no step of thread %s is running", id)
	}
	return a.Print(protocol.ThreadStopped{Thread: id, Stopped: stopped}, func(w *term.Page) {
		text := "was not running"
		if stopped {
			text = "stopped"
		}
		w.Printf("%s  %s\n", id, text)
	})
}

func (a Commands) threadMessageCommand() *ucli.Command {
	return a.OnThread(ucli.Command{
		Name: "message", Usage: "send a message to the agent of a thread", ArgsUsage: "<thread> <message>",
	}, func(ctx context.Context, c *ucli.Context, e *engine.Engine, id string) error {
		text, err := a.promptText(c.Args().Get(1))
		if err != nil {
			return err
		}
		if err := e.Message(ctx, id, text); err != nil {
			return err
		}
		return a.Printf(protocol.ThreadMessage{Thread: id, Queued: true}, "thread %s: message queued\n", id)
	})
}

type threadTrustOutput struct {
	Thread   string   `json:"thread"`
	Trusted  bool     `json:"trusted"`
	Commands []string `json:"commands"` // of its workflow
}

func (a Commands) threadTrustCommand() *ucli.Command {
	return a.OnThread(ucli.Command{
		Name: "trust", ArgsUsage: "<thread>", Usage: "allow the commands of an imported thread to run",
		Flags: []ucli.Flag{app.YesFlag()},
	}, func(ctx context.Context, c *ucli.Context, e *engine.Engine, id string) error {
		_, commands, err := e.Origins().ThreadCommands(ctx, id)
		if err != nil {
			return err
		}
		what := "thread " + id + " and its children"
		if err := a.Agree(ctx, c, what, commands, func() error { return e.Origins().TrustThread(ctx, id) }); err != nil {
			return err
		}
		out := threadTrustOutput{id, true, append([]string{}, commands...)}
		return a.Print(out, func(w *term.Page) { app.PrintAgreed(w, what, commands) })
	})
}

// keepFilesFlag returns the flag of commands that restore files.
func keepFilesFlag() ucli.Flag {
	return &ucli.BoolFlag{Name: "keep-files", Usage: "don't change files, even if an interrupted restore is incomplete"}
}

func (a Commands) threadUndoCommand() *ucli.Command {
	return a.OnThread(ucli.Command{
		Name: "undo", ArgsUsage: "<thread>", Usage: "undo the last step and its file changes",
		Flags: []ucli.Flag{keepFilesFlag()},
	}, func(ctx context.Context, c *ucli.Context, e *engine.Engine, id string) error {
		return a.travel(ctx, c, e, id, engine.DoUndo)
	})
}

func (a Commands) threadRedoCommand() *ucli.Command {
	return a.OnThread(ucli.Command{
		Name: "redo", ArgsUsage: "<thread>", Usage: "restore the step that was undone, with its files",
		Flags: []ucli.Flag{keepFilesFlag()},
	}, func(ctx context.Context, c *ucli.Context, e *engine.Engine, id string) error {
		return a.travel(ctx, c, e, id, engine.DoRedo)
	})
}

// travel moves a thread's head and prints its state.
func (a Commands) travel(ctx context.Context, c *ucli.Context, e *engine.Engine, id string, to engine.Action) error {
	from, _ := e.Reader.Head(ctx, id) // the action reports the error
	outs, err := e.Do(ctx, id, engine.Work{Do: to, StepOptions: engine.StepOptions{KeepFiles: c.Bool("keep-files")}})
	if err != nil {
		return err
	}
	moved, what := from, "undone"
	if to == engine.DoRedo {
		moved, what = outs[0].Head, "restored"
	}
	if t, err := a.OpenThread(ctx, moved); err == nil && t.Last != nil {
		a.Messagef("step %d (%s): %s", t.Len(), plaintext.Line(t.Last.Role), what)
	}
	if changed := app.FilesText(outs); changed != "" {
		a.Messagef("restored files: %s", changed)
	}
	return a.PrintOutcome(ctx, e, app.OutcomeAt(ctx, e, outs[0], nil), false, nil)
}

// notified is the result of thread notify.
type notified struct {
	Thread string `json:"thread,omitempty"`
	Event  string `json:"event,omitempty"`
}

func (a Commands) threadNotifyCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "notify", Usage: "send the notification about a thread again", ArgsUsage: "[thread]",
	}, func(ctx context.Context, c *ucli.Context) error {
		if c.Args().Len() == 0 {
			e, err := a.Engine(ctx, nil)
			if err != nil {
				return err
			}
			return host.Notices{Engine: e, Process: a.Env}.Send(ctx)
		}
		id, e, err := a.ThreadAndEngine(ctx, c, nil)
		if err != nil {
			return err
		}
		at, err := e.Reader.Show(ctx, id)
		if err != nil {
			return err
		}
		out := notified{Thread: id, Event: status.NoticeOf(at)}
		if out.Event == "" {
			return &protocol.Error{Code: protocol.CodeFailed, Message: fmt.Sprintf("thread %s is %s; nothing to "+
				"notify about", id, at.Status), Hints: []string{"uwf thread show " + id}}
		}
		notices := host.Notices{Engine: e, Process: a.Env}
		if err := notices.Put(ctx, out.Event, at); err != nil {
			if errors.Is(err, host.ErrNoRecipient) {
				return cmdline.UsageError(err.Error(), `uwf config set notify.command '["notify-me"]'`)
			}
			return err
		}
		if err := notices.Send(ctx); err != nil {
			return err
		}
		return a.Printf(out, "sent a notification about thread %s: %s\n", id, out.Event)
	})
}
