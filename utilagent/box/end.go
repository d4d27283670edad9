package box

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/proc/plan"
	"github.com/united-workforce/uwf/util/safeopen"
	"github.com/united-workforce/uwf/util/worktree"
	"github.com/united-workforce/uwf/utilagent/box/endcheck"
	"github.com/united-workforce/uwf/utilagent/box/gitconfig"
	"github.com/united-workforce/uwf/utilagent/box/gitindex"
	"github.com/united-workforce/uwf/utilagent/box/putback"
)

// Run is a program that is held back, from before its start to after its end. What is to be done
// then is kept in a directory, for whoever comes after a kill; its lock is held by this process and
// by the program's uwf-box.
type Run struct {
	dir    string
	lock   *durable.Held
	state  state
	check  *endcheck.Before
	outlet *outlet
}

// state is what the end of a run needs.
type state struct {
	Workspace string
	Writable  []string // by a person's leave
	Environ   []string // with which git is asked
	Configs   []gitCopy
	Kept      *putback.Before // nil: nothing had to be kept
}

// gitCopy is a config of git and the copy that the program may write.
type gitCopy struct {
	Config, Copy string
	Base         []byte // of both, at the start
}

// The names in a run's directory.
const (
	runPrefix  = "run-"
	lockFile   = "lock"
	stateFile  = "state.json"
	checkFile  = "check"
	asideDir   = "aside" // what was moved away
	indexesDir = "indexes"
)

// begin looks at the workspace, and makes the run's directory in r.State. Whoever begins or ends meanwhile
// waits, so that what another run has made is not taken for the user's. keep is called then; it may be nil.
func (r Request) begin(keep func(*Run, endcheck.Found, []*putback.Before) error) (*Run, endcheck.Found, error) {
	var none endcheck.Found
	if err := durable.MkdirAll(durable.OS(), filepath.Join(r.State, indexesDir), 0o700); err != nil {
		return nil, none, err
	}
	var err error
	if r.State, err = filepath.EvalSymlinks(r.State); err != nil {
		return nil, none, err
	}
	unlock, err := lockState(r.State)
	if err != nil {
		return nil, none, err
	}
	defer unlock()
	dir, err := os.MkdirTemp(r.State, runPrefix)
	if err != nil {
		return nil, none, err
	}
	run := &Run{dir: dir}
	if run.lock, err = durable.TryLock(filepath.Join(dir, lockFile)); err != nil {
		return nil, none, err
	}
	run.state = state{Workspace: r.Workspace, Writable: r.Off.Writable(), Environ: r.Environ}
	run.check, err = endcheck.Begin(endcheck.Options{
		Workspace: r.Workspace, GitDirs: r.gitDirs(), Index: filepath.Join(r.State, indexesDir, indexName(r.Workspace)),
		Allowed: allowed(r.Workspace, r.Off.Writable()), Pointed: r.pointed(), Outside: append(r.outside(), r.Temporary),
	})
	if err != nil {
		return nil, none, errors.Join(fmt.Errorf("look at the workspace: %w", err), run.drop())
	}
	found := run.check.Found()
	others, err := r.running(run)
	if err != nil {
		return nil, none, errors.Join(fmt.Errorf("what was there before another command: %w", err), run.drop())
	}
	if keep != nil {
		if err := keep(run, found, others); err != nil {
			return nil, none, errors.Join(err, run.drop())
		}
	}
	return run, found, nil
}

// outside are the directories outside of the workspace that nobody has allowed by name to be written.
func (r Request) outside() []string {
	return slices.DeleteFunc(slices.Clone(r.Writable), func(dir string) bool {
		return below(r.Workspace, dir) || below(dir, r.Workspace) || slices.Contains(r.Off.Writable(), dir)
	})
}

// indexName is that of the list of a workspace's directories.
func indexName(workspace string) string {
	return strings.ReplaceAll(strings.Trim(workspace, "/"), "/", "%")
}

// Lock is for the program's uwf-box to inherit: the run lasts until nobody holds it.
func (run *Run) Lock() *os.File { return run.lock.File() }

func (run *Run) save() error {
	text, err := json.Marshal(run.state)
	if err != nil {
		return err
	}
	file := durable.File{Path: filepath.Join(run.dir, stateFile), Data: text, Perm: 0o600}
	// It is for a kill, not for a power cut, so that nobody waits for the disk.
	return errors.Join(run.check.Save(filepath.Join(run.dir, checkFile)), durable.WriteAll(durable.OS(), []durable.File{file}, durable.None))
}

// inside holds what programs obey in the workspace, and hides its keys.
func (b *builder) inside(r Request, found endcheck.Found) {
	may := allowed(r.Workspace, r.Off.Writable())
	for _, name := range append(found.Obeyed, r.pointed()...) {
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

// tracked are those of some files of a work tree that its repository has: they are no secrets to who
// can read it, and a commit without their content would be wrong.
func tracked(workspace string, names []string) []string {
	git, _, ok := worktree.Dirs(workspace)
	if len(names) == 0 || !ok {
		return nil
	}
	index, err := safeopen.ReadFile(filepath.Join(git, "index"), gitindex.MaxBytes, safeopen.NoFollow)
	if err != nil {
		return nil
	}
	return gitindex.Tracked(index, names)
}

// allowed tells which paths of a workspace a person has allowed to write by name, or by that of
// something above them in the workspace.
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

// Cancel forgets a run whose program was not started.
func (run *Run) Cancel() error { return run.remove() }

func (run *Run) remove() error {
	if unlock, err := lockState(filepath.Dir(run.dir)); err == nil { // else who begins now takes it for running
		defer unlock()
	}
	return run.drop()
}

func (run *Run) drop() error { return errors.Join(os.RemoveAll(run.dir), run.lock.Unlock()) }

// End does what is left when the program has ended: what it has told git is taken over as far as it
// may, and what it has made that others obey is moved away. said is for a person, in lines that
// follow the name of the program; "": nothing.
func (run *Run) End(ctx context.Context) (said []string, err error) {
	var errs []error
	if run.outlet != nil {
		run.outlet.stop()
		if text := unreached(run.Refused()); text != "" {
			said = append(said, text)
		}
	}
	for _, c := range run.state.Configs {
		told, err := gitconfig.Merge(ctx, gitconfig.Merging{
			Config: c.Config, Copy: c.Copy, Base: c.Base, Dir: run.state.Workspace, Environ: run.state.Environ,
		})
		said, errs = append(said, told...), append(errs, err)
	}
	var held func(string) bool
	if kept := run.state.Kept; kept != nil {
		held = kept.Kept
		told, err := kept.End(ctx, allowed(run.state.Workspace, run.state.Writable), run.merge)
		said, errs = append(said, told...), append(errs, err)
	}
	aside := filepath.Join(run.dir, asideDir)
	if err := os.Mkdir(aside, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		errs = append(errs, err)
	}
	changed, err := run.check.End(aside, held)
	errs = append(errs, err)
	if text := changed.String(); text != "" {
		said = append(said, text)
	}
	if err := errors.Join(errs...); err != nil {
		return said, errors.Join(err, run.lock.Unlock()) // the next one tries again
	}
	if entries, err := os.ReadDir(aside); err == nil && len(entries) > 0 {
		if unlock, err := lockState(filepath.Dir(run.dir)); err == nil { // as in remove
			defer unlock()
		}
		for _, name := range []string{stateFile, checkFile} {
			errs = append(errs, os.Remove(filepath.Join(run.dir, name)))
		}
		return said, errors.Join(append(errs, run.lock.Unlock())...)
	}
	return said, run.remove()
}

// keptAside is how long what was moved away is kept.
const keptAside = 30 * 24 * time.Hour

// Recover ends the runs in a state directory whose processes were killed.
func Recover(ctx context.Context, dir string, now func() time.Time) (said []string, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	errs := []error{err}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), runPrefix) {
			continue
		}
		told, err := recoverRun(ctx, filepath.Join(dir, e.Name()), now)
		said, errs = append(said, told...), append(errs, err)
	}
	return said, errors.Join(errs...)
}

func recoverRun(ctx context.Context, dir string, now func() time.Time) ([]string, error) {
	lock, err := durable.TryLock(filepath.Join(dir, lockFile))
	if errors.Is(err, durable.ErrLocked) || errors.Is(err, os.ErrNotExist) {
		return nil, nil // it runs, or somebody else ends it
	}
	if err != nil {
		return nil, err
	}
	run := &Run{dir: dir, lock: lock}
	err = run.load()
	if errors.Is(err, os.ErrNotExist) { // it had not begun, or something was moved away
		info, err := os.Stat(dir)
		if _, moved := os.Lstat(filepath.Join(dir, asideDir)); moved == nil && err == nil && now().Sub(info.ModTime()) < keptAside {
			return nil, lock.Unlock()
		}
		return nil, run.remove()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("what a killed program has left in %s: %w", dir, err), lock.Unlock())
	}
	return run.End(ctx)
}

// load reads what save has written.
func (run *Run) load() error {
	text, err := os.ReadFile(filepath.Join(run.dir, stateFile))
	if err == nil {
		err = json.Unmarshal(text, &run.state)
	}
	if err == nil {
		run.check, err = endcheck.Load(filepath.Join(run.dir, checkFile), allowed(run.state.Workspace, run.state.Writable))
	}
	return err
}
