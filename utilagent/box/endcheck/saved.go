package endcheck

import (
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"github.com/fxamacker/cbor/v2"

	"github.com/united-workforce/uwf/util/codec"
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
		err = codec.ErrDamaged
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
	text := codec.Encode(func(c *codec.Coder) { s.code(c, &repos) })
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
	var repos []byte
	if err := codec.Decode(text, func(c *codec.Coder) { s.code(c, &repos) }); err != nil {
		return seen{}, err
	}
	return s, decode(repos, &s.Repos)
}

func (s *seen) code(c *codec.Coder, repos *[]byte) {
	if !c.Version("uwf-seen-2") {
		return
	}
	c.Text(&s.Workspace)
	text := string(*repos)
	c.Text(&text)
	*repos = []byte(text)
	list := make([]named, 0, len(s.Dirs))
	for at, d := range s.Dirs {
		list = append(list, named{at, d})
	}
	codec.List(c, &list, func(n *named) { n.code(c) })
	if s.Dirs == nil {
		s.Dirs = make(map[string]*dir, len(list))
	}
	for _, n := range list {
		s.Dirs[n.at] = n.dir
	}
}

// named is a directory with its path.
type named struct {
	at string
	*dir
}

func (n *named) code(c *codec.Coder) {
	if c.Text(&n.at); n.dir == nil {
		n.dir = &dir{}
	}
	d, perm := n.dir, uint64(0)
	perm = uint64(d.Stamp.Perm)
	for _, n := range []*uint64{&perm, &d.Stamp.Dev, &d.Stamp.Ino} {
		c.Uint(n)
	}
	d.Stamp.Perm = fs.FileMode(perm)
	for _, n := range []*int64{&d.Stamp.Changed, &d.Stamp.Modified, &d.Stamp.Size, &d.Noted} {
		c.Int(n)
	}
	for _, b := range []*bool{&d.Stamp.Dir, &d.Stamp.File, &d.Bare, &d.Named} {
		c.Bool(b)
	}
	for _, list := range []*[]string{&d.Dirs, &d.Git, &d.Obeyed, &d.Secrets, &d.Links} {
		codec.List(c, list, c.Text)
	}
}
