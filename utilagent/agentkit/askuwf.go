package agentkit

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/proc"
)

// asked is what uwf said to a question.
type asked struct {
	program string // its path, or the name under which it was not found
	stdout  []byte
	said    string // the first line of stderr
	ended   error
}

// failure says why stdout is no answer.
func (a asked) failure(silent string) error {
	return errors.Join(errors.New(cmp.Or(a.said, silent)), a.ended)
}

// askUwf runs the uwf that started this agent, by $UWF_BIN, else the one on PATH,
// with JSON output. That it fails is no error here: its stdout may be an answer all
// the same. Errors: there is no uwf; the context's.
func askUwf(ctx context.Context, e env.Env, stdin io.Reader, args ...string) (asked, error) {
	name := cmp.Or(e.Get(protocol.EnvBin), "uwf")
	program, err := proc.LookPath(name, e.Dir, e.Environ)
	if err != nil {
		return asked{program: name}, err
	}
	cmd := exec.CommandContext(ctx, program, append([]string{"--format", "json"}, args...)...)
	cmd.Dir, cmd.Env = e.Dir, e.Environ
	cmd.WaitDelay = 5 * time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &stdout, &stderr
	ended := cmd.Run()
	if ctx.Err() != nil {
		return asked{program: program}, context.Cause(ctx)
	}
	said, _, _ := strings.Cut(strings.TrimSpace(stderr.String()), "\n")
	return asked{program: program, stdout: stdout.Bytes(), said: said, ended: ended}, nil
}
