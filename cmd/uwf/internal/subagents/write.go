package subagents

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/yamltext"
)

// header is what a reader of the file must know. It has the name, and the file as
// it is typed.
const header = `# %[1]s: Claude Code subagents as roles.
#
# EDIT THE GRAPH, at the end: subagents say when they are of use, not in which order, so it is
# only a chain, each role after the one before. Without a frontmatter, a role answers with a text.
#
#   uwf workflow validate %[2]s
#   uwf workflow graph %[2]s
#   uwf run %[2]s -p '<task>'
`

// Workflow writes a workflow with a role for each agent. typed is its file as it
// stands on a command line.
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

// role writes one, below what config.yaml must say of it.
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

// hint is a mapping on one line.
func hint(key string, value any) string {
	text, err := yamltext.Marshal(yamltext.Map{{Key: key, Value: value}})
	if err != nil {
		return ""
	}
	return "{ " + strings.TrimSpace(string(text)) + " }"
}

// sections are goal and procedure: the first paragraph, which says who the agent
// is, and all else. Nothing is lost or moved; a text that begins with anything but
// prose stays in one piece.
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

// chain leads through the roles in their order.
func chain(agents []Agent) yamltext.Map {
	edge := func(to, prompt string) yamltext.Map {
		return yamltext.Map{{Key: "_", Value: yamltext.Map{{Key: "role", Value: to}, {Key: "prompt", Value: prompt}}}}
	}
	graph := yamltext.Map{{Key: protocol.StartNode, Value: edge(agents[0].Name, "{{{$prompt}}}")}}
	for i, a := range agents {
		next := edge(protocol.EndNode, "{{{answer}}}")
		if i+1 < len(agents) {
			next = edge(agents[i+1].Name, "{{{$prompt}}}\n\nThe one before you has answered:\n\n{{{answer}}}")
		}
		graph = append(graph, yamltext.Entry{Key: a.Name, Value: next})
	}
	return graph
}

// Names gives each agent a name that a role can have, and that no other has.
func Names(agents []Agent) []Loss {
	var losses []Loss
	taken, last := map[string]bool{}, map[string]int{}
	for i := range agents {
		a := &agents[i]
		name := roleName(a.Name)
		if name != a.Name {
			losses = append(losses, Loss{File: a.File, Field: "name", Why: fmt.Sprintf("%s: the role is named %s", workflow.RoleNameProblem(a.Name), name)})
		}
		a.Name = name
		for base := shortened(name); taken[a.Name]; {
			last[base] = max(last[base], 1) + 1
			a.Name = fmt.Sprintf("%s-%d", base, last[base])
		}
		if taken[a.Name] = true; a.Name != name {
			losses = append(losses, Loss{File: a.File, Field: "name", Why: fmt.Sprintf("another file has the name %s: the role is named %s", name, a.Name)})
		}
	}
	return losses
}

// shortened is a name to which a number can be added.
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
