package workflow

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

// report collects problems.
type report struct {
	files
	list []found
	more int // found beyond maxProblems
	// notices are what the author should know although nothing is wrong.
	notices []string
}

// found is a problem with its place in the whole text, see [files].
type found struct {
	protocol.Problem
	at yamldoc.Pos
}

func newReport(src Source) *report {
	file := src.File
	if file == "" {
		file = "workflow"
	}
	r := &report{}
	r.addFile(file, src.Data, false)
	return r
}

// add reports a problem. The remedy says what would be right; it may be "".
func (r *report) add(at yamldoc.Pos, remedy, format string, args ...any) {
	if r.full() {
		r.more++
		return
	}
	file, line := r.where(at.Line)
	r.list = append(r.list, found{protocol.Problem{
		File: file, Line: line, Column: at.Column,
		Message: fmt.Sprintf(format, args...), Excerpt: r.excerpt(at), Remedy: remedy,
	}, at})
}

// addYAML reports that the text of a file is no YAML. Its lines are shifted.
func (r *report) addYAML(err error, shift int) {
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
	r.add(at, remedy, "%s", message)
}

// full reports whether more problems are only counted: no need to look for
// remedies any more.
func (r *report) full() bool { return len(r.list) >= maxProblems }

// didYouMean is a remedy that names the nearest candidates, or else the
// candidates themselves behind a lead such as "the roles are".
func (r *report) didYouMean(word string, candidates []string, lead string) string {
	if r.full() {
		return ""
	}
	if nearest := nearest(word, candidates); len(nearest) > 0 {
		return "did you mean " + quoteList(nearest, " or ") + "?"
	}
	if len(candidates) == 0 {
		return ""
	}
	return lead + " " + quoteList(candidates, ", ")
}

// nearest are the candidates that a word may be a misspelling of. Files with
// thousands of names are made by programs, which do not misspell.
func nearest(word string, candidates []string) []string {
	const most = 1000
	if len(word) > 4*maxName || len(candidates) > most {
		return nil
	}
	return suggest.Nearest(word, candidates, 3)
}

// problems is the sorted report, nil if there is nothing to report.
func (r *report) problems() error {
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
func (r *report) excerpt(at yamldoc.Pos) string {
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

// quoteList quotes names for a message, not more than a reader would read.
func quoteList(names []string, separator string) string {
	const most = 12
	quoted := make([]string, 0, most+1)
	for i, n := range names {
		if i == most {
			return strings.Join(quoted, separator) + fmt.Sprintf(" and %d more", len(names)-most)
		}
		quoted = append(quoted, quote(n))
	}
	return strings.Join(quoted, separator)
}

// quote quotes a name, cut to what a message can carry.
func quote(name string) string {
	if runes := []rune(name); len(runes) > 80 {
		name = string(runes[:80]) + "…"
	}
	return fmt.Sprintf("%q", name)
}
