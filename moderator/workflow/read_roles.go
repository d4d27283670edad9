package workflow

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/moderator/mustache"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/jsonschema"
	"github.com/united-workforce/uwf/util/yamldoc"
)

// schemaKeys lists the keys for a role's schema. The first is preferred; the others are older.
func schemaKeys() []string { return []string{"schema", "frontmatter", "meta", "outputSchema"} }

func (d *draft) readRoles(n *yamldoc.Node) {
	if n == nil {
		return
	}
	if isUnread(n) {
		d.incomplete, d.lostRoles = true, true
		return
	}
	if n.Kind != yamldoc.Mapping {
		d.Add(n.Pos, "", "roles must be a mapping from name to role, not %s", kindOf(n))
		d.incomplete = true
		return
	}
	for _, e := range n.Entries {
		r := d.readRole(e)
		d.roles = append(d.roles, r)
		d.roleByName[r.name] = r
		d.roleNames = append(d.roleNames, r.name)
	}
	d.targets = append(slices.Clone(d.roleNames), protocol.EndNode, protocol.FailNode, protocol.SuspendNode)
}

func (d *draft) readRole(e yamldoc.Entry) *roleDraft {
	r := &roleDraft{name: e.Key, pos: e.Pos}
	what := "role " + quote(e.Key)
	n := e.Value
	if isUnread(n) {
		return r
	}
	if n.Kind != yamldoc.Mapping {
		d.Add(n.Pos, "add a goal, a prompt and an answer, or one of run, person, workflow, all, each",
			"%s must be a mapping, not %s", what, kindOf(n))
		return r
	}
	fields, player := roleFields(n)
	m := d.mapping(n, e.Pos, what, fields)
	text := func(key string) string {
		s, _ := d.text(m[key], key+" of "+what)
		return s
	}
	description, read := d.text(m["description"], "description of "+what)
	r.blank, r.player = read && strings.TrimSpace(description) == "", player
	r.derived = d.derived[e.Key]
	if prompt, ok := d.text(m["prompt"], "prompt of "+what); ok && strings.TrimSpace(prompt) == "" {
		d.Add(m["prompt"].Pos, "remove it to use the description", "prompt of %s is blank", what)
	}
	r.role = protocol.Role{
		Description: description, Goal: text("goal"), Procedure: text("procedure"),
		Output: text("output"), ExtractPrompt: text("extractPrompt"),
		Capabilities: d.readCapabilities(m["capabilities"], what),
	}
	d.onePlayer(m, what)
	switch player {
	case protocol.PlayedByWorkflow, protocol.PlayedByAll, protocol.PlayedByEach:
		d.readChildren(r, m, what, player)
	case protocol.PlayedByPerson:
		r.role.Person = d.yes(m["person"], "person", what)
	case protocol.PlayedByCompute:
		d.readCompute(r, m["compute"], what)
	case protocol.PlayedByCommand:
		d.readCommand(r, m, what)
		if r.role.Parse == "" {
			d.commandSchema(r, n, what)
			return r
		}
	}
	d.readSchema(r, n, what)
	return r
}

// roleFields returns the keys of a role, depending on its player.
func roleFields(n *yamldoc.Node) ([]field, protocol.Player) {
	prompted := hasKey(n, "prompt")
	instructed := field{key: "description", required: !prompted,
		remedy: `one line about what the role does, or "prompt": what it is asked`}
	fields := []field{{key: "description"}, {key: "prompt"}}
	// at most one, see readSchema
	schema := []field{{key: "answer"}, {key: "schema"}, {key: "frontmatter", older: true}, {key: "meta", older: true},
		{key: "outputSchema", older: true}}
	players := []field{{key: "run"}, {key: "person"}, {key: "workflow"}, {key: "all"}, {key: "each"},
		{key: "compute"}}
	children := slices.Concat(fields, players, schema, []field{{key: "join"}, {key: "collect"}, {key: "parallel"},
		{key: "workspace"}, {key: "merge"}})
	switch {
	case hasKey(n, "run"):
		fields = append(fields, field{key: "parse"}, field{key: "timeout"}, field{key: "shell"}, field{key: "env"})
		return slices.Concat(fields, players, schema), protocol.PlayedByCommand
	case hasKey(n, "compute"):
		return slices.Concat(fields, players, schema), protocol.PlayedByCompute
	case hasKey(n, "person"):
		fields[0] = instructed
		return slices.Concat(fields, players, schema), protocol.PlayedByPerson
	case hasKey(n, "workflow"):
		return append(children, field{key: "vars"}), protocol.PlayedByWorkflow
	case hasKey(n, "all"):
		return append(children, field{key: "onFailure"}), protocol.PlayedByAll
	case hasKey(n, "each"):
		return append(children, field{key: "onFailure"}), protocol.PlayedByEach
	}
	fields[0] = instructed
	fields = append(fields, field{key: "goal", required: !prompted && hasKey(n, "description"), remedy: "who the agent is " +
		"and what it aims for"},
		field{key: "capabilities"}, field{key: "procedure"}, field{key: "output"})
	return slices.Concat(fields, schema, []field{{key: "extractPrompt", older: true}}, players), protocol.PlayedByAgent
}

// hasKey reports whether a mapping has a non-null value for a key.
func hasKey(n *yamldoc.Node, key string) bool {
	v := n.Get(key)
	return v != nil && !isNull(v)
}

// readCapabilities reads a list of words. The result is never nil.
func (d *draft) readCapabilities(n *yamldoc.Node, what string) []string {
	list := []string{}
	if n == nil || isUnread(n) {
		return list
	}
	if n.Kind != yamldoc.Sequence {
		remedy := ""
		if n.Kind == yamldoc.Scalar {
			remedy = "capabilities: [" + n.Text + "]"
		}
		d.Add(n.Pos, remedy, "capabilities of %s must be a list of strings, not %s", what, kindOf(n))
		return list
	}
	for _, item := range n.Items {
		if s, ok := d.text(item, "a capability of "+what); ok {
			list = append(list, s)
		}
	}
	return list
}

// readSchema reads a role's schema from one of its keys. An agent role without a schema answers with text.
// The schema's content is checked later.
func (d *draft) readSchema(r *roleDraft, role *yamldoc.Node, what string) {
	var found *yamldoc.Entry
	twice := false
	for _, key := range schemaKeys() {
		for i, e := range role.Entries {
			if e.Key != key {
				continue
			}
			if found != nil {
				d.Add(e.Pos, "keep only one", "%s has both %q and %q, which are the same", what, found.Key, e.Key)
				twice = true
				continue
			}
			found = &role.Entries[i]
		}
	}
	if found == nil && misspelt(role) {
		return // reported with the key
	}
	if found == nil && r.role.Person {
		d.Add(r.pos, `add "answer": the fields of the form, such as {$status: [yes, no], why: string}`, "%s has no \"answer\"", what)
		return
	}
	if found == nil && r.role.Parse == protocol.ParseJSON {
		d.Note(func() yamldoc.Pos { return r.pos }, "%s can answer any JSON object; add \"answer\" so that the "+
			"fields used in the workflow are checked", what)
		r.use(map[string]any{"type": "object", "additionalProperties": true})
		return
	}
	if found == nil && r.role.Parse != "" {
		d.Add(r.pos, `add "answer": the fields that the command prints`, "%s has no \"answer\"", what)
		return
	}
	if found == nil && r.role.Compute != "" {
		d.Add(r.pos, `add "answer": the fields that it computes`, "%s has no \"answer\"", what)
		return
	}
	if found == nil && r.role.HasChildren() {
		if r.role.Join != "" {
			d.Add(r.pos, `add "answer": the fields that the join returns`, "%s has a \"join\", but no \"answer\"", what)
		}
		if r.role.Merge {
			r.use(moderator.MergeSchema())
			return
		}
		r.use(moderator.JoinSchema())
		return
	}
	if found == nil {
		r.use(protocol.AnswerSchema())
		return
	}
	n := found.Value
	if n.Tag != "" || twice {
		return // already rejected
	}
	if n.Kind != yamldoc.Mapping {
		d.Add(n.Pos, "schema: {type: object, properties: {…}, required: […]}",
			"%s of %s must be a JSON Schema, not %s", found.Key, what, kindOf(n))
		return
	}
	if !isTyped(n) {
		d.Add(found.Pos, `add "type: object"`, "%s of %s needs a \"type\" or \"oneOf\"", found.Key, what)
		return
	}
	r.yaml = n
	r.use(n.Value())
}

// use sets the role's schema.
func (r *roleDraft) use(schema any) {
	r.schema = schema
	r.statuses = statusesOf(r.schema)
	r.answers = answersOf(r.schema, r.statuses.key)
}

// misspelt reports whether a role has a key that looks like a misspelt schema key.
func misspelt(role *yamldoc.Node) bool {
	fields, _ := roleFields(role)
	return slices.ContainsFunc(role.Entries, func(e yamldoc.Entry) bool {
		known := slices.ContainsFunc(fields, func(f field) bool { return f.key == e.Key })
		return !known && len(nearest(e.Key, schemaKeys())) > 0
	})
}

// isTyped reports whether a schema has a type. An empty schema would accept any answer.
func isTyped(n *yamldoc.Node) bool {
	if t := n.Get("type"); t != nil && t.Kind == yamldoc.Scalar {
		if _, ok := t.Scalar.(string); ok {
			return true
		}
	}
	oneOf := n.Get("oneOf")
	return oneOf != nil && oneOf.Kind == yamldoc.Sequence
}

// exampleRun is a typical command.
const exampleRun = "run: [go, test, ./...]"

// readCommand reads the keys of a command role.
func (d *draft) readCommand(r *roleDraft, m map[string]*yamldoc.Node, what string) {
	r.run = m["run"]
	if script, ok := textOf(r.run); ok {
		d.readScript(r, script, m["shell"], what)
	} else {
		r.role.Run = d.readWords(r.run, what)
		if n := m["shell"]; n != nil {
			d.Add(n.Pos, "remove it, or write run as one text", "%s has a shell, but run is a list of words", what)
		}
	}
	d.readEnv(r, m["env"], what)
	r.role.TimeoutMs = d.span(m["timeout"], "timeout of "+what, "timeout: 10m")
	text, given := d.text(m["parse"], "parse of "+what)
	r.role.Parse = protocol.Parse(text)
	if given && r.role.Parse != protocol.ParseJSON && r.role.Parse != protocol.ParseFrontmatter {
		d.Add(m["parse"].Pos, "parse: json, or parse: frontmatter", "parse of %s cannot be %s", what, quote(text))
	}
}

// readWords reads the words of a command, which no shell splits.
func (d *draft) readWords(n *yamldoc.Node, what string) []string {
	if n == nil || isUnread(n) {
		return nil
	}
	if n.Kind != yamldoc.Sequence {
		d.Add(n.Pos, exampleRun, "run of %s must be a list of words, or a script as one text, not %s", what, kindOf(n))
		return nil
	}
	var words []string
	for i, item := range n.Items {
		word, ok := asWord(item)
		if !ok {
			word, ok = d.text(item, fmt.Sprintf("run[%d] of %s", i, what))
		}
		if ok && strings.ContainsRune(word, 0) {
			d.Add(item.Pos, removeNUL, "run[%d] of %s has a NUL character, which commands cannot receive", i, what)
		}
		words = append(words, word)
	}
	if len(words) == 0 || len(n.Items) > 0 && n.Items[0].Kind == yamldoc.Scalar && strings.TrimSpace(words[0]) == "" {
		d.Add(n.Pos, exampleRun, "run of %s has no program", what)
		return nil
	}
	return words
}

// yes reads a key that is either true or absent.
func (d *draft) yes(n *yamldoc.Node, key, what string) bool {
	if n == nil || isUnread(n) {
		return false
	}
	if n.Kind != yamldoc.Scalar || n.Scalar != true {
		d.Add(n.Pos, "write "+key+": true, or remove it", "%s of %s must be true, not %s", key, what, kindOf(n))
		return false
	}
	return true
}

// asWord returns a number or boolean as it was written.
func asWord(n *yamldoc.Node) (string, bool) {
	if n.Kind != yamldoc.Scalar || n.Scalar == nil || n.Tag != "" {
		return "", false
	}
	if s, ok := n.Scalar.(string); ok {
		return s, true
	}
	return n.Text, n.Text != ""
}

// commandSchema sets the standard schema of a command role.
func (d *draft) commandSchema(r *roleDraft, n *yamldoc.Node, what string) {
	for _, key := range schemaKeys() {
		if e := n.Get(key); e != nil && !isNull(e) {
			d.Add(e.Pos, `if the command prints the data, add "parse: json" or "parse: frontmatter"; else remove it: a command answers $status passed or failed, exitCode, output and truncated`,
				"%s has a schema but no \"parse\"", what)
			return
		}
	}
	r.use(moderator.CommandSchema())
}

// checkCommand checks the templates of a command against the answer on an edge to it.
func (d *draft) checkCommand(n *nodeDraft, e *edgeDraft) {
	d.checkWords(d.roleByName[e.edge.Role], "by "+n.at(e), d.sourceOf(n, e))
	if target := d.roleByName[e.edge.Role]; target != nil {
		d.noteProgram(target)
	}
}

// checkPart checks the templates of a command that plays a part. Its thread has no earlier answers, so its
// prompt contains all its data.
func (d *draft) checkPart(c childDraft) {
	d.checkWords(d.roleByName[c.role.text], "as "+c.desc, answer{part: &c})
}

// checkWords checks a command's arguments and variables.
func (d *draft) checkWords(r *roleDraft, where string, from answer) {
	if r == nil || r.run == nil {
		return
	}
	from.word = true
	for i, item := range r.run.Items {
		if i < len(r.role.Run) {
			d.noteIncluded(r, i, item)
			d.checkTemplate(fmt.Sprintf("run[%d] of role %s, %s", i, quote(r.name), where), r.role.Run[i], item, from)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.env)) {
		d.checkTemplate(fmt.Sprintf("env[%s] of role %s, %s", name, quote(r.name), where), r.role.Env[name], r.env[name], from)
	}
	d.checkScript(r, from)
}

// noteProgram warns if an answer selects a command's program.
func (d *draft) noteProgram(r *roleDraft) {
	if len(r.role.Run) == 0 {
		return
	}
	t, err := mustache.Parse(r.role.Run[0])
	if err != nil {
		return
	}
	for _, tag := range t.Tags() {
		if len(tag.Path) == 0 || tag.Path[0] != protocol.InputsVariable {
			if !d.once("program " + r.name) {
				return
			}
			d.Note(func() yamldoc.Pos { return r.run.Items[0].Pos },
				"role %s runs the program in %s, so its value can run any command as you", quote(r.name), tag.Source)
			return
		}
	}
}

// checkSchema checks a role's schema as a store does, so that an error isn't detected only after an agent has
// finished its work.
func (d *draft) checkSchema(r *roleDraft) {
	if r.schema == nil || r.yaml == nil || r.derived {
		return
	}
	problems := jsonschema.Check(r.schema)
	for i, p := range problems {
		if d.Full() {
			d.Miss(len(problems) - i)
			return
		}
		at, remedy := d.inSchema(r.yaml, p.Path)
		d.Add(at, remedy, "the schema of %s: %s", quote(r.name), p)
	}
	d.noteDefaults(r)
}

// noteDefaults warns about a default that doesn't match its schema and is therefore never used.
func (d *draft) noteDefaults(r *roleDraft) {
	schema, _ := r.schema.(map[string]any)
	properties, _ := schema["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		p, _ := properties[name].(map[string]any)
		fallback, has := p["default"]
		if !has {
			continue
		}
		if compiled, err := jsonschema.Compile(p); err == nil {
			if problems, err := compiled.Validate(context.Background(), fallback); err == nil && len(problems) > 0 {
				at, _ := d.inSchema(r.yaml, "/properties/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(name)+"/default")
				d.Note(func() yamldoc.Pos { return at }, "the default of %s of %s does not match its schema and "+
					"is never used",
					quote(name), quote(r.name))
			}
		}
	}
}

// inSchema returns the position of a JSON pointer in a schema, or of its nearest existing ancestor, with a
// remedy if the cause is obvious.
func (d *draft) inSchema(schema *yamldoc.Node, pointer string) (at yamldoc.Pos, remedy string) {
	at, n := schema.Pos, schema
	for _, part := range strings.Split(pointer, "/")[1:] {
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		next := child(n, part)
		if next.Value == nil {
			break
		}
		if isSplitText(next) {
			remedy = splitRemedy
		}
		at, n = next.Pos, next.Value
	}
	return at, remedy
}

// child returns an entry of a mapping, or an item of a list as an entry. Its value is nil if it doesn't
// exist.
func child(n *yamldoc.Node, name string) yamldoc.Entry {
	if n.Kind == yamldoc.Sequence {
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(n.Items) {
			return yamldoc.Entry{Key: name, Pos: n.Items[i].Pos, Value: n.Items[i]}
		}
	}
	for _, e := range n.Entries {
		if e.Key == name {
			return e
		}
	}
	return yamldoc.Entry{}
}
