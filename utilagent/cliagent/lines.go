package cliagent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"sync"

	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/utilagent/cliagent/output"
)

// lines is the [Transport] of a program that takes a prompt and prints lines.
type lines struct{ adapter Adapter }

// Call implements [Transport].
func (l lines) Call(ctx context.Context, c Call, h *Host) (Outcome, error) {
	inv, err := l.adapter.Command(c)
	if err != nil {
		return Outcome{}, err
	}
	r := &lineReader{decoder: l.adapter.Decoder(c), host: h, noise: &output.Tail{}}
	if d, ok := r.decoder.(ErrLiner); ok {
		inv.errLine = func(line []byte) {
			r.take(ctx, func() ([]Event, bool) { return d.ErrLine(line), true }, nil)
		}
	}
	remove, err := writeFiles(inv.Files)
	defer remove()
	if err != nil {
		return Outcome{}, err
	}
	p, err := h.Start(inv)
	if err != nil {
		return Outcome{}, err
	}
	stop := context.AfterFunc(ctx, func() { p.Stop(h.Pace()) })
	defer stop()
	if d, ok := r.decoder.(Hearer); ok && inv.Open {
		r.post = newPost(d, h, p.Stdin())
		defer r.post.close()
	}
	r.read(ctx, func() ([]byte, error) {
		line, _, err := p.ReadLine() // where something was left out, the line says so
		return line, err
	})
	exit, err := p.Wait()
	exit.Noise = r.noise.Text()
	return r.decoder.End(exit), errors.Join(err, r.err)
}

// writeFiles writes the files of a call. It returns a function, never nil, that removes what
// was written.
func writeFiles(files []File) (remove func(), err error) {
	fsys := durable.OS()
	remove = func() {
		for _, f := range files {
			_ = fsys.Remove(f.Path) // it may not have come to be, and who took it away has done our work
		}
	}
	for _, f := range files {
		if err := fsys.MkdirAll(filepath.Dir(f.Path), 0o700); err != nil {
			return remove, err
		}
		if err := durable.Replace(fsys, f.Path, f.Data, 0o600); err != nil {
			return remove, err
		}
	}
	return remove, nil
}

// Close implements [Transport]: no program outlives its call.
func (lines) Close() error { return nil }

// lineReader reads what one call prints.
type lineReader struct {
	host  *Host
	noise *output.Tail
	post  *post // nil: the program hears nothing while it works

	mu      sync.Mutex
	decoder Decoder
	err     error
}

// read reads to the end, also when the call has ended: what was printed before
// the program ended is part of what happened.
func (r *lineReader) read(ctx context.Context, next func() ([]byte, error)) {
	for first := true; ; first = false {
		line, err := next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				r.fail(err)
			}
			return
		}
		if first {
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
		}
		r.take(ctx, func() ([]Event, bool) { return r.decode(line) }, line)
	}
}

// decode decodes a line. A line that means nothing as a whole may still contain objects: after
// a warning that was printed without a line end, or several of them.
func (r *lineReader) decode(line []byte) (events []Event, known bool) {
	if events, known = r.decoder.Line(line); known {
		return events, true
	}
	at := bytes.IndexByte(line, '{')
	if at < 0 {
		return nil, false
	}
	values := json.NewDecoder(bytes.NewReader(line[at:]))
	for {
		var value json.RawMessage
		if values.Decode(&value) != nil || len(value) == len(line) {
			return events, false
		}
		more, _ := r.decoder.Line(value)
		events = append(events, more...)
	}
}

// take has a line decoded and reports what it means.
func (r *lineReader) take(ctx context.Context, decode func() ([]Event, bool), line []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	events, known := decode()
	if !known && len(bytes.TrimSpace(line)) > 0 {
		_, _ = r.noise.Write(append(bytes.Clone(line[:min(len(line), output.TailBytes)]), '\n')) // it never fails
	}
	for _, e := range events {
		if !r.post.sees(&e) {
			continue
		}
		if err := r.host.Emit(ctx, e); err != nil {
			return // the call's cause has it
		}
	}
}

func (r *lineReader) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = errors.Join(r.err, err)
}
