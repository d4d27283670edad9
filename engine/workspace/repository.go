package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/place"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/files"
	"github.com/united-workforce/uwf/util/durable"
)

// NewRepository makes a repository in an empty directory, for a thread that comes from
// elsewhere and of whose own no clone is here. Its only commit has the files of first, and
// the work tree those of tree; the thread works at a place below its root, or there. If that
// fails the directory is empty again. One that was killed at it left a mark, and is begun
// again.
func (e Keeper) NewRepository(ctx context.Context, id, dir, below string, first, tree protocol.Tree) (w *heads.Workspace, err error) {
	held, err := begin(dir)
	if err != nil {
		return nil, fmt.Errorf("make a repository in %s: %w", place.Shown(dir), err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("make a repository in %s: %w", place.Shown(dir), err), empty(dir, ""))
		} else {
			err = os.Remove(unfinished(dir))
		}
		err = errors.Join(err, held.Unlock())
	}()
	repo, err := files.NewRepo(ctx, e.Env, dir, tree.Function())
	if err != nil {
		return nil, err
	}
	spec, err := e.SpecOf(repo, id)
	if err != nil {
		return nil, err
	}
	if err := repo.Seed(ctx, spec.Git, false); err != nil {
		return nil, err
	}
	for _, state := range []protocol.Tree{first, tree} {
		if err := e.Bring(ctx, spec.Git, state); err != nil {
			return nil, err
		}
	}
	if err := repo.FirstCommit(ctx, spec, first, "uwf thread "+id); err != nil {
		return nil, err
	}
	if err := e.RunDir(id).Make(); err != nil {
		return nil, err
	}
	if err := files.Fill(ctx, e.Env, spec, tree); err != nil {
		return nil, err
	}
	root, err := placeIn(dir, below)
	if err != nil {
		return nil, err
	}
	return e.InPlace(ctx, root)
}

// placeIn is a place below a directory, which is made if it is not there. No link leads out.
func placeIn(dir, below string) (string, error) {
	if below == "" {
		return dir, nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer func() { _ = root.Close() }()
	if err := root.MkdirAll(below, 0o777); err != nil {
		return "", err
	}
	return place.Real(filepath.Join(dir, below))
}

// unfinished is the mark in a repository that is being made; its maker has locked it.
func unfinished(dir string) string { return filepath.Join(dir, ".git", "uwf-unfinished") }

// begin marks a directory that is empty, or that has only what one who was killed has left.
func begin(dir string) (*durable.Held, error) {
	if err := os.Mkdir(filepath.Join(dir, ".git"), 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	held, err := durable.TryLock(unfinished(dir))
	if err != nil {
		return nil, err
	}
	if err := empty(filepath.Join(dir, ".git"), filepath.Base(unfinished(dir))); err != nil {
		return nil, errors.Join(err, held.Unlock())
	}
	return held, nil
}

// empty removes what is in a directory, but for one file.
func empty(dir, but string) error {
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		if entry.Name() != but {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, entry.Name())))
		}
	}
	return err
}
