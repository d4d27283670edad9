package files

import (
	"encoding/hex"
	"encoding/json"
	"os"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/files/pipes"
	"github.com/united-workforce/uwf/util/careful"
	"github.com/united-workforce/uwf/util/durable"
)

// indexNote is what is known of the index of a thread, in a file beside it, so that git need
// not be asked again. Nothing depends on it: it is true as long as the index is the one
// that it was written for, and the ref leads to the commit.
type indexNote struct {
	Index  string        `json:"index"`  // its checksum
	Tree   protocol.Tree `json:"tree"`   // that it holds
	Commit string        `json:"commit"` // that keeps the tree
	// Racy: many files may be as new as the index, so that git reads each of them to know
	// whether it has changed, until the index is written once more.
	Racy bool `json:"racy,omitempty"`
	// Out are the paths that were taken out when the index was made.
	Out []string `json:"out,omitempty"`
	// Pipes are those for which git would wait in the work tree.
	Pipes []pipes.Waited `json:"pipes,omitempty"`
}

const maxNote = 1 << 20 // bytes

// noteFile is beside the index, in the run directory of its thread.
func noteFile(index string) string { return index + ".json" }

// recall reads the note of an index. An unreadable note counts as empty.
func recall(index string) (n indexNote) {
	text, err := careful.ReadFile(noteFile(index), maxNote, careful.NoFollow)
	if err != nil || json.Unmarshal(text, &n) != nil || !n.Tree.Valid() {
		return indexNote{}
	}
	return n
}

// remember writes it.
func (n indexNote) remember(index string) error {
	text, _ := json.Marshal(n) // texts always encode
	return durable.Replace(durable.OS(), noteFile(index), append(text, '\n'), 0o600)
}

// checksum is that which git writes at the end of an index; "": there is none.
func checksum(index string) string {
	f, err := careful.Open(index, careful.NoFollow)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	var sum [32]byte // a SHA-1 sum is shorter; the bytes before it do no harm
	if err != nil || info.Size() < int64(len(sum)) {
		return ""
	}
	if _, err := f.ReadAt(sum[:], info.Size()-int64(len(sum))); err != nil {
		return ""
	}
	return hex.EncodeToString(sum[:])
}

// later reports whether a file was written in a later second than another.
func later(a, b string) bool {
	x, err := os.Lstat(a)
	if err != nil {
		return false
	}
	y, err := os.Lstat(b)
	return err == nil && x.ModTime().Unix() > y.ModTime().Unix()
}
