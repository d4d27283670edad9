package fsstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/util/durable"
)

// Seals are stored next to the nodes, one file each, as a line of 64 hexadecimal digits: <dir>/seals/<first
// two>/<hash>.
const sealsDir = "seals"

// sealSize bounds the part of a seal's file that is read.
const sealSize = 2*len(cas.Seal{}) + len("\n")

// Sealed is a node with its seal.
type Sealed struct {
	Hash cas.Hash
	Seal cas.Seal
}

// SealPath returns the path of a node's seal file; h must be valid.
func (s *Store) SealPath(h cas.Hash) string {
	return filepath.Join(s.dir, sealsDir, string(h[:2]), string(h))
}

// Seal returns the stored seal of a node, zero without one. It returns a [*cas.SealError] if the file is
// damaged.
func (s *Store) Seal(h cas.Hash) (cas.Seal, error) {
	if s.Originals() || !h.Valid() {
		return cas.Seal{}, nil
	}
	data, err := readRegular(s.SealPath(h), sealSize)
	var odd *notRegularError
	var big *tooBigError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return cas.Seal{}, nil
	case errors.As(err, &odd), errors.As(err, &big):
		return cas.Seal{}, &cas.SealError{Hash: h, Path: s.SealPath(h)}
	case err != nil:
		return cas.Seal{}, fmt.Errorf("read the seal of %s: %w", h, err)
	}
	seal, err := cas.ParseSeal(strings.TrimSuffix(string(data), "\n"))
	if err != nil || seal.String()+"\n" != string(data) {
		return cas.Seal{}, &cas.SealError{Hash: h, Path: s.SealPath(h)}
	}
	return seal, nil
}

// KeepSeals stores seals durably. An existing seal stays; a torn one is replaced. It returns a
// [*cas.SealError], without writing anything, if a node already has a different seal, and
// [errors.ErrUnsupported] for a store of the original.
func (s *Store) KeepSeals(ctx context.Context, seals ...Sealed) (err error) {
	switch {
	case len(seals) == 0:
		return ctx.Err()
	case s.Originals():
		return fmt.Errorf("store %s: seals: %w: it belongs to the original", s.dir, errors.ErrUnsupported)
	}
	release, err := s.LockShared(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	files := make([]durable.File, 0, len(seals))
	for _, k := range seals {
		kept, err := s.Seal(k.Hash)
		var damaged *cas.SealError
		switch {
		case errors.As(err, &damaged) && s.tornSeal(k):
		case err != nil:
			return err
		case kept == k.Seal:
			continue
		case !kept.IsZero():
			return &cas.SealError{Hash: k.Hash, Want: kept, Got: k.Seal, Path: s.SealPath(k.Hash)}
		}
		files = append(files, durable.File{Path: s.SealPath(k.Hash), Data: []byte(k.Seal.String() + "\n"), Perm: nodePerm})
	}
	if err := durable.WriteAll(s.fs, files, s.flush().mode); err != nil {
		return fmt.Errorf("write seals: %w", err)
	}
	return nil
}

// tornSeal reports whether the file of a seal is a torn write of the same seal.
func (s *Store) tornSeal(k Sealed) bool {
	data, err := readRegular(s.SealPath(k.Hash), sealSize)
	return err == nil && strings.HasPrefix(k.Seal.String()+"\n", strings.TrimRight(string(data), "\x00"))
}

// Seals yields the nodes with a seal file, in order. After an error it continues with what is still readable.
func (s *Store) Seals(ctx context.Context) iter.Seq2[cas.Hash, error] {
	return func(yield func(cas.Hash, error) bool) {
		root := filepath.Join(s.dir, sealsDir)
		shards, err := os.ReadDir(root)
		if errors.Is(err, fs.ErrNotExist) || s.Originals() {
			return
		}
		if err != nil && !yield("", err) {
			return
		}
		for _, shard := range shards {
			if !s.sealsIn(ctx, filepath.Join(root, shard.Name()), yield) {
				return
			}
		}
	}
}

// sealsIn yields the nodes of one directory; false stops.
func (s *Store) sealsIn(ctx context.Context, dir string, yield func(cas.Hash, error) bool) bool {
	if err := ctx.Err(); err != nil {
		yield("", err)
		return false
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !yield("", err) {
		return false
	}
	for _, e := range entries {
		h := cas.Hash(e.Name())
		if h.Valid() && s.SealPath(h) == filepath.Join(dir, e.Name()) && !yield(h, nil) {
			return false
		}
	}
	return true
}

// RemoveSeal removes the seal of a node, if there is one.
func (o *Exclusive) RemoveSeal(h cas.Hash) (removed bool, err error) {
	err = o.store.fs.Remove(o.store.SealPath(h))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Redact atomically and durably replaces the file of a node with a tombstone. It returns the errors of
// [cas.MarshalTombstone].
func (o *Exclusive) Redact(t cas.Tombstone) error {
	data, err := cas.MarshalTombstone(t)
	if err != nil {
		return err
	}
	if err := durable.WriteFile(o.store.fs, o.store.path(t.Hash), data, nodePerm); err != nil {
		return fmt.Errorf("redact node %s: %w", t.Hash, err)
	}
	return nil
}

// Bury durably stores imported tombstones for missing nodes, and returns their hashes. An existing node,
// intact or redacted, stays unchanged. Errors: [errors.ErrUnsupported] for a store of the original; the
// errors of [Store.Commit].
func (s *Store) Bury(ctx context.Context, tombstones ...cas.Tombstone) (buried []cas.Hash, err error) {
	switch {
	case len(tombstones) == 0:
		return nil, ctx.Err()
	case s.Originals():
		return nil, fmt.Errorf("store %s: tombstones: %w: it belongs to the original", s.dir, errors.ErrUnsupported)
	}
	if err := s.make(ctx, tombstones[0].At); err != nil {
		return nil, fmt.Errorf("create store: %w", err)
	}
	release, err := s.LockShared(ctx)
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

// isTaken reports whether a node's file exists. A torn write of the same file, left by a power cut, counts as
// missing.
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

// Compare reports whether a node exists, intact or redacted, as Put would find it. It returns the errors of
// [Store.Put].
func (s *Store) Compare(ctx context.Context, n cas.Node) (there bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	if err := s.format.Hash.Check(n); err != nil {
		return false, err
	}
	return s.exists(n)
}
