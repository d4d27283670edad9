package tools

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/utilagent/box"
	"github.com/united-workforce/uwf/utilagent/confine"
)

// Bounds of a command.
const (
	defaultTimeout = 2 * time.Minute
	maxTimeout     = 10 * time.Minute
	grace          = 2 * time.Second // between asking a group to stop and killing it
	pipeGrace      = time.Second     // for output of what has left the group
)

// Commands says which commands may run. The zero value allows none.
type Commands struct {
	// Shell allows everything, through a shell.
	Shell bool
	// Allow lists programs that may run without a shell: no pipes, no
	// redirections, no variables. It keeps a model from surprising its user; it
	// is no wall, since an allowed program may start others.
	Allow []string
	// Env is the commands' whole environment; see [CommandEnv].
	Env []string
	// Refuse returns an error for a command line that must not run whatever is
	// allowed; nil: there is none.
	Refuse func(commandLine string) error
	// Now measures; nil: durations are not shown.
	Now func() time.Time

	// Exe is a program whose main calls bind.Dispatch, such as an agent's
	// own: with it commands can write only to the workspace, their temporary
	// directory and Writable, where the kernel has Landlock. "": not confined.
	Exe         string
	Writable    []string // more directories; see also [Caches]
	MustConfine bool     // a command that package confine cannot hold back in full does not run
	// Box is uwf-box: with it commands run in namespaces. "": they are held back by Landlock alone.
	Box     string
	MustBox bool // a command that cannot have namespaces does not run
	Nest    bool // in namespaces, commands may make sandboxes of their own
	// Network is what commands can reach; if not all, they must have namespaces.
	Network  protocol.Network
	Status   *os.File // see proc.Box; may be nil
	State    string   // a directory that commands cannot reach; see box.Request
	Home     string   // the user's home directory
	Environ  []string // of this process, with which git is asked
	Readable []string // what commands may read, wherever it lies
	// Keep names capabilities that root's commands keep; see confine.Rules. One
	// that they need to write to a workspace of somebody else is kept anyway.
	Keep          []string
	NoUnixSockets bool // commands can make none; see confine.Rules
	IPC           bool // commands may share memory with other programs; see confine.Rules
	// Adopts: this process has called proc.Adopt, and has no children during a
	// command but those that were there before. Then what a command has left is
	// found whatever it has done, and killed.
	Adopts bool
	// Guard is a directory that commands cannot reach, for those without namespaces; see box.SharedState.
	// "": nobody puts back what they have changed if this process is killed.
	Guard string
	// Warn is told what a person should know about a command, Once what is so for all; may be nil.
	Warn, Once func(text string)
}

// Confinement says what holds commands back, for the record: "landlock 7", or
// "none" and why.
func (c Commands) Confinement() string {
	if c.Exe == "" {
		return "none: switched off"
	}
	if c.Box != "" {
		if why := box.Probe(c.Box); why == nil {
			return "namespaces, " + confine.Describe()
		}
	}
	return confine.Describe() + confine.Open(c.NoUnixSockets)
}

// Weaknesses are what a person should know about how commands are held back here,
// a line each. None if no command may run.
func (c Commands) Weaknesses(w *Workspace) []string {
	if c.off() != "" {
		return nil
	}
	var lines []string
	switch {
	case c.Exe == "":
		lines = append(lines, "commands are not confined: sandbox.mode is none")
	case !c.confined():
		lines = append(lines, "commands are not confined: they can do anything you can ("+c.Confinement()+"). sandbox.mode: required refuses them then")
	case os.Geteuid() == 0:
		lines = append(lines, "commands run as root: they cannot write elsewhere, but change mode, owner and times of root's files wherever these lie")
	}
	return lines
}

func (c Commands) confined() bool {
	return c.Exe != "" && confine.Level() > 0 && (confine.Seccomp() || !c.MustConfine)
}

// RunCommand is the tool run_command.
func RunCommand(w *Workspace, c Commands) Tool {
	return New(Spec{
		Name:        "run_command",
		Aliases:     []string{"shell_exec", "bash"},
		Description: c.describe(),
		Parameters: object([]string{"command"}, map[string]any{
			"command": property("string", "The command line"),
			"timeout": property("integer", fmt.Sprintf("Seconds after which it is stopped (default %d, at most %d)", int(defaultTimeout.Seconds()), int(maxTimeout.Seconds()))),
			"cwd":     property("string", "Directory to run in, relative to the working directory (default: the working directory)"),
		}),
		Effect: Runs,
		Off:    c.off(),
	}, func(ctx context.Context, a runArgs) (string, error) { return c.run(ctx, w, a) })
}

type runArgs struct {
	Command string `json:"command"`
	Timeout int    `json:"timeout"`
	Cwd     string `json:"cwd"`
}

func (c Commands) off() string {
	if c.mustBox() && (c.Box == "" || c.Exe == "") {
		return "commands are switched off here: they must have namespaces, and " + box.Program + " is not installed. Go on without them, and say in your answer what should be run"
	}
	if c.MustConfine && !c.confined() {
		return "commands are switched off here: they must be confined, and cannot be (" + c.Confinement() + "). Go on without them, and say in your answer what should be run"
	}
	if c.Shell || len(c.Allow) > 0 {
		return ""
	}
	return "commands are switched off here. Go on without them, and say in your answer what should be run. " +
		"(A person can allow them: builtin.allowCommands in config.yaml lists programs, and * is all of them.)"
}

func (c Commands) describe() string {
	how := "Run a shell command"
	if !c.Shell {
		how = "Run one of these programs, without a shell (no pipes, redirections, variables or &&): " + strings.Join(c.Allow, ", ") + ". It runs"
	}
	if c.confined() {
		how += ", which can write only to the working directory and $TMPDIR,"
	}
	return how + " in the working directory. There is no input; output and errors come together. " +
		fmt.Sprintf("Of a long output the first %d and the last %d bytes are shown. What still runs when the command ends is killed.", keepHead, keepTail)
}

func (c Commands) run(ctx context.Context, w *Workspace, a runArgs) (string, error) {
	if strings.TrimSpace(a.Command) == "" || strings.ContainsRune(a.Command, 0) {
		return "", errors.New("the command is empty. Give a command line")
	}
	if c.Refuse != nil {
		if err := c.Refuse(a.Command); err != nil {
			return "", err
		}
	}
	dir, err := w.commandDir(a.Cwd)
	if err != nil {
		return "", err
	}
	cmd := proc.Command{Path: shellPath(), Args: shellArgs(a.Command), Dir: dir, Env: c.Env}
	if !c.Shell {
		words, err := c.allowed(a.Command)
		if err != nil {
			return "", err
		}
		cmd.Path, cmd.Args = directly(words)
		cmd.Env = proc.OwnPath(cmd.Env, w.real)
	}
	timeout := defaultTimeout
	if a.Timeout > 0 {
		timeout = min(time.Duration(a.Timeout)*time.Second, maxTimeout)
	}
	mark := protocol.EnvCommand + "=" + rand.Text()
	cmd.Env = append(slices.Clip(cmd.Env), mark)
	cmd, done, err := c.Hold(ctx, w, cmd)
	if err != nil {
		return "", err
	}
	text, err := c.start(ctx, w, cmd, timeout, mark)
	return text + done(), err
}

// Hold makes a command one that is held back as these are. done is called when it has
// ended, and puts back what it has changed that it must not; said tells the model of it.
func (c Commands) Hold(ctx context.Context, w *Workspace, cmd proc.Command) (held proc.Command, done func() (said string), err error) {
	if c.Box != "" && c.Exe != "" && w.unboxed == nil {
		held, done, err = c.boxed(ctx, w, cmd)
		if !errors.Is(err, box.ErrNotHere) {
			return held, done, err
		}
		if err := c.unbox(w, err); err != nil {
			return held, nil, err
		}
	}
	if c.mustBox() {
		return held, nil, c.unbox(w, errors.New(box.Program+" is not installed or switched off"))
	}
	return c.lower(ctx, w, cmd)
}

// mustBox reports whether a command that cannot have namespaces does not run: only they hold its network.
func (c Commands) mustBox() bool { return c.MustBox || !c.Network.All() }

// lower holds a command back with Landlock, and puts back what it has changed that it must not.
func (c Commands) lower(ctx context.Context, w *Workspace, cmd proc.Command) (held proc.Command, done func() (said string), err error) {
	if said := w.off.Narrows(w.real); said != "" && c.confined() && c.Once != nil {
		c.Once(said)
	}
	if held, err = c.bind(w, cmd); err != nil {
		return held, nil, err
	}
	request, err := c.request(w)
	if err != nil {
		return held, nil, err
	}
	if request.State = c.Guard; c.Guard == "" {
		request.State = filepath.Join(filepath.Dir(request.Temporary), "kept")
	}
	run, err := request.Lower()
	if err != nil {
		return held, nil, fmt.Errorf(
			"the command was not run: what it must not change could not be kept: %w. Say so in your answer", err)
	}
	// If this process is killed, the command still counts as running until its init ends.
	if held.Init {
		held.Inherit = append(slices.Clip(held.Inherit), run.Lock())
	}
	return held, func() string { return c.ended(run.End(context.WithoutCancel(ctx))) }, nil
}

// bind gives a command its temporary directory and, if that is wanted, keeps it from
// writing elsewhere.
func (c Commands) bind(w *Workspace, cmd proc.Command) (proc.Command, error) {
	tmp, err := w.scratch.tmp()
	if err != nil {
		return cmd, err
	}
	cmd.Env = append(slices.Clip(cmd.Env), "TMPDIR="+tmp, "TMP="+tmp, "TEMP="+tmp)
	if !c.confined() {
		return cmd, nil
	}
	bound, err := confine.Command(c.Exe, confine.Rules{
		Dirs: slices.Concat([]string{w.real, tmp}, c.Writable, w.gitDirs()), IPC: c.IPC,
		Hidden: w.off.Hidden(), Readable: w.off.Readable(), Guarded: w.off.Guarded(),
		Keep: append(neededCapabilities(w.real), c.Keep...), NoUnixSockets: c.NoUnixSockets, Whole: c.MustConfine,
	}, cmd)
	if err != nil {
		return cmd, fmt.Errorf("the command was not run: %w. Go on without commands, and say in your answer what should be run", err)
	}
	return bound, nil
}

// allowed splits a command line for a run without a shell.
func (c Commands) allowed(line string) ([]string, error) {
	// Models write this out of habit; both streams come together anyway.
	line = strings.TrimSuffix(strings.TrimSpace(line), " 2>&1")
	words, err := splitWords(line)
	if err != nil {
		return nil, err
	}
	if len(words) == 0 || !slices.Contains(c.Allow, words[0]) {
		return nil, fmt.Errorf("%s may not run here. Allowed programs: %s. Use one of them, or say in your answer what should be run",
			strings.Join(words[:min(len(words), 1)], ""), strings.Join(c.Allow, ", "))
	}
	return words, nil
}

// commandDir is the directory that a command starts in.
func (w *Workspace) commandDir(name string) (string, error) {
	local, is, err := w.directory(name)
	if err != nil {
		return "", err
	}
	if !is {
		return "", fmt.Errorf("cwd %s is not a directory. Name a directory, or leave cwd out", name)
	}
	return filepath.Join(w.real, local), nil
}

var errTimeout = errors.New("timed out")

// start runs a command to its end and returns its output with a last line that
// says how it ended. What the command started and left behind is killed: its
// process group, and what has the mark.
func (c Commands) start(ctx context.Context, w *Workspace, cmd proc.Command, timeout time.Duration, mark string) (string, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return "", fmt.Errorf("the command could not be started: %w. Try again", err)
	}
	cmd.Stdout, cmd.Stderr = write, write
	began := c.now()
	var before []int
	if c.Adopts && cmd.Box == nil {
		before = proc.Children()
	}
	child, err := proc.Start(cmd)
	if closeErr := write.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		_ = read.Close() // nothing was written to it
		return "", fmt.Errorf("the command could not be started: %w. Check its name, or use another one", err)
	}
	out := collect(read, w.scratch.create)
	limited, cancel := context.WithTimeoutCause(ctx, timeout, errTimeout)
	defer cancel()
	status, err := child.Wait(limited, grace)
	left := ""
	if cmd.Box == nil || w.unboxed != nil { // else nothing outlives its namespaces
		left = c.endLeft(before, mark)
	}
	text := out.text(pipeGrace) + left
	switch {
	case context.Cause(ctx) != nil:
		return "", context.Cause(ctx)
	case errors.Is(err, errTimeout):
		return fmt.Sprintf("%s[stopped after %s: it took too long. Give a larger timeout, or run less at once]", text, timeout), nil
	case err != nil:
		return "", fmt.Errorf("the command could not be waited for: %w. Try again", err)
	}
	return text + ending(status, c.now().Sub(began)) + c.hint(status, text), nil
}

// endLeft kills what a command has left behind. What it returns is a line about
// what could not be killed.
func (c Commands) endLeft(before []int, mark string) string {
	if !c.Adopts || before == nil { // who else is a child is not known
		_, _ = proc.KillMarked(mark) // what cannot be ended goes on
		return ""
	}
	if _, err := proc.KillChildren(before); err != nil {
		if c.Warn != nil {
			c.Warn("what a command has started could not be ended: " + err.Error())
		}
		return "[what the command has started could not all be ended]\n"
	}
	return ""
}

// hint explains what confinement looks like from inside.
func (c Commands) hint(s proc.Status, text string) string {
	denied := strings.Contains(text, "ermission denied") || strings.Contains(text, "EACCES") || strings.Contains(text, "cross-device link")
	shares := slices.ContainsFunc([]string{"hared memory", "shmget", "semget", "msgget", confine.SharedMemory, "SemLock", "multiprocessing"}, func(word string) bool { return strings.Contains(text, word) })
	switch {
	case !c.confined() || s.Code == 0:
		return ""
	case !c.IPC && shares && (denied || strings.Contains(text, "not permitted")):
		return "\n[commands share no memory with other programs, which System V's calls and " + confine.SharedMemory + " are for; a person can allow it: sandbox.sharedMemory in config.yaml]"
	case !denied:
		return ""
	}
	return "\n[commands can write only to the working directory and $TMPDIR, and not read where people keep keys; a person can add directories: sandbox.allowWrite, allowRead in config.yaml]"
}

func (c Commands) now() time.Time {
	if c.Now == nil {
		return time.Time{}
	}
	return c.Now()
}

func ending(s proc.Status, took time.Duration) string {
	how := fmt.Sprintf("exit %d", s.Code)
	if s.Signal != "" {
		how = "ended by signal " + s.Signal
	}
	if took > 0 {
		how += fmt.Sprintf(", %.1f s", took.Seconds())
	}
	return "[" + how + "]"
}
