package fileheads

import (
	"io"
	"os"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/util/careful"
)

// saysFacts is the first line of threads.yaml once there are facts: whoever loses
// facts.jsonl, as a whole, must not make strangers' threads their own.
const saysFacts = "# facts.jsonl says where these threads come from: if it is lost, each asks where it may work\n"

// sayFacts adds the line.
func (f *file) sayFacts() {
	line := strings.TrimSuffix(saysFacts, "\n")
	switch {
	case f.ours != nil:
		f.head = saysFacts
	case !slices.Contains(f.table.comments, line):
		f.table.comments = append([]string{line}, f.table.comments...)
	}
}

// saysFacts tells whether threads.yaml has the line, as we write it.
func (x *Heads) saysFacts() bool {
	in, err := careful.OpenMax(x.path(threadsFile), maxFile, careful.Follow)
	if err != nil {
		return false
	}
	defer func() { _ = in.Close() }() // nothing was written
	begin := make([]byte, len(saysFacts))
	_, err = io.ReadFull(in, begin)
	return err == nil && string(begin) == saysFacts
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
