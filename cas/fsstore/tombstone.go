package fsstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/util/durable"
)

// Redact atomically and durably replaces the file of a node by a tombstone. Errors:
// those of [cas.MarshalTombstone].
func (o *Sole) Redact(t cas.Tombstone) error {
	data, err := cas.MarshalTombstone(t)
	if err != nil {
		return err
	}
	if err := durable.WriteFile(o.store.fs, o.store.path(t.Hash), data, nodePerm); err != nil {
		return fmt.Errorf("redact node %s: %w", t.Hash, err)
	}
	return nil
}

// Bury stores tombstones from elsewhere durably where there is nothing yet, and returns
// their hashes: an existing node, whole or redacted, stays as it is. Errors:
// [errors.ErrUnsupported] for a store of the original's; those of [Store.Commit].
func (s *Store) Bury(ctx context.Context, tombstones ...cas.Tombstone) (buried []cas.Hash, err error) {
	switch {
	case len(tombstones) == 0:
		return nil, ctx.Err()
	case s.Originals():
		return nil, fmt.Errorf("store %s: tombstones: %w: it is one of the original's", s.dir, errors.ErrUnsupported)
	}
	if err := s.make(ctx, tombstones[0].At); err != nil {
		return nil, fmt.Errorf("make store: %w", err)
	}
	release, err := s.Hold(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, release()) }()
	var files []durable.File
	for _, t := range tombstones {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		t.Foreign = true
		f := durable.File{Path: s.path(t.Hash), Perm: nodePerm}
		if f.Data, err = cas.MarshalTombstone(t); err != nil {
			return nil, err
		}
		if f.Present, err = s.isTaken(t.Hash, f.Data); err != nil {
			return nil, err
		}
		if !f.Present {
			buried = append(buried, t.Hash)
		}
		files = append(files, f)
	}
	if err := s.writeFiles(files, s.commitFiles); err != nil {
		return nil, fmt.Errorf("write tombstones: %w", err)
	}
	return buried, s.keepYoung(files)
}

// isTaken reports whether there is a file for a node. A torn write of the same file, left
// by a power cut, counts as missing.
func (s *Store) isTaken(h cas.Hash, file []byte) (bool, error) {
	data, err := s.readFile(h)
	if errors.Is(err, cas.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	part := bytes.TrimRight(data, "\x00")
	return bytes.Equal(data, file) || !bytes.HasPrefix(file, part), nil
}

// Compare reports whether a node exists, whole or redacted, as Put would find it. Errors:
// those of [Store.Put].
func (s *Store) Compare(ctx context.Context, n cas.Node) (there bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	if err := s.format.Hash.Check(n); err != nil {
		return false, err
	}
	return s.isThere(n)
}
