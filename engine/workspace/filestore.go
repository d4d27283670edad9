package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"time"

	"github.com/united-workforce/uwf/cas/bundle"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/files"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/threadid"
)

// What keeps the files of steps lies beside the store of nodes: it is collected and
// checked with that.

// CollectedFiles says what was collected of the files of threads.
type CollectedFiles struct {
	Repositories int   `json:"repositories"`
	Refs         int   `json:"refs"`       // of threads that are gone; what would be, in a dry run
	Freed        int64 `json:"freedBytes"` // less than 0: what was packed takes more
	// Removed counts the git directories of ours whose repository is gone, and that had
	// nothing that a thread needs.
	Removed int `json:"removed,omitempty"`
	// Worktrees counts those that commands were killed over, and that no thread has ever had.
	Worktrees int `json:"worktrees,omitempty"`
	// Failed lists the git directories of uwf that could not be collected, with the reason.
	Failed []string `json:"failed,omitempty"`
}

// CollectFiles removes the kept files of threads that are no longer in any of these homes, and
// packs the rest. alone runs while nobody makes a thread. A directory that cannot be collected does
// not stop the others.
func (e Keeper) CollectFiles(ctx context.Context, homes []string, dry bool, alone func(func() error) error) (CollectedFiles, error) {
	var done CollectedFiles
	if !dry {
		swept, err := e.Sweep(ctx)
		if done.Worktrees = len(swept); err != nil {
			return done, err
		}
	}
	s := &Stores{Keeper: e}
	all, err := s.All(ctx)
	if err != nil || len(all) == 0 {
		return done, err
	}
	named, err := e.namedTrees(ctx, homes)
	if err != nil {
		return done, err
	}
	for _, store := range all {
		living := map[string]bool{}
		if err := e.living(ctx, homes, living); err != nil {
			return done, err
		}
		needs := files.Needs{Trees: named, Gone: func(id string) bool {
			at, err := threadid.Time(id)
			return err == nil && !living[id] && e.Env.Now().Sub(at) > aDay
		}}
		c, err := files.Collect(ctx, e.Env, store, s.Common[store], needs, dry, func(remove func() error) error {
			return alone(func() error {
				if err := e.living(ctx, homes, living); err != nil {
					return err
				}
				return remove()
			})
		})
		if err == nil && !dry && s.Common[store] != "" && isGone(s.Common[store]) && c.Kept == 0 {
			done.Removed++
			c.After = 0
			err = os.RemoveAll(store)
		}
		if ctx.Err() != nil {
			return done, ctx.Err()
		}
		if err != nil {
			of := ""
			if refs, _ := files.RefsOf(ctx, e.Env, store, slices.Sorted(maps.Keys(living))); len(refs) > 0 {
				of = ", which keeps files of thread " + path.Base(refs[0])
			}
			done.Failed = append(done.Failed, fmt.Sprintf("collect in %s%s: %v", store, of, err))
			continue
		}
		done.Repositories++
		done.Refs += c.Refs
		done.Freed += c.Before - c.After
	}
	return done, nil
}

// aDay is how long files that look like a thread's may still belong to a running command.
const aDay = 24 * time.Hour

// living adds the threads of some homes.
func (e Keeper) living(ctx context.Context, homes []string, ids map[string]bool) error {
	for _, home := range homes {
		standings, err := heads.Standings(ctx, fileheads.Open(home, durable.OS()))
		if err != nil {
			return err // a line that cannot be read may be of any thread
		}
		for id := range standings {
			ids[id] = true
		}
	}
	return nil
}

// namedTrees are the states of the files that the steps of some homes name, those that
// were undone too.
func (e Keeper) namedTrees(ctx context.Context, homes []string) ([]protocol.Tree, error) {
	named, seen := map[protocol.Tree]bool{}, map[protocol.Hash]bool{}
	for _, home := range homes {
		x := fileheads.Open(home, durable.OS())
		standings, err := heads.Standings(ctx, x)
		if err != nil {
			return nil, err
		}
		facts, err := x.AllFacts(ctx)
		if err != nil {
			return nil, err
		}
		for id, at := range standings {
			for _, head := range append([]protocol.Hash{at.Head}, facts[id].Undone...) {
				err := e.StepsWithFiles(ctx, head, seen, func(_ protocol.Hash, s protocol.Step) {
					named[s.Files.Tree], named[s.Files.Before] = true, true
				})
				if err != nil {
					return nil, fmt.Errorf("thread %s: %w", id, err)
				}
			}
		}
	}
	trees := make([]protocol.Tree, 0, len(named))
	for tree := range named {
		if tree != "" {
			trees = append(trees, tree)
		}
	}
	slices.Sort(trees)
	return trees, nil
}

// StepsWithFiles calls found for the steps of a chain that name files, the newest first,
// as far as they were not seen before.
func (e Keeper) StepsWithFiles(ctx context.Context, head protocol.Hash, seen map[protocol.Hash]bool, found func(protocol.Hash, protocol.Step)) error {
	t, err := thread.Open(ctx, e.Read, head)
	if err != nil {
		return err
	}
	for s, err := range t.Steps(ctx) {
		if err != nil || seen[s.Hash] {
			return err
		}
		if seen[s.Hash] = true; s.Files != nil {
			found(s.Hash, s.Step)
		}
	}
	return nil
}

// FileFault is a step whose files are not what it says.
type FileFault struct {
	Thread string
	Step   protocol.Hash
	Tree   protocol.Tree
	Store  string // the git directory of ours; "": they are in none
	// Err says what is wrong with them; nil: they are not on this machine.
	Err error
}

// CheckFiles reads the files of every step that names some, and tells what is missing or
// damaged; n is how many states there are.
func (e Keeper) CheckFiles(ctx context.Context, wrong func(FileFault)) (n int, err error) {
	standings, _ := heads.Standings(ctx, e.Heads) // a line that cannot be read is told by fsck
	s := &Stores{Keeper: e}
	checks := map[string]*bundle.Verifier{}
	var readers []*files.Objects
	defer func() {
		for _, r := range readers {
			_ = r.Close()
		}
	}()
	verified, seen := map[protocol.Tree]error{}, map[protocol.Hash]bool{}
	verify := func(root string, tree protocol.Tree) (store string, err error) {
		if store, err = s.With(ctx, root, tree); err != nil || store == "" {
			return store, err
		}
		if checks[store] == nil {
			r, err := files.OpenObjects(e.Env, []string{store})
			if err != nil {
				return store, err
			}
			readers = append(readers, r)
			checks[store] = bundle.NewVerifier(ctx, r)
		}
		if _, known := verified[tree]; !known {
			verified[tree] = checks[store].Tree(files.Instead(ctx, e.Env, store, tree))
		}
		return store, nil
	}
	for id, at := range standings {
		var failed error
		err := e.StepsWithFiles(ctx, at.Head, seen, func(h protocol.Hash, step protocol.Step) {
			for _, tree := range []protocol.Tree{step.Files.Before, step.Files.Tree} {
				if tree == "" || failed != nil {
					continue
				}
				store, err := verify(step.Root, tree)
				failed = err
				if err == nil && (store == "" || verified[tree] != nil) {
					wrong(FileFault{Thread: id, Step: h, Tree: tree, Store: store, Err: verified[tree]})
				}
			}
		})
		if failed != nil || ctx.Err() != nil {
			return len(verified), errors.Join(failed, ctx.Err())
		}
		_ = err // of a chain that is damaged: fsck says so
	}
	return len(verified), nil
}

// isGone reports whether there is nothing at a path.
func isGone(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}
