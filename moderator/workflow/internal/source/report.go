package source

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/sorting"
	"github.com/united-workforce/uwf/util/suggest"
	"github.com/united-workforce/uwf/util/yamldoc"
)

// maxProblems is the number of problems reported in full; a broken file can have thousands.
const maxProblems = 100

// maxExcerpt is the length of the longest line shown in full, in characters.
const maxExcerpt = 160

// Problems lists all problems of a file, in file order.
type Problems struct{ List []protocol.Problem }

// Error formats the whole report: for each problem "file:line:column: message", followed by the line and the
// remedy, indented.
func (p *Problems) Error() string {
	var b strings.Builder
	for i, problem := range p.List {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s:%d:%d: %s", problem.File, problem.Line, problem.Column, problem.Message)
		if problem.Excerpt != "" {
			fmt.Fprintf(&b, "\n    %s", strings.TrimSpace(problem.Excerpt))
		}
		if problem.Remedy != "" {
			fmt.Fprintf(&b, "\n    → %s", problem.Remedy)
		}
	}
	return b.String()
}

// Report collects problems.
type Report struct {
	files
	list []found
	more int // number of problems beyond maxProblems
	// Notices are warnings to the author that aren't errors.
	Notices []string
}

// found is a problem with its position in the whole text, see [files].
type found struct {
	protocol.Problem
	at yamldoc.Pos
}

// NewReport returns a report about a file. Messages use the given name.
func NewReport(file string, data []byte) *Report {
	r := &Report{}
	r.addFile(file, data, false)
	return r
}

// Add reports a problem. The remedy suggests a correction; it can be "".
func (r *Report) Add(at yamldoc.Pos, remedy, format string, args ...any) {
	if r.Full() {
		r.more++
		return
	}
	file, line := r.where(at.Line)
	r.list = append(r.list, found{protocol.Problem{
		File: file, Line: line, Column: at.Column,
		Message: fmt.Sprintf(format, args...), Excerpt: r.excerpt(at), Remedy: remedy,
	}, at})
}

// AddYAML reports that a file isn't valid YAML, with shifted line numbers.
func (r *Report) AddYAML(err error, shift int) {
	at, message := yamldoc.Pos{Line: 1, Column: 1}, err.Error()
	if e, ok := errors.AsType[*yamldoc.Error](err); ok {
		at, message = e.Pos, e.Message
		if e.Quote != "" {
			message += ": " + e.Quote
		}
	}
	remedy := ""
	at.Line += shift
	if strings.Contains(r.line(at.Line), "{{") {
		remedy = "put a text with {{…}} in quotes, or write it as a block (|)"
	}
	r.Add(at, remedy, "%s", message)
}

// Miss counts problems that were skipped because there are too many.
func (r *Report) Miss(n int) { r.more += n }

// Count returns the number of problems so far.
func (r *Report) Count() int { return len(r.list) + r.more }

// File returns the name of the main file.
func (r *Report) File() string { return r.names[0] }

// Full reports whether further problems are only counted, so callers can skip computing remedies.
func (r *Report) Full() bool { return len(r.list) >= maxProblems }

// DidYouMean returns a remedy with the closest candidates or, if there are none, all candidates after a lead
// such as "the roles are".
func (r *Report) DidYouMean(word string, candidates []string, lead string) string {
	if r.Full() {
		return ""
	}
	if nearest := Nearest(word, candidates); len(nearest) > 0 {
		return "did you mean " + QuoteList(nearest, " or ") + "?"
	}
	if len(candidates) == 0 {
		return ""
	}
	return lead + " " + QuoteList(candidates, ", ")
}

// Nearest returns the candidates that a word could be a misspelling of. It skips very large sets, because
// generated files don't contain typos.
func Nearest(word string, candidates []string) []string {
	const most = 1000
	if len(word) > 4*protocol.MaxName || len(candidates) > most {
		return nil
	}
	return suggest.Nearest(word, candidates, 3)
}

// Problems returns the sorted report, or nil without problems.
func (r *Report) Problems() error {
	if len(r.list) == 0 {
		return nil
	}
	sorting.Stable(r.list, func(a, b found) int { return cmp.Or(a.at.Line-b.at.Line, a.at.Column-b.at.Column) })
	p := &Problems{}
	for _, f := range r.list {
		p.List = append(p.List, f.Problem)
	}
	if r.more > 0 {
		last := p.List[len(p.List)-1]
		p.List = append(p.List, protocol.Problem{File: last.File, Line: last.Line, Column: last.Column,
			Message: fmt.Sprintf("and %d more problems, which are shown when these are fixed", r.more)})
	}
	return p
}

// excerpt returns the line at a position, or the surrounding part of a very long line.
func (r *Report) excerpt(at yamldoc.Pos) string {
	line := r.line(at.Line)
	if len(line) <= maxExcerpt {
		return line
	}
	from := byteOffset(line, at.Column-maxExcerpt/2)
	to := from + byteOffset(line[from:], maxExcerpt+1)
	cut := line[from:to]
	if from > 0 {
		cut = "…" + cut
	}
	if to < len(line) {
		cut += "…"
	}
	return cut
}

// QuoteList quotes names for a message, up to a readable number.
func QuoteList(names []string, separator string) string {
	const most = 14
	quoted := make([]string, 0, most+1)
	for i, n := range names {
		if i == most {
			return strings.Join(quoted, separator) + fmt.Sprintf(" and %d more", len(names)-most)
		}
		quoted = append(quoted, Quote(n))
	}
	return strings.Join(quoted, separator)
}

// Quote quotes a name, shortened for a message.
func Quote(name string) string {
	if runes := []rune(name); len(runes) > 80 {
		name = string(runes[:80]) + "…"
	}
	return fmt.Sprintf("%q", name)
}

// Note adds a notice, up to a maximum number.
func (r *Report) Note(at func() yamldoc.Pos, format string, args ...any) {
	const most = 10
	if len(r.Notices) == most {
		return
	}
	pos := at()
	file, line := r.where(pos.Line)
	r.Notices = append(r.Notices, fmt.Sprintf("%s:%d:%d: ", file, line, pos.Column)+fmt.Sprintf(format, args...))
}

// IsNull reports whether a node is null or empty.
func IsNull(n *yamldoc.Node) bool {
	return n.Kind == yamldoc.Scalar && n.Tag == "" && n.Scalar == nil
}

// KindOf describes a node's kind for messages.
func KindOf(n *yamldoc.Node) string {
	switch n.Kind {
	case yamldoc.Mapping:
		return "a mapping"
	case yamldoc.Sequence:
		return "a list"
	}
	switch v := n.Scalar.(type) {
	case nil:
		return "nothing"
	case bool:
		return fmt.Sprintf("the value %v", v)
	case string:
		if strings.TrimSpace(v) == "" {
			return "blank"
		}
		return "the string " + Quote(v)
	}
	return "the number " + n.Text
}

// Unread marks a node that is already reported, so it isn't checked further.
func Unread(n *yamldoc.Node) *yamldoc.Node {
	return &yamldoc.Node{Kind: yamldoc.Scalar, Tag: Tag, Scalar: "", Pos: n.Pos}
}
