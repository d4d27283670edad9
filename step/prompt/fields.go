package prompt

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/jsonschema"
	"github.com/united-workforce/uwf/util/lazyregexp"
	"github.com/united-workforce/uwf/util/sorting"
)

// field is a property of a role's output, as the format instruction shows it to the agent.
type field struct {
	name     string
	schema   map[string]any
	required bool
}

// variant is a variant of an output, with the constant that identifies it.
type variant struct {
	value  any
	fields []field
}

// fieldsOf collects the properties of a schema, including those in allOf, anyOf, oneOf and conditions. Each
// name is listed once, and is required if any occurrence is required.
func fieldsOf(schema any) []field {
	found := map[string]field{}
	collect(schema, found)
	return sorted(found, protocol.StatusKey)
}

func collect(schema any, into map[string]field) {
	s, ok := schema.(map[string]any)
	if !ok {
		return
	}
	props, _ := s["properties"].(map[string]any)
	for name, sub := range props {
		f, known := into[name]
		f.name = name
		if sub, _ := sub.(map[string]any); known {
			f.schema = mergeChoices(f.schema, sub)
		} else {
			f.schema = sub
		}
		into[name] = f
	}
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		for _, sub := range list(s[keyword]) {
			collect(sub, into)
		}
	}
	collectIf(s, "then", into)
	collectIf(s, "else", into)
	for _, name := range list(s["required"]) {
		if f, ok := into[text(name)]; ok {
			f.required = true
			into[f.name] = f
		}
	}
}

// collectIf is collect for a conditional subschema, whose properties aren't required of every output.
func collectIf(s map[string]any, keyword string, into map[string]field) {
	sub := map[string]field{}
	collect(s[keyword], sub)
	for name, f := range sub {
		if _, known := into[name]; !known {
			f.required = false
			into[name] = f
		}
	}
}

// mergeChoices merges two definitions of a property: all choices of both, or the first definition if the
// choices can't be listed.
func mergeChoices(a, b map[string]any) map[string]any {
	ca, cb := choices(a), choices(b)
	if ca == nil || cb == nil {
		return a
	}
	for _, v := range cb {
		if !slices.ContainsFunc(ca, func(w any) bool { return literal(v) == literal(w) }) {
			ca = append(ca, v)
		}
	}
	if len(ca) == 1 {
		return a
	}
	return map[string]any{"enum": ca}
}

// discriminated returns the property whose constant distinguishes the variants of a schema, and the variants;
// "" if there is none.
func discriminated(schema any) (string, []variant) {
	s, _ := schema.(map[string]any)
	for _, keyword := range []string{"oneOf", "anyOf"} {
		subs, _ := jsonschema.Unfolded(list(s[keyword]))
		if key, values := jsonschema.Discriminator(subs); key != "" {
			return key, variantsOf(s, keyword, subs, key, values)
		}
	}
	return "", nil
}

func variantsOf(s map[string]any, keyword string, subs []any, key string, values []any) []variant {
	shared := map[string]any{}
	for k, v := range s {
		if k != keyword {
			shared[k] = v
		}
	}
	var out []variant
	for i, sub := range subs {
		found := map[string]field{}
		collect(sub, found)
		f := found[key]
		collect(shared, found)
		// Keep the variant's constant: the shared schema may allow any string as the key's value.
		f.required = found[key].required
		found[key] = f
		out = append(out, variant{value: values[i], fields: sorted(found, key)})
	}
	return out
}

// choices returns the only values that a schema allows, or nil if it doesn't list them.
func choices(s map[string]any) []any {
	if v, ok := s["const"]; ok {
		return []any{v}
	}
	if vs := list(s["enum"]); len(vs) > 0 {
		return slices.Clone(vs)
	}
	return nil
}

// sorted returns the property with the given name first, then "status", then the required ones, then the rest. Within
// a group it sorts by name, because stored schemas lose their order.
func sorted(found map[string]field, first string) []field {
	rank := func(f field) int {
		switch {
		case f.name == first:
			return 0
		case f.name == "status":
			return 1
		case f.required:
			return 2
		}
		return 3
	}
	out := make([]field, 0, len(found))
	for _, f := range found {
		out = append(out, f)
	}
	sorting.Func(out, func(a, b field) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.name, b.name))
	})
	return out
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

var plainString = lazyregexp.New(`^[A-Za-z_$][\w$.-]*( [\w$.-]+)*$`)

// literal formats a JSON value as YAML on one line. It quotes a string that YAML would read as another type.
func literal(v any) string {
	s, ok := v.(string)
	if !ok || !plainString().MatchString(s) {
		return compactJSON(v)
	}
	switch strings.ToLower(s) {
	case "null", "true", "false":
		return compactJSON(v)
	}
	return s
}

// maxNesting is the depth to which an example shows the fields of objects; deeper ones are placeholders.
const maxNesting = 4

// exampleLines returns the field's lines in the example block.
func (f field) exampleLines(indent string, depth int) []string {
	s, nullable := unwrap(f.schema)
	key := indent + literal(f.name) + ":"
	value, more, notes := sketch(s, indent+"  ", depth)
	if nullable {
		notes = append(notes, "or null")
	}
	if f.required {
		notes = append([]string{"required"}, notes...)
	}
	if value != "" {
		key += " " + value
	}
	if len(notes) > 0 {
		key += "  # " + strings.Join(notes, " | ")
	}
	return append([]string{key}, more...)
}

// sketch formats a placeholder for a schema: on the key's line or on additional lines, with notes for the
// comment.
func sketch(s map[string]any, indent string, depth int) (value string, more, notes []string) {
	if v, ok := s["const"]; ok {
		return literal(v), nil, []string{"fixed value"}
	}
	if vs := choices(s); vs != nil {
		for _, v := range vs {
			notes = append(notes, literal(v))
		}
		return literal(vs[0]), nil, notes
	}
	switch typeOf(s) {
	case "boolean":
		return "true", nil, []string{"true", "false"}
	case "string":
		return placeholder(s), nil, nil
	case "number", "integer":
		return "<number>", nil, nil
	case "array":
		return "", sketchItem(s["items"], indent, depth), nil
	case "object":
		if lines := sketchObject(s, indent, depth); lines != nil {
			return "", lines, nil
		}
		return "<object>", nil, nil
	}
	return "<value>", nil, nil
}

func sketchItem(items any, indent string, depth int) []string {
	s, _ := unwrap(items)
	if len(s) == 0 {
		return []string{indent + "- <item>"}
	}
	if lines := sketchObject(s, indent+"  ", depth); lines != nil {
		lines[0] = indent + "- " + strings.TrimPrefix(lines[0], indent+"  ")
		return lines
	}
	value, _, notes := sketch(s, "", maxNesting) // at this depth, without nested lines
	if value == "" {
		value = "<item>" // a list of lists
	}
	line := indent + "- " + value
	if len(notes) > 0 {
		line += "  # " + strings.Join(notes, " | ")
	}
	return []string{line}
}

// sketchObject returns the lines for the fields of an object, nil if it declares none.
func sketchObject(s map[string]any, indent string, depth int) []string {
	if depth >= maxNesting {
		return nil
	}
	var lines []string
	for _, f := range fieldsOf(s) {
		lines = append(lines, f.exampleLines(indent, depth+1)...)
	}
	return lines
}

// placeholder returns a placeholder for a string.
func placeholder(s map[string]any) string {
	switch format := text(s["format"]); format {
	case "":
		return "<string>"
	case "ocas_ref", "cas_ref": // the second is the older name
		return "<hash>"
	default:
		return "<" + oneLine(format) + ">"
	}
}

// typeOf returns the declared or implied type of a schema, "" if there is none or several.
func typeOf(s map[string]any) string {
	if t := text(s["type"]); t != "" {
		return t
	}
	if s["properties"] != nil {
		return "object"
	}
	return ""
}

// unwrap removes "or null" from a schema.
func unwrap(schema any) (s map[string]any, nullable bool) {
	s, _ = schema.(map[string]any)
	if types := list(s["type"]); len(types) == 2 {
		if i := slices.Index(types, any("null")); i >= 0 {
			return with(s, "type", types[1-i]), true
		}
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		subs := list(s[keyword])
		for i, sub := range subs {
			if m, _ := sub.(map[string]any); len(subs) == 2 && text(m["type"]) == "null" {
				other, _ := subs[1-i].(map[string]any)
				return with(other, "description", s["description"]), true
			}
		}
	}
	return s, false
}

// with returns a copy of s with a keyword set to v; a nil v sets nothing.
func with(s map[string]any, keyword string, v any) map[string]any {
	out := make(map[string]any, len(s)+1)
	maps.Copy(out, s)
	if v != nil {
		out[keyword] = v
	}
	return out
}

// describe returns what the example can't show: the description and the limits.
func (f field) describe() string {
	s, _ := unwrap(f.schema)
	var parts []string
	if d := oneLine(text(s["description"])); d != "" {
		parts = append(parts, d)
	}
	for _, keyword := range []string{"format", "pattern", "minLength", "maxLength", "minimum", "maximum",
		"exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems"} {
		if v, ok := s[keyword]; ok {
			parts = append(parts, fmt.Sprintf("%s %s", keyword, literalOf(keyword, v)))
		}
	}
	return strings.Join(parts, "; ")
}

func literalOf(keyword string, v any) string {
	if keyword == "pattern" {
		return "`" + oneLine(text(v)) + "`"
	}
	return literal(v)
}

// indented formats a value as indented JSON.
func indented(v any) string {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return compactJSON(v)
	}
	return string(b)
}

const scopeSentence = "Focus exclusively on YOUR role's deliverable. Do not perform actions outside your role's scope."

// FormatInstruction describes the beginning of an answer that matches the schema: an example block, the
// fields, and how to suspend. A schema whose variants differ in one constant (a oneOf on $status) gets an
// example for each.
func FormatInstruction(schema any) string {
	return join("## Deliverable Format", formatBody(schema), scopeSentence)
}

func formatBody(schema any) string {
	if protocol.IsAnswerSchema(schema) {
		return join("Your whole response, as plain text or Markdown, is handed to the next role. It needs no frontmatter "+
			"block.", suspendBody)
	}
	if key, variants := discriminated(schema); key != "" {
		return join(variantsBody(key, variants), suspendBody)
	}
	fields := fieldsOf(schema)
	return join(
		"Your response MUST begin with a YAML frontmatter block followed by your markdown work:",
		example(fields),
		"The frontmatter is the **primary deliverable** — the engine reads it directly.\n"+
			"Your meta output must satisfy these fields:",
		fieldList(fields),
		"Output ONLY the fields listed above. Do not add extra fields that are not specified in the schema.",
		suspendBody,
	)
}

func variantsBody(key string, variants []variant) string {
	parts := []string{
		"Your response MUST begin with a YAML frontmatter block followed by your markdown work.",
		"Choose ONE of the following variants based on your outcome:",
	}
	for _, v := range variants {
		parts = append(parts,
			fmt.Sprintf("### When `%s: %s`", key, literal(v.value)),
			example(v.fields),
			"Fields:\n"+fieldList(v.fields))
	}
	return join(append(parts,
		"The frontmatter is the **primary deliverable** — the engine reads it directly.",
		"Output ONLY the fields listed for your chosen variant. Do not add extra fields that are not specified in the "+
			"schema.",
	)...)
}

// The example quotes the reason: unquoted, a reason with a colon isn't valid YAML, and the question to the
// person would be lost.
const suspendBody = "### When you cannot continue without a person\n\n" +
	"If only a person can answer or decide, do not guess. Begin with this block instead, and the thread waits for the " +
	"answer:\n\n" +
	"```\n---\n" + protocol.StatusKey + ": " + protocol.SuspendNode + "\n" +
	"reason: \"<what you need, from whom, and why>\"\n---\n```"

// example returns an example frontmatter block.
func example(fields []field) string {
	lines := []string{"```", "---"}
	for _, f := range fields {
		lines = append(lines, f.exampleLines("", 0)...)
	}
	lines = append(lines, "---", "", "... your markdown work here ...", "```")
	return strings.Join(lines, "\n")
}

// fieldList lists the fields with the constraints on their values.
func fieldList(fields []field) string {
	if len(fields) == 0 {
		return "  (the schema names no fields; `$status` may say how it went)"
	}
	var lines []string
	for _, f := range fields {
		line := "  - `" + oneLine(f.name) + "`"
		if f.required {
			line += " (required)"
		}
		if d := f.describe(); d != "" {
			line += ": " + d
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}
