package fileheads

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/util/careful"
)

// saysFacts is the first line of threads.yaml once there are facts: whoever loses
// facts.jsonl, as a whole, must not make strangers' threads their own.
const saysFacts = "# facts.jsonl says where these threads come from: if it is lost, each asks where it may work\n"

// countFacts is the line below it: how many lines facts.jsonl has at least. Fewer mean
// that one is lost, or joined to another, and nobody knows whose it was.
const countFacts = "# facts.jsonl has %d lines\n"

// sayFacts adds both lines.
func (f *file) sayFacts() {
	says := saysFacts + fmt.Sprintf(countFacts, f.facts)
	if f.ours != nil {
		f.head = says
		return
	}
	rest := slices.DeleteFunc(f.table.comments, func(c string) bool {
		_, counts := factsCount(c + "\n")
		return c+"\n" == saysFacts || counts
	})
	f.table.comments = append(strings.Split(strings.TrimSuffix(says, "\n"), "\n"), rest...)
}

// factsCount is the number of a line that says how many lines there are.
func factsCount(line string) (n int, ok bool) {
	_, err := fmt.Sscanf(line, countFacts, &n)
	return n, err == nil && line == fmt.Sprintf(countFacts, n)
}

// saysOf finds out what the comments of threads.yaml say of facts.jsonl; a count of
// -1: nothing.
func saysOf(text string) (says bool, count int) {
	count = -1
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") {
			break
		}
		says = says || line == saysFacts
		if n, ok := factsCount(line); ok {
			count = n
		}
	}
	return says, count
}

// saysFacts is [saysOf] for threads.yaml as it is now.
func (x *Heads) saysFacts() (says bool, count int) {
	in, err := careful.OpenMax(x.path(threadsFile), maxFile, careful.Follow)
	if err != nil {
		return false, -1
	}
	defer func() { _ = in.Close() }() // nothing was written
	begin := make([]byte, 4<<10)
	n, _ := io.ReadFull(in, begin)
	return saysOf(string(begin[:n]))
}

// countLines counts the lines of the facts, but for empty ones.
func countLines(data []byte) (n int) {
	for line := range bytes.Lines(data) {
		if !isBlank(line) {
			n++
		}
	}
	return n
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
