package config

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/suggest"
	"github.com/united-workforce/uwf/util/yamldoc"
)

// InvalidError lists what is wrong in a file, in the order of its lines.
type InvalidError struct{ Problems []protocol.Problem }

func (e *InvalidError) Error() string {
	lines := make([]string, 0, len(e.Problems))
	for _, p := range e.Problems {
		line := fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Message)
		if p.Remedy != "" {
			line += "; " + p.Remedy
		}
		if p.Excerpt != "" {
			line += "\n    " + p.Excerpt
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// report collects problems.
type report struct {
	path     string
	src      []byte
	problems []protocol.Problem
	warnings []protocol.Problem // of what stops nobody who does not use it
}

func (r *report) add(at yamldoc.Pos, remedy, format string, args ...any) {
	r.problems = append(r.problems, r.problem(at, remedy, format, args...))
}

func (r *report) warn(at yamldoc.Pos, remedy, format string, args ...any) {
	r.warnings = append(r.warnings, r.problem(at, remedy, format, args...))
}

func (r *report) problem(at yamldoc.Pos, remedy, format string, args ...any) protocol.Problem {
	return protocol.Problem{
		File: r.path, Line: at.Line, Column: at.Column,
		Message: fmt.Sprintf(format, args...), Remedy: remedy,
		Excerpt: excerpt(yamldoc.Line(r.src, at.Line)),
	}
}

// addYAML reports that the text is no YAML. The message holds nothing of it.
func (r *report) addYAML(err error) {
	var bad *yamldoc.Error
	if !errors.As(err, &bad) {
		bad = &yamldoc.Error{Pos: yamldoc.Pos{Line: 1, Column: 1}, Message: "not YAML"}
	}
	r.add(bad.Pos, "", "%s", bad.Message)
}

func (r *report) err() error {
	if len(r.problems) == 0 {
		return nil
	}
	sortByPlace(r.problems)
	cause := &InvalidError{r.problems}
	return &protocol.Error{Code: protocol.CodeInvalid, Message: cause.Error(), Err: cause}
}

func sortByPlace(problems []protocol.Problem) {
	slices.SortFunc(problems, func(a, b protocol.Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Message, b.Message))
	})
}

// excerpt is a line without its values, which may be secrets: only a key at its
// start is shown.
func excerpt(line string) string {
	key := regexp.MustCompile(`^\s*(- )?[A-Za-z$_][A-Za-z0-9$_.-]*:(\s|$)`).FindString(line)
	if key == "" {
		return ""
	}
	shown := strings.TrimSpace(key)
	if rest := strings.TrimSpace(line[len(key):]); rest != "" {
		shown += " …"
	}
	return shown
}

// nearest is a remedy: the names that were probably meant, or all of them.
func nearest(word string, known []string) string {
	if near := suggest.Nearest(word, known, 2); len(near) > 0 {
		return "did you mean " + quoted(near, " or ") + "?"
	}
	if len(known) == 0 {
		return ""
	}
	const most = 12
	known = slices.Sorted(slices.Values(known))
	return "known are " + quoted(known[:min(len(known), most)], ", ")
}

func quoted(words []string, sep string) string {
	q := make([]string, len(words))
	for i, w := range words {
		q[i] = fmt.Sprintf("%q", w)
	}
	return strings.Join(q, sep)
}
