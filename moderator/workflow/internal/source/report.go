package source

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/suggest"
	"github.com/united-workforce/uwf/util/yamldoc"
)

// maxProblems is how many problems are told; a broken file may have thousands.
const maxProblems = 100

// maxExcerpt is the longest line that is shown whole, in characters.
const maxExcerpt = 160

// Problems is everything that is wrong with a file, in the order of the file.
type Problems struct{ List []protocol.Problem }

// Error is the whole report: for each problem "file:line:column: message", then
// the offending line and the remedy, indented.
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
	more int // found beyond maxProblems
	// Notices are what the author should know although nothing is wrong.
	Notices []string
}

// found is a problem with its place in the whole text, see [files].
type found struct {
	protocol.Problem
	at yamldoc.Pos
}

// NewReport returns a report about a file, by the name that messages have.
func NewReport(file string, data []byte) *Report {
	r := &Report{}
	r.addFile(file, data, false)
	return r
}

// Add reports a problem. The remedy says what would be right; it may be "".
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

// AddYAML reports that the text of a file is no YAML. Its lines are shifted.
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
		remedy = "a text with {{…}} in it needs quotes around the whole text, or a block (|)"
	}
	r.Add(at, remedy, "%s", message)
}

// Miss counts problems that are not looked for, because there are too many already.
func (r *Report) Miss(n int) { r.more += n }

// Count is how many problems there are so far.
func (r *Report) Count() int { return len(r.list) + r.more }

// File is the name of the file that is read.
func (r *Report) File() string { return r.names[0] }

// Full reports whether more problems are only counted: no need to look for
// remedies any more.
func (r *Report) Full() bool { return len(r.list) >= maxProblems }

// DidYouMean is a remedy that names the nearest candidates, or else the
// candidates themselves behind a lead such as "the roles are".
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

// nearest are the candidates that a word may be a misspelling of. Files with
// thousands of names are made by programs, which do not misspell.
func Nearest(word string, candidates []string) []string {
	const most = 1000
	if len(word) > 4*protocol.MaxName || len(candidates) > most {
		return nil
	}
	return suggest.Nearest(word, candidates, 3)
}

// Problems is the sorted report, nil if there is nothing to report.
func (r *Report) Problems() error {
	if len(r.list) == 0 {
		return nil
	}
	slices.SortStableFunc(r.list, func(a, b found) int {
		return cmp.Or(a.at.Line-b.at.Line, a.at.Column-b.at.Column)
	})
	p := &Problems{}
	for _, f := range r.list {
		p.List = append(p.List, f.Problem)
	}
	if r.more > 0 {
		last := p.List[len(p.List)-1]
		p.List = append(p.List, protocol.Problem{File: last.File, Line: last.Line, Column: last.Column,
			Message: fmt.Sprintf("and %d more problems, which show when these are repaired", r.more)})
	}
	return p
}

// excerpt is the line of a place, or of a very long line the part around it.
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

// QuoteList quotes names for a message, not more than a reader would read.
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

// quote quotes a name, cut to what a message can carry.
func Quote(name string) string {
	if runes := []rune(name); len(runes) > 80 {
		name = string(runes[:80]) + "…"
	}
	return fmt.Sprintf("%q", name)
}

// Note adds a notice, up to a bound.
func (r *Report) Note(at func() yamldoc.Pos, format string, args ...any) {
	const most = 10
	if len(r.Notices) == most {
		return
	}
	pos := at()
	file, line := r.where(pos.Line)
	r.Notices = append(r.Notices, fmt.Sprintf("%s:%d:%d: ", file, line, pos.Column)+fmt.Sprintf(format, args...))
}

func IsNull(n *yamldoc.Node) bool {
	return n.Kind == yamldoc.Scalar && n.Tag == "" && n.Scalar == nil
}

// KindOf names what a node is, for messages.
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
		return "the text " + Quote(v)
	}
	return "the number " + n.Text
}

// unread is a node that is wrong, and about which nothing more is to be said.
func Unread(n *yamldoc.Node) *yamldoc.Node {
	return &yamldoc.Node{Kind: yamldoc.Scalar, Tag: Tag, Scalar: "", Pos: n.Pos}
}
