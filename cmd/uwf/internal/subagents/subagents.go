// Package subagents converts Claude Code's subagents to a workflow. They are Markdown files whose frontmatter
// describes a subagent and whose text is its system prompt.
//
// Fields without a counterpart in a workflow file are reported instead: the agent, tools and model of a role
// are configuration, and nothing is imported that would run automatically.
package subagents

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/yamldoc"
	"github.com/united-workforce/uwf/util/yamltext"
)

// MaxFile bounds a file, and the total of all prompts.
const MaxFile = 1 << 20

// maxDescription bounds the description of a role, in characters.
const maxDescription = 300

// Agent is a subagent as a role.
type Agent struct {
	File        string   // as shown to the user
	Name        string   // of the role
	Description string   // one line
	Prompt      string   // the text after the frontmatter
	Tools       []string // as listed
	Permission  string   // the narrowest permission in uwf that covers its tools; "" for any
	Model       string   // "" for the caller's
}

// Loss is a part of a file that the workflow does not contain.
type Loss struct {
	File  string `json:"file"`
	Line  int    `json:"line,omitempty"`
	Field string `json:"field,omitempty"` // "" for the whole file
	Why   string `json:"why"`
}

// Parse parses a subagent. The error explains why the file is not one.
func Parse(file string, data []byte) (Agent, []Loss, error) {
	front, body, ok := split(string(data))
	if !ok {
		return Agent{}, nil, errors.New("has no frontmatter between two lines ---")
	}
	r := reader{agent: Agent{File: file}}
	r.fields(front)
	if r.lines["name"]+r.lines["description"] == 0 { // ordinary documentation
		return Agent{}, nil, errors.New("has a frontmatter without name and description")
	}
	r.prompt(body)
	r.name()
	if r.agent.Description == "" {
		r.agent.Description = "Does the work of " + plaintext.Line(r.agent.Name) + "."
		r.lose(0, "description", "missing")
	}
	r.access()
	return r.agent, r.losses, nil
}

// split splits off the frontmatter between two lines of three dashes.
func split(text string) (front, body string, ok bool) {
	text = strings.TrimPrefix(text, "\ufeff")
	first, rest, _ := strings.Cut(text, "\n")
	if !isRule(first) {
		return "", "", false
	}
	for at := 0; at < len(rest); {
		line, _, more := strings.Cut(rest[at:], "\n")
		end := at + len(line)
		if more {
			end++
		}
		if isRule(line) {
			return rest[:at], rest[end:], true
		}
		at = end
	}
	return "", "", false
}

func isRule(line string) bool { return strings.TrimRight(line, " \t\r") == "---" }

type reader struct {
	agent      Agent
	losses     []Loss
	lines      map[string]int // line numbers of the fields
	listed     bool           // the file lists tools
	disallowed []string
	planning   bool // permissionMode: plan
}

func (r *reader) lose(line int, field, why string) {
	r.losses = append(r.losses, Loss{File: r.agent.File, Line: line, Field: field, Why: why})
}

// fields parses the frontmatter. Claude Code accepts and generates invalid YAML, such as a description with a
// colon; such files are parsed line by line.
func (r *reader) fields(front string) {
	r.lines = map[string]int{}
	var entries []yamldoc.Entry
	doc, err := yamldoc.Parse([]byte(front), yamldoc.Bounds{})
	switch {
	case err != nil:
		line := 1
		var e *yamldoc.Error
		if errors.As(err, &e) {
			line += e.Pos.Line
		}
		r.lose(line, "frontmatter", "is not YAML and was read line by line; check the result")
		entries = byLine(front)
	case doc.Root.Kind == yamldoc.Mapping:
		entries = doc.Root.Entries
	}
	for _, e := range entries {
		if r.lines[e.Key] > 0 {
			r.lose(e.Pos.Line+1, e.Key, "is a duplicate; the first one is used")
			continue
		}
		r.lines[e.Key] = e.Pos.Line + 1
		r.field(e)
	}
}

// byLine parses "key: text" with indented continuation lines.
func byLine(front string) []yamldoc.Entry {
	var entries []yamldoc.Entry
	number := 0
	for line := range strings.Lines(strings.ReplaceAll(front, "\r\n", "\n")) {
		number++
		key, text, found := strings.Cut(line, ":")
		if found && isKey(key) {
			text = unquote(strings.TrimSpace(text))
			value := &yamldoc.Node{Scalar: text, Text: text, Pos: yamldoc.Pos{Line: number, Column: 1}}
			entries = append(entries, yamldoc.Entry{Key: key, Text: key, Pos: value.Pos, Value: value})
			continue
		}
		if len(entries) > 0 && strings.TrimSpace(line) != "" {
			addLine(entries[len(entries)-1].Value, strings.TrimSpace(line))
		}
	}
	return entries
}

// addLine adds a line to a text, or an item to a list.
func addLine(n *yamldoc.Node, line string) {
	if item, ok := strings.CutPrefix(line, "- "); ok && (n.Text == "" || n.Kind == yamldoc.Sequence) {
		item = unquote(strings.TrimSpace(item))
		n.Kind, n.Items = yamldoc.Sequence, append(n.Items, &yamldoc.Node{Scalar: item, Text: item})
		return
	}
	if n.Kind != yamldoc.Scalar || len(n.Text) > 16*maxDescription { // no field needs more
		return
	}
	switch n.Text {
	case "", "|", ">", "|-", ">-":
		n.Text = line
	default:
		n.Text += "\n" + line
	}
	n.Scalar = n.Text
}

func isKey(key string) bool {
	if key == "" || len(key) > 40 {
		return false
	}
	return !strings.ContainsFunc(key, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_'
	})
}

func unquote(s string) string {
	if len(s) >= 2 && (s[0] == '"' || s[0] == '\'') && s[len(s)-1] == s[0] {
		return s[1 : len(s)-1]
	}
	return s
}

func (r *reader) field(e yamldoc.Entry) {
	switch e.Key {
	case "name":
		r.agent.Name = strings.TrimSpace(r.text(e))
	case "description":
		r.description(r.text(e), e.Pos.Line+1)
	case "model":
		if model := strings.TrimSpace(r.text(e)); model != "" && model != "inherit" {
			r.agent.Model = oneLine(model, 100)
			r.lose(e.Pos.Line+1, e.Key, "models belong in modelOverrides of config.yaml; see the role's comment")
		}
	case "tools":
		r.agent.Tools, r.listed = r.words(e), e.Value.Kind == yamldoc.Sequence || e.Value.Scalar != nil
	case "disallowedTools":
		r.disallowed = r.words(e)
	case "permissionMode":
		r.planning = r.text(e) == "plan"
		r.lose(e.Pos.Line+1, e.Key, "permissions belong to the agent in config.yaml")
	default:
		r.lose(e.Pos.Line+1, oneLine(e.Key, 40), whyNot(e.Key))
	}
}

// whyNot returns why a field has no counterpart in a workflow.
func whyNot(field string) string {
	return cmp.Or(map[string]string{
		"hooks":      "hooks are not imported; use a role with run: instead",
		"mcpServers": "set up servers in the agent's program",
		"skills":     "the agent's program finds skills of the workspace itself",
		"maxTurns":   "roles have no such limit; see limits of the workflow and builtin.maxTurns in config.yaml",
		"color":      "roles have no colours",
		"memory":     "roles have no memory between runs",
		"isolation":  "use uwf run --workspace worktree for the whole run",
		"background": "use all or each to run roles in parallel",
	}[field], "roles have no equivalent")
}

func (r *reader) text(e yamldoc.Entry) string {
	if e.Value.Kind != yamldoc.Scalar {
		r.lose(e.Pos.Line+1, e.Key, "is not text")
		return ""
	}
	if e.Value.Scalar == nil {
		return ""
	}
	return e.Value.Text
}

// words parses a list, or a comma-separated text. "Bash(git add:*, git rm:*)" is one word.
func (r *reader) words(e yamldoc.Entry) []string {
	var words []string
	add := func(s string) {
		if s = oneLine(s, 100); s != "" {
			words = append(words, s)
		}
	}
	if e.Value.Kind == yamldoc.Sequence {
		for _, item := range e.Value.Items {
			if item.Kind != yamldoc.Scalar {
				r.lose(e.Pos.Line+1, e.Key, "has an item that is not text")
				continue
			}
			add(item.Text)
		}
		return words
	}
	text, depth, from := r.text(e), 0, 0
	for i, c := range text {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth <= 0:
			add(text[from:i])
			from = i + 1
		}
	}
	add(text[from:])
	return words
}

// description returns the first paragraph on one line. Descriptions generated by Claude Code continue with
// examples for the model that chooses a subagent, for which uwf has the graph, and contain \n for line
// breaks.
func (r *reader) description(text string, line int) {
	whole := strings.TrimSpace(strings.ReplaceAll(text, `\n`, "\n"))
	first, _, _ := strings.Cut(strings.ReplaceAll(whole, "\r\n", "\n"), "\n\n")
	first, _, _ = strings.Cut(first, "<example>")
	r.agent.Description = oneLine(first, maxDescription)
	if strings.Join(strings.Fields(whole), " ") != r.agent.Description {
		r.lose(line, "description", "must be one line; it was shortened, and control characters were removed")
	}
}

func oneLine(s string, most int) string {
	s = strings.Join(strings.Fields(plaintext.Line(strings.ToValidUTF8(s, "\uFFFD"))), " ")
	if utf8.RuneCountInString(s) > most {
		s = string([]rune(s)[:most-1]) + "…"
	}
	return s
}

// prompt keeps the text except for control characters and trailing blanks.
func (r *reader) prompt(body string) {
	body = strings.ReplaceAll(body, "\r\n", "\n")
	text := plaintext.Replace(body)
	if text != body {
		r.lose(0, "text", "control characters or invalid UTF-8 were replaced")
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " \t")
	}
	r.agent.Prompt = strings.Trim(strings.Join(lines, "\n"), "\n")
	if r.agent.Prompt == "" {
		r.lose(0, "text", "missing below the frontmatter; the description became the goal")
	}
}

// name defaults to the file's name.
func (r *reader) name() {
	if r.agent.Name == "" {
		base := filepath.Base(r.agent.File)
		r.agent.Name = strings.TrimSuffix(base, filepath.Ext(base))
		r.lose(0, "name", "missing; the role is named after the file")
	}
}

// access determines the narrowest permission in config.yaml that covers all tools; without a list, every tool
// is available that is not excluded. A workflow file neither grants nor denies anything, so users who rely on
// such a list must be warned.
func (r *reader) access() {
	reading := []string{"Read", "Grep", "Glob", "LS", "NotebookRead", "WebFetch", "WebSearch", "TodoWrite", "TodoRead", "AskUserQuestion"}
	editing := []string{"Edit", "Write", "MultiEdit", "NotebookEdit"}
	tools, need := r.agent.Tools, "read-only"
	if !r.listed {
		tools = append(editing, "Bash")
	}
	for _, tool := range tools {
		switch {
		case r.planning, slices.Contains(r.disallowed, tool), slices.Contains(reading, tool):
		case need != "" && slices.Contains(editing, tool):
			need = "edits"
		default: // any other tool may do anything
			need = ""
		}
	}
	why := "not enforced: a workflow grants no tools; the agent that plays the role has its own"
	if r.agent.Permission = need; need != "" {
		why = "not enforced: a workflow grants no tools; let an agent with permission: " + need + " play the role (agentOverrides in config.yaml)"
	}
	for _, field := range []string{"tools", "disallowedTools"} {
		if line := r.lines[field]; line > 0 {
			r.lose(line, field, why)
		}
	}
}

// header introduces the generated file. Its arguments are the name and the file as typed.
const header = `# %[1]s: Claude Code subagents as roles.
#
# EDIT THE GRAPH, at the end: subagents say when they are of use, not in which order, so it is
# only a chain, each role after the one before. Without a frontmatter, a role answers with a text.
#
#   uwf workflow validate %[2]s
#   uwf workflow graph %[2]s
#   uwf run %[2]s -p '<task>'
`

// Workflow returns a workflow with a role for each agent. typed is its file as typed on a command line.
func Workflow(name, typed string, agents []Agent) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, header, name, plaintext.Line(typed))
	top := yamltext.Map{
		{Key: "name", Value: name},
		{Key: "description", Value: "Roles made of Claude Code subagents, one after the other."},
	}
	if err := write(&b, top); err != nil {
		return "", err
	}
	b.WriteString("\nroles:\n")
	for i, a := range agents {
		if i > 0 {
			b.WriteByte('\n')
		}
		if err := role(&b, name, a); err != nil {
			return "", err
		}
	}
	b.WriteString("\n# A chain in the order of the files: edit it.\n")
	bottom := yamltext.Map{{Key: "graph", Value: chain(agents)}}
	if len(agents) > protocol.DefaultMaxSteps {
		bottom = append(bottom, yamltext.Entry{Key: "limits", Value: yamltext.Map{{Key: "maxSteps", Value: len(agents)}}, Blank: true})
	}
	err := write(&b, bottom)
	return b.String(), err
}

func write(b *strings.Builder, m yamltext.Map) error {
	text, err := yamltext.Marshal(m)
	b.Write(text)
	return err
}

// role writes one role, preceded by the settings that it needs in config.yaml.
func role(b *strings.Builder, flow string, a Agent) error {
	comment := func(format string, args ...any) {
		b.WriteString("  # " + plaintext.Line(fmt.Sprintf(format, args...)) + "\n")
	}
	comment("from %s", a.File)
	if len(a.Tools) > 0 {
		comment("tools: %s", oneLine(strings.Join(a.Tools, ", "), 200))
	}
	if a.Permission != "" {
		comment("config.yaml: agentOverrides: %s, an agent with permission: %s", hint(flow, yamltext.Map{{Key: a.Name, Value: "AGENT"}}), a.Permission)
	}
	if a.Model != "" {
		comment("config.yaml: modelOverrides: %s", hint(flow+"."+a.Name, a.Model))
	}
	goal, procedure := a.sections()
	fields := yamltext.Map{{Key: "description", Value: a.Description}, {Key: "goal", Value: goal}}
	if procedure != "" {
		fields = append(fields, yamltext.Entry{Key: "procedure", Value: procedure})
	}
	text, err := yamltext.Marshal(yamltext.Map{{Key: "roles", Value: yamltext.Map{{Key: a.Name, Value: fields}}}})
	b.WriteString(strings.TrimPrefix(string(text), "roles:\n"))
	return err
}

// hint formats a mapping on one line.
func hint(key string, value any) string {
	text, err := yamltext.Marshal(yamltext.Map{{Key: key, Value: value}})
	if err != nil {
		return ""
	}
	return "{ " + strings.TrimSpace(string(text)) + " }"
}

// sections splits the prompt into goal and procedure: the first paragraph, which describes the agent, and the
// rest. Nothing is lost or moved; a text that does not begin with prose stays in one piece.
func (a Agent) sections() (goal, procedure string) {
	if a.Prompt == "" {
		return a.Description, ""
	}
	first, rest, _ := strings.Cut(a.Prompt, "\n\n")
	start, _ := utf8.DecodeRuneInString(first)
	if !unicode.IsLetter(start) || strings.Contains(first, "```") || strings.Contains(first, "~~~") {
		return a.Description, a.Prompt
	}
	return first, strings.Trim(rest, "\n")
}

// chain returns a graph that visits the roles in order.
func chain(agents []Agent) yamltext.Map {
	edge := func(to, prompt string) yamltext.Map {
		return yamltext.Map{{Key: "role", Value: to}, {Key: "prompt", Value: prompt}}
	}
	graph := yamltext.Map{{Key: protocol.StartNode, Value: edge(agents[0].Name, "{{$prompt}}")}}
	for i, a := range agents {
		next := edge(protocol.EndNode, "{{answer}}")
		if i+1 < len(agents) {
			next = edge(agents[i+1].Name, "{{$prompt}}\n\nThe one before you has answered:\n\n{{answer}}")
		}
		graph = append(graph, yamltext.Entry{Key: a.Name, Value: next})
	}
	return graph
}

// Names gives each agent a valid and unique role name.
func Names(agents []Agent) []Loss {
	var losses []Loss
	taken, last := map[string]bool{}, map[string]int{}
	for i := range agents {
		a := &agents[i]
		name := roleName(a.Name)
		if name != a.Name {
			losses = append(losses, Loss{File: a.File, Field: "name", Why: fmt.Sprintf("%s; the role is named %s", workflow.RoleNameProblem(a.Name), name)})
		}
		a.Name = name
		for base := shortened(name); taken[a.Name]; {
			last[base] = max(last[base], 1) + 1
			a.Name = fmt.Sprintf("%s-%d", base, last[base])
		}
		if taken[a.Name] = true; a.Name != name {
			losses = append(losses, Loss{File: a.File, Field: "name", Why: fmt.Sprintf("another file has the name "+
				"%s; the role is named %s", name, a.Name)})
		}
	}
	return losses
}

// shortened returns a name short enough to append a number.
func shortened(name string) string {
	if r := []rune(name); len(r) > protocol.MaxName-10 {
		return strings.TrimSpace(string(r[:protocol.MaxName-10]))
	}
	return name
}

func roleName(name string) string {
	if workflow.RoleNameProblem(name) == "" {
		return name
	}
	name = strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\`, r) || !unicode.IsPrint(r) {
			return '-'
		}
		return r
	}, strings.ToValidUTF8(name, "-"))
	name = strings.TrimLeft(strings.TrimSpace(name), "-$ ")
	if name = strings.TrimRight(shortened(name), "- "); workflow.RoleNameProblem(name) != "" {
		return "role"
	}
	return name
}
