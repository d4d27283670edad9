// Package bundle is the format in which threads travel: one file with everything
// that they lead to. Equal threads give equal files; a reader needs no store and
// believes nothing.
//
//	"uwf bundle 1\n"
//	length of the manifest, 4 bytes, big endian; the manifest: canonical CBOR
//	records, each: kind, 1 byte; length of the rest, 4 bytes, big endian; the rest
//	  'n'  a node: its hash, 13 characters, and its file as a store has it
//	  't'  a tombstone: the hash of the node that was redacted, and its file
//	  'e'  the end: how many nodes and tombstones, 8 bytes; SHA-256 of all before it
//
// Nodes come in the order of [cas.BottomUp] from the roots of the manifest: each
// after its type and after what it refers to. So there is one place for each node,
// and nothing else has any.
//
// Version 2 is written where there are files: states of a git work tree that steps
// name. What follows its first line is compressed: zstd, frames of whole records. Its
// manifest names the trees, and after the nodes come their objects, from the trees in
// the manifest's order, each after what it needs:
//
//	'f'  a file, or a link's target: its hash as git has it, 20 or 32 bytes after a byte with that number, and its content
//	'd'  a directory: likewise
//
// Timestamps are kept, but for those of a store's foundation
// ([cas.Kinds.Foundation]), which are 0: every store has made these nodes itself,
// and equal threads would differ only by that.
//
// [Write] makes a bundle, [Open] reads one and checks its bytes, [File.Check]
// proves that it is whole, [File.Import] brings it into a store.
package bundle

import (
	"fmt"

	"github.com/united-workforce/uwf/cas"
)

const (
	magic      = "uwf bundle "
	version    = "1\n"
	withFiles  = "2\n"
	takenOut   = "3\n" // with files of which something was taken out
	digestSize = 32
	frameSize  = 1 + 4 // of a record: kind and length
	endSize    = 8 + digestSize

	kindNode      = 'n'
	kindTombstone = 't'
	kindFile      = 'f'
	kindDir       = 'd'
	kindEnd       = 'e'

	// MaxNodes bounds a bundle: a reader keeps about 100 bytes of each node.
	MaxNodes = 1 << 24
)

// FaultError means that a bundle is not what it should be, and where: Offset is
// in bytes from its beginning, Hash the node that it is about, if any.
type FaultError struct {
	Offset int64
	Hash   cas.Hash
	Err    error
}

// Error implements error.
func (e *FaultError) Error() string { return fmt.Sprintf("byte %d: %v", e.Offset, e.Err) }

// Unwrap returns the cause.
func (e *FaultError) Unwrap() error { return e.Err }

func fault(offset int64, format string, args ...any) error {
	return &FaultError{Offset: offset, Err: fmt.Errorf(format, args...)}
}

// NewerError means that a newer program made a bundle.
type NewerError struct{ Version string }

// Error implements error.
func (e *NewerError) Error() string {
	return fmt.Sprintf("the bundle has version %s, this program reads versions 1 to 3: a newer one made it", e.Version)
}
