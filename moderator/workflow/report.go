package workflow

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/united-workforce/uwf/moderator/mustache"
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
	const most = 14
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

// noteOptional warns of a variable that exists but that no schema requires: an answer
// without it stops the run at this edge. It is not an error, since the agent may always
// give it. Inside a section the author has thought of that, and the condition of a list may
// test for it.
func (d *draft) noteOptional(what string, tag mustache.Tag, from answer, at func() yamldoc.Pos) {
	name := tag.Path[0]
	if tag.Kind != mustache.Variable || len(tag.Within) > 0 || from.listed || !from.fields.optional(name) {
		return
	}
	d.note(at, "%s: %s may be missing, and then the run stops here; name it under required, or write {{#%s}}…{{/%s}} "+
		"around it",
		what, quote(name), name, name)
}

// noteMissing warns of a variable behind $steps whose role may not have answered, or not with that field.
func (d *draft) noteMissing(what, name string, at func() yamldoc.Pos) {
	d.note(at, "%s: %s may be missing here, and then the run stops; write {{#%s}}…{{/%s}} around it", what, quote(name),
		name, name)
}

// noteFree warns of a role that may answer any status, so that its edges cannot be checked.
// The edge "_" takes all other statuses.
func (d *draft) noteFree(r *roleDraft, n *nodeDraft) {
	named := without(n.keys(), []string{protocol.DefaultStatus})
	at := func() yamldoc.Pos { return n.pos }
	if len(named) < len(n.keys()) {
		d.note(at, "the schema of %s lets it answer any %s: all but %s take the edge %q; an enum would name them",
			quote(r.name), r.statuses.key, quoteList(named, ", "), protocol.DefaultStatus)
		return
	}
	d.note(at, "the schema of %s lets it answer any %s, and all but %s stop the run here; give it an enum: [%s], "+
		"or add an edge %q for the others",
		quote(r.name), r.statuses.key, quoteList(named, ", "), strings.Join(named, ", "), protocol.DefaultStatus)
}

// noteOutside warns of a location outside the directory in which a thread is started: most
// users' uwf will refuse it.
func (d *draft) noteOutside(what, location string, at yamldoc.Pos) {
	slash := strings.ReplaceAll(location, `\`, "/")
	why := ""
	switch {
	case strings.HasPrefix(slash, "/"), len(slash) > 2 && slash[1] == ':' && slash[2] == '/':
		why = "is absolute"
	case slash == "~", strings.HasPrefix(slash, "~/"):
		why = "begins in a directory that is called ~"
	case path.Clean(slash) == "..", strings.HasPrefix(path.Clean(slash), "../"):
		why = "leads out of the thread's directory"
	default:
		return
	}
	d.note(func() yamldoc.Pos { return at }, "location of %s %s; steps work there only if it is inside the directory "+
		"that the thread was started in, "+
		"in a git work tree linked to the repository there, or listed under allowLocations in the user's config.yaml",
		what, why)
}

// note adds a notice, up to a bound.
func (d *draft) note(at func() yamldoc.Pos, format string, args ...any) {
	const most = 10
	if len(d.notices) == most {
		return
	}
	pos := at()
	file, line := d.where(pos.Line)
	d.notices = append(d.notices, fmt.Sprintf("%s:%d:%d: ", file, line, pos.Column)+fmt.Sprintf(format, args...))
}

// optional reports whether a schema names a field and none requires it.
func (f fields) optional(name string) bool {
	named := false
	for _, s := range f.schemas {
		if required, _ := s["required"].([]any); slices.Contains(required, any(name)) {
			return false
		}
		properties, _ := s["properties"].(map[string]any)
		_, has := properties[name]
		named = named || has
	}
	return named
}

// inTemplate finds the place in the file of a place in a template. YAML may have
// folded, indented and escaped the text in between, but never braces: the n-th
// "{{" of the template is the n-th "{{" behind the place where the text begins.
// If that cannot be told, it is the place of the whole text.
func (d *draft) inTemplate(n *yamldoc.Node, template string, line, column int) yamldoc.Pos {
	const open = "{{"
	start := 0
	for range line - 1 {
		start += strings.IndexByte(template[start:], '\n') + 1
	}
	start += byteOffset(template[start:], column)
	if !strings.HasPrefix(template[start:], open) {
		return n.Pos
	}
	return d.nth(n.Pos, open, strings.Count(template[:start], open))
}

// nth finds the n-th occurrence, from 0, of a text at or behind a place, or else
// returns that place.
func (d *draft) nth(from yamldoc.Pos, text string, n int) yamldoc.Pos {
	skip := byteOffset(d.line(from.Line), from.Column)
	if strings.HasPrefix(d.line(from.Line)[skip:], "*") && !d.isPlain(from.Line) {
		return from // an alias: the text stands elsewhere
	}
	for number := from.Line; number <= len(d.lines); number++ {
		line := d.line(number)
		count := strings.Count(line[skip:], text)
		if count <= n {
			n -= count
			skip = 0
			continue
		}
		at := skip + strings.Index(line[skip:], text)
		for range n {
			at += len(text)
			at += strings.Index(line[at:], text)
		}
		return yamldoc.Pos{Line: number, Column: utf8.RuneCountInString(line[:at]) + 1}
	}
	return from
}

// byteOffset is where a column, counted in characters from 1, begins in a line.
func byteOffset(line string, column int) int {
	for i := range line {
		if column--; column <= 0 {
			return i
		}
	}
	return len(line)
}

// inExpression finds the place in the file of an offset in a text. What YAML
// does to a text changes its white space and adds quotes and backslashes, so the
// other characters are followed one by one. If that fails, or the text is so long
// that nobody wrote it by hand, it is the place of the whole text.
func (d *draft) inExpression(n *yamldoc.Node, text string, offset int) yamldoc.Pos {
	const longest = 4000
	begin := n.Pos
	if len(text) > longest || len(d.line(begin.Line)) > 2*longest {
		return begin
	}
	at := begin
	if !d.isPlain(begin.Line) {
		rest := d.line(begin.Line)[byteOffset(d.line(begin.Line), begin.Column):]
		switch {
		case strings.HasPrefix(rest, "|"), strings.HasPrefix(rest, ">"):
			at = yamldoc.Pos{Line: at.Line + 1, Column: 1}
		case strings.HasPrefix(rest, `"`), strings.HasPrefix(rest, "'"):
			at.Column++
		}
	}
	for i, want := range text {
		if unicode.IsSpace(want) && i < offset {
			continue
		}
		found, ok := d.nextVisible(at, want)
		if !ok {
			return begin
		}
		if i >= offset {
			return found
		}
		at = yamldoc.Pos{Line: found.Line, Column: found.Column + 1}
	}
	return yamldoc.Pos{Line: at.Line, Column: at.Column - 1} // behind its end: the last character
}

// nextVisible is the place of a character that comes next, but for white space
// and the marks with which YAML escapes a quote or a line's end.
func (d *draft) nextVisible(at yamldoc.Pos, want rune) (yamldoc.Pos, bool) {
	for number := at.Line; number <= len(d.lines); number++ {
		line := d.line(number)
		column := 1
		if number == at.Line {
			column = at.Column
		}
		for i, c := range line[byteOffset(line, column):] {
			switch {
			case c == want:
				return yamldoc.Pos{Line: number, Column: column + utf8.RuneCountInString(line[byteOffset(line, column):][:i])}, true
			case unicode.IsSpace(c), c == '\\', c == '\'':
			default:
				return at, unicode.IsSpace(want)
			}
		}
	}
	return at, false
}
