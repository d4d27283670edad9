// Package extract turns an agent's answer into data that satisfies its role's
// schema, or says field by field why it cannot. Who stores the data and who asks
// the agent again is the caller's business.
//
// Of the fields in an answer's frontmatter only those become data that the
// schema knows. status, next, confidence, artifacts and scope may
// always be there: where the schema does not name them they are checked for
// their type and dropped. Every role may suspend instead of answering: $status
// is then "$SUSPEND", and reason says why.
package extract

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/frontmatter"
	"github.com/united-workforce/uwf/util/exactjson"
	"github.com/united-workforce/uwf/util/jsonschema"
)

// Role is what an answer is held against. Both fields must be set.
type Role struct {
	Schema   any // the role's JSON Schema as a JSON value
	Compiled *jsonschema.Schema
}

// NewRole compiles a role's schema. Errors: those of jsonschema.Compile.
func NewRole(schema any) (Role, error) {
	compiled, err := jsonschema.Compile(schema)
	if err != nil {
		return Role{}, fmt.Errorf("schema of the role: %w", err)
	}
	return Role{Schema: schema, Compiled: compiled}, nil
}

// Output is what became of an answer.
type Output struct {
	Value   any               // satisfies the schema, or is a suspend payload
	Suspend *protocol.Suspend // set if the role suspends
	Body    string            // the rest of the text
}

// InvalidError says why an answer is not the role's output. Its text is meant
// for the model that wrote the answer.
type InvalidError struct {
	Problems []jsonschema.Problem // one a field
	Reason   string               // instead of Problems: no block, broken YAML
}

func (e *InvalidError) Error() string {
	if e.Reason != "" {
		return e.Reason
	}
	var b strings.Builder
	b.WriteString("the output does not satisfy the role's schema:")
	for _, p := range e.Problems {
		field := "the output as a whole"
		if p.Path != "" {
			field = "`" + strings.TrimPrefix(p.Path, "/") + "`"
		}
		fmt.Fprintf(&b, "\n- %s: %s", field, p.Message)
	}
	return b.String()
}

// Brief is the error on one line.
func (e *InvalidError) Brief() string {
	if e.Reason != "" {
		return e.Reason
	}
	var parts []string
	for _, p := range e.Problems {
		parts = append(parts, strings.TrimSpace(strings.TrimPrefix(p.Path, "/")+" "+p.Message))
	}
	return strings.Join(parts, ", ")
}

// Text extracts from text with a frontmatter block. Errors: an *InvalidError; any
// other means that nothing is known about the answer, because its judge failed.
func Text(ctx context.Context, text string, r Role) (Output, error) {
	if protocol.IsAnswerSchema(r.Schema) {
		answer, _ := frontmatter.Parse(text)
		return r.plain(ctx, text, answer.Fields)
	}
	return r.choose(ctx, text)
}

// plain takes the whole answer of a role that names no data, unless it suspends, or
// gives the text as data itself, as an agent does that knows schemas only.
func (r Role) plain(ctx context.Context, text string, fields map[string]any) (Output, error) {
	if suspendStatus(fields) != "" {
		return suspend(fields)
	}
	if fits, err := r.fits(ctx, fields); err != nil || fits {
		return Output{Value: fields, Body: text}, err
	}
	text = strings.TrimSpace(text)
	if text == "" {
		return Output{}, &InvalidError{Reason: "the answer is empty"}
	}
	return Output{Value: map[string]any{protocol.AnswerField: text}, Body: text}, nil
}

// accept makes data of the fields of a block.
func (r Role) accept(ctx context.Context, fields map[string]any) (Output, error) {
	if status := suspendStatus(fields); status != "" {
		return suspend(fields)
	}
	known := knownBy(r.Schema)
	if problems := checkStandard(fields, known); len(problems) > 0 {
		return Output{}, &InvalidError{Problems: problems}
	}
	candidate := known.only(fields)
	if plain, ok := plainStatus(candidate); ok {
		if fits, err := r.fits(ctx, plain); err != nil || fits {
			return r.take(ctx, plain)
		}
	}
	if narrow, ok := variantOf(r.Schema, candidate); ok {
		if fits, err := r.fits(ctx, candidate); err != nil || fits {
			return r.take(ctx, candidate)
		}
		candidate = narrow.only(candidate)
	}
	return r.take(ctx, candidate)
}

// fits reports whether a value satisfies the schema.
func (r Role) fits(ctx context.Context, v any) (bool, error) {
	problems, err := r.Compiled.Validate(ctx, v)
	return err == nil && problems == nil, err
}

// Value validates structured output. It is taken as it is, but for numbers,
// which become int64 or float64, and for defaults. Errors: as of [Text].
func Value(ctx context.Context, v any, r Role) (Output, error) {
	v, err := jsonValue(v)
	if err != nil {
		return Output{}, &InvalidError{Reason: "the output is not a JSON value: " + err.Error()}
	}
	if fields, ok := v.(map[string]any); ok && suspendStatus(fields) != "" {
		return suspend(fields)
	}
	return r.take(ctx, v)
}

// suspendStatus returns the field by which an answer suspends, or "". A model
// whose schema routes by "status" writes it there.
func suspendStatus(fields map[string]any) string {
	if _, ok := fields[protocol.StatusKey]; ok {
		return or(fields[protocol.StatusKey] == protocol.SuspendNode, protocol.StatusKey)
	}
	return or(fields["status"] == protocol.SuspendNode, "status")
}

func or(there bool, name string) string {
	if there {
		return name
	}
	return ""
}

// suspend takes an answer that suspends. Other fields than the reason are
// dropped.
func suspend(fields map[string]any) (Output, error) {
	reason, ok := fields["reason"].(string)
	if !ok || strings.TrimSpace(reason) == "" {
		return Output{}, &InvalidError{Problems: []jsonschema.Problem{{
			Path:    "/reason",
			Message: "is required to suspend: a text that says what is needed from a person",
		}}}
	}
	s := protocol.NewSuspend(reason)
	return Output{Value: map[string]any{protocol.StatusKey: s.Status, "reason": s.Reason}, Suspend: &s}, nil
}

// noBlock says how an answer must begin.
const noBlock = "the answer has no frontmatter block: its very first line must be ---, " +
	"then come lines 'field: value', then a line --- again"

// only returns the fields that are known.
func (k fieldSet) only(fields map[string]any) map[string]any {
	kept := maps.Clone(fields)
	maps.DeleteFunc(kept, func(name string, _ any) bool { return !k.has(name) })
	return kept
}

// choose takes the block that the text begins with, or behind other words the first one that has a
// field of the role's output. The text below it is the body, including any quotes. If a later block is
// the role's output with other values, the answer goes back: it is unclear which one is meant.
// A block in a code fence behind words never counts: it may be a quote, and a reviewer's approval.
func (r Role) choose(ctx context.Context, text string) (chosen Output, err error) {
	known := knownBy(r.Schema)
	relates := func(field string) bool { return field == protocol.StatusKey || known.has(field) }
	err = &InvalidError{Reason: noBlock}
	line := 0
	for _, b := range frontmatter.Blocks(text) {
		out, bad := r.block(ctx, b)
		if _, invalid := errors.AsType[*InvalidError](bad); bad != nil && !invalid {
			return Output{}, bad
		}
		related := b.Keyed && (b.First || b.Mentions(relates))
		switch {
		case line == 0 && (b.First || related):
			chosen, err = out, bad
		case line != 0 && related && bad == nil && err == nil && !reflect.DeepEqual(chosen.Value, out.Value):
			return Output{}, &InvalidError{Reason: fmt.Sprintf("the answer has two frontmatter blocks that differ, "+
				"in lines %d and %d: give one, and put what you quote in a code fence", line, b.Line)}
		}
		if line == 0 && related {
			line = b.Line
		}
	}
	return chosen, err
}

// block is a block as the role's output.
func (r Role) block(ctx context.Context, b frontmatter.Block) (Output, error) {
	if b.Err != nil {
		return Output{}, &InvalidError{Reason: "the frontmatter block is not valid YAML: " + b.Err.Error()}
	}
	out, err := r.accept(ctx, b.Fields)
	out.Body = b.Body
	return out, err
}

// fieldSet is the fields of an object that a schema knows: those that it names,
// in itself or in a part of it that applies to the same value.
type fieldSet struct {
	names    map[string]bool
	patterns []*regexp.Regexp
	all      bool // additionalProperties asks for more than the named ones
}

func (k fieldSet) has(name string) bool {
	if k.all || k.names[name] {
		return true
	}
	for _, p := range k.patterns {
		if p.MatchString(name) {
			return true
		}
	}
	return false
}

// knownBy collects the fields that a schema knows. A schema that names none
// leaves the answer its status, so that the step can still be routed.
func knownBy(schema any) fieldSet {
	k := fieldSet{names: map[string]bool{}}
	k.collect(schema)
	if len(k.names) == 0 && len(k.patterns) == 0 {
		k.names["status"], k.names["$status"] = true, true
	}
	return k
}

func (k *fieldSet) collect(schema any) {
	m, ok := schema.(map[string]any)
	if !ok {
		return
	}
	properties, _ := m["properties"].(map[string]any)
	for name := range properties {
		k.names[name] = true
	}
	required, _ := m["required"].([]any)
	for _, name := range required {
		if name, ok := name.(string); ok {
			k.names[name] = true
		}
	}
	patterns, _ := m["patternProperties"].(map[string]any)
	for pattern := range patterns {
		if re, err := regexp.Compile(pattern); err == nil {
			k.patterns = append(k.patterns, re)
		}
	}
	switch more := m["additionalProperties"].(type) {
	case bool:
		k.all = k.all || more
	case map[string]any:
		k.all = true
	}
	for _, part := range partsOf(m) {
		k.collect(part)
	}
}

// partsOf lists the schemas in a schema that apply to the same value.
func partsOf(m map[string]any) []any {
	var parts []any
	for _, keyword := range []string{"oneOf", "anyOf", "allOf"} {
		list, _ := m[keyword].([]any)
		parts = append(parts, list...)
	}
	return append(parts, m["if"], m["then"], m["else"])
}

// variantOf returns the fields of the variant that a candidate claims to be, if
// the schema has variants that a constant tells apart. Fields of the other
// variants, which models like to fill in as well, are not among them.
func variantOf(schema any, candidate map[string]any) (fieldSet, bool) {
	m, _ := schema.(map[string]any)
	for _, keyword := range []string{"oneOf", "anyOf"} {
		variants, _ := m[keyword].([]any)
		variants, _ = jsonschema.Unfolded(variants)
		name, values := jsonschema.Discriminator(variants)
		for i, v := range values {
			if sameScalar(candidate[name], v) {
				return fieldsWith(m, keyword, variants[i]), true
			}
		}
	}
	return fieldSet{}, false
}

// fieldsWith is what a schema knows if only one variant of a keyword counts.
func fieldsWith(m map[string]any, keyword string, variant any) fieldSet {
	narrow := map[string]any{keyword: []any{variant}}
	for name, v := range m {
		if name != keyword {
			narrow[name] = v
		}
	}
	return knownBy(narrow)
}

func sameScalar(a, b any) bool {
	x, isNumber := number(a)
	y, alsoNumber := number(b)
	if isNumber && alsoNumber {
		return x == y
	}
	return a == b // b is a scalar, so this cannot panic
}

// Reply takes what a model replied that was asked to read somebody's answer: one
// JSON value, perhaps in a code fence. null means that the answer does not say what
// the role needs. Errors: *[InvalidError] for data that does not fit; others for what
// is no data.
func Reply(ctx context.Context, text string, r Role) (Output, error) {
	text = strings.TrimSpace(text)
	if inner, ok := strings.CutPrefix(text, "```"); ok {
		_, inner, _ = strings.Cut(inner, "\n")
		text = strings.TrimSuffix(strings.TrimSpace(inner), "```")
	}
	var v any
	err := exactjson.Check([]byte(text))
	if err == nil {
		err = json.Unmarshal([]byte(text), &v)
	}
	if err != nil {
		return Output{}, fmt.Errorf("the reply is not JSON: %w", err)
	}
	if v == nil {
		return Output{}, errors.New("the answer does not say what the role's output needs")
	}
	return Value(ctx, v, r)
}

// checkStandard checks the fields that every answer may have, as far as the
// schema does not know them; those that it knows are its business. An empty
// field counts as absent.
func checkStandard(fields map[string]any, known fieldSet) []jsonschema.Problem {
	var problems []jsonschema.Problem
	for _, name := range []string{"artifacts", "confidence", "next", "scope", "status"} {
		v, ok := fields[name]
		if !ok || v == nil || known.has(name) {
			continue
		}
		if want := wantStandard(name, v); want != "" {
			problems = append(problems, jsonschema.Problem{Path: "/" + name, Message: "must be " + want + ", or be left out"})
		}
	}
	return problems
}

// wantStandard returns what a standard field must be, "" if it is.
func wantStandard(name string, v any) string {
	switch name {
	case "artifacts":
		list, ok := v.([]any)
		return or(!ok || slices.ContainsFunc(list, func(item any) bool { return !isString(item) }), "a list of texts")
	case "confidence":
		f, ok := number(v)
		return or(!ok || f < 0 || f > 1, "a number from 0 to 1")
	}
	return or(!isString(v), "a text")
}

func isString(v any) bool {
	_, ok := v.(string)
	return ok
}

func number(v any) (float64, bool) {
	switch n := v.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}

// plainStatus returns the candidate with one of the four standard words as its
// status, if that is what it says in other letters: "DONE" is done.
func plainStatus(candidate map[string]any) (map[string]any, bool) {
	status, _ := candidate["status"].(string)
	word := strings.ToLower(strings.TrimSpace(status))
	switch word {
	case status:
		return nil, false
	case "done", "needs_input", "in_progress", "failed":
		plain := maps.Clone(candidate)
		plain["status"] = word
		return plain, true
	}
	return nil, false
}

// jsonValue makes any Go value that can be written as JSON a JSON value: whole
// numbers within ±(2^53−1) are int64, all others float64.
func jsonValue(v any) (any, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var out any
	if err := dec.Decode(&out); err != nil {
		return nil, err
	}
	return numbers(out)
}

// numbers replaces the numbers in a decoded value.
func numbers(v any) (any, error) {
	var err error
	switch v := v.(type) {
	case json.Number:
		if !exactjson.Keeps(v.String()) {
			return nil, errors.New(exactjson.NotKept(v.String()))
		}
		f, err := v.Float64()
		if err != nil {
			return nil, err
		}
		const maxSafe = 1<<53 - 1
		if f == math.Trunc(f) && math.Abs(f) <= maxSafe {
			return int64(f), nil
		}
		return f, nil
	case map[string]any:
		for name, item := range v {
			if v[name], err = numbers(item); err != nil {
				return nil, err
			}
		}
	case []any:
		for i, item := range v {
			if v[i], err = numbers(item); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}
