package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/proc"
)

// maxOutput bounds the output of a git command, in bytes: mostly file names.
const maxOutput = 256 << 20

// gitPatience is the timeout of a git command.
const gitPatience = 15 * time.Minute

// grace is the time that git gets to remove its locks before it is killed.
const grace = time.Second

// git runs the git program without environment variables that could redirect it.
type git struct {
	exe    string
	dir    string // working directory
	env    []string
	config [][2]string // overrides all config files
	store  string      // our git directory, if it uses that
	err    error       // reason why no command can run
}

// settings apply to all commands, also in the repositories of submodules.
var settings = [][2]string{
	{"core.fsmonitor", "false"}, {"core.hooksPath", "/dev/null"}, {"core.splitIndex", "false"},
	{"core.logAllRefUpdates", "false"}, {"core.ignoreStat", "false"},
	{"core.untrackedCache", "false"}, {"core.pager", "cat"}, {"core.editor", "false"}, {"commit.gpgSign", "false"},
	{"gc.auto", "0"}, {"maintenance.auto", "false"}, {"submodule.recurse", "false"}, {"diff.ignoreSubmodules", "all"},
	{"core.fsync", "loose-object,reference,pack"}, {"core.fsyncMethod", "fsync"}, {"core.quotePath", "false"},
	{"index.skipHash", "false"}, {"core.safecrlf", "false"}, {"pack.packSizeLimit", "0"},
}

// newGit finds the user's git program, never one in the work tree.
func newGit(environ []string, dir string) git {
	exe, err := proc.LookPath("git", dir, environ)
	if err != nil {
		return git{err: fmt.Errorf("git: %w", err)}
	}
	g := git{exe: exe, dir: dir}
	for _, entry := range proc.OwnPath(environ, dir) { // git looks up the user's filters there
		if !strings.HasPrefix(strings.ToUpper(entry), "GIT_") && !strings.HasPrefix(entry, "LC_ALL=") &&
			!strings.HasPrefix(entry, "LANGUAGE=") {
			g.env = append(g.env, entry)
		}
	}
	g.env = append(g.env, "GIT_NO_REPLACE_OBJECTS=1", "GIT_ALLOW_PROTOCOL=none", "GIT_TERMINAL_PROMPT=0",
		"GIT_OPTIONAL_LOCKS=0",
		"GIT_ATTR_NOSYSTEM=1", "LC_ALL=C", literal,
		"GIT_AUTHOR_NAME=uwf", "GIT_AUTHOR_EMAIL=uwf", "GIT_COMMITTER_NAME=uwf", "GIT_COMMITTER_EMAIL=uwf")
	g.config = settings
	if !hasLFS(environ, dir) { // the user's settings require it, so nothing else would work
		g = g.with([][2]string{{"filter.lfs.clean", ""}, {"filter.lfs.smudge", ""}, {"filter.lfs.process", ""},
			{"filter.lfs.required", "false"}})
	}
	return g
}

const literal = "GIT_LITERAL_PATHSPECS=1"

func hasLFS(environ []string, dir string) bool {
	_, err := proc.LookPath("git-lfs", dir, environ)
	return err == nil
}

// with returns git with additional settings.
func (g git) with(more [][2]string) git {
	g.config = slices.Concat(g.config, more)
	return g
}

// environ returns the environment of a command.
func (g git) environ() []string {
	env := append(slices.Clip(g.env), "GIT_CONFIG_COUNT="+strconv.Itoa(len(g.config)))
	for i, s := range g.config {
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, s[0]), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, s[1]))
	}
	return env
}

// in returns git with a git directory for a work tree; "" if the command needs none.
func (g git) in(dir, root, index string) git {
	g.env = append(slices.Clip(g.env), "GIT_DIR="+dir)
	if root != "" {
		g.dir = root
		g.env = append(g.env, "GIT_WORK_TREE="+root)
	}
	if index != "" {
		g.env = append(g.env, "GIT_INDEX_FILE="+index)
	}
	return g
}

// scratch prepares a temporary index for one command: it removes leftovers of a killed git, including the
// lock.
func scratch(index string) error {
	return errors.Join(os.RemoveAll(index), os.RemoveAll(index+lockSuffix))
}

// of returns git for a spec.
func of(environ []string, s Spec) git {
	g := newGit(environ, s.Root)
	g.store = s.Git
	return g.with(s.Keys).in(s.Git, s.Root, s.Index)
}

// run runs a command and returns its output, even if it fails. Its error is a [*GitError].
func (g git) run(ctx context.Context, stdin []byte, args ...string) ([]byte, error) {
	if g.store != "" && (args[0] == "update-ref" || args[0] == "pack-refs") {
		return g.moveRefs(ctx, stdin, args)
	}
	return g.feed(ctx, bytes.NewReader(stdin), args...)
}

// line is run for a command that prints one line.
func (g git) line(ctx context.Context, args ...string) (string, error) {
	out, err := g.run(ctx, nil, args...)
	return strings.TrimRight(string(out), "\r\n"), err
}

// feed is run for a command with input that isn't in memory.
func (g git) feed(ctx context.Context, stdin io.Reader, args ...string) (out []byte, err error) {
	if g.err != nil {
		return nil, g.err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, gitPatience, errWaits)
	defer cancel()
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	defer time.AfterFunc(moment, func() {
		if pipe := pipeIn(ctx, g.dir); pipe != "" {
			giveUp(pipeError(pipe))
		}
	}).Stop()
	env := g.environ()
	if args[0] == "check-ignore" { // it doesn't support literal paths
		env = slices.DeleteFunc(env, func(entry string) bool { return entry == literal })
	}
	cmd := proc.Command{Path: g.exe, Args: args, Dir: g.dir, Env: env, Session: true, WithParent: true}
	printed, err := proc.Run(ctx, cmd, stdin, maxOutput, grace)
	switch {
	case err != nil:
		return nil, &GitError{Args: args, Stderr: lastLine(printed.Stderr), Err: err}
	case printed.Code != 0:
		err := fmt.Errorf("exit status %d", printed.Code)
		return printed.Stdout, &GitError{Args: args, Stderr: lastLine(printed.Stderr), Status: printed.Code, Err: err}
	case printed.Cut:
		return nil, &GitError{Args: args, Err: errors.New("printed too much")}
	}
	return printed.Stdout, nil
}

// moment is the time after which a git command is slow, or waits for something.
const moment = 3 * time.Second

// pipeError is the path of a pipe for which a git command waits.
type pipeError string

func (e pipeError) Error() string { return "git waits for the pipe " + string(e) }

func (e pipeError) Is(err error) bool { return err == errWaits }

// pipeIn returns the path of a pipe in place of a file that git reads in each directory, such as .gitignore.
func pipeIn(ctx context.Context, dir string) (pipe string) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return nil //nolint:nilerr // git can't read it either
		case d.Type()&fs.ModeNamedPipe != 0 && strings.HasPrefix(d.Name(), ".git"):
			pipe = path
			return fs.SkipAll
		}
		return nil
	})
	return pipe
}

// Exit statuses that mean more than failure.
const (
	exitNo    = 1   // the answer is no
	exitUsage = 129 // unknown option
)

// ended reports whether an error means that git exited with this status.
func ended(err error, status int) bool {
	var failed *GitError
	return errors.As(err, &failed) && failed.Status == status
}

// lastLine returns git's error message: its fatal error with the command that it advises, or else its last line.
func lastLine(stderr []byte) string {
	text := strings.TrimSpace(string(bytes.ToValidUTF8(stderr, []byte("?"))))
	if at := strings.LastIndex("\n"+text, "\nfatal: "); at >= 0 {
		var advice string
		text, advice, _ = strings.Cut(text[at:], "\n")
		if _, command, ok := strings.Cut(advice, "\tgit config "); ok { // to trust another user's repository
			text += "; to allow it: git config " + command
		}
	}
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// fields splits the output of a command with -z.
func fields(out []byte) []string {
	text := strings.TrimSuffix(string(out), "\x00")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\x00")
}

// refsLock is the lock for moving refs in our git directories. While we hold it, git's lock was left by a
// killed git.
const refsLock = "uwf-refs.lock"

// moveRefs runs a git command that moves refs in our git directory.
func (g git) moveRefs(ctx context.Context, stdin []byte, args []string) ([]byte, error) {
	held, err := durable.Lock(ctx, filepath.Join(g.store, refsLock))
	if err != nil {
		return nil, err
	}
	defer func() { _ = held.Unlock() }()
	out, err := g.feed(ctx, bytes.NewReader(stdin), args...)
	if err == nil || ctx.Err() != nil {
		return out, err
	}
	for _, left := range []string{packedLock, packedNew} {
		_ = os.Remove(filepath.Join(g.store, left))
	}
	_ = filepath.WalkDir(filepath.Join(g.store, "refs"), func(path string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == lockSuffix {
			_ = os.Remove(path) // if it still exists, the command reports it
		}
		return nil //nolint:nilerr // what cannot be read has no lock that we could remove
	})
	return g.feed(ctx, bytes.NewReader(stdin), args...)
}

// loosePath returns the path of an unpacked object in a directory of objects.
func loosePath(objects, sum string) string {
	return filepath.Join(objects, sum[:2], sum[2:])
}

// Git locks a ref with a file for a moment. If git is killed, the file remains and prevents other git
// processes from moving the ref.

const (
	lockSuffix = ".lock"
	packedLock = "packed-refs" + lockSuffix // lock for all packed refs
	packedNew  = "packed-refs.new"          // created while holding it
)

// locksOf returns the locks that git takes to move a ref of the user, relative to the git directory.
func (r Repo) locksOf(ctx context.Context, ref string) (locks []string) {
	if ref == "HEAD" {
		if own, err := filepath.Rel(r.Common, r.Dir); err == nil {
			locks = append(locks, filepath.Join(own, ref+lockSuffix))
		}
		branch, err := r.Branch(ctx)
		if err != nil || branch == "" {
			return locks
		}
		ref = "refs/heads/" + branch
	}
	return append(locks, filepath.FromSlash(ref)+lockSuffix)
}

// unlocked waits for locks below a directory to disappear, and removes those that stay unchanged. It reports
// whether there was one.
func unlocked(ctx context.Context, dir string, locks []string) bool {
	root, err := os.OpenRoot(dir) // prevents following links out of it
	if err != nil {
		return false
	}
	defer func() { _ = root.Close() }()
	held := map[string]fs.FileInfo{}
	for _, path := range locks {
		if info, err := root.Lstat(path); err == nil {
			held[path] = info
		}
	}
	if len(held) == 0 {
		return false
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(moment):
	}
	for path, was := range held {
		if info, err := root.Lstat(path); err == nil && os.SameFile(info, was) && info.ModTime().Equal(was.ModTime()) {
			if path == packedLock {
				_ = root.Remove(packedNew)
			}
			_ = root.Remove(path) // if it still exists, the command reports it
		}
	}
	return true
}
