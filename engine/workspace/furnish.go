package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/files"
	"github.com/united-workforce/uwf/step/files/furnish"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/runfiles"
)

// A worktree has the files that git knows. Other things that a run needs, such as keys and
// libraries, are copied from the original work tree or made by a command of the user's. None
// of it is in a snapshot.

// Bounds of the set-up.
const (
	setupTime  = 30 * time.Minute
	setupGrace = 2 * time.Second
	setupTail  = 4 << 10 // bytes of its output that are told when it fails
)

// furnish makes a new worktree one that can run. dir is where the thread works in it;
// foreign: its files come from elsewhere, so nothing of them runs unasked.
func (e Keeper) furnish(ctx context.Context, from, to files.Repo, id, dir string, foreign bool) error {
	if _, err := furnish.Include(ctx, from, to); err != nil {
		return fmt.Errorf("take along what git ignores: %w", err)
	}
	c, err := e.Config(ctx)
	if err != nil || c.Workspace == nil {
		return err
	}
	if err := furnish.Link(from, to, c.Workspace.Link); err != nil {
		return err
	}
	argv := c.Workspace.Setup
	switch {
	case len(argv) == 0:
		return nil
	case foreign:
		e.Warn(fmt.Sprintf("the files of this worktree come from elsewhere: workspace.setup is not run in it; if you trust them: cd %s && %s", plaintext.Word(dir), plaintext.Literal(argv)))
		return nil
	}
	return e.setUp(ctx, id, dir, from.Root, argv)
}

// setUp runs the command of the user's config, once, and keeps what it prints.
func (e Keeper) setUp(ctx context.Context, id, dir, from string, argv []string) (err error) {
	exe, err := proc.LookPath(argv[0], dir, e.Env.Environ)
	if err != nil {
		return fault.Hinted(fault.New(protocol.CodeFailed, "workspace.setup: %s: %v", plaintext.Word(argv[0]), err), "uwf config get workspace.setup")
	}
	run := e.RunDir(id)
	if err := run.Make(); err != nil {
		return err
	}
	log, err := os.OpenFile(run.File(runfiles.SetupFile), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	ctx, cancel := context.WithTimeout(ctx, setupTime)
	defer cancel()
	environ := []string{"UWF_WORKTREE_FROM=" + from}
	for _, entry := range e.Env.Environ {
		if !strings.HasPrefix(entry, "GIT_") {
			environ = append(environ, entry)
		}
	}
	cmd := proc.Command{Path: exe, Args: argv[1:], Dir: dir, Env: environ, Session: true, WithParent: true, Stdout: log, Stderr: log}
	child, end, err := e.start(ctx, cmd)
	if err != nil {
		return fmt.Errorf("workspace.setup: %w", err)
	}
	status, err := child.Wait(ctx, setupGrace)
	err = errors.Join(err, end())
	if err == nil && status.Code == 0 {
		return nil
	}
	if err == nil {
		err = fmt.Errorf("exit status %d", status.Code)
	}
	message := fmt.Sprintf("the set-up of the worktree failed: %s: %v%s", plaintext.Literal(argv), err, tail(log))
	return fault.Hinted(&protocol.Error{Code: protocol.CodeFailed, Message: message, Err: err},
		"uwf config get workspace.setup", "--workspace in-place works without a worktree")
}

// tail is the end of what the set-up has printed.
func tail(log *os.File) string {
	size, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return ""
	}
	text := make([]byte, min(size, setupTail))
	if _, err := log.ReadAt(text, size-int64(len(text))); err != nil && !errors.Is(err, io.EOF) {
		return ""
	}
	text = bytes.TrimSpace(bytes.ToValidUTF8(text, nil))
	if len(text) == 0 {
		return ""
	}
	return "\n" + plaintext.Escape(string(text))
}
