package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/external"
	"github.com/united-workforce/uwf/utilagent/tools"
)

// Bounds of terminals.
const (
	maxTerminals  = 32               // that are not released
	defaultOutput = 1 << 20          // bytes of output that are kept
	maxOutput     = 8 << 20          // at most, whatever the agent asks for
	terminalLimit = 30 * time.Minute // of one command
	killGrace     = 2 * time.Second
)

var errClosing = errors.New("the session is being closed")

// terminals are the commands that an agent runs through us. They run in the
// workspace's directories, with all that the user may do.
type terminals struct {
	space *tools.Workspace
	env   []string

	mu     sync.Mutex
	last   int
	open   map[string]*terminal
	closed bool
}

// terminal is one command.
type terminal struct {
	child  *proc.Child
	kill   context.CancelFunc
	ended  chan struct{}
	status proc.Status // once ended is closed
	read   chan struct{}

	mu      sync.Mutex
	output  []byte // the newest
	limit   int
	dropped bool
}

type createParams struct {
	Command string   `json:"command"`
	Args    []string `json:"args"`
	Env     []struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	} `json:"env"`
	Cwd   string `json:"cwd"`
	Limit *int64 `json:"outputByteLimit"`
}

type terminalParams struct {
	ID string `json:"terminalId"`
}

type exitStatus struct {
	Code   *int    `json:"exitCode"`
	Signal *string `json:"signal"`
}

type outputResult struct {
	Output    string      `json:"output"`
	Truncated bool        `json:"truncated"`
	Exit      *exitStatus `json:"exitStatus,omitempty"`
}

// create starts a command and returns its terminal's id.
func (t *terminals) create(raw json.RawMessage) (any, error) {
	var p createParams
	if err := lenient(raw, &p); err != nil || strings.TrimSpace(p.Command) == "" {
		return nil, &RPCError{Code: codeInvalidParams, Message: "terminal/create without a command"}
	}
	line := strings.Join(append([]string{p.Command}, p.Args...), " ")
	if err := agentkit.RefuseEngine(line); err != nil {
		return nil, err
	}
	dir, err := t.space.Directory(p.Cwd)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, errClosing
	}
	if len(t.open) >= maxTerminals {
		return nil, fmt.Errorf("%d terminals are open: release one first", maxTerminals)
	}
	c := proc.Command{Dir: dir, Env: slices.Clone(t.env)}
	for _, v := range p.Env {
		c.Env = append(c.Env, v.Name+"="+v.Value)
	}
	c.Path, c.Args = tools.Program(append([]string{p.Command}, p.Args...)...)
	if len(p.Args) == 0 && isLine(p.Command) {
		c.Path, c.Args = tools.ShellLine(p.Command)
	}
	term, err := startTerminal(c, outputLimit(p.Limit))
	if err != nil {
		return nil, err
	}
	t.last++
	id := "term_" + strconv.Itoa(t.last)
	if t.open == nil {
		t.open = map[string]*terminal{}
	}
	t.open[id] = term
	return terminalParams{ID: id}, nil
}

// isLine tells a command line from a program's name: some agents send one.
func isLine(command string) bool { return strings.ContainsAny(command, " \t\n|&;<>()$`\"'*") }

func outputLimit(asked *int64) int {
	if asked == nil || *asked < 0 {
		return defaultOutput
	}
	return int(min(*asked, maxOutput))
}

// startTerminal starts a command with both streams in one.
func startTerminal(c proc.Command, limit int) (*terminal, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	c.Stdout, c.Stderr = write, write
	child, err := proc.Start(c)
	_ = write.Close() // ours: nothing was written to it
	if err != nil {
		_ = read.Close()
		return nil, err
	}
	ctx, kill := context.WithTimeout(context.Background(), terminalLimit)
	t := &terminal{child: child, kill: kill, ended: make(chan struct{}), read: make(chan struct{}), limit: limit}
	go t.collect(read)
	go func() {
		defer kill()
		status, err := child.Wait(ctx, killGrace)
		if err != nil && status.Signal == "" && status.Code == 0 {
			status.Code = -1
		}
		// Who has left the group may hold the pipe open: it is not waited for long.
		select {
		case <-t.read:
		case <-time.After(time.Second):
			_ = read.Close()
			<-t.read
		}
		t.status = status
		close(t.ended)
	}()
	return t, nil
}

// collect keeps the newest output.
func (t *terminal) collect(pipe *os.File) {
	defer close(t.read)
	defer pipe.Close() // only read from
	buf := make([]byte, 32<<10)
	for {
		n, err := pipe.Read(buf)
		t.add(buf[:n])
		if err != nil {
			return
		}
	}
}

func (t *terminal) add(b []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.output = append(t.output, b...)
	if len(t.output) > 2*t.limit+(64<<10) { // not at each read: that would copy it all each time
		t.shrink()
	}
}

// shrink drops the oldest output, up to the beginning of a character.
func (t *terminal) shrink() {
	cut := len(t.output) - t.limit
	if cut <= 0 {
		return
	}
	for n := 0; n < utf8.UTFMax && cut < len(t.output) && !utf8.RuneStart(t.output[cut]); n++ {
		cut++
	}
	t.output = append(t.output[:0], t.output[cut:]...)
	t.dropped = true
}

// text is the output so far.
func (t *terminal) text() (string, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shrink()
	return strings.ToValidUTF8(string(t.output), "\uFFFD"), t.dropped
}

// exit is how the command ended; nil while it runs.
func (t *terminal) exit() *exitStatus {
	select {
	case <-t.ended:
	default:
		return nil
	}
	if t.status.Signal != "" {
		return &exitStatus{Signal: &t.status.Signal}
	}
	return &exitStatus{Code: &t.status.Code}
}

// find returns the terminal that a request names.
func (t *terminals) find(raw json.RawMessage) (string, *terminal, error) {
	var p terminalParams
	if err := lenient(raw, &p); err != nil {
		return "", nil, &RPCError{Code: codeInvalidParams, Message: err.Error()}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	term, ok := t.open[p.ID]
	if !ok {
		return "", nil, &RPCError{Code: codeNotFound, Message: "there is no terminal " + strconv.Quote(p.ID)}
	}
	return p.ID, term, nil
}

func (t *terminals) output(raw json.RawMessage) (any, error) {
	_, term, err := t.find(raw)
	if err != nil {
		return nil, err
	}
	exit := term.exit() // before the text: what ended has told everything
	text, cut := term.text()
	return outputResult{Output: text, Truncated: cut, Exit: exit}, nil
}

// wait returns a function that waits for a command's end.
func (t *terminals) wait(raw json.RawMessage) (func(context.Context) (any, error), error) {
	_, term, err := t.find(raw)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (any, error) {
		select {
		case <-term.ended:
			return term.exit(), nil
		case <-ctx.Done():
			return nil, &RPCError{Code: codeCancelled, Message: "the prompt was cancelled"}
		}
	}, nil
}

// stop kills a command; release forgets it, too.
func (t *terminals) stop(raw json.RawMessage, release bool) error {
	id, term, err := t.find(raw)
	if err != nil {
		return err
	}
	term.kill()
	if release {
		t.mu.Lock()
		delete(t.open, id)
		t.mu.Unlock()
	}
	return nil
}

// stopAll kills all commands and waits for their ends.
func (t *terminals) stopAll() error {
	t.mu.Lock()
	open := t.open
	t.open, t.closed = nil, true
	t.mu.Unlock()
	var err error
	for _, term := range open {
		term.kill()
	}
	for _, term := range open {
		select {
		case <-term.ended:
		case <-time.After(2*killGrace + 5*time.Second):
			err = errors.Join(err, proc.ErrAlive)
		}
	}
	return err
}

// mayRun tells whether commands may run at all.
func mayRun(p external.Permission) bool { return p == external.Bypass }
