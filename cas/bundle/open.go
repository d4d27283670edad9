package bundle

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"math"
	"strings"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/protocol"
)

const hashSize = protocol.HashLen

// ErrNotBundle means that a file does not begin as a bundle.
var ErrNotBundle = errors.New("it is not a bundle")

// IsBundle reports whether a file that begins so is a bundle, perhaps of another
// version.
func IsBundle(start []byte) bool { return bytes.HasPrefix(start, []byte(magic)) }

// Sniff is how much of a file's beginning IsBundle and Compressed need.
const Sniff = len(magic) + len(version)

// Compressed reports whether a file that begins so is a bundle that [Open] does not take,
// but [Receive].
func Compressed(start []byte) bool {
	return len(start) >= Sniff && IsBundle(start) && hasFiles(string(start[len(magic):Sniff]))
}

// hasFiles reports whether a version has files, and is compressed.
func hasFiles(version string) bool { return version == withFiles || version == takenOut }

// Open reads a bundle of size bytes once, from beginning to end, and checks every
// byte: frames, each node's hash and form, the digest. What the nodes say is
// checked by [File.Check]. Errors: [ErrNotBundle], [*NewerError], a [*FaultError];
// those of reading.
func Open(ctx context.Context, from io.ReaderAt, size int64) (*File, error) {
	return open(ctx, io.NewSectionReader(from, 0, size), size, from)
}

// Spool is where a bundle is kept that comes in a stream.
type Spool interface {
	io.Writer
	io.ReaderAt
}

// Receive is Open for a bundle that comes in a stream, or is compressed; spool gets it
// as it is without that. It reads no further than the first fault.
func Receive(ctx context.Context, in io.Reader, spool Spool) (*File, error) {
	raw := bufio.NewReaderSize(in, 256<<10)
	if start, _ := raw.Peek(Sniff); !Compressed(start) { // what cannot be read is found out below
		return open(ctx, io.TeeReader(raw, spool), math.MaxInt64, spool)
	}
	plain, err := decompress(raw)
	if err != nil {
		return nil, err
	}
	defer plain.close()
	return open(ctx, io.TeeReader(plain, spool), math.MaxInt64, spool)
}

// open scans a bundle of at most limit bytes, whose nodes will be read from from.
func open(ctx context.Context, in io.Reader, limit int64, from io.ReaderAt) (*File, error) {
	s := &scanner{
		in:     bufio.NewReaderSize(in, 256<<10),
		limit:  limit,
		digest: sha256.New(),
		file:   &File{from: from, at: map[uint64]uint32{}, objects: map[protocol.Tree]object{}},
	}
	if err := s.scan(ctx); err != nil {
		return nil, err
	}
	s.file.Size = s.pos
	return s.file, nil
}

// scanner reads a bundle from its beginning.
type scanner struct {
	in     *bufio.Reader
	limit  int64 // how many bytes there can be
	pos    int64 // of the next byte
	digest hash.Hash
	file   *File
	buf    []byte

	version string
}

func (s *scanner) scan(ctx context.Context) error {
	if err := s.head(); err != nil {
		return err
	}
	if err := s.manifest(); err != nil {
		return err
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		more, err := s.record()
		if err != nil {
			return err
		}
		if !more {
			break
		}
	}
	switch _, err := s.in.ReadByte(); {
	case err == nil:
		return fault(s.pos, "something follows its end")
	case !errors.Is(err, io.EOF):
		return fmt.Errorf("read the bundle at byte %d: %w", s.pos, err)
	}
	return nil
}

// read reads and digests n bytes; what is for errors. The slice is valid until
// the next read. Nothing is allocated for bytes that are not there.
func (s *scanner) read(n int, what string) ([]byte, error) {
	if int64(n) > s.limit-s.pos {
		return nil, fault(s.limit, "it ends within %s", what)
	}
	if cap(s.buf) < n {
		s.buf = make([]byte, n)
	}
	data := s.buf[:n]
	switch got, err := io.ReadFull(s.in, data); {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, fault(s.pos+int64(got), "it ends within %s", what)
	case err != nil:
		return nil, fmt.Errorf("read the bundle at byte %d: %w", s.pos, err)
	}
	s.pos += int64(n)
	_, _ = s.digest.Write(data)
	return data, nil
}

func (s *scanner) head() error {
	start, err := s.read(len(magic), "its beginning")
	var short *FaultError
	switch {
	case errors.As(err, &short):
		return ErrNotBundle
	case err != nil:
		return err
	case string(start) != magic:
		return ErrNotBundle
	}
	got, err := s.read(len(version), "its version")
	if err != nil {
		return err
	}
	if string(got) == version || hasFiles(string(got)) && s.limit == math.MaxInt64 {
		s.version = string(got)
		return nil
	}
	number, _, whole := strings.Cut(s.line(got), "\n")
	if whole && number != "" && strings.Trim(number, "0123456789") == "" {
		return &NewerError{Version: number}
	}
	return fault(int64(len(magic)), "the version is damaged")
}

// line is what has been read and a little more, for a version of more digits.
func (s *scanner) line(got []byte) string {
	const digits = 8
	more, _ := s.in.Peek(digits) // less if the file is short
	return string(got) + string(more)
}

func (s *scanner) manifest() error {
	at := s.pos
	length, err := s.read(4, "the length of its manifest")
	if err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(length)
	if n > cas.MaxPayload {
		return fault(at, "its manifest has %d bytes, at most %d are allowed", n, cas.MaxPayload)
	}
	data, err := s.read(int(n), "its manifest")
	if err != nil {
		return err
	}
	m, err := parseManifest(data)
	if err != nil {
		return fault(at, "its manifest: %w", err)
	}
	if m.version() != s.version {
		return fault(at, "its manifest is not of its version")
	}
	s.file.Manifest, s.file.kinds = m, cas.NewKinds(m.Hash)
	return nil
}

// record reads one record; more: it was not the end.
func (s *scanner) record() (more bool, err error) {
	at := s.pos
	frame, err := s.read(frameSize, "a record, before its end")
	if err != nil {
		return false, err
	}
	kind, length := frame[0], binary.BigEndian.Uint32(frame[1:])
	switch kind {
	case kindNode, kindTombstone:
		if len(s.file.order) > 0 {
			return false, fault(at, "a node comes after the files")
		}
		return true, s.node(at, kind, length)
	case kindFile, kindDir:
		return true, s.object(at, kind, length)
	case kindEnd:
		return false, s.end(at, length)
	}
	return false, fault(at, "there is no record of kind %q", kind)
}

func (s *scanner) node(at int64, kind byte, length uint32) error {
	if length <= hashSize || length > hashSize+uint32(cas.MaxFile) {
		return fault(at, "a record of %d bytes cannot be a node", length)
	}
	if len(s.file.records) == MaxNodes {
		return fault(at, "it has more than %d nodes", MaxNodes)
	}
	data, err := s.read(int(length), "a node")
	if err != nil {
		return err
	}
	h, body := cas.Hash(data[:hashSize]), data[hashSize:]
	if err := s.content(h, kind, body); err != nil {
		return &FaultError{Offset: at, Hash: h, Err: err}
	}
	r := record{number: h.Number(), offset: s.pos - int64(len(body)), length: uint32(len(body)), tombstone: kind == kindTombstone}
	if !s.file.add(r) {
		return &FaultError{Offset: at, Hash: h, Err: fmt.Errorf("node %s is there twice", h)}
	}
	return nil
}

// object reads a file or a directory of a tree.
func (s *scanner) object(at int64, kind byte, length uint32) error {
	switch {
	case !hasFiles(s.version):
		return fault(at, "there is no record of kind %q", kind)
	case len(s.file.order) == MaxObjects:
		return fault(at, "it has more than %d files", MaxObjects)
	}
	first, err := s.read(1, "a file")
	if err != nil {
		return err
	}
	size := int(first[0])
	if size != sha1.Size && size != sha256.Size || int64(length) < int64(1+size) || int64(length) > int64(1+size)+MaxObject {
		return fault(at, "a record of %d bytes cannot be a file", length)
	}
	sum, err := s.read(size, "a file")
	if err != nil {
		return err
	}
	id := protocol.Tree("sha1:" + hex.EncodeToString(sum))
	if size == sha256.Size {
		id = protocol.Tree("sha256:" + hex.EncodeToString(sum))
	}
	offset := s.pos
	content, err := s.readAll(int(length) - 1 - size)
	if err != nil {
		return err
	}
	if objectID(kind, content, size) != id {
		return fault(at, "file %s: its content has another hash", id)
	}
	if _, twice := s.file.objects[id]; twice {
		return fault(at, "file %s is there twice", id)
	}
	s.file.objects[id] = object{kind: kind, offset: offset, length: uint32(len(content)), place: uint32(len(s.file.order))}
	s.file.order = append(s.file.order, id)
	return nil
}

// readAll is read for what may be long: it takes room as bytes come.
func (s *scanner) readAll(n int) ([]byte, error) {
	const piece = 1 << 20
	var all []byte
	for len(all) < n {
		data, err := s.read(min(piece, n-len(all)), "a file")
		if err != nil {
			return nil, err
		}
		all = append(all, data...)
	}
	return all, nil
}

// content checks one node by itself.
func (s *scanner) content(h cas.Hash, kind byte, body []byte) error {
	n, err := checkContent(s.file.Manifest.Hash, h, kind, body)
	if err == nil && n.Timestamp != 0 && s.file.kinds.InFoundation(h) {
		err = fmt.Errorf("node %s, a schema of every store, has a time", h)
	}
	return err
}

// checkContent checks a node, or the tombstone in its place, by itself.
func checkContent(a cas.Algorithm, h cas.Hash, kind byte, body []byte) (cas.Node, error) {
	if !h.Valid() {
		return cas.Node{}, fmt.Errorf("%q is not a hash", h)
	}
	if (kind == kindTombstone) != cas.IsTombstone(body) {
		return cas.Node{}, fmt.Errorf("the record of %s is not of the kind that it says", h)
	}
	n, err := a.UnmarshalFile(h, body)
	if redacted, ok := cas.AsRedacted(err); ok {
		if redacted.Tombstone.Foreign {
			return n, errors.New("its tombstone says where it comes from, which only that in a store does")
		}
		return n, nil
	}
	if err != nil {
		return n, err
	}
	return n, a.Check(n)
}

// end checks how many nodes there are and the digest of all before it.
func (s *scanner) end(at int64, length uint32) error {
	if length != endSize {
		return fault(at, "the end has %d bytes, want %d", length, endSize)
	}
	data, err := s.read(endSize-digestSize, "its end")
	if err != nil {
		return err
	}
	if n := binary.BigEndian.Uint64(data); n != uint64(len(s.file.records)+len(s.file.order)) {
		return fault(at, "it has %d nodes, but says %d", len(s.file.records)+len(s.file.order), n)
	}
	want := s.digest.Sum(nil)
	got, err := s.read(digestSize, "its end")
	if err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return fault(at, "its digest does not fit: something in it was changed")
	}
	return nil
}
