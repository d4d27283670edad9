package workflow

import (
	"fmt"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/moderator/mustache"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/lazyregexp"
	"github.com/united-workforce/uwf/util/yamldoc"
)

// Files of the original start with "version: 1" and keep YAML anchors under "x-…" keys. Neither is stored, so
// the workflow's hash doesn't depend on them.

// withoutVersion checks the version of a file and returns the file without it and without "x-…" keys.
func (d *draft) withoutVersion(root *yamldoc.Node) *yamldoc.Node {
	shown := *root
	shown.Entries = slices.DeleteFunc(slices.Clone(root.Entries), func(e yamldoc.Entry) bool {
		if e.Key != "version" {
			return strings.HasPrefix(e.Key, "x-")
		}
		if d.versioned = e.Value.Scalar == int64(1); !d.versioned {
			d.Add(e.Value.Pos, "version: 1", "unknown file format version %s", quote(e.Value.Text))
		}
		return true
	})
	return &shown
}

// checkLiquid rejects Liquid tags, the original's template language, in a file of the original. In other
// files they might be intended as text and only cause a notice.
func (d *draft) checkLiquid(what, template string, n *yamldoc.Node) {
	const open = "{%"
	at := strings.Index(template, open)
	if at < 0 {
		return
	}
	tag, _, _ := strings.Cut(template[at+len(open):], "%}")
	name, rest, _ := strings.Cut(strings.Trim(tag, "- \t\n"), " ")
	remedy, known := map[string]string{
		"if":      "write {{#x}}…{{/x}}, and {{^x}}…{{/x}} for else",
		"unless":  "write {{^x}}…{{/x}}",
		"for":     "write {{#x}}…{{.}}…{{/x}}",
		"comment": "write {{! … }}",
		"raw":     "write {{=<% %>=}} before it and <%={{ }}=%> after it",
		"assign":  "prepare the value in a role, and write {{x}}",
	}[name]
	if about := strings.Fields(rest); len(about) > 0 {
		x := about[0]
		if name == "for" { // "item in items"
			x = about[len(about)-1]
		}
		remedy = strings.ReplaceAll(remedy, "x}}", x+"}}")
	}
	place := func() yamldoc.Pos { return d.Nth(n.Pos, open, 0) }
	if d.versioned {
		d.Add(place(), remedy, "%s: unknown Liquid tag {%% %s %%}", what, name)
	} else if known {
		d.Note(place, "%s: {%% %s %%} is not a tag here and stays in the text; instead, %s", what, name, remedy)
	}
}

// noteForeign warns about variables of other tools in a prompt, which uwf doesn't replace.
func (d *draft) noteForeign(what, prompt string, n *yamldoc.Node) {
	if n == nil {
		return
	}
	note := func(word, remedy string) {
		if !d.once(fmt.Sprint(n.Pos, word)) {
			return // a role's prompt can be used by several edges
		}
		d.Note(func() yamldoc.Pos { return d.Nth(n.Pos, word, 0) }, "%s: %s stays in the text; write %s", what, word, remedy)
	}
	if word := "$ARGUMENTS"; strings.Contains(prompt, word) {
		note(word, "{{"+protocol.PromptVariable+"}}")
	}
	if found := dollarPattern().FindStringSubmatch(prompt); found != nil {
		note(found[0], "{{"+found[1]+"}}")
	}
}

// dollarPattern matches ${x}. A name in capitals is an environment variable, which a prompt can legitimately
// mention.
var dollarPattern = lazyregexp.New(`\$\{([a-z][A-Za-z0-9_.]*)\}`)

// bodyPattern matches a tag with the original's name for the text of an answer.
var bodyPattern = lazyregexp.New(`(\{\{[{&#^/]?\s*)_body(\s*\}\})`)

// withBody replaces the original's "_body" with "$body" in a template, unless the answer has such a field.
func withBody(template string, from answer) string {
	if _, own := from.fields.field("_body", false); own || from.skip || from.role == nil {
		return template
	}
	return bodyPattern().ReplaceAllString(template, "${1}$"+protocol.BodyVariable+"${2}")
}

// filterRemedy rewrites a Liquid or Jinja filter, or a tag that trims whitespace; "" if it can't.
func filterRemedy(name string) string {
	x, filter, found := strings.Cut(name, "|")
	if !found {
		if plain := strings.Trim(name, "- "); plain != name && plain != "" {
			return "write {{" + plain + "}}"
		}
		return ""
	}
	x, filter = strings.TrimSpace(x), strings.TrimSpace(filter)
	word := filter[:len(filter)-len(strings.TrimLeft(filter, "abcdefghijklmnopqrstuvwxyz_"))]
	switch word {
	case "default":
		other := strings.Trim(strings.TrimLeft(strings.TrimPrefix(filter, word), ":( "), `"') `)
		return "write {{#" + x + "}}{{" + x + "}}{{/" + x + "}}{{^" + x + "}}" + other + "{{/" + x + "}}"
	case "join":
		return "write {{" + x + ` | join: ", "}}`
	}
	return "join is the only filter; use a role with compute and its field here"
}

// inputMeant returns the input variable that {{topic}} or {{inputs.topic}} probably refers to, or "".
func (d *draft) inputMeant(tag mustache.Tag) string {
	path := tag.Path
	if path[0] == "inputs" {
		path = path[1:]
	}
	for _, i := range d.inputs {
		if len(path) > 0 && path[0] == i.name {
			return protocol.InputsVariable + "." + strings.Join(path, ".")
		}
	}
	return ""
}

// emptyAtStart records a variable that doesn't exist at $START, where the original renders it as nothing.
func (d *draft) emptyAtStart(what string, tag mustache.Tag, at func() yamldoc.Pos) {
	name := tag.Path[len(tag.Path)-1]
	d.Note(at, "%s: %s is empty at %s; add inputs: {%s: string}, and write {{%s.%s}}", what, tag.Source,
		protocol.StartNode, name, protocol.InputsVariable, name)
}

// checkOriginal checks an edge's template and returns its stored form: with "$body", and in a file of the
// original without the variables missing at $START.
func (d *draft) checkOriginal(what, template string, n *yamldoc.Node, from answer) string {
	template = withBody(template, from)
	if d.versioned && from.role == nil && !from.skip {
		from.empty = &[]string{}
	}
	d.checkTemplate(what, template, n, from)
	if from.empty != nil {
		for _, tag := range *from.empty {
			template = strings.Replace(template, tag, "", 1)
		}
		if len(*from.empty) > 0 && strings.TrimSpace(template) == "" {
			return "" // falls back to the role's description
		}
	}
	return template
}
