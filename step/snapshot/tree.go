package snapshot

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sort"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/gitindex"
	"github.com/united-workforce/uwf/util/gitobject"
	"github.com/united-workforce/uwf/util/safeopen"
)

// writeTree does the same as git write-tree for s.Index, which would write the whole index again. The former tree is
// complete, so only directories with changes can have a new tree. It writes these to apart, a directory for new objects,
// after it has checked that the objects in them exist. ok is false if git has to do it: the former tree is unknown, or
// something is unusual or missing.
func writeTree(s Spec, apart string, changes ...[]string) (root protocol.Tree, ok bool) {
	data, err := safeopen.ReadFile(s.Index, gitindex.MaxBytes, safeopen.NoFollow)
	info, lost := os.Lstat(s.Index)
	zip, wrong := zlib.NewWriterLevel(nil, zlib.BestSpeed)
	if s.Tree == "" || s.Partial || errors.Join(err, lost, wrong) != nil {
		return "", false
	}
	changed := map[string]bool{"": true, ".": true}
	for _, file := range slices.Concat(changes...) {
		for dir := path.Dir(file); !changed[dir]; dir = path.Dir(dir) {
			changed[dir] = true
		}
	}
	objects := filepath.Join(s.Git, "objects")
	packs := packed(objects, len(sumOf(s.Tree))/2)
	sum, ok := gitindex.Trees(data, len(sumOf(s.Tree))/2, func(dir, tree []byte) ([]byte, bool) {
		id := gitobject.ID(gitobject.Directory, tree, s.Tree.Function())
		name, err := hex.DecodeString(sumOf(id))
		// If a new tree exists, it must not be older than its use, because git prune would delete it.
		touch := func() error { return os.Chtimes(loosePath(objects, sumOf(id)), info.ModTime(), info.ModTime()) }
		if err != nil || !changed[string(dir)] || touch() == nil {
			return name, err == nil
		}
		entries, err := gitobject.Parse(id, tree)
		lacks := func(e gitobject.Entry) bool {
			sum, wrong := hex.DecodeString(sumOf(e.ID))
			isThere := e.IsRepository() || isPacked(packs, sum) || !IsGone(loosePath(objects, sumOf(e.ID))) ||
				!IsGone(loosePath(apart, sumOf(e.ID)))
			return wrong != nil || !isThere
		}
		if err != nil || slices.ContainsFunc(entries, lacks) {
			return nil, false
		}
		return name, writeLoose(zip, loosePath(apart, sumOf(id)), tree) == nil
	})
	return treeOf(hex.EncodeToString(sum)), ok
}

// writeLoose writes a tree as a loose object; it keeps an existing one.
func writeLoose(zip *zlib.Writer, at string, tree []byte) error {
	var b bytes.Buffer
	zip.Reset(&b)
	_, err := fmt.Fprintf(zip, "tree %d\x00%s", len(tree), tree)
	if err = errors.Join(err, zip.Close(), os.MkdirAll(filepath.Dir(at), 0o700)); err != nil || !IsGone(at) {
		return err
	}
	return os.WriteFile(at, b.Bytes(), 0o400)
}

// maxPacked bounds the index of a pack, in bytes; git looks into a larger one.
const maxPacked = 32 << 20

// packed returns the sorted hashes of each pack, from its index (gitformat-pack(5), version 2): a header, for each byte the
// number of hashes up to those that start with it, and the hashes.
func packed(objects string, size int) (packs [][]byte) {
	const magic, hashes = "\xfftOc\x00\x00\x00\x02", 8 + 256*4
	names, _ := fs.Glob(os.DirFS(objects), "pack/pack-*.idx") // the pattern is valid
	for _, name := range names {
		index, err := safeopen.ReadFile(filepath.Join(objects, name), maxPacked, safeopen.NoFollow)
		if err != nil || len(index) < hashes || string(index[:len(magic)]) != magic {
			continue
		}
		end := hashes + size*int(binary.BigEndian.Uint32(index[hashes-4:]))
		if hashes <= end && end <= len(index) {
			packs = append(packs, index[hashes:end])
		}
	}
	return packs
}

func isPacked(packs [][]byte, name []byte) bool {
	return slices.ContainsFunc(packs, func(sums []byte) bool {
		at := func(i int) []byte { return sums[i*len(name):] }
		i := sort.Search(len(sums)/len(name), func(i int) bool { return bytes.Compare(at(i)[:len(name)], name) >= 0 })
		return bytes.HasPrefix(at(i), name)
	})
}
