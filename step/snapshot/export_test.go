package snapshot

import (
	"context"
	"errors"
	"path/filepath"
)

// SeedByCopying is [Repo.Seed] on a file system without hard links.
func (r Repo) SeedByCopying(ctx context.Context, store string) error {
	dirs, err := r.objects(filepath.Dir(store))
	noLinks := func(string, string) error { return errors.ErrUnsupported }
	for _, dir := range dirs {
		err = errors.Join(err, linkObjects(ctx, dir, filepath.Join(store, "objects"), noLinks))
	}
	return err
}
