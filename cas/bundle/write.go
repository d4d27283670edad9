package bundle

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/seal"
	"github.com/united-workforce/uwf/protocol"
)

// Written says what a bundle that was written has.
type Written struct {
	Nodes      int   `json:"nodes"`
	Tombstones int   `json:"tombstones"`
	Trees      int   `json:"trees,omitempty"`   // states of the files
	Objects    int   `json:"objects,omitempty"` // files and directories of those
	Bytes      int64 `json:"bytes"`             // before they are compressed, if they are
	// Links are some that lead out of the work tree: an import wants to be told to take
	// them.
	Links []string `json:"links,omitempty"`
}

// Objects has what git trees lead to.
type Objects interface {
	// Object returns the content of a file or of a directory.
	Object(ctx context.Context, id protocol.Tree, dir bool) ([]byte, error)
}

// Write writes a bundle of everything that a manifest leads to; files has the objects of
// its trees, and may be nil if there are none. Its memory grows
// with the number of nodes, not with their size. Errors: those of
// [cas.BottomUp], so that what is damaged or invalid is not passed on; a
// [*cas.SealError] if a seal of the manifest does not fit. What was written until
// then is no bundle: its end is missing.
func Write(ctx context.Context, w io.Writer, r cas.Reader, m Manifest, files Objects) (Written, error) {
	if m.Hash != r.Algorithm() {
		return Written{}, fmt.Errorf("a bundle of %s nodes from a store of %s nodes", m.Hash, r.Algorithm())
	}
	data, err := m.encode()
	if err != nil {
		return Written{}, fmt.Errorf("manifest: %w", err)
	}
	out := &writer{out: bufio.NewWriterSize(w, 256<<10), digest: sha256.New(), kinds: r.Kinds()}
	out.write([]byte(magic + m.version()))
	if hasFiles(m.version()) {
		if err := out.compress(); err != nil {
			return Written{}, err
		}
	}
	out.write(binary.BigEndian.AppendUint32(nil, uint32(len(data))))
	out.write(data)
	parsed, err := parseManifest(data) // sorted: the order of its roots is that of the file
	if err != nil {
		return Written{}, fmt.Errorf("manifest: %w", err)
	}
	if err := out.nodes(ctx, r, parsed); err != nil {
		return Written{}, err
	}
	if err := out.files(ctx, parsed, files); err != nil {
		return Written{}, err
	}
	out.end()
	out.close()
	return out.written, errors.Join(out.err, out.out.Flush())
}

// writer writes and digests; its error stays.
type writer struct {
	out     *bufio.Writer
	digest  hash.Hash
	written Written
	kinds   *cas.Kinds
	err     error

	zip   *zstd.Encoder // nil: nothing is compressed
	frame int           // bytes in the frame of zstd's that has begun
}

func (w *writer) write(data []byte) {
	if w.err != nil {
		return
	}
	_, _ = w.digest.Write(data)
	if w.zip == nil {
		_, w.err = w.out.Write(data)
	} else {
		_, w.err = w.zip.Write(data)
		w.frame += len(data)
	}
	w.written.Bytes += int64(len(data))
}

// frameBytes is how much a frame of zstd's holds at least, before it is compressed.
const frameBytes = 4 << 20

// compress has all that follows compressed.
func (w *writer) compress() (err error) {
	if err := w.out.Flush(); err != nil {
		return err
	}
	w.zip, err = zstd.NewWriter(w.out, zstd.WithEncoderConcurrency(1))
	return err
}

// begin ends a frame of zstd's that is long enough, before a record.
func (w *writer) begin() {
	if w.zip != nil && w.frame >= frameBytes && w.err == nil {
		w.err, w.frame = w.zip.Close(), 0
		w.zip.Reset(w.out)
	}
}

func (w *writer) close() {
	if w.zip != nil {
		w.err = errors.Join(w.err, w.zip.Close())
	}
}

// files writes the objects of the manifest's trees.
func (w *writer) files(ctx context.Context, m Manifest, from Objects) error {
	if len(m.Trees) == 0 {
		return nil
	}
	walk := treeWalk{from: reading{ctx, from}, visit: func(kind byte, id protocol.Tree, content []byte) error {
		if w.written.Objects == MaxObjects {
			return fmt.Errorf("a bundle holds at most %d files", MaxObjects)
		}
		w.written.Objects++
		sum, err := hex.DecodeString(string(id[strings.IndexByte(string(id), ':')+1:]))
		if err != nil {
			return err
		}
		w.record(kind, 1+len(sum)+len(content))
		w.write([]byte{byte(len(sum))})
		w.write(sum)
		w.write(content)
		return errors.Join(w.err, ctx.Err())
	}}
	links, err := walk.walk(m.Trees)
	w.written.Trees, w.written.Links = len(m.Trees), links
	return err
}

// reading reads every object whole, and holds it against its hash.
type reading struct {
	ctx  context.Context
	from Objects
}

func (r reading) object(id protocol.Tree, kind byte, _ bool) ([]byte, int64, error) {
	content, err := r.from.Object(r.ctx, id, kind == kindDir)
	if err != nil {
		return nil, 0, err
	}
	if len(content) > MaxObject {
		return nil, 0, fmt.Errorf("file %s has %d bytes, at most %d are allowed", id, len(content), MaxObject)
	}
	if _, size := functionOf(id); objectID(kind, content, size) != id {
		return nil, 0, fmt.Errorf("object %s has another hash", id)
	}
	return content, int64(len(content)), nil
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
	w.record(kind, len(v.Node.Hash)+len(body))
	w.write([]byte(v.Node.Hash))
	w.write(body)
	return w.err
}

// record begins one.
func (w *writer) record(kind byte, length int) {
	w.begin()
	w.write(binary.BigEndian.AppendUint32([]byte{kind}, uint32(length)))
}

func (w *writer) end() {
	w.record(kindEnd, endSize)
	w.write(binary.BigEndian.AppendUint64(nil, uint64(w.written.Nodes+w.written.Tombstones+w.written.Objects)))
	w.write(w.digest.Sum(nil))
}
