package endcheck

import (
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"github.com/fxamacker/cbor/v2"

	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/safeopen"
)

// A saved state is two files: one with the directories and repositories, which is also the index of the next run
// and shared with it by a hard link, and a small one with the rest. So a run in an unchanged workspace writes
// nothing about its directories.

const (
	maxState = 256 << 20
	seenFile = ".seen"
)

// seen is the content of the larger file.
type seen struct {
	Workspace string
	Dirs      map[string]*dir
	Repos     map[string]*repo
	file      os.FileInfo // nil if it is not in a file
}

// keepIndex saves the cache for the next run, which is slower without it.
func (b *Before) keepIndex() {
	if b.Index != "" {
		b.file, _ = b.seen.write(b.Index)
	}
}

// Save writes b to files, for a process that calls End after this one was killed.
func (b *Before) Save(path string) error {
	text, err := cbor.Marshal(b.state)
	if err != nil {
		return err
	}
	if !b.linkIndex(path + seenFile) {
		if _, err := b.seen.write(path + seenFile); err != nil {
			return err
		}
	}
	return durable.Replace(durable.OS(), path, text, 0o600)
}

// linkIndex reports whether the index could be linked, and still has the content that this run has noted.
func (b *Before) linkIndex(as string) bool {
	if b.file == nil || os.Link(b.Index, as) != nil {
		return false
	}
	info, err := os.Lstat(as)
	return err == nil && os.SameFile(info, b.file)
}

// Load reads files written by Save.
func Load(path string, allowed func(path string) bool) (*Before, error) {
	b := &Before{}
	text, err := safeopen.ReadFile(path, maxState, safeopen.NoFollow)
	if err == nil {
		err = decode(text, &b.state)
	}
	if err == nil {
		b.seen, err = readSeen(path + seenFile)
	}
	if err == nil && b.Workspace == "" {
		err = errDamaged
	}
	b.connect(allowed, nil)
	return b, err
}

// decode accepts file names that are not UTF-8. The size of the file bounds the number of entries.
func decode(text []byte, v any) error {
	mode, err := cbor.DecOptions{
		UTF8: cbor.UTF8DecodeInvalid, MaxArrayElements: math.MaxInt32, MaxMapPairs: math.MaxInt32,
	}.DecMode()
	if err != nil {
		return err
	}
	return mode.Unmarshal(text, v)
}

// write replaces a file and describes it.
func (s seen) write(path string) (os.FileInfo, error) {
	repos, err := cbor.Marshal(s.Repos)
	if err != nil {
		return nil, err
	}
	text := append(appendText(appendText(nil, seenVersion), s.Workspace), binary.AppendUvarint(nil, uint64(len(repos)))...)
	text = binary.AppendUvarint(append(text, repos...), uint64(len(s.Dirs)))
	for at, d := range s.Dirs {
		text = d.append(appendText(text, at))
	}
	if err := durable.OS().MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	temp, err := durable.OS().WriteTemp(path, text, 0o600, durable.NoFlush)
	if err != nil {
		return nil, err
	}
	info, err := os.Lstat(temp) // before it has a name under which another run could replace it
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		return nil, errors.Join(err, os.Remove(temp))
	}
	return info, nil
}

// readSeen reads a file written by write.
func readSeen(path string) (s seen, err error) {
	f, err := safeopen.Open(path, safeopen.NoFollow)
	if err != nil {
		return s, err
	}
	defer f.Close() // opened for reading
	if s.file, err = f.Stat(); err != nil {
		return s, err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxState))
	if err != nil {
		return s, err
	}
	r := &reader{data: text, text: string(text)}
	if r.string() != seenVersion {
		return s, errDamaged
	}
	s.Workspace = r.string()
	if err := decode([]byte(r.string()), &s.Repos); err != nil {
		return s, err
	}
	n := r.count()
	dirs := make([]dir, n)
	s.Dirs = make(map[string]*dir, n)
	for i := range dirs {
		at := r.string()
		r.dir(&dirs[i])
		s.Dirs[at] = &dirs[i]
	}
	if r.bad {
		return seen{}, errDamaged
	}
	return s, nil
}

// seenVersion is the version of the format: lengths and numbers as varints, since a workspace can have thousands of
// directories and is read before each command.
const seenVersion = "uwf-seen-2"

var errDamaged = errors.New("damaged")

func appendText(to []byte, text string) []byte {
	return append(binary.AppendUvarint(to, uint64(len(text))), text...)
}

// The bits of a directory's flags.
const (
	flagDir = 1 << iota
	flagFile
	flagBare
	flagNamed
)

func (d *dir) append(to []byte) []byte {
	s, flags := d.Stamp, uint64(0)
	for bit, set := range map[uint64]bool{flagDir: s.Dir, flagFile: s.File, flagBare: d.Bare, flagNamed: d.Named} {
		if set {
			flags |= bit
		}
	}
	for _, n := range []uint64{flags, uint64(s.Perm), s.Dev, s.Ino, uint64(s.Changed), uint64(s.Modified), uint64(s.Size), uint64(d.Noted)} {
		to = binary.AppendUvarint(to, n)
	}
	for _, list := range d.lists() {
		to = binary.AppendUvarint(to, uint64(len(*list)))
		for _, name := range *list {
			to = appendText(to, name)
		}
	}
	return to
}

func (d *dir) lists() []*[]string {
	return []*[]string{&d.Dirs, &d.Git, &d.Obeyed, &d.Secrets, &d.Links}
}

// reader decodes what write encodes. Strings share the memory of text.
type reader struct {
	data []byte
	text string // the same
	at   int
	bad  bool
}

func (r *reader) number() uint64 {
	n, size := binary.Uvarint(r.data[r.at:])
	if size <= 0 {
		r.bad, r.at = true, len(r.data)
		return 0
	}
	r.at += size
	return n
}

// count returns a number of items, each of which has at least one byte.
func (r *reader) count() int {
	n := r.number()
	if n > uint64(len(r.data)-r.at) {
		r.bad, n = true, 0
	}
	return int(n)
}

func (r *reader) string() string {
	n := r.count()
	r.at += n
	return r.text[r.at-n : r.at]
}

func (r *reader) dir(d *dir) {
	flags, s := r.number(), &d.Stamp
	s.Dir, s.File, d.Bare, d.Named = flags&flagDir != 0, flags&flagFile != 0, flags&flagBare != 0, flags&flagNamed != 0
	s.Perm, s.Dev, s.Ino = fs.FileMode(r.number()), r.number(), r.number()
	s.Changed, s.Modified, s.Size, d.Noted = int64(r.number()), int64(r.number()), int64(r.number()), int64(r.number())
	for _, list := range d.lists() {
		n := r.count()
		if n == 0 {
			continue
		}
		*list = make([]string, n)
		for i := range *list {
			(*list)[i] = r.string()
		}
	}
}
