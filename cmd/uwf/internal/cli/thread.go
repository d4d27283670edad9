package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/place"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/careful"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/suggest"
)

func (a *app) threadCommand() *ucli.Command {
	return a.group(ucli.Command{
		Name: "thread", Usage: "start, step and inspect runs of workflows",
		Description: "   uwf thread list --all\n   uwf thread show @          # the newest; uwf help addresses\n   uwf thread resume @ -p 'Yes'\n   uwf thread read @",
		Subcommands: inGroups([]*ucli.Command{
			a.threadStartCommand(),
			a.threadStepCommand(),
			a.reads(a.threadShowCommand()),
			a.reads(a.threadListCommand()),
			a.reads(a.threadStepsCommand()),
			a.reads(a.threadReadCommand()),
			a.threadForkCommand(),
			a.threadTitleCommand(),
			a.threadTrustCommand(),
			a.reads(a.stepDetailsCommand()),
			a.leaf(ucli.Command{
				Name: "kill", Aliases: []string{"cancel"}, ArgsUsage: "<thread>",
				Usage: "stop a thread and archive it as cancelled",
			}, a.threadKill),
			a.leaf(ucli.Command{
				Name: "stop", ArgsUsage: "<thread>",
				Usage: "stop the running step; the thread stays active",
			}, a.threadStop),
			a.threadResumeCommand(),
			a.threadTellCommand(),
			a.threadAnswerCommand(),
			a.threadPokeCommand(),
			a.threadUndoCommand(),
			a.threadRedoCommand(),
			a.threadApplyCommand(),
			a.threadBisectCommand(),
			a.leaf(ucli.Command{
				Name: "again", ArgsUsage: "<thread>/<key>", Usage: "let a child be played anew, whatever it has answered",
				Description: "The child's parent has not joined its results yet. Nothing runs: uwf thread resume does it.\n\n" +
					"   uwf thread again @/security",
			}, a.threadAgain),
			a.threadWaitCommand(),
			a.threadWatchCommand(),
			a.threadRunningCommand(),
			a.threadRemoveCommand(),
			a.threadPruneCommand(),
			a.threadReplayCommand(),
			a.threadDiffCommand(),
			a.threadExportCommand(),
			a.threadImportCommand(),
			a.threadSealCommand(),
			a.threadRedactCommand(),
			a.threadDiagnoseCommand(),
			a.reads(a.threadGraphCommand()),
			a.threadWorkerCommand(),
		}, ofThreads()),
	})
}

func promptFlag(required bool, usage string) ucli.Flag {
	return &ucli.StringFlag{Name: "prompt", Aliases: []string{"p"}, Usage: usage, Required: required}
}

func cwdFlag() ucli.Flag {
	return &ucli.StringFlag{Name: "cwd", Usage: "`DIR` in which the agents work (default: here)"}
}

// moveFlag is that of commands that let agents work on a thread that is there.
func moveFlag() ucli.Flag {
	return &ucli.StringFlag{Name: "cwd", Usage: "`DIR` in which the thread works from now on; an imported thread needs it once"}
}

// movedTo is the value of --cwd, "" if it is not given.
func (a *app) movedTo(c *ucli.Context) (string, error) {
	if !c.IsSet("cwd") {
		return "", nil
	}
	return a.workDir(c.String("cwd"))
}

func (a *app) threadStartCommand() *ucli.Command {
	return a.leaf(ucli.Command{
		Name: "start", Usage: "start a thread without running a step", ArgsUsage: "<workflow>",
		Flags: append(slices.Concat(varFlags(), limitFlags(), treeFlags()), titleFlag(), promptFlag(true, "the task, as `TEXT`; - reads it from stdin, @FILE from a file"), cwdFlag(), yesFlag()),
	}, func(ctx context.Context, c *ucli.Context) error {
		l, err := limitsOf(c)
		if err != nil {
			return err
		}
		started, err := a.start(ctx, c, l, func(e *engine.Engine, s protocol.Start) error { return checkBudget(ctx, e, s, l, engine.StepOptions{}) })
		if err != nil {
			return err
		}
		a.hint("uwf thread step %s", started.Thread)
		return a.print(started, func(w io.Writer) error {
			_, err := fmt.Fprintln(w, started.Thread)
			return err
		})
	})
}

// start is the part that thread start and run share: l are limits of this run alone,
// check may refuse before the thread is made.
func (a *app) start(ctx context.Context, c *ucli.Context, l protocol.Limits, check func(*engine.Engine, protocol.Start) error) (protocol.ThreadStarted, error) {
	none := protocol.ThreadStarted{}
	a.takes, a.yes = true, c.Bool("yes")
	prompt, err := a.taskText(c)
	if err != nil {
		return none, err
	}
	cwd, err := a.workDir(c.String("cwd"))
	if err != nil {
		return none, err
	}
	e, err := a.engine(ctx, nil)
	if err == nil {
		e, err = e.InProject(cwd)
	}
	if err != nil {
		return none, err
	}
	kept, err := workspaceOptions(c)
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
	if err := engine.CheckTitle(title); err != nil {
		return none, err
	}
	var out protocol.ThreadStarted
	err = a.trusting(ctx, e, func() (err error) {
		out, err = a.workflows().Start(ctx, e, c.Args().First(), protocol.Start{Prompt: prompt, Cwd: cwd}, engine.StartOptions{Limits: l, Workspace: kept}, may)
		return err
	})
	if err == nil {
		a.sayWorktree(ctx, e, out.Thread)
	}
	if err == nil && title != "" {
		err = e.SetTitle(ctx, out.Thread, title)
	}
	return out, err
}

func titleFlag() ucli.Flag {
	return &ucli.StringFlag{Name: "title", Usage: "what lists call the thread, a `TEXT` of one line (default: the task's first line)"}
}

func (a *app) threadTitleCommand() *ucli.Command {
	return a.leaf(ucli.Command{
		Name: "title", Usage: "print or change a thread's title", ArgsUsage: "<thread> [title]",
		Description: "Lists show it. An empty one gives the thread back the title of its task.\n\n" +
			"   uwf thread title @ 'Repair the lexer'",
	}, func(ctx context.Context, c *ucli.Context) error {
		id, e, err := a.threadAndEngine(ctx, c, nil)
		if err != nil {
			return err
		}
		if c.Args().Len() > 1 {
			if err := e.SetTitle(ctx, id, c.Args().Get(1)); err != nil {
				return err
			}
		}
		show, err := view.Thread(ctx, e, id, false)
		if err != nil {
			return err
		}
		return a.print(protocol.ThreadTitled{Thread: id, Title: show.Title}, func(w io.Writer) error {
			_, err := fmt.Fprintln(w, plaintext.Line(show.Title))
			return err
		})
	})
}

// taskText is the task of a thread.
func (a *app) taskText(c *ucli.Context) (string, error) {
	prompt, err := a.promptText(c.String("prompt"))
	if err == nil && strings.TrimSpace(prompt) == "" {
		err = cmdline.UsageError("the prompt is empty", "-p 'what to do'")
	}
	return prompt, err
}

// maxPrompt bounds the file of a prompt, in bytes.
const maxPrompt = 4 << 20

// promptText is the value of -p: a text, stdin for "-", a file for "@FILE". A text
// that begins with "@" is written with two of them.
func (a *app) promptText(value string) (string, error) {
	name, isFile := strings.CutPrefix(value, "@")
	if !isFile {
		return a.orStdin(value)
	}
	if strings.HasPrefix(name, "@") {
		return name, nil
	}
	hints := []string{"a text that begins with @ is written with two: -p " + plaintext.Word("@"+value)}
	if name == "" {
		return "", cmdline.UsageError("-p @ names no file", append(hints, "-p @task.md")...)
	}
	data, err := careful.ReadFile(a.env.Path(name), maxPrompt, careful.Follow)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if near := suggest.File(a.env.Dir, a.env.Path(name)); near != "" {
			if rel, err := filepath.Rel(a.env.Dir, near); err == nil {
				near = rel
			}
			hints = append([]string{"did you mean -p " + plaintext.Word("@"+near) + "?"}, hints...)
		}
		return "", cmdline.NotFound("there is no file "+name+" to read the prompt from", hints...)
	case err != nil:
		return "", &protocol.Error{Code: protocol.CodeInvalid, Message: "the prompt cannot be read: " + err.Error(), Err: err, Hints: hints}
	case !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0:
		return "", cmdline.Invalid("the prompt cannot be read: "+name+" is not a text file", hints...)
	}
	return strings.TrimRight(string(data), "\r\n"), nil
}

// orStdin is a value, or stdin for "-".
func (a *app) orStdin(value string) (string, error) {
	if value != "-" {
		return value, nil
	}
	data, err := io.ReadAll(a.env.Stdin)
	if err != nil {
		return "", fmt.Errorf("read stdin: %w", err)
	}
	return strings.TrimRight(string(data), "\n"), nil
}

// workDir is the directory that a thread works in. It must be there: an agent
// that is started elsewhere would fail far from the cause. It has no symbolic links.
func (a *app) workDir(flag string) (string, error) {
	if flag == "" {
		return place.Real(a.env.Dir)
	}
	dir, err := place.Real(a.env.Path(flag))
	if err != nil {
		return "", cmdline.NotFound(fmt.Sprintf("--cwd %s is not a directory", flag), "mkdir -p "+plaintext.Word(flag))
	}
	return dir, nil
}

func (a *app) threadForkCommand() *ucli.Command {
	return a.leaf(ucli.Command{
		Name: "fork", Usage: "start a thread from a step of another thread", ArgsUsage: "<step>",
		Description: stepUsage + " Number 0 is the\nstart, before any step.",
		Flags: []ucli.Flag{moveFlag(), &ucli.StringFlag{Name: "files", Usage: "`WHERE` the fork has its files: worktree (of its own, as they were at that step; the default if they are kept), " +
			"here (where the other thread has them, as they were) or keep (there, as they are)"}},
	}, func(ctx context.Context, c *ucli.Context) error {
		where := c.String("files")
		if known := []string{engine.FilesWorktree, engine.FilesHere, engine.FilesKeep}; c.IsSet("files") && !slices.Contains(known, where) {
			return cmdline.UsageError("--files "+where+" is no place for files", cmdline.DidYouMean("--files ", where, known)...)
		}
		of, h, err := a.place(ctx, c.Args().First())
		if err != nil {
			return err
		}
		e, err := a.engine(ctx, nil)
		if err != nil {
			return err
		}
		cwd, err := a.movedTo(c)
		if err != nil {
			return err
		}
		id, err := e.ForkWith(ctx, h, engine.ForkOptions{Thread: of, Cwd: cwd, Files: where})
		if err != nil {
			return err
		}
		a.sayWorktree(ctx, e, id)
		switch at, err := e.Show(ctx, id); {
		case err == nil && at.Status == protocol.StatusCompleted:
			a.hint("the thread is at its end already: uwf thread resume %s -p '<what else to do>', or fork the step before", id)
		case err == nil && at.Status == protocol.StatusSuspended:
			a.sayNext(at)
		default:
			a.hint("uwf thread step %s", id)
		}
		return a.print(protocol.ThreadForked{Thread: id, ForkedFrom: protocol.ForkedFrom{Thread: of, Step: h}}, func(w io.Writer) error {
			_, err := fmt.Fprintln(w, id)
			return err
		})
	})
}

func (a *app) threadKill(ctx context.Context, c *ucli.Context) error {
	id, e, err := a.threadAndEngine(ctx, c, nil)
	if err != nil {
		return err
	}
	if err := e.Kill(ctx, id); err != nil {
		return err
	}
	return a.print(protocol.ThreadKilled{Thread: id, Archived: true, Cancelled: true}, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s  cancelled\n", id)
		return err
	})
}

func (a *app) threadStop(ctx context.Context, c *ucli.Context) error {
	id, e, err := a.threadAndEngine(ctx, c, nil)
	if err != nil {
		return err
	}
	stopped, err := e.Stop(ctx, id)
	if err != nil {
		return err
	}
	if !stopped {
		a.say("uwf: no step of thread %s is running", id)
	}
	return a.print(protocol.ThreadStopped{Thread: id, Stopped: stopped}, func(w io.Writer) error {
		text := "was not running"
		if stopped {
			text = "stopped"
		}
		_, err := fmt.Fprintf(w, "%s  %s\n", id, text)
		return err
	})
}

// threadAndEngine is what most thread commands begin with.
func (a *app) threadAndEngine(ctx context.Context, c *ucli.Context, p engine.Progress) (string, *engine.Engine, error) {
	id, err := a.thread(ctx, c.Args().First())
	if err != nil {
		return "", nil, err
	}
	e, err := a.engine(ctx, p)
	return id, e, err
}

// threadHead is what commands begin with that read a chain.
func (a *app) threadHead(ctx context.Context, c *ucli.Context) (string, protocol.Hash, error) {
	id, e, err := a.threadAndEngine(ctx, c, nil)
	if err != nil {
		return "", "", err
	}
	head, err := e.Head(ctx, id)
	return id, head, err
}

// threadAgain forgets what a child has answered.
func (a *app) threadAgain(ctx context.Context, c *ucli.Context) error {
	parent, key, ok := cutChild(c.Args().First())
	if !ok {
		return cmdline.UsageError(fmt.Sprintf("%q is no child", c.Args().First()), "uwf thread again <thread>/<key>")
	}
	id, err := a.thread(ctx, parent)
	if err != nil {
		return err
	}
	e, err := a.engine(ctx, nil)
	if err != nil {
		return err
	}
	if err := e.Again(ctx, id, key); err != nil {
		return err
	}
	out, err := e.Show(ctx, id)
	if err != nil {
		return err
	}
	return a.stands(outcomeAt(ctx, e, out, nil), false, nil)
}
