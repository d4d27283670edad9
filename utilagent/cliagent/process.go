package cliagent

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/utilagent/cliagent/output"
)

// Process is a running program with pipes. It always ends: by itself, or by
// [Process.Stop], and with it everything that it started.
type Process struct {
	child  *proc.Child
	stdin  *os.File
	stdout *output.Stream
	errors *output.Tail // of stderr
	marker string       // KEY=value in the environment of it and of all its children

	kill    context.CancelFunc // ends the child at once
	after   func() error       // what is to be done when the program has ended
	ended   chan struct{}
	status  proc.Status // with err, once ended is closed
	err     error
	stopped sync.Once
	wasStop atomic.Bool
	done    sync.WaitGroup
}

// launch is what it takes to start a process.
type launch struct {
	path           string
	inv            Invocation
	env            []string
	marker         string
	confinement    *confinement // nil: none
	stdout, stderr io.Writer    // where all that is read goes too
	more           string       // what to type if it must see more
	touch          func()       // told that there was something on stdout
}

// start starts a program. Its stdin is written in the background: it may print
// before it reads, or never read.
func start(l launch) (*Process, error) {
	ours, theirs, err := pipes()
	if err != nil {
		return nil, err
	}
	cmd, done, err := l.confinement.wrap(proc.Command{
		Path: l.path, Args: l.inv.Args, Dir: l.inv.Dir, Env: append(l.env, l.marker),
		Stdin: theirs[0], Stdout: theirs[1], Stderr: theirs[2], WithParent: true,
	})
	var child *proc.Child
	if err == nil {
		if child, err = proc.Start(cmd); err != nil {
			err = errors.Join(l.notFound(err), done())
		}
	}
	theirs.close()
	if err != nil {
		ours.close()
		return nil, err
	}
	ctx, kill := context.WithCancel(context.Background())
	p := &Process{
		child: child, stdin: ours[0], errors: &output.Tail{}, marker: l.marker, kill: kill, after: done, ended: make(chan struct{}),
	}
	p.stdout = output.New(ours[1], l.stdout, l.touch)
	stderr := output.New(ours[2], io.MultiWriter(l.stderr, p.errors), nil)
	p.done.Add(2)
	go p.wait(ctx, p.stdout, stderr)
	go func() {
		defer p.done.Done()
		stderr.Each(l.inv.errLine)
	}()
	go p.write(l.inv)
	return p, nil
}

// notFound says what to do about a program that has namespaces and does not find itself, or its interpreter.
func (l launch) notFound(err error) error {
	if l.confinement == nil || l.confinement.box == nil || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return &Error{Program: filepath.Base(l.path), Kind: Crashed, Text: err.Error(), Hint: l.more}
}

// wait waits for the program's end and then bounds how long its streams are read.
func (p *Process) wait(ctx context.Context, streams ...*output.Stream) {
	defer p.done.Done()
	// The signals before the kill are Stop's, so the grace here is none.
	p.status, p.err = p.child.Wait(ctx, time.Millisecond)
	if errors.Is(p.err, context.Canceled) && !errors.Is(p.err, proc.ErrAlive) {
		p.err = nil // that was Stop
	}
	p.kill()
	if p.status.Code != 0 {
		p.err = errors.Join(p.err, killMarked(p.marker))
	}
	p.err = errors.Join(p.err, p.after())
	close(p.ended)
	for _, s := range streams {
		s.WriterEnded()
	}
}

func killMarked(entry string) error {
	_, err := proc.KillMarked(entry)
	return err
}

// write gives the program its input. A program that does not read it is not an error: many
// learn enough from their arguments, or fail before.
func (p *Process) write(inv Invocation) {
	_, err := io.WriteString(p.stdin, inv.Stdin)
	if err != nil || !inv.Open {
		_ = p.stdin.Close()
	}
}

// Stdin is the program's input, if [Invocation.Open] left it open. Closing it
// twice is harmless.
func (p *Process) Stdin() io.WriteCloser { return p.stdin }

// Stdout is the program's output as it comes. It ends soon after the program has
// ended, even if a child of it keeps the pipe.
func (p *Process) Stdout() io.Reader { return p.stdout }

// ReadLine returns the next line of stdout, as [output.Stream.Line] does. It cannot be
// mixed with Stdout.
func (p *Process) ReadLine() (line []byte, cut int, err error) { return p.stdout.Line() }

// Ended is closed when the program has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Stop interrupts the program; after pace it asks it to terminate, and after
// another pace it kills it. It returns when the program has ended. What is left
// of it, in whatever process group, is killed.
func (p *Process) Stop(pace time.Duration) {
	p.stopped.Do(func() {
		select {
		case <-p.ended:
			return
		default:
		}
		p.wasStop.Store(true)
		for _, s := range []os.Signal{os.Interrupt, terminate} {
			_ = p.child.Ask(s) // who cannot be asked is killed
			select {
			case <-p.ended:
				return
			case <-time.After(pace):
			}
		}
		p.kill()
	})
	<-p.ended
}

// Wait waits until the program has ended and its stderr is read.
func (p *Process) Wait() (Exit, error) {
	p.done.Wait()
	_ = p.stdin.Close()
	_ = p.stdout.Close()
	err := p.err
	if p.wasStop.Load() {
		err = errors.Join(err, killMarked(p.marker))
	}
	return Exit{Code: p.status.Code, Signal: p.status.Signal, Stopped: p.wasStop.Load(), Stderr: p.errors.Text()}, err
}

// ends are the three streams of one side.
type ends [3]*os.File

// pipes makes the pipes for stdin, stdout and stderr.
func pipes() (ours, theirs ends, err error) {
	for i := range ours {
		r, w, err := os.Pipe()
		if err != nil {
			ours.close()
			theirs.close()
			return ends{}, ends{}, err
		}
		ours[i], theirs[i] = r, w
		if i == 0 {
			ours[i], theirs[i] = w, r
		}
	}
	return ours, theirs, nil
}

func (e ends) close() {
	for _, f := range e {
		if f != nil {
			_ = f.Close() // nothing was written to it
		}
	}
}
