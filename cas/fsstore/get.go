package fsstore

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/record"
	"github.com/united-workforce/uwf/protocol"
)

// place is the place of a record.
type place struct {
	source *source
	entry  entry
}

// Get implements [cas.Getter]. It also returns errors of the file system.
func (s *Store) Get(ctx context.Context, h cas.Hash) (n cas.Node, err error) {
	if err := ctx.Err(); err != nil {
		return cas.Node{}, err
	}
	if !h.Valid() {
		return cas.Node{}, fmt.Errorf("%w: %q is not a hash", cas.ErrNotFound, h)
	}
	if s.foreign {
		return s.files.Get(h)
	}
	err = s.try(ctx, func(v *view) error {
		n, _, err = s.resolve(v, h)
		return err
	})
	return n, err
}

// resolve returns a node and its place: the newest record of its hash, unless that is torn or damaged and there
// is an older copy. It returns the errors of [cas.Getter], and the place also with a tombstone and of a damaged
// record.
func (s *Store) resolve(v *view, h cas.Hash) (cas.Node, place, error) {
	var damage error
	var damaged place
	for _, g := range v.sources {
		entries, err := g.find(h.Number())
		if err != nil {
			return cas.Node{}, place{}, readError(h, err)
		}
		for _, e := range entries {
			if groupOf(e.kind) != content {
				continue
			}
			if e.kind == record.NoContent {
				return cas.Node{}, damaged, cmp.Or(damage, notFound(h))
			}
			at := place{g, e}
			n, err := s.node(g, h, e)
			corrupt, ok := errors.AsType[*cas.CorruptError](err)
			if ok && g.isLost(e) {
				continue
			}
			if !ok || e.kind == record.Tombstone && !corrupt.Cut {
				return n, at, err
			}
			if damage == nil {
				damage, damaged = err, at
			}
		}
	}
	return cas.Node{}, damaged, cmp.Or(damage, notFound(h))
}

func notFound(h cas.Hash) error { return fmt.Errorf("%w: %s", cas.ErrNotFound, h) }

func readError(h cas.Hash, err error) error { return fmt.Errorf("read node %s: %w", h, err) }

// node reads a node from a record.
func (s *Store) node(g *source, h cas.Hash, e entry) (n cas.Node, err error) {
	body, err := g.record(e)
	if errors.Is(err, errPack) {
		return n, &cas.CorruptError{Hash: h, Path: g.at(e), Reason: err.Error()}
	}
	if err != nil {
		return n, readError(h, err)
	}
	n, err = s.hash.UnmarshalFile(h, body)
	if corrupt, ok := errors.AsType[*cas.CorruptError](err); ok {
		corrupt.Path, corrupt.Cut = g.at(e), corrupt.Cut || e.kind == record.Tombstone && endsWithZeros(body)
	}
	return n, err
}

// endsWithZeros reports whether a body ends with zeros, as after a power cut before it was flushed.
func endsWithZeros(body []byte) bool {
	const block = 8
	return len(bytes.TrimRight(body, "\x00"))+block <= len(body)
}

// at returns the place of a record for messages.
func (g *source) at(e entry) string {
	if g.first != nil {
		return g.fileOf(e)
	}
	return fmt.Sprintf("%s at byte %d", g.dataPath(), e.at)
}

// Where returns the place of a node's content for messages: the file, and the byte in it or, for a pack, in its
// uncompressed content. It returns the store's directory for a node that doesn't exist.
func (s *Store) Where(h cas.Hash) string {
	where := s.dir
	if s.foreign {
		return s.files.Path(h)
	}
	_ = s.try(context.Background(), func(v *view) error { // then the directory is what is known
		if _, at, _ := s.resolve(v, h); at.source != nil {
			where = at.source.at(at.entry)
		}
		return nil
	})
	return where
}

// Has implements [cas.Store].
func (s *Store) Has(ctx context.Context, h cas.Hash) (there bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	if !h.Valid() {
		return false, nil
	}
	if s.foreign {
		return s.files.Has(h)
	}
	err = s.try(ctx, func(v *view) error {
		at, found, err := v.newestOf(h.Number(), content)
		there = found && at.entry.kind != record.NoContent
		return err
	})
	return there, err
}

// newestOf returns the newest record of a hash in a group.
func (v *view) newestOf(hash uint64, of group) (place, bool, error) {
	for _, g := range v.sources {
		entries, err := g.find(hash)
		if err != nil {
			return place{}, false, err
		}
		for _, e := range entries {
			if groupOf(e.kind) == of {
				return place{g, e}, true, nil
			}
		}
	}
	return place{}, false, nil
}

// All implements [cas.Store]. It can miss nodes that are put concurrently.
func (s *Store) All(ctx context.Context, prefix string) iter.Seq2[cas.Hash, error] {
	if s.foreign {
		return s.files.All(ctx, prefix)
	}
	low, high, ok := hashRange(prefix)
	if !ok {
		return func(func(cas.Hash, error) bool) {}
	}
	return s.hashes(ctx, content, low, high, counts)
}

// Tombstones yields the redacted nodes, in order, except files of version 1 that weren't packed yet.
func (s *Store) Tombstones(ctx context.Context) iter.Seq2[cas.Hash, error] {
	if s.foreign {
		return func(func(cas.Hash, error) bool) {}
	}
	return s.hashes(ctx, content, 0, math.MaxUint64, func(e entry) bool { return e.kind == record.Tombstone })
}

// hashes yields the hashes of which the newest record of a group is wanted, in order. After an error it continues with
// what is still readable.
func (s *Store) hashes(ctx context.Context, of group, low, high uint64, wanted func(entry) bool) iter.Seq2[cas.Hash, error] {
	return func(yield func(cas.Hash, error) bool) {
		found, faults := s.newest(ctx, of, low, high, wanted)
		for _, err := range faults {
			if !yield("", err) {
				return
			}
		}
		for _, hash := range slices.Sorted(maps.Keys(found)) {
			if err := ctx.Err(); err != nil {
				yield("", err)
				return
			}
			if !yield(protocol.HashOf(hash), nil) {
				return
			}
		}
	}
}

// counts reports whether a record doesn't only hide others.
func counts(e entry) bool { return !e.hides() }

// newest returns the newest record of each hash in a group, if it is wanted. After an error it continues with what is
// still readable.
func (s *Store) newest(ctx context.Context, of group, low, high uint64,
	wanted func(entry) bool) (found map[uint64]place, faults []error) {
	err := s.try(ctx, func(v *view) error {
		found, faults = map[uint64]place{}, nil
		for _, g := range slices.Backward(v.sources) { // the oldest first
			all, err := g.entries(byte(low>>56), byte(high>>56))
			if isGone(err) {
				return err
			}
			if err != nil {
				faults = append(faults, err)
			}
			for _, e := range all {
				switch {
				case groupOf(e.kind) != of || e.hash < low || high < e.hash:
				case wanted(e):
					found[e.hash] = place{g, e}
				default:
					delete(found, e.hash)
				}
			}
		}
		return ctx.Err()
	})
	if err != nil {
		faults = append(faults, err)
	}
	return found, faults
}

// hashRange returns the first and the last hash that begin with a prefix.
func hashRange(prefix string) (low, high uint64, ok bool) {
	if len(prefix) > protocol.HashLen {
		return 0, 0, false
	}
	pad := func(with string) cas.Hash {
		return cas.Hash(prefix + strings.Repeat(with, protocol.HashLen-len(prefix)))
	}
	first, last := pad("0"), pad("Z")
	if prefix == "" {
		last = "F" + last[1:]
	}
	return first.Number(), last.Number(), first.Valid() && last.Valid()
}

// InOrder returns the hashes of nodes in the order in which they are stored.
func (s *Store) InOrder(ctx context.Context) (all []cas.Hash, err error) {
	if s.foreign {
		return nil, nil
	}
	err = s.try(ctx, func(v *view) error {
		all = nil
		for _, g := range slices.Backward(v.sources) {
			entries, err := g.entries(0, 255)
			if err != nil {
				return err
			}
			for _, e := range entries {
				if groupOf(e.kind) == content {
					all = append(all, protocol.HashOf(e.hash))
				}
			}
		}
		return ctx.Err()
	})
	return all, err
}

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
// damaged, and not only torn.
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
	body, err := at.source.record(at.entry)
	if err != nil && !errors.Is(err, errPack) {
		return seal, fmt.Errorf("read the seal of %s: %w", h, err)
	}
	if seal, ok = parseSeal(body); !ok && !endsWithZeros(body) { // what a power cut tore was never durable
		return seal, &cas.SealError{Hash: h, Path: at.source.at(at.entry)}
	}
	return seal, nil
}

// KeepSeals stores seals durably. An existing seal stays. It returns a [*cas.SealError], without writing anything, if a node already has a different seal,
// and [errors.ErrUnsupported] for a store of the original.
func (s *Store) KeepSeals(ctx context.Context, all map[cas.Hash]cas.Seal) (err error) {
	switch {
	case len(all) == 0:
		return ctx.Err()
	case s.foreign:
		return fmt.Errorf("store %s: seals: %w: it belongs to the original", s.dir, errors.ErrUnsupported)
	}
	return s.addLocked(ctx, "seals", true, func(v *view) (records []pending, err error) {
		for h, seal := range all {
			kept, err := s.sealOf(v, h)
			switch {
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
	})
}

// Seals yields the nodes with a seal, in order. After an error it continues with what is still readable.
func (s *Store) Seals(ctx context.Context) iter.Seq2[cas.Hash, error] {
	if s.foreign {
		return func(func(cas.Hash, error) bool) {}
	}
	return s.hashes(ctx, seals, 0, math.MaxUint64, counts)
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
