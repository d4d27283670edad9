package fileheads

import (
	"errors"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/yamldoc"
)

// reshapedBounds are far above yamldoc's own: a file that a person has put into
// another form may be one that we wrote for 100,000 threads.
func reshapedBounds() yamldoc.Bounds {
	return yamldoc.Bounds{Bytes: 64 << 20, Depth: 16, Nodes: 4 << 20}
}

// parseReshaped reads a text as any YAML: flow maps, quotes, comments, and the
// original's objects {head: hash, …}. It returns nil if the text is not YAML.
// Entries that cannot be read make the table frozen: their text may be spread
// over lines, so a write could not keep it.
func parseReshaped(path, text string, comments []string, keys rule) *table {
	t := &table{path: path, comments: comments}
	doc, err := yamldoc.Parse([]byte(text), reshapedBounds())
	if err != nil {
		return nil
	}
	if doc.Root.Kind != yamldoc.Mapping {
		if doc.Root.Kind == yamldoc.Scalar && doc.Root.Scalar == nil && doc.Root.Tag == "" {
			return t
		}
		return nil
	}
	var numbers []int
	for _, e := range doc.Root.Entries {
		h, err := headOf(e.Value)
		if err == nil && e.Text == "" {
			err = errors.New("an empty name")
		}
		if err == nil {
			if problem := keys(e.Text); problem != "" {
				err = errors.New(problem)
			}
		}
		if err != nil {
			t.bad = append(t.bad, badLine{e.Pos.Line, e.Text, err.Error()})
			continue
		}
		t.entries = append(t.entries, newEntry(e.Text, h))
		numbers = append(numbers, e.Pos.Line)
	}
	t.frozen = len(t.bad) > 0
	t.settle(numbers)
	return t
}

// headOf reads a hash, or the head of an original's object.
func headOf(n *yamldoc.Node) (protocol.Hash, error) {
	if n.Kind == yamldoc.Mapping {
		if n = n.Get("head"); n == nil {
			return "", errors.New("want a hash, or an object with a head")
		}
	}
	if n.Kind != yamldoc.Scalar || n.Tag != "" {
		return "", errors.New("want a hash")
	}
	// The text, because a hash of digits only is a number to YAML.
	return protocol.ParseHash(strings.TrimSpace(n.Text))
}
