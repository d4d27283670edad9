// Package bundle implements the exchange format for threads: one file with everything that they reference.
// Equal threads give equal files. A reader needs no store, and doesn't trust the content.
//
//	"uwf bundle 1\n"
//	length of the manifest, 4 bytes, big endian; the manifest: canonical CBOR
//	records, each: kind, 1 byte; length of the rest, 4 bytes, big endian; the rest
//	  'n'  a node: its hash, 13 characters, and its file as in a store
//	  't'  a tombstone: the hash of the redacted node, and its file
//	  'e'  the end: number of nodes and tombstones, 8 bytes; SHA-256 of everything before
//
// Nodes are in the order of [graph.BottomUp] from the roots of the manifest: each after its type and its refs.
// Each node thus has exactly one possible place, and there are no others.
//
// Version 2 is used if there are files: git work trees referenced by steps. Everything after its first line
// is compressed with zstd, in frames of whole records. Its manifest lists the trees, and the nodes are
// followed by their objects, in the manifest's order of the trees, each after what it needs:
//
//	'f'  a file, or a link's target: git's hash, 20 or 32 bytes after a byte with that number, and its content
//	'd'  a directory, in the same form
//
// Timestamps are preserved, except in a store's foundation ([cas.Kinds.Foundation]), where they are 0: every
// store creates these nodes itself, and otherwise the bundles of equal threads would differ.
//
// [Write] writes a bundle, [Receive] reads one and checks its bytes, [File.Check] proves that it is complete,
// [File.Import] imports it into a store.
package bundle

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/gitobject"
	"github.com/united-workforce/uwf/util/sorting"
	"github.com/united-workforce/uwf/util/threadid"
)

const hashSize = protocol.HashLen

// ErrNotBundle means that a file doesn't start like a bundle.
var ErrNotBundle = errors.New("not a bundle")

// IsBundle reports whether a file with this beginning is a bundle, possibly of another version.
func IsBundle(start []byte) bool { return bytes.HasPrefix(start, []byte(magic)) }

// Sniff is the length of a file's beginning that IsBundle needs.
const Sniff = len(magic)

// hasFiles reports whether bundles of a version have files and are compressed.
func hasFiles(version string) bool { return version == withFiles || version == withRedactions }

// Spool stores a bundle received as a stream.
type Spool interface {
	io.Writer
	io.ReaderAt
}

// Receive reads a bundle once, sequentially, writes it to spool, uncompressed, and checks every byte: frames, each
// node's hash and form, the digest. [File.Check] checks the content of the nodes. It stops reading at the first error.
// Errors: [ErrNotBundle], [*NewerError], a [*FaultError], read errors.
func Receive(ctx context.Context, in io.Reader, spool Spool) (*File, error) {
	raw := bufio.NewReaderSize(in, 256<<10)
	plain := io.Reader(raw)
	start, _ := raw.Peek(len(magic) + len(version)) // a read error is reported below
	if IsBundle(start) && hasFiles(string(start[len(magic):])) {
		z, err := decompress(raw)
		if err != nil {
			return nil, err
		}
		defer z.plain.Close()
		line, _ := raw.Discard(len(start))
		plain = io.MultiReader(strings.NewReader(string(start[:line])), z)
	}
	s := &scanner{
		in:     bufio.NewReaderSize(io.TeeReader(plain, spool), 256<<10),
		digest: sha256.New(),
		file:   &File{from: spool, at: map[uint64]uint32{}, objects: map[protocol.Tree]object{}},
	}
	if err := s.scan(ctx); err != nil {
		return nil, err
	}
	s.file.Size = s.pos
	return s.file, nil
}

// scanner reads a bundle sequentially.
type scanner struct {
	in     *bufio.Reader
	pos    int64 // offset of the next byte
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
		return fault(s.pos, "data after the end")
	case !errors.Is(err, io.EOF):
		return fmt.Errorf("read the bundle at byte %d: %w", s.pos, err)
	}
	return nil
}

// read reads and digests n bytes; what is used in errors. The slice is valid until the next read. It
// allocates memory only as bytes arrive.
func (s *scanner) read(n int, what string) ([]byte, error) {
	const piece = 1 << 20
	s.buf = s.buf[:0]
	for at := 0; at < n; at = len(s.buf) {
		s.buf = slices.Grow(s.buf, min(piece, n-at))[:at+min(piece, n-at)]
		got, err := io.ReadFull(s.in, s.buf[at:])
		s.pos += int64(got)
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil, fault(s.pos, "unexpected end in %s", what)
		case err != nil:
			return nil, fmt.Errorf("read the bundle at byte %d: %w", s.pos, err)
		}
	}
	_, _ = s.digest.Write(s.buf)
	return s.buf, nil
}

func (s *scanner) head() error {
	start, err := s.read(len(magic), "the header")
	var short *FaultError
	switch {
	case errors.As(err, &short):
		return ErrNotBundle
	case err != nil:
		return err
	case string(start) != magic:
		return ErrNotBundle
	}
	got, err := s.read(len(version), "the version")
	if err != nil {
		return err
	}
	if string(got) == version || hasFiles(string(got)) {
		s.version = string(got)
		return nil
	}
	number, _, whole := strings.Cut(s.line(got), "\n")
	if whole && number != "" && strings.Trim(number, "0123456789") == "" {
		return &NewerError{Version: number}
	}
	return fault(int64(len(magic)), "the version is damaged")
}

// line returns the bytes read and a few more, for a version with more digits.
func (s *scanner) line(got []byte) string {
	const digits = 8
	more, _ := s.in.Peek(digits) // less if the file is short
	return string(got) + string(more)
}

func (s *scanner) manifest() error {
	at := s.pos
	length, err := s.read(4, "the manifest's length")
	if err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(length)
	if n > cas.MaxPayload {
		return fault(at, "the manifest has %d bytes; the limit is %d", n, cas.MaxPayload)
	}
	data, err := s.read(int(n), "the manifest")
	if err != nil {
		return err
	}
	m, err := parseManifest(data)
	if err != nil {
		return fault(at, "manifest: %w", err)
	}
	if m.version() != s.version {
		return fault(at, "the manifest does not match the bundle's version")
	}
	s.file.Manifest, s.file.kinds = m, cas.NewKinds(m.Hash)
	return nil
}

// record reads one record; more is false at the end record.
func (s *scanner) record() (more bool, err error) {
	at := s.pos
	frame, err := s.read(frameSize, "a record")
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
	return false, fault(at, "unknown record kind %q", kind)
}

func (s *scanner) node(at int64, kind byte, length uint32) error {
	if length <= hashSize || length > hashSize+uint32(cas.MaxFile) {
		return fault(at, "a record of %d bytes cannot be a node", length)
	}
	if len(s.file.records) == MaxNodes {
		return fault(at, "more than %d nodes", MaxNodes)
	}
	data, err := s.read(int(length), "a node")
	if err != nil {
		return err
	}
	h, body := cas.Hash(data[:hashSize]), data[hashSize:]
	if err := s.content(h, kind, body); err != nil {
		return &FaultError{Offset: at, Hash: h, Err: err}
	}
	r := record{number: h.Number(), offset: s.pos - int64(len(body)), length: uint32(len(body)),
		tombstone: kind == kindTombstone}
	if !s.file.add(r) {
		return &FaultError{Offset: at, Hash: h, Err: fmt.Errorf("duplicate node %s", h)}
	}
	return nil
}

// object reads a file or directory of a tree.
func (s *scanner) object(at int64, kind byte, length uint32) error {
	switch {
	case !hasFiles(s.version):
		return fault(at, "unknown record kind %q", kind)
	case len(s.file.order) == MaxObjects:
		return fault(at, "more than %d files", MaxObjects)
	}
	if int64(length) > maxName+gitobject.MaxSize {
		return fault(at, "a record of %d bytes cannot be a file", length)
	}
	data, err := s.read(int(length), "a file")
	if err != nil {
		return err
	}
	id, content, ok := gitobject.CutID(data)
	if !ok || len(content) > gitobject.MaxSize {
		return fault(at, "a record of %d bytes cannot be a file", length)
	}
	offset := s.pos - int64(len(content))
	if gitobject.ID(kind, content, id.Function()) != id {
		return fault(at, "file %s: content has another hash", id)
	}
	if _, twice := s.file.objects[id]; twice {
		return fault(at, "duplicate file %s", id)
	}
	s.file.objects[id] = object{kind: kind, offset: offset, length: uint32(len(content)), place: uint32(len(s.file.order))}
	s.file.order = append(s.file.order, id)
	return nil
}

// content checks a node on its own.
func (s *scanner) content(h cas.Hash, kind byte, body []byte) error {
	n, err := checkContent(s.file.Manifest.Hash, h, kind, body)
	if err == nil && n.Timestamp != 0 && s.file.kinds.InFoundation(h) {
		err = fmt.Errorf("node %s, a built-in schema, has a timestamp", h)
	}
	return err
}

// checkContent checks a node, or its tombstone, on its own.
func checkContent(a cas.Algorithm, h cas.Hash, kind byte, body []byte) (cas.Node, error) {
	if !h.Valid() {
		return cas.Node{}, fmt.Errorf("%q is not a hash", h)
	}
	if (kind == kindTombstone) != cas.IsTombstone(body) {
		return cas.Node{}, fmt.Errorf("the record of %s has the wrong kind", h)
	}
	n, err := a.UnmarshalFile(h, body)
	if redacted, ok := cas.AsRedacted(err); ok {
		if redacted.Tombstone.Foreign {
			return n, errors.New("its tombstone has an origin, which only a store's tombstone has")
		}
		return n, nil
	}
	if err != nil {
		return n, err
	}
	return n, a.Check(n)
}

// end checks the number of nodes and the digest of everything before.
func (s *scanner) end(at int64, length uint32) error {
	if length != endSize {
		return fault(at, "the end record has %d bytes, want %d", length, endSize)
	}
	data, err := s.read(endSize-digestSize, "the end record")
	if err != nil {
		return err
	}
	if n := binary.BigEndian.Uint64(data); n != uint64(len(s.file.records)+len(s.file.order)) {
		return fault(at, "has %d nodes, want %d", len(s.file.records)+len(s.file.order), n)
	}
	want := s.digest.Sum(nil)
	got, err := s.read(digestSize, "the end record")
	if err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return fault(at, "digest mismatch: the content was changed")
	}
	return nil
}

// Manifest describes the content of a bundle. Its lists are sorted, by thread, name and hash.
type Manifest struct {
	Hash      cas.Algorithm `json:"hash"`
	Threads   []Thread      `json:"threads"`
	Workflows []Workflow    `json:"workflows"`
	Roots     []Root        `json:"roots"`
	// Trees lists the file trees in the bundle: those that its steps reference, or their substitutes. A
	// bundle with trees has version 2.
	Trees []protocol.Tree `json:"trees,omitempty"`
	// Instead lists the substitutes of redacted trees that steps reference. A bundle with substitutes has
	// version 3.
	Instead []Instead `json:"instead,omitempty"`
}

// Instead means that a tree in the bundle replaces another one that isn't.
type Instead struct {
	Tree protocol.Tree `json:"tree"` // referenced by a step
	By   protocol.Tree `json:"by"`
}

// Substitute returns the tree in the bundle for one that a step references; "" if there is none.
func (m Manifest) Substitute(tree protocol.Tree) protocol.Tree {
	byTree := func(i Instead, t protocol.Tree) int { return cmp.Compare(i.Tree, t) }
	if at, ok := slices.BinarySearchFunc(m.Instead, tree, byTree); ok {
		return m.Instead[at].By
	}
	if _, ok := slices.BinarySearch(m.Trees, tree); ok {
		return tree
	}
	return ""
}

// Thread is a thread's entry in the index. Workflow, Status and CompletedAt come from the history: an active
// thread has none.
type Thread struct {
	Thread      string          `json:"thread"`
	Head        cas.Hash        `json:"head"`
	Workflow    cas.Hash        `json:"workflow,omitempty"`
	Status      protocol.Status `json:"status,omitempty"`
	CompletedAt int64           `json:"completedAt,omitempty"`
	// Failed means that it is completed at $FAIL. Older programs show it as completed.
	Failed bool   `json:"failed,omitempty"`
	Seal   string `json:"seal,omitempty"` // of the head, if sealed
	// Title is the user's title, in version 2.
	Title string `json:"title,omitempty"`
}

// Ended reports whether the thread has ended.
func (t Thread) Ended() bool { return t.Status != "" }

// Workflow is a name in the registry.
type Workflow struct {
	Name string   `json:"name"`
	Hash cas.Hash `json:"hash"`
}

// Root is a node exported individually.
type Root struct {
	Hash cas.Hash `json:"hash"`
	Seal string   `json:"seal,omitempty"`
}

// roots returns the nodes at which the walk starts, in order.
func (m Manifest) roots() []cas.Hash {
	var roots []cas.Hash
	for _, t := range m.Threads {
		roots = append(roots, t.Head)
		if t.Workflow != "" {
			roots = append(roots, t.Workflow)
		}
	}
	for _, w := range m.Workflows {
		roots = append(roots, w.Hash)
	}
	for _, r := range m.Roots {
		roots = append(roots, r.Hash)
	}
	return roots
}

// sealed returns the nodes with a seal in the manifest.
func (m Manifest) sealed() []Root {
	var sealed []Root
	for _, t := range m.Threads {
		if t.Seal != "" {
			sealed = append(sealed, Root{Hash: t.Head, Seal: t.Seal})
		}
	}
	for _, r := range m.Roots {
		if r.Seal != "" {
			sealed = append(sealed, r)
		}
	}
	return sealed
}

// version returns the bundle's version.
func (m Manifest) version() string {
	switch {
	case len(m.Instead) > 0:
		return withRedactions
	case len(m.Trees) > 0:
		return withFiles
	}
	return version
}

// encode encodes a manifest in its only valid form: sorted, lists never null.
func (m Manifest) encode() ([]byte, error) {
	m.Threads = sorted(m.Threads, func(a, b Thread) int { return cmp.Compare(a.Thread, b.Thread) })
	m.Workflows = sorted(m.Workflows, func(a, b Workflow) int { return cmp.Compare(a.Name, b.Name) })
	m.Roots = sorted(m.Roots, func(a, b Root) int { return cmp.Compare(a.Hash, b.Hash) })
	if len(m.Trees) == 0 {
		for i := range m.Threads {
			m.Threads[i].Title = ""
		}
	} else {
		m.Trees = sorted(m.Trees, cmp.Compare)
	}
	if len(m.Instead) > 0 {
		m.Instead = sorted(m.Instead, func(a, b Instead) int { return cmp.Compare(a.Tree, b.Tree) })
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	return cas.Encode(m)
}

func sorted[T any](list []T, compare func(a, b T) int) []T {
	out := append([]T{}, list...)
	sorting.Func(out, compare)
	return out
}

// parseManifest parses a manifest and rejects any other form.
func parseManifest(data []byte) (Manifest, error) {
	var m Manifest
	if err := (cas.Node{Payload: data}).Decode(&m); err != nil {
		return m, errors.Unwrap(err)
	}
	again, err := m.encode()
	if err != nil {
		return m, err
	}
	if !bytes.Equal(again, data) {
		return m, errors.New("unknown or unordered entry")
	}
	return m, nil
}

// check checks each entry and that there are no duplicates.
func (m Manifest) check() error {
	if !m.Hash.Known() {
		return fmt.Errorf("unknown hash function %q", m.Hash)
	}
	if len(m.Threads)+len(m.Roots) == 0 {
		return errors.New("no thread and no node")
	}
	for i, t := range m.Threads {
		if err := t.check(); err != nil {
			return fmt.Errorf("thread %q: %w", t.Thread, err)
		}
		if i > 0 && m.Threads[i-1].Thread == t.Thread {
			return fmt.Errorf("duplicate thread %s", t.Thread)
		}
	}
	for i, w := range m.Workflows {
		if problem := protocol.WorkflowNameProblem(w.Name); problem != "" {
			return fmt.Errorf("workflow name %q %s", w.Name, problem)
		}
		if !w.Hash.Valid() {
			return fmt.Errorf("workflow %s: %q is not a hash", w.Name, w.Hash)
		}
		if i > 0 && m.Workflows[i-1].Name == w.Name {
			return fmt.Errorf("duplicate workflow %s", w.Name)
		}
	}
	for i, r := range m.Roots {
		if !r.Hash.Valid() {
			return fmt.Errorf("root %q is not a hash", r.Hash)
		}
		if i > 0 && m.Roots[i-1].Hash == r.Hash {
			return fmt.Errorf("duplicate root %s", r.Hash)
		}
		if err := checkSeal(r.Seal); err != nil {
			return err
		}
	}
	for i, t := range m.Trees {
		if !t.Valid() {
			return fmt.Errorf("%q is not a tree", t)
		}
		if i > 0 && m.Trees[i-1] == t {
			return fmt.Errorf("duplicate tree %s", t)
		}
	}
	return m.checkInstead()
}

// checkInstead checks that each substitute exists and the replaced tree doesn't, so a substitute is never
// replaced itself.
func (m Manifest) checkInstead() error {
	for i, s := range m.Instead {
		_, there := slices.BinarySearch(m.Trees, s.Tree)
		_, listed := slices.BinarySearch(m.Trees, s.By)
		switch {
		case !s.Tree.Valid() || s.Tree.Function() != s.By.Function():
			return fmt.Errorf("%q cannot replace %q", s.By, s.Tree)
		case i > 0 && m.Instead[i-1].Tree == s.Tree:
			return fmt.Errorf("two trees replace %s", s.Tree)
		case there:
			return fmt.Errorf("tree %s is present, but another one replaces it", s.Tree)
		case !listed:
			return fmt.Errorf("tree %s, which replaces %s, is missing", s.By, s.Tree)
		}
	}
	return nil
}

// check checks that an id is usable as a file name.
func (t Thread) check() error {
	switch {
	case !threadid.Valid(t.Thread):
		return threadid.ErrInvalid
	case !t.Head.Valid():
		return fmt.Errorf("head %q is not a hash", t.Head)
	case t.Ended() && !t.Status.Ends(): // as in the history
		return fmt.Errorf("invalid end status %q", t.Status)
	case t.Ended() && t.Workflow != "" && !t.Workflow.Valid():
		return fmt.Errorf("workflow %q is not a hash", t.Workflow)
	case !t.Ended() && (t.Workflow != "" || t.CompletedAt != 0):
		return errors.New("an active thread has fields of an ended one")
	case !utf8.ValidString(t.Title) || utf8.RuneCountInString(t.Title) > protocol.MaxTitle:
		return errors.New("invalid title")
	case t.CompletedAt < 0 || t.CompletedAt > heads.LastMs:
		return fmt.Errorf("invalid end time %d ms", t.CompletedAt)
	}
	return checkSeal(t.Seal)
}

func checkSeal(text string) error {
	if text == "" {
		return nil
	}
	seal, err := cas.ParseSeal(text)
	if err == nil && seal.String() != text {
		err = fmt.Errorf("seal %q is not lower-case", text)
	}
	return err
}

const (
	magic          = "uwf bundle "
	version        = "1\n"
	withFiles      = "2\n"
	withRedactions = "3\n" // with redacted files
	digestSize     = 32
	frameSize      = 1 + 4 // of a record: kind and length
	endSize        = 8 + digestSize

	kindNode      = 'n'
	kindTombstone = 't'
	kindFile      = gitobject.File
	kindDir       = gitobject.Directory
	kindEnd       = 'e'

	maxName = 1 + sha256.Size // of the name of a file

	// MaxObjects bounds the files and directories of a bundle.
	MaxObjects = 1 << 22

	// MaxNodes bounds the size of a bundle: a reader needs about 100 bytes per node.
	MaxNodes = 1 << 24
)

// FaultError is an error in a bundle at byte Offset. Hash is the affected node, if any.
type FaultError struct {
	Offset int64
	Hash   cas.Hash
	Err    error
}

func (e *FaultError) Error() string { return fmt.Sprintf("byte %d: %v", e.Offset, e.Err) }

func (e *FaultError) Unwrap() error { return e.Err }

func fault(offset int64, format string, args ...any) error {
	return &FaultError{Offset: offset, Err: fmt.Errorf(format, args...)}
}

// NewerError means that a newer program created a bundle.
type NewerError struct{ Version string }

func (e *NewerError) Error() string {
	return fmt.Sprintf("the bundle has version %s, but this program reads versions 1 to 3", e.Version)
}
