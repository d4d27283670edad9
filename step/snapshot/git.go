package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/united-workforce/uwf/util/proc"
)

// maxOutput bounds what a git command may print, in bytes: names of files, mostly.
const maxOutput = 256 << 20

// gitPatience is what any git command gets.
const gitPatience = 15 * time.Minute

// grace is what git gets to remove its locks when it is to stop.
const grace = time.Second

// git runs the git program without anything in the caller's environment that could lead it
// elsewhere.
type git struct {
	exe string
	dir string // where it works
	env []string
	// own: it works with a git directory of ours.
	own bool
	err error // why no command can be run
}

// settings go before those of all config files, also in the repositories of submodules.
var settings = [][2]string{
	{"core.fsmonitor", "false"}, {"core.hooksPath", "/dev/null"}, {"core.splitIndex", "false"},
	{"core.logAllRefUpdates", "false"},
	{"core.untrackedCache", "false"}, {"core.pager", "cat"}, {"core.editor", "false"}, {"commit.gpgSign", "false"},
	{"gc.auto", "0"}, {"maintenance.auto", "false"}, {"submodule.recurse", "false"}, {"diff.ignoreSubmodules", "all"},
	{"core.fsync", "loose-object,reference,pack"}, {"core.fsyncMethod", "fsync"}, {"core.quotePath", "false"},
	{"index.skipHash", "false"},
}

// newGit finds the user's own git, never one that lies in the work tree.
func newGit(environ []string, dir string) git {
	exe, err := proc.LookPath("git", dir, environ)
	if err != nil {
		return git{err: fmt.Errorf("git: %w", err)}
	}
	g := git{exe: exe, dir: dir}
	for _, entry := range proc.OwnPath(environ, dir) { // a filter of the user's is looked for there

		if !strings.HasPrefix(strings.ToUpper(entry), "GIT_") && !strings.HasPrefix(entry, "LC_ALL=") &&
			!strings.HasPrefix(entry, "LANGUAGE=") {
			g.env = append(g.env, entry)
		}
	}
	g.env = append(g.env, "GIT_NO_REPLACE_OBJECTS=1", "GIT_ALLOW_PROTOCOL=none", "GIT_TERMINAL_PROMPT=0",
		"GIT_OPTIONAL_LOCKS=0",
		"GIT_ATTR_NOSYSTEM=1", "LC_ALL=C", "GIT_LITERAL_PATHSPECS=1",
		"GIT_AUTHOR_NAME=uwf", "GIT_AUTHOR_EMAIL=uwf", "GIT_COMMITTER_NAME=uwf", "GIT_COMMITTER_EMAIL=uwf")
	g = g.with(settings)
	if !hasLFS(environ, dir) { // it is required by the user's settings, and nothing would work
		g = g.with([][2]string{{"filter.lfs.clean", ""}, {"filter.lfs.smudge", ""}, {"filter.lfs.process", ""},
			{"filter.lfs.required", "false"}})
	}
	return g
}

func hasLFS(environ []string, dir string) bool {
	_, err := proc.LookPath("git-lfs", dir, environ)
	return err == nil
}

// with adds settings.
func (g git) with(more [][2]string) git {
	const count = "GIT_CONFIG_COUNT="
	n, env := 0, make([]string, 0, len(g.env)+2*len(more)+1)
	for _, entry := range g.env {
		if text, ok := strings.CutPrefix(entry, count); ok {
			n, _ = strconv.Atoi(text) // ours
			continue
		}
		env = append(env, entry)
	}
	for i, s := range more {
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", n+i, s[0]), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", n+i, s[1]))
	}
	g.env = append(env, count+strconv.Itoa(n+len(more)))
	return g
}

// in works with a git directory of ours on a work tree. "": the command needs none.
func (g git) in(store, root, index string) git {
	g.env = append(slices.Clip(g.env), "GIT_DIR="+store)
	if root != "" {
		g.dir = root
		g.env = append(g.env, "GIT_WORK_TREE="+root)
	}
	if index != "" {
		g.env = append(g.env, "GIT_INDEX_FILE="+index)
	}
	return g
}

// store is the git directory that it works with.
func (g git) store() (dir string) {
	for _, entry := range g.env {
		if is, ok := strings.CutPrefix(entry, "GIT_DIR="); ok {
			dir = is
		}
	}
	return dir
}

// scratch makes room for a temporary index of one command: it removes what a killed git left
// there, including the lock.
func scratch(index string) error {
	for _, path := range []string{index, index + ".lock"} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// of is git for a spec.
func of(environ []string, s Spec) git {
	g := newGit(environ, s.Root)
	g.own = true
	return g.with(s.Keys).in(s.Git, s.Root, s.Index)
}

// run runs a command to its end and returns what it prints. Error: [*GitError].
func (g git) run(ctx context.Context, stdin []byte, args ...string) ([]byte, error) {
	if g.own && (args[0] == "update-ref" || args[0] == "pack-refs") {
		return g.moveRefs(ctx, stdin, args)
	}
	return g.feed(ctx, bytes.NewReader(stdin), args...)
}

// feed is run for a command whose input is not in memory.
func (g git) feed(ctx context.Context, stdin io.Reader, args ...string) ([]byte, error) {
	if g.err != nil {
		return nil, g.err
	}
	out, err := g.start(ctx, stdin, args)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// line is run for a command that prints one.
func (g git) line(ctx context.Context, args ...string) (string, error) {
	out, err := g.run(ctx, nil, args...)
	return strings.TrimRight(string(out), "\r\n"), err
}

func (g git) start(ctx context.Context, stdin io.Reader, args []string) (out []byte, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, gitPatience, errWaits)
	defer cancel()
	cmd := proc.Command{Path: g.exe, Args: args, Dir: g.dir, Env: g.env, Session: true, WithParent: true}
	printed, err := proc.Run(ctx, cmd, stdin, maxOutput, grace)
	switch {
	case err != nil:
		return nil, &GitError{Args: args, Stderr: lastLine(printed.Stderr), Err: err}
	case printed.Code != 0:
		err := fmt.Errorf("exit status %d", printed.Code)
		return printed.Stdout, &GitError{Args: args, Stderr: lastLine(printed.Stderr), Status: printed.Code, Err: err}
	case printed.Cut:
		return nil, &GitError{Args: args, Err: errors.New("prints too much")}
	}
	return printed.Stdout, nil
}

// The statuses by which git says more than that it has failed.
const (
	saysNo    = 1   // what was asked for is not so
	noSuchUse = 129 // it knows no such option
)

// ended reports whether an error means that git ran and exited with a status.
func ended(err error, status int) bool {
	var failed *GitError
	return errors.As(err, &failed) && failed.Status == status
}

// lastLine is git's complaint: its fatal error, which advice may follow, else its last line.
func lastLine(stderr []byte) string {
	text := strings.TrimSpace(string(bytes.ToValidUTF8(stderr, []byte("?"))))
	if at := strings.LastIndex("\n"+text, "\nfatal: "); at >= 0 {
		text, _, _ = strings.Cut(text[at:], "\n")
	}
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// fields are what a command with -z prints.
func fields(out []byte) []string {
	text := strings.TrimSuffix(string(out), "\x00")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\x00")
}
