package mock

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/util/suggest"
	"github.com/united-workforce/uwf/util/yamldoc"
)

// reader reads typed values out of YAML and collects what is wrong, so that an
// author sees all mistakes at once.
type reader struct {
	file     string
	problems []error
}

func (r *reader) fail(at yamldoc.Pos, format string, args ...any) {
	r.problems = append(r.problems, fmt.Errorf("%s:%d:%d: %s", r.file, at.Line, at.Column, fmt.Sprintf(format, args...)))
}

func (r *reader) err() error { return errors.Join(r.problems...) }

// mapping calls the reader of each key. A key without one is a mistake.
func (r *reader) mapping(n *yamldoc.Node, what string, keys map[string]func(*yamldoc.Node)) {
	if n.Kind != yamldoc.Mapping {
		r.fail(n.Pos, "%s must be a mapping", what)
		return
	}
	for _, e := range n.Entries {
		read, ok := keys[e.Key]
		if !ok {
			r.unknown(e, what, keys)
			continue
		}
		read(e.Value)
	}
}

func (r *reader) unknown(e yamldoc.Entry, what string, keys map[string]func(*yamldoc.Node)) {
	var names []string
	for k := range keys {
		names = append(names, k)
	}
	slices.Sort(names)
	if near := suggest.Nearest(e.Key, names, 1); len(near) > 0 {
		r.fail(e.Pos, "%s has no key %q: did you mean %q?", what, e.Key, near[0])
		return
	}
	r.fail(e.Pos, "%s has no key %q; it has: %s", what, e.Key, strings.Join(names, ", "))
}

func (r *reader) list(n *yamldoc.Node, what string, each func(*yamldoc.Node)) {
	if n.Kind != yamldoc.Sequence {
		r.fail(n.Pos, "%s must be a list", what)
		return
	}
	for _, item := range n.Items {
		each(item)
	}
}

// The readers below return a function that reads a value into a variable.

func (r *reader) text(into *string) func(*yamldoc.Node) {
	return func(n *yamldoc.Node) {
		s, ok := n.Scalar.(string)
		if n.Kind != yamldoc.Scalar || !ok {
			r.fail(n.Pos, "want a text")
			return
		}
		*into = s
	}
}

func (r *reader) optionalText(into **string) func(*yamldoc.Node) {
	return func(n *yamldoc.Node) {
		var s string
		r.text(&s)(n)
		*into = &s
	}
}

func (r *reader) flag(into *bool) func(*yamldoc.Node) {
	return func(n *yamldoc.Node) {
		b, ok := n.Scalar.(bool)
		if !ok {
			r.fail(n.Pos, "want true or false")
			return
		}
		*into = b
	}
}

func (r *reader) natural(into *int64) func(*yamldoc.Node) {
	return func(n *yamldoc.Node) {
		i, ok := n.Scalar.(int64)
		if !ok || i < 0 {
			r.fail(n.Pos, "want a whole number, 0 or more")
			return
		}
		*into = i
	}
}

func (r *reader) duration(into *time.Duration) func(*yamldoc.Node) {
	return func(n *yamldoc.Node) {
		d, err := time.ParseDuration(n.Text)
		if n.Kind != yamldoc.Scalar || err != nil || d < 0 {
			r.fail(n.Pos, "want a duration such as 200ms or 1m30s")
			return
		}
		*into = d
	}
}

func (r *reader) value(into *any) func(*yamldoc.Node) {
	return func(n *yamldoc.Node) { *into = n.Value() }
}
