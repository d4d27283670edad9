package snapshot

import (
	"context"
	"path/filepath"
)

// SeedByCopying is [Repo.Seed] on a file system without hard links.
func (r Repo) SeedByCopying(ctx context.Context, store string) error {
	dirs, err := r.objects(filepath.Dir(store))
	if err != nil {
		return err
	}
	return r.copyObjects(ctx, dirs, store)
}
