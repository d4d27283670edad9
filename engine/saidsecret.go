package engine

import (
	"errors"
	"io"
	"os"

	"github.com/united-workforce/uwf/engine/agentproc"
	"github.com/united-workforce/uwf/engine/oscommand"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/careful"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/runfiles"
	"github.com/united-workforce/uwf/util/secret"
)

// hidden is an error in whose message nothing is secret: it quotes what programs print.
func (e *Engine) hidden(err *protocol.Error) *protocol.Error {
	text := e.Secrets().Hide(err.Message)
	if text == err.Message {
		return err
	}
	return &protocol.Error{Code: err.Code, Message: text, Hints: err.Hints, Err: err}
}

// hideValue hides what is secret in a value of JSON.
func hideValue(set *secret.Set, v any) any {
	switch v := v.(type) {
	case string:
		return set.Hide(v)
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = hideValue(set, item)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			out[set.Hide(key)] = hideValue(set, item)
		}
		return out
	}
	return v
}

// hideSaid hides what is secret in all that a command has printed, before anybody reads
// it. What cannot be gone through is removed.
func (a *attempt) hideSaid(ran *agentproc.Outcome) error {
	set := a.Secrets()
	if set.Empty() {
		return nil
	}
	var errs []error
	for _, name := range []string{runfiles.StderrFile, runfiles.OutputFile} {
		path := a.dir.File(name)
		if err := hideIn(a.FS, set, path); err != nil {
			errs = append(errs, err, a.FS.Remove(path))
		}
	}
	ran.Stderr = set.Hide(ran.Stderr)
	return errors.Join(errs...)
}

// hideIn replaces a file by one in which the secrets of a set are hidden.
func hideIn(disk durable.FS, set *secret.Set, path string) (err error) {
	from, size, err := oscommand.Printed(path)
	if from == nil || err != nil {
		return err
	}
	defer from.Close()
	temp, err := disk.WriteTemp(path, nil, 0o600, durable.NoFlush)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = disk.Remove(temp) // the first error says more
		}
	}()
	to, err := careful.OpenFile(temp, os.O_WRONLY|os.O_APPEND, 0, careful.NoFollow)
	if err != nil {
		return err
	}
	hiding := set.NewWriter(to)
	_, err = io.CopyBuffer(struct{ io.Writer }{hiding}, io.NewSectionReader(from, 0, size), make([]byte, oscommand.OutputPiece))
	if err = errors.Join(err, hiding.Flush(), to.Close()); err != nil {
		return err
	}
	return disk.Rename(temp, path)
}
