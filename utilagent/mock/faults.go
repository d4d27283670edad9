package mock

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/internal/runenv"
)

// misbehave does what the script asks for before the reply.
func (p *player) misbehave(ctx context.Context, req *agentkit.Request) error {
	p.crashAt(CrashAtStart)
	if p.step.Deaf {
		signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	}
	if err := p.noise(runenv.Of(ctx).Env); err != nil {
		return err
	}
	if err := p.write(req.Cwd); err != nil {
		return err
	}
	if err := p.grandchild(req, runenv.Of(ctx).Env.Exe); err != nil {
		return err
	}
	if !p.step.Hang {
		return nil
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

func (p *player) noise(e env.Env) error {
	if _, err := io.WriteString(e.Stderr, p.step.Stderr); err != nil {
		return err
	}
	if _, err := io.WriteString(e.Stdout, p.step.Stdout); err != nil {
		return err
	}
	line := []byte(strings.Repeat("noise ", 170) + "\n")
	for left := p.step.StdoutBytes; left > 0; left -= int64(len(line)) {
		if _, err := e.Stdout.Write(line[max(0, int64(len(line))-left):]); err != nil {
			return err
		}
	}
	return nil
}

// crashAt kills this process, as the kernel or a person would, at a point.
func (p *player) crashAt(point Crash) {
	if p.step.Crash != point {
		return
	}
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill() // there is nobody left to tell
	}
	select {} // the signal is on its way
}

// grandchildFlag makes this program a process that only lives for a while.
const grandchildFlag = "--be-grandchild"

// beGrandchild tells for how long this process is to be a grandchild.
func beGrandchild(args []string) (time.Duration, bool) {
	if len(args) != 2 || args[0] != grandchildFlag {
		return 0, false
	}
	d, err := time.ParseDuration(args[1])
	return d, err == nil
}

// grandchild starts a process in our group and leaves it alone.
func (p *player) grandchild(req *agentkit.Request, exe string) error {
	g := p.step.Grandchild
	if g.For == 0 {
		return nil
	}
	cmd := exec.Command(exe, grandchildFlag, g.For.String())
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("grandchild: %w", err)
	}
	if g.PidFile == "" {
		return nil
	}
	path := g.PidFile
	if !filepath.IsAbs(path) {
		path = filepath.Join(req.Cwd, path)
	}
	return durable.WriteFile(durable.OS(), path, []byte(strconv.Itoa(cmd.Process.Pid)), 0o644)
}

// faultyStdout stands between the kit and stdout, where the commit can be seen
// from outside: the kit writes the result line right after it.
type faultyStdout struct {
	out    io.Writer
	player *player
}

// Write implements io.Writer.
func (f *faultyStdout) Write(b []byte) (int, error) {
	if !bytes.HasPrefix(bytes.TrimLeft(b, "\n{\""), []byte("stepHash")) {
		return f.out.Write(b)
	}
	f.player.crashAt(CrashAfterCommit)
	line := b
	if f.player.step.ResultLine != nil {
		line = []byte(*f.player.step.ResultLine)
	}
	if _, err := f.out.Write(line); err != nil {
		return 0, err
	}
	f.player.crashAt(CrashAfterResult)
	return len(b), nil
}
