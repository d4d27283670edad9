package tools

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/secret"
	"github.com/united-workforce/uwf/utilagent/box"
	"github.com/united-workforce/uwf/utilagent/confine"
	"github.com/united-workforce/uwf/utilagent/offlimits"
)

// Timeouts of a command.
const (
	defaultTimeout = 2 * time.Minute
	maxTimeout     = 10 * time.Minute
	grace          = 2 * time.Second // between asking a process group to stop and killing it
	pipeGrace      = time.Second     // for output of processes that left the group
)

// Commands configures which commands may run. The zero value allows none.
type Commands struct {
	// Shell allows every command, through a shell.
	Shell bool
	// Allow lists programs that may run without a shell: no pipes, redirections or variables. It prevents
	// surprises; it is not a security boundary, since an allowed program may start others.
	Allow []string
	// Env is the commands' complete environment; see [CommandEnv].
	Env []string
	// Refuse, if not nil, returns an error for a command line that must never run.
	Refuse func(commandLine string) error
	// Now is the clock for durations; if nil, they are not shown.
	Now func() time.Time

	// Exe is a program whose main calls bind.Dispatch, such as the agent itself. It restricts commands with
	// Landlock, where available, to writing the workspace, their temporary directory and Writable. ""
	// disables confinement.
	Exe         string
	Writable    []string // additional directories; see also [Workspace.Caches]
	MustConfine bool     // refuse commands that package confine cannot fully restrict
	// Box is the path of uwf-box, which runs commands in namespaces. "" uses Landlock alone.
	Box     string
	MustBox bool // refuse commands if namespaces are unavailable
	Nest    bool // let commands create sandboxes inside their namespaces
	// Network lists the hosts that commands can reach; any restriction requires namespaces.
	Network  protocol.Network
	Status   *os.File // see proc.Box; may be nil
	State    string   // directory outside the commands' reach; see box.Request
	Home     string   // the user's home directory
	Environ  []string // environment of this process, for git
	Readable []string // readable paths anywhere
	// Keep lists the capabilities that root's commands keep; see confine.Rules. Those needed to write to
	// another user's workspace are always kept.
	Keep          []string
	NoUnixSockets bool // commands cannot create them; see confine.Rules
	IPC           bool // commands may share memory with other programs; see confine.Rules
	// Adopts means that this process has called proc.Adopt and starts no other children during a command.
	// Processes that a command leaves behind can then be found and killed in any case.
	Adopts bool
	// Guard is a directory outside the commands' reach, for commands without namespaces; see box.SharedState.
	// If it is "", their changes to protected files are not reverted when this process is killed.
	Guard string
	// Warn prints a warning about a command, Once one that applies to all commands. Both may be nil.
	Warn, Once func(text string)
}

// Confinement describes the restrictions for the record: "landlock 7", or "none" and the reason.
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

// Weaknesses returns warnings about gaps in the confinement of commands on this machine, one per line. It
// returns none if no command may run.
func (c Commands) Weaknesses(w *Workspace) []string {
	if c.off() != "" {
		return nil
	}
	var lines []string
	switch {
	case c.Exe == "":
		lines = append(lines, "commands run without a sandbox: sandbox.mode is none")
	case !c.confined():
		lines = append(lines, "commands run without a sandbox: they can do anything you can ("+c.Confinement()+"); to refuse them, set sandbox.mode: required")
	case os.Geteuid() == 0:
		lines = append(lines, "commands run as root: they cannot write elsewhere, but change mode, owner and times of root's files wherever these lie")
	}
	return lines
}

func (c Commands) confined() bool {
	return c.Exe != "" && confine.Level() > 0 && (confine.Seccomp() || !c.MustConfine)
}

// RunCommand returns the tool run_command.
func RunCommand(w *Workspace, c Commands) Tool {
	return New(Spec{
		Name:        "run_command",
		Aliases:     []string{"shell_exec", "bash"},
		Description: c.describe(),
		Effect:      Runs,
		Off:         c.off(),
	}, func(ctx context.Context, a runArgs) (string, error) { return c.run(ctx, w, a) })
}

type runArgs struct {
	Command string `json:"command" doc:"The command line"`
	Timeout int    `json:"timeout,omitempty" doc:"Seconds after which it is stopped (default 120, at most 600)"`
	Cwd     string `json:"cwd,omitempty" doc:"Directory to run in, relative to the working directory (default: the working directory)"`
}

func (c Commands) off() string {
	if c.mustBox() && (c.Box == "" || c.Exe == "") {
		return "commands are disabled here: they need namespaces, and " + box.Program + " is not installed. Continue without them, and list in your answer what should be run"
	}
	if c.MustConfine && !c.confined() {
		return "commands are disabled here: they need a sandbox, which is not available (" + c.Confinement() + "). Continue without them, and list in your answer what should be run"
	}
	if c.Shell || len(c.Allow) > 0 {
		return ""
	}
	return "commands are disabled here. Continue without them, and list in your answer what should be run. (A " +
		"person can allow them: builtin.allowCommands in config.yaml lists programs, and * is all of them.)"
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
		fmt.Sprintf("Of a long output the first %d and the last %d bytes are shown. Processes that still run when the command ends are killed.", keepHead, keepTail)
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
		timeout = time.Duration(min(a.Timeout, int(maxTimeout.Seconds()))) * time.Second
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

// Hold returns cmd with these restrictions. done must be called when it has ended; it reverts forbidden
// changes and returns a message about them for the model.
func (c Commands) Hold(ctx context.Context, w *Workspace, cmd proc.Command) (held proc.Command, done func() (message string), err error) {
	var end box.End
	switch {
	case c.Box != "" && c.Exe != "" && w.unboxed == nil:
		held, end, err = c.boxed(w, cmd)
	case c.mustBox():
		err = c.unbox(w, errors.New(box.Program+" is not installed or switched off"))
	default:
		held, end, err = c.lower(w, cmd)
	}
	return held, func() string { return c.ended(end(context.WithoutCancel(ctx))) }, err
}

// mustBox reports whether commands require namespaces, which alone can restrict the network.
func (c Commands) mustBox() bool { return c.MustBox || !c.Network.All() }

// lower restricts a command with Landlock and reverts forbidden changes afterwards.
func (c Commands) lower(w *Workspace, cmd proc.Command) (held proc.Command, end box.End, err error) {
	if message := w.off.Narrows(w.real); message != "" && c.confined() && c.Once != nil {
		c.Once(message)
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
			"the command was not run: saving protected files failed: %w. Report it in your answer", err)
	}
	// If this process is killed, the command counts as running until its init process ends.
	if held.Init {
		held.Inherit = append(slices.Clip(held.Inherit), run.Lock())
	}
	return held, run.End, nil
}

// bind sets a command's temporary directory and, if configured, restricts where it can write.
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
		Dirs: slices.Concat([]string{w.real, tmp}, c.Writable, offlimits.GitDirs(w.real)), IPC: c.IPC,
		Hidden: w.off.Hidden(), Readable: slices.Concat(w.off.Readable(), c.Readable), Guarded: w.off.Guarded(),
		Keep: append(neededCapabilities(w.real), c.Keep...), NoUnixSockets: c.NoUnixSockets, Whole: c.MustConfine,
	}, cmd)
	if err != nil {
		return cmd, fmt.Errorf("the command was not run: %w. Continue without commands, and say in your answer what should be run", err)
	}
	return bound, nil
}

// allowed splits a command line to run without a shell.
func (c Commands) allowed(line string) ([]string, error) {
	// Models write this out of habit; both streams are combined anyway.
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

// commandDir returns the directory in which a command starts.
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

// start runs a command and returns its output with a last line that describes how it ended. It kills
// processes that the command leaves behind: its process group, and those with the mark.
func (c Commands) start(ctx context.Context, w *Workspace, cmd proc.Command, timeout time.Duration, mark string) (string, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return "", fmt.Errorf("the command could not be started: %w. Try again", err)
	}
	cmd.Stdout, cmd.Stderr = write, write
	began := c.now()
	var before []int
	if c.Adopts {
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
	if cmd.Box == nil || w.unboxed != nil { // in namespaces, nothing survives
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

// endLeft kills the processes that a command left behind. It returns a message about any that could not be
// killed.
func (c Commands) endLeft(before []int, mark string) string {
	if !c.Adopts { // the command's children cannot be distinguished from others
		_, _ = proc.KillMarked(mark) // processes that cannot be killed keep running
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

// hint explains how confinement looks from inside.
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

// boxed prepares a command to run in namespaces, or with weaker restrictions if they are unavailable.
func (c Commands) boxed(w *Workspace, cmd proc.Command) (proc.Command, box.End, error) {
	request, err := c.request(w)
	if err != nil {
		return cmd, nil, err
	}
	inside := cmd
	inside.Env = append(slices.Clip(cmd.Env), "TMPDIR=/tmp", "TMP=/tmp", "TEMP=/tmp")
	return request.Hold(c.Box, inside, func(why error) (proc.Command, box.End, error) {
		if err := c.unbox(w, why); err != nil {
			return cmd, nil, err
		}
		if c.Status != nil {
			_ = os.Remove(c.Status.Name()) // unused in this case
		}
		return c.lower(w, cmd)
	})
}

// request returns the sandbox for commands.
func (c Commands) request(w *Workspace) (box.Request, error) {
	tmp, err := w.scratch.tmp()
	r := box.Request{
		Workspace: w.real, Git: offlimits.GitDirs(w.real), Home: c.Home, Off: w.off, Writable: c.Writable, Readable: c.Readable,
		Temporary: tmp, State: c.State, Environ: c.Environ, Keep: append(neededCapabilities(w.real), c.Keep...),
		NoUnixSockets: c.NoUnixSockets, Status: c.Status, Network: c.Network, Nest: c.Nest, Now: c.now(),
	}
	if r.Environ == nil {
		r.Environ = c.Env
	}
	return r, err
}

// unbox records why namespaces are unavailable, and warns once.
func (c Commands) unbox(w *Workspace, why error) error {
	if c.mustBox() {
		return fmt.Errorf("the command was not run: it must have namespaces, and cannot: %w", why)
	}
	w.unboxed = why
	if c.Once != nil {
		c.Once(fmt.Sprintf("commands run without namespaces (%v), held by %s%s", why, confine.Describe(), confine.Open(c.NoUnixSockets)))
	}
	return nil
}

// ended reports to the user and the model what was done at the end of a command.
func (c Commands) ended(messages []string, err error) string {
	if err != nil {
		messages = append(messages, fmt.Sprintf("left what could not be looked at: %v", err))
	}
	for _, text := range messages {
		if c.Warn != nil {
			c.Warn("a command " + text)
		}
	}
	if len(messages) == 0 {
		return ""
	}
	return "\n[this command " + strings.Join(messages, "; it ") + "]"
}

// Unboxed returns the reason why commands had no namespaces, or nil.
func (w *Workspace) Unboxed() error { return w.unboxed }

// quiet contains variables that stop programs from prompting or drawing.
var quiet = []string{
	"PAGER=cat", "GIT_PAGER=cat", "MANPAGER=cat", "LESS=-R", "TERM=dumb", "NO_COLOR=1",
	"GIT_TERMINAL_PROMPT=0", "DEBIAN_FRONTEND=noninteractive", "PIP_PROGRESS_BAR=off", "TQDM_DISABLE=1",
}

// CommandEnv returns the environment for commands. It removes secrets, recognized by a variable's name or
// value, and variables that identify the agent's step, so that no command can act as the agent. Variables
// listed in pass are always kept.
func CommandEnv(environ []string, secrets *secret.Set, pass []string) []string {
	var env []string
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		guarded := secret.Guarded(name, value) || secrets.Holds(value) || EscapesSandbox(name)
		if !ownStep(name) && (!guarded || slices.Contains(pass, name)) {
			env = append(env, kv)
		}
	}
	return append(env, quiet...)
}

// EscapesSandbox reports whether a variable refers to a socket or a program outside the commands' sandbox: what
// listens there acts for the user, unconfined.
func EscapesSandbox(name string) bool {
	switch name {
	case "SSH_AUTH_SOCK", "SSH_AGENT_PID", "SSH_ASKPASS", "GIT_ASKPASS", "SUDO_ASKPASS", "DBUS_SESSION_BUS_ADDRESS", "DBUS_SYSTEM_BUS_ADDRESS", "DOCKER_HOST",
		"CONTAINER_HOST", "PODMAN_SOCK", "TMUX", "TMUX_PANE", "STY", "DISPLAY", "WAYLAND_DISPLAY", "WAYLAND_SOCKET", "XAUTHORITY", "XDG_RUNTIME_DIR",
		"GNOME_KEYRING_CONTROL", "SESSION_MANAGER", "ICEAUTHORITY", "NOTIFY_SOCKET", "LISTEN_FDS", "NVIM", "NVIM_LISTEN_ADDRESS", "KITTY_LISTEN_ON", "WEZTERM_UNIX_SOCKET",
		"PULSE_SERVER", "LIBVIRT_DEFAULT_URI", "REMOTE_CONTAINERS_IPC":
		return true
	}
	for _, prefix := range []string{"GPG_", "VSCODE_", "PIPEWIRE_", "I3SOCK", "SWAYSOCK", "HYPRLAND_"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

func ownStep(name string) bool {
	switch name {
	case protocol.EnvHead, protocol.EnvRunDir, protocol.EnvThread, protocol.EnvRole, protocol.EnvPrompt, protocol.EnvLimitBase:
		return true
	}
	return false
}

// How much of a command's output is kept. The end is more valuable, because errors are there.
const (
	keepHead = 9000
	keepTail = 20000
)

// output collects a command's output in bounded memory.
type output struct {
	mu      sync.Mutex
	head    []byte
	tail    []byte // up to twice keepTail
	dropped int    // bytes between head and tail
	lines   int    // lines in the dropped part

	create  func() (*os.File, error) // creates the file for the complete output
	file    *os.File                 // nil if not needed yet, or after an error
	written int
	cut     bool // the file is incomplete

	pipe *os.File
	done chan struct{}
}

// collect reads a pipe to its end in the background. Output too long for memory goes to a file created by
// create.
func collect(pipe *os.File, create func() (*os.File, error)) *output {
	o := &output{pipe: pipe, create: create, done: make(chan struct{})}
	go func() {
		defer close(o.done)
		buf := make([]byte, 32<<10)
		for {
			n, err := pipe.Read(buf)
			o.add(buf[:n])
			if err != nil {
				return // the end, or closed by text
			}
		}
	}()
	return o
}

func (o *output) add(b []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := min(keepHead-len(o.head), len(b))
	o.head = append(o.head, b[:n]...)
	o.tail = append(o.tail, b[n:]...)
	o.save(b)
	if len(o.tail) > 2*keepTail {
		o.shrink()
	}
}

// shrink drops the excess part of the tail.
func (o *output) shrink() {
	extra := len(o.tail) - keepTail
	if extra <= 0 {
		return
	}
	if o.dropped == 0 { // memory has everything so far
		if f, err := o.create(); err == nil {
			o.file = f
			o.save(o.head)
			o.save(o.tail)
		}
	}
	o.dropped += extra
	o.lines += bytes.Count(o.tail[:extra], []byte{'\n'})
	o.tail = append(o.tail[:0], o.tail[extra:]...)
}

// save appends to the file, if there is one, and gives it up on an error such as a full disk.
func (o *output) save(b []byte) {
	if o.file == nil || o.cut {
		return
	}
	room := maxKeptBytes - o.written
	n, err := o.file.Write(b[:min(room, len(b))])
	o.written += n
	o.cut = err != nil || n < len(b)
}

// whole closes the file and returns its name, or "".
func (o *output) whole() string {
	if o.file == nil {
		return ""
	}
	if err := o.file.Close(); err != nil || o.written == 0 {
		return ""
	}
	if o.cut {
		return fmt.Sprintf("%s (its first %d bytes)", o.file.Name(), o.written)
	}
	return o.file.Name()
}

// text waits for the end of the pipe and returns the output. A process that left the group may hold the pipe
// open forever, so it waits at most patience.
func (o *output) text(patience time.Duration) string {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-o.done:
	case <-timer.C:
	}
	_ = o.pipe.Close() // stops the reader if it still waits
	o.mu.Lock()
	defer o.mu.Unlock()
	o.shrink()
	s := string(o.head) + string(o.tail)
	if o.dropped > 0 {
		s = join(string(o.head), string(o.tail), o.dropped, o.lines, o.whole())
	}
	if s != "" && !strings.HasSuffix(s, "\n") {
		s += "\n"
	}
	return s
}

// clip removes the middle of a text longer than most bytes and inserts a note about it. It keeps more of the
// end than of the beginning, because errors are there.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	head, tail := s[:most/3], s[len(s)-(most-most/3):]
	return join(head, tail, len(s)-len(head)-len(tail), strings.Count(s[len(head):len(s)-len(tail)], "\n"), "")
}

// join joins a head and a tail at nearby line endings. missing and lines count the part between them; whole
// is the file with the complete text, or "".
func join(head, tail string, missing, lines int, whole string) string {
	const near = 200
	if i := strings.LastIndexByte(head, '\n'); i >= 0 && len(head)-i < near {
		missing += len(head) - i - 1
		head = head[:i+1]
	}
	if i := strings.IndexByte(tail, '\n'); i >= 0 && i < near {
		missing += i + 1
		lines++
		tail = tail[i+1:]
	}
	head, tail = plaintext.WholeRunes(head, tail)
	if !strings.HasSuffix(head, "\n") {
		head += "\n"
	}
	where := ""
	if whole != "" {
		where = "; read_file and grep find them in " + whole
	}
	return head + fmt.Sprintf("[… %d bytes, %d lines left out%s …]\n", missing, lines, where) + tail
}

// errQuote reports a command line that ends inside quotes.
var errQuote = errors.New("the command line ends inside quotes. Close them")

// splitWords splits a command line like a POSIX shell, but rejects whatever only a shell could do: passing
// "|" or "$HOME" as a word would run something other than what the model meant.
func splitWords(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	inWord := false
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			if inWord {
				words = append(words, word.String())
				word.Reset()
				inWord = false
			}
			if c == '\n' && strings.TrimSpace(line[i:]) != "" {
				return nil, needsShell("a second line")
			}
			continue
		case c == '\'' || c == '"':
			n, err := quoted(line[i+1:], c, &word)
			if err != nil {
				return nil, err
			}
			i += n
		case strings.HasPrefix(line[i:], "\\\n"): // the command continues in the next line
			i++
			continue
		case c == '\\' && i+1 < len(line):
			i++
			word.WriteByte(line[i])
		case strings.IndexByte("|&;<>()$`*?", c) >= 0, !inWord && (c == '~' || c == '#'):
			return nil, needsShell(string(c))
		default:
			word.WriteByte(c)
		}
		inWord = true
	}
	if inWord {
		words = append(words, word.String())
	}
	if len(words) > 0 && strings.Contains(words[0], "=") {
		return nil, needsShell("a variable assignment")
	}
	return words, nil
}

func needsShell(what string) error {
	return fmt.Errorf("there is no shell here, so %s has no meaning. Run one program with its arguments; quote special characters; use cwd instead of cd", what)
}

// quoted reads up to the closing quote and returns the number of bytes read.
func quoted(s string, quote byte, word *strings.Builder) (int, error) {
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == quote:
			return i + 1, nil
		case quote == '"' && c == '\\' && i+1 < len(s) && strings.IndexByte("\"\\$`", s[i+1]) >= 0:
			i++
			word.WriteByte(s[i])
		case quote == '"' && (c == '$' || c == '`'):
			return 0, needsShell(string(c))
		default:
			word.WriteByte(c)
		}
	}
	return 0, errQuote
}
