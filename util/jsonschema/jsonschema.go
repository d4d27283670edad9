// Package jsonschema checks JSON Schemas in the dialect that a store accepts, and validates values against
// them. The dialect is draft-07 for the keywords that [Check] knows; formats are asserted; nothing is ever
// loaded from outside.
//
// multipleOf divides 64-bit floats, as the original does: 0.3 isn't a multiple of 0.1. Lengths count code
// points. A keyword applies only to values of its type: {"required": ["a"]} accepts every string.
//
// The package uses a copy of a schema library that compiles nothing before main, and is its only importer.
package jsonschema

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	lib "github.com/united-workforce/uwf/internal/thirdparty/jsonschema"

	"github.com/united-workforce/uwf/protocol"
)

// base is the name of the schema inside the library. It is opaque, so that references can't be resolved
// against it.
const base = "mem:///schema"

// Schema is a compiled schema. It is safe for concurrent use.
type Schema struct {
	schema   any
	compiled *lib.Schema
	meter    *meter
}

// Compile checks and compiles a schema given as a JSON value. If [Check] finds problems, the error is an
// *[InvalidError].
func Compile(schema any) (*Schema, error) {
	if problems := Check(schema); len(problems) > 0 {
		return nil, &InvalidError{problems}
	}
	return compile(schema, true)
}

// compile compiles a schema. It needs the meta-schema, which takes longer to compile than most schemas, unless the
// schema is checked: Check is stricter.
func compile(schema any, checked bool) (*Schema, error) {
	raw, err := json.Marshal(rename(schema))
	if err != nil {
		return nil, fmt.Errorf("compile schema: %w", err)
	}
	c := lib.NewCompiler()
	c.Draft, c.AssertFormat, c.Checked = lib.Draft7, true, checked
	c.LoadURL = func(string) (io.ReadCloser, error) {
		return nil, errors.New("external schemas are not loaded")
	}
	c.Formats = map[string]func(any) bool{"ocas_ref": isRef, "cas_ref": isRef}
	c.RegisterExtension(multipleOf, nil, multipleOfCompiler{})
	counted := &meter{}
	c.RegisterExtension(work, nil, counted)
	if err := c.AddResource(base, bytes.NewReader(raw)); err != nil {
		return nil, fmt.Errorf("compile schema: %w", err)
	}
	compiled, err := c.Compile(base)
	if err != nil {
		return nil, fmt.Errorf("compile schema: %w", err)
	}
	return &Schema{schema: schema, compiled: compiled, meter: counted}, nil
}

// Validate returns the problems of a JSON value, sorted; nil if it is valid. An error is the context's or, if
// checking would take too long, a [*BudgetError]; the value's validity is unknown then.
func (s *Schema) Validate(ctx context.Context, value any) ([]Problem, error) {
	if p := checkValue(value); p != nil {
		return []Problem{*p}, nil
	}
	found, err := s.meter.run(ctx, func() error { return s.compiled.Validate(value) })
	if err != nil {
		return nil, fmt.Errorf("validate against schema: %w", err)
	}
	if invalid, ok := errors.AsType[*lib.ValidationError](found); ok {
		return few(sorted(reporter{schema: s.schema, value: value}.problems(invalid))), nil
	}
	if found != nil {
		return nil, fmt.Errorf("validate against schema: %w", found)
	}
	return nil, nil
}

func isRef(v any) bool {
	s, ok := v.(string)
	return !ok || protocol.Hash(s).Valid()
}

// takes is the type of a keyword's value.
type takes int

const (
	takesAnything takes = iota
	takesString
	takesFormat
	takesPattern
	takesNumber
	takesPositive // a number above 0
	takesNatural  // an integer, at least 0
	takesBool
	takesList
	takesFullList // at least one element
	takesNameList // distinct strings
	takesType     // one type or several
	takesSchema
	takesSchemaList // at least one element
	takesSchemaMap  // from property names
	takesPatternMap // from patterns
	takesSchemaOrBool
)

// keywords lists the keywords allowed in a schema.
var keywords = map[string]takes{
	"type": takesType, "enum": takesFullList, "const": takesAnything, "format": takesFormat, "pattern": takesPattern,
	"properties": takesSchemaMap, "patternProperties": takesPatternMap, "additionalProperties": takesSchemaOrBool,
	"propertyNames": takesSchema, "required": takesNameList, "minProperties": takesNatural, "maxProperties": takesNatural,
	"items": takesSchema, "contains": takesSchema, "uniqueItems": takesBool, "minItems": takesNatural,
	"maxItems": takesNatural,
	"anyOf":    takesSchemaList, "oneOf": takesSchemaList, "allOf": takesSchemaList, "not": takesSchema,
	"if": takesSchema, "then": takesSchema, "else": takesSchema,
	"minimum": takesNumber, "maximum": takesNumber, "exclusiveMinimum": takesNumber, "exclusiveMaximum": takesNumber,
	"multipleOf": takesPositive, "minLength": takesNatural, "maxLength": takesNatural,
	"title": takesString, "description": takesString, "$comment": takesString, "default": takesAnything,
	"examples": takesList,
	"readOnly": takesBool, "writeOnly": takesBool, "deprecated": takesBool,
}

// keywordNames returns the keywords, sorted.
func keywordNames() []string { return slices.Sorted(maps.Keys(keywords)) }

// formats returns the formats allowed in a schema, sorted. All are asserted. "cas_ref" is the older name of
// "ocas_ref": the hash of a node.
func formats() []string {
	return []string{"cas_ref", "date", "date-time", "email", "ocas_ref", "time", "uri", "uuid"}
}

// types lists the types of draft-07.
func types() []string {
	return []string{"array", "boolean", "integer", "null", "number", "object", "string"}
}

// checkValue reports values that aren't JSON, which the library can't handle.
func checkValue(v any) *Problem {
	values := 0
	return measure(v, "", 0, &values)
}

// measure traverses a value, counts its nodes, and reports a value that isn't JSON or is too deeply nested.
func measure(v any, path string, depth int, values *int) *Problem {
	*values++
	if depth > maxDepth {
		return &Problem{Message: fmt.Sprintf("nested deeper than %d", maxDepth)}
	}
	switch v := v.(type) {
	case nil, bool, string:
		return nil
	case map[string]any:
		for name, item := range v {
			if p := measure(item, path+"/"+escape(name), depth+1, values); p != nil {
				return p
			}
		}
		return nil
	case []any:
		for i, item := range v {
			if p := measure(item, path+"/"+strconv.Itoa(i), depth+1, values); p != nil {
				return p
			}
		}
		return nil
	}
	if f, ok := toFloat(v); !ok || math.IsNaN(f) || math.IsInf(f, 0) {
		return &Problem{path, fmt.Sprintf("is not a JSON value (%T %v)", v, v)}
	}
	return nil
}

// Bounds of a schema, and the depth of a value. They limit the library's recursion and compile time.
const (
	maxDepth  = 100
	maxValues = 20_000
)

// Check reports everything that isn't allowed in a schema: unknown keywords and formats, keyword values of
// the wrong type, invalid patterns. Path points into the schema. Check doesn't compile the schema.
func Check(schema any) []Problem {
	values := 0
	if p := measure(schema, "", 0, &values); p != nil {
		return []Problem{*p}
	}
	if values > maxValues {
		return []Problem{{Message: fmt.Sprintf("the schema has %d values; the limit is %d", values, maxValues)}}
	}
	var c checker
	c.schema(schema, "")
	return sorted(c.problems)
}

type checker struct{ problems []Problem }

func (c *checker) add(path, format string, args ...any) {
	c.problems = append(c.problems, Problem{path, fmt.Sprintf(format, args...)})
}

func (c *checker) schema(v any, path string) {
	m, ok := v.(map[string]any)
	if !ok {
		hint := ""
		if _, ok := v.(bool); ok {
			hint = "; write {} to accept anything, {\"not\": {}} to accept nothing"
		}
		c.add(path, "a schema must be an object, not %s%s", show(v), hint)
		return
	}
	for name, value := range m {
		at := path + "/" + escape(name)
		takes, known := keywords[name]
		if !known {
			c.add(at, "%s", unknown(name))
			continue
		}
		c.value(takes, value, at)
	}
}

// value checks the value of a keyword.
func (c *checker) value(t takes, v any, path string) {
	switch t {
	case takesSchema:
		c.schema(v, path)
	case takesSchemaOrBool:
		if _, ok := v.(bool); !ok {
			c.schema(v, path)
		}
	case takesSchemaList:
		c.schemaList(v, path)
	case takesSchemaMap, takesPatternMap:
		c.schemaMap(v, path, t == takesPatternMap)
	case takesType:
		c.types(v, path)
	case takesNameList:
		c.names(v, path)
	case takesFullList:
		c.values(v, path)
	default:
		if msg := scalarProblem(t, v); msg != "" {
			c.add(path, "%s", msg)
		}
	}
}

func (c *checker) schemaList(v any, path string) {
	list, ok := v.([]any)
	if !ok || len(list) == 0 {
		c.add(path, "must be a list of at least one schema, not %s", show(v))
		return
	}
	for i, item := range list {
		c.schema(item, path+"/"+strconv.Itoa(i))
	}
}

func (c *checker) schemaMap(v any, path string, patterns bool) {
	m, ok := v.(map[string]any)
	if !ok {
		c.add(path, "must be an object of schemas, not %s", show(v))
		return
	}
	for name, item := range m {
		at := path + "/" + escape(name)
		if patterns {
			if msg := patternProblem(name); msg != "" {
				c.add(at, "%s", msg)
			}
		}
		c.schema(item, at)
	}
}

func (c *checker) types(v any, path string) {
	list, several := v.([]any)
	if !several {
		list = []any{v}
	}
	if len(list) == 0 {
		c.add(path, "must have at least one type")
	}
	for i, item := range list {
		name, ok := item.(string)
		if !ok || !slices.Contains(types(), name) {
			c.add(path, "%s is not a type; the types are %s%s", show(item), strings.Join(types(), ", "), didYouMean(name,
				types()))
		}
		if slices.Contains(list[:i], item) {
			c.add(path, "duplicate %s", show(item))
		}
	}
}

func (c *checker) names(v any, path string) {
	list, ok := v.([]any)
	if !ok {
		c.add(path, "must be a list of property names, not %s", show(v))
		return
	}
	seen := map[string]bool{}
	for i, item := range list {
		name, ok := item.(string)
		switch {
		case !ok:
			c.add(path+"/"+strconv.Itoa(i), "must be a property name, not %s", show(item))
		case seen[name]:
			c.add(path+"/"+strconv.Itoa(i), "duplicate %s", show(name))
		}
		seen[name] = true
	}
}

// values checks a list of distinct values.
func (c *checker) values(v any, path string) {
	list, ok := v.([]any)
	if !ok || len(list) == 0 {
		c.add(path, "must be a list with at least one value, not %s", show(v))
		return
	}
	seen := make(map[string]bool, len(list))
	for i, item := range list {
		key := keyOf(item)
		if seen[key] {
			c.add(path+"/"+strconv.Itoa(i), "duplicate %s", show(item))
		}
		seen[key] = true
	}
}

// scalarProblem checks keywords whose value contains no schemas.
func scalarProblem(t takes, v any) string {
	s, isString := v.(string)
	_, isList := v.([]any)
	_, isBool := v.(bool)
	f, isNumber := toFloat(v)
	want := ""
	switch t {
	case takesFormat:
		if isString && !slices.Contains(formats(), s) {
			return fmt.Sprintf("the format %s is not supported; the formats are %s%s", show(s), strings.Join(formats(), ", "),
				didYouMean(s, formats()))
		}
		want = or(isString, "a string")
	case takesPattern:
		if isString {
			return patternProblem(s)
		}
		want = "a regular expression"
	case takesString:
		want = or(isString, "a string")
	case takesNumber:
		want = or(isNumber, "a number")
	case takesPositive:
		want = or(isNumber && f > 0, "a number above 0")
	case takesNatural:
		want = or(isNumber && f >= 0 && f == math.Trunc(f) && f <= math.MaxInt32, "a whole number, at least 0")
	case takesBool:
		want = or(isBool, "true or false")
	case takesList:
		want = or(isList, "a list")
	}
	if want == "" {
		return ""
	}
	return "must be " + want + ", but is " + show(v)
}

// or returns want unless there is true.
func or(there bool, want string) string {
	if there {
		return ""
	}
	return want
}

// toFloat returns the value of a number; false if v isn't one.
func toFloat(v any) (float64, bool) {
	switch n := v.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	case int:
		return float64(n), true
	case json.Number:
		f, err := n.Float64()
		return f, err == nil
	}
	return 0, false
}

// isMultiple divides floats, as the original does: 0.3 isn't a multiple of 0.1.
func isMultiple(n, of float64) bool {
	q := n / of
	return q == math.Trunc(q) && !math.IsInf(q, 0)
}

// equal compares two JSON values. Numbers are compared by value, regardless of their Go type.
func equal(a, b any) bool {
	x, isNumber := toFloat(a)
	y, isNumber2 := toFloat(b)
	if isNumber || isNumber2 {
		return isNumber && isNumber2 && x == y
	}
	switch a := a.(type) {
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equal)
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, equal)
	}
	switch b.(type) {
	case []any, map[string]any:
		return false
	}
	return a == b
}

// keyOf returns the same text for equal values, and different texts for others.
func keyOf(v any) string {
	b, err := json.Marshal(plain(v))
	if err != nil {
		return fmt.Sprintf("%T %v", v, v)
	}
	return string(b)
}

// plain converts numbers to floats and negative zero to zero.
func plain(v any) any {
	if f, ok := toFloat(v); ok {
		return f + 0
	}
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = plain(item)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, item := range v {
			out[name] = plain(item)
		}
		return out
	}
	return v
}

// show formats a value as JSON, shortened for a message.
func show(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Sprintf("%v", v)
	}
	const limit = 80
	s := strings.TrimSpace(b.String())
	if r := []rune(s); len(r) > limit {
		s = string(r[:limit]) + "…"
	}
	return s
}

// propertyNames lists the declared properties of a schema, sorted.
func propertyNames(schema map[string]any) []string {
	properties, _ := schema["properties"].(map[string]any)
	names := make([]string, 0, len(properties))
	for name := range properties {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// escape converts a name to a JSON pointer token.
func escape(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

// pointer joins tokens to a JSON pointer.
func pointer(tokens []string) string {
	var b strings.Builder
	for _, t := range tokens {
		b.WriteString("/" + escape(t))
	}
	return b.String()
}

// valueAt follows tokens into a value; nil if it doesn't exist.
func valueAt(v any, tokens ...string) any {
	for _, t := range tokens {
		switch c := v.(type) {
		case map[string]any:
			v = c[t]
		case []any:
			i, err := strconv.Atoi(t)
			if err != nil || i < 0 || i >= len(c) {
				return nil
			}
			v = c[i]
		default:
			return nil
		}
	}
	return v
}

// multipleOf is the name of this keyword inside the library. The library's implementation uses decimal
// fractions, the original's divides floats, and both systems must agree on whether a value is valid.
const multipleOf = "x-multipleOf"

type multipleOfCompiler struct{}

func (multipleOfCompiler) Compile(_ lib.CompilerContext, m map[string]any) (lib.ExtSchema, error) {
	n, ok := toFloat(m[multipleOf])
	if !ok {
		return nil, nil
	}
	return multipleOfSchema(n), nil
}

type multipleOfSchema float64

func (d multipleOfSchema) Validate(ctx lib.ValidationContext, v any) error {
	f, ok := toFloat(v)
	if !ok {
		return nil
	}
	if isMultiple(f, float64(d)) {
		return nil
	}
	return ctx.Error("multipleOf", "not a multiple")
}

// rename returns a schema with multipleOf renamed. It shares unchanged parts.
func rename(schema any) any {
	m, ok := schema.(map[string]any)
	if !ok {
		return schema // a boolean, for additionalProperties
	}
	out := make(map[string]any, len(m))
	for name, v := range m {
		switch keywords[name] {
		case takesPositive:
			name = multipleOf
		case takesSchema, takesSchemaOrBool:
			v = rename(v)
		case takesSchemaList:
			list := v.([]any) // guaranteed by Check
			renamed := make([]any, len(list))
			for i, item := range list {
				renamed[i] = rename(item)
			}
			v = renamed
		case takesSchemaMap, takesPatternMap:
			renamed := map[string]any{}
			for key, item := range v.(map[string]any) {
				renamed[key] = rename(item)
			}
			v = renamed
		}
		out[name] = v
	}
	return out
}
