package box

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/gitdir"
	"github.com/united-workforce/uwf/util/gitindex"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/proc/plan"
	"github.com/united-workforce/uwf/util/safeopen"
	"github.com/united-workforce/uwf/utilagent/box/endcheck"
	"github.com/united-workforce/uwf/utilagent/box/gitconfig"
	"github.com/united-workforce/uwf/utilagent/box/putback"
)

// Run is a confined program, from before its start until its cleanup. The state needed for the cleanup is
// kept in a directory, so that another process can do it after a kill. This process and the program's uwf-box
// hold the lock on it.
type Run struct {
	dir    string
	lock   *durable.Held
	state  state
	check  *endcheck.Before
	outlet *outlet
	// planned waits until the program's plan is complete, or failed so that nothing runs.
	planned func() error
	files   []string  // to which git's settings point
	pointed []string  // in the workspace, to which something points that git obeys
	running []gitCopy // of the runs that had not ended when this one began
}

// state is the information needed to clean up after a run.
type state struct {
	Workspace string
	Writable  []string // paths that the user made writable
	Environ   []string // environment for git
	Configs   []gitCopy
	Settled   []string        // configs that the program cannot change
	Kept      *putback.Before // nil if nothing had to be kept
}

// gitCopy is a git config and its copy that the program can write.
type gitCopy struct {
	Config string // as git opens it
	Real   string // Config without links
	Dir    string // identity of the directory of Real at the start
	Copy   string
	Base   []byte // content of Config and Copy at the start
	Born   string // identity of Config at the start
	Perm   fs.FileMode
}

// File names in a run's directory.
const (
	runPrefix  = "run-"
	lockFile   = "lock"
	stateFile  = "state.json"
	checkFile  = "check"
	indexesDir = "indexes"
)

// reserve creates the run's directory in r.State. It holds a lock that other runs take when they begin or end, so that
// their changes are not mistaken for the user's, until unlock.
func (r *Request) reserve() (run *Run, unlock func() error, err error) {
	if err := durable.MkdirAll(durable.OS(), filepath.Join(r.State, indexesDir), 0o700); err != nil {
		return nil, nil, err
	}
	if r.State, err = filepath.EvalSymlinks(r.State); err != nil {
		return nil, nil, err
	}
	if unlock, err = lockState(r.State); err != nil {
		return nil, nil, err
	}
	run = &Run{planned: func() error { return nil }}
	if run.dir, err = os.MkdirTemp(r.State, runPrefix); err == nil {
		run.lock, err = durable.TryLock(filepath.Join(run.dir, lockFile))
	}
	if err != nil {
		return nil, nil, errors.Join(err, unlock())
	}
	return run, unlock, nil
}

// examine examines the workspace of a run that is reserved. It calls keep, which may be nil, with what it found.
func (r Request) examine(run *Run, keep func(endcheck.Found, []*putback.Before) error) (found endcheck.Found, err error) {
	run.state = state{Workspace: r.Workspace, Writable: r.Off.Writable(), Environ: forGit(r.Environ)}
	run.check, err = endcheck.Begin(endcheck.Options{
		Workspace: r.Workspace, GitDirs: r.gitDirs(), Index: filepath.Join(r.State, indexesDir, indexName(r.Workspace)),
		Allowed: allowed(r.Workspace, r.Off.Writable()), Pointed: run.pointed, Outside: append(r.outside(), r.Temporary),
	})
	if err != nil {
		return found, fmt.Errorf("check the workspace: %w", err)
	}
	found = run.check.Found()
	others, err := r.running(run)
	if err != nil {
		return found, fmt.Errorf("restore the state before another command: %w", err)
	}
	if keep != nil {
		err = keep(found, others)
	}
	return found, err
}

// outside returns the writable directories outside the workspace that the user did not list explicitly.
func (r Request) outside() []string {
	return slices.DeleteFunc(slices.Clone(r.Writable), func(dir string) bool {
		return below(r.Workspace, dir) || below(dir, r.Workspace) || slices.Contains(r.Off.Writable(), dir)
	})
}

// forGit returns the variables that git needs. The result is written to a file, so it contains no secrets.
func forGit(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return !slices.Contains([]string{"PATH", "HOME", "XDG_CONFIG_HOME", "TMPDIR", "LANG", "LC_ALL"}, name)
	})
}

// indexName returns the file name of a workspace's directory index.
func indexName(workspace string) string {
	return strings.ReplaceAll(strings.Trim(workspace, "/"), "/", "%")
}

// Lock returns the lock file for uwf-box to inherit: the run lasts until no process holds it.
func (run *Run) Lock() *os.File { return run.lock.File() }

func (run *Run) save() error {
	text, err := json.Marshal(run.state)
	if err != nil {
		return err
	}
	// This must survive a kill, not a power failure, so it is not flushed to disk.
	return errors.Join(os.WriteFile(filepath.Join(run.dir, stateFile), text, 0o600),
		run.check.Save(filepath.Join(run.dir, checkFile))) // last and at once: without it, the run hasn't begun
}

// inside protects the files in the workspace that programs obey, and hides its .env files.
func (b *builder) inside(r Request, found endcheck.Found, pointed []string) {
	may := allowed(r.Workspace, r.Off.Writable())
	for _, name := range append(found.Obeyed, pointed...) {
		if at := filepath.Join(r.Workspace, filepath.FromSlash(name)); !may(at) {
			b.hold(at)
		}
	}
	known := tracked(r.Workspace, found.Secrets)
	for _, name := range found.Secrets {
		at := filepath.Join(r.Workspace, filepath.FromSlash(name))
		if _, named := b.mounts[at]; !named && !slices.Contains(known, name) && !anyBelow(r.Off.Readable(), at) {
			b.add(plan.Mount{Path: at, Kind: plan.Hide, Missing: true})
		}
	}
}

// tracked returns the names that the work tree's repository tracks. Tracked files are not secret to anyone
// who can read the repository, and a commit with their content missing would be wrong.
func tracked(workspace string, names []string) []string {
	git, _, ok := gitdir.Dirs(workspace)
	if len(names) == 0 || !ok {
		return nil
	}
	index, err := safeopen.ReadFile(filepath.Join(git, "index"), gitindex.MaxBytes, safeopen.NoFollow)
	if err != nil {
		return nil
	}
	return gitindex.Tracked(index, names)
}

// allowed returns a function that reports whether the user made a path of the workspace writable, by its name
// or by that of a parent inside the workspace.
func allowed(workspace string, writable []string) func(string) bool {
	return func(path string) bool {
		for _, w := range writable {
			if w != workspace && below(workspace, w) && below(w, path) {
				return true
			}
		}
		return false
	}
}

// Cancel discards a run whose program was not started.
func (run *Run) Cancel() error {
	_ = run.planned() // its error is that of the start
	return run.remove()
}

func (run *Run) remove() error {
	if unlock, err := lockState(filepath.Dir(run.dir)); err == nil { // a run that begins now would take this one for running
		defer func() { _ = unlock() }()
	}
	return run.drop()
}

func (run *Run) drop() error { return errors.Join(os.RemoveAll(run.dir), run.lock.Unlock()) }

// End cleans up after the program has exited: it merges permitted changes to git configs and moves away new
// files that other programs obey. The messages complete a line that starts with the program's name.
func (run *Run) End(ctx context.Context) (messages []string, err error) {
	if run.planned() != nil {
		return nil, run.remove()
	}
	var errs []error
	if run.outlet != nil {
		run.outlet.stop()
		if text := unreached(run.Refused()); text != "" {
			messages = append(messages, text)
		}
	}
	settled := run.state.Settled
	for _, c := range run.state.Configs {
		done, more, err := run.settle(ctx, c)
		messages, errs = append(messages, more...), append(errs, err)
		if done {
			settled = append(settled, c.Config)
		}
	}
	var held func(string) bool
	if kept := run.state.Kept; kept != nil {
		held = kept.Kept
		more, err := kept.End(ctx, allowed(run.state.Workspace, run.state.Writable), run.merge)
		messages, errs = append(messages, more...), append(errs, err)
	}
	changed, err := run.check.End(held, settled...)
	errs = append(errs, err)
	if text := changed.String(); text != "" {
		messages = append(messages, text)
	}
	if err := errors.Join(errs...); err != nil {
		return messages, errors.Join(err, run.lock.Unlock()) // the next run tries again
	}
	return messages, run.remove()
}

// settle merges the changes to a git config, unless its directory was moved. If done, the config contains no other
// changes of the command.
func (run *Run) settle(ctx context.Context, c gitCopy) (done bool, messages []string, err error) {
	root, err := os.OpenRoot(filepath.Dir(c.Real))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil, nil
	}
	if err != nil {
		return false, nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	info, err := root.Stat(".")
	replaced := born(c.Config) != c.Born
	if err != nil || safeopen.Identity(info) != c.Dir || replaced && c.Real != c.Config {
		return false, nil, err
	}
	m := gitconfig.Merging{
		Root: root, Name: filepath.Base(c.Real), Copy: c.Copy, Base: c.Base, Dir: run.state.Workspace, Environ: run.state.Environ,
	}
	if replaced {
		if info.Mode().Perm()&0o700 != 0o700 {
			_ = root.Chmod(".", info.Mode().Perm()|0o700) // the command removed permissions
		}
		if messages, err = m.Restore(ctx, c.Perm); err != nil {
			return false, messages, err
		}
	}
	more, err := gitconfig.Merge(ctx, m)
	return true, append(messages, more...), err
}

// Recover cleans up runs in the state directories whose processes were killed.
func Recover(ctx context.Context, states ...string) (messages []string, err error) {
	var errs []error
	for _, dir := range states {
		entries, err := os.ReadDir(dir)
		if !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), runPrefix) {
				more, err := recoverRun(ctx, filepath.Join(dir, e.Name()))
				messages, errs = append(messages, more...), append(errs, err)
			}
		}
	}
	return messages, errors.Join(errs...)
}

func recoverRun(ctx context.Context, dir string) ([]string, error) {
	unlock, err := lockState(filepath.Dir(dir)) // a run creates its directory before it locks it
	if err != nil {
		return nil, err
	}
	lock, err := durable.TryLock(filepath.Join(dir, lockFile))
	_ = unlock()
	if errors.Is(err, durable.ErrLocked) || errors.Is(err, os.ErrNotExist) {
		return nil, nil // it is running, or another process is cleaning up
	}
	if err != nil {
		return nil, err
	}
	run := &Run{dir: dir, lock: lock, planned: func() error { return nil }}
	err = run.load()
	if errors.Is(err, os.ErrNotExist) { // it had not begun
		return nil, run.remove()
	}
	if err != nil {
		return nil, errors.Join(err, lock.Unlock())
	}
	return run.End(ctx)
}

// load reads what save wrote.
func (run *Run) load() error {
	var text []byte
	_, err := os.Lstat(filepath.Join(run.dir, checkFile))
	if err == nil {
		text, err = os.ReadFile(filepath.Join(run.dir, stateFile))
	}
	if err == nil {
		err = json.Unmarshal(text, &run.state)
	}
	if err == nil {
		run.check, err = endcheck.Load(filepath.Join(run.dir, checkFile), allowed(run.state.Workspace, run.state.Writable))
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) { // after a power failure, or written by another release
		err = fmt.Errorf("check what a killed program left in %s, and then delete %s, which is unreadable: %w",
			plaintext.Line(cmp.Or(run.state.Workspace, "the workspace")), plaintext.Word(run.dir), err)
	}
	return err
}

// Lower begins a run without namespaces: protected files are saved, and restored when the run ends. r.State
// must be [SharedState], so that all runs in a repository see each other.
func (r Request) Lower() (*Run, error) {
	run, unlock, err := r.reserve()
	if err != nil {
		return nil, err
	}
	run.files, run.pointed = r.pointed()
	_, err = r.examine(run, func(found endcheck.Found, others []*putback.Before) error {
		if run.state.Kept, err = putback.Begin(r.place(found), others); err != nil {
			return err
		}
		return run.save()
	})
	if err != nil {
		err = errors.Join(err, run.drop())
	}
	return run, errors.Join(err, unlock())
}

// place returns the paths to save and restore.
func (r Request) place(found endcheck.Found) putback.Place {
	place := putback.Place{Workspace: r.Workspace, GitDirs: r.gitDirs(), Repositories: found.GitDirs, Obeyed: slices.Clone(r.Obeyed)}
	for _, name := range found.Repositories {
		place.Repositories = append(place.Repositories, filepath.Join(r.Workspace, filepath.FromSlash(name)))
	}
	_, pointed := r.Off.Pointed(r.Workspace)
	for _, name := range append(found.Obeyed, pointed...) {
		at := filepath.Join(r.Workspace, filepath.FromSlash(name))
		_, err := os.Lstat(at)
		if hides := func(hidden string) bool { return below(hidden, at) || below(at, hidden) }; err == nil && !slices.ContainsFunc(r.Off.Hidden(), hides) {
			place.Obeyed = append(place.Obeyed, at)
		}
	}
	return place
}

// SharedState returns the state directory for [Request.Lower]. It is shared by all uwf homes of a user. Where
// the user has no writable directory, as in some containers, it is inside the home.
func SharedState(d home.Dirs) string {
	if dir := d.SharedGuard(); filepath.IsAbs(dir) && durable.MkdirAll(durable.OS(), dir, 0o700) == nil {
		return dir
	}
	return d.Guard()
}

// patience bounds how long a run waits for others that are examining their repositories.
const patience = 30 * time.Second

// lockState serializes the start of runs: of two that start together, one must see the other.
func lockState(dir string) (unlock func() error, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	held, err := durable.Lock(ctx, filepath.Join(dir, lockFile))
	if err != nil {
		return nil, err
	}
	return held.Unlock, nil
}

// running returns the saved state of runs that have not ended, and makes run treat their changes as new.
func (r Request) running(run *Run) (kept []*putback.Before, err error) {
	entries, err := os.ReadDir(r.State)
	for _, e := range entries {
		other := &Run{dir: filepath.Join(r.State, e.Name())}
		if !strings.HasPrefix(e.Name(), runPrefix) || other.dir == run.dir {
			continue
		}
		err := other.load()
		if errors.Is(err, os.ErrNotExist) {
			continue // it has ended, or never began
		}
		if err != nil {
			return nil, err
		}
		run.check.Since(other.check)
		run.running = append(run.running, other.state.Configs...)
		if other.state.Kept != nil {
			kept = append(kept, other.state.Kept)
		}
	}
	return kept, err
}

// merge applies the permitted changes to a git config.
func (run *Run) merge(ctx context.Context, dir *os.Root, base, left []byte) ([]string, error) {
	m := gitconfig.Merging{Root: dir, Name: "config", Base: base, Dir: run.state.Workspace, Environ: run.state.Environ}
	return m.Text(ctx, left)
}
