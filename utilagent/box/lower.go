package box

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/utilagent/box/endcheck"
	"github.com/united-workforce/uwf/utilagent/box/gitconfig"
	"github.com/united-workforce/uwf/utilagent/box/putback"
)

// Lower begins a run of a program without namespaces: what it must not change is kept, and put back at its
// end. r.State must be [SharedState], so that all that run in a repository know of each other.
func (r Request) Lower() (*Run, error) {
	run, _, err := r.begin(func(run *Run, found endcheck.Found, others []*putback.Before) error {
		run.state.Kept = putback.Begin(r.place(found), others)
		return run.save()
	})
	return run, err
}

// place is what is put back in the workspace.
func (r Request) place(found endcheck.Found) putback.Place {
	place := putback.Place{Workspace: r.Workspace, GitDirs: r.gitDirs(), Repositories: found.GitDirs, Obeyed: slices.Clone(r.Obeyed)}
	for _, name := range found.Repositories {
		place.Repositories = append(place.Repositories, filepath.Join(r.Workspace, filepath.FromSlash(name)))
	}
	for _, name := range append(found.Obeyed, r.Off.Pointed(r.Workspace)...) {
		at := filepath.Join(r.Workspace, filepath.FromSlash(name))
		_, err := os.Lstat(at)
		if hides := func(hidden string) bool { return below(hidden, at) || below(at, hidden) }; err == nil && !slices.ContainsFunc(r.Off.Hidden(), hides) {
			place.Obeyed = append(place.Obeyed, at)
		}
	}
	return place
}

// SharedState is the directory for what [Request.Lower] keeps: one for all homes of a user, or where a user
// has no directory to write to, as in some containers, the home's.
func SharedState(d home.Dirs) string {
	if dir := d.SharedGuard(); filepath.IsAbs(dir) && durable.MkdirAll(durable.OS(), dir, 0o700) == nil {
		return dir
	}
	return d.Guard()
}

// RecoverAll is [Recover] of several state directories.
func RecoverAll(ctx context.Context, now func() time.Time, states ...string) (said []string, err error) {
	for _, dir := range states {
		told, failed := Recover(ctx, dir, now)
		said, err = append(said, told...), errors.Join(err, failed)
	}
	return said, err
}

// patience bounds how long a program waits while others look at their repositories.
const patience = 30 * time.Second

// lockState keeps others from beginning: of two that begin at once, one must see the other.
func lockState(dir string) (unlock func(), err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	held, err := durable.Lock(ctx, filepath.Join(dir, lockFile))
	if err != nil {
		return nil, err
	}
	return func() { _ = held.Unlock() }, nil
}

// running returns what is kept for the runs that have not ended, and makes run take their changes for new.
func (r Request) running(run *Run) (kept []*putback.Before, err error) {
	entries, err := os.ReadDir(r.State)
	for _, e := range entries {
		other := &Run{dir: filepath.Join(r.State, e.Name())}
		if !strings.HasPrefix(e.Name(), runPrefix) || other.dir == run.dir {
			continue
		}
		err := other.load()
		if errors.Is(err, os.ErrNotExist) {
			continue // it has ended, or was never begun
		}
		if err != nil {
			return nil, err
		}
		run.check.Since(other.check)
		if other.state.Kept != nil {
			kept = append(kept, other.state.Kept)
		}
	}
	return kept, err
}

// merge takes over what a program may change in a config of git.
func (run *Run) merge(ctx context.Context, config string, base, left []byte) ([]string, error) {
	m := gitconfig.Merging{Config: config, Base: base, Dir: run.state.Workspace, Environ: run.state.Environ}
	return m.Text(ctx, left)
}
