// Package htmlpage renders threads as HTML: one self-contained file for a colleague without uwf ([Export]),
// and the parts of a server's pages ([Templates]).
//
// Displayed text is untrusted. html/template escapes it, characters that hide or reorder text are removed, and
// long texts are shortened. A page never runs, loads or links to anything in such a text. It needs no scripts
// and no inline styles, so a Content-Security-Policy can forbid both.
package htmlpage

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/cmd/uwf-web/internal/htmlpage/markdown"
	"github.com/united-workforce/uwf/cmd/uwf-web/internal/picture"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/engine/worktree"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/moderator/diagram"
	"github.com/united-workforce/uwf/moderator/flow"
	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/frontmatter"
	"github.com/united-workforce/uwf/step/snapshot"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/render"
)

// Files holds the templates, and templates/style.css for all pages.
//
//go:embed templates
var Files embed.FS

// Templates returns the templates "thread", "steps", "turns", "text" and "status". They display prose as Markdown.
func Templates() (*template.Template, error) {
	prose := func(t Text) template.HTML {
		if out, ok := markdown.Render(t.Body); ok {
			return template.HTML(`<div class="md" dir="auto">` + out + `</div>`)
		}
		return template.HTML(`<pre dir="auto" tabindex="0">` + template.HTMLEscapeString(t.Body) + `</pre>`)
	}
	return template.New("page").Funcs(template.FuncMap{"prose": prose}).ParseFS(Files, "templates/*.html")
}

// Mood returns the CSS class of a status.
func Mood(s protocol.Status) string {
	switch s {
	case protocol.StatusCompleted:
		return "good"
	case protocol.StatusError, protocol.StatusCorrupt, protocol.StatusFailed:
		return "bad"
	case protocol.StatusSuspended:
		return "care"
	case protocol.StatusRunning, protocol.StatusWaitingForChildren:
		return "busy"
	}
	return "plain"
}

// CommandMood returns the CSS class of a command's status. Statuses other than uwf's own mean what the workflow
// makes of them: one that ends it at $FAIL is bad.
func CommandMood(w protocol.Workflow, role, status string) string {
	switch {
	case status == moderator.CommandPassed:
		return "good"
	case status == moderator.CommandFailed, w.Graph[role].Edges[status].Role == protocol.FailNode:
		return "bad"
	}
	return "plain"
}

// Workflow is a workflow to display: its roles in the order of the graph, with their agents.
type Workflow struct {
	Name, Limits string
	Description  Text
	Roles        []rolePage
	MoreRoles    int
	Inputs       map[string]protocol.Input
	Schemas      map[string]any // of the inputs
}

// rolePage is a role to display.
type rolePage struct {
	Name, Player string         // Player is the kind, in words
	Cast         engine.Casting // the agent or command that would play it now
	Why          string         // the config key that chooses it; "" if unknown or none
	About        Text
	Texts        []named
	Children     []roleChild
	Hints        []string // if it cannot be played now
}

// named is a text with a name.
type named struct {
	Name string
	Text
}

// roleChild is a child of a role to display: the role or workflow that it runs.
type roleChild struct{ Key, Role, Workflow, WorkflowLink string }

// mostRoles is the maximum number of roles displayed, and mostRoleChildren of children of a role.
const mostRoles, mostRoleChildren = 100, 100

// WorkflowOf reads a workflow for display, with texts of at most most bytes. link returns the page of another
// workflow, or "".
func WorkflowOf(ctx context.Context, e *engine.Engine, def workflow.Definition, most int,
	link func(protocol.Hash) string) Workflow {
	w := Workflow{Name: Line(def.Name, Longest), Description: TextOf(def.Description, most), Inputs: def.Inputs,
		Schemas: def.InputSchemas, Limits: view.LimitsText(*cmp.Or(def.Limits, &protocol.Limits{}))}
	c, err := e.Reader.Config(ctx)
	caster := e.Casting()
	caster.Config = func(context.Context) (protocol.Config, error) { return c, err } // avoid reading it again
	roles := flow.Roles(def.Workflow)
	w.MoreRoles = max(0, len(roles)-mostRoles)
	used := map[protocol.Hash]string{}
	for _, u := range def.Uses {
		used[u.Hash] = u.Definition.Name
	}
	for _, name := range roles[:len(roles)-w.MoreRoles] {
		role := roleOf(def, name, most)
		role.cast(&e.Reader, caster.Cast(ctx, def.Workflow, name, engine.StepOptions{}.Choices()), c, def.Name)
		children := childRoles(def.Roles[name])
		for i, key := range slices.Sorted(maps.Keys(children)) {
			p := children[key]
			child := roleChild{Key: Line(key, Longest), Role: Line(p.Role, Longest)}
			if p.Workflow != "" {
				child.Workflow, child.WorkflowLink = Line(cmp.Or(used[p.Workflow], string(p.Workflow)), Longest), link(p.Workflow)
			}
			if i == mostRoleChildren {
				role.Children = append(role.Children, roleChild{Key: "…"})
				break
			}
			role.Children = append(role.Children, child)
		}
		w.Roles = append(w.Roles, role)
	}
	return w
}

func roleOf(def workflow.Definition, name string, most int) rolePage {
	r := def.Roles[name]
	role := rolePage{Name: Line(name, Longest), Player: playerText(r.Player()), About: TextOf(r.Description, most)}
	add := func(name string, t Text) {
		if !t.Empty() {
			role.Texts = append(role.Texts, named{Name: name, Text: t})
		}
	}
	if r.Player() == protocol.PlayedByCommand {
		var words []string
		for _, word := range moderator.CommandLine(r.Command(), r.Env) {
			words = append(words, plaintext.Word(word))
		}
		add("Command", TextOf(strings.Join(words, " "), most))
	}
	add("Goal", TextOf(r.Goal, most))
	add("Capabilities", TextOf(strings.Join(r.Capabilities, "\n"), most))
	add("Procedure", TextOf(r.Procedure, most))
	add("Output", TextOf(r.Output, most))
	if r.Each != nil {
		add("One for each of", TextOf(r.Each.Of, most))
	}
	add("Joined by", TextOf(r.Join, most))
	add("Computed by", TextOf(r.Compute, most))
	add("Form of its data", ValueText(def.Schemas[name], most))
	return role
}

func playerText(p protocol.Player) string {
	return map[protocol.Player]string{
		protocol.PlayedByAgent: "an agent", protocol.PlayedByCommand: "a command", protocol.PlayedByPerson: "a person",
		protocol.PlayedByWorkflow: "another workflow", protocol.PlayedByAll: "several at once",
		protocol.PlayedByEach: "one for each", protocol.PlayedByCompute: "an expression",
	}[p]
}

// cast sets who would play the role now, and why.
func (r *rolePage) cast(reader *status.Reader, c engine.Casting, config protocol.Config, workflow string) {
	if r.Cast = c; c.Player == protocol.PlayedByAgent {
		r.Why = "defaultAgent"
		if config.AgentOverrides[workflow][c.Role] != "" {
			r.Why = Line("agentOverrides."+workflow+"."+c.Role, LongestTitle)
		}
		if config.ModelOverrides[workflow+"."+c.Role] != "" {
			r.Why += ", " + Line("modelOverrides."+workflow+"."+c.Role, LongestTitle)
		}
	}
	if c.Problem != nil {
		r.Hints = reader.HintsOf(c.Problem)
	}
}

// childRoles returns the children of a role by key; an only child and the children of a list have no key.
func childRoles(r protocol.Role) map[string]protocol.ChildRole {
	switch {
	case r.Workflow != "":
		return map[string]protocol.ChildRole{"": {Workflow: r.Workflow}}
	case r.Each != nil:
		return map[string]protocol.ChildRole{"": r.Each.ChildRole}
	}
	return r.All
}

// WorkflowGraph draws a workflow as SVG.
func WorkflowGraph(w protocol.Workflow) (string, error) { return picture.SVG(diagram.Of(w)) }

// ChangedFiles holds the changes of a step to the snapshotted files.
type ChangedFiles struct {
	List           []file
	More           int // number of files that are not listed
	Added, Removed int // number of lines
	Problem        string
}

// file is a file that a step has added, changed or removed.
type file struct {
	Path, What     string
	Text           bool // not binary
	Added, Removed int
	Diff           []Change // nil if it is too large or not displayed
}

// Limits on the displayed files of a step.
const (
	mostFiles     = 100
	mostDiffLines = 500
	mostDiffBytes = 64 << 10
)

// FilesOver returns the file changes from before step first to after step last, which can be the same, with the
// changed lines if diff is set and they are few. It returns nil if either has no snapshot.
func FilesOver(ctx context.Context, e *engine.Engine, first, last thread.Step, diff bool) *ChangedFiles {
	if first.Files == nil || last.Files == nil {
		return nil
	}
	f := &ChangedFiles{}
	states, err := e.Files().FilesOver(ctx, first.Hash, last.Hash)
	var list []snapshot.Change
	if err == nil {
		list, err = states.Changes(ctx)
	}
	for _, c := range list {
		f.Added, f.Removed = f.Added+max(c.Added, 0), f.Removed+max(c.Removed, 0)
		if len(f.List) < mostFiles {
			what := map[byte]string{'A': "added", 'D': "removed"}[byte(c.Status)]
			f.List = append(f.List, file{Path: Line(c.Path, LongestTitle), What: cmp.Or(what, "changed"),
				Text: c.Added >= 0, Added: c.Added, Removed: c.Removed})
		}
	}
	f.More = len(list) - len(f.List)
	if err == nil && diff && f.More == 0 && f.Added+f.Removed <= mostDiffLines {
		err = f.addDiff(ctx, states)
	}
	var coded *protocol.Error
	if errors.As(err, &coded) {
		err = errors.New(coded.Message)
	}
	if err != nil {
		f.Problem = firstLine(err)
	}
	return f
}

// CountFiles formats the number of files.
func (f *ChangedFiles) CountFiles() string { return render.Count(len(f.List)+f.More, "file") }

// addDiff adds the changed lines to the listed files: the patch has the same order. It omits binary files.
func (f *ChangedFiles) addDiff(ctx context.Context, states worktree.StepFiles) error {
	var patch bytes.Buffer
	if err := states.Patch(ctx, &patch); err != nil {
		return err
	}
	at, size, inLines := -1, 0, false
	for line := range strings.Lines(patch.String()) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case strings.HasPrefix(line, "diff --git "):
			at, inLines = at+1, false
			continue
		case strings.HasPrefix(line, "@@ "):
			inLines = true
		}
		if !inLines || line == "" || at >= len(f.List) {
			continue
		}
		if size += len(line); size > mostDiffBytes {
			f.List[at].Diff = append(f.List[at].Diff, Change{Mark: " ", Text: "[…]"})
			return nil
		}
		f.List[at].Diff = append(f.List[at].Diff, Change{Mark: line[:1], Text: TextOf(line[1:], mostDiffBytes).Body})
	}
	return nil
}

// Text is an untrusted text, shortened for display.
type Text struct {
	Body string
	Cut  int    // bytes omitted in the middle
	Link string // link to the full text; "" if none
}

// TextOf cleans a text and shortens it in the middle to at most most bytes.
func TextOf(s string, most int) Text {
	head, tail, left := plaintext.Ends(s, most*3/4, most/4)
	if left == 0 {
		return Text{Body: plaintext.Escape(s)}
	}
	return Text{Body: plaintext.Escape(head) + "\n\n[…]\n\n" + plaintext.Escape(tail), Cut: left}
}

// Empty reports whether there is nothing to display.
func (t Text) Empty() bool { return strings.TrimSpace(t.Body) == "" }

// Short returns the first line, shortened.
func (t Text) Short() string {
	first, _, _ := strings.Cut(strings.TrimSpace(t.Body), "\n")
	return Line(first, Longest)
}

// Scrolls reports whether a text may need a scroll bar. If so, it must be focusable by keyboard.
func (t Text) Scrolls() bool { return len(t.Body) > 800 || strings.Count(t.Body, "\n") > 20 }

// ValueText returns a JSON value as YAML, or a string as it is.
func ValueText(v any, most int) Text {
	if v == nil {
		return Text{}
	}
	if s, ok := v.(string); ok {
		return TextOf(s, most)
	}
	var b bytes.Buffer
	if err := render.Print(&b, render.YAML, v, nil); err != nil { // impossible: the value came from JSON
		return Text{Body: plaintext.Escape(err.Error())}
	}
	return TextOf(strings.TrimRight(b.String(), "\n"), most)
}

// datum is a field of a value.
type datum struct {
	Name string
	Text
	Words bool // the value is a string
	Long  bool // it is a string of more than a few words
}

// dataOf returns the fields of an object by name, so $status comes first; nil if the value is no object.
func dataOf(v any, most int) (data []datum) {
	const mostFields = 100
	object, _ := v.(map[string]any)
	names := slices.Sorted(maps.Keys(object))
	for _, name := range names[:min(len(names), mostFields)] {
		d := datum{Name: Line(name, Longest), Text: ValueText(object[name], max(most/len(names), Longest))}
		_, d.Words = object[name].(string)
		d.Long = d.Words && (len(d.Body) > Longest || strings.Contains(d.Body, "\n"))
		data = append(data, d)
	}
	if len(names) > mostFields {
		data = append(data, datum{Name: "…", Text: Text{Body: fmt.Sprintf("%d more fields", len(names)-mostFields)}})
	}
	return data
}

// withoutData returns an answer without what is displayed as its data.
func withoutData(answer string, data any) string {
	if parsed, err := frontmatter.Parse(answer); err == nil {
		return parsed.Body
	}
	var value any
	if json.Unmarshal([]byte(answer), &value) == nil {
		given, _ := json.Marshal(value)
		if kept, err := json.Marshal(data); err == nil && bytes.Equal(given, kept) {
			return ""
		}
	}
	return answer
}

// Line returns an untrusted name or title as one line of at most most characters.
func Line(s string, most int) string {
	const bytesEach = 4 // at most, in UTF-8
	s = plaintext.Line(s[:min(len(s), most*bytesEach)])
	if r := []rune(s); len(r) > most {
		s = string(r[:most-1]) + "…"
	}
	return strings.TrimSpace(s)
}

// LongestTitle is the maximum number of characters displayed of a title, and Longest of a name.
const (
	LongestTitle = 200
	Longest      = 80
)

// When is a time formatted for people and for programs.
type When struct{ Text, Machine string }

// WhenOf formats a time in the zone of now. It returns the zero value if the time is unknown: nil or 0.
func WhenOf(ms *int64, now time.Time) When {
	if ms == nil || *ms <= 0 {
		return When{}
	}
	at := time.UnixMilli(*ms).In(now.Location())
	return When{Text: at.Format("2006-01-02 15:04 MST"), Machine: at.Format(time.RFC3339)}
}

// CostOf formats what a run cost: "" if no model was used.
func CostOf(t protocol.Totals) string {
	switch cost := view.Cost(t); {
	case t.Usage != nil && t.Usage.IsPriced() && t.Usage.Tokens() == 0 && t.StepsWithoutCost == 0:
		return ""
	case cost == "unknown":
		return "cost unknown"
	default:
		return cost
	}
}

// costText formats the cost of a step.
func costText(u *protocol.Usage) string {
	switch {
	case !u.IsPriced():
		return "cost unknown"
	case u.CostUSD == nil, u.Turns == 0 && u.Tokens() == 0:
		return ""
	}
	return protocol.Dollars(*u.CostUSD)
}

func tokensText(u *protocol.Usage) string {
	switch {
	case !u.Counted():
		return "tokens unknown"
	case u.Turns == 0 && u.Tokens() == 0:
		return ""
	}
	return view.ShortTokens(u)
}

// Limits of an exported file.
const (
	exportSteps    = 2000
	exportTurns    = 500
	exportText     = 64 << 10
	exportChildren = 1000 // children per step
	exportFiles    = 100  // newest steps that include their file changes
)

// export is the data of the export template.
type export struct {
	Thread
	Style   template.CSS
	Hash    string // of the style, for a Content-Security-Policy
	All     iter.Seq[Step]
	Time    *Timeline
	Omitted int    // number of omitted steps, the oldest ones
	Lost    string // why the earlier steps are unreadable
	Made    When
}

// Export writes a thread as one self-contained HTML file: graph, steps, turns, and the differences between
// successive answers of a role. It reads steps while it writes. A very long thread is limited to its newest
// steps, and a long text to its start and end; the file mentions what is missing. With diffs set, it includes
// the changed lines of files, not only their names. It returns errors of [ThreadOf], w and ctx; the file shows
// errors of reading steps.
func Export(ctx context.Context, w io.Writer, e *engine.Engine, id string, diffs bool) error {
	templates, err := Templates()
	if err != nil {
		return err
	}
	style, err := Files.ReadFile("templates/style.css")
	if err != nil {
		return err
	}
	bounds := Bounds{Text: exportText, Turns: exportTurns, Children: exportChildren}
	about, at, err := ThreadOf(ctx, e, id, bounds)
	if err != nil {
		return err
	}
	now, sum := e.Reader.Env.Now().UnixMilli(), sha256.Sum256(style)
	x := export{Thread: about, Style: template.CSS(style), Made: WhenOf(&now, e.Reader.Env.Now()),
		Hash: "sha256-" + base64.StdEncoding.EncodeToString(sum[:])}
	if svg, err := Graph(ctx, e, id); err != nil {
		x.GraphProblem = firstLine(err)
	} else {
		x.Graph = template.URL("data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString([]byte(svg)))
	}
	t, err := thread.Open(ctx, e.Reader.Store, at.Head)
	if err != nil { // show only the status
		x.Lost = firstLine(err)
		x.All = func(func(Step) bool) {}
		return templates.ExecuteTemplate(w, "export", x)
	}
	steps, _, err := chainOf(ctx, t, exportSteps)
	if err != nil {
		x.Lost = firstLine(err)
	} else {
		x.Omitted = t.Len() - len(steps)
	}
	x.Time = TimelineOf(ctx, e, steps, Now{At: at})
	previous := map[string]string{} // answers by role
	x.All = func(yield func(Step) bool) {
		for i, s := range steps {
			step := StepOf(ctx, t, e.Reader.Store, s, e.Reader.Env.Now(), bounds)
			step.Open = i == len(steps)-1
			if i >= len(steps)-exportFiles {
				step.Files = FilesOver(ctx, e, s, s, diffs)
			}
			answer := step.Answer.Body
			if step.Answer.Empty() {
				answer = step.Data.Body
			}
			if before, ok := previous[s.Role]; ok && before != answer {
				step.Changes = Lines(before, answer)
			}
			previous[s.Role] = answer
			if ctx.Err() != nil || !yield(step) {
				return
			}
		}
	}
	if err := templates.ExecuteTemplate(w, "export", x); err != nil {
		return err
	}
	return context.Cause(ctx)
}
