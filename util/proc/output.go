package proc

import (
	"context"
	"io"
	"os"
	"time"
)

// Output is the output of a program.
type Output struct {
	Stdout, Stderr []byte
	// Cut means that stdout was longer than its limit; Stdout then contains the beginning.
	Cut bool
	Status
}

// maxStderr bounds the part of stderr that is kept, in bytes: its beginning.
const maxStderr = 8 << 10

// Run runs a program, passes it stdin (nil: nothing), and returns its output, with at most the given number
// of bytes of stdout. It ignores the streams of c. When ctx is done, the whole group gets grace to exit.
// Processes left behind by the program don't delay Run longer than that. Run returns an error if the program
// can't be started, or ctx's cause; a nonzero exit status isn't an error.
func Run(ctx context.Context, c Command, stdin io.Reader, most int64, grace time.Duration) (out Output, err error) {
	var ours, theirs [3]*os.File // stdin, stdout, stderr
	closed := func(files []*os.File) {
		for i, f := range files {
			if f != nil {
				_ = f.Close()
			}
			files[i] = nil
		}
	}
	defer closed(ours[:])
	defer closed(theirs[:])
	for i := range ours {
		if i == 0 && stdin == nil {
			continue
		}
		if ours[i], theirs[i], err = os.Pipe(); err != nil {
			return out, err
		}
	}
	ours[0], theirs[0] = theirs[0], ours[0]
	c.Stdin, c.Stdout, c.Stderr = theirs[0], theirs[1], theirs[2]
	child, err := Start(c)
	if err != nil {
		return out, err
	}
	closed(theirs[:]) // the child has its own
	if stdin != nil {
		in := ours[0]
		ours[0] = nil
		go func() { // a program that exits early closes the pipe
			_, _ = io.Copy(in, stdin)
			_ = in.Close()
		}()
	}
	var read [3]chan []byte
	for i, n := range []int64{0, most + 1, maxStderr} {
		if i == 0 {
			continue
		}
		read[i] = make(chan []byte, 1)
		go func(from *os.File) {
			data, _ := io.ReadAll(io.LimitReader(from, n))
			_, _ = io.Copy(io.Discard, from)
			read[i] <- data
		}(ours[i])
	}
	out.Status, err = child.Wait(ctx, grace)
	late := time.AfterFunc(grace, func() { // leftover processes hold them open
		for _, f := range ours[1:] {
			_ = f.SetReadDeadline(time.Unix(1, 0))
		}
	})
	out.Stdout, out.Stderr = <-read[1], <-read[2]
	late.Stop()
	if out.Cut = int64(len(out.Stdout)) > most; out.Cut {
		out.Stdout = out.Stdout[:most]
	}
	return out, err
}
