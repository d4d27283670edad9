package tools

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/utilagent/box"
	"github.com/united-workforce/uwf/utilagent/confine"
)

// boxed makes a command one that runs in namespaces, or where there are none, is held back by less.
func (c Commands) boxed(ctx context.Context, w *Workspace, cmd proc.Command) (proc.Command, func() string, error) {
	request, err := c.request(w)
	if err != nil {
		return cmd, nil, err
	}
	inside := cmd
	inside.Env = append(slices.Clip(cmd.Env), "TMPDIR=/tmp", "TMP=/tmp", "TEMP=/tmp")
	held, run, err := request.Prepare(c.Box, inside)
	if err != nil {
		return cmd, nil, err
	}
	var lowered func() string
	held.Box.Else = func(why *proc.BoxError) (instead proc.Command, err error) {
		if err := c.unbox(w, why); err != nil {
			return cmd, err
		}
		if c.Status != nil {
			_ = os.Remove(c.Status.Name()) // nobody writes it then
		}
		instead, lowered, err = c.lower(ctx, w, cmd)
		return instead, err
	}
	return held, func() string {
		if lowered != nil {
			_ = run.Cancel() // what is left of it is removed by the next one
			return lowered()
		}
		return c.ended(run.End(context.WithoutCancel(ctx)))
	}, nil
}

// request is what holds commands back.
func (c Commands) request(w *Workspace) (box.Request, error) {
	tmp, err := w.scratch.tmp()
	r := box.Request{
		Workspace: w.real, Git: w.gitDirs(), Home: c.Home, Off: w.off, Writable: c.Writable, Readable: c.Readable,
		Temporary: tmp, State: c.State, Environ: c.Environ, Keep: append(neededCapabilities(w.real), c.Keep...),
		NoUnixSockets: c.NoUnixSockets, Status: c.Status, Now: c.now, Network: c.Network, Nest: c.Nest,
	}
	if r.Environ == nil {
		r.Environ = c.Env
	}
	return r, err
}

// unbox notes why commands have no namespaces, and says so once.
func (c Commands) unbox(w *Workspace, why error) error {
	if c.mustBox() {
		return fmt.Errorf("the command was not run: it must have namespaces, and cannot: %w", why)
	}
	w.unboxed = why
	if c.Once != nil {
		c.Once(fmt.Sprintf("commands run without namespaces (%v), held by %s%s", why, confine.Describe(), confine.Open(c.NoUnixSockets)))
	}
	return nil
}

// ended tells a person and the model what was done at the end of a command.
func (c Commands) ended(said []string, err error) string {
	if err != nil {
		said = append(said, fmt.Sprintf("left what could not be looked at: %v", err))
	}
	for _, text := range said {
		if c.Warn != nil {
			c.Warn("a command " + text)
		}
	}
	if len(said) == 0 {
		return ""
	}
	return "\n[this command " + strings.Join(said, "; it ") + "]"
}

// Unboxed is why commands had no namespaces; nil: they had.
func (w *Workspace) Unboxed() error { return w.unboxed }
