package offlimits

import (
	"bytes"
	"encoding/binary"
	"path"
	"path/filepath"

	"github.com/united-workforce/uwf/util/careful"
	"github.com/united-workforce/uwf/util/worktree"
)

// Bounds of what is read of git's lists of files.
const (
	maxIndexBytes = 128 << 20
	maxGitlinks   = 2000
)

// gitlinks are the repositories that a repository knows within its work tree, such as
// submodules, by slash-separated path, and those within them. They are watched however
// large the tree is.
func gitlinks(workspace, at string, depth int) (found []string) {
	git, _, ok := worktree.Dirs(filepath.Join(workspace, filepath.FromSlash(at)))
	if !ok || depth > maxIncludeDepth {
		return nil
	}
	index, err := careful.ReadFile(filepath.Join(git, "index"), maxIndexBytes, careful.NoFollow)
	if err != nil {
		return nil
	}
	for _, e := range indexEntries(index) {
		if name := path.Join(at, e.name); e.link && filepath.IsLocal(filepath.FromSlash(name)) && len(found) < maxGitlinks {
			found = append(found, name)
			found = append(found, gitlinks(workspace, name, depth+1)...)
		}
	}
	return found
}

// indexEntry is a file of an index that is more than a file.
type indexEntry struct {
	name   string
	link   bool   // a commit of another repository
	passed string // why git does not look whether it has changed; "": it does
}

// skipped is of a file that git does not look for, either.
const skipped = "skip-worktree"

// indexEntries reads an index of git (gitformat-index(5)), as far as it is one: those
// of its entries that are more than files.
func indexEntries(index []byte) []indexEntry {
	const header, ids = 12, 40 // ids: where an entry's hash begins
	if len(index) < header || string(index[:4]) != "DIRC" {
		return nil
	}
	for _, hash := range []int{20, 32} { // nothing in it says which
		if found, ok := readIndex(index, header, ids+hash); ok {
			return found
		}
	}
	return nil
}

func readIndex(index []byte, at, flags int) (found []indexEntry, ok bool) {
	const mode, link = 24, 0o160000
	version, count := binary.BigEndian.Uint32(index[4:]), binary.BigEndian.Uint32(index[8:])
	var name []byte
	for range count {
		if len(index) < at+flags+4 {
			return found, false
		}
		entry := index[at:]
		e := indexEntry{link: binary.BigEndian.Uint32(entry[mode:]) == link}
		if entry[flags]&0x80 != 0 {
			e.passed = "assume-unchanged"
		}
		rest := flags + 2
		if entry[flags]&0x40 != 0 && version >= 3 { // more flags
			if entry[rest]&0x40 != 0 {
				e.passed = skipped
			}
			rest += 2
		}
		kept := 0
		if version == 4 { // the name begins as the one before
			drop, more := 0, true
			for first := true; more; first = false {
				if rest >= len(entry) || drop > 1<<20 {
					return found, false
				}
				if !first {
					drop++
				}
				drop, more = drop<<7|int(entry[rest]&0x7f), entry[rest]&0x80 != 0
				rest++
			}
			if kept = len(name) - drop; kept < 0 {
				return found, false
			}
		}
		end := bytes.IndexByte(entry[min(rest, len(entry)):], 0)
		if end < 0 {
			return found, false
		}
		name = append(name[:kept], entry[rest:rest+end]...)
		if e.link || e.passed != "" {
			e.name = string(name)
			found = append(found, e)
		}
		if at += rest + end + 1; version < 4 { // entries end at multiples of eight
			at += -(rest + end + 1) & 7
		}
	}
	return found, true
}
