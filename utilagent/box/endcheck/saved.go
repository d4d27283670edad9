package endcheck

import (
	"io/fs"
	"math"
	"path/filepath"

	"github.com/fxamacker/cbor/v2"

	"github.com/united-workforce/uwf/util/codec"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/safeopen"
)

const (
	maxState     = 256 << 20
	stateVersion = "uwf-workspace-2"
)

// write saves a state. It encodes directories without reflection, because thousands of them may be read before
// each command.
func write(path string, s state) error {
	rest, err := cbor.Marshal(s)
	if err != nil {
		return err
	}
	if err := durable.OS().MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	text := codec.Encode(func(c *codec.Coder) { s.code(c, string(rest)) })
	return durable.Replace(durable.OS(), path, text, 0o600)
}

func read(path string) (s state, err error) {
	text, err := safeopen.ReadFile(path, maxState, safeopen.NoFollow)
	if err != nil {
		return s, err
	}
	rest := ""
	if err := codec.Decode(text, func(c *codec.Coder) { rest = s.code(c, "") }); err != nil {
		return s, err
	}
	// File names needn't be UTF-8, and the size of the file bounds the number of entries.
	mode, err := cbor.DecOptions{
		UTF8: cbor.UTF8DecodeInvalid, MaxArrayElements: math.MaxInt32, MaxMapPairs: math.MaxInt32,
	}.DecMode()
	if err == nil {
		err = mode.Unmarshal([]byte(rest), &s)
	}
	return s, err
}

// code encodes or decodes the directories of a state and rest, its other fields in CBOR. It returns rest.
func (s *state) code(c *codec.Coder, rest string) string {
	if !c.Version(stateVersion) {
		return ""
	}
	c.Text(&rest)
	list := make([]named, 0, len(s.Dirs))
	for at, d := range s.Dirs {
		list = append(list, named{at, d})
	}
	codec.List(c, &list, func(n *named) { n.code(c) })
	if c.Decodes() {
		s.Dirs = make(map[string]*dir, len(list))
		for _, n := range list {
			s.Dirs[n.at] = n.dir
		}
	}
	return rest
}

// named is a directory with its path.
type named struct {
	at string
	*dir
}

func (n *named) code(c *codec.Coder) {
	if c.Text(&n.at); c.Decodes() {
		n.dir = &dir{}
	}
	st, perm := &n.Stamp, uint64(n.Stamp.Perm)
	for _, number := range []*uint64{&perm, &st.Dev, &st.Ino} {
		c.Uint(number)
	}
	st.Perm = fs.FileMode(perm)
	for _, number := range []*int64{&st.Changed, &st.Modified, &st.Size, &n.Noted} {
		c.Int(number)
	}
	for _, is := range []*bool{&st.Dir, &st.File, &n.Bare, &n.Named} {
		c.Bool(is)
	}
	for _, list := range []*[]string{&n.Dirs, &n.Git, &n.Obeyed, &n.Secrets, &n.Links} {
		codec.List(c, list, c.Text)
	}
}
