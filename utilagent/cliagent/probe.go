package cliagent

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/utilagent/cliagent/output"
)

// ask runs the program for what it says about itself, on either stream.
func ask(ctx context.Context, path string, args []string, a Adapter, e env.Env) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, probeTime, fmt.Errorf("no answer within %s", probeTime))
	defer cancel()
	said := &output.Tail{}
	id, err := newUUID(e.Rand)
	if err != nil {
		return "", err
	}
	p, err := start(launch{
		path: path, inv: Invocation{Args: args, Dir: e.Dir}, env: environment(e.Environ, a, Invocation{}),
		marker: markerVariable + "=" + id, stdout: said, stderr: said,
	})
	if err != nil {
		return "", &Error{Program: a.Program, Kind: NotInstalled, Text: err.Error(), Hint: a.Install}
	}
	stop := context.AfterFunc(ctx, func() { p.Stop(100 * time.Millisecond) })
	defer stop()
	p.stdout.Each(nil)
	exit, err := p.Wait()
	switch {
	case context.Cause(ctx) != nil:
		return "", context.Cause(ctx)
	case err != nil:
		return "", err
	case exit.Code != 0:
		return "", &statusError{exit.Code, cmp.Or(strings.TrimSpace(said.Text()), "it says nothing")}
	}
	return said.Text(), nil
}

// statusError is a program's answer to a question that ended with a status.
type statusError struct {
	code int
	said string
}

func (e *statusError) Error() string { return fmt.Sprintf("exit status %d: %s", e.code, e.said) }

// recall reads what is known of a program, if its file is still the same.
func recall(cache string, p program) (program, bool) {
	data, err := os.ReadFile(cache)
	var known program
	if err != nil || json.NewDecoder(bytes.NewReader(data)).Decode(&known) != nil {
		return p, false
	}
	same := known.Path == p.Path && known.Real == p.Real && known.Size == p.Size && known.Changed == p.Changed
	return known, same && p.AskedMs-known.AskedMs < probeAge.Milliseconds()
}

// probeFile is where what is known of a program is remembered.
func probeFile(dir, path string) string {
	sum := fnv.New32a()
	_, _ = io.WriteString(sum, path)
	return filepath.Join(dir, fmt.Sprintf("program-%08x.json", sum.Sum32()))
}
