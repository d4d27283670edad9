package workflow

import (
	"fmt"
	"strings"
	"time"

	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/moderator/mustache"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/yamldoc"
)

// exampleRun is a command as most are.
const exampleRun = "run: [go, test, ./...]"

// readCommand reads what makes a role a command.
func (d *draft) readCommand(r *roleDraft, m map[string]*yamldoc.Node, what string) {
	r.run = m["run"]
	r.role.Run = d.readWords(r.run, what)
	r.role.TimeoutMs = d.readTime(m["timeout"], "timeout of "+what)
	text, given := d.text(m["parse"], "parse of "+what)
	r.role.Parse = protocol.Parse(text)
	if given && r.role.Parse != protocol.ParseJSON && r.role.Parse != protocol.ParseFrontmatter {
		d.add(m["parse"].Pos, "parse: json, or parse: frontmatter", "parse of %s cannot be %s", what, quote(text))
	}
}

// readWords reads the words of a command. There is no shell that would take one apart.
func (d *draft) readWords(n *yamldoc.Node, what string) []string {
	if n == nil || isUnread(n) {
		return nil
	}
	if n.Kind != yamldoc.Sequence {
		remedy := exampleRun
		if words := strings.Fields(n.Text); n.Kind == yamldoc.Scalar && len(words) > 0 {
			remedy = "run: [" + strings.Join(words, ", ") + "]"
			if strings.ContainsAny(n.Text, "|&;<>$`*\"'") {
				remedy = "there is no shell; name one if it is needed: run: [sh, -c, " + quote(n.Text) + "]"
			}
		}
		d.add(n.Pos, remedy, "run of %s must be a list of words, but this is %s", what, kindOf(n))
		return nil
	}
	var words []string
	for i, item := range n.Items {
		word, ok := asWord(item)
		if !ok {
			word, ok = d.text(item, fmt.Sprintf("run[%d] of %s", i, what))
		}
		if ok && strings.ContainsRune(word, 0) {
			d.add(item.Pos, "", "run[%d] of %s has a NUL in it, which no command can be given", i, what)
		}
		words = append(words, word)
	}
	if len(words) == 0 || len(n.Items) > 0 && n.Items[0].Kind == yamldoc.Scalar && strings.TrimSpace(words[0]) == "" {
		d.add(n.Pos, exampleRun, "run of %s names no program", what)
		return nil
	}
	return words
}

// readPerson reads that a person plays a role.
func (d *draft) readPerson(r *roleDraft, n *yamldoc.Node, what string) {
	r.role.Person = d.yes(n, "person", what)
}

// yes reads a key that is true or left out.
func (d *draft) yes(n *yamldoc.Node, key, what string) bool {
	if n == nil || isUnread(n) {
		return false
	}
	if n.Kind != yamldoc.Scalar || n.Scalar != true {
		d.add(n.Pos, key+": true, or leave it out", "%s of %s must be true, but this is %s", key, what, kindOf(n))
		return false
	}
	return true
}

// asWord takes a number or true as the word that it was written as.
func asWord(n *yamldoc.Node) (string, bool) {
	if n.Kind != yamldoc.Scalar || n.Scalar == nil || n.Tag != "" {
		return "", false
	}
	if s, ok := n.Scalar.(string); ok {
		return s, true
	}
	return n.Text, n.Text != ""
}

// readTime reads a span of time, in milliseconds.
func (d *draft) readTime(n *yamldoc.Node, what string) int64 {
	if n == nil || isUnread(n) {
		return 0
	}
	text, _ := n.Scalar.(string)
	span, err := time.ParseDuration(text)
	if err != nil || span < time.Millisecond {
		d.add(n.Pos, "such as 90s or 10m", "%s must be a time, but this is %s", what, kindOf(n))
		return 0
	}
	return span.Milliseconds()
}

// commandSchema gives a role that is a command the schema of what all of them answer.
func (d *draft) commandSchema(r *roleDraft, n *yamldoc.Node, what string) {
	for _, key := range schemaKeys() {
		if e := n.Get(key); e != nil && !isNull(e) {
			d.add(e.Pos, `add "parse: json" or "parse: frontmatter" if the command prints the data, or leave it out: a command answers $status passed or failed, exitCode, output and truncated`,
				"%s has %q, but it does not say that its command prints data", what, key)
			return
		}
	}
	r.use(moderator.CommandSchema())
}

// checkCommand checks the templates of a command against what is known when an edge
// leads to it.
func (d *draft) checkCommand(n *nodeDraft, e *edgeDraft) {
	target := d.roleByName[e.edge.Role]
	if target == nil || target.run == nil || target.run.Kind != yamldoc.Sequence {
		return
	}
	source := d.sourceOf(n, e)
	for i, item := range target.run.Items {
		if i < len(target.role.Run) {
			d.checkTemplate(fmt.Sprintf("run[%d] of role %s, by %s", i, quote(target.name), n.at(e)), target.role.Run[i], item, source)
		}
	}
	d.noteProgram(target)
}

// checkPart checks the templates of a command that plays a part. Its thread is its own:
// nobody has answered in it, and what it is to know stands in its prompt.
func (d *draft) checkPart(c childDraft) {
	target := d.roleByName[c.role.text]
	if target == nil || target.run == nil || target.run.Kind != yamldoc.Sequence {
		return
	}
	for i, item := range target.run.Items {
		if i < len(target.role.Run) {
			d.checkTemplate(fmt.Sprintf("run[%d] of role %s, as %s", i, quote(target.name), c.what), target.role.Run[i], item, answer{part: &c})
		}
	}
}

// noteProgram tells the author of a command whose program is chosen by an answer.
func (d *draft) noteProgram(r *roleDraft) {
	if r.noted || len(r.role.Run) == 0 {
		return
	}
	t, err := mustache.Parse(r.role.Run[0])
	if err != nil {
		return
	}
	for _, tag := range t.Tags() {
		if len(tag.Path) == 0 || tag.Path[0] != protocol.InputsVariable {
			r.noted = true
			d.note(func() yamldoc.Pos { return r.run.Items[0].Pos },
				"role %s runs whatever program %s names: who answers it runs any command as you", quote(r.name), tag.Source)
			return
		}
	}
}
