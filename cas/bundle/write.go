package bundle

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/seal"
)

// Written says what a bundle that was written has.
type Written struct {
	Nodes      int   `json:"nodes"`
	Tombstones int   `json:"tombstones"`
	Bytes      int64 `json:"bytes"`
}

// Write writes a bundle of everything that a manifest leads to. Its memory grows
// with the number of nodes, not with their size. Errors: those of
// [cas.BottomUp], so that what is damaged or invalid is not passed on; a
// [*cas.SealError] if a seal of the manifest does not fit. What was written until
// then is no bundle: its end is missing.
func Write(ctx context.Context, w io.Writer, r cas.Reader, m Manifest) (Written, error) {
	if m.Hash != r.Algorithm() {
		return Written{}, fmt.Errorf("a bundle of %s nodes from a store of %s nodes", m.Hash, r.Algorithm())
	}
	data, err := m.encode()
	if err != nil {
		return Written{}, fmt.Errorf("manifest: %w", err)
	}
	out := &writer{out: bufio.NewWriterSize(w, 256<<10), digest: sha256.New(), kinds: r.Kinds()}
	out.write([]byte(magic + version))
	out.write(binary.BigEndian.AppendUint32(nil, uint32(len(data))))
	out.write(data)
	parsed, err := parseManifest(data) // sorted: the order of its roots is that of the file
	if err != nil {
		return Written{}, fmt.Errorf("manifest: %w", err)
	}
	if err := out.nodes(ctx, r, parsed); err != nil {
		return Written{}, err
	}
	out.end()
	return out.written, errors.Join(out.err, out.out.Flush())
}

// writer writes and digests; its error stays.
type writer struct {
	out     *bufio.Writer
	digest  hash.Hash
	written Written
	kinds   *cas.Kinds
	err     error
}

func (w *writer) write(data []byte) {
	if w.err != nil {
		return
	}
	_, _ = w.digest.Write(data)
	_, w.err = w.out.Write(data)
	w.written.Bytes += int64(len(data))
}

func (w *writer) nodes(ctx context.Context, r cas.Reader, m Manifest) error {
	sealer := seal.New(r, seal.Options{})
	sealed := m.sealed()
	err := cas.BottomUp(ctx, r, m.roots(), cas.BottomUpOptions{Verify: true}, func(v cas.Visited) error {
		if len(sealed) > 0 {
			if err := sealer.Visit(v); err != nil {
				return err
			}
		}
		return w.node(v)
	})
	if err != nil {
		return err
	}
	return compareSeals(sealer, sealed)
}

// compareSeals holds the seals of a manifest against those that the content gives.
func compareSeals(s *seal.Sealer, sealed []Root) error {
	for _, r := range sealed {
		if got := s.Of(r.Hash); got.String() != r.Seal {
			if got.IsZero() {
				return &seal.UnsealedError{Hash: r.Hash}
			}
			want, err := cas.ParseSeal(r.Seal)
			if err != nil {
				return err
			}
			return &cas.SealError{Hash: r.Hash, Want: want, Got: got}
		}
	}
	return nil
}

func (w *writer) node(v cas.Visited) error {
	if w.written.Nodes+w.written.Tombstones == MaxNodes {
		return fmt.Errorf("a bundle holds at most %d nodes", MaxNodes)
	}
	kind, body := byte(kindNode), []byte(nil)
	if v.Tombstone == nil {
		w.written.Nodes++
		if w.kinds.InFoundation(v.Node.Hash) {
			v.Node.Timestamp = 0
		}
		body = cas.MarshalFile(v.Node)
	} else {
		w.written.Tombstones++
		kind = kindTombstone
		var err error
		v.Tombstone.Foreign = false // which is about this store
		if body, err = cas.MarshalTombstone(*v.Tombstone); err != nil {
			return err
		}
	}
	w.frame(kind, len(v.Node.Hash)+len(body))
	w.write([]byte(v.Node.Hash))
	w.write(body)
	return w.err
}

func (w *writer) frame(kind byte, length int) {
	w.write(binary.BigEndian.AppendUint32([]byte{kind}, uint32(length)))
}

func (w *writer) end() {
	w.frame(kindEnd, endSize)
	w.write(binary.BigEndian.AppendUint64(nil, uint64(w.written.Nodes+w.written.Tombstones)))
	w.write(w.digest.Sum(nil))
}
