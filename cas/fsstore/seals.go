package fsstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/record"
)

// The body of a seal's record is the seal and its CRC-32C.

func sealBody(seal cas.Seal) []byte {
	return binary.BigEndian.AppendUint32(slices.Clone(seal[:]), record.Checksum(seal[:]))
}

// parseSeal parses the body of a seal's record.
func parseSeal(body []byte) (seal cas.Seal, ok bool) {
	if len(body) != len(seal)+4 || !bytes.Equal(sealBody(cas.Seal(body[:len(seal)])), body) {
		return seal, false
	}
	return cas.Seal(body[:len(seal)]), true
}

// Seal returns the stored seal of a node, zero without one. It returns a [*cas.SealError] if its record is
// damaged.
func (s *Store) Seal(h cas.Hash) (seal cas.Seal, err error) {
	if s.foreign || !h.Valid() {
		return cas.Seal{}, nil
	}
	err = s.try(context.Background(), func(v *view) error {
		seal, err = s.sealOf(v, h)
		return err
	})
	return seal, err
}

func (s *Store) sealOf(v *view, h cas.Hash) (seal cas.Seal, err error) {
	at, ok, err := v.newestOf(h.Number(), seals)
	switch {
	case err != nil:
		return seal, fmt.Errorf("read the seal of %s: %w", h, err)
	case !ok, at.entry.kind == record.NoSeal:
		return seal, nil
	}
	body, _, err := at.source.record(at.entry)
	if err != nil && !errors.Is(err, errPack) {
		return seal, fmt.Errorf("read the seal of %s: %w", h, err)
	}
	if seal, ok = parseSeal(body); !ok {
		return seal, &cas.SealError{Hash: h, Path: at.source.at(at.entry)}
	}
	return seal, nil
}

// KeepSeals stores seals durably. An existing seal stays; a damaged one is replaced by the seal itself only if
// it is torn. It returns a [*cas.SealError], without writing anything, if a node already has a different seal,
// and [errors.ErrUnsupported] for a store of the original.
func (s *Store) KeepSeals(ctx context.Context, all map[cas.Hash]cas.Seal) (err error) {
	switch {
	case len(all) == 0:
		return ctx.Err()
	case s.foreign:
		return fmt.Errorf("store %s: seals: %w: it belongs to the original", s.dir, errors.ErrUnsupported)
	}
	release, err := s.LockShared(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	missing := func(v *view) (records []pending, err error) {
		for h, seal := range all {
			kept, err := s.sealOf(v, h)
			var damaged *cas.SealError
			switch {
			case errors.As(err, &damaged) && s.isTornSeal(v, h, seal):
			case err != nil:
				return nil, err
			case kept == seal:
				continue
			case !kept.IsZero():
				return nil, &cas.SealError{Hash: h, Want: kept, Got: seal}
			}
			records = append(records, pending{kind: record.Seal, hash: h.Number(), body: sealBody(seal)})
		}
		return records, nil
	}
	if err := s.add(ctx, true, missing); err != nil {
		return fmt.Errorf("write seals: %w", err)
	}
	return nil
}

// isTornSeal reports whether a damaged seal is a torn write of the same seal.
func (s *Store) isTornSeal(v *view, h cas.Hash, seal cas.Seal) bool {
	at, ok, err := v.newestOf(h.Number(), seals)
	if err != nil || !ok {
		return false
	}
	data, _, err := at.source.record(at.entry)
	return err == nil && bytes.HasPrefix(sealBody(seal), bytes.TrimRight(data, "\x00"))
}

// Seals yields the nodes with a seal, in order. After an error it continues with what is still readable.
func (s *Store) Seals(ctx context.Context) iter.Seq2[cas.Hash, error] {
	if s.foreign {
		return func(func(cas.Hash, error) bool) {}
	}
	return s.hashes(ctx, seals, 0, math.MaxUint64)
}

// SealPlace returns the place of a node's seal for messages.
func (s *Store) SealPlace(h cas.Hash) string {
	where := s.dir
	_ = s.try(context.Background(), func(v *view) error { // then the directory is what is known
		at, ok, err := v.newestOf(h.Number(), seals)
		if ok && err == nil {
			where = at.source.at(at.entry)
		}
		return err
	})
	return where
}
