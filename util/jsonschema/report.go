package jsonschema

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	lib "github.com/united-workforce/uwf/internal/thirdparty/jsonschema"
	"github.com/united-workforce/uwf/util/sorting"
	"github.com/united-workforce/uwf/util/suggest"
)

// reporter converts the library's error tree to problems that a model can act on, one per field.
type reporter struct{ schema, value any }

// problems returns the problems at and below an error.
func (r reporter) problems(e *lib.ValidationError) []Problem {
	if e.Message == "" { // the library's wrapper, whose location ends with a name
		return r.all(e.Causes)
	}
	where := r.locate(e)
	switch where.keyword {
	case "anyOf", "oneOf":
		if len(e.Causes) > 0 {
			return r.noVariant(where, e.Causes)
		}
		return problem(where.path, "matches more than one variant; "+variantNames(where))
	case "contains", "minContains":
		return problem(where.path, "must have an item that matches "+show(where.schema["contains"]))
	case "required":
		return missing(where)
	case "additionalProperties":
		return notAllowed(where)
	}
	if len(e.Causes) == 0 {
		return problem(where.path, message(where))
	}
	return r.all(e.Causes)
}

func (r reporter) all(errors []*lib.ValidationError) []Problem {
	var all []Problem
	for _, e := range errors {
		if all = append(all, r.problems(e)...); len(all) > enough {
			break
		}
	}
	return all
}

// enough bounds the number of problems collected; only a few are reported.
const enough = 2000

// place is a value and the keyword that it violates.
type place struct {
	path    string         // of the value
	value   any            // the value
	keyword string         // violated keyword
	schema  map[string]any // schema with the keyword
	name    bool           // the keyword applies to the property's name
}

func (r reporter) locate(e *lib.ValidationError) place {
	_, fragment, _ := strings.Cut(e.AbsoluteKeywordLocation, "#")
	keyPath, valuePath := tokens(fragment), tokens(e.InstanceLocation)
	p := place{path: pointer(valuePath), value: valueAt(r.value, valuePath...)}
	if len(keyPath) > 0 {
		p.keyword = keyPath[len(keyPath)-1]
		p.schema, _ = valueAt(r.schema, keyPath[:len(keyPath)-1]...).(map[string]any)
	}
	if i := slices.Index(keyPath, "propertyNames"); i >= 0 && len(valuePath) > 0 && r.isKeyword(keyPath[:i]) {
		p.name, p.value = true, valuePath[len(valuePath)-1]
	}
	return p
}

// tokens splits a pointer in the library's form, which is also escaped for URLs.
func tokens(pointer string) []string {
	if pointer == "" {
		return nil
	}
	parts := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, part := range parts {
		if plain, err := url.PathUnescape(part); err == nil {
			part = plain
		}
		parts[i] = strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
	}
	return parts
}

// isKeyword reports whether a path leads to a schema, so that the next token is a keyword and not a property
// name.
func (r reporter) isKeyword(path []string) bool {
	if len(path) == 0 {
		return true
	}
	switch keywords[path[len(path)-1]] {
	case takesSchemaMap, takesPatternMap:
		return len(path) > 1 && !r.isKeyword(path[:len(path)-1])
	}
	return true
}

func problem(path, message string) []Problem {
	return []Problem{{Path: path, Message: message}}
}

// missing reports each missing required property.
func missing(p place) []Problem {
	have, _ := p.value.(map[string]any)
	names, _ := p.schema["required"].([]any)
	var all []Problem
	for _, name := range names {
		name, _ := name.(string)
		if _, ok := have[name]; ok {
			continue
		}
		msg := "is missing"
		if properties, ok := p.schema["properties"].(map[string]any); ok {
			if want := wanted(properties[name]); want != "" {
				msg += "; it must be " + want
			}
		}
		all = append(all, Problem{Path: p.path + "/" + escape(name), Message: msg})
	}
	return all
}

// notAllowed reports each property that the schema doesn't allow.
func notAllowed(p place) []Problem {
	have, _ := p.value.(map[string]any)
	known := propertyNames(p.schema)
	var all []Problem
	for name := range have {
		if slices.Contains(known, name) || fitsPattern(p.schema, name) {
			continue
		}
		msg := "is not allowed here"
		if len(known) > 0 {
			msg += "; allowed: " + strings.Join(known, ", ")
		}
		all = append(all, Problem{Path: p.path + "/" + escape(name), Message: msg})
	}
	return all
}

// Problem is a violation of a schema.
type Problem struct {
	Path    string `json:"path"`    // JSON pointer into the value; "" is the whole value
	Message string `json:"message"` // a predicate: "must be a string, but is null"
}

// String returns the problem as one line.
func (p Problem) String() string {
	if p.Path == "" {
		return p.Message
	}
	return p.Path + ": " + p.Message
}

// maxProblems is the number of problems reported at once. A list of thousands of items can have as many
// problems each, and a reader needs only the first.
const maxProblems = 50

// few keeps the first problems and mentions that there are more.
func few(problems []Problem) []Problem {
	if len(problems) <= maxProblems {
		return problems
	}
	return append(problems[:maxProblems:maxProblems], Problem{Message: "and more of this kind; fix these first"})
}

// sorted sorts problems and removes duplicates; nil if there are none.
func sorted(problems []Problem) []Problem {
	sorting.Func(problems, func(a, b Problem) int {
		if c := strings.Compare(a.Path, b.Path); c != 0 {
			return c
		}
		return strings.Compare(a.Message, b.Message)
	})
	if len(problems) == 0 {
		return nil
	}
	return slices.Compact(problems)
}

// InvalidError explains why a schema could not be compiled.
type InvalidError struct{ Problems []Problem }

func (e *InvalidError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return "invalid schema: " + strings.Join(lines, "; ")
}

// message describes the keyword's requirement and the actual value.
func message(p place) string {
	subject := "must "
	if p.name {
		subject = "the name of this property must "
	}
	limit := show(p.schema[p.keyword])
	is := ", but is " + show(p.value)
	switch p.keyword {
	case "type", "const", "enum", "format":
		return subject + "be " + wanted(map[string]any{p.keyword: p.schema[p.keyword]}) + is
	case "pattern":
		return subject + "match the pattern " + limit + is
	case "minimum":
		return subject + "be at least " + limit + is
	case "maximum":
		return subject + "be at most " + limit + is
	case "exclusiveMinimum":
		return subject + "be more than " + limit + is
	case "exclusiveMaximum":
		return subject + "be less than " + limit + is
	case "multipleOf":
		return subject + "be a multiple of " + limit + is
	case "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties":
		return subject + length(p, limit)
	case "uniqueItems":
		return subject + "not have duplicate items"
	case "not":
		return subject + "not match " + limit
	}
	return fmt.Sprintf("does not satisfy %q", p.keyword)
}

// length describes the required and the actual length.
func length(p place, limit string) string {
	bound, unit := "at least ", ""
	if strings.HasPrefix(p.keyword, "max") {
		bound = "at most "
	}
	n := 0
	switch v := p.value.(type) {
	case string:
		n, unit = utf8.RuneCountInString(v), "characters"
	case []any:
		n, unit = len(v), "items"
	case map[string]any:
		n, unit = len(v), "properties"
	}
	return fmt.Sprintf("have %s%s %s, but has %d", bound, limit, unit, n)
}

// wanted describes the values that a simple schema accepts, otherwise "".
func wanted(schema any) string {
	m, ok := schema.(map[string]any)
	if !ok {
		return ""
	}
	if c, ok := m["const"]; ok {
		return show(c)
	}
	if values, ok := m["enum"].([]any); ok {
		return oneOfThese(values)
	}
	if format, ok := m["format"].(string); ok {
		return formatName(format)
	}
	return typeNames(m["type"])
}

func oneOfThese(values []any) string {
	shown := make([]string, len(values))
	for i, v := range values {
		shown[i] = show(v)
	}
	if len(shown) == 1 {
		return shown[0]
	}
	return "one of " + strings.Join(shown, ", ")
}

func typeNames(t any) string {
	switch t := t.(type) {
	case string:
		return typeName(t)
	case []any:
		names := make([]string, len(t))
		for i, item := range t {
			name, _ := item.(string)
			names[i] = typeName(name)
		}
		return strings.Join(names, " or ")
	}
	return ""
}

func typeName(t string) string {
	switch t {
	case "integer":
		return "a whole number"
	case "boolean":
		return "true or false"
	case "object":
		return "an object (key: value)"
	case "array":
		return "a list"
	case "null":
		return "null"
	}
	return "a " + t
}

func formatName(format string) string {
	switch format {
	case "ocas_ref", "cas_ref":
		return "the hash of a node (13 characters, upper case)"
	case "date-time":
		return "a date and time such as 2026-01-31T12:00:00Z"
	case "date":
		return "a date such as 2026-01-31"
	case "time":
		return "a time such as 12:00:00Z"
	case "email":
		return "an email address"
	case "uri":
		return "an absolute URI such as https://example.org/"
	case "uuid":
		return "a UUID"
	}
	return format
}

func fitsPattern(schema map[string]any, name string) bool {
	patterns, _ := schema["patternProperties"].(map[string]any)
	for pattern := range patterns {
		if re, err := regexp.Compile(pattern); err == nil && re.MatchString(name) {
			return true
		}
	}
	return false
}

// patternProblem explains why a pattern is invalid; "" if it is valid.
func patternProblem(pattern string) string {
	if _, err := regexp.Compile(pattern); err != nil {
		why := strings.TrimPrefix(err.Error(), "error parsing regexp: ")
		return fmt.Sprintf("the pattern does not compile: %s (the syntax is RE2: no look-around, no back-references, "+
			"\\x{e9} instead of \\u00e9)", why)
	}
	return ""
}

// unknown returns a suggestion for an unsupported keyword.
func unknown(name string) string {
	switch name {
	case "$ref", "$recursiveRef", "$dynamicRef":
		return name + " is not allowed; write its content here"
	case "$defs", "definitions":
		return name + " is not allowed; write each definition where it is used"
	case "$schema":
		return "$schema is not allowed; remove it (every schema is draft-07)"
	case "$id", "id", "$anchor":
		return name + " is not allowed; remove it (a schema is identified by its hash)"
	case "prefixItems", "additionalItems":
		return name + " is not supported; use an object with named properties, or items with one schema for all"
	case "nullable":
		return `nullable is not a keyword of JSON Schema; write {"type": ["string", "null"]}`
	}
	return fmt.Sprintf("the keyword %s is not supported%s", show(name), didYouMean(name, keywordNames()))
}

func didYouMean(word string, candidates []string) string {
	near := suggest.Nearest(word, candidates, 1)
	if word == "" || len(near) == 0 {
		return ""
	}
	return "; did you mean " + show(near[0]) + "?"
}

// noVariant reports a value that matches none of several schemas. If a property distinguishes the variants,
// only the intended one is reported.
func (r reporter) noVariant(p place, causes []*lib.ValidationError) []Problem {
	variants, _ := p.schema[p.keyword].([]any)
	unfolded, of := Unfolded(variants)
	if name, values := Discriminator(unfolded); name != "" {
		if object, ok := p.value.(map[string]any); ok {
			return r.discriminated(p, object, name, values, func(i int) *lib.ValidationError { return causes[of[i]] })
		}
	}
	reports := make([][]Problem, len(causes))
	for i, cause := range causes {
		reports[i] = sorted(r.problems(cause))
	}
	if want := wantedTypes(p, reports, variants); want != "" {
		return problem(p.path, "must be "+want+", but is "+show(p.value))
	}
	if best := onlyRightType(p, reports); best >= 0 {
		return reports[best]
	}
	return problem(p.path, listVariants(reports))
}

// discriminated reports the problems of the variant that an object claims to be, or an unknown variant.
func (r reporter) discriminated(p place, object map[string]any, name string, values []any,
	cause func(variant int) *lib.ValidationError) []Problem {
	path := p.path + "/" + escape(name)
	claimed, ok := object[name]
	if !ok {
		return problem(path, "is missing; it must be "+oneOfThese(values))
	}
	i := slices.IndexFunc(values, func(v any) bool { return equal(v, claimed) })
	if i < 0 {
		return problem(path, "must be "+oneOfThese(values)+", but is "+show(claimed))
	}
	return r.problems(cause(i))
}

// wantedTypes combines the expected types if the value has the wrong type for every variant.
func wantedTypes(p place, reports [][]Problem, variants []any) string {
	var want []string
	for i, report := range reports {
		simple := wanted(variants[i])
		if len(report) != 1 || report[0].Path != p.path || simple == "" || !strings.HasPrefix(report[0].Message,
			"must be "+simple) {
			return ""
		}
		want = append(want, simple)
	}
	return strings.Join(want, " or ")
}

// onlyRightType returns the only variant that accepts the type of the whole value, or -1.
func onlyRightType(p place, reports [][]Problem) int {
	best := -1
	for i, report := range reports {
		aboutWhole := slices.ContainsFunc(report, func(q Problem) bool { return q.Path == p.path })
		if aboutWhole {
			continue
		}
		if best >= 0 {
			return -1
		}
		best = i
	}
	return best
}

// listVariants explains on one line why the first variants don't match.
func listVariants(reports [][]Problem) string {
	const limit = 3
	lines := make([]string, 0, limit)
	for i, report := range reports[:min(limit, len(reports))] {
		lines = append(lines, fmt.Sprintf("(%d) %s", i+1, report[0]))
	}
	msg := fmt.Sprintf("matches none of %d variants: %s", len(reports), strings.Join(lines, "; "))
	if len(reports) > limit {
		msg += "; …"
	}
	return msg
}

// variantNames lists the variants by title or position.
func variantNames(p place) string {
	variants, _ := p.schema[p.keyword].([]any)
	names := make([]string, 0, len(variants))
	for i, v := range variants {
		if title, ok := valueAt(v, "title").(string); ok {
			names = append(names, title)
			continue
		}
		names = append(names, fmt.Sprint(i+1))
	}
	return "variants: " + strings.Join(names, ", ")
}

// Unfolded replaces a variant whose "$status" can be one of several texts with a copy for each, so that a
// constant distinguishes the variants. of[i] is the index of the original of variant i.
func Unfolded(variants []any) (all []any, of []int) {
	for i, v := range variants {
		enum, _ := valueAt(v, "properties", "$status", "enum").([]any)
		if len(enum) < 2 {
			all, of = append(all, v), append(of, i)
			continue
		}
		for _, value := range enum {
			all, of = append(all, withConstant(v, value)), append(of, i)
		}
	}
	return all, of
}

// withConstant returns a variant with a constant "$status".
func withConstant(variant, value any) any {
	v, _ := variant.(map[string]any)
	properties, _ := v["properties"].(map[string]any)
	status, _ := properties["$status"].(map[string]any)
	status, properties, v = maps.Clone(status), maps.Clone(properties), maps.Clone(v)
	delete(status, "enum")
	status["const"], properties["$status"], v["properties"] = value, status, properties
	return v
}

// Discriminator returns the property that distinguishes the variants of a oneOf or anyOf by a different
// constant in each, preferring "$status" and "status". values[i] is the constant of variant i. The name is ""
// if there is no such property.
func Discriminator(variants []any) (name string, values []any) {
	if len(variants) < 2 {
		return "", nil
	}
	first, _ := variants[0].(map[string]any)
	names := propertyNames(first)
	sorting.Stable(names, func(a, b string) int { return rank(a) - rank(b) })
	for _, name := range names {
		if values := constants(variants, name); values != nil {
			return name, values
		}
	}
	return "", nil
}

func rank(name string) int {
	switch name {
	case "$status":
		return 0
	case "status":
		return 1
	}
	return 2
}

// constants returns the constant of a property in each variant, nil unless all have one and all are
// different.
func constants(variants []any, name string) []any {
	var values []any
	for _, v := range variants {
		c, ok := constant(valueAt(v, "properties", name))
		if !ok || slices.ContainsFunc(values, func(have any) bool { return equal(have, c) }) {
			return nil
		}
		values = append(values, c)
	}
	return values
}

func constant(schema any) (any, bool) {
	m, _ := schema.(map[string]any)
	c, ok := m["const"]
	if enum, isList := m["enum"].([]any); !ok && isList && len(enum) == 1 {
		c, ok = enum[0], true
	}
	switch c.(type) {
	case map[string]any, []any:
		return nil, false
	}
	return c, ok
}
