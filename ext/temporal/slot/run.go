package slot

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/safeopen"
)

// ran is what a command of uwf has answered.
type ran struct {
	out     protocol.RunOutput // of one that works on a thread
	problem protocol.Error     // no code: it went well
}

func (r ran) code() protocol.Code { return r.problem.Code }

// made reports whether the command has made a step.
func (r ran) made() bool { return r.out.StepHash != "" || len(r.out.Steps) > 0 }

// Bounds of what uwf may say.
const (
	maxAnswer  = 64 << 20
	maxProblem = 1 << 20
)

// uwf runs a command in the slot's home. An error says that it could not be run, or was
// ended from outside; what the command itself finds wrong is its problem.
func (a *place) uwf(ctx context.Context, words ...string) (ran, error) {
	none := ran{}
	stdout, err := os.OpenFile(filepath.Join(a.dir, "stdout"), os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return none, err
	}
	defer func() { _ = stdout.Close() }()
	stderr, err := os.OpenFile(filepath.Join(a.dir, "stderr"), os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return none, err
	}
	defer func() { _ = stderr.Close() }()
	child, err := proc.Start(proc.Command{
		Path: a.pool.c.Uwf, Args: append(words, "--format", "json"), Dir: a.work(),
		Env: append(a.pool.c.Environ[:len(a.pool.c.Environ):len(a.pool.c.Environ)],
			"UWF_HOME="+a.home(), "OCAS_HOME="+a.store.dir),
		Stdout: stdout, Stderr: stderr, Inherit: []*os.File{a.pool.lock.File()},
	})
	if err != nil {
		return none, fmt.Errorf("uwf cannot be started: %w", plainPath(err))
	}
	status, err := child.Wait(ctx, a.pool.c.Grace)
	if err != nil {
		return none, err
	}
	if status.Signal != "" {
		return none, fmt.Errorf("uwf was ended by a signal (%s)", status.Signal)
	}
	r, err := a.answer(status.Code)
	if err == nil && r.code() != "" && a.pool.c.Log != nil {
		a.pool.c.Log(fmt.Sprintf("uwf %s: %s: %s", strings.Join(words[:min(len(words), 3)], " "), r.code(),
			plaintext.Line(r.problem.Message)))
	}
	return r, err
}

// plainPath is an error without the path that it is about: errors of an activity go
// through Temporal.
func plainPath(err error) error {
	if at, ok := errors.AsType[*os.PathError](err); ok {
		return at.Err
	}
	return err
}

// answer reads what uwf has printed.
func (a *place) answer(exit int) (ran, error) {
	var r ran
	text, err := safeopen.ReadFile(filepath.Join(a.dir, "stdout"), maxAnswer, false)
	if err != nil {
		return r, err
	}
	if len(text) > 0 {
		if err := json.Unmarshal(text, &r.out); err != nil {
			return r, errors.New("uwf has answered something else than JSON")
		}
	}
	if exit == 0 {
		return r, nil
	}
	text, err = safeopen.ReadFile(filepath.Join(a.dir, "stderr"), maxProblem, false)
	if err != nil {
		return r, err
	}
	r.problem = *Problem(text, exit)
	return r, nil
}

// Problem is the error that uwf reports in the last line of its stderr; if there is none,
// the exit status tells of which kind it is.
func Problem(stderr []byte, exit int) *protocol.Error {
	var last struct {
		Error *struct {
			Code          protocol.Code
			Message, Hint string
			Machine       bool
		}
	}
	lines := bytes.Split(bytes.TrimSpace(stderr), []byte("\n"))
	if json.Unmarshal(lines[len(lines)-1], &last) == nil && last.Error != nil && last.Error.Code != "" {
		p := &protocol.Error{Code: last.Error.Code, Message: last.Error.Message, Machine: last.Error.Machine}
		if last.Error.Hint != "" {
			p.Hints = []string{last.Error.Hint}
		}
		return p
	}
	p := &protocol.Error{Code: protocol.CodeFailed, Message: fmt.Sprintf("uwf: exit status %d", exit)}
	for _, code := range []protocol.Code{
		protocol.CodeUsage, protocol.CodeNotFound, protocol.CodeInvalid, protocol.CodeAgent, protocol.CodeSuspended,
		protocol.CodeCorrupt, protocol.CodeLocked,
	} {
		if code.ExitCode() == exit {
			p.Code = code
		}
	}
	return p
}
