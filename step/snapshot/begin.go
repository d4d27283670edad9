package snapshot

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/gitindex"
	"github.com/united-workforce/uwf/util/gitobject"
)

// SeedIndex creates a missing index of a thread from the user's index, so that git needn't read all files
// again.
func (r Repo) SeedIndex(s Spec) error {
	if !IsGone(s.Index) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(s.Index), 0o700); err != nil {
		return err
	}
	size := len(sumOf(gitobject.ID(gitobject.File, nil, r.Format))) / 2
	index, err := copyIndex(r.Index, s.Index, func(index []byte) { gitindex.Seal(index, size) })
	if err != nil || IsGone(s.Index) {
		return err // without one, git starts with an empty one
	}
	// Git would ignore changes of files with flags. A sparse checkout needs the flags; git clears the flags of files
	// that exist.
	split, _ := fs.Glob(os.DirFS(r.Dir), "sharedindex.*")
	if _, sparse := setting(r.Keys, "core.sparsecheckout"); sparse && len(split) > 0 {
		return errors.Join(&RefusedError{Dir: r.Index, Reason: "is a split index"}, os.Remove(s.Index))
	} else if sparse {
		return nil
	}
	isPlain := func(e gitindex.Entry, _ []byte) bool { return e.Passed == "" }
	if len(split) > 0 || !gitindex.Each(index, size, isPlain) {
		return os.Remove(s.Index) // git reads all files
	}
	return nil
}

func setting(keys [][2]string, name string) (string, bool) {
	for _, k := range slices.Backward(keys) {
		if k[0] == name {
			return k[1], k[1] != "false"
		}
	}
	return "", false
}

// NoRoomError means that our git directory can't be written: the disk is full or read-only, or a limit
// applies.
type NoRoomError struct {
	Dir string
	Err error
}

func (e *NoRoomError) Error() string { return "no space in " + e.Dir + ": " + e.Err.Error() }
func (e *NoRoomError) Unwrap() error { return e.Err }

// minFree is the free space in bytes above which a disk doesn't count as full.
const minFree = 16 << 20

// room returns an error if the disk is full. It writes, because a limit on the size of files kills git without
// a message.
func room(store string) error {
	temporary, err := durable.OS().WriteTemp(filepath.Join(store, "room"), make([]byte, minFree), 0o600, durable.FullFlush)
	if err != nil {
		return &NoRoomError{Dir: store, Err: err}
	}
	return os.Remove(temporary)
}

// Begin prepares a step: it updates our git directory and takes the snapshot before the step. It updates the spec
// for the next snapshot. Errors: [*NoRoomError], and the errors of [Take].
func Begin(ctx context.Context, e env.Env, r Repo, s *Spec) (taken Taken, err error) {
	if taken, err = beginStep(ctx, e, r, *s); err != nil && ctx.Err() == nil {
		var full *NoRoomError
		if none := room(s.Git); errors.As(none, &full) {
			err = full
		}
	}
	s.Tree = taken.Tree
	return taken, err
}

func beginStep(ctx context.Context, e env.Env, r Repo, s Spec) (taken Taken, err error) {
	known := recall(s)
	if !slices.Equal(known.Out, s.Redacted) { // the index can contain paths redacted since then
		if err := os.RemoveAll(s.Index); err != nil {
			return taken, err
		}
		known = indexNote{}
	}
	if err = errors.Join(r.Seed(ctx, s.Git, IsGone(s.Index)), r.SeedIndex(s)); err != nil {
		return taken, err
	}
	taken, err = take(ctx, e.Environ, s, known)
	// The index might be damaged, or refer to objects that the user has added, or that were in the git directory for
	// the old path of a repository. The user's index is tried first, because git reads all files without one.
	_, sparse := setting(r.Keys, "core.sparsecheckout")
	for try := 1; err != nil && !errors.Is(err, errWaits) && ctx.Err() == nil && (try == 1 || try == 2 && !sparse); try++ {
		if err = errors.Join(os.RemoveAll(s.Index), r.Seed(ctx, s.Git, true)); err == nil && try == 1 {
			err = r.SeedIndex(s)
		}
		if err == nil {
			taken, err = take(ctx, e.Environ, s, indexNote{})
		}
	}
	return taken, err
}

// Resume lets a spec continue from the end of a step's snapshot, if the index is unchanged since then and the
// work tree still belongs to the repository.
func (r Repo) Resume(s *Spec, tree protocol.Tree) bool {
	n := recall(*s)
	if n.Tree != tree || !slices.Equal(n.Out, s.Redacted) || r.check(r.Root) != nil {
		return false
	}
	s.Tree, s.Before = n.Tree, ""
	return true
}
