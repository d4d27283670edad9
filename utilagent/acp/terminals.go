package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/utilagent/cliagent"
	"github.com/united-workforce/uwf/utilagent/shellguard"
	"github.com/united-workforce/uwf/utilagent/tools"
)

// Bounds of terminals.
const (
	maxTerminals  = 32      // that are not released
	defaultOutput = 1 << 20 // bytes of output that are kept
	maxOutput     = 8 << 20 // at most, whatever the agent asks for
)

var errClosing = errors.New("the session is being closed")

// terminals are the commands that an agent runs through us. They run in the
// workspace's directories, held back as the agent's program is: it could start them
// through us to do what it may not do itself.
type terminals struct {
	space   *tools.Workspace
	env     []string
	confine func(proc.Command) (proc.Command, error) // nil: as it is

	mu     sync.Mutex
	last   int
	open   map[string]*terminal
	closed bool
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
	if err := shellguard.RefuseEngine(line); err != nil {
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
	if t.confine != nil {
		if c, err = t.confine(c); err != nil {
			return nil, err
		}
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

// interrupt kills all commands. Their terminals stay, so that who waits for them
// is answered.
func (t *terminals) interrupt() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, term := range t.open {
		term.kill()
	}
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

// mayRun reports whether commands may run at all.
func mayRun(p cliagent.Permission) bool { return p == cliagent.Bypass }
