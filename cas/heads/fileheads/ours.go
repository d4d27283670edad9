package fileheads

import (
	"bytes"
	"slices"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/threadid"
)

// ours is a text in our form: plain lines, their keys in order, none twice. It is searched
// and edited in place. A method that returns false could not be sure to agree with the
// parsed table.
//
// In registry.yaml a line whose hash has wrong characters counts as ours until it
// is asked for.
type ours struct{ text []byte }

// behindKey is what follows the key of a line, its end included.
const behindKey = len(": ") + protocol.HashLen + len("\n")

// isOurs reports whether a text is in our form.
func isOurs(text []byte) bool {
	lines := 0
	var last, line []byte
	for rest := text; len(rest) > 0; lines++ {
		line = firstLine(rest, len(line))
		if len(line) <= behindKey {
			return false
		}
		key := line[:len(line)-behindKey]
		if line[len(key)] != ':' || line[len(key)+1] != ' ' || bytes.Compare(last, key) >= 0 {
			return false
		}
		last, rest = key, rest[len(line):]
	}
	for _, once := range []string{"\n", ":", " "} {
		if bytes.Count(text, []byte(once)) != lines {
			return false
		}
	}
	return isPlain(text)
}

// headLine is the length of a line of threads.yaml.
const headLine = threadid.Len + behindKey

// areHeads reports whether a text is in our form, with thread ids as keys, all
// canonical: then each line is as long as the others.
func areHeads(text []byte) bool {
	if len(text)%headLine != 0 {
		return false
	}
	all := byte(inHead)
	var last []byte
	for ; len(text) > 0; text = text[headLine:] {
		key, behind := text[:threadid.Len], text[threadid.Len:headLine]
		if behind[0] != ':' || behind[1] != ' ' || behind[behindKey-1] != '\n' || key[0] > '7' || behind[2] > 'F' || bytes.Compare(last, key) >= 0 {
			return false
		}
		for _, c := range key {
			all &= class[c]
		}
		for _, c := range behind[2 : behindKey-1] {
			all &= class[c]
		}
		if !plainHash(string(behind[2:behindKey-1])) || !plainKey(string(key)) {
			return false
		}
		last = key
	}
	return all != 0
}

// firstLine is the first line of a text, its end included. Most lines are as long
// as those before them, so it looks there first; a shorter line inside is noticed when all
// line ends are counted.
func firstLine(text []byte, likely int) []byte {
	if likely > 0 && likely <= len(text) && text[likely-1] == '\n' {
		return text[:likely]
	}
	return text[:bytes.IndexByte(text, '\n')+1]
}

// isPlain reports whether a text has only characters that our lines have.
func isPlain(text []byte) bool {
	all := byte(inLine)
	for ; len(text) >= 8; text = text[8:] {
		all &= class[text[0]] & class[text[1]] & class[text[2]] & class[text[3]] &
			class[text[4]] & class[text[5]] & class[text[6]] & class[text[7]]
	}
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
