// Package workspace keeps the files of threads: the work trees that they work in, worktrees of
// their own, a snapshot with each step, and what has become of all that.
package workspace

import (
	"context"
	"errors"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/rundir"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/proc"
)

// Keeper keeps the files of threads: the work trees that they work in, a snapshot with each
// step, and the git directories of ours that have them. [Engine.Files] makes one.
type Keeper struct {
	Env   env.Env
	Dirs  home.Dirs
	FS    durable.FS
	Heads heads.Heads

	Hidden func(c protocol.Config, dir string) []string // what agents there may not read; nil: nothing
	Config func(ctx context.Context) (protocol.Config, error)
	Read   cas.Reader
	Warn   func(string)
	RunDir func(thread string) rundir.Dir
	Grace  time.Duration
	Hold   Hold
}

// Hold makes a command one that is held back. end is called when it has ended.
type Hold func(ctx context.Context, cmd proc.Command) (held proc.Command, end func() error, err error)

// start starts a command held back.
func (e Keeper) start(ctx context.Context, cmd proc.Command) (child *proc.Child, end func() error, err error) {
	end = func() error { return nil }
	if e.Hold != nil {
		if cmd, end, err = e.Hold(ctx, cmd); err != nil {
			return nil, nil, err
		}
	}
	if child, err = proc.Start(cmd); err != nil {
		return nil, nil, errors.Join(err, end())
	}
	return child, end, nil
}

// Thread is one whose files are at stake, under its lock.
type Thread struct {
	ID    string
	Head  protocol.Hash
	Ended bool
	Facts heads.Facts
}
