package castest

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/record"
)

// Record is a record in the log of a store on disk, for tests that damage it.
type Record struct {
	t    require.TestingT
	Path string // of the segment
	At   int    // of the record in it
	Head record.Header
}

// FindRecord returns the newest record of one of some kinds in the log of the store at dir; by default of a node or
// tombstone. If it is in a pack, the packs become segments first. The hash of a home is that of its path.
func FindRecord(t require.TestingT, dir string, h cas.Hash, kinds ...record.Kind) Record {
	if len(kinds) == 0 {
		kinds = []record.Kind{record.Node, record.Tombstone}
	}
	found := find(t, dir, h, kinds...)
	if found.Path == "" {
		unpack(t, dir)
		found = find(t, dir, h, kinds...)
	}
	require.NotEmpty(t, found.Path, "%s is not in the log of %s", h, dir)
	return found
}

// unpack makes the packs segments, newer than the others.
func unpack(t require.TestingT, dir string) {
	packs, err := filepath.Glob(filepath.Join(dir, "packs", "*.pack"))
	require.NoError(t, err)
	next := 1
	for _, pattern := range []string{"log/*.seg", "packs/*.pack"} {
		names, err := filepath.Glob(filepath.Join(dir, pattern))
		require.NoError(t, err)
		for _, name := range names {
			var number int
			_, err := fmt.Sscanf(filepath.Base(name), "%d", &number)
			require.NoError(t, err)
			next = max(next, number+1)
		}
	}
	for i, path := range packs {
		records := contents(t, path)
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "log"), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "log", fmt.Sprintf("%08d.seg", next+i)), records, 0o644))
		require.NoError(t, os.Remove(path))
	}
}

// contents returns the content of a file, of a pack the uncompressed one.
func contents(t require.TestingT, path string) []byte {
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	if filepath.Ext(path) != ".pack" {
		return data
	}
	decoder, err := zstd.NewReader(bytes.NewReader(data))
	require.NoError(t, err)
	defer decoder.Close()
	data, err = io.ReadAll(decoder)
	require.NoError(t, err)
	return data
}

// RequireErased checks that no file of the store at dir contains a text, not even compressed.
func RequireErased(t require.TestingT, dir string, text []byte) {
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			require.False(t, bytes.Contains(contents(t, path), text), path)
		}
		return err
	}))
}

func find(t require.TestingT, dir string, h cas.Hash, kinds ...record.Kind) Record {
	segments, err := filepath.Glob(filepath.Join(dir, "log", "*.seg"))
	require.NoError(t, err)
	found := Record{t: t}
	for _, path := range segments {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		for at, head := range record.Scan(data) {
			if head.Hash == h.Number() && slices.Contains(kinds, head.Kind) {
				found.Path, found.At, found.Head = path, at, head
			}
		}
	}
	return found
}

// Body returns the body of the record.
func (r Record) Body() []byte {
	data, err := os.ReadFile(r.Path)
	require.NoError(r.t, err)
	start := r.At + record.HeaderSize
	return data[start : start+r.Head.Length]
}

// Overwrite replaces bytes of the body, from an offset on.
func (r Record) Overwrite(at int, with []byte) {
	require.LessOrEqual(r.t, at+len(with), r.Head.Length)
	r.write(r.At+record.HeaderSize+at, with)
}

// Flip flips a bit in the middle of the body.
func (r Record) Flip() {
	middle := r.Head.Length / 2
	r.Overwrite(middle, []byte{r.Body()[middle] ^ 1})
}

// Tear replaces the second half of the body by zeros, as a power cut can.
func (r Record) Tear() {
	half := r.Head.Length / 2
	r.Overwrite(half, make([]byte, r.Head.Length-half))
}

// Replace replaces the record by one with another body.
func (r Record) Replace(body []byte) Record {
	r.Lose()
	return Forge(r.t, filepath.Dir(filepath.Dir(r.Path)), r.Head.Kind, r.Head.Hash, body)
}

// Forge appends a record to the log of the store at dir, whatever its body.
func Forge(t require.TestingT, dir string, kind record.Kind, hash uint64, body []byte) Record {
	segments, err := filepath.Glob(filepath.Join(dir, "log", "*.seg"))
	require.NoError(t, err)
	r := Record{t: t, Path: filepath.Join(dir, "log", "00000001.seg"), Head: record.Header{Kind: kind, Length: len(body), Hash: hash}}
	if n := len(segments); n > 0 {
		r.Path = segments[n-1]
	}
	index, _ := os.ReadFile(strings.TrimSuffix(r.Path, ".seg") + ".idx") // it needn't exist
	if bytes.HasPrefix(index, []byte("uwf index")) {                     // the segment is sealed
		var number int
		_, err := fmt.Sscanf(filepath.Base(r.Path), "%d.seg", &number)
		require.NoError(t, err)
		r.Path = filepath.Join(dir, "log", fmt.Sprintf("%08d.seg", number+1))
	}
	if info, err := os.Stat(r.Path); err == nil {
		r.At = int(info.Size())
	}
	r.write(r.At, record.Append(nil, kind, hash, body))
	return r
}

// Lose overwrites the whole record with zeros.
func (r Record) Lose() {
	r.write(r.At, make([]byte, r.Head.Size()))
}

func (r Record) write(at int, with []byte) {
	f, err := os.OpenFile(r.Path, os.O_WRONLY|os.O_CREATE, 0o644)
	require.NoError(r.t, err)
	_, err = f.WriteAt(with, int64(at))
	require.NoError(r.t, err)
	require.NoError(r.t, f.Close())
}
