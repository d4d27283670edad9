// Package record is the format of the records that a store's log, its packs and its index consist of. A record
// is a header of 17 bytes and a body:
//
//	kind (1 byte)  length of the body (4)  hash (8)  CRC-32C of these 13 bytes (4)  body
//
// Numbers are big endian. The header's checksum covers no body: the hash of a node covers its content, and the
// bodies of other kinds contain checksums. So a reader can find the next record behind a damaged
// one, and verifies a body only when it needs it.
package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"iter"
	"strings"
)

// Kind is the kind of a record. A reader skips records of kinds that it doesn't know.
type Kind byte

// The kinds of records. Of several records of one group with the same hash, the newest counts.
const (
	Node      Kind = 'n' // a node's file
	Tombstone Kind = 't' // a tombstone's file; replaces the node
	NoContent Kind = 'N' // neither node nor tombstone exists any longer; no body

	Seal   Kind = 's' // a node's seal and its CRC-32C
	NoSeal Kind = 'S' // the seal was removed; no body

	Home   Kind = 'h' // the path of a home that uses the store
	NoHome Kind = 'H' // the home no longer uses the store; no body
)

// Known reports whether k is a kind listed above.
func (k Kind) Known() bool { return strings.IndexByte("ntNsShH", byte(k)) >= 0 }

const (
	// HeaderSize is the size of a header in bytes.
	HeaderSize = 1 + 4 + 8 + 4

	// MaxBody bounds a body, in bytes. It is above the largest node's file.
	MaxBody = 64<<20 + 1<<10
)

// Header is the header of a record.
type Header struct {
	Kind   Kind
	Length int // of the body
	Hash   uint64
}

// Size returns the size of the whole record.
func (h Header) Size() int64 { return HeaderSize + int64(h.Length) }

// Append appends the encoded header to b. The length must be at most [MaxBody].
func (h Header) Append(b []byte) []byte {
	start := len(b)
	b = append(b, byte(h.Kind))
	b = binary.BigEndian.AppendUint32(b, uint32(h.Length))
	b = binary.BigEndian.AppendUint64(b, h.Hash)
	return binary.BigEndian.AppendUint32(b, Checksum(b[start:]))
}

// Append appends a record to b. The body must have at most [MaxBody] bytes.
func Append(b []byte, kind Kind, hash uint64, body []byte) []byte {
	return append(Header{Kind: kind, Length: len(body), Hash: hash}.Append(b), body...)
}

// Parse parses the header at the beginning of b; false if there is none.
func Parse(b []byte) (Header, bool) {
	if len(b) < HeaderSize {
		return Header{}, false
	}
	length := binary.BigEndian.Uint32(b[1:])
	if length > MaxBody || binary.BigEndian.Uint32(b[13:]) != Checksum(b[:13]) {
		return Header{}, false
	}
	return Header{Kind: Kind(b[0]), Length: int(length), Hash: HashAt(b)}, true
}

// HashAt returns the hash in a valid header at the beginning of b.
func HashAt(b []byte) uint64 { return binary.BigEndian.Uint64(b[5:]) }

// Checksum returns the CRC-32C of b.
func Checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// Scan yields the offset and the header of each complete record in data. Where data isn't a record, because it
// is damaged or was never written completely, it continues with the next valid header of a known kind.
func Scan(data []byte) iter.Seq2[int, Header] {
	return func(yield func(int, Header) bool) {
		more := func(at int64, h Header) bool { return yield(int(at), h) }
		_ = ScanFile(bytes.NewReader(data), int64(len(data)), more) // reading memory doesn't fail
	}
}

// ScanFile is Scan for a file of a size, until found returns false. It keeps a small part of the file in memory, and
// reads no large bodies.
func ScanFile(file io.ReaderAt, size int64, found func(at int64, h Header) bool) error {
	var window []byte
	start, buf := int64(0), make([]byte, min(size, 64<<10))
	for at := int64(0); at+HeaderSize <= size; {
		if at+HeaderSize > start+int64(len(window)) {
			n, err := file.ReadAt(buf[:min(int64(len(buf)), size-at)], at)
			if err != nil && !errors.Is(err, io.EOF) {
				return err
			}
			start, window = at, buf[:n]
		}
		data := window[at-start:]
		if len(data) < HeaderSize {
			return nil
		}
		if h, ok := Parse(data); ok && h.Size() <= size-at {
			if !found(at, h) {
				return nil
			}
			at += h.Size()
			continue
		}
		at++
		for _, b := range data[1:] {
			if Kind(b).Known() {
				break
			}
			at++
		}
	}
	return nil
}
