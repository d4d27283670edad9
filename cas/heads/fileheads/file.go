package fileheads

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/careful"
	"github.com/united-workforce/uwf/util/durable"
)

// file is threads.yaml or registry.yaml, read to be looked up and edited. While
// its text is in our form, both are done in the text (ours.go), so that
// 100,000 threads cost little more than reading and writing them. In any doubt
// the text is parsed into a table, which then counts.
type file struct {
	path  string
	keys  rule
	head  string // our first lines, if there are any; else ""
	facts int    // how many lines facts.jsonl has, as those say; -1: they do not
	ours  *ours  // nil: the table counts
	table *table // nil: not parsed yet
}

// read reads a file. One that does not exist is empty.
func (x *Heads) read(ctx context.Context, name string) (*file, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	text, err := readText(x.path(name), x.spare())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if name == threadsFile {
		lines, head := text, ""
		if bytes.HasPrefix(text, []byte(saysFacts)) {
			at := len(saysFacts)
			if _, counts := factsCount(string(firstLine(text[at:], 0))); counts {
				at += len(firstLine(text[at:], 0))
			}
			head, lines = string(text[:at]), text[at:]
		}
		inOurForm := areHeads(lines)
		if !inOurForm {
			lines = text
		}
		f := newFile(x.path(name), lines, threadProblem, inOurForm)
		if inOurForm {
			f.head = head
			_, f.facts = saysOf(head)
		} else {
			_, f.facts = saysOf(strings.Join(f.table.comments, "\n") + "\n")
		}
		return f, nil
	}
	return newFile(x.path(name), text, anyKey, isOurs(text)), nil
}

func newFile(path string, text []byte, keys rule, inOurForm bool) *file {
	f := &file{path: path, keys: keys}
	if inOurForm {
		f.ours = &ours{text: text}
	} else {
		f.table = parseTable(path, string(text), keys)
	}
	return f
}

// maxFile bounds each file, in bytes: it is read as a whole.
const maxFile = 512 << 20

// readLog reads a file of lines. A link is followed: a person may keep the files
// of the home elsewhere.
func (x *Heads) readLog(file string) ([]byte, error) {
	return careful.ReadFile(x.path(file), maxFile, careful.Follow)
}

// readText reads a file into memory that has room for another line: into spare, if
// that is enough.
func readText(path string, spare []byte) (_ []byte, err error) {
	f, err := careful.OpenMax(path, maxFile, careful.Follow)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if room := int(info.Size()) + 1024; cap(spare) < room {
		spare = make([]byte, 0, room)
	}
	text := bytes.NewBuffer(spare[:0])
	_, err = text.ReadFrom(f) // io.Copy would copy twice
	return text.Bytes(), err
}

// spare is the text of a file that is not looked at any more, if there is one. A
// step reads the heads three times, and those of 100,000 threads are 4 MB.
func (x *Heads) spare() []byte {
	text, _ := x.texts.Get().(*[]byte)
	if text == nil {
		return nil
	}
	return *text
}

// done says that a file is not looked at any more.
func (x *Heads) done(f *file) {
	if f.ours != nil {
		x.texts.Put(&f.ours.text)
	}
}

// parsed is the table, which counts from now on.
func (f *file) parsed() *table {
	if f.table == nil {
		f.table = parseTable(f.path, f.head+string(f.ours.text), f.keys)
	}
	f.ours = nil
	return f.table
}

// get returns the hash of a key, "" if there is none; an error if a line that
// cannot be read mentions the key.
func (f *file) get(key string) (protocol.Hash, error) {
	if f.ours != nil {
		if h, ok := f.ours.get(key); ok {
			return h, nil
		}
	}
	return f.parsed().get(key)
}

func (f *file) set(key string, h protocol.Hash) {
	if f.ours == nil || !f.ours.set(newEntry(key, h)) {
		f.parsed().set(key, h)
	}
}

func (f *file) remove(key string) {
	if f.ours != nil {
		f.ours.remove(key)
		return
	}
	f.table.remove(key)
}

// writable is an error if a write would lose what cannot be read.
func (f *file) writable() error {
	if f.ours != nil {
		return nil
	}
	return f.table.writable()
}

// save replaces the file. Lines that cannot be read stay.
func (x *Heads) save(f *file) error {
	if err := f.writable(); err != nil {
		return err
	}
	return durable.WriteFile(x.fsys, f.path, f.render(), 0o644)
}

func (f *file) render() []byte {
	if f.ours == nil {
		return f.table.render()
	}
	if f.head == "" {
		return f.ours.text
	}
	return append([]byte(f.head), f.ours.text...)
}
