package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/secret"
	"github.com/united-workforce/uwf/util/suggest"
	"github.com/united-workforce/uwf/util/yamldoc"
	"github.com/united-workforce/uwf/util/yamlstruct"
)

// Set changes one value in the text of a config.yaml and preserves comments, order and everything else.
// Errors contain path.
//
// An invalid value is rejected (*protocol.Error, code invalid). Other values that are still missing are
// returned as problems, so that a provider or a model can be written field by field.
func Set(src []byte, path string, k Key, value any, e env.Env) (text []byte, missing []protocol.Problem, err error) {
	text, err = yamldoc.Set(src, k.Path, value, yamldoc.Bounds{})
	if err != nil {
		return nil, nil, explainEdit(err, src, path, k)
	}
	missing, err = judge(src, text, path, e)
	return text, missing, err
}

// Unset removes one value from the text of a config.yaml and preserves everything else. It fails if the
// resulting config would be unusable. Errors are *protocol.Error.
func Unset(src []byte, path string, k Key, e env.Env) ([]byte, error) {
	text, err := yamldoc.Unset(src, k.Path, yamldoc.Bounds{})
	if errors.Is(err, yamldoc.ErrNoKey) {
		return nil, &protocol.Error{Code: protocol.CodeNotFound, Message: "key not found: " + k.String(), Err: err,
			Hints: []string{"uwf config list"}}
	}
	if err != nil {
		return nil, explainEdit(err, src, path, k)
	}
	missing, err := judge(src, text, path, e)
	if err == nil && len(missing) > 0 {
		err = &protocol.Error{Code: protocol.CodeInvalid, Message: "cannot remove it: " + missing[0].Message,
			Err: &InvalidError{Problems: missing}}
	}
	return text, err
}

// explainEdit explains why a text could not be edited.
func explainEdit(err error, src []byte, path string, k Key) error {
	var bad *yamldoc.Error
	switch {
	case errors.As(err, &bad):
		r := report{path: path, src: src}
		r.addYAML(err)
		return r.err()
	case errors.Is(err, yamldoc.ErrNoMapping):
		return &protocol.Error{
			Code: protocol.CodeInvalid, Message: fmt.Sprintf("cannot set %s: in %s %v", k, path, err), Err: err,
			Hints: []string{"uwf config list"},
		}
	case errors.Is(err, yamldoc.ErrUneditable):
		return &protocol.Error{
			Code: protocol.CodeFailed, Message: fmt.Sprintf("%s in %s %v", k, path, err), Err: err,
			Hints: []string{"to change it in an editor: uwf config edit"},
		}
	}
	return err
}

// judge validates an edited config. It ignores problems that existed before.
func judge(before, after []byte, path string, e env.Env) (missing []protocol.Problem, err error) {
	known := map[string]bool{}
	for _, p := range problems(before, path, e) {
		known[p.Message] = true
	}
	var wrong []protocol.Problem
	for _, p := range problems(after, path, e) {
		switch {
		case known[p.Message]:
		case strings.HasSuffix(p.Message, missingWords):
			missing = append(missing, p)
		default:
			wrong = append(wrong, p)
		}
	}
	if len(wrong) == 0 {
		return missing, nil
	}
	bad := &protocol.Error{Code: protocol.CodeInvalid, Message: wrong[0].Message, Err: &InvalidError{Problems: wrong}}
	if wrong[0].Remedy != "" {
		bad.Hints = []string{wrong[0].Remedy}
	}
	return nil, bad
}

// problems returns all problems of a config, including those that Load only warns about, because a name typed
// now should be right.
func problems(src []byte, path string, e env.Env) []protocol.Problem {
	_, r := read(src, path, e)
	return append(r.problems, r.warnings...)
}

// Key identifies a value in a config, such as providers.openai.baseUrl.
type Key struct {
	Path []string
	typ  reflect.Type // of the value
}

// String returns the key as typed.
func (k Key) String() string {
	parts := make([]string, len(k.Path))
	for i, p := range k.Path {
		parts[i] = p
		if strings.ContainsAny(p, ". \"") && !(i == len(k.Path)-1 && k.joins()) {
			parts[i] = strconv.Quote(p)
		}
	}
	return strings.Join(parts, ".")
}

// joins reports whether the last part of a key can contain dots, as the scenarios of modelOverrides do.
func (k Key) joins() bool { return len(k.Path) == 2 && k.Path[0] == "modelOverrides" }

// Secret reports whether the value is secret, or probably is.
func (k Key) Secret() bool {
	switch {
	case len(k.Path) == 3 && k.Path[0] == "providers":
		return k.Path[2] == "apiKey"
	case len(k.Path) == 4 && k.Path[0] == "agents" && k.Path[2] == "env":
		return secret.Named(k.Path[3])
	case len(k.Path) == 3 && k.Path[0] == "notify" && k.Path[1] == "webhook": // the URL itself is often the key
		return k.Path[2] == "url" || k.Path[2] == "secret"
	}
	return false
}

// ParseKey parses a key with dots between its parts; a part in double quotes can contain dots. The error is a
// *protocol.Error (code usage) that lists the valid parts at the point of the mistake.
func ParseKey(s string) (Key, error) {
	parts, err := split(s)
	if err != nil {
		return Key{}, err
	}
	k := Key{typ: reflect.TypeFor[protocol.Config]()}
	for i := 0; i < len(parts); i++ {
		t := k.typ
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		part := parts[i]
		switch {
		case t.Kind() == reflect.Struct:
			fields := yamlstruct.Fields(t)
			field, ok := fields[part]
			if !ok {
				return Key{}, unknownField(k, part, keys(fields))
			}
			k.typ = field.Type
		case t.Kind() == reflect.Map:
			if len(k.Path) == 1 && k.Path[0] == "modelOverrides" {
				part, i = strings.Join(parts[i:], "."), len(parts)
			}
			k.typ = t.Elem()
		default:
			return Key{}, usage(fmt.Sprintf("%s has no fields: it is %s", k, kindWords(t)), "")
		}
		if part == "" {
			return Key{}, usage(fmt.Sprintf("the key %q has an empty part", s),
				"separate parts with single dots, as in models.default.name")
		}
		k.Path = append(k.Path, part)
	}
	return k, nil
}

// split splits a key at the dots outside of quotes.
func split(s string) ([]string, error) {
	var parts []string
	for rest := s; ; {
		if strings.HasPrefix(rest, `"`) {
			quoted, err := strconv.QuotedPrefix(rest)
			if err != nil {
				return nil, usage(fmt.Sprintf("the key %q has an unclosed quote", s),
					"put a part with a dot in double quotes: models.\"a.b\".name")
			}
			part, err := strconv.Unquote(quoted)
			if err != nil {
				return nil, usage(fmt.Sprintf("the key %q has an invalid quote", s), "")
			}
			parts, rest = append(parts, part), rest[len(quoted):]
			if rest == "" {
				return parts, nil
			}
			if rest[0] != '.' {
				return nil, usage(fmt.Sprintf("the key %q needs a dot after the quote", s),
					"put a part with a dot in double quotes: models.\"a.b\".name")
			}
			rest = rest[1:]
			continue
		}
		part, tail, more := strings.Cut(rest, ".")
		parts, rest = append(parts, part), tail
		if !more {
			return parts, nil
		}
	}
}

func unknownField(k Key, part string, known []string) error {
	slices.Sort(known)
	message := fmt.Sprintf("unknown config key: %s", part)
	if len(k.Path) > 0 {
		message = fmt.Sprintf("unknown field %q in %s", part, k)
	}
	err := usage(message, "one of "+strings.Join(known, ", "))
	if near := suggest.Nearest(part, known, 2); len(near) > 0 {
		err.Hints = append([]string{"did you mean " + yamlstruct.Quoted(near, " or ") + "?"}, err.Hints...)
	}
	return err
}

func usage(message, hint string) *protocol.Error {
	e := &protocol.Error{Code: protocol.CodeUsage, Message: message}
	if hint != "" {
		e.Hints = []string{hint}
	}
	return e
}

// Value parses a value typed on a command line: a string verbatim, a list or a mapping as JSON or YAML.
// Errors are *protocol.Error (code invalid) and don't contain the value, which might be a secret.
func (k Key) Value(text string) (any, error) {
	t := k.typ
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() == reflect.String {
		return text, nil
	}
	doc, err := yamldoc.Parse([]byte(text), yamldoc.Bounds{})
	if err != nil {
		return nil, k.wrong(t)
	}
	ok := false
	switch t.Kind() {
	case reflect.Bool:
		_, ok = doc.Root.Scalar.(bool)
	case reflect.Int, reflect.Int64:
		_, ok = doc.Root.Scalar.(int64)
	case reflect.Float64:
		_, whole := doc.Root.Scalar.(int64)
		_, ok = doc.Root.Scalar.(float64)
		ok = ok || whole
	case reflect.Slice:
		ok = doc.Root.Kind == yamldoc.Sequence || t == reflect.TypeFor[protocol.Network]() && doc.Root.Kind == yamldoc.Scalar
	default:
		ok = doc.Root.Kind == yamldoc.Mapping
	}
	if !ok {
		return nil, k.wrong(t)
	}
	return doc.Root.Value(), nil
}

func (k Key) wrong(t reflect.Type) error {
	return &protocol.Error{Code: protocol.CodeInvalid, Message: fmt.Sprintf("%s must be %s", k, kindWords(t)),
		Hints: k.examples(t)}
}

// examples returns example values.
func (k Key) examples(t reflect.Type) []string {
	switch t.Kind() {
	case reflect.Slice:
		return []string{"uwf config set " + k.String() + ` '["first","second"]'`}
	case reflect.Struct:
		fields := keys(yamlstruct.Fields(t))
		return []string{"uwf config set " + k.String() + "." + fields[0] + " <value>",
			"its fields: " + strings.Join(fields, ", ")}
	case reflect.Map:
		return []string{"uwf config set " + k.String() + ".<name> <value>"}
	}
	return nil
}

func kindWords(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "a list, such as [\"a\",\"b\"]"
	}
	return "a mapping, such as {\"key\": \"value\"}"
}

// Lookup returns the value of a key in the result of [Raw].
func (k Key) Lookup(raw any) (any, bool) {
	for _, part := range k.Path {
		m, ok := raw.(map[string]any)
		if !ok {
			return nil, false
		}
		if raw, ok = m[part]; !ok {
			return nil, false
		}
	}
	return raw, true
}

// Raw parses a config without resolving it, with its secrets masked. Only syntax errors are errors, as for
// Parse.
func Raw(src []byte, path string) (any, error) {
	r := report{path: path, src: src}
	doc, err := yamldoc.Parse(src, yamldoc.Bounds{})
	if err != nil {
		r.addYAML(err)
		return nil, r.err()
	}
	root := doc.Root.Value()
	if root == nil {
		root = map[string]any{}
	}
	return mask(root, Key{}), nil
}

// Shown returns a config with its secrets masked.
func Shown(c protocol.Config) (any, error) {
	data, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	var raw any
	if err := json.Unmarshal(data, &raw); err != nil {
		return nil, err
	}
	return mask(raw, Key{}), nil
}

// mask masks the secrets below a key.
func mask(v any, at Key) any {
	if at.Secret() {
		if s, ok := v.(string); ok && s == "${"+strings.Join(variables(s), "")+"}" {
			return v // a variable's name isn't secret
		}
		if v == nil {
			return nil
		}
		s, ok := v.(string)
		if !ok {
			data, _ := json.Marshal(v) // always encodes, because it came from YAML
			s = string(data)
		}
		return MaskKey(s)
	}
	switch v := v.(type) {
	case string:
		return secret.NewSet(secret.OfVariable("", v)...).Hide(v) // the password in a URL
	case []any:
		for i, item := range v {
			v[i] = mask(item, at)
		}
	case map[string]any:
		for key, value := range v {
			v[key] = mask(value, Key{Path: append(slices.Clone(at.Path), key)})
		}
	}
	return v
}
