package index

import (
	"bytes"
	"slices"

	"github.com/united-workforce/uwf/protocol"
)

// ours is a text in our form: plain lines, their keys in order, none twice. It
// is looked up and edited as it is. Methods that return false could not be
// sure that a table would say the same.
//
// A line whose hash has wrong characters counts as ours until it is asked for:
// to check every character of 100,000 lines costs more than to read them.
type ours struct{ text []byte }

// behindKey is what follows the key of a line, its end included.
const behindKey = len(": ") + protocol.HashLen + len("\n")

// isOurs tells whether a text is in our form.
func isOurs(text []byte) bool {
	lines := 0
	var last []byte
	for rest := text; len(rest) > 0; lines++ {
		end := bytes.IndexByte(rest, '\n') + 1
		if end <= behindKey {
			return false
		}
		key := rest[:end-behindKey]
		if rest[len(key)] != ':' || rest[len(key)+1] != ' ' || bytes.Compare(last, key) >= 0 {
			return false
		}
		last, rest = key, rest[end:]
	}
	return bytes.Count(text, []byte(":")) == lines && bytes.Count(text, []byte(" ")) == lines && isPlain(text)
}

// isPlain tells whether a text has no character that our lines do not have.
func isPlain(text []byte) bool {
	all := byte(inLine)
	for _, c := range text {
		all &= class[c]
	}
	return all != 0
}

// get returns the hash of a key, "" if there is none.
func (o *ours) get(key string) (protocol.Hash, bool) {
	start, end := o.find(key)
	if start == end {
		return "", true
	}
	e, ok := parseLine(string(o.text[start : end-1]))
	return e.hash, ok && e.key == key
}

func (o *ours) set(e entry) bool {
	if !e.plain {
		return false
	}
	start, end := o.find(e.key)
	o.text = slices.Replace(o.text, start, end, appendLine(nil, e)...)
	return true
}

func (o *ours) remove(key string) {
	start, end := o.find(key)
	o.text = slices.Delete(o.text, start, end)
}

// find returns where the line of a key is, or where it would be if there is none.
func (o *ours) find(key string) (start, end int) {
	low, high := 0, len(o.text)
	for low < high {
		middle := low + (high-low)/2
		start := low + bytes.LastIndexByte(o.text[low:middle], '\n') + 1
		end := start + bytes.IndexByte(o.text[start:], '\n') + 1
		switch bytes.Compare(o.text[start:end-behindKey], []byte(key)) {
		case -1:
			low = end
		case 0:
			return start, end
		case 1:
			high = start
		}
	}
	return low, low
}
