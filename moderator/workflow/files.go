package workflow

import (
	"sort"
	"strings"

	"github.com/united-workforce/uwf/util/yamldoc"
)

// files are the file that is read and those that it includes. As in go/token,
// all of them are one text: the lines of an included file follow those of the
// files before it. A yamldoc.Pos of the draft is a place in that text, so that
// what looks for a place need not know in which file it is.
type files struct {
	names  []string // as messages shall name them
	begins []int    // of each file, the number of lines before it
	plain  []bool   // whether it is a text of its own, and no YAML
	lines  []string
}

// addFile appends a file and returns how far its lines are shifted.
func (f *files) addFile(name string, data []byte, plain bool) (shift int) {
	text := strings.TrimPrefix(string(data), "\ufeff")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	shift = len(f.lines)
	f.names = append(f.names, name)
	f.begins = append(f.begins, shift)
	f.plain = append(f.plain, plain)
	f.lines = append(f.lines, strings.Split(strings.ReplaceAll(text, "\r", "\n"), "\n")...)
	return shift
}

// where is the file and the line in it of a line of the whole text.
func (f *files) where(line int) (name string, inFile int) {
	i := f.of(line)
	return f.names[i], line - f.begins[i]
}

// isPlain reports whether a line is of a text that is no YAML.
func (f *files) isPlain(line int) bool { return f.plain[f.of(line)] }

// of is the index of the file of a line.
func (f *files) of(line int) int { return max(0, sort.SearchInts(f.begins, line)-1) }

// line is a line of the whole text, from 1; "" if there is none.
func (f *files) line(n int) string {
	if n < 1 || n > len(f.lines) {
		return ""
	}
	return f.lines[n-1]
}

// shifted is a tree with its lines shifted. The tree is copied, because an alias
// shares what its anchor stands for.
func shifted(n *yamldoc.Node, by int) *yamldoc.Node {
	if by == 0 {
		return n
	}
	c := *n
	c.Pos.Line += by
	c.Entries = make([]yamldoc.Entry, len(n.Entries))
	for i, e := range n.Entries {
		e.Pos.Line += by
		e.Value = shifted(e.Value, by)
		c.Entries[i] = e
	}
	c.Items = make([]*yamldoc.Node, len(n.Items))
	for i, item := range n.Items {
		c.Items[i] = shifted(item, by)
	}
	return &c
}
