package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/utilagent/confine"
)

// Search says how glob and grep ask git which files there are. That only makes the tools
// faster: they find the same files and lines without git, except for what only git knows
// (files that are tracked although .gitignore names them, and the user's own list of ignored
// files).
//
// A repository is data that a model may have written. So git runs with all settings off that
// would start a program, and only names are taken from it: the files are opened within the
// workspace.
type Search struct {
	Git string // path of git; "": is not asked
	Env []string
	// Exe confines git; see [Commands]. It needs to write nothing.
	Exe    string
	Hidden []string // see confine.Rules
	// Patience is how long to wait for git before the search goes on without it: a pipe in its way
	// would block it for ever. 0: ten seconds.
	Patience time.Duration
}

// FindSearch finds git on the PATH of an environment, outside of the workspace dir.
func FindSearch(environ []string, dir string) Search {
	s := Search{}
	for _, kv := range environ {
		name, _, _ := strings.Cut(kv, "=")
		// In a git hook these would lead git to another repository.
		if !strings.HasPrefix(name, "GIT_") {
			s.Env = append(s.Env, kv)
		}
	}
	s.Git, _ = proc.LookPath("git", dir, environ) // "": there is none
	return s
}

// maxNames bounds what a program may answer, in bytes.
const maxNames = 64 << 20

// errAsk means that a program could not answer. It is never shown: the question
// is then answered without it.
var errAsk = errors.New("no answer")

// ask runs a program and returns the names that it prints, ended by NUL. Exit
// status 1 means that there are none.
func (s Search) ask(ctx context.Context, dir, program string, args ...string) ([]string, error) {
	limited, cancel := context.WithTimeout(ctx, s.patience())
	defer cancel()
	c := proc.Command{
		Path: program, Args: args,
		Env: append(slices.Clip(s.Env), "GIT_OPTIONAL_LOCKS=0", "GIT_NO_LAZY_FETCH=1", "LC_ALL=C.UTF-8"),
	}
	if s.Exe != "" && confine.Level() > 0 {
		bound, err := confine.Command(s.Exe, confine.Rules{Hidden: s.Hidden, Keep: neededCapabilities(dir)}, c)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errAsk, err)
		}
		c = bound
	}
	cmd := exec.CommandContext(limited, c.Path, c.Args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = dir, c.Env, time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errAsk, err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%w: %w", errAsk, err)
	}
	b, readErr := io.ReadAll(io.LimitReader(out, maxNames+1))
	if len(b) > maxNames {
		readErr = errAsk
		_ = cmd.Process.Kill() // or it would wait for a reader
	}
	err = cmd.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return nil, cause
	}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 1 && len(b) == 0 {
		return nil, nil
	}
	if err := errors.Join(readErr, err); err != nil {
		return nil, fmt.Errorf("%w: %w", errAsk, err)
	}
	return lines(b), nil
}

func (s Search) patience() time.Duration {
	if s.Patience == 0 {
		return 10 * time.Second
	}
	return s.Patience
}

func lines(b []byte) []string {
	var names []string
	for name := range bytes.SplitSeq(bytes.TrimSuffix(b, []byte{0}), []byte{0}) {
		if len(name) > 0 {
			names = append(names, string(name))
		}
	}
	return names
}

// gitArgs are the arguments before git's command. The work tree is given, or
// the repository's own settings could name another one.
func gitArgs(top string, rest ...string) []string {
	return append([]string{
		"--no-pager", "--no-optional-locks", "--literal-pathspecs", "--work-tree=" + top,
		"-c", "core.fsmonitor=false", "-c", "core.untrackedCache=false", "-c", "core.hooksPath=/dev/null",
		"-c", "submodule.recurse=false", "-c", "grep.fallbackToNoIndex=false",
	}, rest...)
}
