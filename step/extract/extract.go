// Package extract converts an agent's answer to data that matches its role's schema, or explains the mismatch
// for each field. The caller stores the data or asks the agent again.
//
// Only frontmatter fields in the schema become data. The fields status, next, confidence, artifacts and scope
// are always allowed: unless the schema declares them, their types are checked and they are dropped. Any role
// can suspend instead of answering, with "$SUSPEND" as $status and the reason in reason.
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

// Role holds the schema for an answer. Both fields must be set.
type Role struct {
	Schema   any // the role's JSON Schema as a JSON value
	Compiled *jsonschema.Schema
}

// NewRole compiles a role's schema. It returns the errors of jsonschema.Compile.
func NewRole(schema any) (Role, error) {
	compiled, err := jsonschema.Compile(schema)
	if err != nil {
		return Role{}, fmt.Errorf("schema of the role: %w", err)
	}
	return Role{Schema: schema, Compiled: compiled}, nil
}

// Output is the result of extracting an answer.
type Output struct {
	Value   any               // matches the schema, or is a suspend payload
	Suspend *protocol.Suspend // set if the role suspends
	Body    string            // the rest of the text
}

// InvalidError explains why an answer isn't valid for the role. Its text is addressed to the model that wrote
// the answer.
type InvalidError struct {
	Problems []jsonschema.Problem // one per field
	Reason   string               // instead of Problems: missing block, invalid YAML
}

func (e *InvalidError) Error() string {
	if e.Reason != "" {
		return e.Reason
	}
	var b strings.Builder
	b.WriteString("the output does not match its schema:")
	for _, p := range e.Problems {
		field := "the output as a whole"
		if p.Path != "" {
			field = "`" + strings.TrimPrefix(p.Path, "/") + "`"
		}
		fmt.Fprintf(&b, "\n- %s: %s", field, p.Message)
	}
	return b.String()
}

// Brief returns the error as one line.
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

// Text extracts the output from a text with a frontmatter block. An *InvalidError means that the answer is
// invalid; any other error means that it could not be checked.
func Text(ctx context.Context, text string, r Role) (Output, error) {
	if protocol.IsAnswerSchema(r.Schema) {
		answer, _ := frontmatter.Parse(text)
		return r.plain(ctx, text, answer.Fields)
	}
	return r.choose(ctx, text)
}

// plain returns the whole text as the answer of a role without a schema. It handles an answer that suspends,
// and one whose block contains the text as data, as agents that only know schemas write it.
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

// accept converts the fields of a block to data.
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

// fits reports whether a value matches the schema.
func (r Role) fits(ctx context.Context, v any) (bool, error) {
	problems, err := r.Compiled.Validate(ctx, v)
	return err == nil && problems == nil, err
}

// Value validates structured output. It changes only numbers, which become int64 or float64, and adds
// defaults. Errors are as for [Text].
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

// suspendStatus returns the field that makes an answer suspend, or "". If the schema uses "status", a model
// can put it there.
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

// suspend returns the output of an answer that suspends. It drops all fields except the reason.
func suspend(fields map[string]any) (Output, error) {
	reason, ok := fields["reason"].(string)
	if !ok || strings.TrimSpace(reason) == "" {
		return Output{}, &InvalidError{Problems: []jsonschema.Problem{{
			Path:    "/reason",
			Message: "is required to suspend: a text with what you need from a person",
		}}}
	}
	s := protocol.NewSuspend(reason)
	return Output{Value: map[string]any{protocol.StatusKey: s.Status, "reason": s.Reason}, Suspend: &s}, nil
}

// noBlock describes how an answer must begin.
const noBlock = "the answer has no frontmatter block: its very first line must be ---, " +
	"then come lines 'field: value', then a line --- again"

// only returns the known fields.
func (k fieldSet) only(fields map[string]any) map[string]any {
	kept := maps.Clone(fields)
	maps.DeleteFunc(kept, func(name string, _ any) bool { return !k.has(name) })
	return kept
}

// choose returns the block at the start of the text or, after other text, the first block with a field of the
// role's output. The text below it is the body, including any quotes. If a later block matches the role's
// output with other values, the answer is rejected as ambiguous. A block in a code fence after other text
// never counts, because it might be a quote, such as a reviewer's approval.
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

// block returns a block as the role's output.
func (r Role) block(ctx context.Context, b frontmatter.Block) (Output, error) {
	if b.Err != nil {
		return Output{}, &InvalidError{Reason: "the frontmatter block is not valid YAML: " + b.Err.Error()}
	}
	out, err := r.accept(ctx, b.Fields)
	out.Body = b.Body
	return out, err
}

// fieldSet is the set of fields that a schema declares, directly or in a subschema for the same value.
type fieldSet struct {
	names    map[string]bool
	patterns []*regexp.Regexp
	all      bool // additionalProperties requires other fields
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

// knownBy returns the fields that a schema declares. For a schema without fields it returns the status, so
// that the step can be routed.
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

// partsOf returns the subschemas that apply to the same value.
func partsOf(m map[string]any) []any {
	var parts []any
	for _, keyword := range []string{"oneOf", "anyOf", "allOf"} {
		list, _ := m[keyword].([]any)
		parts = append(parts, list...)
	}
	return append(parts, m["if"], m["then"], m["else"])
}

// variantOf returns the fields of the variant that a candidate claims to match, if a constant distinguishes
// the schema's variants. It excludes the fields of other variants, which models tend to fill in as well.
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

// fieldsWith returns the schema's fields if only one variant of a keyword applies.
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

// Reply parses a model's reply to a request to read another agent's answer: one JSON value, optionally in a
// code fence. null means that the answer lacks the required data. It returns an *[InvalidError] for data that
// doesn't match, and another error if the reply isn't JSON.
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
		return Output{}, errors.New("the answer lacks data that the role's output needs")
	}
	return Value(ctx, v, r)
}

// checkStandard checks the standard fields of an answer unless the schema declares them. An empty field
// counts as missing.
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

// wantStandard describes the required type of a standard field, or returns "" if it is valid.
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

// plainStatus normalizes a status that is one of the four standard words in different case, such as "DONE".
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

// jsonValue converts any Go value that encodes as JSON to a JSON value: integers within ±(2^53−1) become
// int64, other numbers float64.
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

// numbers converts the numbers in a decoded value.
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
