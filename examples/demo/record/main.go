// Command record runs a command on its own terminal and draws what a person would have seen, both as an
// animation and as a still picture. Both are SVG.
//
//	record -o run.svg -from '^\$ uwf run' -to '^== What' -- go run ./examples/demo
//
// It writes the text of the whole session to stdout. It is used by make pictures. It supports the terminal
// features that uwf's live view uses (screen.go), and requires Linux.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
}

// options contains the flags.
type options struct {
	animation, still string
	from, to, at     string
	columns, rows    int
	command          []string
}

func parse(args []string) (o options, err error) {
	f := flag.NewFlagSet("record", flag.ContinueOnError)
	f.StringVar(&o.animation, "o", "", "`file` for the animation")
	f.StringVar(&o.still, "still", "", "`file` for the picture of one moment")
	f.StringVar(&o.at, "at", "", "the moment: when a line first matches this `regexp`")
	f.StringVar(&o.from, "from", "", "begin with the line that matches this `regexp`")
	f.StringVar(&o.to, "to", "", "end before the line that matches this `regexp`")
	f.IntVar(&o.columns, "columns", 120, "of the terminal; the pictures are as wide as their longest line")
	f.IntVar(&o.rows, "rows", 24, "of the terminal")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if o.command = f.Args(); len(o.command) == 0 {
		return o, errors.New("missing command after --")
	}
	return o, nil
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	s := &screen{columns: o.columns}
	if err := play(ctx, o, s, time.Now); err != nil {
		return err
	}
	if _, err := io.WriteString(os.Stdout, s.text()); err != nil {
		return err
	}
	scene, err := s.scene(o.from, o.to)
	if err != nil {
		return err
	}
	if o.animation != "" {
		if err := os.WriteFile(o.animation, []byte(animate(scene, o.rows)), 0o644); err != nil {
			return err
		}
	}
	if o.still == "" {
		return nil
	}
	at, err := regexp.Compile(o.at)
	if err != nil {
		return err
	}
	moment, ok := scene.when(at)
	if !ok {
		return fmt.Errorf("no line matched %s", o.at)
	}
	return os.WriteFile(o.still, []byte(still(scene, moment, o.rows)), 0o644)
}

// play runs the command and passes its output to the screen.
func play(ctx context.Context, o options, s *screen, now func() time.Time) error {
	terminal, far, err := openTerminal(o.columns, o.rows)
	if err != nil {
		return err
	}
	defer terminal.Close()
	cmd := exec.CommandContext(ctx, o.command[0], o.command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = far, far, far
	cmd.SysProcAttr = ownSession()
	err = cmd.Start()
	_ = far.Close() // the command has its own
	if err != nil {
		return err
	}
	began := now()
	buffer := make([]byte, 64<<10)
	var seen error
	for {
		n, readErr := terminal.Read(buffer)
		if n > 0 && seen == nil {
			seen = s.write(now().Sub(began), buffer[:n])
		}
		if readErr != nil {
			break // all ends are closed, which is a special error on Linux
		}
	}
	return errors.Join(cmd.Wait(), seen)
}
