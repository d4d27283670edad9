package tools

import (
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/util/plaintext"
)

// clip cuts the middle out of a text that is longer than most bytes and says
// how much is missing. A third of what is kept is the beginning: the end of an
// output is where errors are.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	head, tail := s[:most/3], s[len(s)-(most-most/3):]
	return join(head, tail, len(s)-len(head)-len(tail), strings.Count(s[len(head):len(s)-len(tail)], "\n"), "")
}

// join puts a head and a tail together at line ends, if there are any near.
// missing and lines count what lay between them; whole is the file that has
// everything, "" if there is none.
func join(head, tail string, missing, lines int, whole string) string {
	const near = 200
	if i := strings.LastIndexByte(head, '\n'); i >= 0 && len(head)-i < near {
		missing += len(head) - i - 1
		head = head[:i+1]
	}
	if i := strings.IndexByte(tail, '\n'); i >= 0 && i < near {
		missing += i + 1
		lines++
		tail = tail[i+1:]
	}
	head, tail = plaintext.WholeRunes(head, tail)
	if !strings.HasSuffix(head, "\n") {
		head += "\n"
	}
	where := ""
	if whole != "" {
		where = "; read_file and grep find them in " + whole
	}
	return head + fmt.Sprintf("[… %d bytes, %d lines left out%s …]\n", missing, lines, where) + tail
}
