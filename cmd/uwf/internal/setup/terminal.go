package setup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/term"
)

// Terminal asks a person. Questions go to Out, which is stderr: stdout is for
// results.
type Terminal struct {
	In  io.Reader
	Out io.Writer
}

// ErrNoMore means that the person has closed the terminal (end of input).
var ErrNoMore = errors.New("no answer: the input has ended")

// Line asks for a line. ctx ends the wait: an interrupt must not need an Enter.
func (t Terminal) Line(ctx context.Context, question string) (string, error) {
	fmt.Fprint(t.Out, question)
	return wait(ctx, func() (string, error) { return t.readLine() })
}

// Secret asks for a line that is not shown, neither typed nor pasted.
func (t Terminal) Secret(ctx context.Context, question string) (string, error) {
	file, ok := t.In.(interface{ Fd() uintptr })
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return "", errors.New("a key is only read from a terminal; give it with --api-key, or through the environment")
	}
	fd := int(file.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return "", fmt.Errorf("terminal: %w", err)
	}
	fmt.Fprint(t.Out, question)
	secret, err := wait(ctx, func() (string, error) {
		text, err := term.ReadPassword(fd)
		if errors.Is(err, io.EOF) {
			err = ErrNoMore
		}
		return strings.TrimSpace(string(text)), err
	})
	fmt.Fprintln(t.Out)
	if ctx.Err() != nil { // nobody else gives the terminal its echo back
		return "", errors.Join(err, term.Restore(fd, before))
	}
	return secret, err
}

// wait runs a read that cannot be interrupted until it ends or ctx does.
func wait(ctx context.Context, read func() (string, error)) (string, error) {
	type answer struct {
		text string
		err  error
	}
	got := make(chan answer, 1)
	go func() {
		text, err := read()
		got <- answer{text, err}
	}()
	select {
	case a := <-got:
		return a.text, a.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// readLine reads byte by byte: what is behind the line belongs to the next
// question, which may read a secret from the terminal itself.
func (t Terminal) readLine() (string, error) {
	var line []byte
	b := make([]byte, 1)
	for {
		n, err := t.In.Read(b)
		if n == 1 && b[0] == '\n' {
			return strings.TrimSpace(string(line)), nil
		}
		line = append(line, b[:n]...)
		switch {
		case errors.Is(err, io.EOF) && len(line) > 0:
			return strings.TrimSpace(string(line)), nil
		case errors.Is(err, io.EOF):
			return "", ErrNoMore
		case err != nil:
			return "", err
		}
	}
}
