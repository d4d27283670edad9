package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/internal/cwd"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/engine/internal/oscommand"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/snapshot"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/safeopen"
	"github.com/united-workforce/uwf/util/threadid"
)

// BisectOptions are the options of [Keeper.Bisect].
type BisectOptions struct {
	Argv  []string                      // the command, which fails if the fault is present
	Out   *os.File                      // receives the command's output, if not nil
	Tried func(protocol.BisectedStep)   // called after each try, if not nil
	Made  func(worktree, commit string) // called once the worktree exists, if not nil
}

// exitSkip is the exit status for a step that cannot be tested, as in git bisect run.
const exitSkip = 125

// bisection is a bisection in progress.
type bisection struct {
	Keeper
	o     BisectOptions
	steps []protocol.BisectedStep // from the good step to the bad one
	trees []protocol.Tree         // files after each step; "" if not snapshotted
	known map[protocol.Tree]string

	repo snapshot.Repo // repository of the worktree
	spec snapshot.Spec // snapshot settings of the worktree
	id   string        // ID of the worktree, like a thread's
	path string        // root of the worktree
	dir  string        // working directory of the command
}

// Bisect finds the first step after which a command fails, between a good step (or the start of the thread)
// and a bad one. It runs the command in a temporary worktree. Errors are *protocol.Error.
func (e Keeper) Bisect(ctx context.Context, good, bad protocol.Hash, o BisectOptions) (protocol.ThreadBisected, error) {
	b := &bisection{Keeper: e, o: o, known: map[protocol.Tree]string{}}
	out, err := b.run(ctx, good, bad)
	if err != nil {
		return out, fault.Ended(ctx, err)
	}
	return out, nil
}

func (b *bisection) run(ctx context.Context, good, bad protocol.Hash) (out protocol.ThreadBisected, err error) {
	if err := b.load(ctx, good, bad); err != nil {
		return out, err
	}
	lock, err := b.make(ctx)
	if err != nil {
		return out, err
	}
	defer func() {
		err = errors.Join(err, b.remove(context.WithoutCancel(ctx)))
		_ = lock.RemoveAndUnlock()
	}()
	if err := b.ends(ctx); err != nil {
		return out, err
	}
	lo, hi, err := b.search(ctx)
	if err != nil {
		return out, err
	}
	isOpen := func(s protocol.BisectedStep) bool { return s.Result == "" }
	out.First, out.Tried = b.steps[hi], slices.DeleteFunc(slices.Clone(b.steps), isOpen)
	for i := lo + 1; i < hi; i++ {
		out.Unsure = append(out.Unsure, b.steps[i])
	}
	return out, nil
}

// load reads the steps in the range and their files.
func (b *bisection) load(ctx context.Context, good, bad protocol.Hash) error {
	t, err := thread.Open(ctx, b.Read, bad)
	if err != nil {
		return err
	}
	found := good == t.StartHash
	var first thread.Step
	for s, err := range t.Steps(ctx) {
		if err != nil {
			return err
		}
		first = s
		tree := protocol.Tree("")
		if s.Files != nil {
			tree = s.Files.Tree
		}
		b.add(protocol.BisectedStep{Step: s.Hash, Number: s.Index + 1, Role: s.Role}, tree)
		if s.Hash == good {
			found = true
			break
		}
	}
	switch {
	case !found || good == bad:
		return fault.New(protocol.CodeUsage, "step %s does not come before step %s", good, bad).Because("bisect-order")
	case good == t.StartHash && first.Files != nil:
		b.add(protocol.BisectedStep{Step: good}, first.Files.Before)
	case good == t.StartHash:
		b.add(protocol.BisectedStep{Step: good}, "")
	}
	slices.Reverse(b.steps)
	slices.Reverse(b.trees)
	for _, i := range []int{0, len(b.trees) - 1} {
		if b.trees[i] == "" {
			return noFiles(b.steps[i].Step, false)
		}
	}
	return b.find(ctx, t.Last.Root)
}

func (b *bisection) add(s protocol.BisectedStep, tree protocol.Tree) {
	b.steps, b.trees = append(b.steps, s), append(b.trees, tree)
}

// find finds the snapshots, and a work tree of the repository that they were made in. For files from another
// machine, that is the repository of the current directory.
func (b *bisection) find(ctx context.Context, root string) error {
	finder, roots := b.Finder(), []string{root}
	for i, tree := range b.trees {
		store, by, err := finder.Find(ctx, root, tree)
		if err == nil && store == "" && tree != "" {
			err = noFiles(b.steps[i].Step, true)
		}
		if err != nil {
			return err
		}
		if b.trees[i] = by; store != "" {
			roots = append(roots, filepath.Dir(snapshot.Owner(store)))
		}
	}
	for _, root := range append(roots, b.Env.Dir) {
		if repo, err := snapshot.Find(ctx, b.Env, root); err == nil && b.repo.Head == "" {
			b.repo = repo // AddWorktree reports a missing commit
		}
	}
	if b.repo.Root == "" {
		return noFiles(b.steps[len(b.steps)-1].Step, true)
	}
	return nil
}

// make creates the worktree. It belongs to no thread, so it can be swept unless the returned lock is held.
func (b *bisection) make(ctx context.Context) (*durable.Held, error) {
	id, err := threadid.New(b.Env.Now(), b.Env.Rand)
	if err != nil {
		return nil, err
	}
	lock, err := b.LockCreation(ctx, id)
	if err != nil {
		return nil, err
	}
	w, err := b.AddWorktree(ctx, NewTree{ID: id, Repo: b.repo, Dir: b.at(), Base: b.repo.Head, Tree: b.trees[0]})
	if err != nil {
		return nil, errors.Join(err, lock.RemoveAndUnlock())
	}
	b.id = id
	b.path, b.dir = b.Dirs.Worktree(id), w.Root
	if b.o.Made != nil {
		b.o.Made(b.path, b.repo.Head)
	}
	repo, err := snapshot.Find(ctx, b.Env, b.dir)
	if err == nil {
		b.spec, err = b.SpecOf(repo, id)
	}
	if err != nil {
		return nil, errors.Join(err, b.remove(context.WithoutCancel(ctx)), lock.RemoveAndUnlock())
	}
	return lock, nil
}

// at returns the current directory if it is in the repository, else the repository's root.
func (b *bisection) at() string {
	if _, ok := cwd.Below(b.repo.Root, b.Env.Dir); ok {
		return b.Env.Dir
	}
	return b.repo.Root
}

// remove removes the worktree with everything that the command left in it.
func (b *bisection) remove(ctx context.Context) error {
	err := b.repo.RemoveWorktree(ctx, b.path, "", "")
	return errors.Join(err, safeopen.RemoveAll(b.RunDir(b.id).Path))
}

// ends checks that the command fails at the bad step and succeeds at the good one.
func (b *bisection) ends(ctx context.Context) error {
	last := len(b.steps) - 1
	switch result, err := b.try(ctx, 0); {
	case err != nil:
		return err
	case result != protocol.BisectGood:
		return fault.New(protocol.CodeFailed, "the command %[2]s after the good step %[1]s",
			named(b.steps[0]), words(result)).Because("bisect-not-good")
	}
	switch result, err := b.try(ctx, last); {
	case err != nil:
		return err
	case result != protocol.BisectBad:
		return fault.New(protocol.CodeFailed, "the command %[2]s after the bad step %[1]s", named(b.steps[last]),
			words(result))
	}
	return nil
}

func named(s protocol.BisectedStep) string {
	if s.Number == 0 {
		return "0, the start"
	}
	return fmt.Sprintf("%d (%s)", s.Number, cwd.Shown(s.Role))
}

func words(result string) string {
	return map[string]string{protocol.BisectGood: "does not fail", protocol.BisectBad: "fails",
		protocol.BisectSkipped: "is undecided (exit status 125)"}[result]
}

// search halves the range between the last good step and the first bad one, until no step in it can be
// tested.
func (b *bisection) search(ctx context.Context) (lo, hi int, err error) {
	lo, hi = 0, len(b.steps)-1
	for {
		i := b.next(lo, hi)
		if i < 0 {
			return lo, hi, nil
		}
		result, err := b.try(ctx, i)
		if err != nil {
			return lo, hi, err
		}
		switch result {
		case protocol.BisectGood:
			lo = i
		case protocol.BisectBad:
			hi = i
		}
	}
}

// next returns the testable step nearest to the middle, or -1.
func (b *bisection) next(lo, hi int) int {
	middle, best := (lo+hi)/2, -1
	for i := lo + 1; i < hi; i++ {
		if b.trees[i] == "" || b.steps[i].Result != "" {
			continue
		}
		if best < 0 || distance(i, middle) < distance(best, middle) {
			best = i
		}
	}
	return best
}

func distance(a, b int) int { return max(a-b, b-a) }

// try runs the command with the files of a step.
func (b *bisection) try(ctx context.Context, i int) (result string, err error) {
	result, known := b.known[b.trees[i]]
	if !known {
		if err := b.put(ctx, b.trees[i]); err != nil {
			return "", fmt.Errorf("restore the files of step %s to %s: %w", named(b.steps[i]), b.path, err)
		}
		if result, err = b.command(ctx); err != nil {
			return "", err
		}
		b.known[b.trees[i]] = result
	}
	b.steps[i].Result = result
	if b.o.Tried != nil {
		b.o.Tried(b.steps[i])
	}
	return result, nil
}

// put replaces the worktree's files by a snapshot. It removes everything else that the command left, except
// ignored files.
func (b *bisection) put(ctx context.Context, tree protocol.Tree) error {
	b.spec.Tree = ""
	if err := b.fetch(ctx, b.spec.Git, tree); err != nil {
		return err
	}
	if err := snapshot.Reset(ctx, b.Env, b.spec, tree); err != nil {
		return err
	}
	return os.MkdirAll(b.dir, 0o777)
}

// command runs the command once.
func (b *bisection) command(ctx context.Context) (result string, err error) {
	path := b.o.Argv[0]
	switch {
	case filepath.IsAbs(path):
	case strings.ContainsRune(filepath.ToSlash(path), '/'):
		path = filepath.Join(b.dir, path)
	default:
		if path, err = proc.LookPath(path, b.dir, b.Env.Environ); err != nil {
			return "", &protocol.Error{Code: protocol.CodeNotFound, Message: "cannot start the command: " + err.Error(),
				Err: err}
		}
	}
	cmd := proc.Command{Path: path, Args: b.o.Argv[1:], Dir: b.dir, Env: b.Env.Environ, Stdout: b.o.Out,
		Stderr: b.o.Out, WithParent: true}
	child, end, err := b.start(ctx, cmd)
	if err != nil {
		failed := &protocol.Error{Code: protocol.CodeFailed, Message: "cannot start the command: " + err.Error(),
			Err: err}
		if _, ours := cwd.Below(b.dir, path); ours && errors.Is(err, fs.ErrPermission) {
			return "", failed.Because("bisect-not-executable", "program", b.o.Argv[0])
		}
		return "", failed
	}
	status, err := child.Wait(ctx, b.Grace)
	end()
	switch {
	case err != nil:
		return "", err
	case status.Signal != "":
		return "", fault.New(protocol.CodeFailed, "the command was ended by a signal: %s", status.Signal)
	case status.Code == 0:
		return protocol.BisectGood, nil
	case status.Code == exitSkip:
		return protocol.BisectSkipped, nil
	case status.Code == oscommand.NotFound, status.Code == oscommand.NotExecutable:
		return "", fault.New(protocol.CodeFailed, "the command could not run: exit status %d", status.Code)
	}
	return protocol.BisectBad, nil
}
