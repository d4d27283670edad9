// Package gitindex reads a git index: the names of the files that git tracks, the flags that hide changes to a file, and
// the trees of the directories.
package gitindex

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"time"
)

// MaxBytes bounds the size of an index.
const MaxBytes = 128 << 20

// Entry is an index entry.
type Entry struct {
	Name    string
	Link    bool   // gitlink: a commit of another repository
	Passed  string // why git does not check the file for changes; "" if it does
	Partial bool   // a side of a conflict, or a file whose content is not added yet

	stat []byte // with mode and hash
}

// modeAt and hashAt are positions in an entry; modeDir is the mode of a directory in a tree.
const modeAt, hashAt, modeDir = 24, 40, 0o40000

// Matches reports whether a file has the times, the inode and the size that git has recorded; toSecond is the same
// with times in seconds, as most builds of git compare them.
func (e Entry) Matches(changed, modified time.Time, inode uint64, size int64) (is, toSecond bool) {
	const ino, length = 20, 36 // offsets
	// Git also truncates them.
	has := func(at int, n int64) bool { return binary.BigEndian.Uint32(e.stat[at:]) == uint32(n) }
	toSecond = has(0, changed.Unix()) && has(8, modified.Unix()) && has(ino, int64(inode)) && has(length, size)
	return toSecond && has(4, int64(changed.Nanosecond())) && has(12, int64(modified.Nanosecond())), toSecond
}

// Info returns the entry in the input format of git update-index --index-info.
func (e Entry) Info(name []byte) string {
	return fmt.Sprintf("%o %x\t%s", binary.BigEndian.Uint32(e.stat[modeAt:]), e.stat[hashAt:], name)
}

// Skipped is the value of Passed for a file that git does not expect in the work tree.
const Skipped = "skip-worktree"

// Entries parses an index (gitformat-index(5)) up to the first invalid entry and returns the entries that are
// more than plain files.
func Entries(index []byte) []Entry {
	return find(index, func(e Entry, _ []byte) bool { return e.Link || e.Passed != "" })
}

// Tracked returns the names that are in the index.
func Tracked(index []byte, names []string) (tracked []string) {
	for _, e := range find(index, func(_ Entry, name []byte) bool { return slices.Contains(names, string(name)) }) {
		tracked = append(tracked, e.Name)
	}
	return tracked
}

func find(index []byte, wanted func(e Entry, name []byte) bool) []Entry {
	for _, hash := range []int{20, 32} { // the hash length is not recorded, so try both
		var found []Entry
		whole := Each(index, hash, func(e Entry, name []byte) bool {
			if wanted(e, name) {
				e.Name, e.stat = string(name), nil
				found = append(found, e)
			}
			return true
		})
		if whole {
			return found
		}
	}
	return nil
}

// IsSound reports whether an index has the checksum at its end. With index.skipHash, git writes zeros instead, as a crash
// may leave them: such an index isn't sound. hash is the length of a hash.
func IsSound(index []byte, hash int) bool {
	return bytes.HasSuffix(index, checksum(index, hash))
}

// Seal adds the checksum to an index in which git has written none.
func Seal(index []byte, hash int) {
	if bytes.HasSuffix(index, make([]byte, hash)) {
		copy(index[len(index)-hash:], checksum(index, hash))
	}
}

func checksum(index []byte, hash int) []byte {
	sum := sha1.New()
	if hash == sha256.Size {
		sum = sha256.New()
	}
	sum.Write(index[:max(0, len(index)-hash)])
	return sum.Sum(nil)
}

// Each calls visit for the entries, without their Name, until it returns false. hash is the length of a hash. whole
// is false if the index is invalid or wasn't read to its end.
func Each(index []byte, hash int, visit func(e Entry, name []byte) bool) (whole bool) {
	const header, link = 12, 0o160000
	if len(index) < header || string(index[:4]) != "DIRC" {
		return false
	}
	version, count := binary.BigEndian.Uint32(index[4:]), binary.BigEndian.Uint32(index[8:])
	at, flags := header, hashAt+hash
	var name []byte
	for range count {
		if len(index) < at+flags+4 {
			return false
		}
		entry := index[at:]
		e := Entry{Link: binary.BigEndian.Uint32(entry[modeAt:]) == link, Partial: entry[flags]&0x30 != 0, stat: entry[:flags]}
		if entry[flags]&0x80 != 0 {
			e.Passed = "assume-unchanged"
		}
		rest := flags + 2
		if entry[flags]&0x40 != 0 && version >= 3 { // extended flags
			if entry[rest]&0x40 != 0 {
				e.Passed = Skipped
			}
			e.Partial = e.Partial || entry[rest]&0x20 != 0
			rest += 2
		}
		kept := 0
		if version == 4 { // the name shares a prefix with the previous one
			drop, more := 0, true
			for first := true; more; first = false {
				if rest >= len(entry) || drop > 1<<20 {
					return false
				}
				if !first {
					drop++
				}
				drop, more = drop<<7|int(entry[rest]&0x7f), entry[rest]&0x80 != 0
				rest++
			}
			if kept = len(name) - drop; kept < 0 {
				return false
			}
		}
		end := bytes.IndexByte(entry[min(rest, len(entry)):], 0)
		if end < 0 {
			return false
		}
		name = append(name[:kept], entry[rest:rest+end]...)
		if !visit(e, name) {
			return false
		}
		if at += rest + end + 1; version < 4 { // entries are padded to a multiple of eight
			at += -(rest + end + 1) & 7
		}
	}
	return true
}
