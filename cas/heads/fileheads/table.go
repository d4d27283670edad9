package fileheads

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/threadid"
)

// rule says why a key may not be in a file, "" if it may.
type rule func(key string) (problem string)

// anyKey is the rule of registry.yaml: [heads.Named] reports names that are none.
func anyKey(string) string { return "" }

// threadProblem is the rule of threads.yaml.
func threadProblem(key string) string {
	if threadid.Valid(key) {
		return ""
	}
	return fmt.Sprintf("%q is not a thread id", key)
}

// table is the content of threads.yaml or registry.yaml, parsed.
type table struct {
	path     string
	comments []string // whole lines
	entries  []entry  // sorted by key, each key once
	bad      []badLine
	// frozen: bad lines that lines alone cannot keep, so the table may not be
	// written (reshaped.go).
	frozen bool
}

// badLine is what cannot be read. It stays in the file as it is.
type badLine struct {
	number int // from 1
	text   string
	reason string
}

// get returns the hash of a key, "" if there is none; an error if a line that
// cannot be read mentions the key.
func (t *table) get(key string) (protocol.Hash, error) {
	if i, ok := t.find(key); ok {
		return t.entries[i].hash, nil
	}
	for _, b := range t.bad {
		if mentions(b.text, key) {
			return "", t.problem(b)
		}
	}
	return "", nil
}

func (t *table) set(key string, h protocol.Hash) {
	i, ok := t.find(key)
	if ok {
		t.entries[i] = newEntry(key, h)
		return
	}
	t.entries = slices.Insert(t.entries, i, newEntry(key, h))
}

func (t *table) remove(key string) {
	if i, ok := t.find(key); ok {
		t.entries = slices.Delete(t.entries, i, i+1)
	}
}

func (t *table) find(key string) (int, bool) {
	return slices.BinarySearchFunc(t.entries, key, func(e entry, key string) int { return strings.Compare(e.key, key) })
}

// mentions reports whether a text contains a key as a word.
func mentions(text, key string) bool {
	inWord := func(c byte) bool { return class[c]&inKey != 0 }
	for at := 0; ; {
		i := strings.Index(text[at:], key)
		if i < 0 {
			return false
		}
		start, end := at+i, at+i+len(key)
		if (start == 0 || !inWord(text[start-1])) && (end == len(text) || !inWord(text[end])) {
			return true
		}
		at = end
	}
}

func (t *table) problem(b badLine) error { return invalid(t.path, b.number, b.reason) }

// problems joins the errors for all lines that cannot be read.
func (t *table) problems() error {
	var err error
	for _, b := range t.bad {
		err = errors.Join(err, t.problem(b))
	}
	return err
}

// writable is an error if a write would lose what cannot be read.
func (t *table) writable() error {
	if !t.frozen {
		return nil
	}
	return invalid(t.path, t.bad[0].number, t.bad[0].reason+"; until this is fixed, nothing in the file can be changed")
}

// render writes the table in our form. Lines that cannot be read stay, behind the
// others.
func (t *table) render() []byte {
	var out bytes.Buffer
	out.Grow(48 * (len(t.entries) + len(t.bad) + len(t.comments)))
	for _, c := range t.comments {
		out.WriteString(c + "\n")
	}
	for _, e := range t.entries {
		out.Write(appendLine(out.AvailableBuffer(), e))
	}
	for _, b := range t.bad {
		out.WriteString(b.text + "\n")
	}
	return out.Bytes()
}
