package index

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
)

// table is the content of threads.yaml or registry.yaml.
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

// read reads a file. A file that does not exist is empty.
func (x *Index) read(ctx context.Context, file string) (*table, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	text, err := readText(x.path(file))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return parseTable(x.path(file), text), nil
}

// readText reads a file without a second copy in memory, which for 100,000
// threads would cost as much as reading it.
func readText(path string) (_ string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	var text strings.Builder
	text.Grow(int(info.Size()))
	_, err = io.Copy(&text, f)
	return text.String(), err
}

// parseTable reads by lines; only when a line is not in our form, the text as
// YAML. A text that is not good YAML either counts as it can be read best.
func parseTable(path, text string) *table {
	t := parseLines(path, text)
	if len(t.bad) == 0 {
		return t
	}
	if y := parseReshaped(path, text, t.comments); y != nil && (len(y.bad) == 0 || len(y.entries) > len(t.entries)) {
		return y
	}
	return t
}

const byteOrderMark = "\ufeff"

func parseLines(path, text string) *table {
	t := &table{path: path, entries: make([]entry, 0, strings.Count(text, "\n")+1)}
	text = strings.TrimPrefix(text, byteOrderMark)
	var numbers []int // of the lines that entries come from
	for number := 1; text != ""; number++ {
		line, rest, _ := strings.Cut(text, "\n")
		text = rest
		if e, ok := parseLine(line); ok {
			t.entries = append(t.entries, e)
			numbers = append(numbers, number)
			continue
		}
		switch content := strings.TrimSpace(line); {
		case content == "":
		case content[0] == '#':
			t.comments = append(t.comments, content)
		default:
			t.bad = append(t.bad, badLine{number, strings.TrimRight(line, "\r"), whyNot(line)})
		}
	}
	t.settle(numbers)
	return t
}

// settle sorts the entries, given the lines that they come from, and takes out
// those whose key has two hashes: nobody can tell which one is right.
func (t *table) settle(numbers []int) {
	inOrder := true
	for i := 1; i < len(t.entries) && inOrder; i++ {
		inOrder = t.entries[i-1].key < t.entries[i].key
	}
	if inOrder {
		return
	}
	type numbered struct {
		entry
		number int
	}
	all := make([]numbered, len(t.entries))
	for i, e := range t.entries {
		all[i] = numbered{e, numbers[i]}
	}
	slices.SortStableFunc(all, func(a, b numbered) int { return strings.Compare(a.key, b.key) })
	t.entries = t.entries[:0]
	for i := 0; i < len(all); {
		same := i + 1
		contradicted := false
		for ; same < len(all) && all[same].key == all[i].key; same++ {
			contradicted = contradicted || all[same].hash != all[i].hash
		}
		if !contradicted {
			t.entries = append(t.entries, all[i].entry)
		} else {
			for _, e := range all[i:same] {
				line := strings.TrimSuffix(string(appendLine(nil, e.entry)), "\n")
				t.bad = append(t.bad, badLine{e.number, line, fmt.Sprintf("%s has two hashes: keep one line", e.key)})
			}
		}
		i = same
	}
	slices.SortFunc(t.bad, func(a, b badLine) int { return a.number - b.number })
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

// mentions tells whether a text contains a key as a word.
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
	return fmt.Errorf("nothing can be changed before this is mended: %w", t.problem(t.bad[0]))
}

// save replaces the file. Lines that cannot be read stay, behind the others.
func (x *Index) save(t *table) error {
	return durable.WriteFile(x.fsys, t.path, t.render(), 0o644)
}

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
