package slot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/safeopen"
)

// ran is the result of a process in a slot.
type ran struct {
	out     protocol.RunOutput
	problem Problem // without a code if it succeeded
}

func (r ran) code() protocol.Code { return r.problem.Code }

// made reports whether it has made a step.
func (r ran) made() bool { return r.out.StepHash != "" || len(r.out.Steps) > 0 }

// maxAnswer is the maximum size of a process's output in bytes.
const maxAnswer = 64 << 20

// work runs a task in its own process, in the slot's home. An error means that it could not be run or was
// stopped; errors of the task itself are in the result's problem.
func (a *place) work(ctx context.Context, t Task) (ran, error) {
	none := ran{}
	text, err := json.Marshal(t)
	if err != nil {
		return none, err
	}
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
		Path: a.pool.c.Exe, Args: []string{Argument, string(text)}, Dir: a.workDir(),
		Env: append(a.pool.c.Environ[:len(a.pool.c.Environ):len(a.pool.c.Environ)],
			"UWF_HOME="+a.home(), "OCAS_HOME="+a.store.dir),
		Stdout: stdout, Stderr: stderr, Inherit: []*os.File{a.pool.lock.File()},
	})
	if err != nil {
		return none, fmt.Errorf("cannot start the worker: %w", plainPath(err))
	}
	status, err := child.Wait(ctx, a.pool.c.Grace)
	if err != nil {
		return none, err
	}
	if status.Signal != "" {
		return none, fmt.Errorf("the worker was ended by a signal (%s)", status.Signal)
	}
	r, err := a.answer()
	if err == nil && r.code() != "" && a.pool.c.Log != nil {
		a.pool.c.Log(fmt.Sprintf("%s %s: %s: %s", t.Do, t.Thread, r.code(), plaintext.Line(r.problem.Message)))
	}
	return r, err
}

// plainPath returns err without the path that it contains, because errors of an activity are stored in
// Temporal.
func plainPath(err error) error {
	if at, ok := errors.AsType[*os.PathError](err); ok {
		return at.Err
	}
	return err
}

// answer reads the process's output.
func (a *place) answer() (ran, error) {
	text, err := safeopen.ReadFile(filepath.Join(a.dir, "stdout"), maxAnswer, false)
	if err != nil {
		return ran{}, err
	}
	var decoded Answer
	if json.Unmarshal(text, &decoded) != nil {
		return ran{}, errors.New("the process in the slot did not answer")
	}
	r := ran{out: decoded.Out}
	if decoded.Error != nil {
		r.problem = *decoded.Error
	}
	return r, nil
}
