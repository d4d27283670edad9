package snapshot

import (
	"context"
	"errors"
	"path/filepath"
)

// SeedByCopying is [Repo.Seed] on a file system without hard links.
func (r Repo) SeedByCopying(ctx context.Context, store string) error {
	return r.SeedWith(ctx, store, func(string, string) error { return errors.ErrUnsupported })
}

// SeedWith is [Repo.Seed] with another function to link a file.
func (r Repo) SeedWith(ctx context.Context, store string, link func(from, to string) error) error {
	dirs, err := r.objects(filepath.Dir(store))
	for _, dir := range dirs {
		err = errors.Join(err, linkObjects(ctx, dir, filepath.Join(store, "objects"), link))
	}
	return err
}

// LastLine is lastLine.
var LastLine = lastLine
