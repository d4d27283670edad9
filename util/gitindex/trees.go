package gitindex

import (
	"bytes"
	"encoding/binary"
	"strconv"
)

// maxLevels bounds the directories in each other.
const maxLevels = 1000

// Trees returns the hash of the tree of an index, which must not be split. It calls add for the tree of each directory, inner
// directories first; add returns its hash, and doesn't keep the tree. dir is empty for the root. hash is the length of a
// hash. ok is false if add returns false, or for an index that only git can handle, such as one with a conflict.
func Trees(index []byte, hash int, add func(dir, tree []byte) (sum []byte, ok bool)) (sum []byte, ok bool) {
	type level struct{ name, tree int } // start of its names in the path of a file, and of its tree in trees
	open := []level{{}}
	var path, trees []byte // of the previous file; of the open directories
	leave := func() bool {
		last := open[len(open)-1]
		open = open[:len(open)-1]
		if sum, ok = add(path[:max(last.name-1, 0)], trees[last.tree:]); ok && len(open) > 0 {
			trees = appendEntry(trees[:last.tree], modeDir, path[open[len(open)-1].name:last.name-1], sum)
		}
		return ok
	}
	whole := Each(index, hash, func(e Entry, name []byte) bool {
		for !bytes.HasPrefix(name, path[:open[len(open)-1].name]) {
			if !leave() {
				return false
			}
		}
		path = append(path[:0], name...)
		start := open[len(open)-1].name
		for length := bytes.IndexByte(name[start:], '/'); length >= 0; length = bytes.IndexByte(name[start:], '/') {
			start += length + 1
			open = append(open, level{start, len(trees)})
		}
		trees = appendEntry(trees, binary.BigEndian.Uint32(e.stat[modeAt:]), name[start:], e.stat[hashAt:])
		return !e.Partial && len(name) > start && len(open) <= maxLevels // without a name, it is a directory
	})
	for whole && len(open) > 0 {
		whole = leave()
	}
	return sum, whole
}

func appendEntry(tree []byte, mode uint32, name, sum []byte) []byte {
	tree = append(strconv.AppendUint(tree, uint64(mode), 8), ' ')
	return append(append(append(tree, name...), 0), sum...)
}
