package cas

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// A node file is the CBOR map {type, payload, timestamp}, keys in that order,
// byte for byte as the original writes it:
//
//	a3 64 "type" 6d <13 characters> 67 "payload" <CBOR> 69 "timestamp" <integer>
const (
	fileHead   = "\xa3\x64type\x6d"
	fileMiddle = "\x67payload"
	fileTail   = "\x69timestamp"

	payloadStart = len(fileHead) + 13 + len(fileMiddle)

	// MaxFile bounds a node file, in bytes.
	MaxFile = payloadStart + MaxPayload + len(fileTail) + 9
)

// MarshalFile is the content of a node's file.
func MarshalFile(n Node) []byte {
	b := make([]byte, 0, payloadStart+len(n.Payload)+len(fileTail)+9)
	b = append(b, fileHead...)
	b = append(b, n.Type...)
	b = append(b, fileMiddle...)
	b = append(b, n.Payload...)
	b = append(b, fileTail...)
	return appendUint(b, uint64(n.Timestamp))
}

// UnmarshalFile reads the file of node h and verifies its hash. The error is a
// [*CorruptError] without a path, or a [*RedactedError] if a tombstone is in the
// node's place. The timestamp is the one part that no hash covers. The payload
// shares memory with data.
func (a Algorithm) UnmarshalFile(h Hash, data []byte) (Node, error) {
	if IsTombstone(data) {
		t, err := UnmarshalTombstone(h, data)
		if err != nil {
			return Node{}, err
		}
		return Node{}, &RedactedError{Tombstone: t}
	}
	n, err := parseFile(data)
	if err != nil {
		return Node{}, &CorruptError{Hash: h, Reason: err.Error(), Cut: isCut(data)}
	}
	n.Hash = h
	if !a.Matches(n) {
		return Node{}, &CorruptError{Hash: h, Reason: "its content has another hash, " + string(a.Sum(n.Type, n.Payload))}
	}
	return n, nil
}

func parseFile(data []byte) (Node, error) {
	switch {
	case len(data) == 0:
		return Node{}, errors.New("the file is empty")
	case len(data) > MaxFile:
		return Node{}, fmt.Errorf("the file has %d bytes, at most %d are allowed", len(data), MaxFile)
	case !bytes.HasPrefix(data, []byte(fileHead)):
		return Node{}, errors.New("the file does not begin as a node")
	case len(data) < payloadStart:
		return Node{}, errors.New("the file is cut short")
	case string(data[payloadStart-len(fileMiddle):payloadStart]) != fileMiddle:
		return Node{}, errors.New("the file is damaged near its beginning")
	}
	end, timestamp, ok := findTail(data)
	if !ok {
		return Node{}, errors.New("the file is cut short, or its end is damaged")
	}
	typ := data[len(fileHead) : len(fileHead)+13]
	return Node{Type: Hash(typ), Payload: data[payloadStart:end:end], Timestamp: timestamp}, nil
}

// isCut reports whether data, which is no whole file, is one as far as it goes.
func isCut(data []byte) bool {
	data = bytes.TrimRight(data, "\x00")
	head := data[:min(len(data), len(fileHead))]
	return strings.HasPrefix(fileHead, string(head)) &&
		(len(data) < payloadStart || string(data[payloadStart-len(fileMiddle):payloadStart]) == fileMiddle)
}

// findTail finds where the payload ends. The key of the timestamp cannot overlap
// itself, so at most one length of the integer fits.
func findTail(data []byte) (end int, timestamp int64, ok bool) {
	for _, size := range []int{9, 5, 3, 2, 1} {
		end := len(data) - size - len(fileTail)
		if end <= payloadStart || string(data[end:len(data)-size]) != fileTail {
			continue
		}
		n, ok := parseUint(data[len(data)-size:])
		return end, int64(n), ok && n <= maxSafe
	}
	return 0, 0, false
}

// appendUint writes an unsigned integer in its shortest form.
func appendUint(b []byte, n uint64) []byte {
	switch {
	case n < 24:
		return append(b, byte(n))
	case n < 1<<8:
		return append(b, 24, byte(n))
	case n < 1<<16:
		return binary.BigEndian.AppendUint16(append(b, 25), uint16(n))
	case n < 1<<32:
		return binary.BigEndian.AppendUint32(append(b, 26), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(b, 27), n)
}

// parseUint reads b, all of it, as an unsigned integer in its shortest form.
func parseUint(b []byte) (uint64, bool) {
	c := checker{data: b}
	major, n, err := c.head()
	return n, err == nil && major == majorUint && c.pos == len(b)
}
